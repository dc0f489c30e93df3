//! CoNLL-style files: one token per line with tags in columns (BIO, BIOES or BILOU).
//!
//! A blank line ends a sentence; `-DOCSTART-` or a comment such as `# id = 8701013` starts a document, if it follows
//! tokens or another document start. Columns are separated by tabs, or by spaces if there is no tab. The tag is the
//! last column in which every line has one; the column after it contains ids. Two numeric columns that fit the tokens
//! are their offsets, which then determine the text; otherwise tokens are joined by one space and sentences by a line
//! break. A type that looks like an id (`B-MESH:D003920`) is one.
//!
//! A comment such as `# type Sign_or_Symptom = Sign or Symptom` gives the type that a word in the tags stands for.
//!
//! The lines are kept with the document and written as read if nothing changed. Generated lines are
//! `token⇥start⇥end⇥tag⇥ids` (`_` for no ids), and every punctuation mark is a token. Not representable: discontinuous
//! mentions, mentions that overlap a longer one, the kind of white space, and anything for which there is no column.

mod write;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use crate::corpus::check::{Checker, quote};
use crate::corpus::{AnnotatedDocument, Annotation, CorpusFormat, MAX_DOCUMENT_BYTES, Residue};
use crate::input::Input;
use crate::text::tags::{Bilou, Repair, decode_bilou};
use crate::text::{Document, Span};
use crate::{Error, Result};

pub(super) use write::{is_unchanged, kept, n_added_line_breaks, start, supports_type, write};

/// Maximum gap between two tokens, in code points, for plausible offsets.
const MAX_GAP: u64 = 1000;

/// Written if there are no ids.
const NO_IDS: &str = "_";

/// Start of a document in the original format.
const DOCSTART: &str = "-DOCSTART-";

/// Start of a comment with the type that a word in the tags stands for.
const TYPE: &str = "# type ";

/// Tagging scheme.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Begin, inside, outside (IOB2).
    #[default]
    Bio,
    /// Begin, inside, outside, end, single.
    Bioes,
    /// Begin, inside, last, outside, unit.
    Bilou,
}

/// How tags are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tags {
    /// The scheme; `None` detects it per document.
    pub scheme: Option<Scheme>,
    /// Handling of tag sequences that violate the scheme.
    pub repair: Repair,
}

impl Default for Tags {
    fn default() -> Tags {
        Tags { scheme: None, repair: Repair::Lenient }
    }
}

impl FromStr for Tags {
    type Err = Error;

    /// Parses `auto`, `bio`, `bioes` or `bilou`, with optional suffix `-strict`, which drops mentions with invalid
    /// tags.
    fn from_str(text: &str) -> Result<Tags> {
        let (name, repair) = match text.strip_suffix("-strict") {
            Some(name) => (name, Repair::Strict),
            None => (text, Repair::Lenient),
        };
        let scheme = match name {
            "auto" => None,
            "bio" => Some(Scheme::Bio),
            "bioes" => Some(Scheme::Bioes),
            "bilou" => Some(Scheme::Bilou),
            _ => {
                return Err(Error::not_found(format!("unknown tagging scheme {}", quote(text))).with_hint(
                    "use auto, bio, bioes or bilou, optionally with `-strict` to skip invalid tag sequences",
                ));
            }
        };
        Ok(Tags { scheme, repair })
    }
}

/// Reader of documents.
pub(super) struct Documents {
    input: Input,
    /// The line that starts the next document.
    lookahead: Option<(u64, String)>,
    n_documents: u64,
}

/// Line number and columns of a line; `None` at the end of a sentence.
type Row<'a> = Option<(u64, Vec<&'a str>)>;

impl Documents {
    pub fn new(input: Input) -> Documents {
        Documents { input, lookahead: None, n_documents: 0 }
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.input.n_lines()
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        let mut lines: Vec<(u64, String)> = self.lookahead.take().into_iter().collect();
        let mut starts: Vec<String> = lines.iter().map(|(_, line)| line.clone()).collect();
        let (mut n_bytes, mut has_tokens) = (0, false);
        while let Some((number, line)) = self.input.next_line()? {
            let line = (number, line.trim_end_matches('\u{b}').to_owned());
            n_bytes += line.1.len() + 1;
            if n_bytes > MAX_DOCUMENT_BYTES {
                let message = format!("the document at line {number} has more than {MAX_DOCUMENT_BYTES} bytes");
                return Err(Error::limit(self.input.path(), message));
            }
            if starts_document(&line.1) {
                if has_tokens || starts.iter().any(|start| !goes_with(start, &line.1)) {
                    self.lookahead = Some(line);
                    break;
                }
                starts.push(line.1.clone());
            } else {
                has_tokens |= !line.1.trim().is_empty() && !is_comment(&line.1);
            }
            lines.push(line);
        }
        if !has_tokens && starts.is_empty() {
            return Ok(None);
        }
        self.n_documents += 1;
        let id = lines.iter().find_map(|(_, line)| id_of(line)).unwrap_or_else(|| self.made_up_id());
        let (document, annotations, n_broken) = parse(self.input.path(), id, &lines, checker.tags)?;
        checker.counts.n_broken_tags += n_broken;
        let content = Value::from(lines.into_iter().map(|(_, line)| line).collect::<Vec<String>>());
        let residue = Some(Box::new(Residue { format: CorpusFormat::Conll, content }));
        Ok(Some(AnnotatedDocument { document, annotations, residue, ..AnnotatedDocument::default() }))
    }

    /// The file name, with a number if the file contains several documents.
    fn made_up_id(&self) -> String {
        let stem = match self.input.file_name() {
            "-" => "stdin",
            name => Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name),
        };
        if self.n_documents == 1 && self.lookahead.is_none() {
            stem.to_owned()
        } else {
            format!("{stem}-{}", self.n_documents)
        }
    }
}

/// The id in `# id = 7` and its variants.
fn id_of(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix(DOCSTART) {
        let id = rest.trim().trim_start_matches('(').trim_end_matches(')');
        let is_id = !id.is_empty() && !id.split_whitespace().any(|word| matches!(word, "O" | "-X-" | "_" | "-"));
        return is_id.then(|| id.to_owned());
    }
    named_id(line).map(|(_, id)| id.to_owned())
}

/// Name and value of a comment with an id.
fn named_id(line: &str) -> Option<(&str, &str)> {
    let (name, id) = line.strip_prefix('#')?.split_once('=')?;
    let name = name.trim();
    matches!(name, "id" | "doc_id" | "document_id" | "newdoc id" | "pmid").then(|| (name, id.trim()))
}

/// The kind of a line that starts a document.
fn start_of(line: &str) -> Option<&str> {
    if line.starts_with(DOCSTART) { Some(DOCSTART) } else { named_id(line).map(|(name, _)| name) }
}

/// Whether two lines can start the same document: `-DOCSTART-` comes first, each kind occurs once, and two ids are
/// equal.
fn goes_with(start: &str, next: &str) -> bool {
    let ids = id_of(start).zip(id_of(next));
    !next.starts_with(DOCSTART) && start_of(start) != start_of(next) && ids.is_none_or(|(one, other)| one == other)
}

fn starts_document(line: &str) -> bool {
    start_of(line).is_some()
}

/// A comment has a space after `#`, because `#` can also be a token.
fn is_comment(line: &str) -> bool {
    line.starts_with("# ") && !line.contains('\t')
}

/// Prefix and type of a tag.
fn tag_of(column: &str) -> Option<(char, &str)> {
    let mut letters = column.chars();
    let prefix = letters.next()?;
    match (prefix, letters.as_str()) {
        ('O', "") => Some(('O', "")),
        ('B' | 'I' | 'E' | 'S' | 'L' | 'U' | 'M' | 'W', rest) => {
            if rest.is_empty() {
                Some((prefix, ""))
            } else {
                rest.strip_prefix(['-', '_']).map(|kind| (prefix, kind))
            }
        }
        _ => None,
    }
}

/// Whether a file starts with tokens and tags separated by tabs.
pub(super) fn starts_tokens(head: &[u8]) -> bool {
    if head.starts_with(b"-DOCSTART-") {
        return true;
    }
    let end = head.iter().rposition(|&byte| byte == b'\n').unwrap_or(head.len());
    let Ok(text) = std::str::from_utf8(&head[..end]) else { return false };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !is_comment(line)).take(20).peekable();
    let is_token =
        |line: &str| line.contains('\t') && line.split('\t').rev().take(2).any(|column| tag_of(column).is_some());
    lines.peek().is_some() && lines.all(is_token)
}

/// The types that words in the tags stand for, from the comments that say so.
fn types_of(lines: &[(u64, String)]) -> HashMap<&str, &str> {
    lines.iter().filter_map(|(_, line)| line.strip_prefix(TYPE)?.split_once(" = ")).collect()
}

fn columns(line: &str) -> Vec<&str> {
    if line.contains('\t') { line.split('\t').collect() } else { line.split_whitespace().collect() }
}

fn rows(lines: &[(u64, String)]) -> Vec<Row<'_>> {
    let row = |(number, line): &'_ (u64, String)| {
        (*number, line.trim().is_empty() || starts_document(line), is_comment(line))
    };
    let kept = lines.iter().filter(|line| !row(line).2);
    kept.map(|line| (!row(line).1).then(|| (line.0, columns(&line.1)))).collect()
}

/// Indices of the columns.
#[derive(Debug, Clone, Copy)]
struct Layout {
    tag: usize,
    offsets: Option<usize>,
}

fn layout(path: &Path, rows: &[Row<'_>]) -> Result<Layout> {
    let tokens = || rows.iter().flatten();
    let n_columns = tokens().map(|(_, columns)| columns.len()).min().unwrap_or(2);
    let is_tag = |column: usize| tokens().all(|(_, columns)| tag_of(columns[column]).is_some());
    // Our own columns: if every token is in a mention, the last column can consist of ids that look like tags.
    let is_inside = |column: usize| is_tag(column) && tokens().all(|(_, columns)| columns[column] != "O");
    if n_columns == 5 && is_inside(3) && fits_offsets(rows, 1) {
        return Ok(Layout { tag: 3, offsets: Some(1) });
    }
    let Some(tag) = (1..n_columns).rev().find(|&column| is_tag(column)) else {
        let wrong =
            tokens().find(|(_, columns)| columns.len() < 2 || columns.last().is_some_and(|tag| tag_of(tag).is_none()));
        let (number, columns) = wrong.or_else(|| tokens().next()).expect("there are tokens");
        let message = match columns.last() {
            Some(last) if columns.len() > 1 => format!("invalid tag {}", quote(last)),
            _ => format!("the token {} has no tag", quote(&columns.join(" "))),
        };
        return Err(Error::parse(path, *number, message).with_hint(
            "each line has a token and, in its last or second to last column, a tag such as `B-Disease` or `O`",
        ));
    };
    let offsets = (1..tag.saturating_sub(1)).find(|&column| fits_offsets(rows, column));
    Ok(Layout { tag, offsets })
}

/// Whether a column and the next one are the offsets of the tokens, in a text of acceptable size.
fn fits_offsets(rows: &[Row<'_>], column: usize) -> bool {
    let mut last = 0;
    rows.iter().flatten().all(|(_, columns)| {
        let Some((start, end)) = offsets_of(columns, column) else { return false };
        let n_chars = columns[0].chars().count() as u64;
        let is_near = start >= last && start - last <= MAX_GAP && end <= MAX_DOCUMENT_BYTES as u64;
        let fits = is_near && end.checked_sub(start) == Some(n_chars);
        last = end;
        fits
    })
}

fn offsets_of(columns: &[&str], column: usize) -> Option<(u64, u64)> {
    Some((columns[column].parse().ok()?, columns[column + 1].parse().ok()?))
}

/// The document, its annotations, and the number of mentions with invalid tags.
fn parse(path: &Path, id: String, lines: &[(u64, String)], tags: Tags) -> Result<(Document, Vec<Annotation>, u64)> {
    let rows = rows(lines);
    if rows.iter().all(Option::is_none) {
        return Ok((Document { id, ..Document::default() }, Vec::new(), 0));
    }
    if let Some((number, _)) = rows.iter().flatten().find(|(_, columns)| columns[0].is_empty()) {
        return Err(Error::parse(path, *number, "the line has no token before its first tab"));
    }
    let layout = layout(path, &rows)?;
    let mut text = String::new();
    let mut n_chars = 0;
    // Mentions do not cross sentence boundaries.
    let mut sentences: Vec<Vec<Token<'_>>> = vec![Vec::new()];
    for row in &rows {
        let Some((_, columns)) = row else {
            if sentences.last().is_some_and(|sentence| !sentence.is_empty()) {
                sentences.push(Vec::new());
            }
            continue;
        };
        let sentence = sentences.last_mut().expect("there is always one");
        let gap = match layout.offsets.and_then(|column| offsets_of(columns, column)) {
            Some((start, _)) => start.saturating_sub(n_chars),
            None => u64::from(!text.is_empty()),
        };
        for index in 0..gap {
            text.push(if index == 0 && sentence.is_empty() && !text.is_empty() { '\n' } else { ' ' });
        }
        let start = text.len();
        text.push_str(columns[0]);
        n_chars += gap + columns[0].chars().count() as u64;
        let (prefix, kind) = tag_of(columns[layout.tag]).expect("the layout was chosen by it");
        let ids = columns.get(layout.tag + 1).copied().filter(|&ids| !ids.is_empty() && ids != NO_IDS);
        sentence.push(Token { span: Span::new(start, text.len()), prefix, kind, ids });
    }
    let mut annotations = Vec::new();
    let mut n_broken = 0;
    let scheme = tags.scheme.unwrap_or_else(|| scheme_of(&sentences));
    for sentence in &sentences {
        n_broken += decode(sentence, scheme, tags.repair, &text, &mut annotations);
    }
    let types = types_of(lines);
    for annotation in &mut annotations {
        if let Some(kind) = types.get(annotation.semantic_type.as_str()) {
            (*kind).clone_into(&mut annotation.semantic_type);
        }
    }
    Ok((Document { id, text, sections: Vec::new() }, annotations, n_broken))
}

struct Token<'a> {
    span: Span,
    prefix: char,
    kind: &'a str,
    ids: Option<&'a str>,
}

fn scheme_of(sentences: &[Vec<Token<'_>>]) -> Scheme {
    let has = |letters: [char; 2]| sentences.iter().flatten().any(|token| letters.contains(&token.prefix));
    match () {
        () if has(['L', 'U']) => Scheme::Bilou,
        () if has(['E', 'S']) => Scheme::Bioes,
        () => Scheme::Bio,
    }
}

/// Appends the mentions of a sentence. Returns how many have invalid tags.
fn decode(tokens: &[Token<'_>], scheme: Scheme, repair: Repair, text: &str, annotations: &mut Vec<Annotation>) -> u64 {
    let tags = bilou(tokens, scheme);
    let lenient = decode_bilou(&tags, Repair::Lenient);
    let strict = decode_bilou(&tags, Repair::Strict);
    let mentions = if repair == Repair::Strict { &strict } else { &lenient };
    for mention in mentions {
        let first = &tokens[mention.start];
        let span = Span { start: first.span.start, end: tokens[mention.end - 1].span.end };
        let (semantic_type, id) = if looks_like_id(first.kind) { ("", Some(first.kind)) } else { (first.kind, None) };
        annotations.push(Annotation {
            spans: vec![span],
            text: span.of(text).to_owned(),
            semantic_type: semantic_type.to_owned(),
            ids: first.ids.or(id).map(str::to_owned).into_iter().collect(),
            ..Annotation::default()
        });
    }
    let whole: HashSet<&Range<usize>> = strict.iter().collect();
    lenient.iter().filter(|mention| !whole.contains(mention)).count() as u64
}

/// Converts the tags of a sentence to BILOU. In BIO only the next tag shows that a mention ends; a change of type or
/// ids ends it too.
fn bilou(tokens: &[Token<'_>], scheme: Scheme) -> Vec<Bilou> {
    let continues = |row: usize| {
        let (token, before) = (&tokens[row], row.checked_sub(1).map(|before| &tokens[before]));
        let is_inside = matches!(token.prefix, 'I' | 'M' | 'E' | 'L');
        is_inside && before.is_some_and(|before| before.prefix != 'O' && before.kind == token.kind)
    };
    let tag = |row: usize| {
        let ends = row + 1 == tokens.len() || !continues(row + 1);
        match (tokens[row].prefix, scheme) {
            ('O', _) => Bilou::Outside,
            // A mention that starts with `I` is invalid in IOB2 but valid in IOB1; both are read.
            ('B', Scheme::Bio) => {
                if ends {
                    Bilou::Unit
                } else {
                    Bilou::Begin
                }
            }
            ('I', Scheme::Bio) => {
                if ends {
                    Bilou::Last
                } else {
                    Bilou::Inside
                }
            }
            ('B', _) => Bilou::Begin,
            ('I' | 'M', _) => Bilou::Inside,
            ('E' | 'L', _) => Bilou::Last,
            _ => Bilou::Unit,
        }
    };
    (0..tokens.len()).map(tag).collect()
}

/// Whether a type looks like an id: a word, a colon and text with a digit.
fn looks_like_id(kind: &str) -> bool {
    let Some((prefix, id)) = kind.split_once(':') else { return false };
    !prefix.is_empty() && !id.contains(':') && id.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests;
