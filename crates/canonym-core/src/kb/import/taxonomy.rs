//! NCBI taxonomy dumps: names from `names.dmp`, ranks and parents from `nodes.dmp`, previous ids from `merged.dmp`.
//!
//! Only `names.dmp` is required; the source is a folder, an archive or the files. The scientific name is the preferred
//! name, the rank is the type, ids are `NCBITaxon:9606`. Authorities, type material and names of unknown classes are
//! dropped, because they are not names of the taxon. Other tables (divisions, genetic codes, citations, deleted nodes)
//! are ignored.

use std::collections::HashSet;
use std::path::Path;

use super::{ImportConfig, Report, Sink, check_unique, push_name, with_default_prefix, with_prefix};
use crate::input::{Input, Source};
use crate::kb::{ConceptRecord, NameRecord, Scope};
use crate::numbers::counted;
use crate::{Error, Result};

/// Default prefix of ids.
pub(super) const PREFIX: &str = "NCBITaxon";

/// Maximum number of names per record, to bound memory.
const MAX_NAMES: usize = 1 << 16;

/// Imported name classes with their scopes.
const CLASSES: [(&str, Scope); 17] = [
    ("scientific name", Scope::Preferred),
    ("synonym", Scope::Exact),
    ("genbank synonym", Scope::Exact),
    ("equivalent name", Scope::Exact),
    ("common name", Scope::Exact),
    ("genbank common name", Scope::Exact),
    ("acronym", Scope::Exact),
    ("genbank acronym", Scope::Exact),
    ("anamorph", Scope::Exact),
    ("genbank anamorph", Scope::Exact),
    ("teleomorph", Scope::Exact),
    ("misspelling", Scope::Exact),
    ("unpublished name", Scope::Exact),
    ("includes", Scope::Narrow),
    ("in-part", Scope::Broad),
    ("blast name", Scope::Related),
    ("misnomer", Scope::Related),
];

/// Dropped name classes, and the reasons in the report.
const LEFT_OUT: [(&str, &str); 2] = [("authority", "of class authority"), ("type material", "of class type material")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Table {
    Names,
    Nodes,
    Merged,
}

fn table_of(source: &Source) -> Option<Table> {
    match source.file_name().to_ascii_lowercase().as_str() {
        "names.dmp" => Some(Table::Names),
        "nodes.dmp" => Some(Table::Nodes),
        "merged.dmp" => Some(Table::Merged),
        _ => None,
    }
}

/// Whether a file is `names.dmp`.
pub(super) fn is_names(source: &Source) -> bool {
    table_of(source) == Some(Table::Names)
}

/// The tables in a folder.
pub(super) fn folder(path: &Path) -> Result<Vec<Source>> {
    let mut tables = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| Error::io("read", path, error))? {
        let entry = entry.map_err(|error| Error::io("read", path, error))?;
        let source = Source::from_path(&entry.path());
        if table_of(&source).is_some() {
            tables.push(source);
        }
    }
    if !tables.iter().any(is_names) {
        return Err(Error::no_data(format!("no names.dmp in {}", path.display())).with_hint(HINT));
    }
    tables.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(tables)
}

const HINT: &str = "use taxdump.tar.gz, taxdmp.zip, the extracted folder, or its files";

/// Reads the tables among `sources` by file name. The report counts the rows of `names.dmp` as read.
pub fn read(sources: &[Source], config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let config = &with_default_prefix(config, PREFIX);
    // A single file with any name is read as `names.dmp`.
    let single = sources.len() == 1 && table_of(&sources[0]).is_none();
    let is = |source: &Source, wanted| if single { wanted == Table::Names } else { table_of(source) == Some(wanted) };
    let tables = |wanted: Table| sources.iter().filter(move |source| is(source, wanted));
    let n_others = sources.iter().filter(|source| !single && table_of(source).is_none()).count();
    report.drop_many("file", "unused table", n_others as u64);
    for wanted in [Table::Names, Table::Nodes, Table::Merged] {
        check_unique(tables(wanted))?;
    }
    if tables(Table::Names).next().is_none() {
        return Err(Error::no_data("names.dmp is missing").with_hint(HINT));
    }
    let mut kept = None;
    if !config.semantic_types.is_empty() {
        let Some(nodes) = tables(Table::Nodes).next() else {
            let error = Error::no_data("a filter on semantic types (ranks) needs nodes.dmp");
            return Err(error.with_hint("add nodes.dmp, or omit the filter"));
        };
        kept = Some(taxa_of_ranks(&mut nodes.open()?, &config.semantic_types)?);
    }
    let taxa = Taxa { config, kept };
    for source in tables(Table::Names) {
        taxa.add_names(&mut source.open()?, report, sink)?;
    }
    for source in tables(Table::Nodes) {
        taxa.add_nodes(&mut source.open()?, report, sink)?;
    }
    for source in tables(Table::Merged) {
        taxa.add_merged(&mut source.open()?, report, sink)?;
    }
    Ok(())
}

/// A row of a dump: path, line, and `N` of its cells.
struct Row<'a, const N: usize> {
    path: &'a Path,
    number: u64,
    cells: [&'a str; N],
}

impl<const N: usize> Row<'_, N> {
    fn taxon(&self, column: usize) -> Result<u32> {
        let cell = self.cells[column];
        let digits = !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
        match cell.parse() {
            Ok(number) if digits => Ok(number),
            _ => {
                let message = format!("`{}` in column {} is not a taxon id", cell.escape_debug(), column + 1);
                Err(Error::parse(self.path, self.number, message))
            }
        }
    }
}

/// Calls `take` with the first `N` cells of every row; cells are separated by `\t|\t`, and rows end with `\t|`.
fn each<const N: usize>(input: &mut Input, mut take: impl FnMut(Row<'_, N>) -> Result<()>) -> Result<()> {
    let path = input.path().to_path_buf();
    while let Some((number, line)) = input.next_line()? {
        let mut cells = [""; N];
        let mut n_cells = 0;
        for cell in line.strip_suffix("\t|").unwrap_or(line).split("\t|\t") {
            if n_cells < N {
                cells[n_cells] = cell.trim();
            }
            n_cells += 1;
        }
        if n_cells < N || !line.ends_with("\t|") {
            let end = if line.ends_with("\t|") { "" } else { " and no `|` at the end" };
            let message = format!(
                "{}{end}; expected at least {N}, each followed by a tab and `|`",
                counted(n_cells as u64, "column")
            );
            return Err(Error::parse(&path, number, message).with_hint(HINT));
        }
        take(Row { path: &path, number, cells })?;
    }
    Ok(())
}

fn taxa_of_ranks(input: &mut Input, ranks: &[String]) -> Result<HashSet<u32>> {
    let mut taxa = HashSet::new();
    each(input, |row: Row<'_, 3>| {
        if ranks.iter().any(|rank| rank == row.cells[2]) {
            taxa.insert(row.taxon(0)?);
        }
        Ok(())
    })?;
    Ok(taxa)
}

struct Taxa<'a> {
    config: &'a ImportConfig,
    /// Taxa of the requested ranks; `None` for all.
    kept: Option<HashSet<u32>>,
}

impl Taxa<'_> {
    fn keeps(&self, taxon: u32) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.contains(&taxon))
    }

    fn id(&self, taxon: u32) -> String {
        with_prefix(&taxon.to_string(), self.config)
    }

    fn add_names(&self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut open: Option<(u32, Vec<NameRecord>)> = None;
        let mut n_of_rank = 0;
        let flush = |(taxon, names): (u32, Vec<NameRecord>), sink: &mut Sink<'_>| {
            sink(ConceptRecord { id: self.id(taxon), names, ..ConceptRecord::default() })
        };
        each(input, |row: Row<'_, 4>| {
            let [_, text, _, class] = row.cells;
            let taxon = row.taxon(0)?;
            report.n_read += 1;
            if !self.keeps(taxon) {
                n_of_rank += 1;
                return Ok(());
            }
            let Some((_, scope)) = CLASSES.iter().find(|(known, _)| *known == class) else {
                let known = LEFT_OUT.iter().find(|(known, _)| *known == class);
                report.drop_one("name", known.map_or("unknown name class", |(_, reason)| reason));
                return Ok(());
            };
            match &mut open {
                Some((same, names)) if *same == taxon && names.len() < MAX_NAMES => {
                    push_name(names, text, *scope, report);
                }
                _ => {
                    let mut names = Vec::new();
                    push_name(&mut names, text, *scope, report);
                    if let Some(finished) = open.replace((taxon, names)) {
                        flush(finished, sink)?;
                    }
                }
            }
            Ok(())
        })?;
        report.drop_many("name", "semantic type", n_of_rank);
        open.map_or(Ok(()), |finished| flush(finished, sink))
    }

    fn add_nodes(&self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        each(input, |row: Row<'_, 3>| {
            let (taxon, parent) = (row.taxon(0)?, row.taxon(1)?);
            let mut record = ConceptRecord { id: self.id(taxon), ..ConceptRecord::default() };
            if !self.keeps(taxon) {
                return Ok(());
            }
            if row.cells[2] != "no rank" {
                record.types.push(row.cells[2].to_owned());
            }
            if taxon == parent {
                report.drop_one("parent", "self-reference");
            } else {
                record.parents.push(self.id(parent));
            }
            sink(record)
        })
    }

    fn add_merged(&self, input: &mut Input, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
        let mut n_of_rank = 0;
        each(input, |row: Row<'_, 2>| {
            let (old, new) = (row.taxon(0)?, row.taxon(1)?);
            if !self.keeps(new) {
                n_of_rank += 1;
                return Ok(());
            }
            let alternative_ids = vec![self.id(old)];
            sink(ConceptRecord { id: self.id(new), alternative_ids, ..ConceptRecord::default() })
        })?;
        report.drop_many("merged id", "semantic type", n_of_rank);
        Ok(())
    }
}
