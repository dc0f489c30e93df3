//! MeSH XML: descriptors (`descYYYY.xml`), supplementary records (`suppYYYY.xml`) and qualifiers (`qualYYYY.xml`).
//!
//! A record contains concepts, and a concept contains terms. The preferred term of the record is the preferred name;
//! other terms of the preferred concept are exact; terms of another concept have the scope of its relation to the
//! preferred one (`NRW`, `BRD`, `REL`), related by default. The scope note of the preferred concept is the definition.
//! Parents come from tree numbers and from the descriptors that a supplementary record is mapped to. Types are semantic
//! types (in files from before 2018), else the first segments of the tree numbers (`C04`), or the class of a
//! supplementary record (`SCR_Chemical`). Histories, indexing notes, allowed qualifiers and pharmacological actions are
//! ignored.

use std::collections::HashMap;

use super::mesh_relations::{self as mesh, Relations};
use super::{ImportConfig, Report, Sink, distinct, keep, push_name, with_default_prefix, with_prefix};
use crate::input::Source;
use crate::input::xml::{Element, Event, XmlReader};
use crate::kb::{ConceptRecord, NameRecord, Scope, XrefRecord};
use crate::{Error, Result};

/// Maximum size of a record in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Elements that contain records.
const SETS: [&str; 3] = ["DescriptorRecordSet", "SupplementalRecordSet", "QualifierRecordSet"];

/// Record elements, and the names of their children.
const RECORDS: [(&str, RecordKind); 3] = [
    ("DescriptorRecord", RecordKind { ui: "DescriptorUI", name: "DescriptorName" }),
    ("SupplementalRecord", RecordKind { ui: "SupplementalRecordUI", name: "SupplementalRecordName" }),
    ("QualifierRecord", RecordKind { ui: "QualifierUI", name: "QualifierName" }),
];

#[derive(Debug, Clone, Copy)]
struct RecordKind {
    ui: &'static str,
    name: &'static str,
}

/// A record being read.
#[derive(Default)]
struct MeshRecord {
    ui: String,
    name: String,
    trees: Vec<String>,
    mapped_to: Vec<String>,
    class: Option<&'static str>,
    note: String,
    concepts: Vec<Concept>,
    /// Relation, first and second concept: with `NRW`, the second is narrower than the first.
    relations: Vec<[String; 3]>,
}

#[derive(Default)]
struct Concept {
    preferred: bool,
    ui: String,
    definition: String,
    semantic_types: Vec<String>,
    registry_ids: Vec<String>,
    /// Terms, and whether each is the preferred term of the record.
    terms: Vec<(String, bool)>,
}

/// Reads all files of `sources`; the parent of a tree number can be in another file.
pub fn read(sources: &[Source], config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let config = &with_default_prefix(config, mesh::PREFIX);
    let mut relations = Relations::default();
    for source in sources {
        let mut xml = XmlReader::new(source.open()?)?;
        read_file(&mut xml, config, &mut relations, report, sink)?;
    }
    relations.finish(report, sink)
}

fn read_file(
    xml: &mut XmlReader,
    config: &ImportConfig,
    relations: &mut Relations,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    loop {
        let kind = match xml.next_event()? {
            Event::Eof => return Ok(()),
            Event::Start(element) => match RECORDS.iter().find(|(name, _)| *name == element.name()) {
                Some((_, kind)) => (*kind, class(element)?),
                None if SETS.contains(&element.name()) => continue,
                None => {
                    let message = format!("`{}` is not a MeSH element", element.name().escape_debug());
                    let hint = "use an unmodified descYYYY.xml, suppYYYY.xml or qualYYYY.xml from NLM";
                    return Err(xml.error(message).with_hint(hint));
                }
            },
            _ => continue,
        };
        let line = xml.line();
        let (kind, class) = kind;
        let mut record = MeshRecord { class, ..MeshRecord::default() };
        read_record(xml, kind, &mut record)?;
        for (missing, what) in [(&record.ui, kind.ui), (&record.name, kind.name)] {
            if missing.trim().is_empty() {
                return Err(Error::parse(xml.path(), line, format!("the record has no {what}")));
            }
        }
        report.n_read += 1;
        finish(record, config, relations, report, sink)?;
    }
}

fn class(element: Element<'_>) -> Result<Option<&'static str>> {
    Ok(element.attribute("SCRClass")?.and_then(|number| mesh::class_of(number.trim())))
}

/// Reads the content of a record element.
fn read_record(xml: &mut XmlReader, kind: RecordKind, record: &mut MeshRecord) -> Result<()> {
    let (outside, line, start) = (xml.depth() - 1, xml.line(), xml.n_bytes());
    // Path of the open elements below the record, joined by `/`.
    let mut path = String::new();
    while xml.depth() > outside {
        if xml.n_bytes() - start > MAX_BYTES {
            let message = format!("the record at line {line} is longer than {MAX_BYTES} bytes");
            return Err(Error::limit(xml.path(), message));
        }
        match xml.next_event()? {
            Event::Start(element) => {
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(element.name());
                begin(record, &path, element)?;
            }
            Event::Text(text) => take_text(record, kind, &path, text),
            Event::End => path.truncate(path.rfind('/').unwrap_or(0)),
            Event::Eof => break,
            _ => {}
        }
    }
    Ok(())
}

/// Prepares the fields for an element.
fn begin(record: &mut MeshRecord, path: &str, element: Element<'_>) -> Result<()> {
    let yes = |name: &str| Ok::<bool, Error>(element.attribute(name)?.is_some_and(|value| value.trim() == "Y"));
    let Some(inner) = path.strip_prefix("ConceptList/Concept") else {
        match path {
            "TreeNumberList/TreeNumber" => record.trees.push(String::new()),
            "HeadingMappedToList/HeadingMappedTo" => record.mapped_to.push(String::new()),
            _ => {}
        }
        return Ok(());
    };
    if inner.is_empty() {
        record.concepts.push(Concept { preferred: yes("PreferredConceptYN")?, ..Concept::default() });
        return Ok(());
    }
    let Some(concept) = record.concepts.last_mut() else { return Ok(()) };
    match inner {
        "/TermList/Term" => concept.terms.push((String::new(), yes("RecordPreferredTermYN")?)),
        "/SemanticTypeList/SemanticType" => concept.semantic_types.push(String::new()),
        "/RegistryNumber"
        | "/RegistryNumberList/RegistryNumber"
        | "/RelatedRegistryNumberList/RelatedRegistryNumber" => {
            concept.registry_ids.push(String::new());
        }
        "/ConceptRelationList/ConceptRelation" => {
            let relation = element.attribute("RelationName")?.unwrap_or_default();
            record.relations.push([relation, String::new(), String::new()]);
        }
        _ => {}
    }
    Ok(())
}

/// Appends text to the field of its element.
fn take_text(record: &mut MeshRecord, kind: RecordKind, path: &str, text: &str) {
    let field = match path.strip_prefix("ConceptList/Concept/") {
        Some(inner) => {
            let Some(concept) = record.concepts.last_mut() else { return };
            match inner {
                "ConceptUI" => Some(&mut concept.ui),
                "ScopeNote" => Some(&mut concept.definition),
                "TermList/Term/String" => concept.terms.last_mut().map(|(term, _)| term),
                "SemanticTypeList/SemanticType/SemanticTypeUI" => concept.semantic_types.last_mut(),
                "RegistryNumber"
                | "RegistryNumberList/RegistryNumber"
                | "RelatedRegistryNumberList/RelatedRegistryNumber" => concept.registry_ids.last_mut(),
                "ConceptRelationList/ConceptRelation/Concept1UI" => record.relations.last_mut().map(|it| &mut it[1]),
                "ConceptRelationList/ConceptRelation/Concept2UI" => record.relations.last_mut().map(|it| &mut it[2]),
                _ => None,
            }
        }
        None => match path {
            "TreeNumberList/TreeNumber" => record.trees.last_mut(),
            "HeadingMappedToList/HeadingMappedTo/DescriptorReferredTo/DescriptorUI" => record.mapped_to.last_mut(),
            "Note" => Some(&mut record.note),
            own if own == kind.ui => Some(&mut record.ui),
            own => own.strip_suffix("/String").filter(|own| *own == kind.name).map(|_| &mut record.name),
        },
    };
    if let Some(field) = field {
        field.push_str(text);
    }
}

fn finish(
    record: MeshRecord,
    config: &ImportConfig,
    relations: &mut Relations,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let trimmed = |texts: &[String]| -> Vec<String> {
        texts.iter().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    };
    let trees = trimmed(&record.trees);
    let names = names(&record, report);
    let mut types = Vec::new();
    let mut definition = None;
    let mut xrefs = Vec::new();
    for concept in &record.concepts {
        let note = concept.definition.trim();
        if concept.preferred {
            types.extend(trimmed(&concept.semantic_types));
            definition = Some(note.to_owned()).filter(|note| !note.is_empty());
        } else if !note.is_empty() {
            report.drop_one("definition", "not of the preferred concept");
        }
        if concept.preferred {
            let ids = concept.registry_ids.iter().filter_map(|number| mesh::registry_id(number));
            xrefs.extend(ids.map(|id| XrefRecord::plain(&id)));
        }
    }
    let mut types = mesh::types(types, &trees);
    if types.is_empty() {
        types.extend(record.class.map(str::to_owned));
    }
    let note = record.note.trim();
    let id = with_prefix(&record.ui, config);
    // A `*` marks the major descriptors among several.
    let mapped_to = record.mapped_to.iter().map(|ui| ui.trim().trim_start_matches('*')).filter(|ui| !ui.is_empty());
    let parents = distinct(mapped_to.map(|ui| with_prefix(ui, config)));
    let kept = ConceptRecord {
        id: id.clone(),
        names,
        types,
        definition: definition.or_else(|| Some(note.to_owned()).filter(|note| !note.is_empty())),
        parents,
        alternative_ids: Vec::new(),
        xrefs,
        source: String::new(),
    };
    if keep(kept, config, report, sink)? {
        relations.add(&id, &trees);
    }
    Ok(())
}

/// Names of a record, the preferred one first.
fn names(record: &MeshRecord, report: &mut Report) -> Vec<NameRecord> {
    let main = record.concepts.iter().find(|concept| concept.preferred).map_or("", |concept| concept.ui.trim());
    let scopes = scopes(record, main);
    let mut names = Vec::new();
    push_name(&mut names, &record.name, Scope::Preferred, report);
    for concept in &record.concepts {
        let related = || scopes.get(concept.ui.trim()).copied().unwrap_or(Scope::Related);
        let scope = if concept.preferred { Scope::Exact } else { related() };
        for (term, preferred) in &concept.terms {
            // The heading is the preferred term, which is already first.
            if *preferred && concept.preferred && term.trim() == record.name.trim() {
                continue;
            }
            push_name(&mut names, term, scope, report);
        }
    }
    names
}

/// Scopes of the concepts related to the preferred concept `main`; the first relation of each concept counts.
fn scopes<'a>(record: &'a MeshRecord, main: &str) -> HashMap<&'a str, Scope> {
    let mut scopes = HashMap::new();
    for [word, first, second] in &record.relations {
        let Some(scope) = mesh::scope_of(word.trim()) else { continue };
        let (first, second) = (first.trim(), second.trim());
        if first == main {
            scopes.entry(second).or_insert(scope);
        } else if second == main {
            scopes.entry(first).or_insert(reversed(scope));
        }
    }
    scopes
}

/// The scope of the inverse relation.
fn reversed(scope: Scope) -> Scope {
    match scope {
        Scope::Narrow => Scope::Broad,
        Scope::Broad => Scope::Narrow,
        other => other,
    }
}
