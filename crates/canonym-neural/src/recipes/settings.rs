//! Parses the settings of an experiment file; errors name the entry and suggest the closest valid word.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use canonym_core::Error;
use canonym_core::error::Context;
use rapidfuzz::distance::{lcs_seq, osa};
use serde::de::DeserializeOwned;
use toml::de;

use super::TrainOptions;
use crate::status;

/// Maximum edit distance of a suggestion.
const MAX_EDITS: usize = 3;

/// Renamed keys of experiments; the old names still work.
const RENAMED: [(&str, &str); 16] = [
    ("head_pace", "head_lr_multiplier"),
    ("rehearsed", "name_replay"),
    ("same_sense", "one_sense_weight"),
    ("least_steps", "min_steps"),
    ("most_steps", "max_steps"),
    ("steps_per_round", "mining_interval"),
    ("judges_mentions", "count_unlinked"),
    ("with_words", "lexical_fusion"),
    ("voice", "name_encoder"),
    ("usages", "mention_prior"),
    ("judge", "held_out"),
    ("n_judged", "n_held_out"),
    ("pieces", "wordpieces"),
    ("n_pieces", "n_wordpieces"),
    ("max_pieces", "max_wordpieces"),
    ("layer", "label_set"),
];

/// The present name of a key.
pub fn current(key: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == key).map_or(key, |(_, new)| new)
}

/// Renames old keys in a table and its descendants, and adds them to `found`. A key that is there under its new name as well stays.
pub fn rename(value: &mut toml::Value, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (old, new) in RENAMED {
                if !table.contains_key(new)
                    && let Some(value) = table.remove(old)
                {
                    table.insert(new.to_owned(), value);
                    found.insert(old.to_owned());
                }
            }
            table.iter_mut().for_each(|(_, value)| rename(value, found));
        }
        toml::Value::Array(values) => values.iter_mut().for_each(|value| rename(value, found)),
        _ => {}
    }
}

/// Warns of old keys.
pub fn warn_about_old(found: &BTreeSet<String>) {
    for old in found {
        status::say(&format!("warning: `{old}` is now `{}`; the old key still works", current(old)));
    }
}

/// Default of settings that are on.
pub fn yes() -> bool {
    true
}

/// Default of factors.
pub fn one() -> f32 {
    1.0
}

/// Deserialises an experiment of a kind, and creates its output folder.
pub fn experiment_of<T: DeserializeOwned>(
    arguments: &TrainOptions,
    table: toml::Table,
    kind: &str,
) -> canonym_core::Result<T> {
    let path = arguments.config.display();
    let experiment =
        settings(&arguments.config, table).with_context(|| format!("{path} is not a valid {kind} experiment"))?;
    let out = arguments.out.as_path();
    std::fs::create_dir_all(out).map_err(|error| Error::io("create", out, error))?;
    Ok(experiment)
}

/// Deserialises the experiment at `path`; `table` is its content with overrides applied.
pub fn settings<T: DeserializeOwned>(path: &Path, table: toml::Table) -> canonym_core::Result<T> {
    table.clone().try_into().map_err(|error: de::Error| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let is_as_written = toml::from_str::<toml::Table>(&text).is_ok_and(|written| written == table);
        // Only errors of the original text have line numbers, and with several errors the text may report another one first.
        let of_text = toml::from_str::<T>(&text).err();
        let of_text = of_text.filter(|of_text| is_as_written || of_text.message() == error.message());
        let told = match &of_text {
            Some(of_text) if of_text.message() != error.message() => of_text.message().to_owned(),
            _ => plain(&error),
        };
        let line = of_text.and_then(|of_text| Some(text[..of_text.span()?.start].matches('\n').count() as u64 + 1));
        let hint = hint(&told);
        match line {
            Some(line) => Error::parse(path, line, told).with_hint(hint),
            None => Error::config(told).with_hint(hint),
        }
    })
}

/// The error with the name of the entry, on one line.
fn plain(error: &de::Error) -> String {
    let told = error.to_string().trim().replace('\n', " ");
    // How `toml` reports a table or list where an enum value is expected.
    told.replace("unit variant, expected string only", "table or list, expected a string")
}

fn hint(told: &str) -> String {
    let usual = "see `experiments/` for the entries of this `system`; override one with `--set KEY=VALUE`";
    let mut words = told.split('`').skip(1).step_by(2);
    let known = told.split_once(", expected ").map_or("", |(_, known)| known.split(" in `").next().unwrap_or_default());
    let word = words.next().filter(|_| told.starts_with("unknown "));
    match word.and_then(|word| nearest(word, known.split('`').skip(1).step_by(2))) {
        Some(nearest) => format!("did you mean `{nearest}`? {usual}"),
        None => usual.to_owned(),
    }
}

/// The closest known word by edit distance, ties by common subsequence; `None` if none is close enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let measured = known.into_iter().map(|known| {
        let edits = osa::distance(word.chars(), known.chars());
        (edits, Reverse(lcs_seq::similarity(word.chars(), known.chars())), known)
    });
    measured.min().filter(|(edits, ..)| *edits <= MAX_EDITS).map(|(.., known)| known)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shapes {
        #[serde(rename = "system")]
        _system: String,
        #[serde(default, rename = "run")]
        _runs: Vec<Run>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Run {
        #[serde(rename = "n_steps")]
        _n_steps: usize,
    }

    /// Checks the error for `text` with overridden settings `table`.
    fn check(text: &str, table: &str, expected: Expect) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shapes.toml");
        std::fs::write(&path, text).unwrap();
        let error = settings::<Shapes>(&path, toml::from_str(table).unwrap()).unwrap_err();
        let told = error.to_string().replace(&folder.path().display().to_string(), "[DIR]");
        expected.assert_eq(&format!("{told}\n{}", error.hint().unwrap()));
    }

    #[test]
    fn an_unknown_setting_is_reported_with_its_line_and_the_closest_valid_word() {
        let text = "system = \"shapes\"\n\n[[run]]\nn_steps = 2\n\n[[run]]\nn_stepz = 3\n";
        check(
            text,
            text,
            expect![[r#"
                [DIR]/shapes.toml:7: unknown field `n_stepz`, expected `n_steps` in `run`
                did you mean `n_steps`? see `experiments/` for the entries of this `system`; override one with `--set KEY=VALUE`"#]],
        );
        let text = "system = \"shapes\"\nrun = [{ n_steps = \"two\" }]\nruns = 3\n";
        check(
            text,
            text,
            expect![[r#"
                [DIR]/shapes.toml:2: invalid type: string "two", expected usize in `run.n_steps`
                see `experiments/` for the entries of this `system`; override one with `--set KEY=VALUE`"#]],
        );
    }

    #[test]
    fn of_words_that_are_as_near_the_one_with_the_same_letters_is_meant() {
        assert_eq!(nearest("n_rnd", ["n_hard", "n_random", "batch"]), Some("n_random"));
        assert_eq!(nearest("quite-other", ["n_hard", "n_random", "batch"]), None);
    }

    #[test]
    fn an_override_has_no_line() {
        check(
            "system = \"shapes\"\n",
            "system = \"shapes\"\nquite-other = 1\n",
            expect![[r#"
                unknown field `quite-other`, expected `system` or `run`
                see `experiments/` for the entries of this `system`; override one with `--set KEY=VALUE`"#]],
        );
    }
}
