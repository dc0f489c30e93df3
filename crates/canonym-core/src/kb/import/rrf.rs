//! UMLS Rich Release Format: names from `MRCONSO`, types from `MRSTY`, definitions from `MRDEF`, parents from `MRREL`.
//!
//! Only `MRCONSO` is required. The preferred name is chosen by `MRRANK`, or by `TS`, `STT` and `ISPREF` without it.
//! Memory holds one concept, and one bit per imported concept. The other tables yield records with types, a definition
//! or parents, which the builder merges. Parents are rows of `MRREL` with `PAR`; `RB` (broader) is not hierarchical and
//! is ignored. Ids are `UMLS:C0000039`. The codes of all names of a concept in a requested language are its
//! cross-references, with the source vocabulary as prefix, also of vocabularies whose names are left out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use super::rrf_rows::{Cui, CuiSet, Row, each, languages};
use super::{ImportConfig, Report, Sink, check_unique};
use crate::input::{Input, Source};
use crate::kb::{ConceptRecord, NameRecord, Predicate, Scope, XrefRecord};
use crate::{Error, Result};

/// Maximum number of names per record, to bound memory.
const MAX_NAMES: usize = 1 << 16;

/// Maximum number of parents per record; they are compared with each other.
const MAX_PARENTS: usize = 1 << 10;

/// The RRF tables in a folder or in its subfolder `META`.
pub fn folder(path: &Path) -> Result<Vec<Source>> {
    for folder in [path.to_path_buf(), path.join("META")] {
        if !folder.is_dir() {
            continue;
        }
        let mut tables = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))? {
            let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
            let source = Source::from_path(&entry.path());
            if table_of(&source).is_some() {
                tables.push(source);
            }
        }
        if tables.iter().any(|source| table_of(source) == Some(Table::Names)) {
            tables.sort_by(|one, other| one.path().cmp(other.path()));
            return Ok(tables);
        }
    }
    Err(Error::no_data(format!("no MRCONSO.RRF in {}", path.display()))
        .with_hint("use the META folder of a UMLS release, or its files"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Ranks,
    Names,
    Types,
    Definitions,
    Relations,
}

fn table_of(source: &Source) -> Option<Table> {
    match source.file_name().to_ascii_uppercase().as_str() {
        "MRRANK.RRF" => Some(Table::Ranks),
        "MRCONSO.RRF" => Some(Table::Names),
        "MRSTY.RRF" => Some(Table::Types),
        "MRDEF.RRF" => Some(Table::Definitions),
        "MRREL.RRF" => Some(Table::Relations),
        _ => None,
    }
}

/// Reads the tables among `sources` by file name. The report counts the rows of `MRCONSO` as read.
pub fn read(sources: &[Source], config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let tables = |wanted: Table| sources.iter().filter(move |source| table_of(source) == Some(wanted));
    report.drop_many("file", "unused table", sources.iter().filter(|one| table_of(one).is_none()).count() as u64);
    for wanted in [Table::Ranks, Table::Names, Table::Types, Table::Definitions, Table::Relations] {
        check_unique(tables(wanted))?;
    }
    if tables(Table::Names).next().is_none() {
        let error = Error::no_data("MRCONSO.RRF is missing");
        return Err(error.with_hint("use the META folder of a UMLS release, or its files"));
    }
    let mut ranks = Ranks::default();
    for source in tables(Table::Ranks) {
        ranks.read(&mut source.open()?)?;
    }
    let mut typed = None;
    if !config.semantic_types.is_empty() {
        if tables(Table::Types).next().is_none() {
            let error = Error::no_data("a filter on semantic types needs MRSTY.RRF");
            return Err(error.with_hint("add MRSTY.RRF, or omit the filter"));
        }
        let mut set = CuiSet::default();
        for source in tables(Table::Types) {
            concepts_of_types(&mut source.open()?, &config.semantic_types, &mut set)?;
        }
        typed = Some(set);
    }
    let mut names = Names {
        prefix: config.prefix.as_deref().unwrap_or("UMLS"),
        config,
        languages: languages(&config.languages)?,
        ranks,
        typed,
        kept: CuiSet::default(),
        vocabularies: HashSet::new(),
        drops: Drops::default(),
    };
    for source in tables(Table::Names) {
        names.read(&mut source.open()?, report, sink)?;
    }
    names.drops.report(report);
    for source in tables(Table::Types) {
        names.add_types(&mut source.open()?, sink)?;
    }
    for source in tables(Table::Definitions) {
        names.add_definitions(&mut source.open()?, report, sink)?;
    }
    for source in tables(Table::Relations) {
        names.add_parents(&mut source.open()?, report, sink)?;
    }
    Ok(())
}

/// `MRRANK`: precedence of a source and term type; higher is better.
#[derive(Default)]
struct Ranks {
    by_source: HashMap<String, HashMap<String, u32>>,
}

impl Ranks {
    fn read(&mut self, input: &mut Input) -> Result<()> {
        each(input, |row: Row<'_, 4>| {
            let [rank, source, term_type, _] = row.cells;
            let Ok(rank) = rank.parse() else {
                return Err(row.error(format!("`{}` is not a rank", rank.escape_debug())));
            };
            self.by_source.entry(source.to_owned()).or_default().insert(term_type.to_owned(), rank);
            Ok(())
        })
    }

    fn rank(&self, source: &str, term_type: &str) -> u32 {
        self.by_source.get(source).and_then(|types| types.get(term_type)).copied().unwrap_or(0)
    }
}

fn concepts_of_types(input: &mut Input, wanted: &[String], set: &mut CuiSet) -> Result<()> {
    each(input, |row: Row<'_, 6>| {
        if wanted.iter().any(|wanted| wanted == row.cells[1]) {
            set.insert(row.cui(0)?);
        }
        Ok(())
    })
}

/// Counts of dropped rows of `MRCONSO`, kept here because a release has millions.
#[derive(Default)]
struct Drops {
    language: u64,
    source: u64,
    term_type: u64,
    suppressible: u64,
    semantic_type: u64,
    empty: u64,
    concept_of_type: u64,
    concept_without_name: u64,
}

impl Drops {
    fn report(&self, report: &mut Report) {
        report.drop_many("name", "language", self.language);
        report.drop_many("name", "source", self.source);
        report.drop_many("name", "term type", self.term_type);
        report.drop_many("name", "suppressible", self.suppressible);
        report.drop_many("name", "semantic type", self.semantic_type);
        report.drop_many("name", "empty", self.empty);
        report.drop_many("concept", "semantic type", self.concept_of_type);
        report.drop_many("concept", "no name", self.concept_without_name);
    }
}

/// Sort key of a name as the preferred name, most significant part first.
type Merit = (bool, usize, u32, bool, bool, bool);

/// The concept being read.
struct Concept {
    cui: Cui,
    names: Vec<NameRecord>,
    /// Codes of kept names.
    alternative_ids: Vec<String>,
    /// Codes of all names in a requested language, also of vocabularies that are left out.
    codes: BTreeSet<String>,
    /// Row in `names`, sort key and source of the best name.
    best: Option<(usize, Merit, String)>,
}

impl Concept {
    fn new(cui: Cui) -> Concept {
        Concept { cui, names: Vec::new(), alternative_ids: Vec::new(), codes: BTreeSet::new(), best: None }
    }
}

struct Names<'a> {
    prefix: &'a str,
    config: &'a ImportConfig,
    languages: Vec<String>,
    ranks: Ranks,
    /// Concepts with a requested semantic type, if types are filtered.
    typed: Option<CuiSet>,
    kept: CuiSet,
    /// Vocabularies with an imported name, whose definitions are in a requested language.
    vocabularies: HashSet<String>,
    drops: Drops,
}

impl Names<'_> {
    fn read(&mut self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut concept: Option<Concept> = None;
        let mut n_rows = 0;
        each(input, |row: Row<'_, 18>| {
            let cui = row.cui(0)?;
            n_rows += 1;
            let same = concept.as_ref().is_some_and(|open| open.cui == cui);
            let full = concept.as_ref().is_some_and(|open| open.names.len() >= MAX_NAMES);
            if !same || full {
                if let Some(finished) = concept.take() {
                    self.finish(finished, sink)?;
                }
                if !same && self.typed.as_ref().is_some_and(|typed| !typed.contains(cui)) {
                    self.drops.concept_of_type += 1;
                }
            }
            let open = concept.get_or_insert_with(|| Concept::new(cui));
            self.name(open, &row);
            Ok(())
        })?;
        report.n_read += n_rows;
        match concept {
            Some(finished) => self.finish(finished, sink),
            None => Ok(()),
        }
    }

    fn name(&mut self, concept: &mut Concept, row: &Row<'_, 18>) {
        let [_, language, status, _, form, _, preferred, _, _, _, _, source, term_type, code, text, _, suppress, _] =
            row.cells;
        let suppressed = matches!(suppress, "O" | "E" | "Y");
        let drops = &mut self.drops;
        if self.typed.as_ref().is_some_and(|typed| !typed.contains(concept.cui)) {
            drops.semantic_type += 1;
            return;
        }
        let Some(index) = self.languages.iter().position(|wanted| wanted == language) else {
            drops.language += 1;
            return;
        };
        if !code.is_empty() && code != "NOCODE" && (!suppressed || self.config.keep_obsolete) {
            concept.codes.insert(format!("{source}:{code}"));
        }
        if !self.config.sources.is_empty() && !self.config.sources.iter().any(|wanted| wanted == source) {
            drops.source += 1;
        } else if !self.config.term_types.is_empty() && !self.config.term_types.iter().any(|wanted| wanted == term_type)
        {
            drops.term_type += 1;
        } else if suppressed && !self.config.keep_obsolete {
            drops.suppressible += 1;
        } else if text.trim().is_empty() {
            drops.empty += 1;
        } else {
            let rank = self.ranks.rank(source, term_type);
            let merit = (!suppressed, usize::MAX - index, rank, status == "P", form == "PF", preferred == "Y");
            if concept.best.as_ref().is_none_or(|(_, best, _)| merit > *best) {
                concept.best = Some((concept.names.len(), merit, source.to_owned()));
            }
            concept.names.push(NameRecord { text: text.trim().to_owned(), scope: Scope::Exact });
            if self.config.xrefs && !code.is_empty() && code != "NOCODE" {
                concept.alternative_ids.push(format!("{source}:{code}"));
            }
            if !self.vocabularies.contains(source) {
                self.vocabularies.insert(source.to_owned());
            }
        }
    }

    fn finish(&mut self, mut concept: Concept, sink: &mut Sink<'_>) -> Result<()> {
        let Some((best, _, source)) = concept.best else {
            if self.typed.as_ref().is_none_or(|typed| typed.contains(concept.cui)) {
                self.drops.concept_without_name += 1;
            }
            return Ok(());
        };
        concept.names[best].scope = Scope::Preferred;
        concept.names[..=best].rotate_right(1);
        concept.alternative_ids.sort_unstable();
        concept.alternative_ids.dedup();
        self.kept.insert(concept.cui);
        sink(ConceptRecord {
            names: concept.names,
            alternative_ids: concept.alternative_ids,
            xrefs: concept.codes.iter().map(|code| XrefRecord::new(code, Predicate::Exact)).collect(),
            source,
            ..self.part(concept.cui)
        })
    }

    /// A record with only the id.
    fn part(&self, cui: Cui) -> ConceptRecord {
        ConceptRecord { id: cui.id(self.prefix), ..ConceptRecord::default() }
    }

    fn add_types(&self, input: &mut Input, sink: &mut Sink<'_>) -> Result<()> {
        let mut open: Option<(Cui, ConceptRecord)> = None;
        each(input, |row: Row<'_, 6>| {
            let cui = row.cui(0)?;
            if !self.kept.contains(cui) {
                return Ok(());
            }
            let semantic_type = row.cells[1].to_owned();
            match &mut open {
                Some((same, record)) if *same == cui && record.types.len() < MAX_NAMES => {
                    record.types.push(semantic_type);
                }
                _ => {
                    let record = ConceptRecord { types: vec![semantic_type], ..self.part(cui) };
                    if let Some((_, finished)) = open.replace((cui, record)) {
                        sink(finished)?;
                    }
                }
            }
            Ok(())
        })?;
        open.map_or(Ok(()), |(_, finished)| sink(finished))
    }

    fn add_definitions(&self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut defined = CuiSet::default();
        each(input, |row: Row<'_, 8>| {
            let [_, _, _, _, source, text, suppress, _] = row.cells;
            let cui = row.cui(0)?;
            if !self.kept.contains(cui) {
                return Ok(());
            }
            if !self.vocabularies.contains(source) {
                report.drop_one("definition", "source without a kept name");
            } else if matches!(suppress, "O" | "E" | "Y") && !self.config.keep_obsolete {
                report.drop_one("definition", "suppressible");
            } else if text.trim().is_empty() {
                report.drop_one("definition", "empty");
            } else if !defined.insert(cui) {
                report.drop_one("definition", "repeated");
            } else {
                sink(ConceptRecord { definition: Some(text.trim().to_owned()), ..self.part(cui) })?;
            }
            Ok(())
        })
    }

    fn add_parents(&self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut open: Option<(Cui, ConceptRecord)> = None;
        let mut n_others = 0;
        each(input, |row: Row<'_, 16>| {
            let [_, _, _, relation, _, _, _, _, _, _, source, _, _, _, suppress, _] = row.cells;
            let (child, parent) = (row.cui(0)?, row.cui(4)?);
            if relation != "PAR" {
                n_others += 1;
                return Ok(());
            }
            if !self.kept.contains(child) {
                return Ok(());
            }
            let unwanted = if child == parent {
                Some("self-reference")
            } else if !self.kept.contains(parent) {
                Some("not kept")
            } else if !self.config.sources.is_empty() && !self.config.sources.iter().any(|wanted| wanted == source) {
                Some("source")
            } else if matches!(suppress, "O" | "E" | "Y") && !self.config.keep_obsolete {
                Some("suppressible")
            } else {
                None
            };
            if let Some(reason) = unwanted {
                report.drop_one("parent", reason);
                return Ok(());
            }
            let id = parent.id(self.prefix);
            match &mut open {
                Some((same, record)) if *same == child && record.parents.len() < MAX_PARENTS => {
                    if !record.parents.contains(&id) {
                        record.parents.push(id);
                    }
                }
                _ => {
                    let record = ConceptRecord { parents: vec![id], ..self.part(child) };
                    if let Some((_, finished)) = open.replace((child, record)) {
                        sink(finished)?;
                    }
                }
            }
            Ok(())
        })?;
        report.drop_many("relation", "not a parent", n_others);
        open.map_or(Ok(()), |(_, finished)| sink(finished))
    }
}
