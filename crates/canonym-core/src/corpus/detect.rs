//! Detects the format of a corpus file by its name and its first bytes.

use std::path::Path;

use crate::corpus::{CorpusFormat, biosyn, conll};
use crate::{Error, Result};

/// Maximum length of a document id in PubTator detection, in bytes.
const MAX_ID: usize = 100;

/// Root elements of PubMed files.
const CITATIONS: [&[u8]; 7] = [
    b"PubmedArticleSet",
    b"PubmedArticle",
    b"PubmedBookArticleSet",
    b"PubmedBookArticle",
    b"MedlineCitationSet",
    b"MedlineCitation",
    b"BookDocument",
];

/// Kind of a file with another root element than those of the formats.
const FOREIGN_XML: &str = "XML (not BioC, PubMed or JATS)";

/// Detects the format of a file by its name and its first (uncompressed) bytes; plain text by default.
///
/// A web page, or a file named `.xml` or `.nxml` that is not XML, is an error: it is usually a failed download.
pub fn detect(path: &Path, head: &[u8]) -> Result<CorpusFormat> {
    let mut name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    for packed in [".gz", ".zst"] {
        name.truncate(name.strip_suffix(packed).map_or(name.len(), str::len));
    }
    if name.ends_with(".jsonl") || name.ends_with(".ndjson") {
        return Ok(CorpusFormat::Jsonl);
    }
    if name.ends_with(".pubtator") || name.ends_with(".pubtator.txt") {
        return Ok(CorpusFormat::Pubtator);
    }
    if name.ends_with(".concept") {
        return Ok(CorpusFormat::Biosyn);
    }
    if name.ends_with(".csv") {
        return Ok(CorpusFormat::Csv);
    }
    if [".conll", ".bio", ".iob", ".iob2", ".bioes", ".bilou"].iter().any(|ending| name.ends_with(ending)) {
        return Ok(CorpusFormat::Conll);
    }
    let head = head.trim_ascii_start();
    if name.ends_with(".bioc.xml") {
        return Ok(CorpusFormat::BiocXml);
    }
    if name.ends_with(".bioc.json") {
        return Ok(CorpusFormat::BiocJson);
    }
    let root = xml_root(head);
    match root {
        Some(b"collection") => return Ok(CorpusFormat::BiocXml),
        Some(b"article" | b"pmc-articleset") => return Ok(CorpusFormat::Jats),
        Some(root) if CITATIONS.contains(&root) => return Ok(CorpusFormat::PubmedXml),
        _ => {}
    }
    if head.starts_with(b"{") || head.starts_with(b"[") {
        if has_member(head, "passages") || has_member(head, "PubTator3") {
            return Ok(CorpusFormat::BiocJson);
        }
        if has_member(head, "documents") {
            return Ok(if has_member(head, "begin") { CorpusFormat::Texoo } else { CorpusFormat::BiocJson });
        }
    }
    if starts_page(head) && !name.ends_with(".txt") {
        let error = Error::parse(path, 1, "this is a web page (HTML), not a document");
        return Err(error.with_hint("download the file again, or specify the format; `text` reads any text file"));
    }
    let is_xml = name.ends_with(".xml") || name.ends_with(".nxml");
    if let Some(kind) = foreign_kind(head).or(root.filter(|_| is_xml).and(Some(FOREIGN_XML))) {
        return Err(Error::unsupported(format!("{}: unsupported {kind}", path.display()))
            .with_hint("specify the format; `text` reads any text file"));
    }
    if is_xml {
        let error = Error::parse(path, 1, "no XML element found");
        return Err(error.with_hint("download the file again, or specify the format; `text` reads any text file"));
    }
    if starts_with_both(head, b"{", b"\"") {
        return Ok(CorpusFormat::Jsonl);
    }
    if starts_pubtator(head) {
        return Ok(CorpusFormat::Pubtator);
    }
    if biosyn::starts_query(head) {
        return Ok(CorpusFormat::Biosyn);
    }
    Ok(match conll::starts_tokens(head) {
        true => CorpusFormat::Conll,
        false if name.ends_with(".tsv") => CorpusFormat::Csv,
        false => CorpusFormat::Text,
    })
}

/// Name of the root element; also given by the document type.
fn xml_root(mut head: &[u8]) -> Option<&[u8]> {
    loop {
        head = head.trim_ascii_start();
        let closing: &[u8] = match head {
            [b'<', b'?', ..] => b"?>",
            [b'<', b'!', b'-', ..] => b"-->",
            _ => break,
        };
        let end = head.windows(closing.len()).position(|window| window == closing)?;
        head = &head[end + closing.len()..];
    }
    let name = match head.strip_prefix(b"<!DOCTYPE") {
        Some(rest) => rest.trim_ascii_start(),
        None => head.strip_prefix(b"<")?,
    };
    let end = name.iter().position(|&byte| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/' | b'['))?;
    Some(&name[..end])
}

/// Whether an object in the JSON `head` has a member with that name.
fn has_member(head: &[u8], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    let is_name = |at: usize| head[at + quoted.len()..].trim_ascii_start().starts_with(b":");
    head.windows(quoted.len()).enumerate().any(|(at, window)| window == quoted.as_bytes() && is_name(at))
}

/// The file type of `head`, if it must not be read as plain text.
fn foreign_kind(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"<?xml") || head.starts_with(b"<!DOCTYPE") {
        return Some(FOREIGN_XML);
    }
    if starts_with_both(head, b"[", b"{") {
        return Some("JSON list");
    }
    head.contains(&0).then_some("binary file")
}

/// Whether `head` is the start of a web page.
fn starts_page(head: &[u8]) -> bool {
    let starts = |tag: &[u8]| head.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    starts(b"<!doctype html") || starts(b"<html")
}

/// Whether `head` starts with `first` and, after white space, `second`.
fn starts_with_both(head: &[u8], first: &[u8], second: &[u8]) -> bool {
    head.strip_prefix(first).is_some_and(|rest| rest.trim_ascii_start().starts_with(second))
}

/// Whether `head` starts with an id and `|t|` or `|a|`.
fn starts_pubtator(head: &[u8]) -> bool {
    let Some(end) = head.iter().take(MAX_ID).position(|&byte| byte == b'|') else { return false };
    let id = &head[..end];
    !id.is_empty()
        && !id.iter().any(u8::is_ascii_whitespace)
        && (head[end..].starts_with(b"|t|") || head[end..].starts_with(b"|a|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, head: &str, expected: CorpusFormat) {
        assert_eq!(detect(Path::new(name), head.as_bytes()).unwrap(), expected, "{name}");
    }

    #[test]
    fn file_names_take_priority_over_content() {
        check("a.jsonl.gz", "", CorpusFormat::Jsonl);
        check("a.NDJSON", "1|t|x", CorpusFormat::Jsonl);
        check("train.PubTator", "", CorpusFormat::Pubtator);
        check("train.pubtator.txt.zst", "{\"", CorpusFormat::Pubtator);
    }

    #[test]
    fn content_is_checked_if_the_name_is_ambiguous() {
        check("a.txt", "\n\n10192393|t|A title", CorpusFormat::Pubtator);
        check("-", "8|a|", CorpusFormat::Pubtator);
        check("-", " { \"id\": 1", CorpusFormat::Jsonl);
        check("a.txt", "{as in sets}", CorpusFormat::Text);
        check("a.txt", "either a|t|b", CorpusFormat::Text);
        check("a", "", CorpusFormat::Text);
    }

    #[test]
    fn structured_files_are_detected() {
        check("a.bioc.xml.gz", "", CorpusFormat::BiocXml);
        check("a.bioc.json", "", CorpusFormat::BiocJson);
        check("a.xml", "<?xml version='1.0'?>\n<!-- x -->\n<collection>", CorpusFormat::BiocXml);
        check("a.xml", "<?xml version='1.0'?><!DOCTYPE collection SYSTEM 'BioC.dtd'>", CorpusFormat::BiocXml);
        check("a.xml", "<!DOCTYPE PubmedArticleSet PUBLIC '' ''>\n", CorpusFormat::PubmedXml);
        check("PMC1.nxml", "<?xml version='1.0'?><!DOCTYPE article PUBLIC '' ''>", CorpusFormat::Jats);
        check("-", "<pmc-articleset>", CorpusFormat::Jats);
        check("notes.csv.gz", "id,text", CorpusFormat::Csv);
        check("notes.tsv", "id\tdate\ttext\n1\t2020\tDry cough.\n", CorpusFormat::Csv);
        check("tokens.tsv", "Dry\tB-Disease\ncough\tI-Disease\n\n", CorpusFormat::Conll);
        check("-", "<MedlineCitation Owner='NLM'>", CorpusFormat::PubmedXml);
        check("a.json", r#"{"source": "", "documents": [{"id": "1"#, CorpusFormat::BiocJson);
        check("a.json", r#"{"PubTator3": [{"#, CorpusFormat::BiocJson);
        check("a.json", r#"[{"id": "1", "passages": ["#, CorpusFormat::BiocJson);
        check("a.json", r#"{"name": "", "documents": [{"begin": 0"#, CorpusFormat::Texoo);
        check("a.json", r#"{"text": "a \"passages\": b"}"#, CorpusFormat::Jsonl);
    }

    #[test]
    fn foreign_files_are_not_taken_for_text() {
        let message = |head: &[u8]| detect(Path::new("a"), head).unwrap_err().to_string();
        assert_eq!(message(b"<?xml version='1.0'?><feed>"), "a: unsupported XML (not BioC, PubMed or JATS)");
        assert_eq!(message(b"<?xml version='1.0'?>"), "a: unsupported XML (not BioC, PubMed or JATS)");
        assert_eq!(message(b"[\n {\"id\": 1}"), "a: unsupported JSON list");
        assert_eq!(message(b"ab\0"), "a: unsupported binary file");
        for page in ["<html><body>Bad Gateway", "\n<HTML>", "<!doctype html>", "<!DOCTYPE html>"] {
            assert_eq!(message(page.as_bytes()), "a:1: this is a web page (HTML), not a document");
        }
    }

    #[test]
    fn files_named_xml_are_not_read_as_text() {
        for name in ["a.xml", "a.xml.gz", "A.XML.zst", "a.nxml", "notes.zip/a.nxml"] {
            for head in ["", "\n", "not gzip at all", "<unclosed", "1|t|No pain.", "{\"error\":\"busy\"}"] {
                let error = detect(Path::new(name), head.as_bytes()).unwrap_err();
                assert_eq!(error.to_string(), format!("{name}:1: no XML element found"), "{head}");
                assert!(error.hint().unwrap().starts_with("download the file again"));
            }
            let message = |head: &[u8]| detect(Path::new(name), head).unwrap_err().to_string();
            assert_eq!(message(b"<feed>"), format!("{name}: unsupported XML (not BioC, PubMed or JATS)"));
            assert_eq!(message(b"<html>"), format!("{name}:1: this is a web page (HTML), not a document"));
        }
        for head in ["", "not gzip at all", "<html><body>Bad Gateway", "<feed>"] {
            check("a.txt", head, CorpusFormat::Text);
            check("a.xml.txt.gz", head, CorpusFormat::Text);
        }
    }
}
