//! Ranking of concepts for given names, with the embedded weights.

use std::sync::Arc;

use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use expect_test::{Expect, expect};

const CONCEPTS: [(&str, &[&str]); 9] = [
    ("T:1", &["kidney diseases", "disease of the kidney"]),
    ("T:2", &["liver diseases", "hepatic disorder"]),
    ("T:3", &["glowing fever type 1"]),
    ("T:4", &["glowing fever type 2"]),
    ("T:5", &["blue moon syndrome", "BMS"]),
    ("T:6", &["brittle marble sickness", "BMS"]),
    ("T:7", &["skin neoplasms", "cancer of skin"]),
    ("T:8", &["nonpolyposis of the tail"]),
    ("T:9", &["thrombosis"]),
];

fn linker() -> LexicalLinker {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, names) in CONCEPTS {
        let names = names.iter().enumerate().map(|(row, name)| NameRecord {
            text: (*name).to_owned(),
            scope: if row == 0 { Scope::Preferred } else { Scope::Exact },
        });
        let record = ConceptRecord { id: id.to_owned(), names: names.collect(), ..ConceptRecord::default() };
        builder.add(record).expect("a small record");
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("small.kb");
    builder.write(Meta::default(), &path).expect("the knowledge base is written");
    let bytes = std::fs::read(&path).expect("it was just written");
    let kb = KnowledgeBase::from_vec(bytes, "small.kb").expect("it opens");
    LexicalLinker::new(Arc::new(kb), LexicalModel::embedded(), LinkConfig { top_k: 2, min_score: 0.0 })
}

/// The first two concepts of a name.
fn check(name: &str, expect: Expect) {
    let linker = linker();
    let links = linker.link_names(&[name, name]);
    assert_eq!(links[0], links[1]);
    let row = |concept: canonym_core::kb::ConceptId| format!("T:{}", concept.0 + 1);
    let shown: Vec<String> = links[0].candidates.iter().map(|candidate| row(candidate.concept)).collect();
    expect.assert_eq(&shown.join(" "));
}

/// The first concept of a name.
fn check_first(name: &str, id: &str) {
    let link = &linker().link_names(&[name])[0];
    let first = link.candidates.first().map(|candidate| format!("T:{}", candidate.concept.0 + 1));
    assert_eq!(first.as_deref(), Some(id), "{name}");
}

#[test]
fn synonyms_of_organs_and_disorders_match() {
    check_first("renal damage", "T:1");
    check_first("nephropathy", "T:1");
    check_first("severe hepatic impairment", "T:2");
    check_first("cutaneous carcinoma", "T:7");
    check_first("thrombotic", "T:9");
}

#[test]
fn numbers_distinguish_subtypes() {
    check("glowing fever type 2", expect!["T:4 T:3"]);
    check("glowing fever type I", expect!["T:3 T:4"]);
}

#[test]
fn homonyms_stay_apart() {
    let link = &linker().link_names(&["bms"])[0];
    let mut both: Vec<u32> = link.candidates.iter().map(|candidate| candidate.concept.0 + 1).collect();
    both.sort_unstable();
    assert_eq!(both, [5, 6]);
}

#[test]
fn blanks_inside_words_do_not_matter() {
    check_first("non polyposis of the tail", "T:8");
}

#[test]
fn an_empty_name_has_no_candidates() {
    check("😀", expect![""]);
}
