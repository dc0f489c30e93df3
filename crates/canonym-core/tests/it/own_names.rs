//! Names of terminologies that were never seen before, in texts and in lists of names, with the embedded weights.

use std::sync::Arc;

use canonym_core::kb::format::Meta;
use canonym_core::kb::subset::KbView;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::Annotator;
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::recognise::{DictionaryAnnotator, RecogniseConfig};
use canonym_core::text::analysis::Analysis;

/// A terminology of concepts with names separated by `|`, the preferred one first.
fn kb(concepts: &[&str]) -> Arc<KnowledgeBase> {
    let mut builder = KnowledgeBaseBuilder::new();
    for (row, names) in concepts.iter().enumerate() {
        let names = names.split('|').enumerate().map(|(at, name)| NameRecord {
            text: name.to_owned(),
            scope: if at == 0 { Scope::Preferred } else { Scope::Exact },
        });
        let record = ConceptRecord { id: format!("T:{row}"), names: names.collect(), ..ConceptRecord::default() };
        builder.add(record).expect("a small record");
    }
    let bytes = builder.to_bytes(Meta::default()).expect("it compiles");
    Arc::new(KnowledgeBase::from_vec(bytes, "small.kb").expect("it opens"))
}

/// Asserts which mentions of a text are linked to which preferred names.
fn check_text(kb: &Arc<KnowledgeBase>, text: &str, expected: &[(&str, &str)]) {
    let annotator = DictionaryAnnotator::new(kb.clone(), AcceptModel::embedded(), RecogniseConfig::default());
    let found = annotator.annotate(&[Analysis::of_text(text)]).expect("it links").remove(0);
    let shown: Vec<(String, &str)> = found
        .iter()
        .map(|linked| {
            let pieces = linked.mention.spans.iter().map(|span| span.of(text));
            (pieces.collect::<Vec<_>>().join(" "), kb.preferred_name(linked.link.candidates[0].concept))
        })
        .collect();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(mention, name)| (mention.as_str(), *name)).collect();
    assert_eq!(shown, expected, "{text}");
}

/// Asserts the preferred name that comes first for a name without context.
fn check_name(kb: &Arc<KnowledgeBase>, name: &str, expected: &str) {
    let config = LinkConfig { top_k: 3, min_score: 0.0 };
    let link = &LexicalLinker::new(kb.clone(), LexicalModel::embedded(), config).link_names(&[name])[0];
    let first = link.candidates.first().map(|first| kb.preferred_name(first.concept));
    assert_eq!(first, Some(expected), "{name}");
}

#[test]
fn a_letter_at_the_end_of_a_name_is_part_of_it() {
    let kb = kb(&["Tooth disease", "Tooth disease type 1", "Tooth disease type 1A"]);
    let text = "Tooth disease type 1A in her, and tooth disease type 1 in a brother.";
    let expected =
        [("Tooth disease type 1A", "Tooth disease type 1A"), ("tooth disease type 1", "Tooth disease type 1")];
    check_text(&kb, text, &expected);
}

#[test]
fn what_follows_a_comma_may_be_written_otherwise() {
    let kb = kb(&["Pressure ulcer of heel", "Pressure ulcer of heel, stage 3", "Stenosis, carotid"]);
    check_text(
        &kb,
        "Pressure ulcer of heel, stage III.",
        &[("Pressure ulcer of heel, stage III", "Pressure ulcer of heel, stage 3")],
    );
    check_text(&kb, "No sign of a stenosis. Carotids were clear.", &[]);
    // A definition in brackets is no part of the name before it.
    let failure = self::kb(&["Renal failure", "Renal failure (RF)"]);
    let text = "Renal failures (RF) were common.";
    let annotator = DictionaryAnnotator::new(failure, AcceptModel::embedded(), RecogniseConfig::default());
    let found = annotator.annotate(&[Analysis::of_text(text)]).expect("it links").remove(0);
    assert!(found.iter().flat_map(|linked| &linked.mention.spans).all(|span| !span.of(text).contains('(')));
}

#[test]
fn a_terminology_without_the_usual_senses_of_a_form_means_its_own_concept() {
    // The inventory has the receptor, and the heart rate.
    let genes = kb(&["ERBB2|HER2|erb-b2 receptor tyrosine kinase 2", "HR|lysine demethylase and corepressor"]);
    check_text(&genes, "HER2 was amplified.", &[("HER2", "ERBB2")]);
    // In a larger list, the heart rate is not the gene.
    let filler: Vec<String> = (0..3_000).map(|row| format!("protein {row} of a list")).collect();
    let names = filler.iter().map(String::as_str).chain(["HR|lysine demethylase and corepressor"]);
    let many = kb(&names.collect::<Vec<_>>());
    check_text(&many, "HR 88 on arrival, pulse and blood pressure normal, no palpitations.", &[]);
}

#[test]
fn a_concept_named_like_a_form_comes_before_that_of_its_usual_sense() {
    let kb = kb(&["Bipolar disorder", "Mania", "Homo|humans", "Homo sapiens|human"]);
    check_text(&kb, "An episode of mania.", &[("mania", "Mania")]);
    check_text(&kb, "Cells of human origin.", &[("human", "Homo sapiens")]);
}

#[test]
fn words_may_be_joined_and_divided() {
    let kb = kb(&["Open bite", "Crossbite", "Ash dieback"]);
    let text = "Openbite, cross-bite and ash die-back.";
    check_text(&kb, text, &[("Openbite", "Open bite"), ("cross-bite", "Crossbite"), ("ash die-back", "Ash dieback")]);
    check_name(&kb, "openbite", "Open bite");
}

#[test]
fn binomials_and_targets_of_antibodies_are_found() {
    let taxa = kb(&["Drosophila melanogaster", "Melanogaster", "Caenorhabditis elegans"]);
    let expected = [("D. melanogaster", "Drosophila melanogaster"), ("C. elegans", "Caenorhabditis elegans")];
    check_text(&taxa, "Larvae of D. melanogaster and C. elegans.", &expected);
    let genes = kb(&["GAPDH", "CD45"]);
    check_text(&genes, "Antibodies: anti-GAPDH (1:5000), anti-CD45.", &[("GAPDH", "GAPDH"), ("CD45", "CD45")]);
    check_text(&genes, "An anti-CD45 drug.", &[]);
}

#[test]
fn a_word_with_one_medical_sense_means_the_concept_that_is_called_so() {
    let kb = kb(&["Nightmares|bad dreams", "Insomnia"]);
    check_text(&kb, "I had nightmares every night.", &[("nightmares", "Nightmares")]);
}

#[test]
fn phrases_of_short_lists_are_found_by_their_first_words() {
    let kb = kb(&["Apixaban 2.5 mg tablets", "Apixaban 5 mg tablets", "Lumina eye drops", "Lumina gel"]);
    let text = "On apixaban 5mg, and Lumina drops at night. He dislikes drops of 5 mg.";
    check_text(&kb, text, &[("apixaban 5mg", "Apixaban 5 mg tablets"), ("Lumina drops", "Lumina eye drops")]);
}

#[test]
fn names_of_short_lists_are_found_without_their_generic_words() {
    let kb = kb(&["Platelet count|Plt", "Lymphocyte count", "Knee surgery"]);
    let text = "The platelets were low, no count of drips. Her knee is swollen.";
    check_text(&kb, text, &[("platelets", "Platelet count")]);
}

#[test]
fn a_short_form_is_a_name_of_its_kind() {
    let mut builder = KnowledgeBaseBuilder::new();
    let names = vec![NameRecord { text: "MDCK".to_owned(), scope: Scope::Preferred }];
    let types = vec!["CellLine".to_owned()];
    builder.add(ConceptRecord { id: "T:1".to_owned(), names, types, ..ConceptRecord::default() }).expect("a record");
    let bytes = builder.to_bytes(Meta::default()).expect("it compiles");
    let kb = Arc::new(KnowledgeBase::from_vec(bytes, "lines.kb").expect("it opens"));
    check_text(&kb, "Virus was grown in MDCK cells.", &[("MDCK", "MDCK")]);
}

#[test]
fn levels_distinguish_names() {
    let kb = kb(&["Decreased serum zinc", "Increased serum zinc", "Zinc deficiency anaemia"]);
    for low in ["low serum zinc", "reduced serum zinc", "Diminished serum zinc"] {
        check_name(&kb, low, "Decreased serum zinc");
    }
    for high in ["high serum zinc", "raised serum zinc", "elevated serum zinc"] {
        check_name(&kb, high, "Increased serum zinc");
    }
}

#[test]
fn unspecified_names_come_before_others() {
    let kb =
        kb(&["Other pneumonia", "Pneumonia, unspecified organism", "Congenital pneumonia", "Unspecified cataract"]);
    check_name(&kb, "pneumonia", "Pneumonia, unspecified organism");
    check_name(&kb, "other pneumonia", "Other pneumonia");
    check_name(&kb, "cataract", "Unspecified cataract");
}

#[test]
fn hyphens_of_symbols_do_not_matter() {
    let kb = kb(&["HepG2S2", "Hep-G2", "HepG2-luc2", "MDA-MB-231", "MDA-MB-231-luc"]);
    check_name(&kb, "HepG2", "Hep-G2");
    check_name(&kb, "MDAMB-231", "MDA-MB-231");
}

#[test]
fn short_forms_have_a_usual_meaning_in_lists() {
    let kb = kb(&["Magnetic resonance imaging", "Hypertension", "Cold temperature", "Adenomatous polyposis coli"]);
    let view = KbView { kb: &kb, subset: None };
    let usual =
        |form: &str| SenseInventory::embedded().usual(view, form).map(|(concept, ..)| kb.preferred_name(concept));
    assert_eq!(usual("MRI"), Some("Magnetic resonance imaging"));
    assert_eq!(usual("htn"), Some("Hypertension"));
    // In lower case it could be a word, as `sun` and `doe` are.
    assert_eq!(usual("mri"), None);
    // Several senses are about as frequent, and a name needs no inventory.
    assert_eq!(usual("APC"), None);
    assert_eq!(usual("cold temperature"), None);
}

#[test]
fn a_short_form_that_begins_with_a_sign_is_found_with_it() {
    let kb = kb(&["Abdominal discomfort", "Warfarin", "Transformed value"]);
    let mut senses = SenseInventory::clone(&SenseInventory::embedded());
    for (row, (form, id)) in [("+/- sympt", "T:0"), ("(R)-wrf", "T:1"), ("-log10 q", "T:2")].into_iter().enumerate() {
        let concept = kb.find(id).expect("a concept of the terminology");
        let name = kb.names(concept).next().expect("it has a name");
        senses.teach(form, (concept, name), ["Abdominal discomfort", "Warfarin", "Transformed value"][row], 0.97);
    }
    let annotator = DictionaryAnnotator::new(kb.clone(), AcceptModel::embedded(), RecogniseConfig::default())
        .with_senses(Arc::new(senses));
    for (text, expected) in [
        ("She had +/- sympt at home.", vec!["+/- sympt"]),
        ("She had 5+/- sympt, then ++/- sympt.", vec!["+/- sympt"]),
        ("He took (R)-wrf (5 mg).", vec!["(R)-wrf"]),
        ("It had a -log10 q of 3.", vec!["-log10 q"]),
        ("The sympt of R-wrf.", vec![]),
    ] {
        let found = annotator.annotate(&[Analysis::of_text(text)]).expect("it links").remove(0);
        let spans: Vec<&str> = found.iter().map(|linked| linked.mention.spans[0].of(text)).collect();
        assert_eq!(spans, expected, "{text}");
    }
}
