//! NCBI Gene `gene_info` tables: one gene per line, tab-separated, `-` for an empty cell.
//!
//! The symbol is the preferred name. Synonyms, nomenclature names, locus tag and description are exact; other
//! designations, mostly product names, are related. The gene type is the semantic type and the taxon id is the source,
//! so `--sources 9606` selects human genes. Ids are `NCBIGene:1017`. Chromosomes, map locations and dates are ignored.

use super::{ImportConfig, Report, Sink, keep, push_name, with_default_prefix, with_prefix};
use crate::input::Input;
use crate::kb::{ConceptRecord, Scope, XrefRecord};
use crate::numbers::counted;
use crate::{Error, Result};

/// Default prefix of ids.
pub(super) const PREFIX: &str = "NCBIGene";

/// Required columns.
const NEEDED: [&str; 3] = ["tax_id", "GeneID", "Symbol"];

/// Columns of a table without a header line.
const COLUMNS: [&str; 14] = [
    "tax_id",
    "GeneID",
    "Symbol",
    "LocusTag",
    "Synonyms",
    "dbXrefs",
    "chromosome",
    "map_location",
    "description",
    "type_of_gene",
    "Symbol_from_nomenclature_authority",
    "Full_name_from_nomenclature_authority",
    "Nomenclature_status",
    "Other_designations",
];

/// Name columns with their scopes.
const NAMES: [(&str, Scope); 7] = [
    ("Symbol", Scope::Preferred),
    ("Symbol_from_nomenclature_authority", Scope::Exact),
    ("Full_name_from_nomenclature_authority", Scope::Exact),
    ("Synonyms", Scope::Exact),
    ("description", Scope::Exact),
    ("LocusTag", Scope::Exact),
    ("Other_designations", Scope::Related),
];

/// Counts of dropped rows, kept here because a table has millions of rows.
#[derive(Default)]
struct Drops {
    taxon: u64,
    new_entry: u64,
}

/// Reads a table.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let config = &with_default_prefix(config, PREFIX);
    let mut columns = columns_of(&COLUMNS);
    let mut n_columns = 0;
    let mut drops = Drops::default();
    let path = input.path().to_path_buf();
    while let Some((number, line)) = input.next_line()? {
        let malformed = |message: String| Err(Error::parse(&path, number, message));
        if let Some(header) = line.strip_prefix('#') {
            if let Some(names) = header_names(header) {
                columns = columns_of(&names);
                n_columns = names.len();
                if let Some(missing) = NEEDED.iter().find(|wanted| !names.contains(wanted)) {
                    return malformed(format!("the header has no column {missing}"));
                }
            }
            continue;
        }
        if line.is_empty() {
            report.drop_one("row", "blank");
            continue;
        }
        let cells: Vec<&str> = line.split('\t').collect();
        if n_columns == 0 && cells.len() >= COLUMNS.len() {
            n_columns = cells.len();
        }
        if cells.len() != n_columns {
            let expected = if n_columns == 0 { "14 or more".to_owned() } else { n_columns.to_string() };
            let error =
                Error::parse(&path, number, format!("{}, expected {expected}", counted(cells.len() as u64, "column")));
            return Err(error.with_hint("use an unmodified NCBI gene_info file, separated by tabs"));
        }
        let cell = |name: &str| {
            let at = columns.iter().find(|(known, _)| *known == name).map(|(_, at)| *at);
            at.map(|at| cells[at].trim()).filter(|cell| *cell != "-").unwrap_or_default()
        };
        for name in ["tax_id", "GeneID"] {
            let value = cell(name);
            if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
                return malformed(format!("`{}` in column {name} is not a number", value.escape_debug()));
            }
        }
        report.n_read += 1;
        let taxon = cell("tax_id");
        if !config.sources.is_empty() && !config.sources.iter().any(|wanted| wanted == taxon) {
            drops.taxon += 1;
            continue;
        }
        if cell("Symbol") == "NEWENTRY" {
            drops.new_entry += 1;
            continue;
        }
        let mut record = ConceptRecord {
            id: with_prefix(cell("GeneID"), config),
            source: taxon.to_owned(),
            types: Some(cell("type_of_gene")).filter(|word| !word.is_empty()).map(str::to_owned).into_iter().collect(),
            ..ConceptRecord::default()
        };
        for (column, scope) in NAMES {
            for name in cell(column).split('|').map(str::trim).filter(|name| !matches!(*name, "" | "-")) {
                // Columns repeat each other, which is not counted as a loss.
                if !record.names.iter().take(8).any(|known| known.text == name) {
                    push_name(&mut record.names, name, scope, report);
                }
            }
        }
        let others = cell("dbXrefs").split('|').map(str::trim).filter(|other| !other.is_empty());
        record.xrefs.extend(others.map(|other| XrefRecord::plain(without_repeated_prefix(other))));
        keep(record, config, report, sink)?;
    }
    report.drop_many("row", "other taxon", drops.taxon);
    report.drop_many("row", "NEWENTRY (record without a symbol)", drops.new_entry);
    Ok(())
}

/// The columns of a header line: separated by tabs, or by spaces after `Format:` in tables from before 2016.
fn header_names(header: &str) -> Option<Vec<&str>> {
    let header = header.strip_prefix("Format:").unwrap_or(header);
    let header = header.split_once(" (tab").map_or(header, |(names, _)| names);
    let names: Vec<&str> = header.split_whitespace().collect();
    names.contains(&"GeneID").then_some(names)
}

/// The columns that are read, with their indices.
fn columns_of(names: &[&str]) -> Vec<(&'static str, usize)> {
    let column = |wanted: &&'static str| names.iter().position(|name| name == wanted).map(|at| (*wanted, at));
    COLUMNS.iter().filter_map(column).collect()
}

/// Removes a repeated prefix: `HGNC:HGNC:5`.
pub(super) fn without_repeated_prefix(id: &str) -> &str {
    match id.split_once(':') {
        Some((prefix, rest)) if rest.split_once(':').is_some_and(|(again, _)| again == prefix) => rest,
        _ => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_both_ages_are_known() {
        let new = header_names("tax_id\tGeneID\tSymbol").unwrap();
        let old = header_names("Format: tax_id GeneID Symbol (tab is used as a separator)").unwrap();
        assert_eq!(new, old);
        assert_eq!(header_names(" made on a Monday"), None);
    }

    #[test]
    fn repeated_prefixes_are_written_once() {
        assert_eq!(without_repeated_prefix("HGNC:HGNC:5"), "HGNC:5");
        assert_eq!(without_repeated_prefix("MIM:138670"), "MIM:138670");
    }
}
