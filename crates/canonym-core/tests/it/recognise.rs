//! Mentions found in text and linked, with the embedded weights and a small made-up terminology.

use std::sync::Arc;

use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::{DictionaryAnnotator, Nested, RecogniseConfig};
use canonym_core::link::{Annotator, LinkedMention};
use canonym_core::text::Document;
use canonym_core::text::analysis::Analysis;
use expect_test::{Expect, expect};
use proptest::prelude::*;

const CONCEPTS: [(&str, &[&str]); 19] = [
    ("T:01", &["Familial Mediterranean fever", "periodic peritonitis"]),
    ("T:02", &["Breast neoplasms", "breast tumor", "breast cancer"]),
    ("T:03", &["Ovarian neoplasms", "ovarian cancer"]),
    ("T:04", &["Levodopa", "L-DOPA"]),
    ("T:05", &["L-DOPA-induced dyskinesia"]),
    ("T:06", &["Acquired immunodeficiency syndrome", "AIDS"]),
    ("T:07", &["Anaemia"]),
    ("T:08", &["Interleukin-2", "IL-2"]),
    ("T:09", &["Multiple sclerosis"]),
    ("T:10", &["Parkinson disease"]),
    ("T:11", &["Heart failure, congestive", "congestive heart failure"]),
    ("T:12", &["Heart failure"]),
    ("T:13", &["Vero cells", "Cells, Vero"]),
    ("T:14", &["Intrahepatic bile duct", "Bile duct, intrahepatic"]),
    ("T:15", &["Slurred speech"]),
    ("T:16", &["Joint stiffness"]),
    ("T:17", &["Dry skin"]),
    ("T:18", &["Itchy skin"]),
    ("T:19", &["High blood pressure"]),
];

fn annotator(config: RecogniseConfig) -> DictionaryAnnotator {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, names) in CONCEPTS {
        let name = |(row, name): (usize, &&str)| NameRecord {
            text: (*name).to_owned(),
            scope: if row == 0 { Scope::Preferred } else { Scope::Exact },
        };
        let names = names.iter().enumerate().map(name).collect();
        builder.add(ConceptRecord { id: id.to_owned(), names, ..ConceptRecord::default() }).expect("a small record");
    }
    let bytes = builder.to_bytes(Meta::default()).expect("it compiles");
    let kb = KnowledgeBase::from_vec(bytes, "small.kb").expect("it opens");
    DictionaryAnnotator::new(Arc::new(kb), AcceptModel::embedded(), config)
}

fn document(text: &str) -> Document {
    Document { id: "1".to_owned(), text: text.to_owned(), sections: Vec::new() }
}

fn shown(text: &str, mentions: &[LinkedMention]) -> String {
    let row = |linked: &LinkedMention| {
        let id = CONCEPTS[linked.link.candidates[0].concept.0 as usize].0;
        format!(
            "{}..{} {} -> {id}\n",
            linked.mention.hull().start,
            linked.mention.hull().end,
            linked.mention.surface(text)
        )
    };
    mentions.iter().map(row).collect()
}

fn check_with(config: RecogniseConfig, text: &str, expect: Expect) {
    let mentions = annotator(config).annotate(&[Analysis::new(&document(text))]).expect("text is linked");
    expect.assert_eq(&shown(text, &mentions[0]));
}

/// Doubtful mentions are given, too.
fn doubtful() -> RecogniseConfig {
    RecogniseConfig { min_score: Some(0.02), ..RecogniseConfig::default() }
}

fn check(text: &str, expect: Expect) {
    check_with(RecogniseConfig::default(), text, expect);
}

#[test]
fn abbreviation_links_to_its_long_form() {
    check(
        "Familial Mediterranean fever (FMF) is inherited. FMF is rare.",
        expect![[r#"
        0..28 Familial Mediterranean fever -> T:01
        30..33 FMF -> T:01
        49..52 FMF -> T:01
    "#]],
    );
}

#[test]
fn short_form_is_read_as_its_long_form_inside_a_name() {
    check(
        "We treated periodic peritonitis. In congestive heart (CH) disease, CH failure was frequent.",
        expect![[r#"
        11..31 periodic peritonitis -> T:01
        67..77 CH failure -> T:11
    "#]],
    );
}

#[test]
fn coordination_keeps_both_names() {
    check(
        "Women with breast and ovarian cancer were seen.",
        expect![[r#"
        11..36 breast cancer -> T:02
        22..36 ovarian cancer -> T:03
    "#]],
    );
}

#[test]
fn adjectives_behind_a_verb_form_names() {
    check(
        "His speech is slurred. Since May the joints have often been very stiff. Her blood pressure was high.",
        expect![[r#"
            4..21 speech is slurred -> T:15
            37..70 joints have often been very stiff -> T:16
            76..99 blood pressure was high -> T:19
        "#]],
    );
    check(
        "The skin looks dry and rather itchy.",
        expect![[r#"
        4..35 skin itchy -> T:18
        4..18 skin looks dry -> T:17
    "#]],
    );
    check(
        "Her speech is not slurred. The skin is, dry or not, red. Is slurred speech new?",
        expect![[r#"
        60..74 slurred speech -> T:15
    "#]],
    );
}

#[test]
fn a_long_document_is_linked_like_a_short_one() {
    let annotator = annotator(RecogniseConfig::default());
    let spans = |text: &str| -> Vec<Vec<(usize, usize)>> {
        let mentions = annotator.annotate(&[Analysis::new(&document(text))]).expect("text is linked").remove(0);
        let spans = |linked: &LinkedMention| {
            linked.mention.spans.iter().map(|span| (span.start as usize, span.end as usize)).collect()
        };
        mentions.iter().map(spans).collect()
    };
    for (sentence, n_mentions) in [
        ("She had breast and ovarian cancer. ", 2),
        ("The skin is very dry and itchy. ", 2),
        ("breast and ovarian cancer, ", 2),
        ("Breast cancer and dry skin. ", 2),
    ] {
        // Mentions of the first and the last sentences may differ, because they lack neighbours.
        let [short, long] = [8, 3000].map(|n| spans(&sentence.repeat(n)));
        let of = |all: &[Vec<(usize, usize)>], row: usize| -> Vec<Vec<(usize, usize)>> {
            let (start, end) = (row * sentence.len(), (row + 1) * sentence.len());
            let first = all.partition_point(|spans| spans[0].0 < start);
            let inside = all[first..].iter().take_while(|spans| spans[0].0 < end);
            inside.map(|spans| spans.iter().map(|(from, to)| (from - start, to - start)).collect()).collect()
        };
        let expected = of(&short, 4);
        assert_eq!(expected.len(), n_mentions, "{sentence}: {expected:?}");
        let wrong: Vec<usize> = (4..2996).filter(|row| of(&long[..], *row) != expected).collect();
        assert!(wrong.is_empty(), "{sentence}: {} of 3000 differ, first {:?}", wrong.len(), wrong.first());
    }
}

#[test]
fn causes_are_reported_with_their_effects() {
    check_with(
        doubtful(),
        "He had L-DOPA-induced dyskinesia.",
        expect![[r#"
            7..32 L-DOPA-induced dyskinesia -> T:05
            7..13 L-DOPA -> T:04
        "#]],
    );
}

#[test]
fn names_in_another_order_do_not_cross_exact_ones() {
    check(
        "In HeLa cells, Vero cells and others the duct, intrahepatic bile duct alone, was seen.",
        expect![[r#"
        15..25 Vero cells -> T:13
        47..69 intrahepatic bile duct -> T:14
    "#]],
    );
}

#[test]
fn acronyms_are_no_words() {
    check(
        "Patients with AIDS wore hearing aids.",
        expect![[r#"
        14..18 AIDS -> T:06
    "#]],
    );
}

#[test]
fn a_definition_in_the_text_settles_its_short_form() {
    check("Automatic insect detection systems (AIDS) were built. AIDS found ants.", expect![""]);
}

#[test]
fn a_mention_that_is_wanted_surer_is_given_without_a_concept() {
    let config = RecogniseConfig { min_score: Some(1.0), ..RecogniseConfig::default() };
    let mentions =
        annotator(config).annotate(&[Analysis::new(&document("Multiple sclerosis."))]).expect("text is linked");
    assert!(mentions[0][0].link.nil && !mentions[0][0].link.candidates.is_empty());
}

#[test]
fn spelling_hyphens_and_possessives_do_not_matter() {
    check_with(
        doubtful(),
        "Anemia, interleukin 2 and Parkinson’s disease.",
        expect![[r#"
            0..6 Anemia -> T:07
            8..21 interleukin 2 -> T:08
            26..47 Parkinson’s disease -> T:10
        "#]],
    );
}

#[test]
fn longest_name_wins_and_nested_ones_come_on_request() {
    let text = "She had congestive heart failure.";
    check(
        text,
        expect![[r#"
        8..32 congestive heart failure -> T:11
    "#]],
    );
    check_with(
        RecogniseConfig { nested: Nested::All, ..RecogniseConfig::default() },
        text,
        expect![[r#"
        8..32 congestive heart failure -> T:11
        19..32 heart failure -> T:12
    "#]],
    );
}

/// A terminology in which `cell` or `diabetes` stands above `n` others.
fn below(top: &str, n: usize) -> DictionaryAnnotator {
    let mut builder = KnowledgeBaseBuilder::new();
    let name = |text: String| vec![NameRecord { text, scope: Scope::Preferred }];
    let first = ConceptRecord { id: "T:0".to_owned(), names: name(top.to_owned()), ..ConceptRecord::default() };
    builder.add(first).expect("a small record");
    for row in 1..=n {
        let (id, names) = (format!("T:{row}"), name(format!("{top} of type {row}")));
        let parents = vec!["T:0".to_owned()];
        builder.add(ConceptRecord { id, names, parents, ..ConceptRecord::default() }).expect("a small record");
    }
    let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).expect("it compiles"), "below.kb");
    DictionaryAnnotator::new(Arc::new(kb.expect("it opens")), AcceptModel::embedded(), doubtful())
}

#[test]
fn the_root_of_a_large_hierarchy_is_no_mention() {
    let n_found = |n| {
        below("diabetes", n).annotate(&[Analysis::new(&document("He has diabetes."))]).expect("text is linked")[0].len()
    };
    assert_eq!((n_found(3), n_found(300)), (1, 0));
    // Nor as a sense of a form of the inventory.
    let cells = |n| {
        below("Cells", n).annotate(&[Analysis::new(&document("The cells divide in culture."))]).expect("text is linked")
            [0]
        .len()
    };
    assert_eq!((cells(3), cells(300)), (1, 0));
}

#[test]
fn sentences_and_brackets_part_names() {
    check(
        "We saw the heart. Failure came late. Breast (left) cancer. 😀 multiple sclerosis",
        expect![[r#"
        64..82 multiple sclerosis -> T:09
    "#]],
    );
}

#[test]
fn batches_and_threads_do_not_change_results() {
    let texts = ["Anaemia in AIDS", "", "breast or ovarian cancer", "multiple sclerosis (MS). MS.", "L-DOPA"];
    let documents: Vec<Document> = texts.iter().cycle().take(200).map(|text| document(text)).collect();
    let annotator = annotator(RecogniseConfig::default());
    let together = annotator.annotate(&Analysis::all(&documents)).expect("text is linked");
    for (document, mentions) in documents.iter().zip(&together) {
        assert_eq!(&annotator.annotate(&[Analysis::new(document)]).expect("text is linked")[0], mentions);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    assert_eq!(pool.install(|| annotator.annotate(&Analysis::all(&documents))).expect("text is linked"), together);
}

proptest! {
    #[test]
    fn spans_lie_on_character_boundaries(text in "(breast|ovarian|cancer|and|AIDS|\\(|\\)|,| |é|😀|IL-2|\\PC){0,40}") {
        let mentions = annotator(RecogniseConfig::default()).annotate(&[Analysis::new(&document(&text))]).expect("text is linked");
        for linked in &mentions[0] {
            for span in &linked.mention.spans {
                prop_assert!(text.get(span.start as usize..span.end as usize).is_some_and(|cut| !cut.is_empty()));
            }
            prop_assert!((0.0..=1.0).contains(&linked.score()));
        }
    }
}
