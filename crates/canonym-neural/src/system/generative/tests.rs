use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::{Document, Span};

use super::*;
use crate::bundle::generative::tests::bundle;
use crate::models::generative::text::WrittenNames;

/// `gout` is the preferred name of D2 and a synonym of D1; the model cannot write the names of D4.
const CONCEPTS: [(&str, &[&str]); 4] = [
    ("D1", &["Fever", "Gout", "gout fever", "FEVER"]),
    ("D2", &["Gout", "pain of gout"]),
    ("D3", &["Rash", "the rash", "pain"]),
    ("D4", &["unknown", "rash of the pain of the gout"]),
];

fn target() -> Target {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, names) in CONCEPTS {
        let name = |text: &&str| NameRecord { text: (*text).to_owned(), scope: Scope::Exact };
        let names = names.iter().map(name).collect();
        builder.add(ConceptRecord { id: id.to_owned(), names, ..ConceptRecord::default() }).unwrap();
    }
    let kb = Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap());
    Target::new(&kb, None)
}

fn linker(target: &Target, change: impl Fn(&mut GenerativeManifest)) -> GenerativeLinker {
    let mut bundle = bundle();
    change(&mut bundle.manifest);
    bundle.linker(target, LinkConfig { top_k: 10, min_score: 0.0 }).unwrap()
}

/// The concepts and explanations of each word of a text.
fn each_word(linker: &GenerativeLinker, text: &str) -> Vec<(Vec<GeneratedConcept>, Explanation)> {
    let document = Document { id: "7".to_owned(), text: text.to_owned(), ..Document::default() };
    let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let mention = |word: &str| Mention::contiguous(Span::new(start(word), start(word) + word.len()));
    let mentions: Vec<Mention> = text.split(' ').map(mention).collect();
    let inputs = [LinkInput { document: &Analysis::new(&document), mentions: &mentions }];
    let found = linker.generate(&inputs).unwrap().remove(0);
    let explained = Linker::explain(linker, &inputs).unwrap().remove(0);
    let links = linker.link(&inputs).unwrap().remove(0);
    assert_eq!(explained.iter().map(|(link, _)| link).collect::<Vec<_>>(), links.iter().collect::<Vec<_>>());
    found.into_iter().zip(explained.into_iter().map(|(_, explanation)| explanation)).collect()
}

#[test]
fn names_are_those_of_the_knowledge_base_and_shared_ones_stand_first_for_their_preferred_concept() {
    let target = target();
    let kb = &target.kb;
    let coder = bundle().coder().unwrap();
    let names = NameTrie::new(kb, None, &coder);
    let mut ending: Vec<Vec<String>> = (0..names.trie().len() as u32)
        .map(|leaf| {
            let show = |name| format!("{} {}", kb.id(kb.concept_of(name)), kb.name(name));
            names.ending_at(leaf).map(show).collect()
        })
        .filter(|names: &Vec<String>| !names.is_empty())
        .collect();
    ending.sort_unstable();
    let expected: [&[&str]; 7] = [
        &["D1 Fever"],
        &["D1 gout fever"],
        &["D2 Gout", "D1 Gout"],
        &["D2 pain of gout"],
        &["D3 Rash"],
        &["D3 pain"],
        &["D3 the rash"],
    ];
    assert_eq!(ending, expected);
    assert_eq!((names.len(), names.n_unwritten()), (7, 2));
    // Eight names of a concept and seven groups, beyond the trie.
    assert_eq!(names.n_bytes(), names.trie().n_bytes() + 4 * (8 + 7));
    assert!(NameTrie::default().is_empty() && NameTrie::default().ending_at(0).next().is_none());
}

#[test]
fn only_preferred_names_are_written_if_the_model_says_so() {
    let target = target();
    let linker = linker(&target, |manifest| manifest.text.names = WrittenNames::Preferred);
    assert_eq!((linker.names().len(), linker.names().n_unwritten()), (3, 1));
    for (found, _) in each_word(&linker, "gout pain") {
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|one| one.name == target.kb.names(one.concept).next()));
    }
}

#[test]
fn the_parts_of_an_explanation_add_up_to_the_log_odds() {
    let target = target();
    let calibrated = Calibration { share: 0.7, score: 0.4, bias: -0.3 };
    let candidates = |any_name| Candidates {
        score: 0.3,
        lexical: 0.2,
        bias: 0.4,
        beyond: if any_name { -0.6 } else { 0.0 },
        ..Candidates::unfitted(2, any_name)
    };
    let changes: [&dyn Fn(&mut GenerativeManifest); 5] = [
        &|_| {},
        &|manifest| manifest.calibration = calibrated,
        // A negative weight makes later concepts likelier, which are limited.
        &|manifest| manifest.calibration = Calibration { share: -0.5, ..calibrated },
        &|manifest| manifest.candidates = Some(candidates(false)),
        &|manifest| manifest.candidates = Some(candidates(true)),
    ];
    for (at, change) in changes.iter().enumerate() {
        let linker = linker(&target, change);
        for (found, explanation) in each_word(&linker, "gout rash pain the") {
            assert_eq!(found.len(), explanation.candidates.len());
            for one in &explanation.candidates {
                let sum: f64 = one.contributions.iter().map(|part| part.log_odds).sum();
                // Scores and parts are rounded to four digits.
                let p_link = 1.0 / (1.0 + (-sum).exp());
                assert!((p_link - one.score).abs() < 1e-3 && (sum - one.log_odds).abs() < 1e-3, "{at}: {one:?}");
            }
        }
    }
}

#[test]
fn a_candidate_that_was_not_written_is_explained_as_such() {
    let target = target();
    let linker = linker(&target, |manifest| manifest.candidates = Some(Candidates::unfitted(2, true)));
    let one = |name, lexical| GeneratedConcept { concept: ConceptId(0), name, score: -6.0, share: 0.0, lexical };
    let features = |one: &GeneratedConcept| {
        let p_link = sigmoid(linker.candidates.as_ref().unwrap().odds(one));
        let parts = linker.contributions(one, p_link);
        parts.into_iter().map(|part| format!("{}: {}", part.feature, part.sentence)).collect::<Vec<_>>()
    };
    let unwritten = features(&one(None, Some(0.4)));
    assert!(unwritten[0].starts_with("written: no name was written"), "{unwritten:?}");
    assert!(unwritten[1].starts_with("lexical: "), "{unwritten:?}");
    let beyond = features(&one(Some(NameId(0)), None));
    assert!(beyond[0].contains("that the model wrote") && beyond[1].starts_with("beyond: "), "{beyond:?}");
}

#[test]
fn concepts_beyond_the_candidates_are_ranked_if_any_name_may_be_written() {
    let target = target();
    let of = |any_name| {
        let linker = linker(&target, |manifest| manifest.candidates = Some(Candidates::unfitted(1, any_name)));
        assert_eq!(linker.names().is_empty(), !any_name);
        each_word(&linker, "gout rash").into_iter().map(|(found, _)| found).collect::<Vec<_>>()
    };
    let any_name = linker(&target, |_| {});
    let free: Vec<_> = each_word(&any_name, "gout rash").into_iter().map(|(found, _)| found).collect();
    for ((candidates, both), free) in of(false).iter().zip(of(true)).zip(free) {
        assert!(candidates.len() == 1 && candidates[0].lexical.is_some(), "{candidates:?}");
        let of_concept = |all: &[GeneratedConcept], concept| all.iter().find(|one| one.concept == concept).cloned();
        for one in candidates.iter().chain(&free) {
            let joined = of_concept(&both, one.concept).unwrap();
            assert!(joined.score >= one.score - 1e-5 && joined.name.is_some(), "{joined:?} {one:?}");
        }
        for one in &both {
            let is_candidate = of_concept(candidates, one.concept).is_some();
            assert_eq!(one.lexical.is_some(), is_candidate, "{one:?}");
            assert!(is_candidate || of_concept(&free, one.concept).is_some(), "{one:?}");
        }
        assert!(both.len() > 1);
    }
}

#[test]
fn many_beams_are_searched_for_few_mentions_at_once() {
    let n = |n_beams| n_together(&BeamConfig { n_beams, ..BeamConfig::default() });
    assert_eq!([1, 5, 10, 40, 2000].map(n), [32, 32, 16, 4, 1]);
    let (target, words) = (target(), "gout rash pain the of a fever gout rash");
    let of = |n_beams| {
        let linker = linker(&target, |manifest| manifest.beams.n_beams = n_beams);
        each_word(&linker, words).into_iter().map(|(found, _)| found).collect::<Vec<_>>()
    };
    // More beams than there are names find the same, one mention at a time.
    for (few, many) in of(10).iter().zip(of(1000)) {
        assert_eq!(few.len(), many.len());
        for (one, other) in few.iter().zip(&many) {
            assert!(one.concept == other.concept && (one.score - other.score).abs() < 1e-5, "{one:?} {other:?}");
        }
    }
}
