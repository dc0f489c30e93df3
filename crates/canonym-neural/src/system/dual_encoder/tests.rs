use super::*;
use crate::bundle::dual_encoder::tests::bundle;
use crate::models::mention_prior::MentionPrior;
use crate::system::name_scorer::NameScorer;
use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::text::Document;

fn kb() -> Arc<KnowledgeBase> {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, names) in
        [("A:1", ["gout", "acute gout"]), ("A:2", ["liver pain", "liver ache"]), ("A:3", ["kidney", "kidneys"])]
    {
        let name = |text: &&str| NameRecord { text: (*text).to_owned(), scope: Scope::Exact };
        builder
            .add(ConceptRecord { id: id.to_owned(), names: names.iter().map(name).collect(), ..Default::default() })
            .unwrap();
    }
    Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap())
}

fn linker(change: impl Fn(&mut DualBundle), config: DualConfig, subset: Option<Arc<Subset>>) -> DualLinker {
    let mut bundle = bundle();
    change(&mut bundle);
    let kb = kb();
    let kind = bundle.manifest.concepts;
    let texts = ConceptRows::of(&kb, kind).texts(&kb, kind, &bundle.windower().unwrap());
    let vectors = bundle.encoder().unwrap().encode_names(&texts).unwrap();
    DualLinker::new(kb, &bundle, vectors, config, subset).unwrap()
}

const CONFIG: DualConfig =
    DualConfig { link: LinkConfig { top_k: 3, min_score: 0.0 }, min_span: Some(0.3), nested: false };

fn documents() -> Vec<Document> {
    let texts = ["Acute gout and liver pain.", "", "Kidney pain. ".repeat(12).leak(), "gout"];
    texts.map(|text| Document { id: String::new(), text: text.to_owned(), sections: Vec::new() }).to_vec()
}

fn spans(text: &str) -> Vec<Mention> {
    let found = ["gout", "liver pain", "Kidney", "pain"].iter().flat_map(|name| text.match_indices(name));
    found.map(|(at, name)| Mention::contiguous(Span { start: at as u32, end: (at + name.len()) as u32 })).collect()
}

#[test]
fn documents_are_linked_alone_as_together_and_every_mention_has_all_concepts() {
    for lexical in [0.0, 1.0] {
        let linker = linker(|bundle| bundle.manifest.fusion.lexical = lexical, CONFIG, None);
        let documents = documents();
        let mentions: Vec<Vec<Mention>> = documents.iter().map(|document| spans(&document.text)).collect();
        let analysed = Analysis::all(&documents);
        let marked = LinkInput::all(&analysed, &mentions);
        let together = linker.link(&marked).unwrap();
        for (marked, links) in marked.iter().zip(&together) {
            assert_eq!(links.len(), marked.mentions.len());
            assert!(links.iter().all(|link| link.candidates.len() == 3 && !link.nil));
            let alone = linker.link(std::slice::from_ref(marked)).unwrap().remove(0);
            for (left, right) in
                alone.iter().flat_map(|link| &link.candidates).zip(links.iter().flat_map(|link| &link.candidates))
            {
                assert!(left.concept == right.concept && (left.p_link - right.p_link).abs() < 1e-4);
            }
        }
        assert_eq!(linker.link_names(&["gout", "", "liver ache"]).unwrap().len(), 3);
    }
}

#[test]
fn a_name_scorer_adds_name_scores_with_lexical_fusion_only() {
    let names = || {
        let names = crate::bundle::names::tests::bundle().name_encoder().unwrap();
        let vectors = names.encode_forms(&kb());
        Arc::new(NameEvidence {
            names: Some(NameScorer::new(names, FlatIndex::new(vectors))),
            ..NameEvidence::default()
        })
    };
    let document = Document { id: String::new(), text: "A liver pain.".to_owned(), sections: Vec::new() };
    let mentions = [Mention::contiguous(Span { start: 2, end: 12 })];
    let marked = [LinkInput { document: &Analysis::new(&document), mentions: &mentions }];
    let of = |linker: &DualLinker| linker.evidence(&marked).unwrap().remove(0).remove(0);
    let not_fused = linker(|_| (), CONFIG, None).with_name_evidence(names());
    assert!(of(&not_fused).iter().all(|one| one.name_score == 0.0));
    let fused = |name: f32| {
        let change =
            |bundle: &mut DualBundle| (bundle.manifest.fusion.lexical, bundle.manifest.fusion.name) = (1.0, name);
        linker(change, CONFIG, None)
    };
    assert!(of(&fused(1.0)).iter().all(|one| one.name_score == 0.0));
    let scored = fused(50.0).with_name_evidence(names());
    let best = |one: &&Evidence| scored.kb().id(one.scored.concept) == "A:2";
    let evidence = of(&scored);
    let same = evidence.iter().find(best).unwrap();
    assert!((same.name_score - 1.0).abs() < 1e-5, "its own name has its direction: {}", same.name_score);
    assert!(evidence.iter().all(|one| one.name_score <= same.name_score + 1e-5));
    let (link, explanation) = Linker::explain(&scored, &marked).unwrap().remove(0).remove(0);
    assert_eq!(scored.kb().id(link.candidates[0].concept), "A:2");
    let first = &explanation.candidates[0];
    assert!(first.contributions.iter().any(|part| part.feature == "name" && part.log_odds > 1.0), "{first:?}");
    let sum: f64 = first.contributions.iter().map(|part| part.log_odds).sum();
    assert!((sum - first.log_odds).abs() < 1e-2, "{first:?}");
    // An empty name has no name score, and no candidate is lost.
    assert_eq!(scored.link_names(&["", "zebra"]).unwrap().len(), 2);
}

#[test]
fn what_a_name_was_used_for_joins_what_its_text_says() {
    let mut prior = MentionPrior::default();
    (0..30).for_each(|_| prior.add("liver pain", Some("A:3")));
    let document = Document { id: String::new(), text: "A liver pain, gout.".to_owned(), sections: Vec::new() };
    let mentions = [Mention::contiguous(Span { start: 2, end: 12 }), Mention::contiguous(Span { start: 14, end: 18 })];
    let marked = [LinkInput { document: &Analysis::new(&document), mentions: &mentions }];
    for lexical in [0.0, 1.0] {
        let plain = linker(|bundle| bundle.manifest.fusion.lexical = lexical, CONFIG, None);
        let before = plain.link(&marked).unwrap().remove(0);
        let name_evidence = NameEvidence { prior: prior.on(plain.kb()), ..NameEvidence::default() };
        let counted = plain.with_name_evidence(Arc::new(name_evidence));
        let after = counted.link(&marked).unwrap().remove(0);
        assert_eq!(counted.kb().id(after[0].candidates[0].concept), "A:3");
        assert!(after[0].candidates[0].p_link > 0.9 && !after[0].nil, "{after:?}");
        assert_eq!(after[1], before[1], "of other names nothing was counted");
        for (link, (again, explanation)) in after.iter().zip(Linker::explain(&counted, &marked).unwrap().remove(0)) {
            assert_eq!(*link, again);
            for (candidate, explained) in link.candidates.iter().zip(&explanation.candidates) {
                let sum: f64 = explained.contributions.iter().map(|part| part.log_odds).sum();
                assert!((sum - explained.log_odds).abs() < 1e-2, "{explained:?}");
                assert!((explained.score - f64::from(candidate.p_link)).abs() < 1e-3, "{explained:?}");
            }
        }
        let found = counted.annotate(&[Analysis::new(&document)]).unwrap().remove(0);
        let explained = Annotator::explain(&counted, &[Analysis::new(&document)]).unwrap().remove(0);
        assert!(found.iter().zip(&explained).all(|(one, (again, _))| one == again) && found.len() == explained.len());
    }
}

#[test]
fn shares_of_candidates_are_logarithms_and_sum_to_one() {
    let linker =
        linker(|bundle| bundle.manifest.concepts = crate::bundle::dual_encoder::ConceptNames::Preferred, CONFIG, None);
    let documents = documents();
    let mentions = spans(&documents[0].text);
    let evidence = linker
        .evidence(&[LinkInput { document: &Analysis::new(&documents[0]), mentions: &mentions }])
        .unwrap()
        .remove(0);
    for mention in evidence {
        assert_eq!(mention.len(), 3);
        let sum: f32 = mention.iter().map(|one| one.dense_score.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }
}

#[test]
fn a_subset_leaves_no_other_concept() {
    let kb = kb();
    let subset = Subset::of(&kb, |concept| kb.id(concept) == "A:2");
    for lexical in [0.0, 1.0] {
        let linker = linker(|bundle| bundle.manifest.fusion.lexical = lexical, CONFIG, Some(Arc::new(subset.clone())));
        let link = linker.link_names(&["gout"]).unwrap().remove(0);
        let ids: Vec<&str> = link.candidates.iter().map(|candidate| linker.kb().id(candidate.concept)).collect();
        assert_eq!(ids, ["A:2"]);
    }
}

#[test]
fn found_mentions_stand_in_the_text_do_not_overlap_and_are_the_same_alone() {
    let documents = documents();
    let whole = linker(|_| (), CONFIG, None);
    let found = whole.annotate(&Analysis::all(&documents)).unwrap();
    assert!(found.iter().flatten().count() > 0);
    for (document, linked) in documents.iter().zip(&found) {
        let alone = whole.annotate(&[Analysis::new(document)]).unwrap().remove(0);
        assert_eq!(alone.len(), linked.len());
        for pair in linked.windows(2) {
            assert!(pair[0].mention.spans[0].end <= pair[1].mention.spans[0].start, "{linked:?}");
        }
        for one in linked {
            let span = one.mention.spans[0];
            assert!(!span.of(&document.text).trim().is_empty() && one.p_both <= 1.0);
        }
    }
    let nested =
        linker(|_| (), DualConfig { nested: true, ..CONFIG }, None).annotate(&Analysis::all(&documents)).unwrap();
    assert!(nested.iter().flatten().count() >= found.iter().flatten().count());
    let none = linker(|_| (), DualConfig { min_span: Some(1.0), ..CONFIG }, None)
        .annotate(&Analysis::all(&documents))
        .unwrap();
    assert_eq!(none.iter().flatten().count(), 0);
    let tagged = linker(|bundle| bundle.manifest.model.search = Some(SpanSearch::Tags), CONFIG, None);
    assert_eq!(tagged.annotate(&Analysis::all(&documents)).unwrap().len(), 4);
    let blind = linker(|bundle| bundle.manifest.model.search = None, CONFIG, None);
    assert!(blind.annotate(&Analysis::all(&documents)).unwrap_err().to_string().contains("cannot detect mentions"));
}

#[test]
fn spans_and_links_are_weighed_together_and_reasons_add_up_to_that() {
    let documents = documents();
    let weights = Joint { span: 0.8, link: 1.2, offset: -0.3, threshold: 0.2 };
    let apart = linker(|_| (), DualConfig { nested: true, ..CONFIG }, None);
    for lexical in [0.0, 1.0] {
        let change = |bundle: &mut DualBundle| {
            (bundle.manifest.fusion.lexical, bundle.manifest.joint) = (lexical, Some(weights));
        };
        let joint = linker(change, DualConfig { nested: true, ..CONFIG }, None);
        let found = joint.annotate(&Analysis::all(&documents)).unwrap();
        assert!(found.iter().flatten().count() > 0);
        let explained = Annotator::explain(&joint, &Analysis::all(&documents)).unwrap();
        let spans = apart.find(&Analysis::all(&documents), &[], joint::MIN_SPAN).unwrap();
        for ((found, explained), spans) in found.iter().zip(&explained).zip(&spans) {
            assert_eq!(found.len(), explained.len());
            for (one, (again, explanation)) in found.iter().zip(explained) {
                assert_eq!(one, again);
                let (_, of_span) = spans.iter().find(|(span, _)| *span == one.mention.spans[0]).unwrap();
                assert!(*of_span >= 0.3 || one.p_both >= weights.threshold, "one of both is likely");
                assert_eq!(one.link.nil, one.p_both < weights.threshold);
                assert!((one.p_both_of(&one.link.candidates[0]) - one.p_both).abs() < 1e-6);
                for (candidate, explained) in one.link.candidates.iter().zip(&explanation.candidates) {
                    let sum: f64 = explained.contributions.iter().map(|part| part.log_odds).sum();
                    assert!((sum - explained.log_odds).abs() < 1e-2, "{explained:?}");
                    assert!((explained.score - f64::from(one.p_both_of(candidate))).abs() < 1e-3, "{explained:?}");
                }
            }
        }
    }
    // Given mentions have no mention probability to explain.
    let mentions: Vec<Vec<Mention>> = documents.iter().map(|document| spans(&document.text)).collect();
    let analysed = Analysis::all(&documents);
    let marked = LinkInput::all(&analysed, &mentions);
    let (links, explained) = (apart.link(&marked).unwrap(), Linker::explain(&apart, &marked).unwrap());
    for (link, (again, explanation)) in links.iter().flatten().zip(explained.iter().flatten()) {
        assert_eq!(link, again);
        let parts = explanation.candidates.iter().flat_map(|one| &one.contributions);
        assert!(parts.clone().any(|part| part.feature == "context") && parts.clone().all(|p| p.feature != "mention"));
    }
}

#[test]
fn words_begin_where_no_letter_stands_before() {
    let tokenizer = bundle().tokenizer;
    let text = "aches (gout) liver-pain";
    assert_eq!(begins_word(text, &tokenizer.tokens(text)), [true, false, true, true, true, true, true, true]);
}
