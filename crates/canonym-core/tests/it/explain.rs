//! Explanations add up to the scores they explain, and link as without them.

use std::sync::Arc;

use canonym_core::index::grams::GramScratch;
use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::explain::{Agreement, Explanation};
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::scan::ScanScratch;
use canonym_core::link::recognise::{DictionaryAnnotator, RecogniseConfig};
use canonym_core::text::Document;
use canonym_core::text::analysis::Analysis;

const CONCEPTS: [(&str, &[&str]); 7] = [
    ("T:1", &["Familial Mediterranean fever", "periodic peritonitis"]),
    ("T:2", &["Breast cancer", "cancer of the breast"]),
    ("T:3", &["Ovarian cancer"]),
    ("T:4", &["Common cold", "cold"]),
    ("T:5", &["Low temperature", "cold"]),
    ("T:6", &["Dry cough"]),
    ("T:7", &["Heart failure, congestive"]),
];

fn kb() -> Arc<KnowledgeBase> {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, names) in CONCEPTS {
        let scope = |row| if row == 0 { Scope::Preferred } else { Scope::Exact };
        let name = |(row, name): (usize, &&str)| NameRecord { text: (*name).to_owned(), scope: scope(row) };
        let names = names.iter().enumerate().map(name).collect();
        builder.add(ConceptRecord { id: id.to_owned(), names, ..ConceptRecord::default() }).unwrap();
    }
    Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "small.kb").unwrap())
}

/// Parts that are rounded to four places add up to less than this beside the truth.
const TOLERANCE: f64 = 3e-3;

fn check_sums(explanation: &Explanation) {
    assert!(!explanation.candidates.is_empty());
    for candidate in &explanation.candidates {
        let sum: f64 = candidate.contributions.iter().map(|one| one.log_odds).sum();
        assert!((sum - candidate.log_odds).abs() < 1e-3, "{candidate:?}");
        let probability = 1.0 / (1.0 + (-candidate.log_odds).exp());
        assert!((probability - candidate.score).abs() < TOLERANCE, "{candidate:?}");
        assert!(candidate.contributions.iter().all(|one| !one.sentence.is_empty() && one.sentence != "none"));
    }
}

#[test]
fn parts_of_names_add_up_and_the_link_is_the_same() {
    let linker = LexicalLinker::new(kb(), LexicalModel::embedded(), LinkConfig::default());
    let mut scratch = GramScratch::default();
    for name in ["cold", "dry couhg", "breast cancers", "Cancer of the Breast", "congestive heart failure", "fever"] {
        let (link, explanation) = linker.explain_name(name, &mut scratch);
        assert_eq!(link, linker.link_name(name, &mut scratch));
        assert_eq!(link.candidates.len(), explanation.candidates.len());
        check_sums(&explanation);
    }
    let (link, explanation) = linker.explain_name("", &mut scratch);
    assert_eq!(link.candidates.len(), explanation.candidates.len());
}

fn explained(text: &str) -> Vec<(String, Explanation)> {
    let annotator = DictionaryAnnotator::new(
        kb(),
        AcceptModel::embedded(),
        RecogniseConfig { min_score: Some(0.05), ..RecogniseConfig::default() },
    );
    let document = Document { text: text.to_owned(), ..Document::default() };
    let mut scratch = ScanScratch::default();
    let explained = annotator.explain_one(&Analysis::new(&document), &mut scratch);
    let plain = annotator.annotate_one(&Analysis::new(&document), &mut scratch);
    assert!(explained.iter().map(|(linked, _)| linked).eq(&plain));
    explained.iter().for_each(|(_, explanation)| check_sums(explanation));
    explained.into_iter().map(|(linked, explanation)| (linked.mention.surface(text), explanation)).collect()
}

#[test]
fn definitions_of_short_forms_have_spans() {
    let text = "β: familial Mediterranean fever (FMF) is rare. FMF is treated.";
    let all = explained(text);
    let (_, last) = all.iter().rfind(|(mention, _)| mention == "FMF").unwrap();
    assert_eq!(last.compared, "familial Mediterranean fever");
    assert_eq!(last.candidates[0].how, Agreement::Fold);
    let definition = &last.definitions[0];
    assert_eq!((definition.short.as_str(), definition.span), ("FMF", (3, 31)));
    assert_eq!(definition.long, "familial Mediterranean fever");
}

#[test]
fn homonyms_list_differences_to_the_first() {
    let all = explained("The cold came back.");
    let candidates = &all[0].1.candidates;
    assert_eq!(candidates.len(), 2);
    assert!(candidates[0].behind_first.is_empty());
    let linker = LexicalLinker::new(kb(), LexicalModel::embedded(), LinkConfig::default());
    let (_, explanation) = linker.explain_name("common cold", &mut GramScratch::default());
    assert!(explanation.candidates[1].behind_first.iter().all(|one| one.log_odds < 0.0));
    assert!(!explanation.candidates[1].behind_first.is_empty());
}

#[test]
fn coordinations_and_words_are_explained() {
    let all = explained("Breast and ovarian cancers were found.");
    let (_, apart) = all.iter().find(|(mention, _)| mention == "Breast cancers").unwrap();
    assert!(apart.coordinated && apart.candidates[0].how == Agreement::Canonical);
    assert_eq!(apart.candidates[0].words[1].mention, "cancers");
    let (_, plain) = all.iter().find(|(mention, _)| mention == "ovarian cancers").unwrap();
    assert!(!plain.coordinated);
}
