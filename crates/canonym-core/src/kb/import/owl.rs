//! OWL ontologies as RDF/XML or Turtle: annotations and superclasses of named classes.
//!
//! Imports labels, synonyms (`skos:altLabel`, and oboInOwl synonyms with scopes), definitions, named superclasses,
//! alternative ids and namespaces; restrictions, axiom annotations and individuals are ignored. The file is read as a
//! stream of triples. The triples of a class may be far apart: a bounded number of subjects is kept open, and partial
//! records are emitted for the builder to merge. A deprecation that comes after its class was emitted is too late and
//! is counted. IRIs are shortened by [`super::obographs::short_id`].

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use oxrdf::{NamedOrBlankNode, Term, Triple};
use oxrdfxml::{RdfXmlParseError, RdfXmlParser};
use oxttl::{TurtleParseError, TurtleParser};
use xxhash_rust::xxh3::xxh3_64;

use super::obographs::short_id;
use super::owl_guard::{Guard, State};
use super::rrf_rows::same_language;
use super::{ImportConfig, Report, Sink, keep, obo, push_name, with_prefix};
use crate::input::Input;
use crate::kb::{ConceptRecord, NameRecord, Predicate, Scope, XrefRecord};
use crate::{Error, Result};

/// Maximum number of open subjects; beyond it the oldest is emitted.
const MAX_OPEN_SUBJECTS: usize = 1 << 14;

/// Maximum size of subjects that are not known to be classes yet, in bytes.
const MAX_WAITING_BYTES: usize = 256 << 20;

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
const OWL: &str = "http://www.w3.org/2002/07/owl#";
const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
const OBO: &str = "http://purl.obolibrary.org/obo/";
const OBO_IN_OWL: &str = "http://www.geneontology.org/formats/oboInOwl#";

/// The meaning of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Property {
    Type,
    Label,
    Name(Scope),
    Definition,
    Parent,
    Deprecated,
    AlternativeId,
    Reference,
    Mapping(Predicate),
    Version,
    Namespace,
    ReplacedBy,
}

const PROPERTIES: [(&str, &str, Property); 22] = [
    (RDF, "type", Property::Type),
    (RDFS, "label", Property::Label),
    (RDFS, "subClassOf", Property::Parent),
    (SKOS, "prefLabel", Property::Label),
    (SKOS, "altLabel", Property::Name(Scope::Exact)),
    (SKOS, "definition", Property::Definition),
    (SKOS, "exactMatch", Property::Mapping(Predicate::Exact)),
    (SKOS, "closeMatch", Property::Mapping(Predicate::Close)),
    (SKOS, "narrowMatch", Property::Mapping(Predicate::Narrow)),
    (SKOS, "broadMatch", Property::Mapping(Predicate::Broad)),
    (SKOS, "relatedMatch", Property::Mapping(Predicate::Related)),
    (OWL, "versionInfo", Property::Version),
    (OWL, "versionIRI", Property::Version),
    (OBO_IN_OWL, "hasExactSynonym", Property::Name(Scope::Exact)),
    (OBO_IN_OWL, "hasNarrowSynonym", Property::Name(Scope::Narrow)),
    (OBO_IN_OWL, "hasBroadSynonym", Property::Name(Scope::Broad)),
    (OBO_IN_OWL, "hasRelatedSynonym", Property::Name(Scope::Related)),
    (OBO_IN_OWL, "hasAlternativeId", Property::AlternativeId),
    (OBO_IN_OWL, "hasDbXref", Property::Reference),
    (OBO_IN_OWL, "hasOBONamespace", Property::Namespace),
    (OBO, "IAO_0000115", Property::Definition),
    (OBO, "IAO_0100001", Property::ReplacedBy),
];

fn property(iri: &str) -> Option<Property> {
    if iri.strip_prefix(OWL) == Some("deprecated") {
        return Some(Property::Deprecated);
    }
    let known = PROPERTIES.iter().find(|(space, name, _)| iri.strip_prefix(space) == Some(name));
    known.map(|(_, _, property)| *property)
}

/// Reads a file.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    let xml = is_xml(input)?;
    let path = input.path().to_path_buf();
    let state = Rc::new(RefCell::new(State::default()));
    let mut import = Import::new(config, report, sink);
    let failure = {
        let guard = Guard::new(input, state.clone(), xml);
        let triples: &mut dyn Iterator<Item = std::result::Result<Triple, Failure>> = match xml {
            true => &mut RdfXmlParser::new().lenient().for_reader(guard).map(|triple| triple.map_err(Failure::from)),
            false => &mut TurtleParser::new().lenient().for_reader(guard).map(|triple| triple.map_err(Failure::from)),
        };
        let mut failure = None;
        for triple in triples {
            match triple {
                Ok(triple) => import.triple(triple)?,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
            state.borrow_mut().forget_bytes();
        }
        failure
    };
    let state = state.borrow();
    let line = state.n_lines.max(1);
    match failure {
        Some(_) if state.refusal.is_some() => {
            let what = state.refusal.clone().unwrap_or_default();
            Err(Error::limit(&path, format!("{what}, near line {line}")))
        }
        Some(Failure::Io(error)) if error.kind() == std::io::ErrorKind::OutOfMemory => {
            Err(Error::limit(&path, format!("a token is too long, near line {line}")))
        }
        Some(Failure::Io(error)) => Err(input.read_error(error)),
        Some(Failure::Syntax(at, message)) => {
            let what = if xml { "RDF/XML" } else { "Turtle" };
            Err(Error::parse(&path, at.unwrap_or(line), format!("invalid {what}: {message}")))
        }
        None if xml && !state.is_whole() => {
            Err(Error::parse(&path, line, "the file is truncated").with_hint("download or export it again"))
        }
        None => import.finish(),
    }
}

/// Whether a file is RDF/XML; otherwise it is read as Turtle.
fn is_xml(input: &Input) -> Result<bool> {
    let head = String::from_utf8_lossy(input.head());
    let text = head.trim_start_matches('\u{feff}').trim_start();
    let foreign = if text.starts_with('<') && text.contains("<Ontology") && !text.contains(":RDF") {
        Some("OWL/XML")
    } else if text.starts_with("Prefix(") || text.starts_with("Ontology(") {
        Some("OWL functional syntax")
    } else if text.starts_with("Prefix:") || text.starts_with("Ontology:") {
        Some("OWL Manchester syntax")
    } else {
        None
    };
    match foreign {
        Some(what) => {
            let error = Error::parse(input.path(), 1, format!("{what} is not supported"));
            Err(error.with_hint("convert the ontology to RDF/XML, Turtle or OBO, for example with ROBOT"))
        }
        None => {
            let beginnings = ["<?xml", "<!--", "<!DOCTYPE", "<rdf:RDF"];
            Ok(beginnings.iter().any(|start| text.starts_with(start)) || text.contains("xmlns"))
        }
    }
}

/// Why reading stopped.
enum Failure {
    Io(std::io::Error),
    /// The line, if known, and the message.
    Syntax(Option<u64>, String),
}

impl From<RdfXmlParseError> for Failure {
    fn from(error: RdfXmlParseError) -> Failure {
        match error {
            RdfXmlParseError::Io(error) => Failure::Io(error),
            RdfXmlParseError::Syntax(error) => Failure::Syntax(None, error.to_string()),
        }
    }
}

impl From<TurtleParseError> for Failure {
    fn from(error: TurtleParseError) -> Failure {
        match error {
            TurtleParseError::Io(error) => Failure::Io(error),
            TurtleParseError::Syntax(error) => {
                Failure::Syntax(Some(error.location().start.line + 1), error.message().to_owned())
            }
        }
    }
}

/// The content of a subject since it was last emitted.
#[derive(Default)]
struct Part {
    /// Whether it is a class, if known.
    class: Option<bool>,
    labels: Vec<(usize, String)>,
    record: ConceptRecord,
    replaced_by: Vec<String>,
    deprecated: bool,
    /// Whether it is the ontology itself.
    ontology: bool,
    version: Option<String>,
    n_bytes: usize,
}

struct Import<'a, 'b> {
    config: &'a ImportConfig,
    languages: Vec<String>,
    report: &'a mut Report,
    sink: &'a mut Sink<'b>,
    open: HashMap<String, Part>,
    /// The keys of `open`, oldest first.
    order: VecDeque<String>,
    /// Subjects not known to be classes yet.
    waiting: Vec<(String, Part)>,
    n_waiting: usize,
    /// Hashes of emitted classes, and of dropped ones.
    classes: HashSet<u64>,
    dropped: HashSet<u64>,
}

impl<'a, 'b> Import<'a, 'b> {
    fn new(config: &'a ImportConfig, report: &'a mut Report, sink: &'a mut Sink<'b>) -> Import<'a, 'b> {
        let languages = if config.languages.is_empty() { vec!["en".to_owned()] } else { config.languages.clone() };
        Import {
            config,
            languages,
            report,
            sink,
            open: HashMap::new(),
            order: VecDeque::new(),
            waiting: Vec::new(),
            n_waiting: 0,
            classes: HashSet::new(),
            dropped: HashSet::new(),
        }
    }

    fn triple(&mut self, triple: Triple) -> Result<()> {
        let NamedOrBlankNode::NamedNode(subject) = triple.subject else { return Ok(()) };
        let Some(property) = property(triple.predicate.as_str()) else { return Ok(()) };
        let subject = subject.into_string();
        if !self.open.contains_key(&subject) {
            if self.open.len() >= MAX_OPEN_SUBJECTS {
                self.hand_on_oldest()?;
            }
            self.order.push_back(subject.clone());
        }
        let config = self.config;
        let part = self.open.entry(subject).or_default();
        match (property, triple.object) {
            (Property::Type, Term::NamedNode(class)) => {
                let class = class.as_str();
                if class.strip_prefix(OWL) == Some("Class") || class.strip_prefix(RDFS) == Some("Class") {
                    part.class = Some(true);
                } else if class.starts_with(OWL) {
                    part.class = part.class.or(Some(false));
                    part.ontology |= class.strip_prefix(OWL) == Some("Ontology");
                }
            }
            (Property::Parent, Term::NamedNode(parent)) => {
                part.record.parents.push(with_prefix(&short(parent.as_str(), config), config));
            }
            (Property::Parent, _) => self.report.drop_one("relation", "not a named class"),
            (Property::AlternativeId, object) => part.record.alternative_ids.extend(id_of(object, config)),
            (Property::ReplacedBy, object) => part.replaced_by.extend(id_of(object, config)),
            (Property::Reference, object) => part.record.xrefs.extend(xref_of(object, Predicate::Xref)),
            (Property::Mapping(predicate), object) => part.record.xrefs.extend(xref_of(object, predicate)),
            (Property::Version, object) => {
                part.version = text_of(&object).and_then(super::release_of).or(part.version.take())
            }
            (property, Term::Literal(literal)) => {
                let (text, _, language) = literal.destruct();
                part.n_bytes += text.len();
                literal_of(part, property, text, language, &self.languages, self.report);
            }
            _ => {}
        }
        Ok(())
    }

    fn hand_on_oldest(&mut self) -> Result<()> {
        let Some(subject) = self.order.pop_front() else { return Ok(()) };
        let Some(part) = self.open.remove(&subject) else { return Ok(()) };
        let hash = xxh3_64(subject.as_bytes());
        if part.class.is_none() && !self.classes.contains(&hash) && !self.dropped.contains(&hash) {
            self.n_waiting += subject.len() + part.n_bytes + size_of::<Part>();
            if self.n_waiting > MAX_WAITING_BYTES {
                let what =
                    format!("more than {MAX_WAITING_BYTES} bytes of statements precede the types of their subjects");
                return Err(Error::too_many(what).with_hint("sort the triples by subject"));
            }
            self.waiting.push((subject, part));
            return Ok(());
        }
        self.hand_on(&subject, hash, part)
    }

    fn hand_on(&mut self, subject: &str, hash: u64, mut part: Part) -> Result<()> {
        if self.dropped.contains(&hash) {
            return Ok(());
        }
        let known = self.classes.contains(&hash);
        if part.ontology && part.version.is_some() {
            self.report.release = part.version.take();
        }
        if !known && part.class != Some(true) {
            self.dropped.insert(hash);
            self.report.drop_one("subject", "not a class");
            return Ok(());
        }
        part.record.id = with_prefix(&short(subject, self.config), self.config);
        part.labels.sort_by_key(|(rank, _)| *rank);
        let labels = part.labels.into_iter().enumerate().map(|(index, (_, text))| NameRecord {
            text,
            scope: if index == 0 { Scope::Preferred } else { Scope::Exact },
        });
        part.record.names.splice(0..0, labels);
        if !known {
            self.report.n_read += 1;
        }
        if part.deprecated && !self.config.keep_obsolete {
            if known {
                self.report.drop_one("deprecation", "after its class was imported");
            } else {
                self.dropped.insert(hash);
                self.report.drop_one("term", "obsolete");
                super::xrefs_as_ids(&mut part.record, self.config);
                return obo::replace(part.record, part.replaced_by, self.report, self.sink);
            }
        }
        self.classes.insert(hash);
        if known {
            super::xrefs_as_ids(&mut part.record, self.config);
            return (self.sink)(part.record);
        }
        if !keep(part.record, self.config, self.report, self.sink)? {
            self.dropped.insert(hash);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        while !self.order.is_empty() {
            self.hand_on_oldest()?;
        }
        for (subject, part) in std::mem::take(&mut self.waiting) {
            self.hand_on(&subject, xxh3_64(subject.as_bytes()), part)?;
        }
        Ok(())
    }
}

fn literal_of(
    part: &mut Part,
    property: Property,
    text: String,
    language: Option<String>,
    languages: &[String],
    report: &mut Report,
) {
    let tag = language.as_deref().map(|tag| tag.split('-').next().unwrap_or_default());
    let rank = match tag {
        None => Some(0),
        Some(tag) => languages.iter().position(|wanted| same_language(wanted, tag)),
    };
    let what = match property {
        Property::Label | Property::Name(_) => "name",
        Property::Definition => "definition",
        _ => "",
    };
    let Some(rank) = rank.filter(|_| !what.is_empty()) else {
        match property {
            Property::Deprecated => part.deprecated |= matches!(text.trim(), "true" | "1"),
            Property::Namespace => part.record.source = text.trim().to_owned(),
            _ if !what.is_empty() => report.drop_one(what, "language"),
            _ => {}
        }
        return;
    };
    match property {
        Property::Name(scope) => push_name(&mut part.record.names, &text, scope, report),
        Property::Label if text.trim().is_empty() => report.drop_one("name", "empty"),
        Property::Label => part.labels.push((rank, text.trim().to_owned())),
        _ if part.record.definition.is_some() => report.drop_one("definition", "repeated"),
        _ => part.record.definition = Some(text).filter(|text| !text.trim().is_empty()),
    }
}

/// The id given by a literal or an IRI.
fn id_of(object: Term, config: &ImportConfig) -> Option<String> {
    let id = match object {
        Term::NamedNode(node) => short(node.as_str(), config),
        Term::Literal(literal) => short_id(literal.value()),
        Term::BlankNode(_) => return None,
    };
    Some(with_prefix(&id, config)).filter(|id| !id.is_empty())
}

/// The text of a literal or an IRI.
fn text_of(object: &Term) -> Option<&str> {
    match object {
        Term::NamedNode(node) => Some(node.as_str()),
        Term::Literal(literal) => Some(literal.value()),
        Term::BlankNode(_) => None,
    }
}

fn xref_of(object: Term, predicate: Predicate) -> Option<XrefRecord> {
    Some(XrefRecord::new(text_of(&object)?, predicate)).filter(|xref| !xref.id.is_empty())
}

/// The short form of an IRI. If none is known and the user gives a prefix, the last segment with that prefix.
fn short(iri: &str, config: &ImportConfig) -> String {
    let id = short_id(iri);
    match id.rsplit(['#', '/']).next() {
        Some(last) if id.contains("://") && config.prefix.is_some() && !last.is_empty() => last.to_owned(),
        _ => id,
    }
}
