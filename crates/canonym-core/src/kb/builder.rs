//! Collects records and compiles them into a knowledge base.
//!
//! Records with the same id are merged in input order. If they come from several sources, the first source that names a
//! concept provides its preferred name, definition and source. Mappings can merge concepts. The result depends only on
//! the records and the [`Meta`], not on the number of threads or the time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Cursor, Seek, Write};
use std::path::Path;

use rayon::prelude::*;

use super::arena::{Arena, ids_of_concepts, lists, strings};
use super::counts::{self, Counts, tally};
use super::format::{KIND, Meta, UnknownParents};
use super::import::Report;
use super::join::{self, Mappings};
use super::lexicon::{Layout, Lexicon};
use super::record::{ConceptRecord, Scope};
use super::supplement;
use super::variants;
use super::xref::{Predicate, XrefRecord};
use crate::artifact::{AtomicFile, ContainerWriter};
use crate::{Error, Result};

/// Longer names are dropped: they do not occur in text, and the longest name bounds the windows of the recogniser.
pub const MAX_NAME_BYTES: usize = 1000;

/// Origin of a concept without a name.
const NO_ORIGIN: u16 = u16::MAX;
/// Maximum number of unknown parents that are listed; all are counted.
const MAX_UNKNOWN: usize = 100;

/// A step of a build, which takes minutes for millions of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStep {
    /// Reading the sources; the number of records so far.
    Read(u64),
    /// Sorting concepts and names.
    Sort,
    /// Indexing the names: normal forms, tokens, character n-grams.
    Index,
    /// Writing the file.
    Write,
}

/// Receives the steps of a build.
pub type BuildProgress<'a> = dyn FnMut(BuildStep) -> Result<()> + 'a;

/// Collects records, which [`KnowledgeBaseBuilder::write`] compiles.
#[derive(Debug)]
pub struct KnowledgeBaseBuilder {
    rows: HashMap<Box<str>, u32>,
    ids: Arena,
    sources: Vec<u16>,
    source_rows: HashMap<String, u16>,
    /// Index of the current source.
    origin: u16,
    /// Names of the sources.
    origins: Vec<String>,
    /// `(first name row, source)` of each run of names from one source, ascending.
    origin_starts: Vec<(u32, u16)>,
    /// Origin of the first name of each concept.
    owners: Vec<u16>,
    /// Merges due to mappings: `(concept, target)`.
    joined: Vec<(u32, u32)>,
    names: Arena,
    name_of: Vec<(u32, Scope)>,
    types: Vec<(u32, u16)>,
    type_rows: HashMap<String, u16>,
    definitions: Arena,
    definition_of: Vec<u32>,
    parents: Vec<(u32, u32)>,
    wanted_parents: Arena,
    alternatives: Arena,
    alternative_of: Vec<u32>,
    xrefs: Arena,
    xref_of: Vec<(u32, Predicate)>,
    report: Report,
    layout: Option<Layout>,
    /// Row of the first variant of a name; all rows that follow are variants.
    first_variant: Option<u32>,
}

/// The final order of concepts and names.
struct Order {
    /// Concepts with a name that were not merged into another, sorted by id.
    concepts: Vec<u32>,
    /// New row of each concept; for a merged concept, that of its target.
    new_row: Vec<u32>,
    /// `(new concept, name, scope)` without duplicates.
    names: Vec<(u32, u32, Scope)>,
}

impl Default for KnowledgeBaseBuilder {
    fn default() -> Self {
        KnowledgeBaseBuilder::new()
    }
}

impl KnowledgeBaseBuilder {
    /// An empty builder.
    pub fn new() -> KnowledgeBaseBuilder {
        KnowledgeBaseBuilder {
            rows: HashMap::new(),
            ids: Arena::new(),
            sources: Vec::new(),
            source_rows: HashMap::new(),
            origin: 0,
            origins: Vec::new(),
            origin_starts: Vec::new(),
            owners: Vec::new(),
            joined: Vec::new(),
            names: Arena::new(),
            name_of: Vec::new(),
            types: Vec::new(),
            type_rows: HashMap::new(),
            definitions: Arena::new(),
            definition_of: Vec::new(),
            parents: Vec::new(),
            wanted_parents: Arena::new(),
            alternatives: Arena::new(),
            alternative_of: Vec::new(),
            xrefs: Arena::new(),
            xref_of: Vec::new(),
            report: Report::default(),
            layout: None,
            first_variant: None,
        }
    }

    /// Stores names in a given layout, whatever their number.
    #[must_use]
    pub fn with_layout(self, layout: Layout) -> KnowledgeBaseBuilder {
        KnowledgeBaseBuilder { layout: Some(layout), ..self }
    }

    /// Adds a concept or a part of one.
    pub fn add(&mut self, record: ConceptRecord) -> Result<()> {
        let id = record.id.trim();
        if id.is_empty() {
            self.report.drop_one("concept", "empty id");
            return Ok(());
        }
        let concept = match self.rows.get(id) {
            Some(row) => *row,
            None => {
                let row = self.ids.push("concept ids", id)?;
                self.rows.insert(id.into(), row);
                self.sources.push(0);
                self.owners.push(NO_ORIGIN);
                row
            }
        };
        self.note_source(concept as usize, &record)?;
        for name in &record.names {
            let text = name.text.trim();
            if text.is_empty() {
                self.report.drop_one("name", "empty");
            } else if text.len() > MAX_NAME_BYTES {
                self.report.drop_one("name", "longer than 1,000 bytes");
            } else {
                self.names.push("names", text)?;
                self.name_of.push((concept, name.scope));
            }
        }
        for semantic_type in record.types.iter().filter(|semantic_type| !semantic_type.trim().is_empty()) {
            let row = row_of(&mut self.type_rows, semantic_type.trim(), "semantic types")?;
            self.types.push((concept, row));
        }
        if let Some(definition) = record.definition.as_deref().filter(|text| !text.trim().is_empty()) {
            self.definitions.push("definitions", definition.trim())?;
            self.definition_of.push(concept);
        }
        for parent in record.parents.iter().filter(|parent| !parent.trim().is_empty()) {
            let row = self.wanted_parents.push("parent ids", parent.trim())?;
            self.parents.push((concept, row));
        }
        for alternative in record.alternative_ids.iter().filter(|other| !other.trim().is_empty()) {
            self.alternatives.push("alternative ids", alternative.trim())?;
            self.alternative_of.push(concept);
        }
        record.xrefs.iter().try_for_each(|xref| self.push_xref(concept, xref))
    }

    fn push_xref(&mut self, concept: u32, xref: &XrefRecord) -> Result<()> {
        if !xref.id.trim().is_empty() {
            self.xrefs.push("cross-references", xref.id.trim())?;
            self.xref_of.push((concept, xref.predicate));
        }
        Ok(())
    }

    /// Adds a cross-reference to the concept with this id. Returns false if no record had it.
    pub fn add_xref(&mut self, id: &str, xref: &XrefRecord) -> Result<bool> {
        let Some(concept) = self.rows.get(id).copied() else { return Ok(false) };
        self.push_xref(concept, xref)?;
        Ok(true)
    }

    /// Starts a new source for the records that follow; `name` is used for records without a source.
    ///
    /// Sources added earlier have priority. A repeated name continues that source; an empty name is always a new
    /// source.
    pub fn begin_source(&mut self, name: &str) -> Result<()> {
        let n_origins = self.origins.len();
        let is_known = |known: &String| known == name && !name.is_empty();
        let known = self.origins.iter().position(is_known).unwrap_or(n_origins);
        self.origin = match u16::try_from(known) {
            Ok(origin) if origin < NO_ORIGIN => origin,
            _ => return Err(Error::too_many(format!("more than {NO_ORIGIN} sources"))),
        };
        if known == n_origins {
            self.origins.push(name.to_owned());
        }
        self.origin_starts.push((self.name_of.len() as u32, self.origin));
        Ok(())
    }

    /// Records the source of a concept, which is the first one that names it.
    fn note_source(&mut self, concept: usize, record: &ConceptRecord) -> Result<()> {
        let named = !record.names.is_empty();
        if self.owners[concept] == NO_ORIGIN && named {
            self.owners[concept] = self.origin;
        }
        let own = self.owners[concept] == NO_ORIGIN || self.owners[concept] == self.origin;
        let name = match self.origins.get(self.origin as usize) {
            _ if !record.source.is_empty() => &record.source,
            Some(name) if named && self.sources[concept] == 0 => name,
            _ => return Ok(()),
        };
        if own && !name.is_empty() {
            self.sources[concept] = row_of(&mut self.source_rows, name, "sources")? + 1;
        }
        Ok(())
    }

    /// Index of the source of a name.
    fn origin_of(&self, name: u32) -> u16 {
        let after = self.origin_starts.partition_point(|(start, _)| *start <= name);
        after.checked_sub(1).map_or(0, |at| self.origin_starts[at].1)
    }

    /// Merges concepts that mappings declare equivalent. Names, types, definitions, parents and alternative ids go to
    /// the concept of the first source; the ids of the others become alternative ids. Returns the number of merged
    /// concepts.
    pub fn join(&mut self, mappings: &Mappings, report: &mut Report) -> Result<u64> {
        let named = |row: &u32| self.owners[*row as usize] != NO_ORIGIN;
        let ids = (0..self.owners.len() as u32).filter(named).map(|row| (row, self.ids.get(row)));
        let alternatives = self.alternative_of.iter().enumerate();
        let alternatives = alternatives
            .filter(|(_, concept)| named(concept))
            .map(|(row, concept)| (*concept, self.alternatives.get(row as u32)));
        let source_of = |row: u32| self.owners[row as usize];
        self.joined = join::plan(mappings, ids, alternatives, source_of, report);
        for (concept, target) in &self.joined {
            for id in self.ids.get(*concept).split('|') {
                self.alternatives.push("alternative ids", id)?;
                self.alternative_of.push(*target);
            }
        }
        Ok(self.joined.len() as u64)
    }

    /// The concept that each concept is merged into; for most, itself.
    fn joined_concepts(&self) -> Vec<u32> {
        let mut concept_of: Vec<u32> = (0..self.owners.len() as u32).collect();
        for (concept, target) in &self.joined {
            concept_of[*concept as usize] = *target;
        }
        concept_of
    }

    /// Adds [`variants`] of names as synonyms of their concepts. Call after [`KnowledgeBaseBuilder::join`] and
    /// [`KnowledgeBaseBuilder::supplement`].
    pub fn add_variants(&mut self, report: &mut Report) -> Result<()> {
        let concept_of = self.joined_concepts();
        let name = |row: usize| (concept_of[self.name_of[row].0 as usize], self.names.get(row as u32));
        let is_exact = |row: usize| self.name_of[row].1 <= Scope::Exact;
        self.first_variant = Some(self.name_of.len() as u32);
        let added = variants::plan(self.name_of.len(), name, is_exact);
        for (concept, name, scope) in &added {
            self.names.push("names", name)?;
            self.name_of.push((*concept, *scope));
        }
        report.n_variants += added.len() as u64;
        Ok(())
    }

    /// Adds the names of records as exact synonyms to concepts with the same id or alternative id, except names that
    /// another concept has. Records without a matching concept are ignored. Call after [`KnowledgeBaseBuilder::join`].
    pub fn supplement(&mut self, records: &[ConceptRecord], report: &mut Report) -> Result<()> {
        let concept_of = self.joined_concepts();
        let named = |row: &u32| self.owners[*row as usize] != NO_ORIGIN;
        let ids = (0..self.owners.len() as u32).filter(named).map(|row| (concept_of[row as usize], self.ids.get(row)));
        let alternatives = self.alternative_of.iter().zip(0..).filter(|(concept, _)| named(concept));
        let alternatives =
            alternatives.map(|(concept, row)| (concept_of[*concept as usize], self.alternatives.get(row)));
        let concepts = supplement::concepts_of(records, ids, alternatives, report);
        let name = |row: usize| {
            let (concept, scope) = self.name_of[row];
            (concept_of[concept as usize], self.names.get(row as u32), scope)
        };
        let added = supplement::plan(records, &concepts, self.name_of.len(), name, report);
        for (concept, name) in &added {
            self.names.push("names", name)?;
            self.name_of.push((*concept, Scope::Exact));
        }
        report.n_added_names += added.len() as u64;
        report.n_supplemented += added.iter().map(|(concept, _)| concept).collect::<HashSet<_>>().len() as u64;
        Ok(())
    }

    /// Number of concepts, including those without a name.
    pub fn n_concepts(&self) -> usize {
        self.sources.len()
    }

    /// Number of names, including duplicates.
    pub fn n_names(&self) -> usize {
        self.name_of.len()
    }

    /// Compiles into a file at `path` and reports what was dropped.
    pub fn write(self, meta: Meta, path: &Path) -> Result<(Meta, Report)> {
        self.write_with(meta, path, &mut |_| Ok(()))
    }

    /// Like [`KnowledgeBaseBuilder::write`]; `progress` is called when a step begins, and its error ends the build.
    pub fn write_with(self, mut meta: Meta, path: &Path, progress: &mut BuildProgress<'_>) -> Result<(Meta, Report)> {
        let file = AtomicFile::create(path)?;
        let (file, report) = self.compile(&mut meta, file, path, progress)?;
        file.commit()?;
        Ok((meta, report))
    }

    /// Compiles into memory.
    pub fn to_bytes(self, mut meta: Meta) -> Result<Vec<u8>> {
        let label = Path::new("memory");
        Ok(self.compile(&mut meta, Cursor::new(Vec::new()), label, &mut |_| Ok(()))?.0.into_inner())
    }

    fn compile<W: Write + Seek>(
        mut self,
        meta: &mut Meta,
        out: W,
        path: &Path,
        progress: &mut BuildProgress<'_>,
    ) -> Result<(W, Report)> {
        let mut report = std::mem::take(&mut self.report);
        progress(BuildStep::Sort)?;
        let Order { concepts: order, new_row, names: name_order } = self.order(&mut report);
        if order.is_empty() {
            return Err(Error::no_data("no concepts to compile: none has a name")
                .with_hint("check the source format and the filters"));
        }
        meta.n_concepts = order.len() as u32;
        meta.n_names = name_order.len() as u32;
        // Variants do not make it a terminology with synonym scopes.
        let is_given = |row: u32| self.first_variant.is_none_or(|first| row < first);
        let scoped = name_order.iter().filter(|(_, row, scope)| *scope > Scope::Exact && is_given(*row));
        meta.n_scoped_names = scoped.count() as u32;
        let (parents, unknown) = self.known_parents(&new_row);
        report.drop_many("parent", "not in the knowledge base", unknown.n);
        meta.unknown_parents = Some(unknown);
        // No longer needed, and large.
        self.rows = HashMap::new();
        self.wanted_parents = Arena::new();
        self.parents = Vec::new();
        progress(BuildStep::Index)?;
        let names: Vec<&str> = name_order.iter().map(|(_, row, _)| self.names.get(*row)).collect();
        let lexicon = Lexicon::build(&names, self.layout)?;
        meta.n_forms = lexicon.n_forms() as u32;
        let (types, type_order) = sorted_rows(&self.type_rows);
        let (sources, source_order) = sorted_rows(&self.source_rows);
        meta.types = types;
        meta.sources = sources;

        progress(BuildStep::Write)?;
        let write_error = |source| Error::io("write", path, source);
        let mut writer = ContainerWriter::new(KIND, out).map_err(write_error)?;
        let json = serde_json::to_vec(&meta).expect("metadata is plain data");
        let write = || -> std::io::Result<()> {
            writer.section("meta", [&json[..]])?;
            strings(&mut writer, "id", order.iter().map(|row| self.ids.get(*row)))?;
            let mut first_names = vec![0; order.len() + 1];
            for (concept, _, _) in &name_order {
                first_names[*concept as usize + 1] += 1;
            }
            for row in 0..order.len() {
                first_names[row + 1] += first_names[row];
            }
            writer.section_u32("concept.names", &first_names)?;
            strings(&mut writer, "name", names.iter().copied())?;
            let scopes: Vec<u8> = name_order.iter().map(|(_, _, scope)| *scope as u8).collect();
            writer.section("name.scope", [&scopes[..]])?;

            let typed = self.types.iter().map(|(concept, row)| (*concept, u32::from(type_order[*row as usize])));
            let (_, types) = lists(&mut writer, "type", typed, &new_row, order.len())?;
            let mut definitions = vec![""; order.len()];
            for (row, concept) in self.definition_of.iter().enumerate().rev() {
                if let Some(slot) = definitions.get_mut(new_row[*concept as usize] as usize) {
                    *slot = self.definitions.get(row as u32);
                }
            }
            strings(&mut writer, "def", definitions.iter().copied())?;
            let (parents_at, _) = lists(&mut writer, "parent", parents.into_iter(), &new_row, order.len())?;
            let source_of = |row: u32| match self.sources[row as usize] {
                0 => u32::MAX,
                row => u32::from(source_order[row as usize - 1]),
            };
            let sources: Vec<u32> = order.iter().map(|row| source_of(*row)).collect();
            writer.section_u32("source.row", &sources)?;
            let n_alternative_ids = self.write_alternatives(&mut writer, &new_row, order.len())?;
            let named = |rows: &[u32], names: &[String]| -> BTreeMap<String, u64> {
                tally(rows.iter().filter_map(|row| names.get(*row as usize)).map(String::as_str))
            };
            let counts = Counts {
                scopes: tally(name_order.iter().map(|(_, _, scope)| scope.name())),
                types: named(&types, &meta.types),
                sources: named(&sources, &meta.sources),
                n_shared_forms: lexicon.n_shared_forms(|name| name_order[name as usize].0),
                n_definitions: definitions.iter().filter(|definition| !definition.is_empty()).count() as u64,
                n_with_parents: parents_at.windows(2).filter(|ends| ends[0] < ends[1]).count() as u64,
                n_alternative_ids,
            };
            writer.section(counts::SECTION, [&serde_json::to_vec(&counts).expect("counts are plain data")[..]])?;
            lexicon.write(&mut writer)
        };
        write().map_err(write_error)?;
        Ok((writer.finish().map_err(write_error)?, report))
    }

    /// Orders concepts and names, and counts what is dropped.
    fn order(&self, report: &mut Report) -> Order {
        let mut named = vec![false; self.sources.len()];
        for (concept, _) in &self.name_of {
            named[*concept as usize] = true;
        }
        let n_nameless = named.iter().filter(|named| !**named).count();
        report.drop_many("concept", "no name", n_nameless as u64);
        for (concept, _) in &self.joined {
            named[*concept as usize] = false;
        }
        let mut order: Vec<u32> = (0..named.len() as u32).filter(|row| named[*row as usize]).collect();
        order.par_sort_unstable_by(|a, b| self.ids.get(*a).cmp(self.ids.get(*b)));
        let mut new_row = vec![u32::MAX; named.len()];
        for (row, old) in order.iter().enumerate() {
            new_row[*old as usize] = row as u32;
        }
        for (concept, target) in &self.joined {
            new_row[*concept as usize] = new_row[*target as usize];
        }
        let mut names: Vec<(u32, u32, Scope)> = self
            .name_of
            .iter()
            .enumerate()
            .map(|(row, (concept, scope))| (new_row[*concept as usize], row as u32, *scope))
            .collect();
        names.par_sort_unstable_by_key(|(concept, row, _)| (*concept, *row));
        let mut kept: Vec<(u32, u32, Scope)> = Vec::with_capacity(names.len());
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for concept_names in names.chunk_by(|a, b| a.0 == b.0) {
            seen.clear();
            let first = kept.len();
            let merit = |(_, row, scope): &(u32, u32, Scope)| (self.origin_of(*row), *scope != Scope::Preferred);
            let indices = 0..concept_names.len();
            let preferred = indices.min_by_key(|index| merit(&concept_names[*index])).unwrap_or(0);
            let mut ordered: Vec<(u32, u32, Scope)> = concept_names.to_vec();
            ordered[..=preferred].rotate_right(1);
            for (index, (concept, row, scope)) in ordered.into_iter().enumerate() {
                let scope = match scope {
                    Scope::Preferred if index > 0 => Scope::Exact,
                    scope => scope,
                };
                match seen.entry(self.names.get(row)) {
                    std::collections::hash_map::Entry::Occupied(entry) => {
                        let earlier: &mut (u32, u32, Scope) = &mut kept[*entry.get()];
                        earlier.2 = earlier.2.min(scope);
                        report.drop_one("name", "duplicate within its concept");
                    }
                    std::collections::hash_map::Entry::Vacant(entry) => {
                        entry.insert(kept.len());
                        kept.push((concept, row, scope));
                    }
                }
            }
            kept[first].2 = Scope::Preferred;
        }
        Order { concepts: order, new_row, names: kept }
    }

    fn known_parents(&self, new_row: &[u32]) -> (Vec<(u32, u32)>, UnknownParents) {
        let mut unknown = UnknownParents::default();
        let mut known = Vec::with_capacity(self.parents.len());
        for (concept, wanted) in &self.parents {
            if new_row[*concept as usize] == u32::MAX {
                continue;
            }
            let row = self.rows.get(self.wanted_parents.get(*wanted)).map(|row| new_row[*row as usize]);
            match row.filter(|row| *row != u32::MAX) {
                // A merge can make a concept its own parent.
                Some(row) if row == new_row[*concept as usize] && !self.joined.is_empty() => {}
                Some(row) => known.push((*concept, row)),
                None => {
                    unknown.n += 1;
                    if unknown.first.len() < MAX_UNKNOWN {
                        let parent = self.wanted_parents.get(*wanted).to_owned();
                        unknown.first.push((self.ids.get(*concept).to_owned(), parent));
                    }
                }
            }
        }
        (known, unknown)
    }

    fn write_alternatives<W: Write + Seek>(
        &self,
        writer: &mut ContainerWriter<W>,
        new_row: &[u32],
        n_concepts: usize,
    ) -> std::io::Result<u64> {
        let kept = |(_, concept, _): &(&str, u32, ())| *concept != u32::MAX;
        let alternatives = self.alternative_of.iter().zip(0..);
        let rows = alternatives.map(|(concept, row)| (self.alternatives.get(row), new_row[*concept as usize], ()));
        let n_alternatives = ids_of_concepts(writer, "alt", rows.filter(kept).collect(), n_concepts)?.len();
        let kept = |(_, concept, _): &(&str, u32, Predicate)| *concept != u32::MAX;
        let xrefs = self.xref_of.iter().zip(0..);
        let rows =
            xrefs.map(|((concept, predicate), row)| (self.xrefs.get(row), new_row[*concept as usize], *predicate));
        let predicates = ids_of_concepts(writer, "xref", rows.filter(kept).collect(), n_concepts)?;
        let predicates: Vec<u8> = predicates.into_iter().map(|predicate| predicate as u8).collect();
        writer.section("xref.predicate", [&predicates[..]])?;
        Ok(n_alternatives as u64)
    }
}

fn row_of(rows: &mut HashMap<String, u16>, name: &str, what: &str) -> Result<u16> {
    if let Some(row) = rows.get(name) {
        return Ok(*row);
    }
    match u16::try_from(rows.len()) {
        Ok(row) if row < u16::MAX => {
            rows.insert(name.to_owned(), row);
            Ok(row)
        }
        _ => Err(Error::too_many(format!("more than 65,534 {what}"))),
    }
}

/// The sorted names, and the new row of each old row.
fn sorted_rows(rows: &HashMap<String, u16>) -> (Vec<String>, Vec<u16>) {
    let mut names: Vec<String> = rows.keys().cloned().collect();
    names.sort_unstable();
    let mut order = vec![0; names.len()];
    for (new, name) in names.iter().enumerate() {
        order[rows[name] as usize] = new as u16;
    }
    (names, order)
}
