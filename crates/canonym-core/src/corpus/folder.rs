//! Writes documents to a folder in brat format, a `.txt` and an `.ann` file each.
//!
//! Existing files are never replaced. Document ids become file names: invalid characters become `_`, and a repeated
//! name gets a number.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::corpus::{AnnotatedDocument, CorpusFormat, format};
use crate::{Error, Result};

/// Maximum length of a file name without extension, in bytes.
const MAX_NAME: usize = 200;

/// File names of documents, each given once.
#[derive(Debug, Default)]
pub struct FileNames {
    /// Used names in lower case, because some file systems are case-insensitive.
    taken: HashSet<String>,
}

impl FileNames {
    /// The name, without extension, of the file of a document: its id if that is a valid name that no other document has.
    pub fn of(&mut self, id: &str) -> String {
        let name = safe_name(id);
        let mut free = name.clone();
        let mut number = 2;
        while !self.taken.insert(free.to_lowercase()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        free
    }
}

/// Writes brat documents to a folder.
#[derive(Debug)]
pub struct FolderWriter {
    folder: PathBuf,
    names: FileNames,
    renamed: Vec<(String, String)>,
    n_renamed: u64,
}

/// Maximum number of renamed documents that are listed.
const MAX_RENAMED: usize = 10;

impl FolderWriter {
    /// A writer to an existing folder.
    pub fn new(folder: &Path) -> FolderWriter {
        FolderWriter { folder: folder.to_path_buf(), names: FileNames::default(), renamed: Vec::new(), n_renamed: 0 }
    }

    /// Writes both files of a document.
    pub fn write(&mut self, document: &AnnotatedDocument) -> Result<()> {
        let mut annotations = Vec::new();
        format::encode(document, CorpusFormat::Brat, &mut annotations)?;
        self.write_encoded(&document.document.id, &document.document.text, &annotations)
    }

    /// Writes both files of document `id`; `annotations` were encoded by [`format::encode`].
    pub fn write_encoded(&mut self, id: &str, text: &str, annotations: &[u8]) -> Result<()> {
        let name = self.names.of(id);
        if name != id {
            self.n_renamed += 1;
            if self.renamed.len() < MAX_RENAMED {
                self.renamed.push((id.to_owned(), name.clone()));
            }
        }
        self.write_file(&format!("{name}.txt"), text.as_bytes())?;
        self.write_file(&format!("{name}.ann"), annotations)
    }

    /// Number of documents whose file name differs from their id.
    pub fn n_renamed(&self) -> u64 {
        self.n_renamed
    }

    /// Ids and file names of the first renamed documents.
    pub fn renamed(&self) -> &[(String, String)] {
        &self.renamed
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let mut file = File::create_new(&path).map_err(|source| Error::io("create", &path, source))?;
        file.write_all(bytes).map_err(|source| Error::io("write", &path, source))
    }
}

/// A safe file name for a document id: letters, digits, `.`, `-` and `_`; not hidden, and without path separators.
pub fn safe_name(id: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ' | '+' | ',') { c } else { '_' };
    let mut name: String = id.trim().chars().map(safe).collect();
    while name.len() > MAX_NAME {
        name.pop();
    }
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if name.is_empty() { "document".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        for (id, name) in [
            ("8701013", "8701013"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("..", "_."),
            ("", "document"),
            ("a:b\\c\0", "a_b_c_"),
            ("Fälle 7", "Fälle 7"),
        ] {
            assert_eq!(safe_name(id), name);
        }
        assert!(safe_name(&"ä".repeat(500)).len() <= MAX_NAME);
    }

    #[test]
    fn equal_ids_get_numbers_and_files_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = FolderWriter::new(folder.path());
        for id in ["a", "A", "a-2", "b/c"] {
            writer.write_encoded(id, "No pain.", b"").unwrap();
        }
        let mut names: Vec<String> =
            folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".txt"));
        names.sort();
        assert_eq!(names, ["A-2.txt", "a-2-2.txt", "a.txt", "b_c.txt"]);
        assert_eq!(writer.n_renamed(), 3);
        let again = FolderWriter::new(folder.path()).write_encoded("a", "", b"");
        assert!(matches!(again, Err(Error::Io { .. })));
    }
}
