//! MeSH in ASCII format: records of lines `KEY = value`, each after `*NEWRECORD`.
//!
//! Reads descriptors (`MH`), supplementary records (`NM`) and qualifiers (`SH`). The heading is the preferred name;
//! entry terms and synonyms (`ENTRY`, `PRINT ENTRY`, `SY`) have the scope of their relation (`EQV`, `NRW`, `BRD`,
//! `REL`), exact by default. Parents come from tree numbers (`MN`, `TN`) and mapped headings (`HM`); because `HM`
//! contains names, a supplementary file needs the descriptor file for them. Types are semantic types (`ST`), else the
//! first segments of the tree numbers. Other elements (history, indexing, allowed qualifiers, pharmacological actions)
//! are ignored.

use super::mesh_relations::{self as mesh, Named, Relations};
use super::{ImportConfig, Report, Sink, keep, push_name, with_default_prefix, with_prefix};
use crate::input::{Input, Source};
use crate::kb::{ConceptRecord, Scope, XrefRecord};
use crate::{Error, Result};

const NEW_RECORD: &str = "*NEWRECORD";

/// Maximum size of a record in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The record being read.
#[derive(Default)]
struct Open {
    /// Line of its `*NEWRECORD`.
    line: u64,
    ui: String,
    heading: String,
    record: ConceptRecord,
    trees: Vec<String>,
    mapped_to: Vec<String>,
    n_bytes: usize,
}

/// Reads all files of `sources`, because records refer to headings in other files.
pub fn read(sources: &[Source], config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let config = &with_default_prefix(config, mesh::PREFIX);
    let mut relations = Relations::default();
    for source in sources {
        read_file(&mut source.open()?, config, &mut relations, report, sink)?;
    }
    relations.finish(report, sink)
}

fn read_file(
    input: &mut Input,
    config: &ImportConfig,
    relations: &mut Relations,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let path = input.path().to_path_buf();
    let mut open: Option<Open> = None;
    while let Some((number, line)) = input.next_line()? {
        let malformed = |message: String| Error::parse(&path, number, message);
        if line.trim().is_empty() {
            continue;
        }
        if line.trim_end() == NEW_RECORD {
            if let Some(finished) = open.replace(Open { line: number, ..Open::default() }) {
                finish(finished, &path, config, relations, report, sink)?;
            }
            continue;
        }
        let Some(record) = &mut open else {
            let error = malformed(format!("missing `{NEW_RECORD}` at the start of a record"));
            return Err(error.with_hint("use an unmodified dYYYY.bin, cYYYY.bin or qYYYY.bin from NLM"));
        };
        record.n_bytes += line.len();
        if record.n_bytes > MAX_BYTES {
            let message = format!("the record at line {} is longer than {MAX_BYTES} bytes", record.line);
            return Err(Error::limit(&path, message));
        }
        let Some((key, value)) = line.split_once(" =") else {
            return Err(malformed("` = ` is missing".to_owned()).with_hint("the format is `KEY = value`"));
        };
        element(record, key.trim(), value.trim(), report).map_err(malformed)?;
    }
    match open {
        Some(finished) => finish(finished, &path, config, relations, report, sink),
        None => Ok(()),
    }
}

fn element(open: &mut Open, key: &str, value: &str, report: &mut Report) -> std::result::Result<(), String> {
    let record = &mut open.record;
    match key {
        "UI" if open.ui.is_empty() => value.clone_into(&mut open.ui),
        "UI" => return Err(format!("a second UI in one record: {}", value.escape_debug())),
        "MH" | "NM" | "SH" if open.heading.is_empty() => {
            value.clone_into(&mut open.heading);
            push_name(&mut record.names, value, Scope::Preferred, report);
            let n_names = record.names.len();
            record.names.rotate_right(usize::from(n_names > 1));
        }
        "MH" | "NM" | "SH" => return Err(format!("a second heading in one record: {}", value.escape_debug())),
        "ENTRY" | "PRINT ENTRY" | "SY" => {
            let (term, scope) = term(value);
            push_name(&mut record.names, term, scope, report);
        }
        "MN" | "TN" => open.trees.push(value.to_owned()),
        "ST" => record.types.push(value.to_owned()),
        "MS" | "NO" if !value.is_empty() && record.definition.is_none() => record.definition = Some(value.to_owned()),
        "HM" => {
            let heading = value.replace('*', "");
            open.mapped_to.push(heading.trim().to_owned());
        }
        "RN" | "RR" => record.xrefs.extend(mesh::registry_id(value).as_deref().map(XrefRecord::plain)),
        _ => {}
    }
    Ok(())
}

/// A term and its scope: `A-23187|T109|LAB|NRW|NLM (1991)|900308|abcdef`.
fn term(value: &str) -> (&str, Scope) {
    let mut cells = value.split('|');
    let term = cells.next().unwrap_or_default();
    let scope = cells.find_map(|cell| mesh::scope_of(cell).or((cell == "EQV").then_some(Scope::Exact)));
    (term, scope.unwrap_or(Scope::Exact))
}

fn finish(
    open: Open,
    path: &std::path::Path,
    config: &ImportConfig,
    relations: &mut Relations,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    for (missing, what) in [(&open.ui, "UI"), (&open.heading, "heading (MH, NM or SH)")] {
        if missing.is_empty() {
            return Err(Error::parse(path, open.line, format!("the record has no {what}")));
        }
    }
    report.n_read += 1;
    let record = ConceptRecord {
        id: with_prefix(&open.ui, config),
        types: mesh::types(open.record.types, &open.trees),
        ..open.record
    };
    let id = record.id.clone();
    if keep(record, config, report, sink)? {
        let row = relations.add(&id, &open.trees);
        relations.add_heading(row, &open.heading);
        for heading in open.mapped_to.iter().filter(|heading| !heading.is_empty()) {
            relations.want(row, heading, Named::Heading);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_carry_the_relation_of_their_concept() {
        assert_eq!(term("round thing|T1|NON|NRW|NLM (1991)|900308|abcdef"), ("round thing", Scope::Narrow));
        assert_eq!(term("ring|EQV|abd"), ("ring", Scope::Exact));
        assert_eq!(term("rings, round"), ("rings, round", Scope::Exact));
    }
}
