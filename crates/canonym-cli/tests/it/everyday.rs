//! What the default model says of everyday sentences, with the starter. Scores are not told: they move with every fit of the model.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::Workplace;

/// A sentence, what has to be linked in it, and concepts that must not be.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const COVID: &str = "MESH:D000086382";
const TYPE_1: &str = "MESH:D003922";
const TYPE_2: &str = "MESH:D003924";
const DIABETES: &str = "MESH:D003920";
const ECLAMPSIA: &str = "MESH:D004461";
const PRE_ECLAMPSIA: &str = "MESH:D011225";
const HYPERTENSION: &str = "MESH:D006973";
const FEVER: &str = "MESH:D005334";
const BREAST_CANCER: &str = "MESH:D001943";
const OVARIAN_CANCER: &str = "MESH:D010051";
const NO_B12: &str = "MESH:D014806";
const CEFOTAXIME: &str = "MESH:D002439";
const CEFUROXIME: &str = "MESH:D002444";
const HYDROXYZINE: &str = "MESH:D006919";
const SULFADIAZINE: &str = "MESH:D013411";
const HYDROXYUREA: &str = "MESH:D006918";
const SULFASALAZINE: &str = "MESH:D012460";
const PRENATAL_DIAGNOSIS: &str = "MESH:D011296";
const POTASSIUM: &str = "MESH:D011188";
const CREATININE: &str = "MESH:D003404";
const CHROMIUM: &str = "MESH:D002857";
const RASH: &str = "MESH:D005076";
const STROKE: &str = "MESH:D020521";
const BURNS: &str = "MESH:D002056";
const WILSON: &str = "MESH:D006527";
const LIONS: &str = "MESH:D008045";
const TURKEYS: &str = "MESH:D014422";
const RHUBARB: &str = "MESH:D012250";
const HEARTBURN: &str = "MESH:D006356";
const FOOT_AND_MOUTH: &str = "MESH:D005536";
const FOOT_DISEASES: &str = "MESH:D005534";
const CURETTAGE: &str = "MESH:D004107";
const LIVER: &str = "MESH:D008099";
const HYPOTENSION: &str = "MESH:D007022";
const HEPATITIS_C: &str = "MESH:D006526";
const HEPARIN: &str = "MESH:D006493";
const SEPTIC_ARTHRITIS: &str = "MESH:D001170";
const BURNS_INHALATION: &str = "MESH:D002059";
const LIVER_TESTS: &str = "MESH:D008111";
const PIP2: &str = "MESH:D019269";
const DISCHARGE: &str = "MESH:D010351";
const MYOTONIC_DYSTROPHY: &str = "MESH:D009223";
const HEPATITIS_A: &str = "MESH:D006506";
const HEPATITIS_B: &str = "MESH:D006509";
const HYPOTHYROIDISM: &str = "MESH:D007037";
const HYPERTHYROIDISM: &str = "MESH:D006980";
const HYPOGLYCEMIA: &str = "MESH:D007003";
const PREDNISONE: &str = "MESH:D011241";
const RICE_PLANT: &str = "MESH:D012275";
const COMPLEMENT_C3: &str = "MESH:D003176";
const COMPLEMENT_C3A: &str = "MESH:D015926";
const FAILED_BACK_SURGERY: &str = "MESH:D055111";
const CHLAMYDIA_INFECTIONS: &str = "MESH:D002690";
const CHLAMYDIA: &str = "MESH:D002689";
const TIN: &str = "MESH:D014001";
const CELL_MOVEMENT: &str = "MESH:D002465";
const HIV: &str = "MESH:D006678";
const SSRI: &str = "MESH:D017367";
const DEPRESSION: &str = "MESH:D003863";
const INFARCTION: &str = "MESH:D009203";
const LYME: &str = "MESH:D008193";
const PUMA: &str = "MESH:D046011";
const MULTIPLE_SCLEROSIS: &str = "MESH:D009103";
const CHEMOTHERAPY: &str = "MESH:D004358";
const OCCULT_BLOOD: &str = "MESH:D009780";
const FDG: &str = "MESH:D019788";
const EYEGLASSES: &str = "MESH:D005139";
const INTERLEUKIN_6: &str = "MESH:D015850";
const HOT_FLASHES: &str = "MESH:D019584";
const SWEATING: &str = "MESH:D013546";
const PRESENTATION: &str = "MESH:D007746";

/// Mentions of several pieces stand with `…` between them.
const CASES: &[Case] = &[
    ("I have COVID-19.", &[("COVID-19", COVID)], &[]),
    ("He has T2DM.", &[("T2DM", TYPE_2)], &[]),
    ("She has pre-eclampsia.", &[("pre-eclampsia", PRE_ECLAMPSIA)], &[ECLAMPSIA]),
    ("The patient is non-diabetic.", &[], &[DIABETES, TYPE_1, TYPE_2]),
    ("She takes anti-hypertensive drugs.", &[], &[HYPERTENSION]),
    ("The patient is afebrile.", &[], &[FEVER]),
    ("He has type 1 and 2 diabetes.", &[("type 1 … diabetes", TYPE_1), ("type … 2 diabetes", TYPE_2)], &[DIABETES]),
    (
        "Genes of breast and ovarian cancers are known.",
        &[("breast … cancers", BREAST_CANCER), ("ovarian cancers", OVARIAN_CANCER)],
        &[],
    ),
    ("She has vitamin B12 deficiency.", &[("vitamin B12 deficiency", NO_B12)], &[]),
    ("He was given cefuroxime.", &[("cefuroxime", CEFUROXIME)], &[CEFOTAXIME]),
    ("She takes hydroxyzine at night.", &[("hydroxyzine", HYDROXYZINE)], &[HYDROXYUREA]),
    ("He was treated with sulfadiazine.", &[("sulfadiazine", SULFADIAZINE)], &[SULFASALAZINE]),
    ("The diagnosis was made last week.", &[], &[PRENATAL_DIAGNOSIS]),
    ("Mr K was seen in the clinic with his daughter.", &[], &[POTASSIUM]),
    ("Labs: Na 138, K 4.5, Cr 1.8, glucose 95.", &[("Cr", CREATININE)], &[CHROMIUM]),
    ("It was a rash decision, and a stroke of luck that it went well.", &[], &[RASH, STROKE]),
    ("I had bad hart burn after dinner.", &[("hart burn", HEARTBURN)], &[BURNS]),
    ("John T. Burns of Wilson Street saw the Lions play in Turkey.", &[], &[BURNS, WILSON, LIONS, TURKEYS]),
    ("Seen by rheum for burns of both hands.", &[("burns", BURNS)], &[RHUBARB]),
    (
        "Foot and mouth disease was ruled out in the cattle.",
        &[("Foot and mouth disease", FOOT_AND_MOUTH)],
        &[FOOT_DISEASES],
    ),
    ("The vet put him on Hill's c/d and a course of enrofloxacin.", &[], &[CURETTAGE]),
    ("There is a hypodense lesion in the liver.", &[("liver", LIVER)], &[HYPOTENSION]),
    ("Hep C Ab positive, RNA pending.", &[("Hep C", HEPATITIS_C)], &[HEPARIN]),
    ("The blister on my heel has gone septic.", &[], &[SEPTIC_ARTHRITIS]),
    ("The unit treats chemical burns and smoke inhalation.", &[], &[BURNS_INHALATION]),
    ("Transition from liver to blood stages was blocked.", &[], &[LIVER_TESTS]),
    ("Overexpression of the aquaporin PIP2;1 restored water transport.", &[], &[PIP2]),
    ("Mother with DM", &[("DM", DIABETES)], &[MYOTONIC_DYSTROPHY]),
    ("FAMILY HISTORY: mother with DM", &[("DM", DIABETES)], &[MYOTONIC_DYSTROPHY]),
    (
        "He has hepatitis A, B and C.",
        &[("hepatitis A", HEPATITIS_A), ("hepatitis … B", HEPATITIS_B), ("hepatitis … C", HEPATITIS_C)],
        &[],
    ),
    ("Interleukin-1, -6 and -8 rose.", &[("Interleukin … 6", INTERLEUKIN_6)], &[]),
    (
        "Labs show hypo- and hyperthyroidism.",
        &[("hypo … thyroidism", HYPOTHYROIDISM), ("hyperthyroidism", HYPERTHYROIDISM)],
        &[HYPOGLYCEMIA],
    ),
    ("They drove a Ford Cougar to Lyme, Connecticut.", &[], &[LYME, PUMA]),
    ("MS: alert and oriented. CT surgery was consulted.", &[], &[MULTIPLE_SCLEROSIS, CHEMOTHERAPY]),
    ("OB: G2P1, healthy. He had a rash of injuries and a glass of port.", &[], &[OCCULT_BLOOD, RASH, EYEGLASSES]),
    ("She had an [18F]FDG scan.", &[("[18F]FDG", FDG)], &[]),
    ("Hot flashes and night sweats.", &[("Hot flashes", HOT_FLASHES), ("night sweats", SWEATING)], &[]),
    ("Discharge summary: a woman of 82 admitted after a fall and a long lie.", &[], &[DISCHARGE, PRESENTATION]),
    ("COPD review: FEV1 48% pred, mMRC 3.", &[], &[PREDNISONE]),
    ("Sprained ankle, advised RICE and analgesia.", &[], &[RICE_PLANT]),
    ("Graves, had RAI last year, now hypo so on Levo.", &[("hypo", HYPOTHYROIDISM)], &[HYPOGLYCEMIA]),
    ("C3 0.4 g/L and C4 low, dsDNA raised.", &[("C3", COMPLEMENT_C3)], &[COMPLEMENT_C3A]),
    ("Her LFT was negative, so no covid and back to work.", &[], &[LIVER_TESTS]),
    ("CTG pathological in labour, FBS pH 7.24, lactate 3.", &[], &[FAILED_BACK_SURGERY]),
    ("PMH chlamydia, PID.", &[("chlamydia", CHLAMYDIA_INFECTIONS)], &[CHLAMYDIA]),
    ("Divide the batter between two greased cake tins.", &[], &[TIN]),
    ("The data migration failed on the production server.", &[], &[CELL_MOVEMENT]),
    ("i have hiv and take an ssri", &[("hiv", HIV), ("ssri", SSRI)], &[]),
    ("Low mood was treated.", &[("Low mood", DEPRESSION)], &[]),
    ("Reinfection was rare.", &[], &[INFARCTION]),
];

/// Concepts whose names or letters turn up where something else is meant.
const TEMPTING: &str = concat!(
    "D006816\tHuntington Disease\tHD\tDisease\n",
    "D024821\tMetabolic Syndrome\tMetS\tDisease\n",
    "D020275\tGuillain-Barre Syndrome\tGBS\tDisease\n",
    "D002185\tCannabidiol\tCBD\tDrug\n",
    "D003606\tDacarbazine\tDIC\tDrug\n",
    "D008099\tLiver\t\tAnatomy\n",
    "D007668\tKidney\t\tAnatomy\n",
    "D008168\tLung\tlungs\tAnatomy\n",
    "X001\tleft lung\t\tAnatomy\n",
    "X002\tleft kidney\t\tAnatomy\n",
    "D017397\tPrefrontal Cortex\t\tAnatomy\n",
    "D006528\tCarcinoma, Hepatocellular\tliver cancer\tDisease\n",
);

/// Sentences for those concepts.
const TEMPTED: &[Case] = &[
    ("He goes to HD three times a week.", &[], &["MESH:D006816"]),
    ("The MRI showed brain mets.", &[], &["MESH:D024821"]),
    ("GBS unknown, membranes ruptured at 6 h.", &[], &["MESH:D020275"]),
    ("Ultrasound: CBD dilation of 11 mm.", &[], &["MESH:D002185"]),
    ("Labs are consistent with DIC.", &[], &["MESH:D003606"]),
    ("The liver was enlarged.", &[("liver", "MESH:D008099")], &[]),
    (
        "CT showed the left kidney and both lungs.",
        &[("left kidney", "MESH:X002"), ("lungs", "MESH:D008168")],
        &["MESH:X001"],
    ),
    ("Atrophy of the pre-frontal cortex was seen.", &[("pre-frontal cortex", "MESH:D017397")], &[]),
];

/// Drugs, and what they must not be taken for.
const DRUGS: [(&str, &str); 3] =
    [("cefuroxime", CEFOTAXIME), ("hydroxyzine", HYDROXYUREA), ("sulfadiazine", SULFASALAZINE)];

/// A terminology that has the names which look alike, and not those drugs.
const OTHER_DRUGS: &str = concat!(
    "D002439\tCefotaxime\tClaforan\tDrug\n",
    "D006918\tHydroxyurea\thydroxycarbamide\tDrug\n",
    "D012460\tSulfasalazine\tsalazosulfapyridine\tDrug\n",
    "D011241\tPrednisone\t\tDrug\n",
);

/// The lines of JSON that a command makes of its input.
fn lines(place: &Workplace, arguments: &[&str], input: &str) -> Vec<Value> {
    let output = place.run(arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The concept that an annotation or a line of `map` is linked to.
fn concept(said: &Value) -> Option<&str> {
    if said["nil"] == true { None } else { said["candidates"][0]["id"].as_str() }
}

/// The text of each piece, with what is left out between them.
fn words(text: &str, annotation: &Value) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = |value: &Value| value.as_u64().unwrap() as usize;
    let pieces = annotation["spans"].as_array().unwrap().iter();
    let pieces: Vec<String> = pieces.map(|span| letters[at(&span[0])..at(&span[1])].iter().collect()).collect();
    pieces.join(" … ")
}

#[test]
fn everyday_sentences_are_linked_as_people_mean_them() {
    check(&Workplace::new(), CASES, &[]);
}

#[test]
fn letters_and_names_that_mean_something_else_are_left_alone() {
    let place = Workplace::new();
    place.write("tempting.tsv", TEMPTING);
    let built = place.run(&["kb", "build", "tempting.tsv", "--prefix", "MESH", "--out", "tempting.kb"], "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    check(&place, TEMPTED, &["--kb", "tempting.kb"]);
}

#[test]
fn a_coordination_does_not_repeat_the_concept_of_a_whole_name() {
    let place = Workplace::new();
    let input = json!({"text": "My eyes feel tired and fatigue eyes is what they call it."}).to_string();
    for model in ["default", "lexical"] {
        let arguments = ["link", "--model", model, "--to", "jsonl", "--format", "jsonl", "-"];
        let document = lines(&place, &arguments, &input).remove(0);
        let of_eyes = document["annotations"].as_array().unwrap().iter();
        let of_eyes = of_eyes.filter(|one| concept(one) == Some("MESH:D001248"));
        let found: Vec<&str> = of_eyes.map(|one| one["text"].as_str().unwrap()).collect();
        assert_eq!(found, ["eyes feel tired", "fatigue eyes"], "{model}");
    }
}

/// Links each sentence and compares.
fn check(place: &Workplace, cases: &[Case], options: &[&str]) {
    let input: String = cases
        .iter()
        .enumerate()
        .map(|(row, case)| json!({"id": row.to_string(), "text": case.0}).to_string() + "\n")
        .collect();
    let arguments = [&["link", "--to", "jsonl", "--format", "jsonl", "-"], options].concat();
    let documents = lines(place, &arguments, &input);
    assert_eq!(documents.len(), cases.len());
    let mut wrong = Vec::new();
    for ((text, expected, never), document) in cases.iter().zip(&documents) {
        let annotations = document["annotations"].as_array().unwrap();
        let linked = annotations.iter().filter_map(|one| Some((words(text, one), concept(one)?)));
        let linked: BTreeMap<String, &str> = linked.collect();
        let all_there = expected.iter().all(|(mention, id)| linked.get(*mention) == Some(id));
        if !all_there || linked.values().any(|id| never.contains(id)) {
            wrong.push(format!("{text} -> {linked:?}, expected {expected:?}, never {never:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn drugs_are_not_taken_for_those_that_look_like_them() {
    let place = Workplace::new();
    place.write("drugs.tsv", OTHER_DRUGS);
    let built = place.run(&["kb", "build", "drugs.tsv", "--prefix", "MESH", "--out", "drugs.kb"], "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let names: String = DRUGS.iter().flat_map(|(name, _)| [name, "\n"]).collect();
    let sentences: String = DRUGS.iter().flat_map(|(name, _)| ["He was given ", name, ".\n"]).collect();
    let mut wrong = Vec::new();
    for knowledge in [&[][..], &["--kb", "drugs.kb"]] {
        for model in [&[][..], &["--model", "default"], &["--model", "lexical"]] {
            let options = [knowledge, model, &["-"]].concat();
            let answers = lines(&place, &[&["map"][..], &options].concat(), &names);
            assert_eq!(answers.len(), DRUGS.len());
            let said =
                lines(&place, &[&["link", "--to", "jsonl", "--format", "text"][..], &options].concat(), &sentences);
            let linked: Vec<&str> = said[0]["annotations"].as_array().unwrap().iter().filter_map(concept).collect();
            for ((name, never), answer) in DRUGS.iter().zip(&answers) {
                if concept(answer) == Some(*never) || linked.contains(never) {
                    wrong.push(format!("{name} by {model:?} {knowledge:?}: {answer}, {}", said[0]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_alone_keep_their_prefixes() {
    let answer = lines(&Workplace::new(), &["map", "-"], "pre-eclampsia\n");
    assert_eq!(concept(&answer[0]), Some(PRE_ECLAMPSIA));
}

#[test]
fn names_are_found_by_other_names_and_words_of_a_list() {
    let place = Workplace::new();
    let list = "A:1\tLarynx\nA:2\tVascular Ehlers-Danlos syndrome\nA:3\tEhlers-Danlos syndrome\nA:4\tCardiolex 5 mg tablets\n\
        A:5\tCardiolex 10 mg tablets\nA:6\tMRI lumbar spine\nA:7\tCT head\nA:8\tCardiolex Plus\n\
        A:9\tGastro-esophageal reflux disease\nA:10\tChronic obstructive pulmonary disease, unspecified\n\
        A:11\tAcute myocardial infarction\nA:12\tRadiation proctitis\nA:13\tLymphangioma, any site\n";
    place.write("list.tsv", list);
    let built = place.run(&["kb", "build", "list.tsv", "--out", "list.kb"], "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let expected = [
        ("voice box", Some("A:1")),
        ("vascular EDS", Some("A:2")),
        ("cardiolex 10mg tabs", Some("A:5")),
        ("CT lumbar spine", None),
        // By its only name, by a name with `unspecified`, and by a search for the starter's name.
        ("GERD", Some("A:9")),
        ("COPD", Some("A:10")),
        ("heart attack", Some("A:11")),
        // The only other name is narrower.
        ("proctitis", None),
        ("lymphangioma", Some("A:13")),
    ];
    let names: String = expected.iter().flat_map(|(name, _)| [name, "\n"]).collect();
    for model in ["lexical", "default"] {
        let answers = lines(&place, &["map", "--kb", "list.kb", "--model", model, "--explain", "-"], &names);
        for ((name, expected), answer) in expected.iter().zip(&answers) {
            assert_eq!(concept(answer), *expected, "{name} by {model}: {answer}");
        }
    }
}

/// The starter, from which names are taken.
const STARTER: &str = canonym_default::STARTER;

/// Sentences that a name is put into.
const CARRIERS: [&str; 4] = [
    "She was treated for {} last year.",
    "We found {} in most of them.",
    "There was a discussion of {} at the meeting.",
    "His {} was noted again.",
];

/// A link: from the first to the last character, and its concept.
type Linked = (u64, u64, String);

fn links(document: &Value) -> Vec<Linked> {
    let annotations = document["annotations"].as_array().unwrap().iter();
    let link = |one: &Value| {
        let spans = one["spans"].as_array().unwrap();
        let (start, end) = (spans[0][0].as_u64().unwrap(), spans[spans.len() - 1][1].as_u64().unwrap());
        Some((start, end, concept(one)?.to_owned()))
    };
    annotations.filter_map(link).collect()
}

/// Whether a link, or a longer one that holds it, is among others.
fn is_kept((start, end, id): &Linked, others: &[Linked]) -> bool {
    others.iter().any(|(from, to, other)| {
        let is_longer = from <= start && to >= end && to - from > end - start;
        is_longer || (from, to, other) == (start, end, id)
    })
}

#[test]
fn what_the_dictionary_links_by_a_name_of_one_concept_the_default_links() {
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for line in STARTER.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        for name in fields[2].split('|').chain([fields[1]]).filter(|name| !name.is_empty()) {
            owners.entry(name.to_lowercase()).or_default().insert(fields[0]);
            names.push((name, fields[0]));
        }
    }
    let is_sampled =
        |(row, (name, _)): &(usize, (&str, &str))| row % 17 == 3 && owners[&name.to_lowercase()].len() == 1;
    let sample: Vec<(&str, &str)> = names.into_iter().enumerate().filter(is_sampled).map(|(_, named)| named).collect();
    let sentence = |(row, (name, _)): (usize, &(&str, &str))| {
        let text = CARRIERS[row % CARRIERS.len()].replace("{}", name);
        json!({"id": row.to_string(), "text": text}).to_string() + "\n"
    };
    let input: String = sample.iter().enumerate().map(sentence).collect();
    let place = Workplace::new();
    let by = |model| lines(&place, &["link", "--model", model, "--to", "jsonl", "--format", "jsonl", "-"], &input);
    let (of_default, of_words) = (by("default"), by("lexical"));
    assert!(sample.len() > 800 && of_default.len() == sample.len() && of_words.len() == sample.len());
    let mut lost: Vec<String> = Vec::new();
    let (mut n_words, mut n_of_phrases) = (0, 0);
    for ((name, id), (default, words)) in sample.iter().zip(of_default.iter().zip(&of_words)) {
        let kept = links(default);
        let is_of_name = |(start, end, other): &Linked| other == id && (end - start) as usize == name.chars().count();
        for link in links(words).iter().filter(|link| is_of_name(link)) {
            n_words += usize::from(!name.contains(' '));
            n_of_phrases += usize::from(name.contains(' '));
            if !is_kept(link, &kept) {
                lost.push(format!("{name} {id}: {kept:?}"));
            }
        }
    }
    // No reading of the context speaks against a name of several words, unless the words beside it make another name with some of its
    // own (`treated for medical examination`); single words such as `protein` it may turn down.
    let n_phrases = lost.iter().filter(|told| told.split(" MESH:").next().unwrap().contains(' ')).count();
    assert!(1000 * n_phrases <= n_of_phrases, "{n_phrases} of {n_of_phrases}: {}", lost.join("\n"));
    assert!(50 * lost.len() <= n_words, "{} of {n_words}: {}", lost.len(), lost.join("\n"));
}

#[test]
fn an_organism_in_a_procedure_is_reported_unless_nested_mentions_are_unwanted() {
    let place = Workplace::new();
    let text = "The HIV test was normal. Heart failure was ruled out.";
    for model in ["default", "lexical"] {
        let found = |options: &[&str]| -> Vec<String> {
            let arguments = [&["link", "--to", "jsonl", "--model", model, "--text", text], options].concat();
            let annotations = lines(&place, &arguments, "").remove(0)["annotations"].take();
            let linked = annotations.as_array().unwrap().iter().filter(|one| concept(one).is_some());
            linked.map(|one| words(text, one)).collect()
        };
        assert_eq!(found(&[]), ["HIV test", "HIV", "Heart failure"], "{model}");
        assert_eq!(found(&["--nested=none"]), ["HIV test", "Heart failure"], "{model}");
        assert!(found(&["--nested"]).contains(&"Heart".to_owned()), "{model}");
    }
    // CoNLL has no place for nested mentions, so they are not asked for.
    let output = place.run(&["link", "--to", "conll", "--text", text], "");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("nested"));
    let refused = place.run(&["link", "--nested=some", "--text", text], "");
    assert_eq!(refused.status.code(), Some(2));
}
