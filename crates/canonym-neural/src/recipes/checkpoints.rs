//! Where the checkpoints of BERT are: in a folder of the user, or fetched by their name once.

use std::path::{Path, PathBuf};

use canonym_core::Error;

use super::TrainOptions;
use crate::index::cache::cache_folder;
use crate::status;

/// Downloads one file; it appears under its name when it is whole.
pub type Fetch = fn(&Request<'_>) -> canonym_core::Result<()>;

/// What to download.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its address.
    pub url: &'a str,
    /// Where it will stand.
    pub out: &'a Path,
    /// Larger files are refused.
    pub max_bytes: u64,
    /// What to do where there is no way to the server.
    pub hint: &'a str,
}

/// The variable that names the folder with checkpoints.
const MODELS: &str = "CANONYM_MODELS";

/// Variables that forbid to fetch where they are set: ours, and the one that other programs keep to.
const OFFLINE: [&str; 2] = ["CANONYM_OFFLINE", "HF_HUB_OFFLINE"];

/// The variable with the address of another hub.
const ENDPOINT: &str = "HF_ENDPOINT";

/// The hub that is asked where the variable names none.
const HUB: &str = "https://huggingface.co";

/// The largest file that is fetched.
const MAX_BYTES: u64 = 4 << 30;

/// Files that every checkpoint has.
const NEEDED: [&str; 2] = ["config.json", "model.safetensors"];

/// Files with the vocabulary, of which one is enough.
const VOCABULARIES: [&str; 2] = ["vocab.txt", "tokenizer.json"];

/// A file of an experiment, which is relative to the data root or else to the current folder.
pub fn data_file(path: &Path, root: &Path) -> PathBuf {
    let of_root = root.join(path);
    if !of_root.exists() && path.exists() { path.to_path_buf() } else { of_root }
}

/// A model of an experiment, which is relative to the current folder or else to the data root.
pub fn existing(path: &Path, root: &Path) -> PathBuf {
    if path.exists() { path.to_path_buf() } else { root.join(path) }
}

/// The folder of a checkpoint: relative to the data root, or to the folder that `CANONYM_MODELS` names. One called `owner/name` that is in
/// neither is fetched from the hub, once.
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
        let error = Error::invalid(format!("the checkpoint {} has no {lacks}", partial.display()));
        return Err(error.with_hint("download all files of the model into its folder").into());
    }
    let shown: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let missing = || Error::invalid(format!("no checkpoint found at {}", shown.join(" or ")));
    let hint = "download the model (`config.json`, `model.safetensors`, and `tokenizer.json` or `vocab.txt`), into a \
                subfolder of the folder that CANONYM_MODELS names";
    // A path below a folder that is here is no name of the hub.
    let is_here =
        |base: &Path| models.as_deref() != Some(base) && name.parent().is_some_and(|first| base.join(first).is_dir());
    let is_path = is_here(Path::new(".")) || is_here(root);
    let Some(owned) = name.to_str().filter(|name| is_owned(name) && !is_path) else {
        return Err(missing().with_hint(hint).into());
    };
    let Some(folder) = models.or_else(|| cache_folder().map(|folder| folder.join("models"))) else {
        return Err(missing().with_hint("set CANONYM_MODELS to a folder for checkpoints").into());
    };
    let folder = folder.join(owned);
    if is_complete(&folder) {
        return Ok(folder);
    }
    if let Some(set) = OFFLINE.into_iter().find(|name| variable(name).is_some_and(|value| value != "0")) {
        let error = missing().with_hint(format!("{set} is set, so nothing was downloaded: unset it, or {hint}"));
        return Err(error.into());
    }
    let Some(download) = options.fetch else {
        return Err(missing().with_hint(hint));
    };
    fetch(owned, &folder, download)?;
    Ok(folder)
}

/// How letters are changed before words are divided; older models do not have it.
const LETTERS: &str = "tokenizer_config.json";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_complete(folder: &Path) -> bool {
    NEEDED.iter().all(|file| folder.join(file).is_file()) && VOCABULARIES.iter().any(|file| folder.join(file).is_file())
}

/// Whether this is a name of the hub and cannot lead out of a folder.
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
        // Some models have the newer file alone; where that is missing, too, the first refusal tells more.
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
