//! SSSOM mappings as TSV: equivalent ids in different terminologies.
//!
//! Lines that start with `#` contain metadata and are skipped; the first other line is the header. Reads the columns
//! `subject_id`, `predicate_id`, `object_id` and, if present, `predicate_modifier`. Mappings do not create concepts;
//! they merge imported ones ([`KnowledgeBaseBuilder::join`](crate::kb::KnowledgeBaseBuilder::join)).

use std::borrow::Cow;

use super::Report;
use crate::input::Input;
use crate::kb::join::Mappings;
use crate::kb::xref::curie;
use crate::numbers::counted;
use crate::{Error, Result};

/// Default predicate.
pub const EXACT_MATCH: &str = "skos:exactMatch";

/// Indices of the columns.
struct Columns {
    subject: usize,
    predicate: usize,
    object: usize,
    modifier: Option<usize>,
    n_columns: usize,
}

/// A mapping of a file.
pub struct Mapping<'a> {
    subject: &'a str,
    /// The predicate as in the file.
    pub predicate: &'a str,
    object: &'a str,
}

impl Mapping<'_> {
    /// The subject id in short form.
    pub fn subject_id(&self) -> Cow<'_, str> {
        curie(self.subject)
    }

    /// The object id in short form.
    pub fn object_id(&self) -> Cow<'_, str> {
        curie(self.object)
    }
}

/// Receives a mapping, and says why it is dropped, if it is.
pub type Take<'a> = dyn FnMut(&Mapping<'_>) -> Result<Option<&'static str>> + 'a;

/// Passes the mappings of a file to `take`; negated ones, and those without an id, are counted and left out.
pub fn each(input: &mut Input, report: &mut Report, take: &mut Take<'_>) -> Result<()> {
    let path = input.path().to_path_buf();
    let mut columns: Option<Columns> = None;
    while let Some((number, line)) = input.next_line()? {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let Some(columns) = &columns else {
            columns = Some(header(&cells).ok_or_else(|| {
                let message = "the header line lacks the columns subject_id, predicate_id and object_id";
                Error::parse(&path, number, message).with_hint("use SSSOM mappings in TSV format")
            })?);
            continue;
        };
        if cells.len() > columns.n_columns || cells.len() <= columns.subject.max(columns.predicate).max(columns.object)
        {
            let message = format!("{}, expected {}", counted(cells.len() as u64, "column"), columns.n_columns);
            return Err(Error::parse(&path, number, message));
        }
        let mapping = Mapping {
            subject: cells[columns.subject],
            predicate: cells[columns.predicate],
            object: cells[columns.object],
        };
        let modifier = columns.modifier.and_then(|column| cells.get(column)).is_some_and(|cell| !cell.is_empty());
        let absent = |id: &str| id.is_empty() || id == "sssom:NoTermFound";
        let drop = if modifier {
            Some("negated")
        } else if absent(mapping.subject) || absent(mapping.object) {
            Some("without an id")
        } else {
            take(&mapping)?
        };
        if let Some(reason) = drop {
            report.drop_one("mapping", reason);
        }
    }
    match columns {
        Some(_) => Ok(()),
        None => {
            Err(Error::parse(&path, 1, "the file contains no mappings").with_hint("use SSSOM mappings in TSV format"))
        }
    }
}

/// Adds the mappings of a file with one of the `predicates`; others are counted.
pub fn read(input: &mut Input, predicates: &[String], mappings: &mut Mappings, report: &mut Report) -> Result<()> {
    each(input, report, &mut |mapping| {
        if !predicates.iter().any(|predicate| predicate == mapping.predicate) {
            return Ok(Some("another predicate"));
        }
        let is_new = mappings.add(&mapping.subject_id(), &mapping.object_id())?;
        Ok((!is_new).then_some("maps an id to itself"))
    })
}

fn header(cells: &[&str]) -> Option<Columns> {
    let column = |name: &str| cells.iter().position(|cell| *cell == name);
    Some(Columns {
        subject: column("subject_id")?,
        predicate: column("predicate_id")?,
        object: column("object_id")?,
        modifier: column("predicate_modifier"),
        n_columns: cells.len(),
    })
}
