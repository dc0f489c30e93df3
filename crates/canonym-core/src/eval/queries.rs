//! BioSyn queries, and the output of `canonym map` for them.
//!
//! A query line is `document||start|end||type||mention||ids`; a mention `a|b` has two parts, which are linked
//! separately. Answers are JSON lines, one per part, in query order: `{"query": …, "candidates": [{"id": …}, …]}`.
//!
//! ```
//! use canonym_core::eval::queries::{read_answers, read_queries, to_mentions};
//! use canonym_core::eval::ranking::Composite;
//! use canonym_core::input::Input;
//!
//! let queries = b"7||0|9||Disease||fever|flu||D005334|D007251\n".to_vec();
//! let answers = br#"{"query":"fever","candidates":[{"id":"MESH:D005334"}]}
//! {"query":"flu","candidates":[]}"#.to_vec();
//! let queries = read_queries(&mut Input::from_bytes("dev.concept", queries)?)?;
//! let answers = read_answers(&mut Input::from_bytes("map.jsonl", answers)?)?;
//! let mentions = to_mentions(&queries, &answers, Composite::All)?;
//! assert_eq!(mentions[0].parts.len(), 2);
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::path::PathBuf;

use serde::Deserialize;

use super::Surface;
use super::ids::IdSet;
use super::ranking::{Composite, RankedMention};
use crate::input::Input;
use crate::{Error, Result};

const QUERY_HINT: &str = "the format is `document||start|end||type||mention||ids`";
const ANSWER_HINT: &str =
    "run `canonym map` on one line per query, in order, with one line for each part of a mention `a|b`";

/// A mention to link by name only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Id of the document.
    pub document: String,
    /// Semantic type.
    pub semantic_type: String,
    /// The names to link; several for a composite mention.
    pub parts: Vec<String>,
    /// The gold concepts.
    pub ids: IdSet,
}

/// The ranked candidates for a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The name.
    pub query: String,
    /// The candidates, best first.
    pub candidates: Vec<IdSet>,
    /// Line in the file, from 1.
    pub line: u64,
    /// Score of the first candidate, if given.
    pub score: Option<f32>,
    /// Name of the first candidate; empty if missing.
    pub name: String,
}

/// The answers in a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answers {
    /// Path of the file, for messages.
    pub path: PathBuf,
    /// One answer per line.
    pub rows: Vec<Answer>,
}

#[derive(Deserialize)]
struct AnswerLine {
    query: String,
    candidates: Vec<CandidateLine>,
}

#[derive(Deserialize)]
struct CandidateLine {
    id: String,
    #[serde(default)]
    name: String,
    score: Option<f32>,
}

/// Reads queries; blank lines are skipped.
pub fn read_queries(input: &mut Input) -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    loop {
        let Some((_, line)) = input.next_line()? else { return Ok(queries) };
        if line.trim().is_empty() {
            continue;
        }
        match parse_query(line) {
            Some(query) => queries.push(query),
            None => return Err(input.error("expected at least five fields separated by `||`").with_hint(QUERY_HINT)),
        }
    }
}

fn parse_query(line: &str) -> Option<Query> {
    let mut fields = line.splitn(4, "||");
    let (document, _place, semantic_type) = (fields.next()?, fields.next()?, fields.next()?);
    let (mention, ids) = fields.next()?.rsplit_once("||")?;
    Some(Query {
        document: document.trim().to_owned(),
        semantic_type: semantic_type.trim().to_owned(),
        parts: mention.split('|').map(|part| part.trim().to_owned()).collect(),
        ids: IdSet::parse_one(ids),
    })
}

/// Reads the output of `canonym map`.
pub fn read_answers(input: &mut Input) -> Result<Answers> {
    let mut answers = Answers { path: input.path().to_path_buf(), rows: Vec::new() };
    loop {
        let Some((line, text)) = input.next_line()? else { return Ok(answers) };
        if text.trim().is_empty() {
            continue;
        }
        let parsed: AnswerLine = match serde_json::from_str(text) {
            Ok(parsed) => parsed,
            Err(error) => {
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
                let message = format!("not an output line of `canonym map`: {what} (column {})", error.column());
                return Err(Error::parse(&answers.path, line, message).with_hint(ANSWER_HINT));
            }
        };
        let candidates = parsed.candidates.iter().map(|candidate| IdSet::parse_one(&candidate.id)).collect();
        let score = parsed.candidates.first().and_then(|best| best.score);
        let name = parsed.candidates.into_iter().next().map_or_else(String::new, |best| best.name);
        answers.rows.push(Answer { query: parsed.query, candidates, line, score, name });
    }
}

/// Combines queries with their answers.
///
/// The file contains answers for all parts, or, if the number of lines matches, only for the parts that `composite`
/// uses. An answer for a name other than that of the query is an error.
pub fn to_mentions(queries: &[Query], answers: &Answers, composite: Composite) -> Result<Vec<RankedMention>> {
    let n_asked = |query: &Query| match composite {
        Composite::First => query.parts.len().min(1),
        Composite::Drop if query.parts.len() > 1 => 0,
        Composite::All | Composite::Drop => query.parts.len(),
    };
    let n_parts: usize = queries.iter().map(|query| query.parts.len()).sum();
    let n_needed: usize = queries.iter().map(n_asked).sum();
    let all_parts = answers.rows.len() == n_parts;
    if !all_parts && answers.rows.len() != n_needed {
        let message = format!(
            "{} has {} predictions for {} mentions with {n_parts} parts",
            answers.path.display(),
            answers.rows.len(),
            queries.len(),
        );
        return Err(Error::mismatch(message).with_hint(ANSWER_HINT));
    }
    let mut rows = answers.rows.iter();
    let mut mentions = Vec::with_capacity(queries.len());
    for query in queries {
        let n_answers = if all_parts { query.parts.len() } else { n_asked(query) };
        let mut parts = vec![Vec::new(); query.parts.len()];
        let (mut score, mut names) = (None, Vec::new());
        let answered = query.parts.iter().zip(rows.by_ref().take(n_answers));
        for (row, (name, answer)) in answered.enumerate() {
            if answer.query.trim() != name {
                let message = format!("the prediction is for `{}`, but the query is `{name}`", answer.query);
                return Err(Error::parse(&answers.path, answer.line, message).with_hint(ANSWER_HINT));
            }
            parts[row] = answer.candidates.clone();
            if row >= n_asked(query) {
                continue;
            }
            // The score of a mention is that of its least confident part.
            score = match (score, answer.score) {
                (Some(least), Some(new)) => Some(f32::min(least, new)),
                (known, new) => known.or(new),
            };
            if !answer.name.is_empty() {
                names.push(answer.name.as_str());
            }
        }
        let surface = Surface {
            text: query.parts.join("|"),
            types: IdSet::parse_types(&query.semantic_type),
            discontinuous: false,
            composite: query.parts.len() > 1,
        };
        let (document, gold) = (query.document.clone(), query.ids.clone());
        mentions.push(RankedMention { document, gold, parts, surface, score, name: names.join(" / ") });
    }
    Ok(mentions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const QUERIES: &str = "1||0|9||Disease||breast|skin cancer||D1|D2\n\n2||4|9||Disease||fever||MESH:D3\n";

    fn judged(queries: &str, answers: &str, composite: Composite) -> Result<Vec<RankedMention>> {
        let queries = read_queries(&mut Input::from_bytes("dev.concept", queries.as_bytes().to_vec())?)?;
        let answers = read_answers(&mut Input::from_bytes("map.jsonl", answers.as_bytes().to_vec())?)?;
        to_mentions(&queries, &answers, composite)
    }

    /// One answer per name, whose candidate is the name in upper case.
    fn answers(names: &[&str]) -> String {
        let line = |name: &&str| {
            format!(r#"{{"query":"{name}","nil":false,"candidates":[{{"id":"{}"}}]}}"#, name.to_uppercase())
        };
        names.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn check(answered: &[&str], composite: Composite, expected: Expect) {
        let actual = match judged(QUERIES, &answers(answered), composite) {
            Ok(mentions) => mentions.iter().map(show).collect::<Vec<_>>().join("\n"),
            Err(error) => format!("{error}"),
        };
        expected.assert_eq(&actual);
    }

    fn show(mention: &RankedMention) -> String {
        let part = |part: &Vec<IdSet>| part.iter().map(IdSet::to_string).collect::<Vec<_>>().join(" ");
        let parts: Vec<String> = mention.parts.iter().map(part).collect();
        format!("{} {} <- {}", mention.document, mention.gold, parts.join(" / "))
    }

    #[test]
    fn answers_are_dealt_to_parts() {
        let all = ["breast", "skin cancer", "fever"];
        check(&all, Composite::All, expect!["1 D1|D2 <- BREAST / SKIN CANCER\n2 D3 <- FEVER"]);
        check(&["breast", "fever"], Composite::First, expect!["1 D1|D2 <- BREAST / \n2 D3 <- FEVER"]);
        check(&["fever"], Composite::Drop, expect!["1 D1|D2 <-  / \n2 D3 <- FEVER"]);
    }

    #[test]
    fn answers_to_other_queries_are_refused() {
        check(&["fever"], Composite::All, expect!["map.jsonl has 1 predictions for 2 mentions with 3 parts"]);
        let swapped = ["breast", "fever", "skin cancer"];
        check(
            &swapped,
            Composite::All,
            expect!["map.jsonl:2: the prediction is for `fever`, but the query is `skin cancer`"],
        );
    }

    #[test]
    fn malformed_lines_are_named() {
        let error = judged("1||0|9||Disease||fever\n", "", Composite::All).expect_err("four fields");
        assert_eq!(error.to_string(), "dev.concept:1: expected at least five fields separated by `||`");
        let error = judged("", "\n{\"query\":1}", Composite::All).expect_err("no text");
        assert!(error.to_string().starts_with("map.jsonl:2: "), "{error}");
    }
}
