//! `-v`: the stages of commands.

use crate::support::Workplace;

/// Runs a command with `-v` and returns its stages, without the times and the total.
fn stages(place: &Workplace, arguments: &[&str], input: &str) -> Vec<String> {
    let output = place.run(&[&["-v"], arguments].concat(), input);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {told}");
    let stage = |line: &str| {
        let (_, event) = line.split_once("INFO ")?;
        let (what, _) = event.rsplit_once(" in ")?;
        (what != "finished").then(|| what.to_owned())
    };
    told.lines().filter_map(stage).collect()
}

#[test]
fn every_command_names_its_stages() {
    let place = Workplace::new();
    place.write("a.jsonl", "{\"id\":\"7\",\"text\":\"Acute gout and fever.\"}\n");
    place.write("a.tsv", "X:1\tGout\tgouty arthritis\n");
    place.write(
        "expected.toml",
        "[[text]]\ntext = \"She has gout.\"\nrequire = [{ mention = \"gout\", id = \"MESH:D006073\" }]\n",
    );
    let linked = stages(&place, &["link", "a.jsonl", "--output", "b.jsonl"], "");
    let lexical = ["link", "a.jsonl", "--model", "lexical", "--explain", "--output", "c.jsonl"];
    let explained = stages(&place, &lexical, "");
    for (stages, part) in [
        (&linked, "cache hit"),
        (&linked, "opened starter"),
        (&linked, "built the system"),
        (&linked, "read 1 document"),
        (&explained, "linked 1 document"),
        (&explained, "wrote 1 document"),
    ] {
        assert!(stages.iter().any(|stage| stage.starts_with(part)), "{part}: {stages:?}");
    }
    for (arguments, expected) in [
        (&["link", "a.jsonl", "--output", "run/"][..], "linked 1 document"),
        (&["map", "-"], "linked 1 name"),
        (&["map", "-", "--model", "default"], "built the linker"),
        (&["map", "-", "--to", "sssom"], "wrote 1 name"),
        (&["convert", "b.jsonl", "b.xml", "--to", "bioc-xml"], "read 1 document"),
        (&["compare", "b.jsonl", "c.jsonl", "--gold", "b.jsonl"], "read and compared the predictions"),
        (&["eval", "--gold", "b.jsonl", "--pred", "c.jsonl"], "read the gold annotations"),
        (&["expect", "expected.toml"], "checked 1 expectation"),
        (&["kb", "build", "a.tsv", "--out", "a.kb"], "concepts read: 1"),
        (&["kb", "info", "a.kb"], "opened a: "),
        (&["kb", "show", "a.kb", "X:1"], "opened a: "),
        (&["kb", "search", "a.kb", "gout"], "searched the names"),
        (&["kb", "lint", "a.kb"], "made "),
        (&["kb", "diff", "a.kb", "a.kb"], "compared the concepts"),
        (&["kb", "export", "a.kb", "--out", "a.jsonl.gz"], "concepts: 1"),
        (&["index", "build", "--kb", "a.kb"], "names: 2"),
    ] {
        let stages = stages(&place, arguments, "gout\n");
        assert!(stages.iter().any(|stage| stage.starts_with(expected)), "{arguments:?}: {stages:?}");
    }
}
