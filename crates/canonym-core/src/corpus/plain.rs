//! Plain text: one document per file, without annotations.
//!
//! The document id is the file name without extension, `stdin` for standard input. The text is unchanged, including
//! line ends, because offsets count them; only a byte order mark is removed. Cannot be written.

use std::io::Read;
use std::path::Path;

use crate::corpus::{AnnotatedDocument, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::text::Document;
use crate::{Error, Result};

/// Reads `input` as one document.
pub fn read(input: &mut Input) -> Result<AnnotatedDocument> {
    let mut bytes = Vec::new();
    let limit = MAX_DOCUMENT_BYTES as u64 + 1;
    let n_read = input.by_ref().take(limit).read_to_end(&mut bytes).map_err(|error| input.read_error(error))?;
    if n_read > MAX_DOCUMENT_BYTES {
        let message = format!("the document is longer than {MAX_DOCUMENT_BYTES} bytes");
        return Err(Error::limit(input.path(), message));
    }
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(input.path(), &error))?;
    let document = Document { id: document_id(input), text, sections: Vec::new() };
    Ok(AnnotatedDocument { document, ..AnnotatedDocument::default() })
}

fn document_id(input: &Input) -> String {
    if input.path() == Path::new("-") {
        return "stdin".to_owned();
    }
    let stem = Path::new(input.file_name()).file_stem();
    stem.map_or_else(|| input.path().to_string_lossy().into_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn not_utf8(path: &Path, error: &std::string::FromUtf8Error) -> Error {
    let valid = error.utf8_error().valid_up_to();
    let bytes = error.as_bytes();
    let line = bytes[..valid].iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
    Error::parse(path, line, format!("invalid UTF-8: byte 0x{:02x} at offset {valid}", bytes[valid]))
        .with_hint("convert the file to UTF-8")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(name: &str, bytes: &[u8], expect: Expect) {
        let mut input = Input::from_bytes(name, bytes.to_vec()).unwrap();
        let shown = match read(&mut input) {
            Ok(read) => format!("{} {:?}", read.document.id, read.document.text),
            Err(error) => format!("{error} (hint: {})", error.hint().unwrap_or("none")),
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn file_is_a_document_named_by_its_stem() {
        check("notes/ward 7.v2.txt", b"One.\r\nTwo.\n", expect![[r#"ward 7.v2 "One.\r\nTwo.\n""#]]);
        check("-", b"\xef\xbb\xbfpain", expect![[r#"stdin "pain""#]]);
        check("empty.txt", b"", expect![[r#"empty """#]]);
        check("a.txt.gz", b"not packed", expect![[r#"a "not packed""#]]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named() {
        check(
            "a.txt",
            b"one\nt\xe9o",
            expect!["a.txt:2: invalid UTF-8: byte 0xe9 at offset 5 (hint: convert the file to UTF-8)"],
        );
    }
}
