//! What is exported is what is read back, as far as a format can hold it.

use canonym_core::input::Source;
use canonym_core::kb::diff::diff;
use canonym_core::kb::export::{ExportFormat, export};
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Predicate, Scope, XrefRecord};
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn build(records: &[ConceptRecord]) -> KnowledgeBase {
    let mut builder = KnowledgeBaseBuilder::new();
    records.iter().for_each(|record| builder.add(record.clone()).unwrap());
    KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
}

fn exported(kb: &KnowledgeBase, format: ExportFormat) -> (String, Report) {
    let mut out = Vec::new();
    let report = export(kb, format, &mut out, &mut |_| {}).unwrap();
    (String::from_utf8(out).unwrap(), report)
}

fn read_back(text: &str, format: SourceFormat) -> KnowledgeBase {
    let source = Source::from_bytes("again", text.as_bytes().to_vec());
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    let mut add = |record| builder.add(record);
    import_sources(format, &[source], &ImportConfig::default(), &mut report, &mut add).unwrap();
    KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "again").unwrap()
}

/// The differences, one a line.
fn differences(old: &KnowledgeBase, new: &KnowledgeBase) -> String {
    let mut text = String::new();
    diff(old, new, &mut |change| -> Result<(), ()> {
        text += &format!("{change:?}\n");
        Ok(())
    })
    .unwrap();
    text
}

const SCOPES: [Scope; 5] = [Scope::Preferred, Scope::Exact, Scope::Narrow, Scope::Broad, Scope::Related];

/// Records with everything in them, signs that mean something to some format included.
fn records() -> impl Strategy<Value = Vec<ConceptRecord>> {
    let text = || "[a-c\"\\\\|!{}\\[\\]:;,\t\n\r éβ=-]{0,6}[a-cé\"!}|\\\\]";
    let id = || "[A-C]:[1-4]";
    let names = proptest::collection::vec((text(), 0..5usize), 1..5);
    let texts = move || proptest::collection::vec(text(), 0..3);
    let ids = move || proptest::collection::vec(id(), 0..3);
    let xrefs = proptest::collection::vec(("[A-C]:[1-4!\"{ \\\\]{0,2}[1-4]", 0..6usize), 0..3);
    let record = (id(), names, texts(), proptest::option::of(text()), (ids(), xrefs), ids(), "[ST]?");
    let xref = |(id, predicate)| XrefRecord { id, predicate: Predicate::ALL[predicate] };
    let record = record.prop_map(move |(id, names, types, definition, (parents, xrefs), alternative_ids, source)| {
        ConceptRecord {
            id,
            names: names.into_iter().map(|(text, scope)| NameRecord { text, scope: SCOPES[scope] }).collect(),
            types,
            definition,
            parents,
            alternative_ids,
            xrefs: xrefs.into_iter().map(xref).collect(),
            source,
        }
    });
    proptest::collection::vec(record, 1..8)
}

/// The concepts of a knowledge base without those parts that `strip` takes away.
fn stripped(kb: &KnowledgeBase, strip: impl Fn(&mut ConceptRecord)) -> KnowledgeBase {
    let records = kb.concepts().map(|concept| {
        let mut record = ConceptRecord {
            id: kb.id(concept).to_owned(),
            names: kb
                .names(concept)
                .map(|name| NameRecord { text: kb.name(name).to_owned(), scope: kb.scope(name) })
                .collect(),
            types: kb.types(concept).map(str::to_owned).collect(),
            definition: kb.definition(concept).map(str::to_owned),
            parents: kb.parents(concept).map(|parent| kb.id(parent).to_owned()).collect(),
            alternative_ids: kb.alternative_ids(concept).map(str::to_owned).collect(),
            xrefs: kb
                .xrefs(concept)
                .map(|xref| XrefRecord { id: xref.id.to_owned(), predicate: xref.predicate })
                .collect(),
            source: kb.source(concept).to_owned(),
        };
        strip(&mut record);
        record
    });
    build(&records.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn json_lines_hold_everything(records in records()) {
        let kb = build(&records);
        let (text, report) = exported(&kb, ExportFormat::Jsonl);
        prop_assert!(report.dropped.is_empty());
        let again = read_back(&text, SourceFormat::Jsonl);
        prop_assert_eq!(differences(&kb, &again), "");
        prop_assert_eq!(exported(&again, ExportFormat::Jsonl).0, text);
    }

    #[test]
    fn obo_holds_everything_but_types_and_carriage_returns(records in records()) {
        let kb = build(&records);
        let (text, report) = exported(&kb, ExportFormat::Obo);
        let again = read_back(&text, SourceFormat::Obo);
        let blank = |text: &mut String| *text = text.replace('\r', " ");
        let kept = stripped(&kb, |record| {
            record.types.clear();
            record.names.iter_mut().for_each(|name| blank(&mut name.text));
            record.definition.iter_mut().for_each(blank);
        });
        prop_assert_eq!(differences(&kept, &again), "");
        let has_types = kb.concepts().any(|concept| kb.types(concept).next().is_some());
        prop_assert_eq!(has_types, report.dropped.contains_key(&("type".to_owned(), "not supported by the format".to_owned())));
    }

    #[test]
    fn tsv_and_biosyn_report_every_change(records in records()) {
        let kb = build(&records);
        for (format, source) in [(ExportFormat::Tsv, SourceFormat::Tsv), (ExportFormat::Biosyn, SourceFormat::Biosyn)] {
            let (text, report) = exported(&kb, format);
            if text.is_empty() {
                prop_assert!(!report.dropped.is_empty());
                continue;
            }
            let again = read_back(&text, source);
            prop_assert_eq!(differences(&kb, &again).is_empty(), report.dropped.is_empty(), "{}", text);
        }
    }
}

#[test]
fn a_concept_of_many_names_becomes_several_lines() {
    let name = |n: usize| NameRecord { text: format!("{n} {}", "x".repeat(900)), scope: Scope::Exact };
    let record = ConceptRecord { id: "X:1".to_owned(), names: (0..3000).map(name).collect(), ..Default::default() };
    let kb = build(&[record]);
    let (text, _) = exported(&kb, ExportFormat::Jsonl);
    assert_eq!(text.lines().count(), 3);
    assert_eq!(differences(&kb, &read_back(&text, SourceFormat::Jsonl)), "");
}

#[test]
fn formats_look_as_their_readers_expect() {
    let name = |text: &str, scope| NameRecord { text: text.to_owned(), scope };
    let record = ConceptRecord {
        id: "X:1".to_owned(),
        names: vec![name("Circle \"big\" !", Scope::Preferred), name("ring", Scope::Related)],
        types: vec!["Curve".to_owned()],
        definition: Some("All points\nat one distance.".to_owned()),
        parents: vec!["X:1".to_owned()],
        alternative_ids: vec!["X:2".to_owned()],
        xrefs: vec![XrefRecord::plain("Y:3"), XrefRecord::new("Z:4", Predicate::Broad)],
        source: "shapes".to_owned(),
    };
    let kb = build(&[record]);
    let check = |format: ExportFormat, expected: Expect| {
        let (text, report) = exported(&kb, format);
        let left: Vec<String> =
            report.dropped.iter().map(|((kind, reason), n)| format!("left: {n} {kind}: {reason}\n")).collect();
        expected.assert_eq(&(text + &left.concat()));
    };
    check(
        ExportFormat::Jsonl,
        expect![[r#"
        {"alternative_ids":["X:2"],"definition":"All points\nat one distance.","id":"X:1","name":"Circle \"big\" !","parents":["X:1"],"source":"shapes","synonyms":[{"scope":"related","text":"ring"}],"types":["Curve"]}
    "#]],
    );
    check(
        ExportFormat::Tsv,
        expect![[r#"
        X:1	Circle "big" !	ring	Curve	All points at one distance.
        left: 1 alternative id: not supported by the format
        left: 1 line break or tab: replaced by a space in a definition
        left: 1 parent: not supported by the format
        left: 1 scope: not supported by the format
        left: 1 source: not supported by the format
    "#]],
    );
    check(
        ExportFormat::Biosyn,
        expect![[r#"
        X:1||Circle "big" !
        X:1||ring
        left: 1 alternative id: not supported by the format
        left: 1 definition: not supported by the format
        left: 1 parent: not supported by the format
        left: 1 scope: not supported by the format
        left: 1 source: not supported by the format
        left: 1 type: not supported by the format
    "#]],
    );
    check(
        ExportFormat::Obo,
        expect![[r#"
        format-version: 1.4

        [Term]
        id: X:1
        name: Circle "big" \!
        synonym: "ring" RELATED []
        namespace: shapes
        alt_id: X:2
        def: "All points\nat one distance." []
        is_a: X:1 ! Circle "big" !
        left: 1 type: not supported by the format
    "#]],
    );
}
