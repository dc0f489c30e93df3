//! UIMA CAS as XMI, as INCEpTION sends it: the text of a document, and predictions written into it.
//!
//! The rest of the XMI is not interpreted and stays as it is: predictions are elements before the view, whose list of
//! members they join. Offsets of UIMA count UTF-16 units.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use crate::input::Input;
use crate::input::xml::{Event, XmlReader};
use crate::text::Span;
use crate::text::offsets::OffsetMap;
use crate::{Error, Result};

/// A document with its tokens and sentences.
#[derive(Debug, Clone)]
pub struct Cas<'a> {
    xmi: &'a str,
    /// The text of the first view.
    pub text: String,
    /// Tokens in bytes, in order; empty if there are none.
    pub tokens: Vec<Span>,
    /// Sentences in bytes, in order; empty if there are none.
    pub sentences: Vec<Span>,
    sofa: String,
    next_id: u64,
    /// Start of the element of the view.
    view: usize,
    /// Its list of members, between the quotes.
    members: Range<usize>,
}

/// An annotation to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// Its span in bytes.
    pub span: Span,
    /// Features and their values.
    pub features: Vec<(String, String)>,
}

/// The text of a document.
struct Sofa {
    id: String,
    text: String,
}

impl<'a> Cas<'a> {
    /// Reads an XMI document.
    ///
    /// # Errors
    /// [`Error::Parse`] if it is not well-formed, or has no text or view.
    pub fn read(xmi: &'a str) -> Result<Cas<'a>> {
        let mut xml = XmlReader::new(Input::from_bytes("document.xmi", xmi.as_bytes().to_vec())?)?;
        let (mut sofa, mut last_id) = (None::<Sofa>, 0u64);
        let (mut tokens, mut sentences) = (Vec::new(), Vec::new());
        loop {
            let element = match xml.next_event()? {
                Event::Start(element) => element,
                Event::Eof => break,
                _ => continue,
            };
            let id = element.attribute("xmi:id")?.unwrap_or_default();
            last_id = last_id.max(id.parse().unwrap_or(0));
            let units =
                |name: &str| Ok::<_, Error>(element.attribute(name)?.and_then(|value| value.parse::<usize>().ok()));
            match element.name().rsplit(':').next() {
                Some("Sofa") => {
                    let is_first = element.attribute("sofaID")?.as_deref() == Some("_InitialView");
                    if sofa.is_none() || is_first {
                        sofa = Some(Sofa { id, text: element.attribute("sofaString")?.unwrap_or_default() });
                    }
                }
                Some("Token") => tokens.extend(units("begin")?.zip(units("end")?)),
                Some("Sentence") => sentences.extend(units("begin")?.zip(units("end")?)),
                _ => {}
            }
        }
        let sofa = sofa.ok_or_else(|| malformed("the document has no `cas:Sofa`"))?;
        let (view, members) =
            view_of(xmi, &sofa.id).ok_or_else(|| malformed("the document has no `cas:View` with members"))?;
        let map = OffsetMap::new(&sofa.text);
        let spans = |units: Vec<(usize, usize)>| {
            let byte = |unit: usize| map.utf16_to_byte(unit);
            let spans = units.into_iter().filter_map(|(begin, end)| Some(Span::new(byte(begin)?, byte(end)?)));
            let mut spans: Vec<Span> = spans.filter(|span| span.start < span.end).collect();
            spans.sort_unstable();
            spans
        };
        let (tokens, sentences) = (spans(tokens), spans(sentences));
        Ok(Cas { xmi, tokens, sentences, sofa: sofa.id, next_id: last_id + 1, view, members, text: sofa.text })
    }

    /// The smallest sequence of tokens that holds a span; the span itself if there are no tokens.
    pub fn to_tokens(&self, span: Span) -> Span {
        let mut inside = self.tokens.iter().filter(|token| token.overlaps(span));
        let Some(first) = inside.next() else { return span };
        Span { start: first.start, end: inside.next_back().unwrap_or(first).end }
    }

    /// Number of tokens in a span.
    pub fn n_tokens(&self, span: Span) -> usize {
        self.tokens.iter().filter(|token| token.overlaps(span)).count()
    }

    /// Whether a span lies in one sentence; true if there are no sentences.
    pub fn is_in_sentence(&self, span: Span) -> bool {
        let holds = |sentence: &Span| sentence.start <= span.start && span.end <= sentence.end;
        self.sentences.is_empty() || self.sentences.iter().any(holds)
    }

    /// The document with annotations of a layer, such as `webanno.custom.Finding`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name of the layer or of a feature is not a name of XML.
    pub fn with(&self, layer: &str, predictions: &[Prediction]) -> Result<String> {
        let (package, name) = layer.rsplit_once('.').unwrap_or(("uima.noNamespace", layer));
        let names = package.split('.').chain([name]);
        let features = predictions.iter().flat_map(|one| &one.features).map(|(name, _)| name.as_str());
        if let Some(wrong) = names.chain(features).find(|name| !is_name(name)) {
            let shown: String = wrong.chars().take(80).collect();
            return Err(Error::invalid(format!("invalid name of a layer or feature: `{}`", shown.escape_debug())));
        }
        let space = package.replace('.', "/");
        let map = OffsetMap::new(&self.text);
        let unit = |byte: u32| map.byte_to_utf16(byte as usize).expect("spans lie on character boundaries");
        let (mut elements, mut ids) = (String::new(), String::new());
        for (id, Prediction { span, features }) in (self.next_id..).zip(predictions) {
            let (begin, end) = (unit(span.start), unit(span.end));
            let sofa = escaped(&self.sofa);
            let start =
                format!("<canonym:{name} xmlns:canonym=\"http:///{space}.ecore\" xmi:id=\"{id}\" sofa=\"{sofa}\"");
            write!(elements, "{start} begin=\"{begin}\" end=\"{end}\"").expect("a string takes all");
            for (feature, value) in features {
                write!(elements, " {feature}=\"{}\"", escaped(value)).expect("a string takes all");
            }
            elements.push_str("/>");
            write!(ids, " {id}").expect("a string takes all");
        }
        let (before, rest) = self.xmi.split_at(self.view);
        let (tag, after) = rest.split_at(self.members.end - self.view);
        Ok([before, &elements, tag, &ids, after].concat())
    }
}

/// The features that a type system declares for a type and its supertypes; `None` if it does not declare the type.
///
/// # Errors
/// [`Error::Parse`] if the type system is not well-formed XML.
pub fn features_of(type_system: &str, layer: &str) -> Result<Option<HashSet<String>>> {
    let mut xml = XmlReader::new(Input::from_bytes("typeSystem", type_system.as_bytes().to_vec())?)?;
    let mut types: HashMap<String, (String, Vec<String>)> = HashMap::new();
    // Names of the open elements, the current type, and the text of the current element.
    let (mut open, mut current, mut text) = (Vec::<String>::new(), String::new(), String::new());
    loop {
        match xml.next_event()? {
            Event::Start(element) => {
                open.push(element.name().rsplit(':').next().unwrap_or_default().to_owned());
                text.clear();
            }
            Event::Text(more) => text.push_str(more),
            Event::End => {
                let name = open.pop().unwrap_or_default();
                let value = std::mem::take(&mut text).trim().to_owned();
                match (open.last().map_or("", String::as_str), name.as_str()) {
                    ("typeDescription", "name") => {
                        types.entry(value.clone()).or_default();
                        current = value;
                    }
                    ("typeDescription", "supertypeName") => types.entry(current.clone()).or_default().0 = value,
                    ("featureDescription", "name") => types.entry(current.clone()).or_default().1.push(value),
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !types.contains_key(layer) {
        return Ok(None);
    }
    let (mut found, mut next) = (HashSet::new(), layer.to_owned());
    // A type is taken out when it is read, so that a cycle ends.
    while let Some((supertype, features)) = types.remove(&next) {
        found.extend(features);
        next = supertype;
    }
    Ok(Some(found))
}

fn malformed(message: &str) -> Error {
    Error::parse(std::path::Path::new("document.xmi"), 1, message).with_hint("send a UIMA CAS as XMI")
}

/// Where the view of a text starts, and its list of members. A `<` is escaped in attributes, so what looks like the
/// element is the element.
fn view_of(xmi: &str, sofa: &str) -> Option<(usize, Range<usize>)> {
    xmi.match_indices("<cas:View").find_map(|(at, _)| {
        let tag = &xmi[at..at + xmi[at..].find('>')?];
        let range = |name: &str| {
            let start = tag.find(&format!(" {name}=")).map(|start| start + name.len() + 3)?;
            let quote = tag[..start].chars().next_back().filter(|quote| matches!(quote, '"' | '\''))?;
            Some(at + start..at + start + tag[start..].find(quote)?)
        };
        (&xmi[range("sofa")?] == sofa).then(|| Some((at, range("members")?)))?
    })
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The value of an attribute.
fn escaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => value.push_str("&amp;"),
            '<' => value.push_str("&lt;"),
            '"' => value.push_str("&quot;"),
            '\n' | '\r' | '\t' => value.push(' '),
            // XML 1.0 has no other control characters.
            letter if letter.is_control() => value.push(' '),
            letter => value.push(letter),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const XMI: &str = concat!(
        r#"<?xml version="1.0" encoding="UTF-8"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" "#,
        r#"xmlns:type="http:///de/tudarmstadt/ukp/dkpro/core/api/segmentation/type.ecore" xmi:version="2.0"><cas:NULL xmi:id="0"/>"#,
        r#"<type:Sentence xmi:id="2" sofa="1" begin="0" end="13"/><type:Token xmi:id="3" sofa="1" begin="0" end="2"/>"#,
        r#"<type:Token xmi:id="4" sofa="1" begin="3" end="6"/><type:Token xmi:id="17" sofa="1" begin="7" end="13"/>"#,
        r#"<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="🧪 dry coughs&#10;&lt;cas:View sofa=&quot;1&quot;"/>"#,
        r#"<cas:View sofa="1" members="2 3 4 17"/></xmi:XMI>"#,
    );

    #[test]
    fn predictions_join_the_view() {
        let cas = Cas::read(XMI).unwrap();
        assert_eq!(&cas.text[..17], "🧪 dry coughs\n<");
        let cough = Span::new(9, 14);
        assert_eq!(cas.to_tokens(cough).of(&cas.text), "coughs");
        assert_eq!((cas.n_tokens(Span::new(5, 14)), cas.n_tokens(cough)), (2, 1));
        assert!(cas.is_in_sentence(cough) && !cas.is_in_sentence(Span::new(9, 16)));
        let feature = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let features = vec![feature("value", "X:1 \"<&>\""), feature("inception_internal_predicted", "true")];
        let prediction = Prediction { span: cas.to_tokens(cough), features };
        let written = cas.with("webanno.custom.Finding", &[prediction.clone(), prediction]).unwrap();
        let at = written.find("<canonym:").unwrap();
        expect![[r#"
            <canonym:Finding xmlns:canonym="http:///webanno/custom.ecore" xmi:id="18" sofa="1" begin="7" end="13" value="X:1 &quot;&lt;&amp;>&quot;" inception_internal_predicted="true"/>
            <canonym:Finding xmlns:canonym="http:///webanno/custom.ecore" xmi:id="19" sofa="1" begin="7" end="13" value="X:1 &quot;&lt;&amp;>&quot;" inception_internal_predicted="true"/>
            <cas:View sofa="1" members="2 3 4 17 18 19"/>
            </xmi:XMI>
        "#]].assert_eq(&(written[at..].replace("/><", "/>\n<") + "\n"));
        assert!(Cas::read(&written).is_ok());
        assert_eq!(cas.with("Finding", &[]).unwrap(), XMI);
    }

    #[test]
    fn features_are_those_of_a_type_and_its_supertypes() {
        let kind = |name: &str, supertype: &str, feature: &str| {
            let feature = format!(
                "<featureDescription><name>{feature}</name><rangeTypeName>uima.cas.String</rangeTypeName></featureDescription>"
            );
            format!(
                "<typeDescription><name>{name}</name><description/><supertypeName>{supertype}</supertypeName><features>{feature}</features></typeDescription>"
            )
        };
        let types = kind("x.Sign", "x.Base", "value")
            + &kind("x.Base", "x.Sign", " value_score\n")
            + &kind("x.Other", "", "colour");
        let types = format!(
            r#"<typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier"><types>{types}</types></typeSystemDescription>"#
        );
        let check = |layer: &str, expected: Option<&[&str]>| {
            let found = features_of(&types, layer).unwrap();
            assert_eq!(found, expected.map(|names| names.iter().map(|&name| name.to_owned()).collect()), "{layer}");
        };
        check("x.Sign", Some(&["value", "value_score"]));
        check("x.Other", Some(&["colour"]));
        check("x.Missing", None);
        assert!(features_of("<types>", "x.Sign").is_err());
    }

    #[test]
    fn malformed_documents_and_names_are_refused() {
        for (xmi, message) in [
            ("", "document.xmi"),
            ("<xmi:XMI", "document.xmi"),
            ("<xmi:XMI/>", "no `cas:Sofa`"),
            (r#"<xmi:XMI><cas:Sofa xmi:id="1" sofaString="a"/></xmi:XMI>"#, "no `cas:View`"),
            (
                r#"<xmi:XMI><cas:Sofa xmi:id="1" sofaString="a"/><cas:View sofa="2" members=""/></xmi:XMI>"#,
                "no `cas:View`",
            ),
        ] {
            let error = Cas::read(xmi).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let cas = Cas::read(XMI).unwrap();
        for layer in ["", "a b", "x.<y>", "..", "1"] {
            assert!(cas.with(layer, &[]).is_err(), "{layer}");
        }
    }
}
