//! Finds BERT checkpoints in local folders, or downloads them once by name.

use std::path::{Path, PathBuf};

use canonym_core::Error;

use super::TrainOptions;
use crate::index::cache::cache_folder;
use crate::status;

/// Downloads a file atomically: it appears under its name only when complete.
pub type Fetch = fn(&Request<'_>) -> canonym_core::Result<()>;

/// A download.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// URL.
    pub url: &'a str,
    /// Destination.
    pub out: &'a Path,
    /// Maximum size; larger files are an error.
    pub max_bytes: u64,
    /// Hint for the user if the server cannot be reached.
    pub hint: &'a str,
}

/// Environment variable with a folder of checkpoints.
const MODELS: &str = "CANONYM_MODELS";

/// Environment variables that forbid downloads if set: ours, and that of Hugging Face.
const OFFLINE: [&str; 2] = ["CANONYM_OFFLINE", "HF_HUB_OFFLINE"];

/// Environment variable with the URL of another hub.
const ENDPOINT: &str = "HF_ENDPOINT";

/// The default hub.
const HUB: &str = "https://huggingface.co";

/// Maximum size of a downloaded file.
const MAX_BYTES: u64 = 4 << 30;

/// Files that every checkpoint has.
const NEEDED: [&str; 2] = ["config.json", "model.safetensors"];

/// Vocabulary files, one of which is required.
const VOCABULARIES: [&str; 2] = ["vocab.txt", "tokenizer.json"];

/// Resolves a data file of an experiment: relative to the data root, otherwise to the current folder.
pub fn data_file(path: &Path, root: &Path) -> PathBuf {
    let of_root = root.join(path);
    if !of_root.exists() && path.exists() { path.to_path_buf() } else { of_root }
}

/// Resolves a model of an experiment: relative to the current folder, otherwise to the data root.
pub fn existing(path: &Path, root: &Path) -> PathBuf {
    if path.exists() { path.to_path_buf() } else { root.join(path) }
}

/// The folder of a checkpoint, relative to the data root or to the folder in `CANONYM_MODELS`. A checkpoint `owner/name` that is in neither
/// is downloaded from the hub once.
pub fn checkpoint_folder(name: &Path, options: &TrainOptions) -> canonym_core::Result<PathBuf> {
    let root = options.root();
    let models = variable(MODELS).map(PathBuf::from);
    let places: Vec<PathBuf> =
        [Some(root.to_path_buf()), models.clone()].into_iter().flatten().map(|at| at.join(name)).collect();
    if let Some(found) = places.iter().find(|place| is_complete(place)) {
        return Ok(found.clone());
    }
    let of_hub = name.to_str().is_some_and(is_owned);
    if let Some(partial) = places.iter().find(|place| !of_hub && place.is_dir()) {
        let lacks = NEEDED.iter().find(|file| !partial.join(file).is_file());
        let lacks = lacks.map_or_else(|| VOCABULARIES.join(" or "), |file| (*file).to_owned());
        let error = Error::not_found(format!("the checkpoint {} has no {lacks}", partial.display()));
        return Err(error.with_hint("download all files of the model into its folder"));
    }
    let shown: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let missing = || Error::not_found(format!("no checkpoint found at {}", shown.join(" or ")));
    let hint = "download the model (`config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`), and name the folder that \
                holds its folder in the variable CANONYM_MODELS";
    // A path whose parent folder exists locally is not a name on the hub.
    let is_here =
        |base: &Path| models.as_deref() != Some(base) && name.parent().is_some_and(|first| base.join(first).is_dir());
    let is_path = is_here(Path::new(".")) || is_here(root);
    let Some(owned) = name.to_str().filter(|name| is_owned(name) && !is_path) else {
        return Err(missing().with_hint(hint));
    };
    let Some(folder) = models.or_else(|| cache_folder().map(|folder| folder.join("models"))) else {
        return Err(missing().with_hint("set CANONYM_MODELS to a folder for checkpoints"));
    };
    let folder = folder.join(owned);
    if is_complete(&folder) {
        return Ok(folder);
    }
    if let Some(set) = OFFLINE.into_iter().find(|name| variable(name).is_some_and(|value| value != "0")) {
        let error = missing().with_hint(format!("{set} is set, so nothing was downloaded: unset it, or {hint}"));
        return Err(error);
    }
    let Some(download) = options.fetch else {
        return Err(missing().with_hint(hint));
    };
    fetch(owned, &folder, download)?;
    Ok(folder)
}

/// Settings of the tokenizer, which older checkpoints lack.
const LETTERS: &str = "tokenizer_config.json";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|file| folder.join(file).is_file()) && VOCABULARIES.iter().any(|file| folder.join(file).is_file())
}

/// Whether this is a valid `owner/name` on the hub that cannot escape a folder.
fn is_owned(name: &str) -> bool {
    let is_part = |part: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(known)
    };
    name.split('/').count() == 2 && name.split('/').all(is_part)
}

fn fetch(name: &str, folder: &Path, download: Fetch) -> canonym_core::Result<()> {
    let hub = variable(ENDPOINT).unwrap_or_else(|| HUB.to_owned());
    let base = format!("{}/{name}/resolve/main", hub.trim_end_matches('/'));
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    status::say(&format!("downloading {name} from {hub} …"));
    let hint = format!("without network access, copy the files of {name} to {} from another machine", folder.display());
    let one = |file: &str| -> canonym_core::Result<()> {
        let (url, out) = (format!("{base}/{file}"), folder.join(file));
        if !out.is_file() {
            download(&Request { url: &url, out: &out, max_bytes: MAX_BYTES, hint: &hint })?;
        }
        Ok(())
    };
    one(NEEDED[0])?;
    if let Err(error) = one(LETTERS) {
        status::say(&format!("skipping {LETTERS}: {error}"));
    }
    one(VOCABULARIES[0]).or_else(|first| {
        // Some checkpoints have only the newer file; if that is missing as well, the first error is more informative.
        one(VOCABULARIES[1]).map_err(|_| first)
    })?;
    one(NEEDED[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hub_cannot_lead_out_of_a_folder() {
        for name in ["dmis-lab/biobert-v1.1", "a/b_c"] {
            assert!(is_owned(name), "{name}");
        }
        for name in ["tiny", "../b", "a/..", "a/b/c", "/b", "a/", "a\\b/c", "a/b?c"] {
            assert!(!is_owned(name), "{name}");
        }
    }
}
