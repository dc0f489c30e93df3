//! Concept ids of the OMOP vocabulary: the tables CONCEPT and CONCEPT_RELATIONSHIP, as Athena writes them.
//!
//! Both are tab-separated with a header line and without quotes. Of CONCEPT only the codes that a knowledge base names are
//! kept, of CONCEPT_RELATIONSHIP only `Maps to` of these.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::corpus::CodeRecord;
use crate::input::Input;
use crate::kb::{KnowledgeBase, Predicate, code_system};
use crate::numbers::counted;
use crate::{Error, Result};

/// Concept ids of a mention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// The standard concepts; empty if there are none.
    pub standard: Vec<i64>,
    /// The source concept; 0 if there is none.
    pub source: i64,
    /// Why there is no standard concept.
    pub reason: Option<String>,
}

impl Mapped {
    /// No concept, and the reason.
    pub fn none(reason: &str) -> Mapped {
        Mapped { reason: Some(reason.to_owned()), ..Mapped::default() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Concept {
    id: i64,
    is_standard: bool,
}

/// The concepts of the vocabulary that a knowledge base names.
#[derive(Debug, Default)]
pub struct ConceptTable {
    /// By the hash of vocabulary and code.
    concepts: HashMap<u64, Concept>,
    /// The standard concepts that a concept maps to.
    maps_to: HashMap<i64, Vec<i64>>,
    has_relationships: bool,
}

impl ConceptTable {
    /// Reads CONCEPT, and CONCEPT_RELATIONSHIP if it is given.
    ///
    /// # Errors
    /// [`Error::Parse`] with the line of a malformed row.
    pub fn read(kb: &KnowledgeBase, concepts: &Path, relationships: Option<&Path>) -> Result<ConceptTable> {
        let mut table = ConceptTable::default();
        table.read_concepts(kb, &mut Input::open(concepts)?)?;
        if let Some(path) = relationships {
            table.read_relationships(&mut Input::open(path)?)?;
        }
        Ok(table)
    }

    /// Number of concepts that the knowledge base names.
    pub fn n_concepts(&self) -> usize {
        self.concepts.len()
    }

    fn read_concepts(&mut self, kb: &KnowledgeBase, input: &mut Input) -> Result<()> {
        let wanted = keys_of(kb);
        let needed = ["concept_id", "vocabulary_id", "standard_concept", "concept_code", "invalid_reason"];
        each(input, "CONCEPT.csv", needed, &mut |[id, vocabulary, standard, code, invalid]| {
            let id = number(id)?;
            let prefix = vocabulary_prefix(vocabulary);
            let hash = key(prefix, code);
            // A code that was reused is the one that is still valid.
            if wanted.contains(&hash) && (invalid.is_empty() || !self.concepts.contains_key(&hash)) {
                self.concepts.insert(hash, Concept { id, is_standard: standard == "S" && invalid.is_empty() });
            }
            Ok(())
        })
    }

    fn read_relationships(&mut self, input: &mut Input) -> Result<()> {
        let known: HashSet<i64> = self.concepts.values().map(|concept| concept.id).collect();
        let needed = ["concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"];
        self.has_relationships = true;
        each(input, "CONCEPT_RELATIONSHIP.csv", needed, &mut |[one, other, kind, invalid]| {
            let (one, other) = (number(one)?, number(other)?);
            if kind == "Maps to" && invalid.is_empty() && known.contains(&one) {
                let targets = self.maps_to.entry(one).or_default();
                if !targets.contains(&other) {
                    targets.push(other);
                }
            }
            Ok(())
        })
    }

    /// The concept ids of a concept of the knowledge base: by its own ids, by cross-references and codes of the same
    /// meaning, else by other cross-references, if they lead to one standard concept.
    pub fn map(&self, kb: &KnowledgeBase, id: &str, codes: &[CodeRecord]) -> Mapped {
        let Some(concept) = kb.find(id) else { return Mapped::none("unknown concept") };
        let own: Vec<&str> = kb.id(concept).split('|').chain(kb.alternative_ids(concept)).collect();
        let (mut same, mut others) = (Vec::new(), Vec::new());
        let xrefs = kb.xrefs(concept).map(|xref| (xref.id, xref.predicate));
        let codes = codes.iter().filter_map(|code| Some((code.id.as_str(), Predicate::from_name(&code.predicate)?)));
        for (id, predicate) in xrefs.chain(codes) {
            match predicate {
                Predicate::Exact => same.push(id),
                Predicate::Close | Predicate::Xref => others.push(id),
                // A broader, narrower or related concept is another one.
                Predicate::Narrow | Predicate::Broad | Predicate::Related => {}
            }
        }
        let mut source = 0;
        for (is_own, ids) in [(true, own), (false, same), (false, others)] {
            let found: Vec<Concept> = ids.iter().filter_map(|id| self.find(id)).collect();
            let Some(first) = found.first() else { continue };
            source = if source == 0 { first.id } else { source };
            let mut standard: Vec<i64> = found.iter().flat_map(|concept| self.standard(*concept)).collect();
            standard.sort_unstable();
            standard.dedup();
            match standard.len() {
                0 => {}
                // What one concept maps to is what it means; several cross-references are alternatives.
                1 => return Mapped { standard, source, reason: None },
                _ if is_own => return Mapped { standard, source, reason: None },
                n => {
                    let reason = Some(format!("{n} standard concepts by cross-references"));
                    return Mapped { standard: Vec::new(), source, reason };
                }
            }
        }
        let reason = match (source, self.has_relationships) {
            (0, _) => "not in the vocabulary table",
            (_, true) => "no standard concept",
            (_, false) => "no standard concept without CONCEPT_RELATIONSHIP",
        };
        Mapped { source, ..Mapped::none(reason) }
    }

    fn find(&self, id: &str) -> Option<Concept> {
        let (prefix, code) = id.split_once(':')?;
        self.concepts.get(&key(prefix, code)).copied()
    }

    fn standard(&self, concept: Concept) -> Vec<i64> {
        if concept.is_standard {
            return vec![concept.id];
        }
        self.maps_to.get(&concept.id).cloned().unwrap_or_default()
    }
}

/// The prefix of a vocabulary of the model: `SNOMEDCT` for `SNOMED`, the name itself for an unknown one.
fn vocabulary_prefix(vocabulary: &str) -> &str {
    let known = code_system::KNOWN.iter().find(|known| !known.omop.is_empty() && known.omop == vocabulary);
    known.map_or(vocabulary, |known| known.prefixes[0])
}

/// The hash of a code of a system, whose prefix may be in any case.
fn key(prefix: &str, code: &str) -> u64 {
    let prefix = code_system::canonical_prefix(prefix).to_ascii_lowercase();
    xxh3_64(format!("{prefix}:{code}").as_bytes())
}

/// The keys of all ids and cross-references.
fn keys_of(kb: &KnowledgeBase) -> HashSet<u64> {
    let mut keys = HashSet::new();
    let mut add = |id: &str| {
        if let Some((prefix, code)) = id.split_once(':') {
            keys.insert(key(prefix, code));
        }
    };
    for concept in kb.concepts() {
        kb.id(concept).split('|').for_each(&mut add);
        kb.alternative_ids(concept).for_each(&mut add);
        kb.xrefs(concept).for_each(|xref| add(xref.id));
    }
    keys
}

fn number(cell: &str) -> std::result::Result<i64, String> {
    let shown = || cell.chars().take(40).collect::<String>();
    cell.parse().map_err(|_| format!("`{}` is not a concept id", shown().escape_debug()))
}

/// Receives the wanted cells of a row; the error is the message.
type TakeRow<'a, const N: usize> = dyn FnMut([&str; N]) -> std::result::Result<(), String> + 'a;

/// Passes the columns `needed` of each row to `take`.
fn each<const N: usize>(input: &mut Input, name: &str, needed: [&str; N], take: &mut TakeRow<'_, N>) -> Result<()> {
    let path = input.path().to_path_buf();
    let hint = format!("use {name} of a download from Athena: tab-separated, with its header line");
    let mut columns: Option<([usize; N], usize)> = None;
    while let Some((line_number, line)) = input.next_line()? {
        let wrong = |message: String| Error::parse(&path, line_number, message).with_hint(hint.clone());
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let Some((at, n_columns)) = columns else {
            let mut at = [0; N];
            for (place, wanted) in at.iter_mut().zip(needed) {
                let found = cells.iter().position(|cell| cell.eq_ignore_ascii_case(wanted));
                *place = found.ok_or_else(|| wrong(format!("the header line has no column {wanted}")))?;
            }
            columns = Some((at, cells.len()));
            continue;
        };
        if line.trim().is_empty() {
            continue;
        }
        if cells.len() != n_columns {
            return Err(wrong(format!("{}, expected {n_columns}", counted(cells.len() as u64, "column"))));
        }
        take(at.map(|place| cells[place])).map_err(wrong)?;
    }
    match columns {
        Some(_) => Ok(()),
        None => Err(Error::parse(&path, 1, "the file is empty").with_hint(hint)),
    }
}
