//! The external recommender protocol of INCEpTION: documents as XMI of UIMA, and predictions as annotations in it; knows no HTTP.
//!
//! The text is read, and the annotations are written into the same XMI, so that nothing else of it changes. UIMA counts offsets in
//! UTF-16 code units.

use std::fmt::Write;
use std::ops::Range;

use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::error::{ApiError, ApiResult};

/// The feature that marks an annotation as a suggestion.
const IS_PREDICTION: &str = "inception_internal_predicted";

/// The maximum number of elements of a document.
const MAX_ELEMENTS: usize = 5_000_000;

/// A document of INCEpTION.
#[derive(Debug)]
pub struct Cas<'a> {
    xmi: &'a str,
    /// Its text.
    pub text: String,
    /// The number of the text in the file.
    sofa: String,
    last_id: u64,
    view: View,
}

/// The element that lists the annotations of the text.
#[derive(Debug)]
struct View {
    place: Range<usize>,
    name: String,
    members: String,
    is_empty: bool,
}

/// A suggestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// Bytes of the text.
    pub span: Range<usize>,
    /// What is suggested for the feature.
    pub label: String,
    /// Its probability.
    pub score: f64,
}

/// What is to be annotated.
#[derive(Debug, Clone)]
pub struct Layer<'a> {
    /// The type of the annotations, such as `webanno.custom.Disease`.
    pub name: &'a str,
    /// The feature with the label.
    pub feature: &'a str,
    /// The type system of the project as XML.
    pub types: &'a str,
}

fn malformed(problem: impl std::fmt::Display) -> ApiError {
    ApiError::bad(format!("the document is not XMI of UIMA: {problem}"))
        .hint("the request is to be that of an external recommender of INCEpTION")
}

impl<'a> Cas<'a> {
    /// Reads the text and the places to write to.
    pub fn read(xmi: &'a str) -> ApiResult<Cas<'a>> {
        let mut reader = Reader::from_str(xmi);
        let (mut texts, mut views, mut last_id) = (Vec::new(), Vec::new(), 0);
        for _ in 0..MAX_ELEMENTS {
            let start = reader.buffer_position() as usize;
            let event = reader.read_event().map_err(malformed)?;
            let (element, is_empty) = match &event {
                Event::Start(element) => (element, false),
                Event::Empty(element) => (element, true),
                Event::Eof => return Cas::of(xmi, texts, views, last_id),
                _ => continue,
            };
            let place = start..reader.buffer_position() as usize;
            if let Some(id) = attribute(element, "xmi:id")?.and_then(|id| id.parse::<u64>().ok()) {
                last_id = last_id.max(id);
            }
            match element.local_name().as_ref() {
                "Sofa" => {
                    let text = attribute(element, "sofaString")?;
                    let name = attribute(element, "sofaID")?.unwrap_or_default();
                    texts.extend(attribute(element, "xmi:id")?.zip(text).map(|(id, text)| (name, id, text)));
                }
                "View" => {
                    let name = element.name().as_ref().to_owned();
                    let members = attribute(element, "members")?.unwrap_or_default();
                    let sofa = attribute(element, "sofa")?.unwrap_or_default();
                    views.push((sofa, View { place, name, members, is_empty }));
                }
                _ => {}
            }
        }
        Err(malformed(format!("more than {MAX_ELEMENTS} elements")))
    }

    fn of(
        xmi: &'a str,
        mut texts: Vec<(String, String, String)>,
        mut views: Vec<(String, View)>,
        last_id: u64,
    ) -> ApiResult<Cas<'a>> {
        let initial = texts.iter().position(|(name, ..)| name == "_InitialView").unwrap_or(0);
        if texts.is_empty() {
            return Err(malformed("no text"));
        }
        let (_, sofa, text) = texts.swap_remove(initial);
        let view = views.iter().position(|(of, _)| *of == sofa).ok_or_else(|| malformed("no view of its text"))?;
        Ok(Cas { xmi, text, sofa, last_id, view: views.swap_remove(view).1 })
    }

    /// The document with suggestions.
    pub fn with(&self, layer: &Layer<'_>, suggestions: &[Suggestion]) -> ApiResult<String> {
        for (what, name) in [("layer", layer.name), ("feature", layer.feature)] {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(ApiError::bad(format!("the name of the {what} is not one of UIMA")));
            }
        }
        let (package, kind) = layer.name.rsplit_once('.').unwrap_or(("uima.noNamespace", layer.name));
        let namespace = match package {
            "uima.noNamespace" => "http:///uima/noNamespace.ecore".to_owned(),
            package => format!("http:///{}.ecore", package.replace('.', "/")),
        };
        let feature = layer.feature;
        // A feature that the type system lacks would make the document unreadable.
        let has_score = layer.types.contains(&format!("<name>{feature}_score</name>"));
        let units = Utf16::of(&self.text);
        let (mut added, mut members) = (String::new(), self.view.members.clone());
        for (row, Suggestion { span, label, score }) in suggestions.iter().enumerate() {
            let id = self.last_id + 1 + row as u64;
            let score = if has_score { format!(" {feature}_score=\"{score}\"") } else { String::new() };
            let (begin, end, label, sofa) = (units.at(span.start), units.at(span.end), escape(label), &self.sofa);
            let written = write!(
                added,
                "<canonym:{kind} xmlns:canonym=\"{namespace}\" xmi:id=\"{id}\" sofa=\"{sofa}\" begin=\"{begin}\" end=\"{end}\" \
                 {feature}=\"{label}\" {IS_PREDICTION}=\"true\"{score}/>"
            );
            written.expect("a string takes all text");
            if !members.is_empty() {
                members.push(' ');
            }
            members.push_str(&id.to_string());
        }
        let View { place, name, is_empty, .. } = &self.view;
        let (sofa, end) = (&self.sofa, if *is_empty { "/" } else { "" });
        let view = format!("<{name} sofa=\"{sofa}\" members=\"{members}\"{end}>");
        Ok([&self.xmi[..place.start], &added, &view, &self.xmi[place.end..]].concat())
    }
}

/// The value of an attribute, named with its prefix.
fn attribute(element: &BytesStart<'_>, name: &str) -> ApiResult<Option<String>> {
    for attribute in element.attributes() {
        let attribute = attribute.map_err(malformed)?;
        if attribute.key.as_ref() == name {
            // Line breaks that are written as such count as blanks.
            let raw = attribute.value.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ");
            return quick_xml::escape::unescape(&raw).map(|text| Some(text.into_owned())).map_err(malformed);
        }
    }
    Ok(None)
}

/// Offsets of a text in UTF-16 code units.
struct Utf16 {
    /// Bytes from which on a text is not ASCII, with the code units before.
    places: Vec<(usize, usize)>,
}

impl Utf16 {
    fn of(text: &str) -> Utf16 {
        let (mut places, mut units) = (vec![(0, 0)], 0);
        for (byte, letter) in text.char_indices() {
            if !letter.is_ascii() {
                places.push((byte + letter.len_utf8(), units + letter.len_utf16()));
            }
            units += letter.len_utf16();
        }
        Utf16 { places }
    }

    /// The code units before a byte on a character boundary.
    fn at(&self, byte: usize) -> usize {
        // Between two places, one byte is one unit, but for the character that ends at the second.
        let row = self.places.partition_point(|(place, _)| *place <= byte);
        let (place, units) = self.places[row - 1];
        units + byte - place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XMI: &str = r#"<?xml version="1.0" encoding="UTF-8"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmi:version="2.0"><cas:NULL xmi:id="0"/><cas:Sofa xmi:id="12" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="😷 No &quot;fever&quot;.&#10;Cough"/><cas:View sofa="12" members="3 8"/></xmi:XMI>"#;

    const TYPES: &str = "<features><name>identifier_score</name></features>";

    #[test]
    fn text_is_read_and_suggestions_are_written() {
        let cas = Cas::read(XMI).unwrap();
        assert_eq!(cas.text, "😷 No \"fever\".\nCough");
        let start = cas.text.find("Cough").unwrap();
        let suggestion = Suggestion { span: start..start + 5, label: "X:1<&".to_owned(), score: 0.5 };
        let layer = Layer { name: "webanno.custom.Sign", feature: "identifier", types: TYPES };
        let made = cas.with(&layer, std::slice::from_ref(&suggestion)).unwrap();
        let added = r#"<canonym:Sign xmlns:canonym="http:///webanno/custom.ecore" xmi:id="13" sofa="12" begin="15" end="20" identifier="X:1&lt;&amp;" inception_internal_predicted="true" identifier_score="0.5"/><cas:View sofa="12" members="3 8 13"/>"#;
        assert_eq!(made, XMI.replace(r#"<cas:View sofa="12" members="3 8"/>"#, added));
        assert_eq!(Cas::read(&made).unwrap().text, cas.text);
        assert_eq!(cas.with(&layer, &[]).unwrap(), XMI);
        let plain = Layer { types: "", ..layer };
        assert!(!cas.with(&plain, &[suggestion]).unwrap().contains("_score"));
    }

    #[test]
    fn what_is_not_xmi_is_an_error() {
        for wrong in
            ["", "x", "<a>", "<xmi:XMI/>", r#"<a><cas:Sofa xmi:id="1" sofaString="x"/></a>"#, "<a b=\"&nope;\"/>"]
        {
            assert!(Cas::read(wrong).is_err(), "{wrong}");
        }
        let layer = Layer { name: "a b", feature: "x", types: "" };
        assert!(Cas::read(XMI).unwrap().with(&layer, &[]).is_err());
    }

    #[test]
    fn offsets_are_those_of_utf_16() {
        let text = "a😷é—b";
        let units = Utf16::of(text);
        for (byte, _) in text.char_indices() {
            assert_eq!(units.at(byte), text[..byte].encode_utf16().count(), "{byte}");
        }
        assert_eq!(units.at(text.len()), 6);
    }
}
