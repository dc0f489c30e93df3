//! Exports a knowledge base to a text format that `kb build` reads: JSON lines (lossless), TSV, BioSyn or OBO.
//!
//! Concepts are written one by one in id order. What a format cannot represent is dropped or changed, and counted by
//! kind and reason. Prefixes added by the import stay on the ids.

use std::io::Write;

use serde_json::{Map, Value, json};

use super::import::{ImportConfig, biosyn, tsv};
use super::reader::{ConceptId, KnowledgeBase, NameId};
use super::record::Scope;
use super::xref::{Predicate, Xref};
use crate::kb::import::Report;
use crate::{Error, Result};

/// A concept with more bytes of names is split into several JSON lines, to stay below the line limit of readers.
const LINE_BYTES: usize = 1 << 20;

/// Export formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// One JSON object per line; lossless.
    Jsonl,
    /// Id, name, synonyms, types and definition; no scopes, parents, alternative ids, cross-references or sources.
    Tsv,
    /// Ids and names only.
    Biosyn,
    /// OBO 1.4; no semantic types.
    Obo,
}

impl ExportFormat {
    /// All formats.
    pub const ALL: [ExportFormat; 4] =
        [ExportFormat::Jsonl, ExportFormat::Tsv, ExportFormat::Biosyn, ExportFormat::Obo];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Tsv => "tsv",
            ExportFormat::Biosyn => "biosyn",
            ExportFormat::Obo => "obo",
        }
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<ExportFormat> {
        ExportFormat::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Writes every concept of `kb`; the report counts concepts read and content that the format cannot represent.
///
/// `progress` is called with the number of concepts at intervals. Errors of `out` are returned unchanged.
pub fn export(
    kb: &KnowledgeBase,
    format: ExportFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> std::io::Result<Report> {
    let mut report = Report::default();
    if format == ExportFormat::Obo {
        writeln!(out, "format-version: 1.4")?;
    }
    for concept in kb.concepts() {
        report.n_read += 1;
        if report.n_read.is_multiple_of(4096) {
            progress(report.n_read);
        }
        match format {
            ExportFormat::Jsonl => write_json(kb, concept, out)?,
            ExportFormat::Tsv => write_tsv(kb, concept, out, &mut report)?,
            ExportFormat::Biosyn => write_biosyn(kb, concept, out, &mut report)?,
            ExportFormat::Obo => write_obo(kb, concept, out, &mut report)?,
        }
    }
    progress(report.n_read);
    Ok(report)
}

/// An error if `format` can represent nothing of the knowledge base.
pub fn check_exported(kb: &KnowledgeBase, format: ExportFormat, report: &Report) -> Result<()> {
    let n_left: u64 = report.dropped.iter().filter(|((kind, _), _)| kind == "concept").map(|(_, n)| n).sum();
    if n_left < report.n_read {
        return Ok(());
    }
    let message = format!("no concept of {} can be exported as {}", kb.meta().name, format.name());
    Err(Error::unsupported(message).with_hint("use jsonl, which is lossless"))
}

fn write_json(kb: &KnowledgeBase, concept: ConceptId, out: &mut dyn Write) -> std::io::Result<()> {
    let mut names = kb.names(concept).peekable();
    let mut row = Map::new();
    row.insert("id".to_owned(), json!(kb.id(concept)));
    if let Some(preferred) = names.next() {
        row.insert("name".to_owned(), json!(kb.name(preferred)));
    }
    let lists: [(&str, Vec<&str>); 3] = [
        ("types", kb.types(concept).collect()),
        ("parents", kb.parents(concept).map(|parent| kb.id(parent)).collect()),
        ("alternative_ids", kb.alternative_ids(concept).collect()),
    ];
    for (field, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
        row.insert(field.to_owned(), json!(values));
    }
    let xrefs: Vec<Value> = kb.xrefs(concept).map(xref_json).collect();
    if !xrefs.is_empty() {
        row.insert("xrefs".to_owned(), Value::Array(xrefs));
    }
    if let Some(definition) = kb.definition(concept) {
        row.insert("definition".to_owned(), json!(definition));
    }
    if !kb.source(concept).is_empty() {
        row.insert("source".to_owned(), json!(kb.source(concept)));
    }
    loop {
        let (mut synonyms, mut n_bytes) = (Vec::new(), 0);
        while let Some(name) = names.next_if(|_| n_bytes < LINE_BYTES) {
            n_bytes += kb.name(name).len();
            synonyms.push(match kb.scope(name) {
                Scope::Preferred | Scope::Exact => json!(kb.name(name)),
                scope => json!({"text": kb.name(name), "scope": scope.name()}),
            });
        }
        if !synonyms.is_empty() {
            row.insert("synonyms".to_owned(), Value::Array(synonyms));
        }
        serde_json::to_writer(&mut *out, &row)?;
        out.write_all(b"\n")?;
        if names.peek().is_none() {
            return Ok(());
        }
        // The builder merges lines with the same id.
        row.retain(|field, _| field == "id");
    }
}

/// A cross-reference: its id if the predicate is the default one.
fn xref_json(xref: Xref<'_>) -> Value {
    match xref.predicate {
        Predicate::Xref => json!(xref.id),
        predicate => json!({"id": xref.id, "predicate": predicate.name()}),
    }
}

/// Counts what neither TSV nor BioSyn can represent.
fn count_unsupported(kb: &KnowledgeBase, concept: ConceptId, report: &mut Report) {
    let n_scoped = kb.names(concept).filter(|name| kb.scope(*name) > Scope::Exact).count();
    report.drop_many("scope", "not supported by the format", n_scoped as u64);
    report.drop_many("parent", "not supported by the format", kb.parents(concept).count() as u64);
    report.drop_many("alternative id", "not supported by the format", kb.alternative_ids(concept).count() as u64);
    report.drop_many("cross-reference", "not supported by the format", kb.xrefs(concept).count() as u64);
    report.drop_many("source", "not supported by the format", u64::from(!kb.source(concept).is_empty()));
}

/// The names without any of `signs`; the others are counted.
fn supported_names<'a>(kb: &'a KnowledgeBase, names: &[NameId], signs: &[char], report: &mut Report) -> Vec<&'a str> {
    let (supported, left): (Vec<&str>, Vec<&str>) =
        names.iter().map(|name| kb.name(*name)).partition(|name| !name.contains(signs));
    report.drop_many("name", "contains a column, name or line separator", left.len() as u64);
    supported
}

/// Column and line separators; `\r` at the end of a line would be read as part of the line break.
const SEPARATORS: [char; 3] = ['\t', '\n', '\r'];

fn write_tsv(kb: &KnowledgeBase, concept: ConceptId, out: &mut dyn Write, report: &mut Report) -> std::io::Result<()> {
    let id = kb.id(concept);
    let names: Vec<NameId> = kb.names(concept).collect();
    let Some(preferred) = names.first().map(|name| kb.name(*name)) else { return Ok(()) };
    if id.contains(SEPARATORS) || preferred.contains(SEPARATORS) {
        report.drop_one("concept", "tab or line break in its id or preferred name");
        return Ok(());
    }
    count_unsupported(kb, concept, report);
    let synonyms = supported_names(kb, &names[1..], &['\t', '\n', '\r', '|'], report);
    let (types, unsupported): (Vec<&str>, Vec<&str>) =
        kb.types(concept).partition(|name| !name.contains(['\t', '\n', '\r', '|']));
    report.drop_many("type", "contains a column, type or line separator", unsupported.len() as u64);
    let definition = kb.definition(concept).unwrap_or_default();
    if definition.contains(SEPARATORS) {
        report.drop_one("line break or tab", "replaced by a space in a definition");
    }
    let mut row = format!("{id}\t{preferred}\t{}\t{}\t", synonyms.join("|"), types.join("|"));
    row += &definition.replace(SEPARATORS, " ");
    let row = row.trim_end_matches('\t');
    // The reader skips a header, but only on the first line.
    let guard = if report.n_read == 1 && tsv::is_header(row) { "\n" } else { "" };
    // Rows have at least two columns.
    let tail = if row.contains('\t') { "" } else { "\t" };
    writeln!(out, "{guard}{row}{tail}")
}

fn write_biosyn(
    kb: &KnowledgeBase,
    concept: ConceptId,
    out: &mut dyn Write,
    report: &mut Report,
) -> std::io::Result<()> {
    let id = kb.id(concept);
    let names: Vec<NameId> = kb.names(concept).collect();
    let supported = supported_names(kb, &names, &['\n', '\r', '|'], report);
    if id.contains("||") || id.ends_with('|') || id.contains(['\n', '\r']) || supported.is_empty() {
        report.drop_one("concept", "id or names not supported by the format");
        return Ok(());
    }
    if biosyn::id_of(id, &ImportConfig::default()) != id {
        report.drop_one("id", "would get another prefix when read back");
    }
    count_unsupported(kb, concept, report);
    report.drop_many("type", "not supported by the format", kb.types(concept).count() as u64);
    report.drop_many("definition", "not supported by the format", u64::from(kb.definition(concept).is_some()));
    supported.iter().try_for_each(|name| writeln!(out, "{id}||{name}"))
}

/// Escapes characters with a meaning in OBO; `signs` are those with a meaning in this position.
fn escaped(text: &str, signs: &[char]) -> String {
    let mut written = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            // OBO has no escape for it.
            '\r' => written.push(' '),
            letter => {
                if letter == '\\' || signs.contains(&letter) {
                    written.push('\\');
                }
                written.push(letter);
            }
        }
    }
    written
}

/// A cross-reference in OBO, which also ends at a quote.
fn obo_xref(id: &str) -> String {
    let signs: Vec<char> = id.chars().filter(|letter| letter.is_whitespace()).chain(['!', '{', '"']).collect();
    escaped(id, &signs)
}

/// An id in OBO, with all white space escaped.
fn obo_id(id: &str) -> String {
    let signs: Vec<char> = id.chars().filter(|letter| letter.is_whitespace()).chain(['!', '{']).collect();
    escaped(id, &signs)
}

fn write_obo(kb: &KnowledgeBase, concept: ConceptId, out: &mut dyn Write, report: &mut Report) -> std::io::Result<()> {
    report.drop_many("type", "not supported by the format", kb.types(concept).count() as u64);
    let texts = kb.names(concept).map(|name| kb.name(name)).chain(kb.definition(concept));
    report.drop_many("carriage return", "replaced by a space", texts.filter(|text| text.contains('\r')).count() as u64);
    let plain = |text: &str| escaped(text, &['!', '{']);
    let quoted = |text: &str| escaped(text, &['"']);
    writeln!(out, "\n[Term]\nid: {}", obo_id(kb.id(concept)))?;
    for name in kb.names(concept) {
        match kb.scope(name) {
            Scope::Preferred => writeln!(out, "name: {}", plain(kb.name(name)))?,
            scope => {
                let scope = scope.name().to_uppercase();
                writeln!(out, "synonym: \"{}\" {scope} []", quoted(kb.name(name)))?;
            }
        }
    }
    if !kb.source(concept).is_empty() {
        writeln!(out, "namespace: {}", plain(kb.source(concept)))?;
    }
    for id in kb.alternative_ids(concept) {
        writeln!(out, "alt_id: {}", obo_id(id))?;
    }
    for xref in kb.xrefs(concept) {
        match xref.predicate {
            Predicate::Xref => writeln!(out, "xref: {}", obo_xref(xref.id))?,
            predicate => writeln!(out, "property_value: {} {}", predicate.name(), obo_xref(xref.id))?,
        }
    }
    if let Some(definition) = kb.definition(concept) {
        writeln!(out, "def: \"{}\" []", quoted(definition))?;
    }
    for parent in kb.parents(concept) {
        let name = kb.preferred_name(parent).replace(['\n', '\r', '\\'], " ");
        writeln!(out, "is_a: {} ! {name}", obo_id(kb.id(parent)))?;
    }
    Ok(())
}
