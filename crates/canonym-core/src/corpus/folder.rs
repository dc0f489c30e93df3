//! Writes documents into a folder, a `.txt` and an `.ann` file for each, as brat reads them.
//!
//! A file that is there is never replaced. Document ids become names of files: what may not stand in one becomes `_`,
//! and a name that was used before gets a number.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::corpus::{AnnotatedDocument, CorpusFormat, format};
use crate::{Error, Result};

/// The longest name of a file without its ending, in bytes.
const MAX_NAME: usize = 200;

/// Writes brat documents into one folder.
#[derive(Debug)]
pub struct FolderWriter {
    folder: PathBuf,
    /// Names in lower case: some file systems do not tell letters apart.
    taken: HashSet<String>,
    renamed: Vec<(String, String)>,
    n_renamed: u64,
}

/// Renamed documents that are remembered.
const MAX_RENAMED: usize = 10;

impl FolderWriter {
    /// A writer into `folder`, which exists.
    pub fn new(folder: &Path) -> FolderWriter {
        FolderWriter { folder: folder.to_path_buf(), taken: HashSet::new(), renamed: Vec::new(), n_renamed: 0 }
    }

    /// Writes both files of one document.
    pub fn write(&mut self, document: &AnnotatedDocument) -> Result<()> {
        let mut annotations = Vec::new();
        format::encode(document, CorpusFormat::Brat, &mut annotations)?;
        self.write_encoded(&document.document.id, &document.document.text, &annotations)
    }

    /// Writes both files of the document `id`, of which the annotations were made by [`format::encode`].
    pub fn write_encoded(&mut self, id: &str, text: &str, annotations: &[u8]) -> Result<()> {
        let name = self.free_name(id);
        if name != id {
            self.n_renamed += 1;
            if self.renamed.len() < MAX_RENAMED {
                self.renamed.push((id.to_owned(), name.clone()));
            }
        }
        self.write_file(&format!("{name}.txt"), text.as_bytes())?;
        self.write_file(&format!("{name}.ann"), annotations)
    }

    /// How many documents have files of another name than their id.
    pub fn n_renamed(&self) -> u64 {
        self.n_renamed
    }

    /// Ids and names of the first documents that have files of another name.
    pub fn renamed(&self) -> &[(String, String)] {
        &self.renamed
    }

    fn free_name(&mut self, id: &str) -> String {
        let name = safe_name(id);
        let mut free = name.clone();
        let mut number = 2;
        while !self.taken.insert(free.to_lowercase()) {
            free = format!("{name}-{number}");
            number += 1;
        }
        free
    }

    fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        let mut file = File::create_new(&path).map_err(|source| Error::io("create", &path, source))?;
        file.write_all(bytes).map_err(|source| Error::io("write", &path, source))
    }
}

/// The name of a file for a document id: letters, digits, `.`, `-` and `_`, never a hidden one or one of another folder.
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
