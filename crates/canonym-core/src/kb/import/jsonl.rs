//! One JSON object per line: `{"id", "name", "synonyms": ["…" or {"text", "scope"}], "types", "definition", "parents",
//! "alternative_ids", "xrefs": ["…" or {"id", "predicate"}], "source"}`.
//!
//! `id` and a name or synonym are required. An unknown field is an error, so that typos are noticed.

use serde::Deserialize;

use super::{ImportConfig, Report, Sink, keep, push_name, with_prefix};
use crate::Result;
use crate::input::Input;
use crate::kb::{ConceptRecord, Predicate, Scope, XrefRecord};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    name: Option<String>,
    #[serde(default)]
    synonyms: Vec<Synonym>,
    #[serde(default)]
    types: Vec<String>,
    definition: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    alternative_ids: Vec<String>,
    #[serde(default)]
    xrefs: Vec<XrefRow>,
    source: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a synonym must be a string, or an object with text and scope")]
enum Synonym {
    Text(String),
    Scoped(Scoped),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scoped {
    text: String,
    scope: Option<ScopeWord>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a cross-reference must be a string, or an object with id and predicate")]
enum XrefRow {
    Text(String),
    Full(FullXref),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullXref {
    id: String,
    predicate: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum ScopeWord {
    #[serde(alias = "PREFERRED")]
    Preferred,
    #[serde(alias = "EXACT")]
    Exact,
    #[serde(alias = "NARROW")]
    Narrow,
    #[serde(alias = "BROAD")]
    Broad,
    #[serde(alias = "RELATED")]
    Related,
}

/// Reads all objects.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    while let Some((number, line)) = input.next_line()? {
        report.set_line(number);
        if line.trim().is_empty() {
            report.drop_one("row", "blank");
            continue;
        }
        let row: Row = match serde_json::from_str(line) {
            Ok(row) => row,
            Err(error) => {
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
                return Err(input.error(format!("invalid JSON at column {}: {what}", error.column())));
            }
        };
        if row.id.trim().is_empty() {
            return Err(input.error("the id is empty"));
        }
        report.n_read += 1;
        report.register_id("row", row.id.trim());
        let xrefs = row.xrefs.iter().filter_map(|xref| xref_of(xref).transpose());
        let xrefs =
            xrefs.collect::<std::result::Result<Vec<XrefRecord>, String>>().map_err(|message| input.error(message))?;
        keep(ConceptRecord { xrefs, ..record(row, config, report) }, config, report, sink)?;
    }
    Ok(())
}

fn record(row: Row, config: &ImportConfig, report: &mut Report) -> ConceptRecord {
    let mut names = Vec::new();
    if let Some(name) = &row.name {
        push_name(&mut names, name, Scope::Preferred, report);
    }
    for synonym in &row.synonyms {
        match synonym {
            Synonym::Text(text) => push_name(&mut names, text, Scope::Exact, report),
            Synonym::Scoped(scoped) => push_name(&mut names, &scoped.text, scope(scoped.scope), report),
        }
    }
    let ids =
        |ids: &[String]| ids.iter().filter(|id| !id.trim().is_empty()).map(|id| with_prefix(id, config)).collect();
    ConceptRecord {
        id: with_prefix(&row.id, config),
        names,
        parents: ids(&row.parents),
        alternative_ids: ids(&row.alternative_ids),
        types: row.types,
        definition: row.definition.filter(|text| !text.trim().is_empty()),
        source: row.source.unwrap_or_default(),
        xrefs: Vec::new(),
    }
}

/// A cross-reference, `None` if it is empty; the error is the message.
fn xref_of(row: &XrefRow) -> std::result::Result<Option<XrefRecord>, String> {
    let (id, predicate) = match row {
        XrefRow::Text(id) => (id, Predicate::Xref),
        XrefRow::Full(full) => {
            let word = full.predicate.as_deref();
            let known = word.map_or(Some(Predicate::Xref), Predicate::from_name);
            (&full.id, known.ok_or_else(|| format!("unknown predicate `{}`", word.unwrap_or_default().escape_debug()))?)
        }
    };
    Ok(Some(XrefRecord::new(id, predicate)).filter(|xref| !xref.id.is_empty()))
}

fn scope(word: Option<ScopeWord>) -> Scope {
    match word {
        Some(ScopeWord::Preferred) => Scope::Preferred,
        Some(ScopeWord::Exact) | None => Scope::Exact,
        Some(ScopeWord::Narrow) => Scope::Narrow,
        Some(ScopeWord::Broad) => Scope::Broad,
        Some(ScopeWord::Related) => Scope::Related,
    }
}
