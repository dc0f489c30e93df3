//! Reads names with gold concepts, for training and evaluation.
//!
//! The format is detected: PubTator and tables by file name, AskAPatient by the two tabs of its rows; anything else is read in the format
//! of BioSyn.

use std::path::Path;

use canonym_core::corpus::{CorpusFormat, OnMismatch, Reader, format};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::queries::read_queries;
use canonym_core::input::{Encoding, Input};
use canonym_core::link::fit::Labelled;

use crate::system::terminology::bare;
use canonym_core::numbers::counted;

/// Characters of the bytes 0x80 to 0x9f in Windows-1252; five are undefined.
const WINDOWS: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž', '\u{fffd}', '\u{fffd}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
];

/// A mention, as the queries of its parts.
pub struct MentionQuery {
    /// The document; empty if the file has none.
    pub document: String,
    /// The parts, each with all ids of the mention.
    pub parts: Vec<Labelled>,
}

/// The mentions of a file.
#[derive(Default)]
pub struct Mentions {
    /// In the order of the file.
    pub rows: Vec<MentionQuery>,
    /// Number of lines that are not UTF-8 and were read as Windows-1252.
    pub n_decoded: u64,
}

/// Reads mentions in the format of BioSyn, from the annotations of a PubTator file, from rows of id, name and phrase, or, if the file name
/// ends in `.tsv`, from lines of a name and its ids.
pub fn read_mentions(path: &Path) -> canonym_core::Result<Mentions> {
    let mentions = read(path)?;
    if mentions.rows.is_empty() {
        let error = canonym_core::Error::parse(path, 1, "no queries found");
        return Err(error.with_hint("a line of a `.tsv` file is a name, a tab and its ids"));
    }
    Ok(mentions)
}

fn read(path: &Path) -> canonym_core::Result<Mentions> {
    let mut input = Input::open(path)?;
    if path.extension().is_some_and(|end| end == "tsv") {
        return read_table(input);
    }
    if format::detect(path, input.head())? == CorpusFormat::Pubtator {
        return read_corpus(path);
    }
    if are_phrases(input.head()) {
        return read_phrases(input.with_encoding(Encoding::Latin1));
    }
    let mut mentions = Mentions::default();
    for query in read_queries(&mut input)? {
        let ids: std::collections::BTreeSet<String> = query.ids.iter().map(str::to_owned).collect();
        let parts = query.parts.into_iter().map(|part| Labelled { query: part, ids: ids.clone() }).collect();
        mentions.rows.push(MentionQuery { document: query.document, parts });
    }
    Ok(mentions)
}

fn read_table(mut input: Input) -> canonym_core::Result<Mentions> {
    let mut mentions = Mentions::default();
    while let Some((_, line)) = input.next_line()? {
        if line.trim().is_empty() {
            continue;
        }
        let Some((name, ids)) = line.split_once('\t').filter(|(name, ids)| !name.is_empty() && !ids.is_empty()) else {
            let error = input.error("expected a name and its ids, separated by a tab");
            return Err(error.with_hint("separate several ids by `|`"));
        };
        mentions.rows.push(mention(name, ids));
    }
    Ok(mentions)
}

/// A mention with a single part.
fn mention(name: &str, ids: &str) -> MentionQuery {
    let ids = ids.split('|').map(|id| bare(id.trim()).to_owned()).collect();
    MentionQuery { document: String::new(), parts: vec![Labelled { query: name.to_owned(), ids }] }
}

/// Whether the first line consists of id, name and phrase.
fn are_phrases(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.iter().filter(|byte| **byte == b'\t').count() == 2 && !line.windows(2).any(|pair| pair == b"||")
}

/// Reads rows of id, name and phrase, the format of AskAPatient.
fn read_phrases(mut input: Input) -> canonym_core::Result<Mentions> {
    let mut mentions = Mentions::default();
    let hint = "a row is the id of a concept, its name and a phrase, separated by tabs";
    while let Some((_, line)) = input.next_line()? {
        // The input was decoded as Latin-1, so every character is one byte.
        let bytes: Vec<u8> = line.chars().map(|letter| letter as u8).collect();
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let line = match String::from_utf8(bytes) {
            Ok(line) => line,
            Err(error) => {
                mentions.n_decoded += 1;
                error.as_bytes().iter().map(|byte| windows(*byte)).collect()
            }
        };
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, _, phrase] = columns[..] else {
            let message = format!("{}, expected 3", counted(columns.len() as u64, "column"));
            return Err(input.error(message).with_hint(hint));
        };
        if id.trim().is_empty() || phrase.trim().is_empty() {
            return Err(input.error("the id or the phrase is empty").with_hint(hint));
        }
        mentions.rows.push(mention(phrase.trim(), id));
    }
    Ok(mentions)
}

fn windows(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Reads the linked annotations of a corpus; the ids of a composite mention apply to each of its parts.
fn read_corpus(path: &Path) -> canonym_core::Result<Mentions> {
    let mut mentions = Mentions::default();
    for document in Reader::open(path, None)?.with_on_mismatch(OnMismatch::Drop) {
        let document = document?;
        for annotation in document.annotations {
            let ids: std::collections::BTreeSet<String> =
                IdSet::parse(&annotation.ids).iter().map(str::to_owned).collect();
            if ids.is_empty() {
                continue;
            }
            let names = if annotation.parts.is_empty() { vec![annotation.text] } else { annotation.parts };
            let parts = names.into_iter().map(|query| Labelled { query, ids: ids.clone() }).collect();
            mentions.rows.push(MentionQuery { document: document.document.id.clone(), parts });
        }
    }
    Ok(mentions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows each mention as `document: part, part = ids`.
    fn check(name: &str, content: &[u8], expected: &[&str], n_decoded: u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let mentions = read_mentions(&path).unwrap();
        let show = |mention: &MentionQuery| {
            let parts: Vec<&str> = mention.parts.iter().map(|part| part.query.as_str()).collect();
            let ids: Vec<&str> = mention.parts[0].ids.iter().map(String::as_str).collect();
            format!("{}: {} = {}", mention.document, parts.join(", "), ids.join("|"))
        };
        assert_eq!(mentions.rows.iter().map(show).collect::<Vec<_>>(), expected);
        assert_eq!(mentions.n_decoded, n_decoded);
    }

    #[test]
    fn format_of_mentions_is_detected() {
        check("a.tsv", b"ring\tS1|MESH:S2\n", &[": ring = S1|S2"], 0);
        check("a.txt", b"7||0|4||Shape||ring|disc||S1\n", &["7: ring, disc = S1"], 0);
        check("a.txt", b"S1\tCircle\tround thing\n\nS2\tSquare\tbox\n", &[": round thing = S1", ": box = S2"], 0);
        let corpus = b"7|t|A ring.\n7|a|A box.\n7\t2\t6\tring\tShape\tUMLS:S1\n7\t10\t13\tbox\tShape\t-1\n\n";
        check("a.pubtator.txt", corpus, &["7: ring = S1"], 0);
    }

    #[test]
    fn lines_that_are_not_utf_8_are_read_as_windows_1252_and_counted() {
        let content = b"S1\tCircle\tmy caf\xe9\x92s ring\nS2\tSquare\tcaf\xc3\xa9\n";
        check("a.txt", content, &[": my café’s ring = S1", ": café = S2"], 1);
    }
}
