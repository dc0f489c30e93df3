//! The run folder: the model, `report.json`, `provenance.json`, and `config.toml` (the resolved experiment), which is written last.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use canonym_core::artifact::AtomicFile;
use canonym_core::error::Context;
use canonym_core::kb::compile::hash_file;
use canonym_core::{Error, Result};
use serde::Serialize;

use super::checkpoints::data_file;

/// Where a model comes from.
#[derive(Debug, Serialize)]
pub struct Provenance {
    /// Program and version.
    pub program: &'static str,
    /// Git commit of the source of canonym, if it was run in a checkout of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_revision: Option<String>,
    /// Checksum of each input file.
    pub data_xxh3: BTreeMap<String, String>,
}

/// The report of a run.
pub const REPORT: &str = "report.json";

/// The resolved experiment, which marks a complete run folder.
const CONFIG: &str = "config.toml";

/// Writes `files` (the model and the report), the provenance and, last, the resolved experiment. The experiment of a previous run in the
/// folder is removed first.
pub fn write_run(
    out: &Path,
    experiment: &impl Serialize,
    provenance: &Provenance,
    files: &[(&str, &[u8])],
) -> Result<()> {
    let (config, provenance) = (to_toml(experiment)?, to_json(provenance)?);
    let marker = out.join(CONFIG);
    if marker.exists() {
        std::fs::remove_file(&marker).map_err(|error| Error::io("remove", &marker, error))?;
    }
    for (name, bytes) in files {
        write_bytes(out, name, bytes)?;
    }
    write_text(out, "provenance.json", &provenance)?;
    write_text(out, CONFIG, &config)
}

/// Whether a run in the folder has finished.
pub fn is_complete(folder: &Path) -> bool {
    folder.join(CONFIG).exists()
}

/// Serialises a value as TOML.
pub fn to_toml(value: &impl Serialize) -> Result<String> {
    toml::to_string(value).context("cannot write the experiment as TOML")
}

/// Serialises a value as pretty-printed JSON.
pub fn to_json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot write the report as JSON")? + "\n")
}

/// Identity of a run, from its experiment and data; checkpoints are resumed only by the same run.
pub fn identity(experiment: &impl Serialize, provenance: &Provenance) -> Result<String> {
    let data = serde_json::to_string(&provenance.data_xxh3).context("cannot write the checksums as JSON")?;
    Ok(format!("{}{data}", to_toml(experiment)?))
}

/// Whether the input files of a finished run have the checksums of its provenance; false if the folder has none.
pub fn data_unchanged(folder: &Path, root: &Path) -> Result<bool> {
    #[derive(serde::Deserialize)]
    struct Recorded {
        data_xxh3: BTreeMap<PathBuf, String>,
    }
    let Ok(text) = std::fs::read_to_string(folder.join("provenance.json")) else { return Ok(false) };
    let Ok(recorded) = serde_json::from_str::<Recorded>(&text) else { return Ok(false) };
    for (path, hash) in &recorded.data_xxh3 {
        if hash_file(&data_file(path, root))? != *hash {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes a text file atomically; the folder is created if missing.
pub fn write_text(folder: &Path, name: &str, text: &str) -> Result<()> {
    write_bytes(folder, name, text.as_bytes())
}

/// Writes a binary file atomically; the folder is created if missing.
pub fn write_bytes(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let mut file = AtomicFile::create(&folder.join(name))?;
    file.write_all(bytes).map_err(|error| Error::io("write", &folder.join(name), error))?;
    file.commit()
}

/// Provenance of a model trained on files below `root`.
pub fn provenance(paths: BTreeSet<&PathBuf>, root: &Path) -> Result<Provenance> {
    let mut data_xxh3 = BTreeMap::new();
    for path in paths {
        data_xxh3.insert(path.display().to_string(), hash_file(&data_file(path, root))?);
    }
    let source_revision = source_revision();
    Ok(Provenance { program: concat!("canonym ", env!("CARGO_PKG_VERSION")), source_revision, data_xxh3 })
}

/// The commit of the git repository of the current folder, if it is that of canonym. Other repositories say nothing about the program.
fn source_revision() -> Option<String> {
    let output = std::process::Command::new("git").args(["rev-parse", "--show-toplevel", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let (top, commit) = text.trim().split_once('\n')?;
    is_checkout(Path::new(top)).then(|| commit.to_owned())
}

/// Whether a folder is a checkout of canonym.
fn is_checkout(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    manifest.contains("[workspace]") && folder.join("crates/canonym-neural/Cargo.toml").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_by(folder: &Path) -> Provenance {
        provenance(BTreeSet::new(), folder).unwrap()
    }

    #[test]
    fn run_without_its_model_is_incomplete() {
        let folder = tempfile::tempdir().unwrap();
        let (out, experiment) = (folder.path(), BTreeMap::from([("seed", 1)]));
        write_run(out, &experiment, &made_by(out), &[("model", b"weights"), (REPORT, b"{}\n")]).unwrap();
        assert!(is_complete(out));
        // A folder in place of the model: writing it fails, in a new run folder and in that of an earlier run.
        std::fs::remove_file(out.join("model")).unwrap();
        for out in [out, &out.join("new")] {
            std::fs::create_dir_all(out.join("model/part")).unwrap();
            write_run(out, &experiment, &made_by(out), &[("model", b"weights"), (REPORT, b"{}\n")]).unwrap_err();
            assert!(!is_complete(out), "{}", out.display());
        }
    }

    #[test]
    fn only_a_checkout_of_canonym_has_a_revision_of_the_source() {
        assert!(is_checkout(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Cargo.toml"), "[workspace]\nmembers = [\"crates/mine\"]\n").unwrap();
        assert!(!is_checkout(folder.path()));
    }

    #[test]
    fn data_that_changed_after_a_run_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, data) = (folder.path(), PathBuf::from("names.tsv"));
        assert!(!data_unchanged(root, root).unwrap());
        std::fs::write(root.join(&data), "X:1\tfever\n").unwrap();
        let made = provenance(BTreeSet::from([&data]), root).unwrap();
        write_text(root, "provenance.json", &to_json(&made).unwrap()).unwrap();
        assert!(data_unchanged(root, root).unwrap());
        std::fs::write(root.join(&data), "X:1\tcough\n").unwrap();
        assert!(!data_unchanged(root, root).unwrap());
    }
}
