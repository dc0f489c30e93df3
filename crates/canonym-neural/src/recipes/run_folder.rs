//! The run folder: `config.toml` (the resolved experiment), `report.json`, `provenance.json`, and the model.

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
    /// Commit of the source, if known.
    pub revision: Option<String>,
    /// Checksum of each input file.
    pub data_xxh3: BTreeMap<String, String>,
}

/// Writes report, provenance and, last, the resolved experiment, which marks a complete run folder.
pub fn write_run(
    out: &Path,
    experiment: &impl Serialize,
    report: &impl Serialize,
    provenance: &Provenance,
) -> Result<()> {
    write_text(out, "report.json", &to_json(report)?)?;
    write_text(out, "provenance.json", &to_json(provenance)?)?;
    write_text(out, "config.toml", &to_toml(experiment)?)
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
    let output = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().ok();
    let revision =
        output.filter(|output| output.status.success()).and_then(|output| String::from_utf8(output.stdout).ok());
    let revision = revision.map(|text| text.trim().to_owned());
    Ok(Provenance { program: concat!("canonym ", env!("CARGO_PKG_VERSION")), revision, data_xxh3 })
}

#[cfg(test)]
mod tests {
    use super::*;

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
