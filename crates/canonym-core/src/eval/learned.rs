//! Training provenance: fingerprints of the documents that a model was trained on, to detect an overlap with a test set.
//!
//! A fingerprint is a hash of the lower-case letters and digits of a text, so spaces, punctuation and the file format do not matter, and the
//! text cannot be recovered. Queries without text have a fingerprint of their document id and names, or of the names alone if the file has no
//! ids.
//!
//! ```
//! use canonym_core::eval::learned::{Learned, Role, TrainingSource, fingerprint};
//!
//! let mut learned = Learned::default();
//! let texts = ["A ring.", "Two boxes."];
//! learned.add(TrainingSource::new("tagger", Role::Trained, "shapes/train.jsonl", texts.iter().filter_map(|text| fingerprint(text))));
//! let seen = learned.look_up(&[fingerprint("a  ring"), fingerprint("A disc.")], Some("shapes"));
//! assert_eq!((seen.n_seen, seen.n_documents), (1, 2));
//! assert_eq!(seen.related, ["shapes/train.jsonl"]);
//! ```

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{Error, Result};

/// Key of the record in the JSON of a model.
pub const ENTRY: &str = "learned";

/// How a model used a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Weights were trained on it.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(with = "as_hex")]
    pub documents: Vec<u64>,
}

impl TrainingSource {
    /// The documents of a file; the corpus is the name of its folder.
    pub fn new(
        part: impl std::convert::Into<String>,
        role: Role,
        file: impl std::convert::Into<String>,
        documents: impl IntoIterator<Item = u64>,
    ) -> TrainingSource {
        let file = file.into();
        let corpus = corpus_of(Path::new(&file)).unwrap_or_default();
        let documents: BTreeSet<u64> = documents.into_iter().collect();
        TrainingSource { part: part.into(), role, file, corpus, documents: documents.into_iter().collect() }
    }
}

/// The default corpus of a file: the name of its folder.
pub fn corpus_of(file: &Path) -> Option<String> {
    let folder = file.parent()?.file_name()?;
    Some(folder.to_string_lossy().into_owned())
}

/// The training documents of a model and its components.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// One entry per file, component and role.
    pub sources: Vec<TrainingSource>,
    /// Components without a record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<String>,
}

impl Learned {
    /// Adds documents; those of the same file, component and role are merged.
    pub fn add(&mut self, source: TrainingSource) {
        let same = |known: &&mut TrainingSource| {
            (&known.part, known.role, &known.file) == (&source.part, source.role, &source.file)
        };
        match self.sources.iter_mut().find(same) {
            Some(known) => {
                known.documents.extend(&source.documents);
                known.documents.sort_unstable();
                known.documents.dedup();
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
        Learned { sources, unrecorded: self.unrecorded.clone() }
    }

    /// Number of distinct documents.
    pub fn n_documents(&self) -> usize {
        self.sources.iter().flat_map(|source| &source.documents).collect::<HashSet<_>>().len()
    }

    /// Which of the given documents were used.
    pub fn has_seen(&self, documents: &[Option<u64>]) -> Vec<bool> {
        let known: HashSet<u64> = self.sources.iter().flat_map(|source| &source.documents).copied().collect();
        documents.iter().map(|document| document.is_some_and(|document| known.contains(&document))).collect()
    }

    /// How many of the given documents were used, by which components, and which files of the same corpus were used at all.
    pub fn look_up(&self, documents: &[Option<u64>], corpus: Option<&str>) -> Seen {
        let wanted: HashSet<u64> = documents.iter().flatten().copied().collect();
        let seen_in_source = |source: &TrainingSource| {
            let n_documents = source.documents.iter().filter(|document| wanted.contains(document)).count();
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
        struct Holder {
            learned: Option<Learned>,
        }
        let holder: Holder = serde_json::from_str(json).map_err(unreadable)?;
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
    Error::invalid(format!("the record of what a model learned from: {error}"))
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

/// The fingerprint of the letters and digits of a text in lower case; `None` if it has none.
///
/// It covers the whole text, so a title or abstract alone is not recognised as part of its document.
pub fn fingerprint(text: &str) -> Option<u64> {
    let letters: String = text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    (!letters.is_empty()).then(|| xxh3_64(letters.as_bytes()))
}

/// The fingerprint of a document known only by its id and queries, in any order. Without an id, the queries are those of a whole file. `None`
/// without both.
pub fn fingerprint_of_queries<'a>(document: &str, names: impl Iterator<Item = &'a str>) -> Option<u64> {
    let names: BTreeSet<String> =
        names.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()).collect();
    if document.is_empty() && names.is_empty() {
        return None;
    }
    let all = names.into_iter().fold(format!("{document}\n"), |all, name| all + &name + "\n");
    Some(xxh3_64(all.as_bytes()))
}

/// Fingerprints as 16 hexadecimal digits each.
mod as_hex {
    use std::fmt::Write;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(documents: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(16 * documents.len());
        for document in documents {
            // Infallible for strings.
            let _ = write!(text, "{document:016x}");
        }
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let refused = || D::Error::custom("fingerprints are words of 16 hexadecimal digits");
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(16) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(refused());
        }
        let one = |word: &[u8]| {
            let word = std::str::from_utf8(word).map_err(|_| refused())?;
            u64::from_str_radix(word, 16).map_err(|_| refused())
        };
        let mut documents: Vec<u64> = digits.chunks_exact(16).map(one).collect::<Result<_, _>>()?;
        documents.sort_unstable();
        documents.dedup();
        Ok(documents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(part: &str, role: Role, file: &str, texts: &[&str]) -> TrainingSource {
        TrainingSource::new(part, role, file, texts.iter().filter_map(|text| fingerprint(text)))
    }

    #[test]
    fn fingerprints_ignore_the_format_and_are_stable() {
        assert_eq!(fingerprint("Round thing.\nIt is a Ring."), fingerprint("round  thing It is a ring"));
        assert_ne!(fingerprint("A ring."), fingerprint("A wing."));
        assert_eq!(fingerprint(" .\n"), None);
        // Bundles store fingerprints, so their definition must not change.
        assert_eq!(fingerprint("A ring."), Some(0xb933_37d7_e319_3bae));
        assert_eq!(fingerprint_of_queries("7", ["ring", "box"].into_iter()), Some(0x15a2_e9fd_483e_3f5d));
        let of = |names: &[&'static str]| fingerprint_of_queries("7", names.iter().copied());
        assert_eq!(of(&["Ring", "box", "ring"]), of(&["box", "ring"]));
        assert_ne!(of(&["box", "ring"]), of(&["box", "disc"]));
        // Without an id, the names of the file identify it.
        let print_of_file = |names: &[&'static str]| fingerprint_of_queries("", names.iter().copied());
        assert_eq!(print_of_file(&["Ring", " box"]), print_of_file(&["box", "ring"]));
        assert!(print_of_file(&["ring"]).is_some() && print_of_file(&["ring"]) != print_of_file(&["ring", "box"]));
        assert_eq!(print_of_file(&[]), None);
    }

    #[test]
    fn documents_are_found_with_part_role_and_file() {
        let mut learned = Learned::default();
        learned.add(source("tagger", Role::Trained, "shapes/train.jsonl", &["A ring.", "A box."]));
        learned.add(source("tagger", Role::Trained, "shapes/train.jsonl", &["A disc.", "A box."]));
        learned.add(source("weights", Role::Tuned, "shapes/dev.jsonl", &["A cone."]));
        assert_eq!((learned.sources.len(), learned.n_documents()), (2, 4));
        let prints = ["A ring.", "a box", "A cube."].map(fingerprint);
        let seen = learned.look_up(&prints, Some("Shapes"));
        assert_eq!(seen.sentence(), "2 of 3 documents were seen in training");
        assert_eq!(seen.details(), "tagger (trained on 2 of shapes/train.jsonl)");
        assert_eq!(seen.related, ["shapes/dev.jsonl", "shapes/train.jsonl"]);
        let tuned = learned.look_up(&[fingerprint("A cone.")], None);
        assert_eq!(tuned.sentence(), "1 of 1 documents was used to tune or calibrate");
        assert!(tuned.related.is_empty());
        assert_eq!(learned.only(Role::Trained).look_up(&[fingerprint("A cone.")], None).n_seen, 0);
        assert_eq!(learned.look_up(&[None], Some("other")), Seen { n_documents: 1, ..Seen::default() });
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
        let hex = format!("{:016x}", learned.sources[0].documents[0]);
        for wrong in [&hex[1..], "zz00000000000000", "+000000000000001"] {
            let message = Learned::of_json(&json.replace(&hex, wrong)).unwrap_err().to_string();
            assert!(message.contains("16 hexadecimal digits"), "{message}");
        }
    }
}
