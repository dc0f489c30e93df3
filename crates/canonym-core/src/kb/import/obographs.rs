//! OBO Graphs JSON: nodes of type `CLASS` and `is_a` edges of all graphs in the file.
//!
//! The file is streamed; at most one node is in memory. An edge becomes a record with an id and a parent, which the
//! builder merges. IRIs are shortened: `http://purl.obolibrary.org/obo/DOID_8718` becomes `DOID:8718`.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use super::{ImportConfig, Report, Sink, keep, obo, push_name, with_prefix};
use crate::input::Input;
use crate::kb::{ConceptRecord, Predicate, Scope, XrefRecord};
use crate::{Error, Result};

/// Maximum size of a node, edge or key, in bytes of JSON.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum size of a skipped value, in bytes of JSON. It is not stored, but its nesting is tracked.
const MAX_IGNORED_BYTES: u64 = 1 << 30;

/// Maximum number of consecutive edges of a concept that are combined into one record.
const MAX_PARENTS: usize = 1 << 10;

#[derive(Deserialize)]
struct Node {
    id: String,
    #[serde(default)]
    lbl: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    meta: Option<Meta>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    definition: Option<Value>,
    synonyms: Vec<Value>,
    xrefs: Vec<Value>,
    basic_property_values: Vec<Value>,
    deprecated: bool,
}

/// A definition, a synonym, a cross-reference or a property.
#[derive(Deserialize)]
struct Value {
    #[serde(default)]
    pred: String,
    val: String,
}

#[derive(Deserialize)]
struct Edge {
    sub: String,
    pred: String,
    obj: String,
}

/// Reads all graphs of a file.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let left = Rc::new(Cell::new(MAX_BYTES));
    let reader = BufReader::with_capacity(1 << 16, Bounded { rest: &mut *input, left: left.clone() });
    let mut import = Import { config, report, sink, left, dropped: HashSet::new(), pending: None, failure: None };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let result = (Part { import: &mut import, level: Level::File }).deserialize(&mut json).and_then(|()| json.end());
    let flushed = if result.is_ok() { import.flush() } else { Ok(()) };
    if let Some(failure) = import.failure.take() {
        return Err(failure);
    }
    match result {
        Ok(()) => flushed,
        Err(error) if error.is_io() && import.left.get() == 0 => Err(Error::limit(
            input.path(),
            format!(
                "a node or edge is longer than {MAX_BYTES} bytes, or another element is longer than {MAX_IGNORED_BYTES}"
            ),
        )),
        Err(error) => Err(input.json_error(error)),
    }
}

/// A reader limited to the byte budget of the current element.
struct Bounded<'a> {
    rest: &'a mut Input,
    left: Rc<Cell<u64>>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("the element is too long"));
        }
        let n_bytes = self.rest.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(n_bytes as u64));
        Ok(n_bytes)
    }
}

struct Import<'a, 'b> {
    config: &'a ImportConfig,
    report: &'a mut Report,
    sink: &'a mut Sink<'b>,
    /// Remaining bytes of the current element.
    left: Rc<Cell<u64>>,
    /// Hashes of dropped ids, whose edges are dropped too.
    dropped: HashSet<u64>,
    /// Parents not emitted yet.
    pending: Option<ConceptRecord>,
    /// An error of the sink, kept here because it cannot pass through the JSON reader.
    failure: Option<Error>,
}

impl Import<'_, '_> {
    fn node(&mut self, node: Node) -> Result<()> {
        self.report.n_read += 1;
        let id = with_prefix(&short_id(&node.id), self.config);
        let meta = node.meta.unwrap_or_default();
        let reason = match node.kind.as_deref() {
            Some("CLASS") => None,
            Some("PROPERTY") => Some("property"),
            Some("INDIVIDUAL") => Some("individual"),
            Some(_) => Some("of another type"),
            None => Some("without a type"),
        };
        if let Some(reason) = reason {
            self.dropped.insert(xxh3_64(id.as_bytes()));
            self.report.drop_one("node", reason);
            return Ok(());
        }
        let mut record = ConceptRecord { id, ..ConceptRecord::default() };
        let mut replaced_by = Vec::new();
        for property in meta.basic_property_values {
            let target = || with_prefix(&short_id(&property.val), self.config);
            if property.pred.ends_with("hasAlternativeId") {
                record.alternative_ids.push(target());
            } else if property.pred.ends_with("Match") {
                let predicate = Predicate::from_name(&property.pred);
                record.xrefs.extend(predicate.map(|predicate| XrefRecord::new(&property.val, predicate)));
            } else if property.pred.ends_with("IAO_0100001") {
                replaced_by.push(target());
            } else if property.pred.ends_with("hasOBONamespace") {
                record.source = property.val;
            }
        }
        record.xrefs.extend(meta.xrefs.iter().map(|xref| XrefRecord::plain(&xref.val)));
        if meta.deprecated && !self.config.keep_obsolete {
            self.dropped.insert(xxh3_64(record.id.as_bytes()));
            self.report.drop_one("term", "obsolete");
            super::xrefs_as_ids(&mut record, self.config);
            return obo::replace(record, replaced_by, self.report, self.sink);
        }
        if let Some(label) = &node.lbl {
            push_name(&mut record.names, label, Scope::Preferred, self.report);
        }
        for synonym in meta.synonyms {
            match scope(&synonym.pred) {
                Some(scope) => push_name(&mut record.names, &synonym.val, scope, self.report),
                None => self.report.drop_one("name", "unknown scope"),
            }
        }
        record.definition = meta.definition.map(|value| value.val).filter(|text| !text.trim().is_empty());
        let hash = xxh3_64(record.id.as_bytes());
        if !keep(record, self.config, self.report, self.sink)? {
            self.dropped.insert(hash);
        }
        Ok(())
    }

    fn edge(&mut self, edge: Edge) -> Result<()> {
        if edge.pred != "is_a" && !edge.pred.ends_with("subClassOf") {
            self.report.drop_one("relation", "not is_a");
            return Ok(());
        }
        let id = with_prefix(&short_id(&edge.sub), self.config);
        if self.dropped.contains(&xxh3_64(id.as_bytes())) {
            self.report.drop_one("parent", "of a dropped node");
            return Ok(());
        }
        let parent = with_prefix(&short_id(&edge.obj), self.config);
        match &mut self.pending {
            Some(record) if record.id == id && record.parents.len() < MAX_PARENTS => record.parents.push(parent),
            _ => {
                self.flush()?;
                self.pending = Some(ConceptRecord { id, parents: vec![parent], ..ConceptRecord::default() });
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        match self.pending.take() {
            Some(record) => (self.sink)(record),
            None => Ok(()),
        }
    }
}

fn scope(predicate: &str) -> Option<Scope> {
    match predicate.rsplit(['#', '/']).next()? {
        "hasExactSynonym" => Some(Scope::Exact),
        "hasNarrowSynonym" => Some(Scope::Narrow),
        "hasBroadSynonym" => Some(Scope::Broad),
        "hasRelatedSynonym" => Some(Scope::Related),
        _ => None,
    }
}

/// Shortens an IRI: `http://purl.obolibrary.org/obo/DOID_8718` becomes `DOID:8718`.
///
/// `Thesaurus.owl#C123` becomes `NCIT:C123`. IRIs not of the form `…/PREFIX_LOCAL` are unchanged.
pub fn short_id(iri: &str) -> String {
    let iri = iri.trim();
    if !iri.starts_with("http://") && !iri.starts_with("https://") {
        return iri.to_owned();
    }
    let Some(last) = iri.rsplit(['/', '#']).next() else { return iri.to_owned() };
    if iri.ends_with(&format!("Thesaurus.owl#{last}")) && last.starts_with('C') {
        return format!("NCIT:{last}");
    }
    let word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    match last.rsplit_once('_') {
        Some((prefix, local))
            if word(prefix)
                && word(local)
                && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
                && local.bytes().any(|byte| byte.is_ascii_digit()) =>
        {
            format!("{prefix}:{local}")
        }
        _ => iri.to_owned(),
    }
}

/// Position in the structure of the file.
#[derive(Clone, Copy)]
enum Level {
    /// The outermost object or a graph; both can contain nodes and edges.
    File,
    Graphs,
    Nodes,
    Edges,
}

/// A part of the file that is parsed as a stream.
struct Part<'i, 'a, 'b> {
    import: &'i mut Import<'a, 'b>,
    level: Level,
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        match self.level {
            Level::File => deserializer.deserialize_map(self),
            Level::Graphs | Level::Nodes | Level::Edges => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Part<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.level {
            Level::File => "an object with graphs, or with nodes and edges",
            Level::Graphs => "a list of graphs",
            Level::Nodes => "a list of nodes",
            Level::Edges => "a list of edges",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        loop {
            self.import.left.set(MAX_BYTES);
            let Some(key) = map.next_key::<String>()? else { return Ok(()) };
            let level = match key.as_str() {
                "graphs" => Level::Graphs,
                "nodes" => Level::Nodes,
                "edges" => Level::Edges,
                "meta" => {
                    let about: serde_json::Value = map.next_value()?;
                    if let Some(version) = about["version"].as_str() {
                        self.import.report.release = super::release_of(version);
                    }
                    continue;
                }
                _ => {
                    self.import.left.set(MAX_IGNORED_BYTES);
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(Part { import: &mut *self.import, level })?;
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        loop {
            self.import.left.set(MAX_BYTES);
            let taken = match self.level {
                Level::Graphs => {
                    let graph = Part { import: &mut *self.import, level: Level::File };
                    if list.next_element_seed(graph)?.is_none() {
                        return Ok(());
                    }
                    Ok(())
                }
                Level::Nodes => match list.next_element()? {
                    Some(node) => self.import.node(node),
                    None => return Ok(()),
                },
                Level::File | Level::Edges => match list.next_element()? {
                    Some(edge) => self.import.edge(edge),
                    None => return Ok(()),
                },
            };
            if let Err(error) = taken {
                self.import.failure = Some(error);
                return Err(A::Error::custom("the record was refused"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened() {
        let cases = [
            ("http://purl.obolibrary.org/obo/DOID_8718", "DOID:8718"),
            ("http://purl.obolibrary.org/obo/NCBITaxon_Union_0000023", "NCBITaxon_Union:0000023"),
            ("http://www.orpha.net/ORDO/Orphanet_124", "Orphanet:124"),
            ("http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl#C3", "NCIT:C3"),
            ("http://purl.obolibrary.org/obo/NCIT_C17425", "NCIT:C17425"),
            ("http://purl.obolibrary.org/obo/doid#has_symptom", "http://purl.obolibrary.org/obo/doid#has_symptom"),
            ("http://www.orpha.net/ORDO/ObsoleteClass", "http://www.orpha.net/ORDO/ObsoleteClass"),
            ("DOID:4", "DOID:4"),
        ];
        for (long, short) in cases {
            assert_eq!(short_id(long), short);
        }
    }
}
