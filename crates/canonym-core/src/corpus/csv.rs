//! CSV: a table of notes, one document per record, read by the names of its columns.
//!
//! Records follow RFC 4180: fields are separated by commas, semicolons, tabs or vertical bars (detected from the header
//! line), a quoted field may contain separators, line breaks and doubled quotes. The first record names the columns. Text
//! and id come from the columns [`CsvColumns`] names, by default `text` and `id`; a record without an id is named
//! by its number. Other columns are ignored, or become attributes of the document, if [`CsvColumns::keeps_others`] says so.
//! Files named `.tsv` are separated by tabs. Cannot be written.

use crate::corpus::check::{Checker, quote};
use crate::corpus::{AnnotatedDocument, Attribute, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::text::Document;
use crate::{Error, Result};

/// Possible separators.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// Maximum number of fields of a record that become attributes.
const MAX_OTHERS: usize = 100;

/// Maximum length in bytes of the name of a column that becomes an attribute.
const MAX_COLUMN_NAME: usize = 200;

/// Which columns hold the id and the text; `None` for the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsvColumns {
    /// Name of the column with the id.
    pub id: Option<String>,
    /// Name of the column with the text.
    pub text: Option<String>,
    /// Whether the other columns become attributes of the document, unless they are empty.
    pub keeps_others: bool,
}

/// Reader of documents.
pub(super) struct Documents {
    input: Input,
    columns: CsvColumns,
    header: Option<Header>,
    /// First line of the last record.
    line: u64,
    n_records: u64,
}

struct Header {
    separator: char,
    names: Vec<String>,
    id: Option<usize>,
    text: usize,
}

impl Header {
    /// The fields that are neither id nor text, by the names of their columns, at most [`MAX_OTHERS`] of the columns with a short name.
    fn attributes(&self, fields: &[String]) -> Vec<Attribute> {
        let others = self.names.iter().zip(fields).enumerate();
        others
            .filter(|(row, (name, value))| {
                *row != self.text && Some(*row) != self.id && !name.is_empty() && !value.trim().is_empty()
            })
            .filter(|(_, (name, _))| name.len() <= MAX_COLUMN_NAME)
            .take(MAX_OTHERS)
            .map(|(_, (name, value))| Attribute { name: name.clone(), value: value.trim().to_owned() })
            .collect()
    }
}

/// Where the parser of a record stands.
#[derive(PartialEq)]
enum Place {
    Start,
    Plain,
    Quoted,
    /// After a quote in a quoted field.
    Closed,
}

impl Documents {
    pub fn new(input: Input, columns: CsvColumns) -> Documents {
        Documents { input, columns, header: None, line: 0, n_records: 0 }
    }

    /// Sets the columns, before the first document is read.
    pub fn set_columns(&mut self, columns: CsvColumns) {
        self.columns = columns;
    }

    /// Number of lines read.
    pub fn n_lines(&self) -> u64 {
        self.input.n_lines()
    }

    /// First line of the last record.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next document, `None` at the end. After a malformed record, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        if self.header.is_none() {
            let Some(header) = self.read_header()? else { return Ok(None) };
            self.header = Some(header);
        }
        let Some(Header { separator, names, id, text }) = self.header.as_ref() else { return Ok(None) };
        let (separator, n_columns, id, text) = (*separator, names.len(), *id, *text);
        let Some(mut fields) = self.record(separator)? else { return Ok(None) };
        self.n_records += 1;
        let name = id.and_then(|id| fields.get(id)).map(|id| id.trim().to_owned());
        if fields.len() != n_columns {
            checker.failed_id = name.filter(|_| fields.len() > id.unwrap_or_default());
            let message = format!("expected {n_columns} fields as in the header, found {}", fields.len());
            return Err(self.error(message, "put fields that contain separators or line breaks in quotes"));
        }
        let id = name.filter(|id| !id.is_empty()).unwrap_or_else(|| self.n_records.to_string());
        let attributes = match (&self.header, self.columns.keeps_others) {
            (Some(header), true) => header.attributes(&fields),
            _ => Vec::new(),
        };
        let document = Document { id, text: fields.swap_remove(text), sections: Vec::new() };
        Ok(Some(AnnotatedDocument { document, attributes, ..AnnotatedDocument::default() }))
    }

    fn read_header(&mut self) -> Result<Option<Header>> {
        let head = String::from_utf8_lossy(self.input.head()).into_owned();
        let first = head.trim_start_matches('\u{feff}').lines().next().unwrap_or_default();
        let most = SEPARATORS.into_iter().rev().max_by_key(|separator| first.matches(*separator).count());
        let is_tsv = self.input.path().to_string_lossy().to_lowercase().contains(".tsv");
        let separator = if is_tsv && first.contains('\t') { '\t' } else { most.unwrap_or(',') };
        let Some(names) = self.record(separator)? else { return Ok(None) };
        let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
        let find = |wanted: &str| names.iter().position(|name| name.eq_ignore_ascii_case(wanted));
        let missing = |wanted: &str, option: &str| {
            let shown: Vec<String> = names.iter().take(20).map(|name| quote(name)).collect();
            let hint = format!("name the column with `{option}`; the columns are {}", shown.join(", "));
            self.error(format!("the table has no column {}", quote(wanted)), &hint)
        };
        let wanted_text = self.columns.text.as_deref().unwrap_or("text");
        let text = find(wanted_text).ok_or_else(|| missing(wanted_text, "--text-column"))?;
        let id = match &self.columns.id {
            Some(wanted) => Some(find(wanted).ok_or_else(|| missing(wanted, "--id-column"))?),
            None => find("id"),
        };
        let names = names.into_iter().map(str::to_owned).collect();
        Ok(Some(Header { separator, names, id, text }))
    }

    fn error(&self, message: String, hint: &str) -> Error {
        Error::parse(self.input.path(), self.line, message).with_hint(hint)
    }

    /// The fields of the next record; `None` at the end. Blank lines between records are skipped.
    fn record(&mut self, separator: char) -> Result<Option<Vec<String>>> {
        let (mut fields, mut field, mut place) = (Vec::new(), String::new(), Place::Start);
        let (mut n_bytes, mut is_open, mut stray) = (0, false, false);
        while let Some((number, line)) = self.input.next_line()? {
            if !is_open && line.trim().is_empty() {
                continue;
            }
            if !is_open {
                self.line = number;
            }
            n_bytes += line.len() + 1;
            if n_bytes > MAX_DOCUMENT_BYTES {
                let message = format!("the record at line {} has more than {MAX_DOCUMENT_BYTES} bytes", self.line);
                return Err(Error::limit(self.input.path(), message));
            }
            for sign in line.chars() {
                match (&place, sign) {
                    (Place::Start, '"') => place = Place::Quoted,
                    (Place::Quoted, '"') => place = Place::Closed,
                    (Place::Closed, '"') => {
                        field.push('"');
                        place = Place::Quoted;
                    }
                    (Place::Start | Place::Plain | Place::Closed, sign) if sign == separator => {
                        fields.push(std::mem::take(&mut field));
                        place = Place::Start;
                    }
                    (Place::Closed, sign) => stray |= !sign.is_whitespace(),
                    (Place::Start, sign) => {
                        field.push(sign);
                        place = Place::Plain;
                    }
                    (Place::Plain | Place::Quoted, sign) => field.push(sign),
                }
            }
            if place == Place::Quoted {
                field.push('\n');
                is_open = true;
                continue;
            }
            if stray {
                return Err(self.error(
                    "there is text after a closing quote".to_owned(),
                    "double quotes inside a quoted field: `\"\"`",
                ));
            }
            fields.push(field);
            return Ok(Some(fields));
        }
        if is_open {
            return Err(self.error("a quoted field is not closed".to_owned(), "close the quote, or double it: `\"\"`"));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, columns: CsvColumns) -> Vec<std::result::Result<(String, String), String>> {
        let mut documents = Documents::new(Input::from_bytes("a.csv", text.as_bytes().to_vec()).unwrap(), columns);
        let mut all = Vec::new();
        loop {
            let n_lines = documents.n_lines();
            match documents.read_next(&mut Checker::default()) {
                Ok(None) => return all,
                Ok(Some(read)) => all.push(Ok((read.document.id, read.document.text))),
                Err(error) => {
                    all.push(Err(format!("{error} ({})", error.hint().unwrap_or_default())));
                    if documents.n_lines() == n_lines || documents.header.is_none() {
                        return all;
                    }
                }
            }
        }
    }

    fn check(text: &str, id: Option<&str>, note: Option<&str>, expect: Expect) {
        let columns = CsvColumns { id: id.map(str::to_owned), text: note.map(str::to_owned), ..CsvColumns::default() };
        let shown = read(text, columns).into_iter().map(|one| match one {
            Ok((id, text)) => format!("{id}: {text:?}\n"),
            Err(error) => format!("{error}\n"),
        });
        expect.assert_eq(&shown.collect::<String>());
    }

    #[test]
    fn quoted_fields_hold_separators_line_breaks_and_quotes() {
        check(
            "\u{feff}id,date,Text\r\n7,2020,\"Dry cough, \"\"severe\"\".\r\nNo fever.\"\r\n\r\n8,2021,Night sweats.\r\n",
            None,
            None,
            expect![[r#"
                7: "Dry cough, \"severe\".\nNo fever."
                8: "Night sweats."
            "#]],
        );
    }

    #[test]
    fn columns_and_separators_are_found() {
        check(
            "note_id;note\na;Fever, chills\n",
            Some("note_id"),
            Some("NOTE"),
            expect![[r#"
                a: "Fever, chills"
            "#]],
        );
        check(
            "text\nFever\n",
            None,
            None,
            expect![[r#"
            1: "Fever"
        "#]],
        );
        // A record without an id is named by its number.
        check(
            "id,text\na,Pain.\n ,Cough.\n",
            None,
            None,
            expect![[r#"
                a: "Pain."
                2: "Cough."
            "#]],
        );
        check(
            "a,b\n1,2\n",
            None,
            None,
            expect![[r#"
            a.csv:1: the table has no column `text` (name the column with `--text-column`; the columns are `a`, `b`)
        "#]],
        );
    }

    #[test]
    fn other_columns_become_attributes_on_request() {
        let table = b"id\tward, floor\ttext\tyear\n7\tB, 2\tDry cough.\t2020\n8\t\tFever.\t\n".to_vec();
        let columns = CsvColumns { keeps_others: true, ..CsvColumns::default() };
        let mut documents = Documents::new(Input::from_bytes("a.tsv", table).unwrap(), columns);
        let mut next = || documents.read_next(&mut Checker::default()).unwrap().unwrap();
        let attribute = |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.to_owned() };
        assert_eq!(next().attributes, [attribute("ward, floor", "B, 2"), attribute("year", "2020")]);
        assert_eq!((next().attributes, documents.columns.id.as_deref()), (Vec::new(), None));
    }

    #[test]
    fn a_malformed_record_costs_only_itself() {
        check(
            "id,text\n1,a,b\n2,\"x\" y\n3,good\n4,\"open\n",
            None,
            None,
            expect![[r#"
                a.csv:2: expected 2 fields as in the header, found 3 (put fields that contain separators or line breaks in quotes)
                a.csv:3: there is text after a closing quote (double quotes inside a quoted field: `""`)
                3: "good"
                a.csv:5: a quoted field is not closed (close the quote, or double it: `""`)
            "#]],
        );
    }

    proptest! {
        #[test]
        fn quoted_fields_are_read_back(texts in proptest::collection::vec("[a-z,;\"\n é]{1,20}", 1..5)) {
            let row = |text: &String| format!("\"{}\"\n", text.replace('"', "\"\""));
            let table = format!("text\n{}", texts.iter().map(row).collect::<String>());
            let back: Vec<String> = read(&table, CsvColumns::default()).into_iter().map(|one| one.unwrap().1).collect();
            prop_assert_eq!(back, texts);
        }
    }
}
