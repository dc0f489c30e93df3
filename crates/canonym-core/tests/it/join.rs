//! Several sources in one knowledge base: which of them has priority, and what mappings join.

use canonym_core::input::Input;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{Report, sssom};
use canonym_core::kb::join::Mappings;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use expect_test::{Expect, expect};
use proptest::prelude::*;

const SSSOM: &str = "\
# curie_map:
#   A: http://example.org/a_
subject_id\tsubject_label\tpredicate_id\tpredicate_modifier\tobject_id
HUB:1\tcircle\tskos:exactMatch\t\tA:1
HUB:1\tcircle\tskos:exactMatch\t\tb:1
HUB:2\tsquare\tskos:exactMatch\t\tA:2
HUB:2\tsquare\tskos:exactMatch\t\tA:3
HUB:2\tsquare\tskos:exactMatch\t\tB:2
A:4\tpoint\tskos:closeMatch\t\tB:4
A:4\tpoint\tskos:exactMatch\tNot\tB:4
A:4\tpoint\tskos:exactMatch\t\tB:404
A:4\tpoint\tskos:exactMatch\t\ta:4
A:4\tpoint\tskos:exactMatch\t\tsssom:NoTermFound
http://purl.obolibrary.org/obo/A_5\tline\tskos:exactMatch\t\tC:7
";

/// A concept with the scope of a name before it: `=` preferred, `~` exact.
fn record(id: &str, names: &[&str], parents: &[&str], definition: &str) -> ConceptRecord {
    let name = |text: &&str| NameRecord {
        text: text[1..].to_owned(),
        scope: if text.starts_with('=') { Scope::Preferred } else { Scope::Exact },
    };
    ConceptRecord {
        id: id.to_owned(),
        names: names.iter().map(name).collect(),
        parents: parents.iter().map(|&parent| parent.to_owned()).collect(),
        definition: Some(definition.to_owned()),
        ..ConceptRecord::default()
    }
}

/// Two sources of shapes.
fn builder() -> KnowledgeBaseBuilder {
    let mut builder = KnowledgeBaseBuilder::new();
    builder.begin_source("first").unwrap();
    for record in [
        record("A:1", &["~Circle", "~Ring"], &["A:5"], ""),
        record("A:2", &["=Square"], &["A:5"], "Four sides."),
        record("A:3", &["=Quad"], &[], ""),
        record("A:4", &["=Point"], &[], ""),
        record("A:5", &["=Line"], &[], ""),
    ] {
        builder.add(record).unwrap();
    }
    builder.begin_source("second").unwrap();
    for record in [
        record("B:1", &["=Disc", "~Ring"], &["B:5", "A:4"], "All points at one distance."),
        record("B:2", &["=Box"], &["B:1"], "A box."),
        record("B:4", &["=Dot"], &[], ""),
        ConceptRecord { alternative_ids: vec!["C:7".to_owned()], ..record("B:5", &["=Stroke"], &["B:1"], "") },
        ConceptRecord { source: "own".to_owned(), ..record("A:2", &["=Regular square"], &[], "Another text.") },
        ConceptRecord { source: "own".to_owned(), ..record("B:6", &["=Cube"], &[], "") },
    ] {
        builder.add(record).unwrap();
    }
    builder
}

fn mappings(text: &str, report: &mut Report) -> Mappings {
    let mut mappings = Mappings::default();
    let mut input = Input::from_bytes("map.sssom.tsv", text.as_bytes().to_vec()).unwrap();
    sssom::read(&mut input, &[sssom::EXACT_MATCH.to_owned()], &mut mappings, report).unwrap();
    mappings
}

fn show(builder: KnowledgeBaseBuilder, report: &Report) -> String {
    let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "shapes.kb").unwrap();
    let mut text = String::new();
    for concept in kb.concepts() {
        let names: Vec<&str> = kb.names(concept).map(|name| kb.name(name)).collect();
        let parents: Vec<&str> = kb.parents(concept).map(|parent| kb.id(parent)).collect();
        let others: Vec<&str> = kb.alternative_ids(concept).collect();
        let (names, parents, others) = (names.join(", "), parents.join(", "), others.join(", "));
        let (definition, source) = (kb.definition(concept).unwrap_or_default(), kb.source(concept));
        text +=
            &format!("{} [{names}] parents [{parents}] others [{others}] `{definition}` {source}\n", kb.id(concept));
    }
    for ((kind, reason), n) in &report.dropped {
        text += &format!("dropped {n} {kind}: {reason}\n");
    }
    text
}

fn check(text: Option<&str>, expected: Expect) {
    let mut builder = builder();
    let mut report = Report::default();
    if let Some(text) = text {
        let mappings = mappings(text, &mut report);
        report.n_joined = builder.join(&mappings, &mut report).unwrap();
    }
    expected.assert_eq(&format!("{}joined {}\n", show(builder, &report), report.n_joined));
}

#[test]
fn the_first_source_gives_name_definition_and_source() {
    check(
        None,
        expect![[r#"
        A:1 [Circle, Ring] parents [A:5] others [] `` first
        A:2 [Square, Regular square] parents [A:5] others [] `Four sides.` first
        A:3 [Quad] parents [] others [] `` first
        A:4 [Point] parents [] others [] `` first
        A:5 [Line] parents [] others [] `` first
        B:1 [Disc, Ring] parents [B:5, A:4] others [] `All points at one distance.` second
        B:2 [Box] parents [B:1] others [] `A box.` second
        B:4 [Dot] parents [] others [] `` second
        B:5 [Stroke] parents [B:1] others [C:7] `` second
        B:6 [Cube] parents [] others [] `` own
        joined 0
    "#]],
    );
}

#[test]
fn mapped_concepts_of_different_sources_become_one() {
    check(
        Some(SSSOM),
        expect![[r#"
        A:1 [Circle, Ring, Disc] parents [A:5, A:4] others [B:1] `All points at one distance.` first
        A:2 [Square, Regular square] parents [A:5] others [] `Four sides.` first
        A:3 [Quad] parents [] others [] `` first
        A:4 [Point] parents [] others [] `` first
        A:5 [Line, Stroke] parents [A:1] others [B:5, C:7] `` first
        B:2 [Box] parents [A:1] others [] `A box.` second
        B:4 [Dot] parents [] others [] `` second
        B:6 [Cube] parents [] others [] `` own
        dropped 3 mapped id: not in the knowledge base
        dropped 1 mapping: another predicate
        dropped 1 mapping: fewer than two of its concepts are in the knowledge base
        dropped 1 mapping: maps an id to itself
        dropped 1 mapping: negated
        dropped 1 mapping: without an id
        dropped 3 mapping: would merge two concepts of one source
        joined 2
    "#]],
    );
}

#[test]
fn files_that_are_no_mappings_are_refused() {
    let mut messages = String::new();
    for text in ["", "# only metadata\n", "subject_id,object_id\n", "subject_id\tpredicate_id\tobject_id\nA:1\n"] {
        let mut input = Input::from_bytes("map.tsv", text.as_bytes().to_vec()).unwrap();
        let result = sssom::read(&mut input, &[], &mut Mappings::default(), &mut Report::default());
        messages += &format!("{}\n", result.unwrap_err());
    }
    expect![[r#"
        map.tsv:1: the file contains no mappings
        map.tsv:1: the file contains no mappings
        map.tsv:1: the header line lacks the columns subject_id, predicate_id and object_id
        map.tsv:2: 1 column, expected 3
    "#]]
    .assert_eq(&messages);
}

proptest! {
    #[test]
    fn the_order_of_mappings_does_not_matter(pairs in prop::collection::vec((0..12usize, 0..12usize), 0..14)) {
        let ids = ["A:1", "A:2", "A:3", "A:4", "A:5", "B:1", "B:2", "B:4", "B:5", "C:7", "X:1", "X:2"];
        let joined = |pairs: &mut dyn Iterator<Item = &(usize, usize)>| {
            let mut mappings = Mappings::default();
            for (one, other) in pairs {
                mappings.add(ids[*one], ids[*other]).unwrap();
            }
            let mut builder = builder();
            let mut report = Report::default();
            let n_joined = builder.join(&mappings, &mut report).unwrap();
            (n_joined, show(builder, &Report::default()))
        };
        prop_assert_eq!(joined(&mut pairs.iter()), joined(&mut pairs.iter().rev()));
    }
}
