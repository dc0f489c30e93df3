//! Linked mentions as rows: an aligned table, and tab-separated values.

use std::io::Write;

use crate::corpus::contexts::is_context;
use crate::corpus::{AnnotatedDocument, Annotation};
use crate::text::Span;
use crate::text::offsets::OffsetMap;

/// Characters of text shown above the table of mentions.
const MAX_CHARS: usize = 600;

/// Writes the text, truncated if it is long, and one row per mention.
///
/// # Errors
/// If `out` cannot be written.
pub fn table(out: &mut dyn Write, document: &AnnotatedDocument) -> std::io::Result<()> {
    let text = document.document.text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let cut = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { " …" } else { "" };
    writeln!(out, "{}  {}{more}", document.document.id, &text[..cut])?;
    if document.annotations.is_empty() {
        return writeln!(out, "  no mentions found\n");
    }
    let has_attributes = |annotation: &Annotation| !annotation.attributes.is_empty();
    let mut attributes = document.annotations.iter().flat_map(|annotation| &annotation.attributes).peekable();
    let last = match (attributes.peek().is_some(), attributes.all(is_context)) {
        (false, _) => "score",
        (true, true) => "score  context",
        (true, false) => "score  attributes",
    };
    let mut rows = vec![["mention", "type", "concept", "name", last].map(str::to_owned)];
    rows.extend(document.annotations.iter().map(|annotation| {
        let best = annotation.candidates.first().filter(|_| !annotation.nil);
        let (id, name) = best.map_or(("-", "unlinked"), |best| (&best.id, &best.name));
        let mut score = format!("{:.2}", annotation.score.unwrap_or(0.0));
        if has_attributes(annotation) {
            let values: Vec<&str> = annotation.attributes.iter().map(|one| one.value.as_str()).collect();
            score += &format!("   {}", values.join(", "));
        }
        let mention = annotation.text.split_whitespace().collect::<Vec<&str>>().join(" ");
        [mention, annotation.semantic_type.clone(), id.to_owned(), name.to_owned(), score]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    writeln!(out)?;
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(out, "  {}  {}", cells.join("  "), row[4])?;
    }
    writeln!(out)
}

/// Writes one line per mention: document, start, end, text, type, id, name and score, separated by tabs.
///
/// Offsets count code points; those of a discontinuous mention are separated by `;`. Id and name are empty if the
/// mention is unlinked.
///
/// # Errors
/// If `out` cannot be written.
pub fn tsv(out: &mut dyn Write, document: &AnnotatedDocument) -> std::io::Result<()> {
    let map = OffsetMap::new(&document.document.text);
    let offsets = |spans: &[Span], end: fn(&Span) -> u32| {
        let code_point = |span| map.byte_to_char(end(span) as usize).expect("spans lie on character boundaries");
        spans.iter().map(|span| code_point(span).to_string()).collect::<Vec<_>>().join(";")
    };
    for annotation in &document.annotations {
        let best = annotation.candidates.first().filter(|_| !annotation.nil);
        let (id, name) = best.map_or(("", ""), |best| (&best.id, &best.name));
        let columns = [
            cell(&document.document.id),
            offsets(&annotation.spans, |span| span.start),
            offsets(&annotation.spans, |span| span.end),
            cell(&annotation.text),
            cell(&annotation.semantic_type),
            cell(id),
            cell(name),
            format!("{:.4}", annotation.score.unwrap_or(0.0)),
        ];
        writeln!(out, "{}", columns.join("\t"))?;
    }
    Ok(())
}

/// Replaces tabs and line breaks by spaces.
fn cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::CandidateRecord;
    use crate::text::Document;

    #[test]
    fn part_offsets_are_separated_and_tabs_become_spaces() {
        let document =
            Document { id: "7".into(), text: "β breast\tand ovarian\ncancer".into(), ..Document::default() };
        let candidate =
            CandidateRecord { id: "X:1".into(), name: "breast \"cancer\"".into(), p_link: 0.5, p_both: None };
        let found = Annotation {
            spans: vec![Span::new(3, 9), Span::new(22, 28)],
            text: "breast\tcancer".into(),
            semantic_type: "Disease".into(),
            score: Some(0.76543),
            candidates: vec![candidate],
            ..Annotation::default()
        };
        let abstained = Annotation { nil: true, ..found.clone() };
        let annotations = vec![found, abstained];
        let mut out = Vec::new();
        tsv(&mut out, &AnnotatedDocument { document, annotations, ..Default::default() }).unwrap();
        let line = "7\t2;21\t8;27\tbreast cancer\tDisease";
        let expected = format!("{line}\tX:1\tbreast \"cancer\"\t0.7654\n{line}\t\t\t0.7654\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
