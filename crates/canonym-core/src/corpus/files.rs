//! Finds the documents in a folder or archive, and pairs files that belong together.
//!
//! A brat document is a `.txt` file with an `.ann` file of the same name. In a folder with an `.ann` file, every `.txt`
//! file is a brat document, even without annotations, and other files are not documents.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::corpus::CorpusFormat;
use crate::input::Source;
use crate::{Error, Result};

/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Message for an `.ann` file without a text file.
const UNPAIRED: &str = "has no `.txt` file of the same name";

/// An item to open.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    /// A file that may be an archive.
    File(PathBuf),
    /// A stream with one or more documents.
    Source(Source),
    /// A text file and its annotation file, if any.
    Brat(Source, Option<Source>),
    /// An annotation file without a text file.
    Unpaired(PathBuf),
}

/// Content of a folder or archive.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub waiting: VecDeque<Pending>,
    /// Number of files that belong to no document.
    pub n_other: u64,
}

/// A file with documents, or a brat text with its annotations.
#[derive(Debug, Clone)]
pub struct InputFile {
    pub(super) pending: Pending,
}

impl InputFile {
    /// Its path; of a brat document the path of the text.
    pub fn path(&self) -> &Path {
        match &self.pending {
            Pending::File(path) | Pending::Unpaired(path) => path,
            Pending::Source(source) | Pending::Brat(source, _) => source.path(),
        }
    }

    /// The paths of all its parts: the file, or a brat text and its annotations.
    pub fn parts(&self) -> Vec<&Path> {
        match &self.pending {
            Pending::Brat(text, Some(annotations)) => vec![text.path(), annotations.path()],
            _ => vec![self.path()],
        }
    }
}

/// The files under `path`, a file or folder, in the order in which a reader of `path` opens them, and the number of
/// files that belong to no document.
///
/// # Errors
/// If `path` does not exist, or is a folder that cannot be read or contains no files.
pub fn input_files(path: &Path, format: Option<CorpusFormat>) -> Result<(Vec<InputFile>, u64)> {
    let Listing { waiting, n_other } = list(path, format)?;
    Ok((waiting.into_iter().map(|pending| InputFile { pending }).collect(), n_other))
}

/// Lists the documents under `path`, a file or folder.
pub(super) fn list(path: &Path, format: Option<CorpusFormat>) -> Result<Listing> {
    let metadata = fs::metadata(path).map_err(|source| Error::io("open", path, source))?;
    if !metadata.is_dir() {
        return Ok(Listing { waiting: single(path, format)?.into(), n_other: 0 });
    }
    let files = files_of(path)?;
    if files.is_empty() {
        return Err(Error::no_data(format!("the folder {} contains no files", path.display()))
            .with_hint("check the path; files that start with a dot are ignored"));
    }
    Ok(pair_up(files, format, |path| path.as_path(), Pending::File, |path| Source::from_path(path)))
}

/// Lists the documents in a file or in bytes: the members of an archive, or itself.
pub(super) fn open(source: &Source, format: Option<CorpusFormat>) -> Result<Listing> {
    let members = source.clone().members()?;
    if members.len() == 1 && members[0].path() == source.path() {
        return Ok(Listing { waiting: members.into_iter().map(Pending::Source).collect(), n_other: 0 });
    }
    Ok(pair_up(members, format, Source::path, Pending::Source, Source::clone))
}

/// Lists a single file; an annotation file and its text file stand for each other.
fn single(path: &Path, format: Option<CorpusFormat>) -> Result<Vec<Pending>> {
    let (stem, kind) = stem_and_kind(path);
    let beside = |ending: &str| {
        let candidates = ["", ".gz", ".zst"].map(|packed| PathBuf::from(format!("{}{ending}{packed}", stem.display())));
        candidates.into_iter().find(|path| path.is_file())
    };
    let takes_pairs = format.is_none_or(|format| format == CorpusFormat::Brat);
    Ok(vec![match kind {
        Kind::Annotations if takes_pairs => match beside(".txt") {
            Some(text) => Pending::Brat(Source::from_path(&text), Some(Source::from_path(path))),
            None => Pending::Unpaired(path.to_path_buf()),
        },
        Kind::Text if takes_pairs => match beside(".ann") {
            Some(annotations) => Pending::Brat(Source::from_path(path), Some(Source::from_path(&annotations))),
            None if format.is_some() => Pending::Brat(Source::from_path(path), None),
            None => Pending::File(path.to_path_buf()),
        },
        _ => Pending::File(path.to_path_buf()),
    }])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Annotations,
    Settings,
    Other,
}

/// Path without extension, and the kind of file by extension.
fn stem_and_kind(path: &Path) -> (PathBuf, Kind) {
    let text = path.to_string_lossy();
    let plain = [".gz", ".zst"].iter().find_map(|packed| text.strip_suffix(packed)).unwrap_or(&text);
    let kinds = [(".txt", Kind::Text), (".ann", Kind::Annotations), (".conf", Kind::Settings)];
    let found = kinds.iter().find_map(|(ending, kind)| Some((plain.strip_suffix(ending)?, *kind)));
    let (stem, kind) = found.unwrap_or((plain, Kind::Other));
    (PathBuf::from(stem), kind)
}

/// Pairs text and annotation files, in the order of `files`.
fn pair_up<T>(
    files: Vec<T>,
    format: Option<CorpusFormat>,
    path_of: impl Fn(&T) -> &Path,
    alone: impl Fn(T) -> Pending,
    source: impl Fn(&T) -> Source,
) -> Listing {
    let is_brat = format == Some(CorpusFormat::Brat);
    let mut annotations: BTreeMap<PathBuf, Source> = BTreeMap::new();
    let mut brat_folders: HashSet<PathBuf> = HashSet::new();
    let mut texts: HashSet<PathBuf> = HashSet::new();
    for file in &files {
        match stem_and_kind(path_of(file)) {
            (stem, Kind::Annotations) if is_brat || format.is_none() => {
                brat_folders.insert(stem.parent().map(Path::to_path_buf).unwrap_or_default());
                annotations.insert(stem, source(file));
            }
            (stem, Kind::Text) => drop(texts.insert(stem)),
            _ => {}
        }
    }
    let mut listing = Listing::default();
    for file in files {
        let (stem, kind) = stem_and_kind(path_of(&file));
        let in_brat = is_brat || stem.parent().is_some_and(|folder| brat_folders.contains(folder));
        match kind {
            Kind::Text if in_brat => {
                let beside = annotations.get(&stem).cloned();
                listing.waiting.push_back(Pending::Brat(source(&file), beside));
            }
            Kind::Annotations if in_brat => {
                if !texts.contains(&stem) {
                    listing.waiting.push_back(Pending::Unpaired(path_of(&file).to_path_buf()));
                }
            }
            Kind::Settings | Kind::Annotations => {}
            _ if in_brat => listing.n_other += 1,
            _ => listing.waiting.push_back(alone(file)),
        }
    }
    listing
}

/// Error for an annotation file without a text file.
pub(super) fn unpaired(path: &Path) -> Error {
    Error::no_data(format!("{} {UNPAIRED}", path.display())).with_hint("add the text file, or remove this file")
}

/// Name of the settings in a run folder of [`crate::batch`].
pub const RUN_FILE: &str = "run.json";

/// Name of the journal in a run folder.
pub const JOURNAL: &str = "run.journal";

/// Whether a file of a run folder is not an output.
fn is_run_file(folder: &Path, path: &Path) -> bool {
    let is_named = |name: &str| path.file_name().is_some_and(|own| own == name);
    is_named(JOURNAL)
        || is_named(RUN_FILE) && folder.join(JOURNAL).exists()
        || path.to_str().and_then(|path| path.strip_suffix(".skipped")).is_some_and(|output| Path::new(output).exists())
}

/// The files under `folder`, sorted by path.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::limit(&folder, format!("folders are nested deeper than {MAX_DEPTH}")));
        }
        let entries = fs::read_dir(&folder).map_err(|source| Error::io("read", &folder, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| Error::io("read", &folder, source))?;
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with('.') || is_run_file(&folder, &path) {
                continue;
            }
            let kind = entry.file_type().map_err(|source| Error::io("read", &path, source))?;
            if kind.is_dir() {
                folders.push((path, depth + 1));
            } else if !path.is_dir() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
