//! Links of names as lines of JSON.

use serde::Serialize;

use crate::kb::KnowledgeBase;
use crate::kb::translate::Translator;
use crate::link::explain::Explanation;
use crate::link::system::shown_id;
use crate::link::{Candidate, Link};
use crate::numbers::rounded;

/// How lines are made.
#[derive(Debug)]
pub struct NameLines<'a> {
    /// The knowledge base that names are linked to.
    pub kb: &'a KnowledgeBase,
    /// Whether ids are written as in the source.
    pub raw_ids: bool,
    /// Adds codes of another code system.
    pub translator: Option<Translator>,
}

#[derive(Serialize)]
struct Line<'a> {
    query: &'a str,
    nil: bool,
    candidates: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    name: &'a str,
    score: f64,
    p_link: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<Vec<Code>>,
}

#[derive(Serialize)]
struct Code {
    id: String,
    predicate: &'static str,
}

impl NameLines<'_> {
    /// The line of a name, with its line end.
    pub fn line(&self, name: &str, link: &Link, mut explanation: Option<Explanation>) -> String {
        for (explained, candidate) in explanation.iter_mut().flat_map(|one| &mut one.candidates).zip(&link.candidates) {
            explained.id = shown_id(self.kb, candidate.concept, self.raw_ids);
        }
        let candidates = link.candidates.iter().map(|candidate| self.row(candidate)).collect();
        let line = Line { query: name, nil: link.nil, candidates, explanation };
        serde_json::to_string(&line).expect("strings and numbers can be written as JSON") + "\n"
    }

    fn row(&self, candidate: &Candidate) -> Row<'_> {
        let codes = |translator: &Translator| {
            let codes = translator.codes(self.kb, candidate.concept).into_iter();
            codes.map(|code| Code { id: code.id, predicate: code.predicate.name() }).collect()
        };
        Row {
            id: shown_id(self.kb, candidate.concept, self.raw_ids),
            name: self.kb.preferred_name(candidate.concept),
            score: rounded(candidate.p_link),
            p_link: rounded(candidate.p_link),
            codes: self.translator.as_ref().map(codes),
        }
    }
}
