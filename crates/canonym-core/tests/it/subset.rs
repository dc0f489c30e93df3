//! A subset of a knowledge base gives what a knowledge base of only these concepts gives.

use std::sync::Arc;

use canonym_core::input::Source;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use canonym_core::kb::subset::{Subset, SubsetConfig};
use canonym_core::kb::{KnowledgeBase, KnowledgeBaseBuilder};
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::scan::ScanScratch;
use canonym_core::link::recognise::{DictionaryAnnotator, RecogniseConfig};
use canonym_core::text::Document;
use canonym_core::text::analysis::Analysis;
use expect_test::{Expect, expect};

/// Concepts of two sources and three types, in a hierarchy with a concept that has two parents.
const ALL: &str = r#"{"id":"X:1","name":"Disorder","types":["Finding"],"source":"S"}
{"id":"X:2","name":"Nephritis","synonyms":["kidney inflammation"],"types":["Disease"],"parents":["X:1"],"source":"S"}
{"id":"X:3","name":"Lupus nephritis","types":["Disease"],"parents":["X:2","X:6"],"source":"S"}
{"id":"X:4","name":"Lupus nephritis mouse model","types":["Model"],"source":"T"}
{"id":"X:5","name":"Nephritis","types":["Model"],"source":"T"}
{"id":"X:6","name":"Lupus erythematosus","synonyms":["lupus"],"types":["Disease"],"parents":["X:1"],"source":"T"}
{"id":"X:7","name":"Nephritides","types":["Finding"],"source":"T"}
"#;

fn kb(lines: &str) -> Arc<KnowledgeBase> {
    let source = Source::from_bytes("x.jsonl", lines.as_bytes().to_vec());
    let mut builder = KnowledgeBaseBuilder::new();
    let (config, mut report) = (ImportConfig::default(), Report::default());
    let mut add = |record| builder.add(record);
    import_sources(SourceFormat::Jsonl, &[source], &config, &mut report, &mut add).unwrap();
    Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap())
}

fn list(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The ids of the concepts that a choice keeps, or the error and its hint.
fn check(config: &SubsetConfig, expected: Expect) {
    let kb = kb(ALL);
    expected.assert_eq(&match Subset::choose(&kb, config) {
        Ok(subset) => kb.concepts().filter(|one| subset.has(*one)).map(|one| kb.id(one)).collect::<Vec<_>>().join(" "),
        Err(error) => format!("{error}\n{}", error.hint().unwrap_or_default()),
    });
}

#[test]
fn sources_types_and_ancestors_choose_concepts() {
    let all = SubsetConfig::default();
    check(&SubsetConfig { only_sources: list(&["T"]), ..all.clone() }, expect!["X:4 X:5 X:6 X:7"]);
    check(&SubsetConfig { not_sources: list(&["T"]), ..all.clone() }, expect!["X:1 X:2 X:3"]);
    check(&SubsetConfig { only_types: list(&["Disease", "Finding"]), ..all.clone() }, expect!["X:1 X:2 X:3 X:6 X:7"]);
    check(&SubsetConfig { not_types: list(&["Disease"]), ..all.clone() }, expect!["X:1 X:4 X:5 X:7"]);
    check(&SubsetConfig { only_under: list(&["X:1"]), ..all.clone() }, expect!["X:1 X:2 X:3 X:6"]);
    check(&SubsetConfig { only_under: list(&["X:2", "X:5"]), ..all.clone() }, expect!["X:2 X:3 X:5"]);
    check(&SubsetConfig { only_under: list(&["X:1"]), not_under: list(&["X:6"]), ..all.clone() }, expect!["X:1 X:2"]);
    check(&all, expect!["X:1 X:2 X:3 X:4 X:5 X:6 X:7"]);
}

#[test]
fn unknown_words_and_ids_are_errors_that_name_near_ones() {
    let all = SubsetConfig::default();
    check(
        &SubsetConfig { only_types: list(&["disease"]), ..all.clone() },
        expect![[r#"
            no semantic type `disease` in the knowledge base
            similar: Disease, Finding, Model"#]],
    );
    check(
        &SubsetConfig { not_under: list(&["x:7"]), ..all.clone() },
        expect![[r#"
            no concept `x:7` in 
            similar ids: X:7 (Nephritides)"#]],
    );
    check(
        &SubsetConfig { only_types: list(&["Model"]), only_sources: list(&["S"]), ..all },
        expect![[r#"
            no concept matches all filters
            relax one of the filters; `canonym kb info` lists sources and types"#]],
    );
}

/// What is found in a text: each mention with the ids of its concepts.
fn found(kb: &Arc<KnowledgeBase>, subset: Option<Arc<Subset>>, text: &str) -> String {
    let config = RecogniseConfig { min_score: Some(0.02), ..RecogniseConfig::default() };
    let annotator = DictionaryAnnotator::new(kb.clone(), AcceptModel::embedded(), config).within(subset);
    let document = Document { id: "1".to_owned(), text: text.to_owned(), sections: Vec::new() };
    let mentions = annotator.annotate_one(&Analysis::new(&document), &mut ScanScratch::default());
    let line = |linked: &canonym_core::link::LinkedMention| {
        let ids: Vec<&str> = linked.link.candidates.iter().map(|candidate| kb.id(candidate.concept)).collect();
        format!("{}: {}\n", linked.mention.surface(text), ids.join(" "))
    };
    mentions.iter().map(line).collect()
}

/// The ids that names are linked to, best first.
fn linked(kb: &Arc<KnowledgeBase>, subset: Option<Arc<Subset>>, names: &[&str]) -> Vec<Vec<String>> {
    let linker = LexicalLinker::new(kb.clone(), LexicalModel::embedded(), LinkConfig::default()).within(subset);
    let ids =
        |link: canonym_core::link::Link| link.candidates.iter().map(|one| kb.id(one.concept).to_owned()).collect();
    linker.link_names(names).into_iter().map(ids).collect()
}

const TEXT: &str =
    "Lupus nephritis mouse model, not nephritis, lupus or lupus and other nephritides of kidney inflammation.";

#[test]
fn a_subset_links_as_a_knowledge_base_of_its_concepts() {
    let whole = kb(ALL);
    for types in [["Disease"].as_slice(), &["Model"], &["Finding"], &["Disease", "Finding"]] {
        let config = SubsetConfig { only_types: list(types), ..SubsetConfig::default() };
        let subset = Arc::new(Subset::choose(&whole, &config).unwrap());
        let lines = ALL.lines().filter(|line| types.iter().any(|name| line.contains(&format!("[\"{name}\"]"))));
        let own = kb(&lines.map(|line| format!("{line}\n")).collect::<String>());
        assert_eq!(found(&whole, Some(subset.clone()), TEXT), found(&own, None, TEXT), "{types:?}");
        let names: Vec<String> =
            own.concepts().flat_map(|one| own.names(one)).map(|name| own.name(name).to_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let best = |links: Vec<Vec<String>>| links.into_iter().map(|ids| ids.first().cloned()).collect::<Vec<_>>();
        assert_eq!(best(linked(&whole, Some(subset), &names)), best(linked(&own, None, &names)), "{types:?}");
    }
}

#[test]
fn a_longer_name_outside_leaves_its_words_to_a_shorter_one_inside() {
    let kb = kb(ALL);
    let text = "A lupus nephritis mouse model.";
    let of = |config: SubsetConfig| found(&kb, Some(Arc::new(Subset::choose(&kb, &config).unwrap())), text);
    let mut all = found(&kb, None, text);
    all += &of(SubsetConfig { not_types: list(&["Model"]), ..SubsetConfig::default() });
    all += &of(SubsetConfig { only_under: list(&["X:6"]), not_under: list(&["X:3"]), ..SubsetConfig::default() });
    expect![[r#"
        lupus nephritis mouse model: X:4
        lupus nephritis: X:3
        lupus: X:6
    "#]]
    .assert_eq(&all);
}

#[test]
fn near_names_outside_do_not_crowd_out_those_inside() {
    let crowd = |n: usize| format!("{{\"id\":\"C:{n}\",\"name\":\"nephritis kind {n}\",\"types\":[\"Crowd\"]}}\n");
    let lines: String = (0..300).map(crowd).collect();
    let kb = kb(&(lines + "{\"id\":\"X:1\",\"name\":\"nephritic trouble\",\"types\":[\"Disease\"]}\n"));
    let config = SubsetConfig { only_types: list(&["Disease"]), ..SubsetConfig::default() };
    let subset = Subset::choose(&kb, &config).unwrap();
    assert_eq!(linked(&kb, Some(Arc::new(subset)), &["nephritis kind"]), [["X:1"]]);
}
