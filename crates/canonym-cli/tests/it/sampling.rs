//! The simulation of annotation.

use crate::support::Workplace;

const EXPERIMENT: &str = r#"
system = "sampling"
seeds = [1, 2]
from = "default"
pool = ["pool.pubtator.txt"]
held_out = ["held-out.pubtator.txt"]
terminology = { path = "gadgets.tsv", prefix = "MESH" }
strategies = ["random", "margin"]
sizes = [2, 4, 6]
steps_per_document = 2
least_steps = 4
most_steps = 8
use_counts = 3
batch = { batch = 2 }
run = { adam = { learning_rate = 2e-3 } }
"#;

fn place() -> Workplace {
    let place = Workplace::new();
    let corpus = |n: usize| {
        let mut corpus = String::new();
        for at in 0..n {
            let (name, id) = [("zorbomat", "D000005"), ("plonkitis", "D000038")][at % 2];
            let title = format!("Patient {at} was given {name} and felt well.");
            let start = title.find(name).unwrap();
            let end = start + name.len();
            corpus += &format!("{at}|t|{title}\n{at}|a|\n{at}\t{start}\t{end}\t{name}\tGadget\tMESH:{id}\n\n");
        }
        corpus
    };
    place.write("pool.pubtator.txt", corpus(7));
    place.write("held-out.pubtator.txt", corpus(3));
    place.write("gadgets.tsv", "D000005\tzorbomat\nD000038\tplonk disease\n");
    place.write("sampling.toml", EXPERIMENT);
    place
}

fn read(place: &Workplace, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

fn train(place: &Workplace, set: &[&str]) -> (bool, String) {
    let mut arguments = vec!["train", "sampling.toml", "--allow-seen", "--data-root", ".", "--out", "out"];
    set.iter().for_each(|one| arguments.extend(["--set", one]));
    let output = place.run(&arguments, "");
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn each_strategy_begins_with_documents_of_the_queue_and_ended_runs_are_kept() {
    let place = place();
    let (ok, errors) = train(&place, &["seeds=[1]"]);
    assert!(ok, "{errors}");
    let kept = read(&place, "out/runs.jsonl");
    let (ok, errors) = train(&place, &[]);
    assert!(ok && !errors.contains("seed 1:"), "{errors}");
    assert!(read(&place, "out/runs.jsonl").starts_with(&kept));
    // Runs of several folders put together count once each.
    place.write("out/runs.jsonl", read(&place, "out/runs.jsonl") + &kept);
    let (ok, errors) = train(&place, &[]);
    assert!(ok, "{errors}");
    let report: serde_json::Value = serde_json::from_str(&read(&place, "out/report.json")).unwrap();
    // The texts that judge stand in the pool, too.
    assert_eq!((&report["seen"]["n_seen"], &report["seen"]["n_documents"]), (&3.into(), &3.into()), "{report}");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!((runs.len(), report["full"].as_array().unwrap().len()), (4, 2), "{report}");
    for run in runs {
        let sizes: Vec<u64> =
            run["points"].as_array().unwrap().iter().map(|point| point["n_documents"].as_u64().unwrap()).collect();
        // A run ends where every goal is reached.
        assert!(sizes.len() > 1 && [0, 2, 4, 6].starts_with(&sizes), "{sizes:?}");
        let of_seed = runs.iter().find(|other| other["seed"] == run["seed"]).unwrap();
        assert_eq!(run["points"][0], of_seed["points"][0]);
        let last = run["points"].as_array().unwrap().last().unwrap();
        let (decisions, minutes) = (last["decisions"].as_f64().unwrap(), last["minutes"].as_f64().unwrap());
        assert!((1.6..=6.6).contains(&(60.0 * minutes / decisions)), "{last}");
    }
    // A document has one mention; each is a decision at least.
    assert!(report["full"][0]["points"][0]["decisions"].as_u64().unwrap() >= 7, "{report}");
    assert!(read(&place, "out/curves.svg").contains(">margin<"));
    assert!(errors.contains("random, mentions, 80 % of the gain: "), "{errors}");
}

#[test]
fn every_strategy_can_be_run_alone_on_a_few_documents() {
    let place = place();
    let all = r#"strategies=["published", "link", "entropy", "expected-errors", "cost-aware", "diversity"]"#;
    let (ok, errors) = train(&place, &["seeds=[3]", all, "n_pool=4", "sizes=[1,2]", "start=\"random\""]);
    assert!(ok, "{errors}");
    let report: serde_json::Value = serde_json::from_str(&read(&place, "out/report.json")).unwrap();
    assert_eq!((&report["n_documents"], report["runs"].as_array().unwrap().len()), (&4.into(), 6), "{report}");
    for run in report["runs"].as_array().unwrap() {
        assert_eq!((&run["points"][0]["n_documents"], &run["points"][0]), (&1.into(), &report["runs"][0]["points"][0]));
    }
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let place = place();
    for (set, expected) in [
        ("sizes=[]", "must be positive and ascending"),
        ("sizes=[4,2]", "must be positive and ascending"),
        ("seeds=[]", "no seeds"),
        ("costs={add=-1}", "`costs` must not be negative"),
        ("strategies=[\"guess\"]", "unknown strategy `guess`"),
        ("from=lexical", "the model `lexical` does not detect mentions"),
    ] {
        let (ok, errors) = train(&place, &[set]);
        assert!(!ok && errors.contains(expected) && errors.contains("hint: "), "{set}: {errors}");
    }
}
