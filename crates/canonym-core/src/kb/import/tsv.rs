//! Tab-separated id, name, synonyms (by `|`), types (by `|`) and definition; one concept per line, no header line, no
//! escapes.
//!
//! Id and name are required. Rows with the same id need not be adjacent; the builder merges them.

use super::{ImportConfig, Report, Sink, keep, push_name, with_prefix};
use crate::Result;
use crate::input::Input;
use crate::kb::{ConceptRecord, Scope};
use crate::numbers::counted;

const COLUMNS: &str = "the columns are id, name, synonyms by |, types by |, definition, separated by tabs";

/// Hint for other separators.
pub(super) const FROM_CSV: &str =
    "save the table as TSV (separated by tabs): id, name, synonyms separated by |, types separated by |, definition";

/// Whether the first line is a header: an id column, followed by a name or label column.
pub(in crate::kb) fn is_header(line: &str) -> bool {
    let lower = line.to_lowercase();
    let mut columns = lower.split('\t').map(str::trim);
    let first = columns.next().unwrap_or_default();
    let second = columns.next().unwrap_or_default();
    let has_ids =
        matches!(first, "id" | "code" | "cui" | "identifier") || first.ends_with("_id") || first.ends_with(" id");
    has_ids && ["name", "label", "term", "title"].iter().any(|word| second.contains(word))
}

/// Reads a table.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    while let Some((number, line)) = input.next_line()? {
        report.set_line(number);
        if number == 1 && is_header(line) {
            report.drop_one("row", "header line");
            continue;
        }
        if line.trim().is_empty() {
            report.drop_one("row", "blank");
            continue;
        }
        let n_columns = line.bytes().filter(|&byte| byte == b'\t').count() + 1;
        if !(2..=5).contains(&n_columns) {
            let is_csv = n_columns == 1 && line.contains([',', ';']);
            let hint = if is_csv { FROM_CSV } else { COLUMNS };
            return Err(input
                .error(format!("{}, expected 2 to 5", counted(n_columns as u64, "column")))
                .with_hint(hint));
        }
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        let id = column().trim();
        if id.is_empty() {
            return Err(input.error("the id is empty").with_hint(COLUMNS));
        }
        report.n_read += 1;
        report.register_id("row", id);
        let mut record = ConceptRecord { id: with_prefix(id, config), ..ConceptRecord::default() };
        push_name(&mut record.names, column(), Scope::Preferred, report);
        for synonym in column().split('|').filter(|cell| !cell.is_empty()) {
            push_name(&mut record.names, synonym, Scope::Exact, report);
        }
        record.types.extend(column().split('|').map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned));
        record.definition = Some(column().trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        keep(record, config, report, sink)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_name_an_id_and_a_name_are_headers() {
        assert!(is_header("id\tname") && is_header("mesh_id\tmesh_name\tx") && is_header("CUI\tPreferred Label"));
        assert!(!is_header("D000001\tCalcimycin") && !is_header("id\tdelta") && !is_header("ID1\tname"));
    }
}
