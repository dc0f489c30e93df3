//! What went wrong: classes of errors, and the page that shows them.

use std::fmt::Write;

use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::curves::{CurveConfig, curves, links};
use canonym_core::eval::errors::{ErrorAnalysis, ErrorClass, ErrorConfig, Terminology, analyse};
use canonym_core::eval::html::{Page, page};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::matching::{MatchConfig, Measure, count};
use canonym_core::eval::pairing::pair;
use canonym_core::eval::report::{EvalConfig, evaluate_pairs};
use canonym_core::text::normalise::fold;
use canonym_core::text::{Document, Span};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Made-up concepts: id and names.
const SHAPES: [(&str, &[&str]); 5] = [
    ("S1", &["Circle", "ring"]),
    ("S2", &["Square", "box"]),
    ("S3", &["Cube", "box"]),
    ("S4", &["Triangle"]),
    ("S5", &["Line"]),
];

fn name(id: &str) -> Option<String> {
    SHAPES.iter().find(|(known, _)| *known == id).map(|(_, names)| names[0].to_owned())
}

fn concepts_of_form(form: &str) -> Vec<IdSet> {
    let named = SHAPES.iter().filter(|(_, names)| names.iter().any(|name| fold(name) == form));
    named.map(|(id, _)| IdSet::parse_one(id)).collect()
}

/// A document of `text` with an annotation for each `surface id type`, a surface of two words apart as `a…b`.
fn document(id: &str, text: &str, annotations: &[&str]) -> AnnotatedDocument {
    let annotation = |line: &&str| {
        let [surface, ids, kind]: [&str; 3] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let span = |part: &str| {
            let start = text.find(part).unwrap();
            Span::new(start, start + part.len())
        };
        Annotation {
            spans: surface.split('…').map(span).collect(),
            ids: vec![ids.to_owned()],
            semantic_type: kind.trim_matches('-').to_owned(),
            ..Annotation::default()
        }
    };
    let document = Document { id: id.to_owned(), text: text.to_owned(), sections: Vec::new() };
    let annotations = annotations.iter().map(annotation).collect();
    AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() }
}

/// The same document with links in the place of ids: `surface id[,id…] type`, the best candidate first.
fn linked(id: &str, text: &str, annotations: &[&str]) -> AnnotatedDocument {
    let mut document = document(id, text, annotations);
    for annotation in &mut document.annotations {
        let ids = std::mem::take(&mut annotation.ids).remove(0);
        let candidate = |(row, id): (usize, &str)| CandidateRecord {
            id: id.to_owned(),
            name: name(id).unwrap_or_default(),
            p_link: 0.9 / (row + 1) as f32,
            p_both: None,
        };
        annotation.nil = ids == "-1";
        annotation.candidates = ids.split(',').filter(|id| *id != "-1").enumerate().map(candidate).collect();
        annotation.score = Some(0.9);
    }
    document
}

fn analysis(gold: &[AnnotatedDocument], predicted: &[AnnotatedDocument]) -> ErrorAnalysis {
    let terminology = Terminology { name: &name, concepts_of_form: &concepts_of_form };
    let paired = pair(gold, predicted).unwrap();
    analyse(gold, predicted, &paired, Some(&terminology), &ErrorConfig::default())
}

/// One line a case: its class, both sides, and the reason.
fn lines(analysis: &ErrorAnalysis) -> String {
    let mut lines = String::new();
    for case in &analysis.cases {
        let side = |side: &Option<canonym_core::eval::errors::CaseSide>| {
            side.as_ref().map_or_else(|| "-".to_owned(), |side| format!("{}={}", side.text, side.ids.join("|")))
        };
        let (gold, predicted) = (side(&case.gold), side(&case.predicted));
        let reason = if case.reason.is_empty() { String::new() } else { format!(" ({})", case.reason) };
        writeln!(lines, "{}: {gold} / {predicted}{reason}", case.class.name()).unwrap();
    }
    lines
}

fn check(text: &str, gold: &[&str], predicted: &[&str], expected: Expect) {
    expected.assert_eq(&lines(&analysis(&[document("1", text, gold)], &[linked("1", text, predicted)])));
}

#[test]
fn span_concept_and_type_errors_are_distinguished() {
    check(
        "A red circle, a square, a ring and a triangle.",
        &["circle S1 Curve", "square S2 Polygon", "ring S1 Curve", "triangle S4 Polygon"],
        &["red…circle S1 Curve", "square S2 Curve", "ring S1 -"],
        expect![[r#"
            boundary: circle=S1 / red circle=S1 (the prediction is longer)
            type: square=S2 / square=S2
            correct: ring=S1 / ring=S1
            missed: triangle=S4 / -
        "#]],
    );
}

#[test]
fn wrong_concepts_list_the_candidates() {
    check(
        "The box, a disc, a pentagon, a trigon, a square.",
        &["box S3 -", "disc S1 -", "pentagon S9 -", "trigon S4 -", "square S2 -"],
        &["box S2,S3 -", "disc S5,S1 -", "pentagon S4 -", "trigon S5 -", "a…square S3 -"],
        expect![[r#"
            wrong-sense: box=S3 / box=S2 (the text is also a name of the gold concept)
            wrong-sense: disc=S1 / disc=S5 (the gold concept was a candidate)
            not-in-terminology: pentagon=S9 / pentagon=S4 (another concept was linked)
            missing-name: trigon=S4 / trigon=S5 (another concept was linked)
            wrong-concept: square=S2 / a square=S3 (the span also differs)
        "#]],
    );
}

#[test]
fn whatever_is_alone_says_why() {
    check(
        "A disc, a hexagon, a square, a line, nothing.",
        &["disc S1 -", "hexagon S8 -", "square S2 -", "nothing -1 -"],
        &["square -1 -", "line S5 -", "nothing S1 -"],
        expect![[r#"
            missing-name: disc=S1 / -
            not-in-terminology: hexagon=S8 / -
            missed: square=S2 / square= (left unlinked)
            spurious: - / line=S5 (concept not in gold)
            spurious: - / nothing=S1 (gold has no concept here (NIL))
        "#]],
    );
}

#[test]
fn gold_that_contradicts_itself_is_doubtful() {
    let gold = [
        document("1", "A disc, a loop.", &["disc S1 -", "loop S5 -"]),
        document("2", "A Disc, a loop, a circle.", &["Disc S5 -"]),
    ];
    let predicted = [
        linked("1", "A disc, a loop.", &["disc S5 -"]),
        linked("2", "A Disc, a loop, a circle.", &["Disc S1 -", "loop S5 -", "circle S1 -"]),
    ];
    expect![[r#"
        gold-doubtful: disc=S1 / disc=S5 (gold links this text to the predicted concept elsewhere)
        missing-name: loop=S5 / -
        gold-doubtful: Disc=S5 / Disc=S1 (gold links this text to the predicted concept elsewhere)
        gold-doubtful: - / loop=S5 (gold links this text to this concept in another document)
        gold-doubtful: - / circle=S1 (the text is the preferred name of a concept found elsewhere in gold)
    "#]]
    .assert_eq(&lines(&analysis(&gold, &predicted)));
}

#[test]
fn confusions_and_texts_are_counted() {
    let text = "The box, the disc.";
    let gold: Vec<_> = ["1", "2", "3"].map(|id| document(id, text, &["box S3 -", "disc S1 -"])).into();
    let predicted: Vec<_> = ["1", "2", "3"].map(|id| linked(id, text, &["box S2,S3 -", "The S5 -"])).into();
    let analysis = analysis(&gold, &predicted);
    let confusion = &analysis.confusions[0];
    assert_eq!(
        (confusion.n, confusion.gold_names[0].as_str(), confusion.predicted_names[0].as_str()),
        (3, "Cube", "Square")
    );
    let missed = &analysis.missed_surfaces[0];
    assert_eq!((missed.n, missed.n_all, missed.text.as_str()), (3, 3, "disc"));
    assert_eq!((analysis.spurious_surfaces[0].n, analysis.spurious_surfaces[0].text.as_str()), (3, "The"));
    // One example stands for the three documents.
    assert_eq!(analysis.examples.iter().map(|example| example.n_alike).collect::<Vec<_>>(), [3, 3, 3]);
    assert_eq!(analysis.cases[1].gold_rank, Some(2));
    let json = serde_json::to_string(&analysis).unwrap();
    assert_eq!(serde_json::from_str::<ErrorAnalysis>(&json).unwrap(), analysis);
}

#[test]
fn contexts_are_sentences_in_code_points() {
    let text = "βγ is here. A long αβ disc of two parts. It ends.";
    let gold = [document("1", text, &["disc…parts S1 -"])];
    let analysis = analysis(&gold, &[linked("1", text, &[])]);
    let context = &analysis.examples[0].context;
    assert_eq!((context.text.as_str(), context.start), ("A long αβ disc of two parts.", 12));
    assert_eq!(analysis.cases[0].gold.as_ref().unwrap().spans, [(22, 26), (34, 39)]);
    let long = format!("{} disc {}", "word ".repeat(400), "word ".repeat(400));
    let analysis = self::analysis(&[document("1", &long, &["disc S1 -"])], &[]);
    let context = &analysis.examples[0].context;
    assert!(context.cut_before && context.cut_after && context.text.len() < 500, "{}", context.text.len());
}

/// The page on the given documents.
fn page_of(gold: &[AnnotatedDocument], predicted: &[AnnotatedDocument]) -> String {
    let paired = pair(gold, predicted).unwrap();
    let config = EvalConfig { by_type: true, ..EvalConfig::default() };
    let report = evaluate_pairs(&paired, &config, &mut SplitMix64::new(13));
    let curves = curves(&links(&paired.documents, config.matching.ids), &CurveConfig::default());
    let errors = analysis(gold, predicted);
    let facts = [("Gold file".to_owned(), "a < b & \"c\"".to_owned())];
    page(&Page { report: &report, errors: Some(&errors), curves: Some(&curves), facts: &facts })
}

/// Reads the page as XML, which fails where an element does not close; gives its elements and its visible text.
fn parse(page: &str) -> (Vec<String>, String) {
    let mut reader = Reader::from_str(page);
    let (mut elements, mut text, mut hidden) = (Vec::new(), String::new(), false);
    loop {
        match reader.read_event().expect("the page is well-formed") {
            Event::Start(start) => {
                let name = start.name().as_ref().to_owned();
                hidden = matches!(name.as_str(), "style" | "script");
                elements.push(name);
            }
            Event::End(_) => hidden = false,
            Event::Text(piece) if !hidden => text.push_str(&piece),
            Event::GeneralRef(name) => text.push_str(match &*name {
                "lt" => "<",
                "gt" => ">",
                "amp" => "&",
                "quot" => "\"",
                _ => "'",
            }),
            Event::Eof => return (elements, text),
            _ => {}
        }
    }
}

#[test]
fn a_page_shows_every_example_and_loads_nothing() {
    let hostile = "A disc <script>alert(1)</script> & a \"box\" \u{1} '><img src=x onerror=alert(2)>.";
    let gold = [document("<b>7", hostile, &["disc S1 <i>Curve</i>", "box S3 Solid"]), document("8", "A line.", &[])];
    let predicted = [linked("<b>7", hostile, &["box S2,S3 -", "script S4 -"]), linked("8", "A line.", &["line S5 -"])];
    let page = page_of(&gold, &predicted);
    let (elements, text) = parse(&page);
    assert_eq!(elements.iter().filter(|name| *name == "script").count(), 1, "only our own");
    assert!(!elements.iter().any(|name| matches!(name.as_str(), "img" | "i" | "link" | "iframe")));
    assert!(
        !page.contains("<script>alert")
            && !page.contains("<img")
            && !page.contains("http://")
            && !page.contains("https://")
    );
    assert!(text.contains("A disc <script>alert(1)</script> & a \"box\""));
    for example in &analysis(&gold, &predicted).examples {
        assert!(text.contains(&example.context.text.replace('\u{1}', "\u{fffd}")), "{}", example.context.text);
    }
    for table in page.split("<table").skip(1) {
        assert!(table.trim_start_matches('>').trim_start().starts_with("<caption>"), "every table has a caption");
    }
    assert_eq!(page, page_of(&gold, &predicted));
}

#[test]
fn an_empty_page_is_well_formed() {
    for report in
        [Default::default(), evaluate_pairs(&Default::default(), &EvalConfig::default(), &mut SplitMix64::new(1))]
    {
        let page = page(&Page { report: &report, errors: Some(&ErrorAnalysis::default()), curves: None, facts: &[] });
        assert!(parse(&page).1.contains("Evaluation"));
    }
}

fn any_document(id: usize) -> impl Strategy<Value = (AnnotatedDocument, AnnotatedDocument)> {
    let any_annotations = || prop::collection::vec((0usize..12, 1usize..6, 0usize..4), 0..6);
    (any_annotations(), any_annotations()).prop_map(move |(gold, predicted)| {
        let text = "disc box line ring";
        let annotated = |rows: Vec<(usize, usize, usize)>| {
            let annotation = |(start, len, id): (usize, usize, usize)| Annotation {
                spans: vec![Span::new(start, start + len)],
                ids: vec![["S1", "S2", "S3", "-1"][id].to_owned()],
                ..Annotation::default()
            };
            let mut document = document(&id.to_string(), text, &[]);
            document.annotations = rows.into_iter().map(annotation).collect();
            document
        };
        (annotated(gold), annotated(predicted))
    })
}

proptest! {
    #[test]
    fn classes_add_up_to_what_the_measures_count(first in any_document(1), second in any_document(2)) {
        let (gold, predicted) = ([first.0, second.0], [first.1, second.1]);
        let errors = analysis(&gold, &predicted);
        let documents = pair(&gold, &predicted).unwrap().documents;
        let total = |measure| documents.iter().map(|document| count(measure, document, MatchConfig::default()))
            .sum::<canonym_core::eval::matching::Counts>();
        let strict = total(Measure::Strict);
        prop_assert_eq!((errors.n_gold, errors.n_pred), (strict.n_gold, strict.n_pred));
        let n_of = |classes: &[ErrorClass]| -> u64 {
            errors.classes.iter().filter(|count| classes.contains(&count.class)).map(|count| count.n_cases).sum()
        };
        prop_assert_eq!(n_of(&[ErrorClass::Correct, ErrorClass::Type]) as f64, strict.tp_gold);
        let overlapping = n_of(&[ErrorClass::Correct, ErrorClass::Type, ErrorClass::Boundary]) as f64;
        prop_assert!(overlapping <= total(Measure::PartialOneToOne).tp_gold);
        prop_assert_eq!(errors.cases.len() as u64, n_of(&ErrorClass::ALL));
    }
}
