//! OBO 1.2 and 1.4 (and synonym tags of 1.0): `[Term]` stanzas.
//!
//! Imports names, synonyms with scopes, alternative ids, definitions, `is_a` parents and cross-references, whose predicate
//! is that of a `property_value` of SKOS or of the sources of Mondo (`MONDO:equivalentTo`). Other relations, `consider`,
//! subsets and synonym types are ignored. The namespace of a term is its source. The ids of an obsolete term with a
//! single replacement become alternative ids of the replacement, in a record of their own that the builder merges.

use super::obo_syntax::{self as syntax, Line};
use super::{ImportConfig, Report, Sink, keep, push_name, with_prefix};
use crate::input::Input;
use crate::kb::{ConceptRecord, NameRecord, Predicate, Scope, XrefRecord};
use crate::{Error, Result};

/// Maximum size of a stanza in bytes.
const MAX_BYTES: usize = 16 << 20;

type Malformed = String;

/// The stanza being read.
#[derive(Default)]
struct Term {
    /// Line of its `[Term]`.
    line: u64,
    record: ConceptRecord,
    replaced_by: Vec<String>,
    obsolete: bool,
    n_relations: u64,
    has_name: bool,
    n_bytes: usize,
}

/// Reads the terms of an OBO file.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let mut buffer = String::new();
    let mut term: Option<Term> = None;
    let mut in_header = true;
    let mut namespace = String::new();
    loop {
        let line_number = input.n_lines() + 1;
        let Some(line) = syntax::next_line(input, &mut buffer)? else { break };
        report.set_line(line_number);
        let parsed = match syntax::parse_line(line) {
            Ok(parsed) => parsed,
            Err(message) => return Err(malformed(input, line_number, message)),
        };
        match parsed {
            Line::Blank => {}
            Line::Stanza(word) => {
                let kind = kind_of(word);
                if let Some(term) = term.take() {
                    finish(term, input, &namespace, config, report, sink)?;
                }
                in_header = false;
                match kind {
                    None => term = Some(Term { line: line_number, ..Term::default() }),
                    Some(kind) => report.drop_one("stanza", kind),
                }
            }
            Line::Clause { tag, value } if in_header => match tag {
                "default-namespace" => namespace = syntax::text(value),
                "data-version" => report.release = super::release_of(&syntax::text(value)),
                _ => {}
            },
            Line::Clause { tag, value } => {
                if let Some(term) = &mut term {
                    term.n_bytes += value.len();
                    if term.n_bytes > MAX_BYTES {
                        let message = format!("the stanza at line {} is longer than {MAX_BYTES} bytes", term.line);
                        return Err(Error::limit(input.path(), message));
                    }
                }
                if let Some(term) = &mut term
                    && let Err(message) = clause(term, tag, value, config, report)
                {
                    return Err(malformed(input, line_number, message));
                }
            }
        }
    }
    match term {
        Some(term) => finish(term, input, &namespace, config, report, sink),
        None => Ok(()),
    }
}

fn malformed(input: &Input, line: u64, message: Malformed) -> Error {
    Error::parse(input.path(), line, message)
}

/// The kind under which a stanza other than a term is counted.
fn kind_of(word: &str) -> Option<&'static str> {
    match word {
        "Term" => None,
        "Typedef" => Some("Typedef"),
        "Instance" => Some("Instance"),
        _ => Some("of another kind"),
    }
}

fn clause(
    term: &mut Term,
    tag: &str,
    value: &str,
    config: &ImportConfig,
    report: &mut Report,
) -> std::result::Result<(), Malformed> {
    let id = |value: &str| syntax::id(value).map(|id| with_prefix(&id, config));
    let record = &mut term.record;
    match tag {
        "id" if record.id.is_empty() => record.id = id(value)?,
        "id" => return Err("a second id in one stanza".to_owned()),
        "name" => {
            let n_names = record.names.len();
            let scope = if term.has_name { Scope::Exact } else { Scope::Preferred };
            push_name(&mut record.names, &syntax::text(value), scope, report);
            term.has_name |= record.names.len() > n_names;
        }
        "synonym" => {
            let (text, rest) = syntax::quoted(value)?;
            push_name(&mut record.names, &text, scope(rest)?, report);
        }
        "exact_synonym" => old_synonym(record, value, Scope::Exact, report)?,
        "narrow_synonym" => old_synonym(record, value, Scope::Narrow, report)?,
        "broad_synonym" => old_synonym(record, value, Scope::Broad, report)?,
        "related_synonym" => old_synonym(record, value, Scope::Related, report)?,
        "alt_id" => record.alternative_ids.push(id(value)?),
        "xref" => match syntax::xref(value) {
            target if target.is_empty() => report.drop_one("cross-reference", "empty"),
            target => record.xrefs.push(XrefRecord::new(&target, predicate_of(value))),
        },
        "property_value" => record.xrefs.extend(mapping(value)),
        "def" if record.definition.is_some() => report.drop_one("definition", "repeated"),
        "def" => record.definition = Some(syntax::quoted(value)?.0).filter(|text| !text.trim().is_empty()),
        "is_a" => record.parents.push(id(value)?),
        "namespace" => record.source = syntax::text(value),
        "is_obsolete" => term.obsolete = truth(value)?,
        "replaced_by" => term.replaced_by.push(id(value)?),
        "relationship" | "intersection_of" | "union_of" => term.n_relations += 1,
        _ => {}
    }
    Ok(())
}

/// The predicate of a cross-reference, which Mondo gives as its source: `{source="MONDO:equivalentTo"}`.
fn predicate_of(value: &str) -> Predicate {
    let has = |word: &str| value.contains(&format!("\"MONDO:{word}\""));
    let words = [
        ("equivalentTo", Predicate::Exact),
        ("mondoIsNarrowerThanSource", Predicate::Broad),
        ("mondoIsBroaderThanSource", Predicate::Narrow),
        ("relatedTo", Predicate::Related),
    ];
    words.into_iter().find(|(word, _)| has(word)).map_or(Predicate::Xref, |(_, predicate)| predicate)
}

/// The mapping of `skos:exactMatch http://identifiers.org/mesh/D003924`; `None` for other properties.
fn mapping(value: &str) -> Option<XrefRecord> {
    let (property, rest) = value.split_once(char::is_whitespace)?;
    property.rsplit([':', '#', '/']).next()?.strip_suffix("Match")?;
    let target = syntax::xref(rest.trim_start().trim_start_matches('"'));
    Some(XrefRecord::new(&target, Predicate::from_name(property)?)).filter(|xref| !xref.id.is_empty())
}

fn old_synonym(
    record: &mut ConceptRecord,
    value: &str,
    scope: Scope,
    report: &mut Report,
) -> std::result::Result<(), Malformed> {
    push_name(&mut record.names, &syntax::quoted(value)?.0, scope, report);
    Ok(())
}

/// The scope after a quoted synonym; related by default.
fn scope(rest: &str) -> std::result::Result<Scope, Malformed> {
    let end = rest.find(|c: char| c.is_whitespace() || c == '[').unwrap_or(rest.len());
    match &rest[..end] {
        "EXACT" => Ok(Scope::Exact),
        "NARROW" => Ok(Scope::Narrow),
        "BROAD" => Ok(Scope::Broad),
        "RELATED" | "" => Ok(Scope::Related),
        other => Err(format!("`{other}` is not a synonym scope (EXACT, NARROW, BROAD or RELATED)")),
    }
}

fn truth(value: &str) -> std::result::Result<bool, Malformed> {
    match syntax::text(value).as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("`{other}` is neither true nor false")),
    }
}

fn finish(
    mut term: Term,
    input: &Input,
    namespace: &str,
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    if term.record.id.is_empty() {
        return Err(malformed(input, term.line, "the stanza has no id".to_owned()));
    }
    report.n_read += 1;
    report.set_line(term.line);
    report.register_id("term", &term.record.id);
    if term.obsolete && !config.keep_obsolete {
        report.drop_one("term", "obsolete");
        super::xrefs_as_ids(&mut term.record, config);
        return replace(term.record, term.replaced_by, report, sink);
    }
    report.drop_many("relation", "not is_a", term.n_relations);
    if term.record.source.is_empty() {
        namespace.clone_into(&mut term.record.source);
    }
    preferred_first(&mut term.record.names);
    keep(term.record, config, report, sink)?;
    Ok(())
}

fn preferred_first(names: &mut [NameRecord]) {
    if let Some(at) = names.iter().position(|name| name.scope == Scope::Preferred) {
        names[..=at].rotate_right(1);
    }
}

/// Adds the ids of an obsolete record to its replacement, provided that there is exactly one.
pub(super) fn replace(
    record: ConceptRecord,
    replaced_by: Vec<String>,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    match &replaced_by[..] {
        [] => Ok(()),
        [target] if *target == record.id => {
            report.drop_one("replacement", "self-reference");
            Ok(())
        }
        [target] => {
            let mut alternative_ids = vec![record.id];
            alternative_ids.extend(record.alternative_ids);
            sink(ConceptRecord { id: target.clone(), alternative_ids, ..ConceptRecord::default() })
        }
        _ => {
            report.drop_one("replacement", "several for one term");
            Ok(())
        }
    }
}
