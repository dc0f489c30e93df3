//! Training provenance: fingerprints of the documents that a model was trained on, to detect an overlap with a test set.
//!
//! A fingerprint is a hash of the lower-case letters and digits of a text, so spaces, punctuation and the file format do not matter, and the
//! text cannot be recovered. A document has one of its whole text and one of each section that is long enough to tell it from others, so
//! that a title or an abstract alone is recognised as well. Queries without text have a fingerprint of their document id and names, or of
//! the names alone if the file has no ids.
//!
//! ```
//! use canonym_core::eval::learned::{Fingerprints, Learned, Role, TrainingSource};
//!
//! let mut learned = Learned::default();
//! let texts = ["A ring.", "Two boxes."];
//! learned.add(TrainingSource::new("tagger", Role::Trained, "shapes/train.jsonl", texts.map(Fingerprints::of_text)));
//! let seen = learned.look_up(&["a  ring", "A disc."].map(Fingerprints::of_text), Some("shapes"));
//! assert_eq!((seen.n_seen, seen.n_documents), (1, 2));
//! assert_eq!(seen.related, ["shapes/train.jsonl"]);
//! ```

mod packed;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::text::{Document, Section, Span};
use crate::{Error, Result};

/// Format of the record: 1 has fingerprints of whole texts alone, 2 those of sections too, 3 writes them in Base64 and half of those of
/// sections.
pub const FORMAT: u32 = 3;

/// Key of the record in the JSON of a model.
pub const ENTRY: &str = "learned";

/// How a model used a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Weights were trained on it.
    #[default]
    Trained,
    /// Thresholds, weights or a checkpoint were selected on it.
    Tuned,
    /// Scores were calibrated on it.
    Calibrated,
}

impl Role {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Role::Trained => "trained",
            Role::Tuned => "tuned",
            Role::Calibrated => "calibrated",
        }
    }
}

/// The documents of one file that a component of a model was trained on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredSource")]
pub struct TrainingSource {
    /// The component, such as `tagger`.
    pub part: String,
    /// How they were used.
    pub role: Role,
    /// The file, as in the experiment.
    pub file: String,
    /// The corpus of the file, by default the name of its folder; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub corpus: String,
    /// Their fingerprints, sorted and unique.
    #[serde(rename = "document_prints", serialize_with = "packed::serialize")]
    pub documents: Vec<u64>,
    /// The lower halves of the fingerprints of their sections, sorted and unique; none in records of format 1.
    #[serde(rename = "section_prints", serialize_with = "packed::serialize", skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<u32>,
}

/// A source as it is stored, in any format.
#[derive(Debug, Deserialize)]
struct StoredSource {
    part: String,
    role: Role,
    file: String,
    #[serde(default)]
    corpus: String,
    #[serde(default, deserialize_with = "packed::deserialize")]
    document_prints: Vec<u64>,
    #[serde(default, deserialize_with = "packed::deserialize")]
    section_prints: Vec<u32>,
    /// Of formats 1 and 2.
    #[serde(default, deserialize_with = "from_hex")]
    documents: Vec<u64>,
    #[serde(default, deserialize_with = "from_hex")]
    sections: Vec<u64>,
}

impl From<StoredSource> for TrainingSource {
    fn from(stored: StoredSource) -> TrainingSource {
        let StoredSource { part, role, file, corpus, mut document_prints, mut section_prints, documents, sections } =
            stored;
        document_prints.extend(documents);
        section_prints.extend(sections.into_iter().map(half));
        sort(&mut document_prints);
        sort(&mut section_prints);
        TrainingSource { part, role, file, corpus, documents: document_prints, sections: section_prints }
    }
}

/// What is kept of the fingerprint of a section.
fn half(print: u64) -> u32 {
    print as u32
}

impl TrainingSource {
    /// The documents of a file; the corpus is the name of its folder.
    pub fn new(
        part: impl std::convert::Into<String>,
        role: Role,
        file: impl std::convert::Into<String>,
        documents: impl IntoIterator<Item = Fingerprints>,
    ) -> TrainingSource {
        let file = file.into();
        let corpus = corpus_of(Path::new(&file)).unwrap_or_default();
        let mut source = TrainingSource { part: part.into(), role, file, corpus, ..TrainingSource::default() };
        for prints in documents {
            source.documents.extend(prints.whole);
            source.sections.extend(prints.sections.into_iter().map(half));
        }
        sort(&mut source.documents);
        sort(&mut source.sections);
        source
    }

    /// Whether it holds the document, or the document is a section of one of its documents, or the other way round. Equal sections of two
    /// documents do not count: articles share sentences such as a declaration of interests.
    fn holds(&self, prints: &Fingerprints) -> bool {
        let whole = |print: &u64| self.documents.binary_search(print).is_ok();
        let is_section = |print: &u64| self.sections.binary_search(&half(*print)).is_ok();
        prints.whole.iter().any(|print| whole(print) || is_section(print)) || prints.sections.iter().any(whole)
    }
}

fn sort<T: Ord>(prints: &mut Vec<T>) {
    prints.sort_unstable();
    prints.dedup();
}

/// The default corpus of a file: the name of its folder.
pub fn corpus_of(file: &Path) -> Option<String> {
    let folder = file.parent()?.file_name()?;
    Some(folder.to_string_lossy().into_owned())
}

/// The training documents of a model and its components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Format of the record ([`FORMAT`]).
    #[serde(default = "format_1", deserialize_with = "known_format")]
    pub format: u32,
    /// One entry per file, component and role.
    pub sources: Vec<TrainingSource>,
    /// Components without a record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<String>,
}

impl Default for Learned {
    fn default() -> Learned {
        Learned { format: FORMAT, sources: Vec::new(), unrecorded: Vec::new() }
    }
}

/// Records without a number are of format 1.
fn format_1() -> u32 {
    1
}

/// Older formats are read, newer ones are not: what they add could hide a seen document.
fn known_format<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<u32, D::Error> {
    let format = u32::deserialize(from)?;
    if format <= FORMAT { Ok(format) } else { Err(serde::de::Error::custom(newer_format(format))) }
}

fn newer_format(format: u32) -> String {
    format!("training record has format {format}; this version reads up to {FORMAT}")
}

impl Learned {
    /// Adds documents; those of the same file, component and role are merged.
    pub fn add(&mut self, source: TrainingSource) {
        if !source.sections.is_empty() {
            self.format = FORMAT;
        }
        let same = |known: &&mut TrainingSource| {
            (&known.part, known.role, &known.file) == (&source.part, source.role, &source.file)
        };
        match self.sources.iter_mut().find(same) {
            Some(known) => {
                known.documents.extend(&source.documents);
                known.sections.extend(&source.sections);
                sort(&mut known.documents);
                sort(&mut known.sections);
            }
            None if source.documents.is_empty() => {}
            None => self.sources.push(source),
        }
    }

    /// Adds the record of a component; its own components are prefixed with `part`. `None` is a component without a record.
    pub fn join(&mut self, part: &str, learned: Option<&Learned>) {
        let within = |inner: &str| match (part, inner) {
            ("", inner) => inner.to_owned(),
            (part, inner) if inner == part || inner.is_empty() => part.to_owned(),
            (part, inner) => format!("{part}: {inner}"),
        };
        let Some(learned) = learned else {
            self.unrecorded.push(within(""));
            return;
        };
        learned
            .sources
            .iter()
            .for_each(|source| self.add(TrainingSource { part: within(&source.part), ..source.clone() }));
        self.unrecorded.extend(learned.unrecorded.iter().map(|inner| within(inner)));
        self.unrecorded.sort();
        self.unrecorded.dedup();
    }

    /// Adds the record of a whole model under the names of its own components; a model without a record is listed as `name`.
    pub fn join_whole(&mut self, name: &str, learned: Option<&Learned>) {
        self.join(if learned.is_some() { "" } else { name }, learned);
    }

    /// The entries of one role.
    #[must_use]
    pub fn only(&self, role: Role) -> Learned {
        let sources = self.sources.iter().filter(|source| source.role == role).cloned().collect();
        Learned { sources, unrecorded: self.unrecorded.clone(), ..*self }
    }

    /// Number of distinct documents.
    pub fn n_documents(&self) -> usize {
        self.sources.iter().flat_map(|source| &source.documents).collect::<HashSet<_>>().len()
    }

    /// Which of the given documents were used, whole or in part.
    pub fn has_seen(&self, documents: &[Fingerprints]) -> Vec<bool> {
        documents.iter().map(|document| self.sources.iter().any(|source| source.holds(document))).collect()
    }

    /// How many of the given documents were used, by which components, and which files of the same corpus were used at all.
    pub fn look_up(&self, documents: &[Fingerprints], corpus: Option<&str>) -> Seen {
        let seen_in_source = |source: &TrainingSource| {
            let n_documents = documents.iter().filter(|document| source.holds(document)).count();
            let TrainingSource { part, role, file, .. } = source.clone();
            (n_documents > 0).then_some(SeenIn { part, role, file, n_documents })
        };
        let is_related =
            |source: &&TrainingSource| corpus.is_some_and(|corpus| source.corpus.eq_ignore_ascii_case(corpus));
        let related: BTreeSet<String> =
            self.sources.iter().filter(is_related).map(|source| source.file.clone()).collect();
        Seen {
            n_documents: documents.len(),
            n_seen: self.has_seen(documents).into_iter().filter(|seen| *seen).count(),
            seen_in: self.sources.iter().filter_map(seen_in_source).collect(),
            related: related.into_iter().collect(),
            unrecorded: self.unrecorded.clone(),
        }
    }

    /// The record in the JSON of a model, if any.
    pub fn of_json(json: &str) -> Result<Option<Learned>> {
        #[derive(Deserialize)]
        struct Holder<T> {
            learned: Option<T>,
        }
        #[derive(Deserialize)]
        struct Numbered {
            #[serde(default = "format_1")]
            format: u32,
        }
        let numbered: Holder<Numbered> = serde_json::from_str(json).map_err(unreadable)?;
        if let Some(Numbered { format }) = numbered.learned.filter(|record| record.format > FORMAT) {
            return Err(Error::damaged(newer_format(format)).with_hint("use a newer version of canonym"));
        }
        let holder: Holder<Learned> = serde_json::from_str(json).map_err(unreadable)?;
        Ok(holder.learned)
    }

    /// The JSON of a model with the record added or replaced; other entries are unchanged.
    pub fn into_json(&self, json: &str) -> Result<String> {
        let mut entries: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).map_err(unreadable)?;
        entries.insert(ENTRY.to_owned(), serde_json::to_value(self).map_err(unreadable)?);
        Ok(serde_json::to_string_pretty(&entries).map_err(unreadable)? + "\n")
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::damaged(format!("invalid training record: {error}"))
}

/// Overlap of the training documents of a model with evaluated documents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Number of evaluated documents.
    pub n_documents: usize,
    /// Number of them that a component used.
    pub n_seen: usize,
    /// One entry per file, component and role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen_in: Vec<SeenIn>,
    /// Files of the same corpus that a component used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<String>,
    /// Components without a record, for which the overlap is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<String>,
}

/// Evaluated documents of one file that a component used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenIn {
    /// The component.
    pub part: String,
    /// How they were used.
    pub role: Role,
    /// The training file.
    pub file: String,
    /// Number of evaluated documents in it.
    pub n_documents: usize,
}

impl Seen {
    /// A summary: `412 of 500 documents were seen in training`.
    pub fn sentence(&self) -> String {
        let Seen { n_seen, n_documents, .. } = self;
        let is_trained = |one: &SeenIn| one.role == Role::Trained;
        let how = if self.seen_in.iter().any(is_trained) { "seen in training" } else { "used to tune or calibrate" };
        let were = if *n_seen == 1 { "was" } else { "were" };
        format!("{n_seen} of {n_documents} documents {were} {how}")
    }

    /// The components and files that used them.
    pub fn details(&self) -> String {
        let line = |one: &SeenIn| format!("{} ({} on {} of {})", one.part, one.role.name(), one.n_documents, one.file);
        self.seen_in.iter().map(line).collect::<Vec<_>>().join(", ")
    }
}

/// A message about held-out documents that are skipped because they were seen in training; `None` if there are none.
pub fn left_out(n_seen: usize, n_held_out: usize) -> Option<String> {
    let documents = if n_held_out == 1 { "document" } else { "documents" };
    let were = if n_seen == 1 { "was seen in training and is" } else { "were seen in training and are" };
    let figures = if n_seen == n_held_out { "; there are no figures" } else { "" };
    (n_seen > 0).then(|| format!("{n_seen} of {n_held_out} held-out {documents} {were} left out{figures}"))
}

/// The fingerprints of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprints {
    /// Of the whole text, or of the id and the queries of a document without text; `None` without both.
    pub whole: Option<u64>,
    /// Of its sections, or of the lines of a text without sections, if they have at least [`MIN_LETTERS`], and of title and abstract
    /// together.
    pub sections: Vec<u64>,
}

/// Number of letters and digits from which a section identifies its document: `Introduction` does not.
pub const MIN_LETTERS: usize = 30;

impl Fingerprints {
    /// The fingerprints of a document with its sections.
    pub fn of(document: &Document) -> Fingerprints {
        let of_span = |span: &Span| document.text.get(span.start as usize..span.end as usize).unwrap_or_default();
        let mut parts: Vec<String> = match document.sections.as_slice() {
            [] => document.text.lines().map(letters_of).collect(),
            sections => sections.iter().map(|section| letters_of(of_span(&section.span))).collect(),
        };
        // An article, and its title and abstract alone.
        let kind = |wanted: &str| document.sections.iter().find(|section: &&Section| section.kind == wanted);
        if let (Some(title), Some(summary)) = (kind("title"), kind("abstract")) {
            parts.push(letters_of(of_span(&title.span)) + &letters_of(of_span(&summary.span)));
        }
        let whole = letters_of(&document.text);
        parts.retain(|part| part.chars().nth(MIN_LETTERS - 1).is_some() && *part != whole);
        let mut sections: Vec<u64> = parts.iter().filter_map(|part| hash(part)).collect();
        sort(&mut sections);
        Fingerprints { whole: hash(&whole), sections }
    }

    /// The fingerprints of a text without sections.
    pub fn of_text(text: &str) -> Fingerprints {
        Fingerprints::of(&Document { text: text.to_owned(), ..Document::default() })
    }

    /// The fingerprint of a document known only by its id and queries, in any order. Without an id, the queries are those of a whole file.
    pub fn of_queries<'a>(document: &str, names: impl Iterator<Item = &'a str>) -> Fingerprints {
        let names: BTreeSet<String> =
            names.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()).collect();
        let is_empty = document.is_empty() && names.is_empty();
        let all = names.into_iter().fold(format!("{document}\n"), |all, name| all + &name + "\n");
        Fingerprints { whole: (!is_empty).then(|| xxh3_64(all.as_bytes())), sections: Vec::new() }
    }
}

/// The letters and digits of a text in lower case.
fn letters_of(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The hash of letters; `None` if there are none.
fn hash(letters: &str) -> Option<u64> {
    (!letters.is_empty()).then(|| xxh3_64(letters.as_bytes()))
}

/// Fingerprints of formats 1 and 2: words of 16 hexadecimal digits.
fn from_hex<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Vec<u64>, D::Error> {
    use serde::de::Error;

    let text = String::deserialize(from)?;
    let refused = || D::Error::custom("fingerprints are words of 16 hexadecimal digits");
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(16) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(refused());
    }
    let one = |word: &[u8]| {
        let word = std::str::from_utf8(word).map_err(|_| refused())?;
        u64::from_str_radix(word, 16).map_err(|_| refused())
    };
    digits.chunks_exact(16).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(part: &str, role: Role, file: &str, texts: &[&str]) -> TrainingSource {
        TrainingSource::new(part, role, file, texts.iter().map(|text| Fingerprints::of_text(text)))
    }

    fn print(text: &str) -> Option<u64> {
        Fingerprints::of_text(text).whole
    }

    #[test]
    fn fingerprints_ignore_the_format_and_are_stable() {
        assert_eq!(print("Round thing.\nIt is a Ring."), print("round  thing It is a ring"));
        assert_ne!(print("A ring."), print("A wing."));
        assert_eq!(Fingerprints::of_text(" .\n"), Fingerprints::default());
        // Bundles store fingerprints, so their definition must not change.
        assert_eq!(print("A ring."), Some(0xb933_37d7_e319_3bae));
        let of =
            |document: &str, names: &[&'static str]| Fingerprints::of_queries(document, names.iter().copied()).whole;
        assert_eq!(of("7", &["ring", "box"]), Some(0x15a2_e9fd_483e_3f5d));
        assert_eq!(of("7", &["Ring", "box", "ring"]), of("7", &["box", "ring"]));
        assert_ne!(of("7", &["box", "ring"]), of("7", &["box", "disc"]));
        // Without an id, the names of the file identify it.
        assert_eq!(of("", &["Ring", " box"]), of("", &["box", "ring"]));
        assert!(of("", &["ring"]).is_some() && of("", &["ring"]) != of("", &["ring", "box"]));
        assert_eq!(of("", &[]), None);
    }

    const TITLE: &str = "Rings and boxes in the kitchens of two small towns";
    const ABSTRACT: &str = "We counted all rings and all boxes in nine kitchens. There were more boxes than rings.";

    /// A document of sections, with the space of PubTator between them.
    fn article(sections: &[(&str, &str)]) -> Document {
        let mut document = Document::default();
        for (kind, text) in sections {
            let start = document.text.len();
            document.text += &format!("{text} ");
            document.sections.push(Section { kind: (*kind).to_owned(), span: Span::new(start, start + text.len()) });
        }
        document
    }

    #[test]
    fn title_or_abstract_alone_is_recognised_and_the_other_way_round() {
        let whole = article(&[("title", TITLE), ("abstract", ABSTRACT)]);
        let full = article(&[
            ("title", TITLE),
            ("abstract", ABSTRACT),
            ("text", "The authors declare no competing interests."),
        ]);
        let lines = Fingerprints::of_text(&format!("{TITLE}\n{ABSTRACT}\n"));
        let learned = |prints: Fingerprints| {
            let mut learned = Learned::default();
            learned.add(TrainingSource::new("tagger", Role::Trained, "shapes/train.jsonl", [prints]));
            learned
        };
        let check = |trained: Fingerprints, asked: Fingerprints, expected: bool| {
            let (learned, asked) = (learned(trained), [asked]);
            assert_eq!(learned.has_seen(&asked), [expected]);
            assert_eq!(learned.look_up(&asked, None).n_seen, usize::from(expected));
        };
        for part in [TITLE, ABSTRACT] {
            for whole in [Fingerprints::of(&whole), Fingerprints::of(&full), lines.clone()] {
                check(whole.clone(), Fingerprints::of_text(part), true);
                check(Fingerprints::of_text(part), whole, true);
            }
        }
        check(Fingerprints::of(&full), Fingerprints::of(&whole), true);
        check(Fingerprints::of(&whole), Fingerprints::of(&full), true);
        // Short sections and sections that articles share tell nothing.
        let other = article(&[("title", "Introduction"), ("text", "The authors declare no competing interests.")]);
        check(Fingerprints::of(&full), Fingerprints::of(&other), false);
        check(Fingerprints::of(&other), Fingerprints::of_text("Introduction"), false);
        check(Fingerprints::of_text(TITLE), Fingerprints::of_text(ABSTRACT), false);
    }

    #[test]
    fn records_of_format_2_are_read() {
        let new = article(&[("title", TITLE), ("abstract", ABSTRACT)]);
        let prints = Fingerprints::of(&new);
        let hex = |prints: &[u64]| prints.iter().map(|print| format!("{print:016x}")).collect::<String>();
        let (whole, sections) = (hex(prints.whole.as_slice()), hex(&prints.sections));
        let old = format!(
            r#"{{"learned": {{"format": 2, "sources": [{{"part": "tagger", "role": "trained", "file": "a.jsonl",
            "documents": "{whole}", "sections": "{sections}"}}]}}}}"#
        );
        let learned = Learned::of_json(&old).unwrap().unwrap();
        assert_eq!(learned.has_seen(&[TITLE, ABSTRACT, "A ring."].map(Fingerprints::of_text)), [true, true, false]);
    }

    #[test]
    fn records_of_format_1_are_read_and_newer_ones_are_refused() {
        let old = r#"{"learned": {"sources": [{"part": "tagger", "role": "trained", "file": "a.jsonl", "documents": "b93337d7e3193bae"}]}}"#;
        let learned = Learned::of_json(old).unwrap().unwrap();
        assert_eq!((learned.format, learned.sources[0].sections.len()), (1, 0));
        assert_eq!(learned.has_seen(&[Fingerprints::of_text("A ring.")]), [true]);
        let new = Learned::default().into_json("{}").unwrap();
        assert!(new.contains("\"format\": 3"), "{new}");
        let message = Learned::of_json(&new.replace("\"format\": 3", "\"format\": 4")).unwrap_err().to_string();
        assert!(message.contains("format 4"), "{message}");
    }

    #[test]
    fn documents_are_found_with_part_role_and_file() {
        let mut learned = Learned::default();
        learned.add(source("tagger", Role::Trained, "shapes/train.jsonl", &["A ring.", "A box."]));
        learned.add(source("tagger", Role::Trained, "shapes/train.jsonl", &["A disc.", "A box."]));
        learned.add(source("weights", Role::Tuned, "shapes/dev.jsonl", &["A cone."]));
        assert_eq!((learned.sources.len(), learned.n_documents()), (2, 4));
        let prints = ["A ring.", "a box", "A cube."].map(Fingerprints::of_text);
        let seen = learned.look_up(&prints, Some("Shapes"));
        assert_eq!(seen.sentence(), "2 of 3 documents were seen in training");
        assert_eq!(seen.details(), "tagger (trained on 2 of shapes/train.jsonl)");
        assert_eq!(seen.related, ["shapes/dev.jsonl", "shapes/train.jsonl"]);
        let tuned = learned.look_up(&[Fingerprints::of_text("A cone.")], None);
        assert_eq!(tuned.sentence(), "1 of 1 documents was used to tune or calibrate");
        assert!(tuned.related.is_empty());
        assert_eq!(learned.only(Role::Trained).look_up(&[Fingerprints::of_text("A cone.")], None).n_seen, 0);
        assert_eq!(
            learned.look_up(&[Fingerprints::default()], Some("other")),
            Seen { n_documents: 1, ..Seen::default() }
        );
    }

    #[test]
    fn components_are_prefixed_and_unrecorded_ones_listed() {
        let mut whole = Learned::default();
        let mut part = Learned::default();
        part.add(source("lexical weights", Role::Calibrated, "shapes/dev.concept", &["A cone."]));
        whole.join("", Some(&part));
        whole.join("mentions", Some(&part));
        whole.join("names", None);
        let parts: Vec<&str> = whole.sources.iter().map(|source| source.part.as_str()).collect();
        assert_eq!(parts, ["lexical weights", "mentions: lexical weights"]);
        assert_eq!(whole.look_up(&[], None).unrecorded, ["names"]);
    }

    #[test]
    fn a_record_round_trips_and_damage_is_refused() {
        let mut learned = Learned::default();
        learned.add(source("weights", Role::Trained, "shapes/train.jsonl", &["A ring.", "A box."]));
        let json = learned.into_json("{\"weights\": {\"b\": 0.1, \"a\": -3.25}}").unwrap();
        assert_eq!(Learned::of_json(&json).unwrap(), Some(learned.clone()));
        assert!(json.contains("0.1") && json.contains("-3.25"));
        assert_eq!(learned.into_json(&json).unwrap(), json);
        assert_eq!(Learned::of_json("{\"weights\": {}}").unwrap(), None);
        let stored: serde_json::Value = serde_json::from_str(&json).unwrap();
        let packed = stored[ENTRY]["sources"][0]["document_prints"].as_str().unwrap();
        for wrong in [&packed[4..], "not Base64", "AAAA"] {
            let message = Learned::of_json(&json.replace(packed, wrong)).unwrap_err().to_string();
            assert!(message.contains("Base64 of numbers of 8 bytes"), "{message}");
        }
        for wrong in ["93337d7e3193bae", "zz00000000000000", "+000000000000001"] {
            let old = json.replace("document_prints", "documents").replace(packed, wrong);
            let message = Learned::of_json(&old).unwrap_err().to_string();
            assert!(message.contains("16 hexadecimal digits"), "{message}");
        }
    }
}
