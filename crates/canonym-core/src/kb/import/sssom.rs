//! SSSOM mappings as TSV: equivalent ids in different terminologies.
//!
//! Lines that start with `#` contain metadata and are skipped; the first other line is the header. Reads the columns
//! `subject_id`, `predicate_id`, `object_id` and, if present, `predicate_modifier`. Mappings do not create concepts;
//! they merge imported ones ([`KnowledgeBaseBuilder::join`](crate::kb::KnowledgeBaseBuilder::join)).

use super::Report;
use super::obographs::short_id;
use crate::input::Input;
use crate::kb::join::Mappings;
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

/// Adds the mappings of a file with one of the `predicates`; others are counted.
pub fn read(input: &mut Input, predicates: &[String], mappings: &mut Mappings, report: &mut Report) -> Result<()> {
    let path = input.path().to_path_buf();
    let mut columns: Option<Columns> = None;
    let mut drops = [("another predicate", 0), ("negated", 0), ("without an id", 0), ("maps an id to itself", 0)];
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
            let message = format!("{} columns, expected {}", cells.len(), columns.n_columns);
            return Err(Error::parse(&path, number, message));
        }
        let (subject, object) = (short_id(cells[columns.subject]), short_id(cells[columns.object]));
        let modifier = columns.modifier.and_then(|column| cells.get(column)).is_some_and(|cell| !cell.is_empty());
        let absent = |id: &str| id.is_empty() || id == "sssom:NoTermFound";
        let drop = if !predicates.iter().any(|predicate| predicate == cells[columns.predicate]) {
            0
        } else if modifier {
            1
        } else if absent(&subject) || absent(&object) {
            2
        } else if !mappings.add(&subject, &object)? {
            3
        } else {
            continue;
        };
        drops[drop].1 += 1;
    }
    if columns.is_none() {
        return Err(
            Error::parse(&path, 1, "the file contains no mappings").with_hint("use SSSOM mappings in TSV format")
        );
    }
    for (reason, n) in drops {
        report.drop_many("mapping", reason, n);
    }
    Ok(())
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
