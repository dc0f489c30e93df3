//! Files of an RF2 release: kinds by file name, tab-separated rows, SNOMED CT ids, latest versions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::Report;
use crate::input::Source;
use crate::numbers::counted;
use crate::{Error, Result};

/// Maximum depth of folders in a release.
const MAX_DEPTH: usize = 8;

/// Maximum number of files in a release.
const MAX_FILES: usize = 10_000;

/// The tables that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Concept,
    Description,
    TextDefinition,
    Language,
    Relationship,
}

impl Table {
    /// Name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Table::Concept => "sct2_Concept",
            Table::Description => "sct2_Description",
            Table::TextDefinition => "sct2_TextDefinition",
            Table::Language => "der2_cRefset_Language",
            Table::Relationship => "sct2_Relationship",
        }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Table::Concept => &["id", "effectiveTime", "active", "moduleId", "definitionStatusId"],
            Table::Description | Table::TextDefinition => &[
                "id",
                "effectiveTime",
                "active",
                "moduleId",
                "conceptId",
                "languageCode",
                "typeId",
                "term",
                "caseSignificanceId",
            ],
            Table::Language => {
                &["id", "effectiveTime", "active", "moduleId", "refsetId", "referencedComponentId", "acceptabilityId"]
            }
            Table::Relationship => &[
                "id",
                "effectiveTime",
                "active",
                "moduleId",
                "sourceId",
                "destinationId",
                "relationshipGroup",
                "typeId",
                "characteristicTypeId",
                "modifierId",
            ],
        }
    }
}

/// Release type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Snapshot,
    Delta,
}

/// Table and release type of a file by its name: `sct2_Description_Snapshot-en_INT_20240101.txt`.
fn table_of(source: &Source) -> Option<(Table, Kind)> {
    let name = source.file_name().to_ascii_lowercase();
    let stem = name.strip_suffix(".txt")?;
    let mut parts = stem.strip_prefix('x').unwrap_or(stem).split('_');
    let (table, kind) = match (parts.next()?, parts.next()?, parts.next()?) {
        ("sct2", "concept", kind) => (Table::Concept, kind),
        ("sct2", "description", kind) => (Table::Description, kind),
        ("sct2", "textdefinition", kind) => (Table::TextDefinition, kind),
        ("sct2", "relationship", kind) => (Table::Relationship, kind),
        ("der2", "crefset", kind) => (Table::Language, kind.strip_prefix("language")?),
        _ => return None,
    };
    let kind = match kind.split('-').next()? {
        "full" => Kind::Full,
        "snapshot" => Kind::Snapshot,
        "delta" => Kind::Delta,
        _ => return None,
    };
    Some((table, kind))
}

/// The files of an RF2 release in a folder and its subfolders, sorted by path.
pub(super) fn folder(path: &Path) -> Result<Vec<Source>> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut waiting = vec![(path.to_path_buf(), 0)];
    while let Some((folder, depth)) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))? {
            let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
            let kind = entry.file_type().map_err(|error| Error::io("read", &folder, error))?;
            if kind.is_dir() && depth < MAX_DEPTH {
                waiting.push((entry.path(), depth + 1));
            } else if !kind.is_dir() {
                found.push(entry.path());
            }
        }
        if found.len() + waiting.len() > MAX_FILES {
            return Err(Error::limit(path, format!("the folder contains more than {MAX_FILES} files")));
        }
    }
    found.sort();
    let sources: Vec<Source> = found.iter().map(|path| Source::from_path(path)).collect();
    if sources.iter().any(|source| matches!(table_of(source), Some((Table::Concept, _)))) {
        return Ok(sources);
    }
    Err(missing(&path.display().to_string()))
}

fn missing(location: &str) -> Error {
    Error::no_data(format!("no sct2_Concept file in {location}"))
        .with_hint("use the zip file or folder of a SNOMED CT release, with its Snapshot or Full files")
}

/// The files to read, with their tables.
#[derive(Debug)]
pub(super) struct Release<'a> {
    files: Vec<(Table, &'a Source)>,
    full: bool,
}

impl<'a> Release<'a> {
    /// Selects the Snapshot files, or the Full files if there is no Snapshot; others are counted.
    pub fn choose(sources: &'a [Source], report: &mut Report) -> Result<Release<'a>> {
        let has_kind = |kind| move |source: &&Source| table_of(source).is_some_and(|(_, own)| own == kind);
        let concepts = |kind| sources.iter().any(|source| table_of(source) == Some((Table::Concept, kind)));
        let kind = match (concepts(Kind::Snapshot), concepts(Kind::Full), concepts(Kind::Delta)) {
            (true, _, _) => Kind::Snapshot,
            (_, true, _) => Kind::Full,
            (_, _, true) => {
                let error = Error::unsupported("the release is a Delta, which contains only changes");
                return Err(error.with_hint("use the Snapshot or Full files of the release"));
            }
            _ => {
                let location = sources.first().map(|source| source.path().display().to_string());
                return Err(missing(&location.unwrap_or_else(|| "the release".to_owned())));
            }
        };
        let n_others = |other| match other == kind {
            true => 0,
            false => sources.iter().filter(has_kind(other)).count() as u64,
        };
        let beside = if kind == Kind::Snapshot { "beside a Snapshot" } else { "beside the Full files" };
        report.drop_many("file", &format!("Full {beside}"), n_others(Kind::Full));
        report.drop_many("file", &format!("Snapshot {beside}"), n_others(Kind::Snapshot));
        report.drop_many("file", &format!("Delta {beside}"), n_others(Kind::Delta));
        let n_foreign = sources.iter().filter(|source| table_of(source).is_none()).count();
        report.drop_many("file", "unused table", n_foreign as u64);
        let files = sources.iter().filter_map(|source| match table_of(source) {
            Some((table, own)) if own == kind => Some((table, source)),
            _ => None,
        });
        Ok(Release { files: files.collect(), full: kind == Kind::Full })
    }

    /// Whether a table has a file.
    pub fn has(&self, table: Table) -> bool {
        self.files.iter().any(|(own, _)| *own == table)
    }

    /// Calls `take` with the latest version of each component of a table. Returns the number of older rows.
    pub fn each<const N: usize>(&self, table: Table, mut take: impl FnMut(Row<'_, N>) -> Result<()>) -> Result<u64> {
        let files: Vec<&Source> = self.files.iter().filter(|(own, _)| *own == table).map(|(_, one)| *one).collect();
        let several = self.full || files.len() > 1;
        let mut latest: HashMap<u64, (u32, u32)> = HashMap::new();
        if several {
            let mut index = 0u32;
            for source in &files {
                rows::<N>(source, table, &mut |row| {
                    let time = row.time()?;
                    let version = latest.entry(row.key()).or_insert((time, index));
                    if time > version.0 {
                        *version = (time, index);
                    }
                    index += 1;
                    Ok(())
                })?;
            }
        }
        let mut index = 0u32;
        let mut n_older = 0;
        for source in &files {
            rows::<N>(source, table, &mut |row| {
                let wanted = !several || latest.get(&row.key()).is_some_and(|version| version.1 == index);
                index = index.wrapping_add(1);
                if wanted {
                    return take(row);
                }
                n_older += 1;
                Ok(())
            })?;
        }
        Ok(n_older)
    }
}

/// Calls `take` with every row after the header. Quotes have no meaning.
fn rows<const N: usize>(source: &Source, table: Table, take: &mut dyn FnMut(Row<'_, N>) -> Result<()>) -> Result<()> {
    let columns = table.columns();
    debug_assert_eq!(columns.len(), N);
    let mut input = source.open()?;
    let path = input.path().to_path_buf();
    match input.next_line()? {
        Some((_, header)) if header.split('\t').eq(columns.iter().copied()) => {}
        _ => {
            let error = Error::parse(&path, 1, format!("missing header line of {}", table.name()));
            return Err(error.with_hint(format!("the columns are {}, separated by tabs", columns.join(", "))));
        }
    }
    while let Some((number, line)) = input.next_line()? {
        let mut cells = [""; N];
        let mut n_cells = 0;
        for cell in line.split('\t') {
            if n_cells < N {
                cells[n_cells] = cell;
            }
            n_cells += 1;
        }
        if n_cells != N {
            return Err(Error::parse(&path, number, format!("{}, expected {N}", counted(n_cells as u64, "column"))));
        }
        take(Row { cells, path: &path, number })?;
    }
    Ok(())
}

/// A row and its location.
pub(super) struct Row<'a, const N: usize> {
    pub cells: [&'a str; N],
    path: &'a Path,
    number: u64,
}

impl<const N: usize> Row<'_, N> {
    /// The SNOMED CT id in a column.
    pub fn id(&self, column: usize) -> Result<u64> {
        let cell = self.cells[column];
        let digits = (6..=18).contains(&cell.len()) && cell.bytes().all(|byte| byte.is_ascii_digit());
        match cell.parse() {
            Ok(id) if digits => Ok(id),
            _ => Err(self.error(format!("`{}` is not a SNOMED CT id of 6 to 18 digits", cell.escape_debug()))),
        }
    }

    /// Whether the component is active in this version.
    pub fn active(&self) -> Result<bool> {
        match self.cells[2] {
            "1" => Ok(true),
            "0" => Ok(false),
            other => Err(self.error(format!("`{}` is neither 0 nor 1", other.escape_debug()))),
        }
    }

    /// Date of the version, `YYYYMMDD`.
    fn time(&self) -> Result<u32> {
        let cell = self.cells[1];
        match cell.parse() {
            Ok(time) if cell.len() == 8 => Ok(time),
            _ => Err(self.error(format!("`{}` is not a date such as 20240101", cell.escape_debug()))),
        }
    }

    /// Key of the component in its table; members of reference sets have UUIDs, which are hashed.
    fn key(&self) -> u64 {
        xxh3_64(self.cells[0].as_bytes())
    }

    /// An error at this row.
    pub fn error(&self, message: String) -> Error {
        Error::parse(self.path, self.number, message)
    }
}
