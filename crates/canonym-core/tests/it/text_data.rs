//! Text processing on real corpora and terminologies, where they are present.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use canonym_core::text::abbreviations::find_abbreviations;
use canonym_core::text::biosyn::{self, BiosynConfig};
use canonym_core::text::composite::{Part, split_composite};
use canonym_core::text::{Mention, Span};

/// A file of the data folder, or nothing and a message that names it.
fn data(file: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("CANONYM_DATA").map_or_else(beside, PathBuf::from).join(file);
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return None;
    }
    Some(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn biosyn_dictionary_is_reproduced_from_medic() {
    let (Some(medic), Some(dictionary)) =
        (data("terminologies/medic-2012-07-06.txt"), data("biosyn-ncbi-disease/train_dictionary.txt"))
    else {
        return;
    };
    let ours: HashSet<String> = read(&medic)
        .lines()
        .flat_map(|line| line.split_once("||").unwrap().1.split('|'))
        .map(biosyn::normalise_name)
        .collect();
    let theirs: HashSet<String> =
        read(&dictionary).lines().map(|line| line.split_once("||").unwrap().1.to_owned()).collect();
    let missing: Vec<_> = theirs.difference(&ours).take(5).collect();
    let extra: Vec<_> = ours.difference(&theirs).take(5).collect();
    println!("{} names here, {} there; missing {missing:?}, extra {extra:?}", ours.len(), theirs.len());
    assert_eq!(ours, theirs);
}

#[test]
fn biosyn_queries_are_reproduced_from_the_corpus() {
    let Some(typos) = data("terminologies/ncbi-spell-check.txt") else { return };
    let config = BiosynConfig { typos: biosyn::read_typos(&typos).unwrap(), resolve_composites: true };
    for (split, at_least) in [("train", 0.985), ("dev", 0.985)] {
        let (Some(corpus), Some(queries)) = (
            data(&format!("ncbi-disease/{split}.pubtator.txt")),
            data(&format!("biosyn-ncbi-disease/{split}.concept")),
        ) else {
            return;
        };
        let corpus = read(&corpus);
        let mut long_forms: HashMap<&str, HashMap<String, String>> = HashMap::new();
        let mut mentions = HashMap::new();
        for block in corpus.split("\n\n") {
            let text = block.lines().filter(|line| line.contains("|t|") || line.contains("|a|"));
            let text: Vec<&str> = text.map(|line| line.splitn(3, '|').nth(2).unwrap()).collect();
            let text = text.join("\n");
            let id = block.trim_start().split('|').next().unwrap();
            for found in find_abbreviations(&text) {
                let forms = long_forms.entry(id).or_default();
                forms.insert(found.short.of(&text).to_owned(), found.long.of(&text).to_owned());
            }
            for line in block.lines().filter(|line| line.contains('\t')) {
                let fields: Vec<&str> = line.split('\t').collect();
                mentions.insert((fields[0], format!("{}|{}", fields[1], fields[2])), (fields[3], fields[5]));
            }
        }
        let (mut n_all, mut n_same) = (0, 0);
        let none = HashMap::new();
        for line in read(&queries).lines() {
            let fields: Vec<&str> = line.split("||").collect();
            let Some((mention, ids)) = mentions.get(&(fields[0], fields[1].to_owned())) else { continue };
            let forms = long_forms.get(fields[0]).unwrap_or(&none);
            let query = biosyn::preprocess_query(mention, ids, forms, &config);
            n_all += 1;
            if query.text == fields[3] && query.ids == fields[4].trim() {
                n_same += 1;
            } else if std::env::var_os("CANONYM_VERBOSE").is_some() {
                println!("{mention} # {ids}: {} # {}, not {} # {}", query.text, query.ids, fields[3], fields[4]);
            }
        }
        println!("{split}: {n_same} of {n_all} queries agree");
        assert!(f64::from(n_same) >= at_least * f64::from(n_all), "{split}: {n_same} of {n_all} queries agree");
    }
}

#[test]
fn composites_of_the_corpus_have_the_right_reading() {
    let (mut n_all, mut n_first, mut n_any) = (0, 0, 0);
    for split in ["train", "dev"] {
        let Some(corpus) = data(&format!("bc5cdr/{split}.pubtator.txt")) else { return };
        for line in read(&corpus).lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [_, _, _, mention, _, _, names] = fields[..] else { continue };
            // Names that the annotators wrote anew, and pieces of mentions without a conjunction, are no readings.
            let readings = split_composite(mention, Span::new(0, mention.len()));
            if readings.is_empty() {
                continue;
            }
            let surface = |part: &Part| {
                Mention { spans: part.spans.clone(), ..Mention::contiguous(Span::new(0, 0)) }.surface(mention)
            };
            let written = |reading: &Vec<Part>| reading.iter().map(surface).collect::<Vec<_>>().join("|") == names;
            n_all += 1;
            n_first += usize::from(readings.first().is_some_and(written));
            n_any += usize::from(readings.iter().any(written));
            if !readings.iter().any(written) && std::env::var_os("CANONYM_VERBOSE").is_some() {
                println!("{mention}: not {names}");
            }
        }
    }
    println!("{n_all} coordinations, {n_first} with the right first reading, {n_any} with a right one");
    assert!(100 * n_any >= 88 * n_all && 100 * n_first >= 82 * n_all);
}
