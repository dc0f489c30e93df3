//! Further names for the concepts of a terminology: which concepts get them, and which names would be new homonyms.

use canonym_core::input::Input;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{Report, sssom};
use canonym_core::kb::join::Mappings;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use expect_test::{Expect, expect};

/// A record with the scope of a name before it: `=` preferred, `~` exact, `?` related; and its other ids.
fn record(id: &str, names: &[&str], others: &[&str]) -> ConceptRecord {
    let name = |text: &&str| NameRecord {
        text: text[1..].to_owned(),
        scope: match &text[..1] {
            "=" => Scope::Preferred,
            "?" => Scope::Related,
            _ => Scope::Exact,
        },
    };
    ConceptRecord {
        id: id.to_owned(),
        names: names.iter().map(name).collect(),
        alternative_ids: others.iter().map(|&other| other.to_owned()).collect(),
        ..ConceptRecord::default()
    }
}

fn check(terminology: &[ConceptRecord], mappings: &str, more: &[ConceptRecord], expected: Expect) {
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    for (index, record) in terminology.iter().enumerate() {
        builder.begin_source(&format!("source {index}")).unwrap();
        builder.add(record.clone()).unwrap();
    }
    if !mappings.is_empty() {
        let mut joins = Mappings::default();
        let text = format!("subject_id\tpredicate_id\tobject_id\n{mappings}");
        let mut input = Input::from_bytes("map.sssom.tsv", text.into_bytes()).unwrap();
        sssom::read(&mut input, &[sssom::EXACT_MATCH.to_owned()], &mut joins, &mut report).unwrap();
        builder.join(&joins, &mut report).unwrap();
    }
    builder.supplement(more, &mut report).unwrap();
    let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "shapes.kb").unwrap();
    let mut text = String::new();
    for concept in kb.concepts() {
        let name = |name| format!("{} {}", kb.scope(name).name(), kb.name(name));
        let names: Vec<String> = kb.names(concept).map(name).collect();
        text += &format!("{}: {}\n", kb.id(concept), names.join(", "));
    }
    text += &format!("{} names for {} concepts\n", report.n_added_names, report.n_supplemented);
    for ((kind, reason), n) in &report.dropped {
        text += &format!("dropped {n} {kind}: {reason}\n");
    }
    expected.assert_eq(&text);
}

#[test]
fn concepts_with_the_id_get_the_names_as_exact_synonyms() {
    check(
        &[
            record("X:1", &["=Circle", "~round"], &[]),
            record("x:2|Y:2", &["~square"], &[]),
            record("Z:3", &["=Dot"], &["X:3"]),
        ],
        "",
        &[
            record("X:1", &["=Circle", "~ring", "~ROUND"], &[]),
            record("X:2", &["=Square shape", "~quad"], &[]),
            record("X:3", &["=Point"], &[]),
            record("X:4", &["=Line"], &[]),
        ],
        expect![[r#"
            X:1: preferred Circle, exact round, exact ring
            Z:3: preferred Dot, exact Point
            x:2|Y:2: preferred square, exact Square shape, exact quad
            4 names for 3 concepts
            dropped 1 starter concept: not in the terminology
            dropped 2 starter name: already a name of its concept
        "#]],
    );
}

#[test]
fn names_of_other_concepts_are_not_added() {
    check(
        &[
            record("X:1", &["=Circle", "~disc"], &[]),
            record("X:2", &["=Ring", "~Disc"], &[]),
            record("X:3", &["=Dot"], &[]),
        ],
        "",
        &[
            record("X:1", &["=Circle", "~RING", "~disc", "~speck"], &[]),
            record("X:3", &["=Dot", "~Speck", "~spot", "~discs", "~-"], &[]),
        ],
        expect![[r#"
            X:1: preferred Circle, exact disc, exact speck
            X:2: preferred Ring, exact Disc
            X:3: preferred Dot, exact spot, exact discs
            3 names for 2 concepts
            dropped 2 starter name: a name of another concept
            dropped 1 starter name: a name without letters or digits
            dropped 3 starter name: already a name of its concept
        "#]],
    );
}

#[test]
fn ids_of_several_concepts_and_concepts_without_a_name_get_nothing() {
    check(
        &[
            record("Z:1", &["=Circle"], &["X:1", "X:2"]),
            record("Z:2", &["=Ring"], &["X:1"]),
            record("X:2", &["=Square"], &[]),
            record("X:3", &[], &[]),
        ],
        "",
        &[record("X:1", &["=Disc"], &[]), record("X:2", &["=Quad"], &[]), record("X:3", &["=Dot"], &[])],
        expect![[r#"
            X:2: preferred Square, exact Quad
            Z:1: preferred Circle
            Z:2: preferred Ring
            1 names for 1 concepts
            dropped 1 starter concept: id of several concepts
            dropped 1 starter concept: not in the terminology
        "#]],
    );
}

#[test]
fn joined_concepts_get_the_names_once_and_weak_synonyms_become_exact() {
    check(
        &[record("Z:1", &["=Circle", "?disc"], &[]), record("X:1", &["=Ring"], &[])],
        "Z:1\tskos:exactMatch\tX:1\n",
        &[record("X:1", &["=Ring", "~Disc", "~round"], &[])],
        expect![[r#"
            Z:1: preferred Circle, related disc, exact Ring, exact Disc, exact round
            2 names for 1 concepts
            dropped 1 starter name: already a name of its concept
        "#]],
    );
}

#[test]
fn variants_are_synonyms_of_names_as_classifications_write_them() {
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    for (row, name) in
        ["Varicella [chickenpox]", "Malignant neoplasm of bronchus and lung", "Unspecified asthma", "Asthma"]
            .into_iter()
            .enumerate()
    {
        builder.add(record(&format!("X:{row}"), &[&format!("={name}")], &[])).unwrap();
    }
    builder.add_variants(&mut report).unwrap();
    let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "variants.kb").unwrap();
    let names = |concept| kb.names(concept).skip(1).map(|name| format!("{} {}", kb.scope(name).name(), kb.name(name)));
    let names: Vec<String> = kb.concepts().flat_map(names).collect();
    let of_places = ["narrow Malignant neoplasm of bronchus", "narrow Malignant neoplasm of lung"];
    assert_eq!(names, [&["exact Varicella", "exact chickenpox"][..], &of_places].concat());
    assert_eq!((report.n_variants, kb.meta().n_scoped_names), (4, 0));
}
