//! PubMed XML: sets of articles and book chapters, baseline files, single citations.
//!
//! The text is the title, a space and the abstract; the parts of an abstract are joined by a space, a labelled part as
//! `LABEL: text`, as shown by PubMed and counted by PubTator; the label `UNLABELLED` is omitted. Title and parts are
//! sections with kind `title`, `abstract` or the label. Markup (`<i>`, `<sub>`, formulas) is reduced to its text; white
//! space with a line break becomes one space. Journal, year and ids of MeSH headings are attributes. Titles and
//! abstracts in other languages are ignored. Deleted citations are counted. Writes a set with id, title and abstract:
//! the format has no annotations.

use crate::corpus::bioc_xml::escape;
use crate::corpus::check::{Checker, quote};
use crate::corpus::format::Frame;
use crate::corpus::{AnnotatedDocument, Attribute, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::input::xml::{Event, XmlReader};
use crate::text::{Document, Section, Span};
use crate::{Error, Result};

/// Elements that contain citations.
const SETS: [&str; 6] = [
    "PubmedArticleSet",
    "MedlineCitationSet",
    "PubmedBookArticleSet",
    "PubmedArticle",
    "PubmedBookArticle",
    "PubmedData",
];

/// The label that PubMed omits.
const UNLABELLED: &str = "UNLABELLED";

/// Start of a newly written set.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PubmedArticleSet>\n";

/// Reader of documents.
pub(super) struct Documents {
    xml: XmlReader,
    /// Number of elements open around the last citation.
    outside: usize,
    /// Line of the last citation.
    line: u64,
}

/// Content of a citation.
#[derive(Default)]
struct Citation {
    pmid: String,
    title: String,
    /// Labels and texts of the abstract.
    parts: Vec<(String, String)>,
    journal: String,
    year: String,
    headings: Vec<String>,
}

/// Role of an element in a citation.
enum Role {
    /// Contains further elements of the citation.
    Inside,
    Pmid,
    Title,
    Part(String),
    Journal,
    Year,
    Heading(String),
    Other,
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        Ok(Documents { xml: XmlReader::new(input)?, outside: 0, line: 0 })
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.xml.n_bytes()
    }

    /// Line of the last citation.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self, checker: &mut Checker) -> Result<Option<AnnotatedDocument>> {
        if self.xml.is_broken() {
            return Ok(None);
        }
        self.xml.skip_to(self.outside)?;
        loop {
            let depth = self.xml.depth();
            let name = match self.xml.next_event()? {
                Event::Start(element) => element.name(),
                Event::Eof => return Ok(None),
                _ => continue,
            };
            match name {
                "MedlineCitation" | "BookDocument" => {
                    self.outside = depth;
                    self.line = self.xml.line();
                    let citation = self.citation()?;
                    if citation.pmid.is_empty() {
                        return Err(Error::parse(self.xml.path(), self.line, "the citation has no PMID"));
                    }
                    return Ok(Some(citation.into_document()));
                }
                "DeleteCitation" => checker.counts.n_deleted += self.deleted()?,
                name if SETS.contains(&name) => {}
                name if depth == 0 => {
                    let message = format!("expected PubMed citations, found {}", quote(name));
                    return Err(self.xml.error(message).with_hint("citations are in a `PubmedArticleSet`"));
                }
                _ => self.xml.skip_element()?,
            }
        }
    }

    fn deleted(&mut self) -> Result<u64> {
        let outside = self.xml.depth() - 1;
        let mut n_deleted = 0;
        while self.xml.depth() > outside {
            n_deleted += u64::from(matches!(self.xml.next_event()?, Event::Start(_)));
        }
        Ok(n_deleted)
    }

    /// Reads a citation after its start tag.
    fn citation(&mut self) -> Result<Citation> {
        let (outside, start) = (self.xml.depth() - 1, self.xml.n_bytes());
        let mut citation = Citation::default();
        while self.xml.depth() > outside {
            let depth = self.xml.depth() - outside;
            let role = match self.xml.next_event()? {
                Event::Start(element) => match (depth, element.name()) {
                    (_, "Article" | "Journal" | "JournalIssue" | "PubDate" | "Abstract" | "Book") => Role::Inside,
                    (_, "MeshHeadingList" | "MeshHeading") => Role::Inside,
                    (1, "PMID") => Role::Pmid,
                    (1 | 2, "ArticleTitle") => Role::Title,
                    (2, "BookTitle") if citation.title.is_empty() => Role::Title,
                    (2 | 3, "AbstractText") => Role::Part(element.attribute("Label")?.unwrap_or_default()),
                    (3, "Title") => Role::Journal,
                    (3..=5, "Year" | "MedlineDate") => Role::Year,
                    (3, "DescriptorName") => Role::Heading(element.attribute("UI")?.unwrap_or_default()),
                    _ => Role::Other,
                },
                _ => continue,
            };
            match role {
                Role::Inside => {}
                Role::Pmid => citation.pmid = self.text()?,
                Role::Title => citation.title = self.text()?,
                Role::Part(label) => {
                    let text = self.text()?;
                    citation.parts.push((label, text));
                }
                Role::Journal => citation.journal = self.text()?,
                Role::Year => citation.year = self.text()?.chars().take(4).collect(),
                Role::Heading(id) => {
                    citation.headings.push(id);
                    self.xml.skip_element()?;
                }
                Role::Other => self.xml.skip_element()?,
            }
            if self.xml.n_bytes() - start > MAX_DOCUMENT_BYTES as u64 {
                let message =
                    format!("the citation before line {} has more than {MAX_DOCUMENT_BYTES} bytes", self.xml.line());
                return Err(Error::limit(self.xml.path(), message));
            }
        }
        Ok(citation)
    }

    /// The text of the current element, on one line.
    fn text(&mut self) -> Result<String> {
        let text = self.xml.read_text()?;
        let text = text.trim();
        if !text.contains(['\n', '\t']) {
            return Ok(text.to_owned());
        }
        let mut line = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['\n', '\t']) {
            line.push_str(rest[..at].trim_end());
            line.push(' ');
            rest = rest[at..].trim_start();
        }
        line.push_str(rest);
        Ok(line)
    }
}

impl Citation {
    fn into_document(self) -> AnnotatedDocument {
        let mut document = Document { id: self.pmid, ..Document::default() };
        let mut add = |kind: &str, text: &str| {
            if !document.text.is_empty() {
                document.text.push(' ');
            }
            let start = document.text.len();
            document.text.push_str(text);
            document.sections.push(Section { kind: kind.to_owned(), span: Span::new(start, document.text.len()) });
        };
        if !self.title.is_empty() {
            add("title", &self.title);
        }
        for (label, text) in self.parts.iter().filter(|(_, text)| !text.is_empty()) {
            match label.trim() {
                "" | UNLABELLED => add("abstract", text),
                label => add(label, &format!("{label}: {text}")),
            }
        }
        let mesh = self.headings.join("|");
        let named = [("journal", self.journal), ("year", self.year), ("mesh", mesh)];
        let attributes = named.into_iter().filter(|(_, value)| !value.is_empty());
        let attributes = attributes.map(|(name, value)| Attribute { name: name.to_owned(), value }).collect();
        AnnotatedDocument { document, attributes, ..AnnotatedDocument::default() }
    }
}

/// Appends a document to `out`, without annotations.
pub(super) fn write(annotated: &AnnotatedDocument, out: &mut Vec<u8>) -> Result<()> {
    let document = &annotated.document;
    let mut id = Vec::new();
    escape(&document.id, false, false, &mut id);
    // Characters that are invalid in XML become spaces, and spaces around an id are ignored.
    if String::from_utf8_lossy(&id).trim().is_empty() {
        let message = format!("PubMed XML cannot hold the document id {}", quote(&document.id));
        return Err(Error::unsupported(message).with_hint("change the document id, or use jsonl"));
    }
    let mut element = |before: &str, text: &str, after: &str| {
        out.extend_from_slice(before.as_bytes());
        escape(text, false, false, out);
        out.extend_from_slice(after.as_bytes());
    };
    element("<PubmedArticle><MedlineCitation><PMID Version=\"1\">", &document.id, "</PMID><Article>");
    let title = document.sections.first().filter(|section| section.kind == "title" && section.span.start == 0);
    let end = title.map_or(0, |title| title.span.end as usize);
    element("<ArticleTitle>", &document.text[..end], "</ArticleTitle>");
    let mut parts: Vec<(Option<&str>, &str)> = Vec::new();
    let mut done = end;
    for section in document.sections.iter().skip(usize::from(title.is_some())) {
        let (start, end) = (section.span.start as usize, section.span.end as usize);
        if start < done {
            continue;
        }
        parts.push((None, &document.text[done..start]));
        let text = section.span.of(&document.text);
        let body = text.strip_prefix(section.kind.as_str()).and_then(|rest| rest.strip_prefix(": "));
        parts.push(body.filter(|_| !section.kind.is_empty()).map_or((None, text), |body| (Some(&section.kind), body)));
        done = end;
    }
    parts.push((None, &document.text[done..]));
    parts.retain(|(_, text)| !text.trim().is_empty());
    if !parts.is_empty() {
        element("<Abstract>", "", "");
        for (label, text) in parts {
            match label {
                Some(label) => {
                    let mut value = Vec::new();
                    escape(label, true, true, &mut value);
                    let value = String::from_utf8_lossy(&value).into_owned();
                    element(&format!("<AbstractText Label=\"{value}\">"), text.trim(), "</AbstractText>");
                }
                None => element("<AbstractText>", text.trim(), "</AbstractText>"),
            }
        }
        element("", "", "</Abstract>");
    }
    element("", "", "</Article></MedlineCitation></PubmedArticle>\n");
    Ok(())
}

/// Text before, between and after documents.
pub(super) fn frame(_first: Option<&AnnotatedDocument>) -> Frame {
    Frame { before: HEAD.as_bytes().to_vec(), between: b"", after: b"</PubmedArticleSet>\n" }
}
