//! Links of names as SSSOM mappings (TSV with metadata), the format of mappings between terminologies.
//!
//! A name is the subject, with an id or as a literal; the concept is the object. The predicate follows from how the name
//! agrees with the names of the concept, and from the scope of the name that agrees best:
//!
//! | agreement | preferred, exact | narrow | broad | related |
//! | --- | --- | --- | --- | --- |
//! | but for case, spelling variants and inflection | `skos:exactMatch` | `skos:broadMatch` | `skos:narrowMatch` | `skos:relatedMatch` |
//! | the same word roots, or similar letters | `skos:closeMatch` | `skos:broadMatch` | `skos:narrowMatch` | `skos:relatedMatch` |
//!
//! A name without a concept is mapped to `sssom:NoTermFound`. `kb build --join` and `--xrefs-from` read such files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::explain::{Agreement, agreement};
use super::{Candidate, Link};
use crate::kb::code_system::{iri_start, prefixes, version};
use crate::kb::{ConceptId, KnowledgeBase, Predicate, Scope};
use crate::numbers::rounded;

/// The columns.
pub const COLUMNS: [&str; 10] = [
    "subject_id",
    "subject_label",
    "subject_type",
    "predicate_id",
    "object_id",
    "object_label",
    "mapping_justification",
    "object_match_field",
    "match_string",
    "confidence",
];

/// Prefixes of the metadata.
const MAX_PREFIXES: usize = 200;

/// A name to be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Its id; empty for a literal.
    pub id: &'a str,
    /// The name.
    pub label: &'a str,
}

impl<'a> Subject<'a> {
    /// The subject of a line: a name, or an id and a name separated by a tab.
    pub fn of_line(line: &'a str) -> Subject<'a> {
        match line.split_once('\t') {
            Some((id, label)) => Subject { id: id.trim(), label: label.trim() },
            None => Subject { id: "", label: line.trim() },
        }
    }
}

/// The metadata and the header line. `model` made the links; `subjects` are ids whose prefixes are declared, too.
pub fn header<'a>(kb: &KnowledgeBase, model: &str, subjects: impl Iterator<Item = &'a str>) -> String {
    let mut spaces: BTreeMap<String, String> = BTreeMap::new();
    let fixed = [
        ("skos", "http://www.w3.org/2004/02/skos/core#"),
        ("semapv", "https://w3id.org/semapv/vocab/"),
        ("sssom", "https://w3id.org/sssom/"),
        ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
        ("oboInOwl", "http://www.geneontology.org/formats/oboInOwl#"),
    ];
    spaces.extend(fixed.map(|(prefix, space)| (prefix.to_owned(), space.to_owned())));
    let own = prefixes(kb);
    for prefix in own.iter().cloned().chain(subjects.filter_map(prefix_of).map(str::to_owned)) {
        if spaces.len() < MAX_PREFIXES && is_prefix(&prefix) && !spaces.contains_key(&prefix) {
            let start = iri_start(kb, &prefix);
            spaces.insert(prefix, start);
        }
    }
    let mut text = "#curie_map:\n".to_owned();
    for (prefix, space) in spaces {
        // In quotes, because YAML does not take values that end in a colon, and reads `NO` as false.
        writeln!(text, "#  \"{prefix}\": \"{}\"", unquoted(&space)).expect("a string takes all");
    }
    let meta = kb.meta();
    let fingerprint = kb.container().fingerprint();
    let releases: Vec<&str> =
        own.iter().map(|prefix| version(kb, prefix)).filter(|version| !version.is_empty()).collect();
    let rows = [
        ("mapping_set_id", format!("urn:canonym:mappings:{fingerprint:032x}:{}", plain(model))),
        ("mapping_set_title", format!("Names mapped to {}", meta.name)),
        ("license", "https://w3id.org/sssom/license/unspecified".to_owned()),
        ("mapping_tool", format!("canonym, model {model}")),
        ("mapping_tool_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("object_source_version", if releases.len() == 1 { releases[0].to_owned() } else { meta.version.clone() }),
    ];
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        writeln!(text, "#{name}: \"{}\"", unquoted(&value)).expect("a string takes all");
    }
    text + &COLUMNS.join("\t") + "\n"
}

fn prefix_of(id: &str) -> Option<&str> {
    id.split_once(':').map(|(prefix, _)| prefix)
}

/// Whether a prefix may stand in a CURIE: a letter or `_`, then letters, digits, `_`, `.` and `-`.
fn is_prefix(prefix: &str) -> bool {
    prefix.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Whether an id has the form that SSSOM asks for, such as `LAB:12`. Tools drop rows with other ids.
pub fn is_curie(id: &str) -> bool {
    let is_local = |local: &str| {
        !local.is_empty() && local.chars().all(|letter| !letter.is_whitespace() && !"<>\"{}|^`\\".contains(letter))
    };
    id.split_once(':').is_some_and(|(prefix, local)| is_prefix(prefix) && is_local(local))
}

/// A warning about ids that SSSOM does not allow, if there are any.
pub fn wrong_ids<'a>(ids: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut wrong = ids.filter(|id| !id.is_empty() && !is_curie(id));
    let first = wrong.next()?.escape_debug();
    let n = 1 + wrong.count();
    let are = if n == 1 { "id is not a CURIE" } else { "ids are not CURIEs" };
    Some(format!("{n} {are} such as `LAB:12` (first `{first}`); sssom-py drops such rows"))
}

/// A text without what ends or escapes in quotes of YAML.
fn unquoted(text: &str) -> String {
    text.replace(['\\', '"', '\n', '\r', '\t'], " ")
}

/// Letters and digits of a name, for a URN.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// The rows of a name: one for each of its first `n` candidates, or one without a concept.
pub fn rows(kb: &KnowledgeBase, subject: Subject<'_>, link: &Link, n: usize) -> String {
    let mut text = String::new();
    if link.nil || link.candidates.is_empty() {
        push_row(
            &mut text,
            subject,
            ["skos:exactMatch", "sssom:NoTermFound", "", "semapv:LexicalMatching", "", "", ""],
        );
        return text;
    }
    for candidate in link.candidates.iter().take(n) {
        let Match { predicate, justification, field, name } = matched(kb, subject.label, candidate.concept);
        // A concept with several ids is written under the first.
        let id = kb.id(candidate.concept).split('|').next().unwrap_or_default();
        let label = kb.preferred_name(candidate.concept);
        push_row(&mut text, subject, [predicate.name(), id, label, justification, field, name, &confidence(candidate)]);
    }
    text
}

fn confidence(candidate: &Candidate) -> String {
    rounded(candidate.p_link).to_string()
}

fn push_row(text: &mut String, subject: Subject<'_>, others: [&str; 7]) {
    let kind = if subject.id.is_empty() { "rdfs literal" } else { "" };
    let cells = [subject.id, subject.label, kind].into_iter().chain(others);
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push('\t');
        }
        text.push_str(&cell.replace(['\t', '\n', '\r'], " "));
    }
    text.push('\n');
}

/// How a name matches a concept.
struct Match<'a> {
    predicate: Predicate,
    justification: &'static str,
    /// The property that holds the matching name.
    field: &'static str,
    name: &'a str,
}

fn matched<'a>(kb: &'a KnowledgeBase, label: &str, concept: ConceptId) -> Match<'a> {
    let names = kb.names(concept).map(|name| (agreement(label, kb.name(name)), kb.scope(name), kb.name(name)));
    let best = names.min_by_key(|(how, scope, _)| (*how, *scope));
    let (how, scope, name) = best.unwrap_or((Agreement::NGram, Scope::Related, ""));
    let predicate = match scope {
        Scope::Preferred | Scope::Exact if how <= Agreement::Canonical => Predicate::Exact,
        Scope::Preferred | Scope::Exact => Predicate::Close,
        // The name is one of a narrower concept, so that the object is broader.
        Scope::Narrow => Predicate::Broad,
        Scope::Broad => Predicate::Narrow,
        Scope::Related => Predicate::Related,
    };
    let justification = match how {
        Agreement::NGram => "semapv:LexicalSimilarityThresholdMatching",
        _ => "semapv:LexicalMatching",
    };
    let field = match scope {
        Scope::Preferred => "rdfs:label",
        Scope::Exact => "oboInOwl:hasExactSynonym",
        Scope::Narrow => "oboInOwl:hasNarrowSynonym",
        Scope::Broad => "oboInOwl:hasBroadSynonym",
        Scope::Related => "oboInOwl:hasRelatedSynonym",
    };
    // Similar letters say nothing of which name was meant.
    let (field, name) = if how == Agreement::NGram { ("", "") } else { (field, name) };
    Match { predicate, justification, field, name }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord};

    fn kb() -> KnowledgeBase {
        let mut builder = KnowledgeBaseBuilder::new();
        let name = |text: &str, scope| NameRecord { text: text.to_owned(), scope };
        builder
            .add(ConceptRecord {
                id: "DOID:1|X:2".to_owned(),
                names: vec![
                    name("Chronic gout", Scope::Preferred),
                    name("gouty arthritis", Scope::Exact),
                    name("podagra", Scope::Narrow),
                    name("joint disease", Scope::Broad),
                    name("uric acid", Scope::Related),
                ],
                ..ConceptRecord::default()
            })
            .unwrap();
        KnowledgeBase::from_vec(builder.to_bytes(Meta { name: "test".to_owned(), ..Meta::default() }).unwrap(), "test")
            .unwrap()
    }

    #[test]
    fn predicates_follow_from_agreement_and_scope() {
        let kb = kb();
        let candidate = Candidate { concept: ConceptId(0), name: None, p_link: 0.87654 };
        let link = Link { candidates: vec![candidate], ..Link::default() };
        let lines = [
            "S:1\tGouty arthritis",
            "chronic\u{a0}gouts",
            "gout, chronic",
            "podagra",
            "joint diseases",
            "uric acid",
            "gotu",
        ];
        let rows: String = lines.iter().map(|line| rows(&kb, Subject::of_line(line), &link, 1)).collect();
        expect![[r#"
            S:1	Gouty arthritis		skos:exactMatch	DOID:1	Chronic gout	semapv:LexicalMatching	oboInOwl:hasExactSynonym	gouty arthritis	0.8765
            	chronic gouts	rdfs literal	skos:exactMatch	DOID:1	Chronic gout	semapv:LexicalMatching	rdfs:label	Chronic gout	0.8765
            	gout, chronic	rdfs literal	skos:closeMatch	DOID:1	Chronic gout	semapv:LexicalMatching	rdfs:label	Chronic gout	0.8765
            	podagra	rdfs literal	skos:broadMatch	DOID:1	Chronic gout	semapv:LexicalMatching	oboInOwl:hasNarrowSynonym	podagra	0.8765
            	joint diseases	rdfs literal	skos:narrowMatch	DOID:1	Chronic gout	semapv:LexicalMatching	oboInOwl:hasBroadSynonym	joint disease	0.8765
            	uric acid	rdfs literal	skos:relatedMatch	DOID:1	Chronic gout	semapv:LexicalMatching	oboInOwl:hasRelatedSynonym	uric acid	0.8765
            	gotu	rdfs literal	skos:closeMatch	DOID:1	Chronic gout	semapv:LexicalSimilarityThresholdMatching			0.8765
        "#]].assert_eq(&rows);
        let none = Link { nil: true, ..link };
        let not_found = "\trash\trdfs literal\tskos:exactMatch\tsssom:NoTermFound\t\tsemapv:LexicalMatching\t\t\t\n";
        assert_eq!(super::rows(&kb, Subject::of_line("rash"), &none, 1), not_found);
    }

    #[test]
    fn metadata_declares_the_prefixes() {
        let text = header(&kb(), "my model", ["S:1", "bad prefix:2", "7:3", "S:3"].into_iter());
        let text = text.replace(&format!("{:032x}", kb().container().fingerprint()), "[HASH]");
        expect![[r##"
            #curie_map:
            #  "DOID": "http://purl.obolibrary.org/obo/DOID_"
            #  "S": "urn:canonym:S:"
            #  "oboInOwl": "http://www.geneontology.org/formats/oboInOwl#"
            #  "rdfs": "http://www.w3.org/2000/01/rdf-schema#"
            #  "semapv": "https://w3id.org/semapv/vocab/"
            #  "skos": "http://www.w3.org/2004/02/skos/core#"
            #  "sssom": "https://w3id.org/sssom/"
            #mapping_set_id: "urn:canonym:mappings:[HASH]:my-model"
            #mapping_set_title: "Names mapped to test"
            #license: "https://w3id.org/sssom/license/unspecified"
            #mapping_tool: "canonym, model my model"
            #mapping_tool_version: "0.1.0"
            subject_id	subject_label	subject_type	predicate_id	object_id	object_label	mapping_justification	object_match_field	match_string	confidence
        "##]].assert_eq(&text);
    }

    #[test]
    fn curies_have_a_prefix_and_a_local_part() {
        for id in ["LAB:12", "_x:a/b", "NO:2", "a.b-c:d:e"] {
            assert!(is_curie(id), "{id}");
        }
        for id in ["", "12", "1:4", "LAB:", ":4", "x y:1", "LAB:a b", "LAB:<a>"] {
            assert!(!is_curie(id), "{id}");
        }
    }
}
