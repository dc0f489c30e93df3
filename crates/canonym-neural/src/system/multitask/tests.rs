use std::path::Path;

use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::text::Document;

use super::*;
use crate::bundle::multitask::tests::bundle_of;
use crate::models::multitask::Framing;
use crate::tensor::parameters::Precision;

const TEXT: &str = "We saw a fever. The göut saw. A rash, the fever gout.";

fn linker(framing: Framing, ids: &[&str]) -> MultitaskLinker {
    let config =
        RecogniseConfig { top_k: 3, min_score: Some(0.0), nested: canonym_core::link::recognise::Nested::None };
    MultitaskModel(Arc::new(bundle_of(framing, &Task::ALL))).built(&target(ids), config).unwrap()
}

fn target(ids: &[&str]) -> Target {
    target_with(ids, |_| Vec::new())
}

fn target_with(ids: &[&str], types: impl Fn(&str) -> Vec<String>) -> Target {
    let mut builder = KnowledgeBaseBuilder::new();
    for id in ids {
        let names = vec![NameRecord { text: format!("name of {id}"), scope: Scope::Exact }];
        let types = types(id);
        let id = if id.contains(':') { (*id).to_owned() } else { format!("MESH:{id}") };
        builder.add(ConceptRecord { id, names, types, ..ConceptRecord::default() }).unwrap();
    }
    let kb = Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap());
    Target::new(&kb, None)
}

fn document(text: &str) -> Document {
    Document { id: "7".to_owned(), text: text.to_owned(), sections: Vec::new() }
}

fn link(linker: &MultitaskLinker, text: &str, spans: &[Vec<(u32, u32)>]) -> Result<Vec<Link>> {
    let span = |(start, end): &(u32, u32)| Span { start: *start, end: *end };
    let mention = |spans: &Vec<(u32, u32)>| Mention {
        spans: spans.iter().map(span).collect(),
        ..Mention::contiguous(Span::new(0, 0))
    };
    let mentions: Vec<Mention> = spans.iter().map(mention).collect();
    let document = document(text);
    let inputs = [LinkInput { document: &Analysis::new(&document), mentions: &mentions }];
    let explained = Linker::explain(linker, &inputs)?.remove(0);
    let links = linker.link(&inputs)?.remove(0);
    assert_eq!(explained.into_iter().map(|(link, _)| link).collect::<Vec<_>>(), links);
    Ok(links)
}

#[test]
fn given_mentions_are_linked_however_they_lie() {
    for framing in [Framing::Token, Framing::Entity] {
        let linker = linker(framing, &["D1", "D2", "D3"]);
        // Whole words, inside of a word, overlapping, nested, with white space around, across sentences, in two parts.
        let spans = [(9, 14), (11, 13), (9, 20), (10, 14), (8, 15), (0, 40)].map(|span| vec![span]);
        let spans = [&spans[..], &[vec![(9, 14), (20, 25)]]].concat();
        let links = link(&linker, TEXT, &spans).unwrap();
        assert!(links.iter().all(|link| !link.nil && link.candidates.len() == 3), "{links:?}");
        // Without text.
        let links = link(&linker, TEXT, &[vec![(9, 9)], vec![(8, 9)], vec![], vec![(9, 14)]]).unwrap();
        assert_eq!(links.iter().map(|link| link.nil).collect::<Vec<_>>(), [true, true, true, false]);
        assert_eq!(links[3], link(&linker, TEXT, &[vec![(9, 14)]]).unwrap()[0]);
        assert_eq!(link(&linker, "", &[vec![(0, 0)]]).unwrap(), [Link { candidates: Vec::new(), nil: true }]);
        // Out of the text, within a character, and reversed.
        for (span, text) in [((9, 99), TEXT), ((20, 22), TEXT), ((22, 25), TEXT), ((14, 9), TEXT), ((0, 1), "")] {
            let error = link(&linker, text, &[vec![span]]).unwrap_err();
            assert!(error.to_string().contains("not within the text of document `7`"), "{error}");
            assert!(error.hint().is_some());
        }
    }
}

#[test]
fn texts_without_words_have_no_mentions() {
    let linker = linker(Framing::Token, &["D1"]);
    let documents = ["", " \n", TEXT, ""].map(document);
    let found = linker.annotate(&Analysis::all(&documents)).unwrap();
    assert_eq!(found.len(), 4);
    assert!(found[0].is_empty() && found[1].is_empty() && found[3].is_empty());
    assert_eq!(found[2], linker.annotate(&Analysis::all(&documents[2..3])).unwrap()[0]);
}

#[test]
fn the_next_class_is_no_substitute_and_has_its_own_probability() {
    let whole = linker(Framing::Token, &["D1", "D2", "D3"]);
    let span = LinkedSpan { first: 0, last: 0, p_mention: 0.5, classes: vec![(2, 0.6), (1, 0.3), (3, 0.1)] };
    assert!(!whole.link_of(&span).nil);
    let linker = linker(Framing::Token, &["D1", "D3"]);
    let link = linker.link_of(&span);
    let p_link: Vec<f32> = link.candidates.iter().map(|candidate| candidate.p_link).collect();
    assert_eq!((link.nil, p_link), (true, vec![0.3, 0.1]));
    let text = linker.tagger.splitter().read(&Analysis::of_text(TEXT), &[]);
    let labelled = Labelled { concept_spans: vec![span], ..Labelled::default() };
    let linked = linker.linked(TEXT, &text, &labelled).remove(0);
    // Of the first candidate, whether it is linked or not; the score of an unlinked mention is that of the mention.
    assert!((linked.p_both - 0.15).abs() < 1e-6 && (linked.p_both_of(&linked.link.candidates[1]) - 0.05).abs() < 1e-6);
    assert!((linked.score() - 0.5).abs() < 1e-6);
}

#[test]
fn explanations_are_those_of_their_candidates_even_if_one_has_none() {
    let linker = linker(Framing::Token, &["D1", "D2"]);
    let candidates: Vec<Candidate> = linker
        .kb
        .concepts()
        .zip([0.6, 0.3])
        .map(|(concept, p_link)| Candidate { concept, name: None, p_link })
        .collect();
    let link = Link { candidates, nil: false };
    let mention = Mention { p_mention: 0.5, ..Mention::contiguous(Span::new(0, 2)) };
    let linked = LinkedMention { mention, p_both: 0.3, link };
    let whole = linker.explanation("We".to_owned(), &linked.link);
    let explained = |mut explanation: Explanation| {
        explain_mention(&linker.kb, &mut explanation, &linked);
        explanation.candidates.into_iter().map(|one| (one.id, one.log_odds)).collect::<Vec<_>>()
    };
    let both = explained(whole.clone());
    assert!((both[1].1 - f64::from(log_odds(0.15))).abs() < 1e-3, "{both:?}");
    let second = Explanation { candidates: vec![whole.candidates[1].clone()], ..whole };
    assert_eq!(explained(second), both[1..]);
}

#[test]
fn mentions_of_a_model_that_does_not_link_have_their_own_probability() {
    for tasks in [&[Task::Mentions][..], &[Task::Mentions, Task::Types]] {
        let linker = linker(Framing::Token, &["D1"]);
        let mut tagger = linker.tagger;
        tagger.config.tasks = tasks.to_vec();
        let linker = MultitaskLinker { tagger, ..linker };
        let text = linker.tagger.splitter().read(&Analysis::of_text(TEXT), &[]);
        let found = FoundSpan {
            span: crate::models::multitask::decode::WordSpan { first: 3, last: 3, class: 1 },
            p_mention: 0.7,
        };
        let labelled = Labelled { mention_spans: vec![found], type_spans: vec![found], ..Labelled::default() };
        let linked = linker.linked(TEXT, &text, &labelled).remove(0);
        assert_eq!((linked.mention.p_mention, linked.p_both, linked.link.nil, linked.score()), (0.7, 0.0, true, 0.7));
        assert_eq!(linked.mention.semantic_type.as_deref(), Some("A"));
    }
}

#[test]
fn symbols_beside_a_mention_are_no_part_of_it() {
    let linker = linker(Framing::Token, &["D1", "D2", "D3"]);
    let text = "😀 fever. • gout ✔ saw 😀";
    let words = linker.tagger.splitter().read(&Analysis::of_text(text), &[]);
    assert_eq!(words.words.len(), 8);
    let span = |first, last, class| LinkedSpan { first, last, p_mention: 0.5, classes: vec![(class, 0.6)] };
    // Both with a symbol before and after, one with a symbol inside, and one of a symbol alone.
    let concept_spans = vec![span(0, 1, 1), span(3, 4, 2), span(4, 6, 3), span(7, 7, 1), span(3, 5, 1)];
    let linked = linker.linked(text, &words, &Labelled { concept_spans, ..Labelled::default() });
    let found: Vec<(&str, &str)> = linked
        .iter()
        .map(|one| (one.mention.spans[0].of(text), linker.kb.id(one.link.candidates[0].concept)))
        .collect();
    assert_eq!(found, [("fever", "MESH:D1"), ("gout", "MESH:D2"), ("gout ✔ saw", "MESH:D3"), ("gout", "MESH:D1")]);
}

#[test]
fn an_unlinked_mention_has_the_type_of_its_best_candidate() {
    let types = |ids: &[&str], min_score| {
        let config = RecogniseConfig {
            top_k: 3,
            min_score: Some(min_score),
            nested: canonym_core::link::recognise::Nested::None,
        };
        let linker = MultitaskModel(Arc::new(bundle_of(Framing::Token, &Task::ALL)))
            .built(&target_with(ids, |id| vec![format!("type of {id}")]), config)
            .unwrap();
        let span = LinkedSpan { first: 0, last: 0, p_mention: 0.5, classes: vec![(2, 0.6), (1, 0.3)] };
        let own = Mention { semantic_type: Some("A".to_owned()), ..Mention::contiguous(Span::new(0, 2)) };
        let linked = linker.linked_mention(own, &span);
        (linked.link.nil, linked.mention.semantic_type.unwrap())
    };
    assert_eq!(types(&["D1", "D2"], 0.0), (false, "type of D2".to_owned()));
    assert_eq!(types(&["D1", "D2"], 0.9), (true, "type of D2".to_owned()));
    // The knowledge base lacks the best class, and the type of the next one is no substitute.
    assert_eq!(types(&["D1"], 0.0), (true, "A".to_owned()));
}

#[test]
fn mentions_of_a_detector_get_types_and_concepts() {
    let mut detector = bundle_of(Framing::Token, &[Task::Mentions]);
    detector.manifest.model.lenient = true;
    let detector = detector.to_bytes(Precision::Single).unwrap();
    let detected = MultitaskBundle::from_bytes(&detector, Path::new("x")).unwrap();
    let config =
        RecogniseConfig { top_k: 3, min_score: Some(0.0), nested: canonym_core::link::recognise::Nested::None };
    let (target, documents) = (target(&["D1", "D2", "D3"]), [TEXT, "", "gout"].map(document));
    let annotate = |bundle: MultitaskBundle| {
        MultitaskModel(Arc::new(bundle))
            .annotator(&target, config)
            .unwrap()
            .annotate(&Analysis::all(&documents))
            .unwrap()
    };
    let expected = annotate(detected);
    assert!(!expected[0].is_empty());
    for tasks in [&[Task::Types][..], &[Task::Concepts], &[Task::Types, Task::Concepts]] {
        let found = annotate(bundle_of(Framing::Entity, tasks).with_detector(detector.clone()));
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert_eq!(
                (&found.mention.spans, found.mention.p_mention),
                (&expected.mention.spans, expected.mention.p_mention)
            );
            assert_eq!(found.mention.semantic_type.is_some(), tasks.contains(&Task::Types));
            assert_eq!(found.link.candidates.len(), if tasks.contains(&Task::Concepts) { 3 } else { 0 });
            assert_eq!(found.link.nil, !tasks.contains(&Task::Concepts));
        }
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), expected.iter().map(Vec::len).collect::<Vec<_>>());
    }
}

#[test]
fn concepts_are_found_by_their_ids_and_not_by_the_numbers_of_other_ontologies() {
    let target = target(&["UBERON:0000062", "CL:0000062", "OMIM:114500", "CHEBI:114500", "D1"]);
    let by_id = ConceptsById::new(&target);
    let found = |id: &str| by_id.find(id).map(|concept| target.kb.id(concept));
    for (id, expected) in [
        ("CL:0000062", Some("CL:0000062")),
        ("UBERON:0000062", Some("UBERON:0000062")),
        ("GO:0000062", None),
        ("CHEBI:114500", Some("CHEBI:114500")),
        ("114500", Some("OMIM:114500")),
        ("D1", Some("MESH:D1")),
        ("MESH:D1", Some("MESH:D1")),
        ("D2", None),
    ] {
        assert_eq!(found(id), expected, "{id}");
    }
    // Corpora without prefixes, and models that were trained without them.
    assert!(found("0000062").is_some());
}
