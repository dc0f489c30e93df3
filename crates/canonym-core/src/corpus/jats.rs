//! JATS XML: full texts of PubMed Central and of publishers.
//!
//! The text has one line per block: the title, headings and paragraphs of the abstracts and the body, and labels and
//! captions of figures and tables, which follow the paragraph that they are in. A run of blocks of the same kind is a
//! section: `title`, `abstract`, the heading of the outermost section (`body` before the first), `figure` or `table`.
//! Markup is reduced to its text and white space to single blanks; a blank sets off numbers of references from the word
//! before them. Cells of tables, formulas in TeX, references, acknowledgements, appendices, translated abstracts,
//! responses and sub-articles are left out. The id is `PMC` with the number, else the PubMed id, the DOI or another id;
//! journal, year, `pmid` and `doi` are attributes. Cannot be written.

use crate::corpus::citation_marks::Mark;
use crate::corpus::{AnnotatedDocument, Attribute, MAX_DOCUMENT_BYTES};
use crate::input::Input;
use crate::input::xml::{Event, XmlReader};
use crate::text::{Document, Section, Span};
use crate::{Error, Result};

/// Elements that contain articles.
const SETS: [&str; 5] = ["pmc-articleset", "articleset", "articles", "OAI-PMH", "GetRecord"];

/// Elements whose content is not text of the article.
const LEFT_OUT: [&str; 17] = [
    "back",
    "ref-list",
    "sub-article",
    "response",
    "trans-abstract",
    "table",
    "graphic",
    "inline-graphic",
    "media",
    "tex-math",
    "annotation",
    "mml:annotation",
    "supplementary-material",
    "permissions",
    "object-id",
    "processing-meta",
    "contrib-group",
];

/// Reader of documents.
pub(super) struct Documents {
    xml: XmlReader,
    /// Number of elements open around the last article.
    outside: usize,
    /// Line of the last article.
    line: u64,
}

/// Role of an open element.
#[derive(Clone, PartialEq)]
enum Role {
    /// Front matter, sections and other elements around blocks.
    Around,
    /// A heading of a section.
    Heading,
    /// A block with its kind.
    Block,
    /// A figure or table, with the kind that applies after it and the interrupted block.
    Float(Option<String>, String),
    /// An abstract, or a section; with the kind that applies after it.
    Part(Option<String>),
    /// An article id of this type.
    Id(String),
    Journal,
    Date,
    Year,
    /// Markup within a block; with the start of its text if it may be the mark of a citation.
    Inline(Option<(Mark, usize)>),
}

/// An article while it is read.
#[derive(Default)]
struct Article {
    ids: Vec<(String, String)>,
    journal: String,
    year: String,
    blocks: Vec<(String, String)>,
    /// Blocks of figures inside an unfinished paragraph.
    deferred: Vec<(String, String)>,
    /// Kind of the current part.
    kind: Option<String>,
    /// Number of open sections.
    n_sections: usize,
    in_body: bool,
    /// Number of open blocks: figures in paragraphs have blocks of their own.
    n_open: usize,
    text: String,
}

impl Documents {
    pub fn new(input: Input) -> Result<Documents> {
        Ok(Documents { xml: XmlReader::new(input)?, outside: 0, line: 0 })
    }

    /// A measure of progress that increases while reading.
    pub fn n_passed(&self) -> u64 {
        self.xml.n_bytes()
    }

    /// Line of the last article.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next document, `None` at the end. After a malformed document, the next call returns the one after it.
    pub fn read_next(&mut self) -> Result<Option<AnnotatedDocument>> {
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
                "article" => {
                    (self.outside, self.line) = (depth, self.xml.line());
                    let article = self.article()?;
                    return article.into_document(self.xml.path(), self.line).map(Some);
                }
                name if depth == 0 && !SETS.contains(&name) => {
                    let message = format!("expected a JATS article, found `{}`", name.escape_debug());
                    return Err(self.xml.error(message).with_hint("the root element is `article` or `pmc-articleset`"));
                }
                // Records of OAI-PMH wrap their articles.
                "ListRecords" | "record" | "metadata" => {}
                name if SETS.contains(&name) => {}
                _ => self.xml.skip_element()?,
            }
        }
    }

    /// Reads an article after its start tag.
    fn article(&mut self) -> Result<Article> {
        let start = self.xml.n_bytes();
        let mut article = Article::default();
        let mut open: Vec<Role> = vec![Role::Around];
        while !open.is_empty() {
            let (role, path_end) = match self.xml.next_event()? {
                Event::Start(element) if LEFT_OUT.contains(&element.name()) => (None, false),
                Event::Start(element) => {
                    let kind = match element.name() {
                        "article-id" => element.attribute("pub-id-type")?,
                        "abstract" => element.attribute("abstract-type")?,
                        "xref" => element.attribute("ref-type")?,
                        _ => None,
                    };
                    match article.role(element.name(), kind, &open) {
                        Some(role) => (Some(role), false),
                        None => (None, false),
                    }
                }
                Event::Text(text) => {
                    article.add_text(text, open.last());
                    continue;
                }
                Event::End => (open.pop(), true),
                Event::Eof => return Err(self.xml.error("the article is not complete")),
                _ => continue,
            };
            match (role, path_end) {
                (Some(role), true) => article.end(role),
                (Some(role), false) => {
                    article.start(&role);
                    open.push(role);
                }
                (None, _) => self.xml.skip_element()?,
            }
            if self.xml.n_bytes() - start > MAX_DOCUMENT_BYTES as u64 {
                let message =
                    format!("the article before line {} has more than {MAX_DOCUMENT_BYTES} bytes", self.xml.line());
                return Err(Error::limit(self.xml.path(), message));
            }
        }
        Ok(article)
    }
}

impl Article {
    /// The role of an element inside `open`; `None` if it is left out.
    fn role(&mut self, name: &str, kind: Option<String>, open: &[Role]) -> Option<Role> {
        let parent = open.last();
        if matches!(parent, Some(Role::Block | Role::Heading | Role::Inline(_))) {
            return match name {
                "fig" | "fig-group" | "table-wrap" | "table-wrap-group" | "boxed-text" => Some(self.float(name)),
                _ => Some(Role::Inline(Mark::of(name, kind.as_deref()).map(|mark| (mark, self.text.len())))),
            };
        }
        match name {
            "front"
            | "article-meta"
            | "journal-meta"
            | "journal-title-group"
            | "title-group"
            | "floats-group"
            | "caption"
            | "list"
            | "list-item"
            | "def-list"
            | "def-item"
            | "def"
            | "disp-quote"
            | "boxed-text"
            | "table-wrap-foot"
            | "fn"
            | "fn-group"
            | "statement"
            | "verse-group"
            | "disp-formula-group"
                if parent.is_some() =>
            {
                Some(Role::Around)
            }
            "body" => {
                self.in_body = true;
                Some(Role::Part(self.kind.replace("body".to_owned())))
            }
            "abstract" if matches!(kind.as_deref(), Some("graphical" | "toc" | "teaser" | "video")) => None,
            "abstract" => Some(Role::Part(self.kind.replace("abstract".to_owned()))),
            "sec" if self.kind.is_some() => {
                self.n_sections += 1;
                Some(Role::Part(self.kind.clone()))
            }
            "fig" | "fig-group" | "table-wrap" | "table-wrap-group" => Some(self.float(name)),
            "article-title" => {
                self.kind.is_none().then(|| self.kind = Some("title".to_owned()));
                Some(Role::Block)
            }
            "title" if matches!(parent, Some(Role::Part(_))) => Some(Role::Heading),
            "title" | "p" | "label" if self.kind.is_some() && (name != "label" || self.is_float(open)) => {
                Some(Role::Block)
            }
            "term" | "attrib" | "verse-line" if self.kind.is_some() => Some(Role::Block),
            "article-id" => Some(Role::Id(kind.unwrap_or_default())),
            "journal-title" => Some(Role::Journal),
            "pub-date" if self.year.is_empty() => Some(Role::Date),
            "year" if matches!(parent, Some(Role::Date)) => Some(Role::Year),
            _ => None,
        }
    }

    fn is_float(&self, open: &[Role]) -> bool {
        open.iter().any(|role| matches!(role, Role::Float(..)))
    }

    fn float(&mut self, name: &str) -> Role {
        let kind = match name {
            "fig" | "fig-group" => Some("figure".to_owned()),
            "table-wrap" | "table-wrap-group" => Some("table".to_owned()),
            _ => self.kind.clone(),
        };
        Role::Float(std::mem::replace(&mut self.kind, kind), std::mem::take(&mut self.text))
    }

    fn start(&mut self, role: &Role) {
        match role {
            Role::Block | Role::Heading => {
                self.n_open += 1;
                self.text.clear();
            }
            Role::Id(_) | Role::Journal | Role::Year => self.text.clear(),
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str, role: Option<&Role>) {
        if matches!(
            role,
            Some(Role::Block | Role::Heading | Role::Inline(_) | Role::Id(_) | Role::Journal | Role::Year)
        ) {
            self.text.push_str(text);
        }
    }

    /// The collected text on one line.
    fn line(&mut self) -> String {
        let line = self.text.split_whitespace().collect::<Vec<&str>>().join(" ");
        self.text.clear();
        line
    }

    fn end(&mut self, role: Role) {
        match role {
            Role::Heading => {
                let heading = self.line();
                // Headings of outermost sections of the body name what follows.
                if self.in_body && self.n_sections == 1 && !heading.is_empty() {
                    self.kind = Some(heading.clone());
                }
                self.push(heading);
            }
            Role::Block => {
                let line = self.line();
                self.push(line);
                if self.kind.as_deref() == Some("title") {
                    self.kind = None;
                }
            }
            Role::Float(kind, text) => (self.kind, self.text) = (kind, text),
            Role::Part(kind) => {
                self.n_sections = self.n_sections.saturating_sub(usize::from(kind.is_some()));
                self.kind = kind;
            }
            Role::Id(kind) => {
                let id = self.line();
                self.ids.push((kind, id));
            }
            Role::Journal => self.journal = self.line(),
            Role::Year => self.year = self.line(),
            Role::Inline(Some((mark, start))) => mark.set_off(&mut self.text, start),
            Role::Around | Role::Date | Role::Inline(None) => {}
        }
    }

    /// Adds a block; those inside another one come after it.
    fn push(&mut self, text: String) {
        self.n_open = self.n_open.saturating_sub(1);
        let block = (self.kind.clone().unwrap_or_default(), text);
        let blocks = if self.n_open > 0 { &mut self.deferred } else { &mut self.blocks };
        if !block.1.is_empty() {
            blocks.push(block);
        }
        if self.n_open == 0 {
            self.blocks.append(&mut self.deferred);
        }
    }

    fn id_of(&self, kinds: &[&str]) -> Option<&str> {
        let of = |kind: &&str| self.ids.iter().find(|(own, id)| own == *kind && !id.is_empty());
        kinds.iter().find_map(of).map(|(_, id)| id.as_str())
    }

    fn into_document(self, path: &std::path::Path, line: u64) -> Result<AnnotatedDocument> {
        let pmc =
            self.id_of(&["pmcid", "pmc", "pmcaid"]).map(|id| match id.starts_with(|c: char| c.is_ascii_digit()) {
                true => format!("PMC{id}"),
                false => id.to_owned(),
            });
        let other =
            || self.id_of(&["pmid", "doi"]).or_else(|| Some(self.ids.first()?.1.as_str()).filter(|id| !id.is_empty()));
        let Some(id) = pmc.or_else(|| other().map(str::to_owned)) else {
            return Err(Error::parse(path, line, "the article has no id")
                .with_hint("add an `article-id` with the `pub-id-type` `pmc`, `pmid` or `doi`"));
        };
        let mut document = Document { id, ..Document::default() };
        for (kind, text) in &self.blocks {
            if !document.text.is_empty() {
                document.text.push('\n');
            }
            let start = document.text.len();
            document.text.push_str(text);
            let end = document.text.len();
            match document.sections.last_mut() {
                Some(last) if last.kind == *kind => last.span = Span::new(last.span.start as usize, end),
                _ => document.sections.push(Section { kind: kind.clone(), span: Span::new(start, end) }),
            }
        }
        let id_of = |kind: &str| self.id_of(&[kind]).unwrap_or_default().to_owned();
        let named = [("pmid", id_of("pmid")), ("doi", id_of("doi")), ("journal", self.journal), ("year", self.year)];
        let attributes = named.into_iter().filter(|(_, value)| !value.is_empty());
        let attributes = attributes.map(|(name, value)| Attribute { name: name.to_owned(), value }).collect();
        Ok(AnnotatedDocument { document, attributes, ..AnnotatedDocument::default() })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(xml: &str, expect: Expect) {
        let mut shown = String::new();
        let mut documents = Documents::new(Input::from_bytes("a.xml", xml.as_bytes().to_vec()).unwrap()).unwrap();
        loop {
            match documents.read_next() {
                Ok(None) => break,
                Err(error) => shown += &format!("{error}\n"),
                Ok(Some(read)) => {
                    let attributes = read.attributes.iter().map(|one| format!(" {}={}", one.name, one.value));
                    shown += &format!("{}{}\n", read.document.id, attributes.collect::<String>());
                    for section in &read.document.sections {
                        shown += &format!(
                            "  [{}] {}\n",
                            section.kind,
                            section.span.of(&read.document.text).replace('\n', " / ")
                        );
                    }
                }
            }
        }
        expect.assert_eq(&shown);
    }

    #[test]
    fn sections_and_captions_are_read_in_order() {
        check(
            r#"<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD JATS 1.2//EN" "x.dtd">
            <article xmlns:xlink="x"><front><journal-meta><journal-title-group><journal-title>J Made Up</journal-title></journal-title-group></journal-meta>
            <article-meta><article-id pub-id-type="pmid">7</article-id><article-id pub-id-type="pmc">12</article-id>
            <article-id pub-id-type="doi">10.1/x</article-id><title-group><article-title>Dry <italic>cough</italic>
            at night</article-title></title-group><contrib-group><contrib><name><surname>Fever</surname></name></contrib></contrib-group>
            <pub-date pub-type="epub"><day>1</day><year>2020</year></pub-date><pub-date><year>2019</year></pub-date>
            <abstract><sec><title>Aim</title><p>To cough.</p></sec></abstract><abstract abstract-type="toc"><p>Again.</p></abstract>
            <kwd-group><kwd>asthma</kwd></kwd-group></article-meta></front>
            <body><p>Before.</p><sec><title>Methods</title><p>We used <sup>2</sup>H<fig id="f"><label>Figure 1</label><caption><title>Lungs.</title>
            <p>Left lung.</p></caption><graphic/></fig> and waited<xref>1</xref>.</p><sec><title>Patients</title><p>Ten.</p>
            <list><list-item><p>One.</p></list-item></list></sec>
            <table-wrap><label>Table 1</label><caption><p>Doses.</p></caption><table><tr><td>5</td></tr></table>
            <table-wrap-foot><p>mg daily</p></table-wrap-foot></table-wrap></sec><sec><title>Results</title><p>No fever.</p></sec></body>
            <back><ack><p>Thanks.</p></ack><ref-list><ref>R</ref></ref-list></back></article>"#,
            expect![[r#"
                PMC12 pmid=7 doi=10.1/x journal=J Made Up year=2020
                  [title] Dry cough at night
                  [abstract] Aim / To cough.
                  [body] Before.
                  [Methods] Methods / We used 2H and waited 1.
                  [figure] Figure 1 / Lungs. / Left lung.
                  [Methods] Patients / Ten. / One.
                  [table] Table 1 / Doses. / mg daily
                  [Results] Results / No fever.
            "#]],
        );
    }

    #[test]
    fn numbers_of_references_are_set_off_from_words() {
        check(
            "<article><front><article-meta><article-id pub-id-type='pmc'>1</article-id></article-meta></front><body>\
             <p>Asthma<sup><xref>1</xref>,<xref>2</xref></sup> and diabetes mellitus<sup>3</sup>. Migraine<xref ref-type='bibr'><sup>4</sup>\
             </xref> or flu<xref ref-type='bibr'>5</xref>–<xref ref-type='bibr'>7</xref>, gout [<xref ref-type='bibr'>8</xref>].</p>\
             <p>Ca<sup>2+</sup>, 10<sup>6</sup>, CO<sub>2</sub>, m<sup>2</sup>, <sup>18</sup>F, Fig<xref ref-type='fig'>1</xref></p>\
             <p>Cough<xref>9<fig><caption><p>Fever<sup>10</sup></p></caption></fig></xref> ends.</p></body></article>",
            expect![[r#"
                PMC1
                  [body] Asthma 1,2 and diabetes mellitus 3. Migraine 4 or flu 5–7, gout [8]. / Ca2+, 106, CO2, m2, 18F, Fig1 / Cough 9 ends.
                  [figure] Fever 10
            "#]],
        );
    }

    #[test]
    fn articles_of_a_set_are_read_one_by_one() {
        check(
            "<pmc-articleset><article><front><article-meta><article-id pub-id-type='pmcid'>PMC1</article-id></article-meta></front>\
             <body><p>a</p></body></article><article><body><p>b</p></body></article>\
             <article><front><article-meta><article-id pub-id-type='doi'>10.1/y</article-id></article-meta></front></article></pmc-articleset>",
            expect![[r#"
                PMC1
                  [body] a
                a.xml:1: the article has no id
                10.1/y doi=10.1/y
            "#]],
        );
        check(
            "<html/>",
            expect![[r#"
                a.xml:1: expected a JATS article, found `html`
            "#]],
        );
    }
}
