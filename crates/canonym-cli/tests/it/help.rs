//! `canonym help`, `canonym completions` and `canonym man`.

use std::process::Command;

use crate::support::Workplace;

fn said(place: &Workplace, arguments: &[&str]) -> String {
    let output = place.run(arguments, "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const COMMANDS: [&[&str]; 10] = [
    &["link"],
    &["map"],
    &["kb"],
    &["kb", "build"],
    &["kb", "info"],
    &["kb", "search"],
    &["kb", "show"],
    &["eval"],
    &["train"],
    &["man"],
];

#[test]
fn help_of_a_command_is_what_the_command_says_of_itself() {
    let place = Workplace::new();
    assert_eq!(said(&place, &["help"]), said(&place, &["--help"]));
    for command in COMMANDS {
        assert_eq!(said(&place, &[&["help"], command].concat()), said(&place, &[command, &["--help"]].concat()));
    }
}

#[test]
fn every_topic_is_listed_and_told() {
    let place = Workplace::new();
    let help = said(&place, &["help"]);
    let topics = help.lines().find_map(|line| line.strip_prefix("Help topics (`canonym help TOPIC`): ")).unwrap();
    assert_eq!(topics.split(", ").count(), 6);
    for topic in topics.split(", ") {
        assert!(said(&place, &["help", topic]).lines().count() > 5, "{topic}");
    }
}

#[test]
fn what_is_neither_command_nor_topic_is_wrong_usage() {
    let place = Workplace::new();
    let output = place.run(&["help", "nonsense"], "");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no command or topic `nonsense`") && message.contains("hint: Help topics"), "{message}");
    assert_eq!(place.run(&["help", "kb", "nonsense"], "").status.code(), Some(2));
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(&place, &["completions", shell]);
        assert!(script.contains("canonym") && script.contains("kb"), "{shell}");
        place.write(shell, script);
    }
    match Command::new("bash").arg("-n").arg(place.path("bash")).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => println!("skipped: bash does not start: {error}"),
    }
    assert_eq!(place.run(&["completions", "nonsense"], "").status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Workplace::new();
    said(&place, &["man", "--out", "pages/man1"]);
    let page = |name: &str| std::fs::read_to_string(place.path("pages/man1").join(name)).unwrap();
    assert!(page("canonym.1").contains("canonym\\-link(1)"));
    for command in COMMANDS {
        let page = page(&format!("canonym-{}.1", command.join("-")));
        assert!(page.starts_with(".ie") && page.contains(".SH OPTIONS"), "{command:?}");
    }
}
