//! Recipes: one file per system, from an experiment file to a trained model.
//!
//! Each leaves a run folder (`run_folder`): the model, `report.json`, `provenance.json` and `config.toml` (the resolved experiment). The
//! lexical linker adds `errors.tsv` (errors on the dev sets, with explanations), recipes that train in steps the log of the training.

pub mod adapt;
pub mod checkpoints;
mod cross_encoder;
mod curve;
mod data;
pub mod dual_encoder;
mod fold;
mod generative;
mod known_words;
mod learned;
mod lexical;
mod log;
mod multitask;
mod pipeline;
pub mod probe;
pub mod queries;
mod recognition;
mod rescnn;
mod run_folder;
mod sampling;
mod settings;
mod sources;
mod stage;
mod tagger;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bundle::{self, FILE};
use canonym_core::error::Context;
use canonym_core::eval::ids::{IdSet, known_ids};
use canonym_core::eval::learned::Learned;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::fit::Labelled;
use settings::settings;

use crate::status;
use canonym_core::eval::unknown::unknown;

/// Arguments of a training.
#[derive(Debug, Clone, Default)]
pub struct TrainOptions {
    /// The experiment file.
    pub config: PathBuf,
    /// Folder of the data. If `None`, the folder of the experiment, or `../shared/data` if only that contains files of the experiment.
    pub data_root: Option<PathBuf>,
    /// Output folder.
    pub out: PathBuf,
    /// Instead of training, adds the record of training documents to a model that this experiment produced.
    pub record_onto: Option<PathBuf>,
    /// Also evaluate on documents that a part of the system was trained on; the report says so.
    pub allow_seen: bool,
    /// Overrides of entries, such as `fit.penalty=0.01`.
    pub overrides: Vec<String>,
    /// Downloads checkpoints; `None` disables downloads.
    pub fetch: Option<checkpoints::Fetch>,
}

impl TrainOptions {
    /// Folder of the data; [`train`] sets the default.
    fn root(&self) -> &Path {
        self.data_root.as_deref().unwrap_or(Path::new("."))
    }
}

/// A kind of training, by the value of `system` in an experiment.
struct Recipe {
    system: &'static str,
    run: fn(&TrainOptions, toml::Table) -> canonym_core::Result<()>,
    /// The training record of a model of this kind, made from the experiment; `None` if such models have none.
    learned: Option<fn(&TrainOptions, toml::Table) -> canonym_core::Result<Learned>>,
}

const RECIPES: &[Recipe] = &[
    Recipe {
        system: "pipeline",
        run: pipeline::run,
        learned: Some(|arguments, table| pipeline::learned(arguments, &settings(&arguments.config, table)?)),
    },
    Recipe {
        system: adapt::SYSTEM,
        run: adapt::run,
        learned: Some(|arguments, table| adapt::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe {
        system: bundle::dual_encoder::SYSTEM,
        run: dual_encoder::run,
        learned: Some(|arguments, table| dual_encoder::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe {
        system: bundle::cross_encoder::SYSTEM,
        run: cross_encoder::run,
        learned: Some(|arguments, table| {
            cross_encoder::learned(&settings(&arguments.config, table)?, arguments.root())
        }),
    },
    Recipe {
        system: bundle::generative::SYSTEM,
        run: generative::run,
        learned: Some(|arguments, table| generative::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe {
        system: bundle::multitask::SYSTEM,
        run: multitask::run,
        learned: Some(|arguments, table| multitask::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe { system: "tagger", run: tagger::run, learned: None },
    Recipe {
        system: "rescnn",
        run: rescnn::run,
        learned: Some(|arguments, table| rescnn::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe { system: sampling::SYSTEM, run: sampling::run, learned: None },
    Recipe {
        system: "lexical",
        run: lexical::run,
        learned: Some(|arguments, table| lexical::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe {
        system: "recognition",
        run: recognition::run,
        learned: Some(|arguments, table| recognition::learned(&settings(&arguments.config, table)?, arguments.root())),
    },
    Recipe { system: "known-words", run: known_words::run, learned: None },
];

/// The recipe of an experiment in the file `path`.
fn recipe(table: &toml::Table, path: &Path) -> canonym_core::Result<&'static Recipe> {
    let system = table.get("system").and_then(toml::Value::as_str);
    let found = RECIPES.iter().find(|recipe| Some(recipe.system) == system);
    found.ok_or_else(|| {
        let path = path.display();
        let message = match system {
            Some(system) => format!("unknown system `{system}` in {path}"),
            None => format!("{path} has no entry `system`"),
        };
        let systems: Vec<&str> = RECIPES.iter().map(|recipe| recipe.system).collect();
        let meant = system.and_then(|system| settings::nearest(system, systems.iter().copied()));
        let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
        let hint = format!("{meant}`system` must be one of {}", systems.join(", "));
        canonym_core::Error::config(message).with_hint(hint)
    })
}

/// Folder of shared data beside a checkout.
const SHARED: &str = "../shared/data";

/// Trains the model of an experiment.
pub fn train(arguments: &TrainOptions) -> canonym_core::Result<()> {
    let mut table = read_table(&arguments.config, &arguments.overrides)?;
    fold::fill(&mut table).with_context(|| format!("incomplete experiment {}", arguments.config.display()))?;
    let given = arguments.data_root.clone();
    let data_root = Some(given.unwrap_or_else(|| usual_root(&arguments.config, &table, Path::new(SHARED))));
    let arguments = &TrainOptions { data_root, ..arguments.clone() };
    if let Some(model) = &arguments.record_onto {
        return learned::record(arguments, table, model);
    }
    if [FILE, "model.json"].iter().any(|file| arguments.out.join(file).exists()) {
        status::say(&format!(
            "{} already holds a model; it will be replaced when training finishes",
            arguments.out.display()
        ));
    }
    (recipe(&table, &arguments.config)?.run)(arguments, table)
}

/// Reads an experiment and applies overrides.
fn read_table(path: &Path, overrides: &[String]) -> canonym_core::Result<toml::Table> {
    let text = std::fs::read_to_string(path).map_err(|error| canonym_core::Error::io("read", path, error))?;
    let no_toml = |error: toml::de::Error| {
        let before = &text[..error.span().map_or(0, |span| span.start.min(text.len()))];
        let line = before.matches('\n').count() as u64 + 1;
        let hint = "experiments are TOML files; see `experiments/` for examples";
        canonym_core::Error::parse(path, line, format!("invalid TOML: {}", error.message())).with_hint(hint)
    };
    let table: toml::Table = toml::from_str(&text).map_err(no_toml)?;
    let (mut whole, mut old) = (toml::Value::Table(table), BTreeSet::new());
    settings::rename(&mut whole, &mut old);
    let toml::Value::Table(mut table) = whole else { unreachable!("a table stays one") };
    for one in overrides {
        old.extend(override_entry(&mut table, one)?);
    }
    settings::warn_about_old(&old);
    Ok(table)
}

/// Default data folder of an experiment: its own, unless only `shared` contains a file that the experiment names.
fn usual_root(experiment: &Path, table: &toml::Table, shared: &Path) -> PathBuf {
    fn names_any(value: &toml::Value, folder: &Path) -> bool {
        match value {
            // References to other experiments are not data.
            toml::Value::String(text) => !text.is_empty() && !text.ends_with(".toml") && folder.join(text).exists(),
            toml::Value::Array(values) => values.iter().any(|value| names_any(value, folder)),
            toml::Value::Table(table) => table.values().any(|value| names_any(value, folder)),
            _ => false,
        }
    }
    let names_any = |folder: &Path| table.values().any(|value| names_any(value, folder));
    let own = match experiment.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !names_any(own) && names_any(shared) { shared.to_path_buf() } else { own.to_path_buf() }
}

/// Applies an override `key=value`; dots in the key descend into tables, numbers into lists.
fn override_entry(table: &mut toml::Table, one: &str) -> canonym_core::Result<Option<String>> {
    let refused = |why: &str| {
        canonym_core::Error::usage(format!("cannot set `{one}`: {why}"), "the format is `fit.penalty=0.01`")
    };
    let (key, value) = one.split_once('=').ok_or_else(|| refused("missing `=`"))?;
    let value = match toml::from_str::<toml::Table>(&format!("value = {value}")) {
        Ok(mut parsed) => parsed.remove("value").expect("it was just written"),
        Err(_) => toml::Value::String(value.to_owned()),
    };
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut place = table;
    let mut steps = path.into_iter().flat_map(|path| path.split('.')).peekable();
    while let Some(step) = steps.next() {
        let next = place.entry(step).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let next = match (next, steps.peek().and_then(|row| row.parse::<usize>().ok())) {
            (toml::Value::Array(rows), Some(row)) => {
                steps.next();
                rows.get_mut(row).ok_or_else(|| refused("the list is shorter"))?
            }
            (next, _) => next,
        };
        place = next.as_table_mut().ok_or_else(|| refused(&format!("`{step}` is not a table")))?;
    }
    let current = settings::current(last);
    place.insert(current.to_owned(), value);
    Ok((current != last).then(|| last.to_owned()))
}

/// Reports how many queries have ids that the terminology lacks.
fn tell_unknown(what: &str, queries: &[Labelled], kb: &KnowledgeBase) {
    let sets: Vec<IdSet> =
        queries.iter().map(|query| IdSet::parse(&query.ids.iter().cloned().collect::<Vec<_>>())).collect();
    let known = known_ids(kb.concepts().map(|concept| kb.id(concept)));
    if let Some(unknown) = unknown(what, sets.iter(), &known) {
        unknown.lines("the terminology").iter().for_each(|line| status::say(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lie_beside_the_experiment_unless_only_the_shared_folder_has_them() {
        let place = tempfile::tempdir().unwrap();
        let (own, shared) = (place.path().join("own"), place.path().join("shared"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&shared).unwrap();
        let experiment = own.join("shapes.toml");
        let table = toml::from_str("system = \"rescnn\"\n[data]\nqueries = [{ path = \"dev.tsv\" }]").unwrap();
        let root = || usual_root(&experiment, &table, &shared);
        assert_eq!(root(), own);
        std::fs::write(shared.join("dev.tsv"), "").unwrap();
        assert_eq!(root(), shared);
        std::fs::write(own.join("dev.tsv"), "").unwrap();
        assert_eq!(root(), own);
        assert_eq!(usual_root(Path::new("shapes.toml"), &table, &place.path().join("none")), Path::new("."));
    }

    #[test]
    fn overrides_reach_into_tables_and_lists() {
        let mut table: toml::Table = toml::from_str("seed = 1\n[fit]\npenalty = 1.0\n[[set]]\nname = \"a\"").unwrap();
        for one in ["fit.penalty=0.5", "seed=2", "set.0.name=b"] {
            override_entry(&mut table, one).unwrap();
        }
        // An old key replaces the value of the new one.
        let mut renamed: toml::Table = toml::from_str("[batch]\nname_replay = 16").unwrap();
        assert_eq!(override_entry(&mut renamed, "batch.rehearsed=0").unwrap().as_deref(), Some("rehearsed"));
        assert_eq!(toml::to_string(&renamed).unwrap(), "[batch]\nname_replay = 0\n");
        assert_eq!(toml::to_string(&table).unwrap(), "seed = 2\n\n[fit]\npenalty = 0.5\n\n[[set]]\nname = \"b\"\n");
        for refused in ["fit", "seed.x=1", "set.3.name=b"] {
            assert!(override_entry(&mut table, refused).is_err(), "{refused}");
        }
    }
}
