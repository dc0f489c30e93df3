//! The files of a batch run and the names of their outputs.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::corpus::CorpusFormat;
use crate::corpus::files::{InputFile, input_files};
use crate::{Error, Result};

/// An input file with the name of its output.
#[derive(Debug, Clone)]
pub struct BatchFile {
    /// The file.
    pub input: InputFile,
    /// Name of its output in the run folder, with `/` between folders.
    pub output: String,
}

/// The input files under `paths`, in order, and the number of files that belong to no document. An output is named
/// like its input, relative to the folder it was found in, with `extension` appended.
///
/// # Errors
/// If a path cannot be listed, two outputs would have the same name, or a name is not Unicode.
pub fn list(paths: &[PathBuf], format: Option<CorpusFormat>, extension: &str) -> Result<(Vec<BatchFile>, u64)> {
    let (mut files, mut n_other) = (Vec::new(), 0);
    let mut taken: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        if path == Path::new("-") {
            return Err(Error::usage(
                "a run folder needs input files; standard input cannot be read again after an interruption",
                "save the input as a file",
            ));
        }
        let (inputs, n_other_here) = input_files(path, format)?;
        n_other += n_other_here;
        for input in inputs {
            let relative = match input.path().strip_prefix(path) {
                Ok(relative) if relative.file_name().is_some() => relative,
                _ => input.path().file_name().map_or(input.path(), Path::new),
            };
            let output = format!("{}.{extension}", name_of(relative, input.path())?);
            // Some file systems are case-insensitive.
            if let Some(other) = taken.insert(output.to_lowercase(), input.path().to_path_buf()) {
                let message = format!(
                    "{} and {} would have the same output {output} in the run folder",
                    other.display(),
                    input.path().display()
                );
                return Err(Error::usage(message, "specify the folder that contains both, or rename one of them"));
            }
            files.push(BatchFile { input, output });
        }
    }
    Ok((files, n_other))
}

fn name_of(relative: &Path, path: &Path) -> Result<String> {
    let parts = relative.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_str()),
        _ => None,
    });
    let parts: Option<Vec<&str>> = parts.collect();
    parts.map(|parts| parts.join("/")).ok_or_else(|| {
        Error::unsupported(format!("the file name {} is not Unicode", path.display())).with_hint("rename the file")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_named_like_their_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("notes/2020")).unwrap();
        for name in ["notes/2020/a.txt", "notes/b.jsonl.gz", "c.txt"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let names = |paths: &[PathBuf]| -> Vec<String> {
            list(paths, None, "jsonl").unwrap().0.into_iter().map(|file| file.output).collect()
        };
        assert_eq!(names(&[at("notes"), at("c.txt")]), ["2020/a.txt.jsonl", "b.jsonl.gz.jsonl", "c.txt.jsonl"]);
        let error = list(&[at("c.txt"), at("c.txt")], None, "jsonl").unwrap_err();
        assert!(error.to_string().ends_with("would have the same output c.txt.jsonl in the run folder"), "{error}");
    }
}
