//! Release tests for linking: links that texts and names must have, must not have, and may have.
//!
//! ```
//! use canonym_core::eval::expect::{Expectations, check_text};
//!
//! let text = r#"{"text":[{"text":"No pain.","require":[{"mention":"pain","id":"X:1"}]}]}"#;
//! let expectations: Expectations = serde_json::from_str(text)?;
//! let failures = check_text(&expectations.text[0], 0, &[]);
//! assert_eq!(failures[0].to_string(), "text 1: “pain” should be linked to X:1, but was not found");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod faults;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use faults::{Fault, Step};

use crate::corpus::Annotation;

/// What a release must fulfil.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// Texts with their links.
    #[serde(default)]
    pub text: Vec<TextExpectation>,
    /// Links of names without context.
    #[serde(default)]
    pub names: Vec<NameLists>,
}

/// A text with the links that it must have, must not have, and may have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextExpectation {
    /// Name in reports; the number of the text by default.
    #[serde(default)]
    pub id: String,
    /// The text.
    pub text: String,
    /// Only for the terminology of this name.
    #[serde(default)]
    pub terminology: Option<String>,
    /// Required links.
    #[serde(default)]
    pub require: Vec<ExpectedLink>,
    /// Forbidden links.
    #[serde(default)]
    pub forbid: Vec<ExpectedLink>,
    /// Open links: they may be missing. Only needed for complete texts.
    #[serde(default)]
    pub open: Vec<ExpectedLink>,
    /// Whether every link has to be required or open.
    #[serde(default)]
    pub complete: bool,
}

/// A link, or a set of links.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedLink {
    /// The mention, ignoring case and the kind of white space; any mention by default.
    #[serde(default)]
    pub mention: Option<String>,
    /// The concept, or several of which one is meant; any concept by default.
    #[serde(default)]
    pub id: Ids,
}

/// Names that must be linked, and names that must not be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameLists {
    /// Only for the terminology of this name.
    #[serde(default)]
    pub terminology: Option<String>,
    /// Names and the concepts that they must be linked to.
    #[serde(default, rename = "override")]
    pub overrides: BTreeMap<String, Ids>,
    /// Names and the concepts that they must not be linked to, alone or in the texts; `*` is any concept.
    #[serde(default)]
    pub deny: BTreeMap<String, Ids>,
}

/// Concept ids: one string or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMore")]
pub struct Ids(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "an id must be a string or a list of strings")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<OneOrMore> for Ids {
    fn from(ids: OneOrMore) -> Ids {
        Ids(match ids {
            OneOrMore::One(id) => vec![id],
            OneOrMore::More(ids) => ids,
        })
    }
}

/// The concept id that stands for any concept.
const ANY: &str = "*";

impl Ids {
    /// Whether a written id, which may consist of several joined by `|`, is one of these; true if there are none.
    fn matches(&self, written: &str) -> bool {
        let is_meant = |id: &String| {
            id == ANY || id == written || id.split('|').any(|one| written.split('|').any(|other| one == other))
        };
        self.0.is_empty() || self.0.iter().any(is_meant)
    }
}

impl fmt::Display for Ids {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => formatter.write_str("a concept"),
            ids if ids.iter().any(|id| id == ANY) => formatter.write_str("any concept"),
            ids => formatter.write_str(&ids.join(" or ")),
        }
    }
}

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// A required link is missing.
    Required,
    /// A forbidden link was found.
    Forbidden,
    /// A link in a complete text is neither required nor open.
    Unexpected,
    /// A name is not linked as its override says.
    Override,
    /// A name is linked to a denied concept.
    Denied,
}

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Where: the id of a text, or the name.
    pub place: String,
    /// What is wrong.
    pub kind: FailureKind,
    /// The mention or name, as expected or found.
    pub mention: String,
    /// The expected or denied concepts.
    pub ids: Vec<String>,
    /// Id of the concept that it was linked to; `None` if it is unlinked or was not found.
    pub found: Option<String>,
    /// Name of that concept.
    pub found_name: Option<String>,
    /// Whether the mention was found.
    pub is_mention: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { place, kind, mention, .. } = self;
        let ids = Ids(self.ids.clone());
        let found = match (&self.found, &self.found_name) {
            (Some(id), Some(name)) => format!("{id} ({name})"),
            (Some(id), None) => id.clone(),
            _ if self.is_mention => "unlinked".to_owned(),
            _ => "not found".to_owned(),
        };
        let is_linked = self.found.is_some();
        match kind {
            FailureKind::Required | FailureKind::Override => {
                let verb = if is_linked {
                    "is linked to"
                } else if self.is_mention {
                    "is"
                } else {
                    "was"
                };
                write!(formatter, "{place}: “{mention}” should be linked to {ids}, but {verb} {found}")
            }
            FailureKind::Forbidden | FailureKind::Denied if ids.0.is_empty() || ids.0.iter().any(|id| id == ANY) => {
                write!(formatter, "{place}: “{mention}” should not be linked, but is linked to {found}")
            }
            FailureKind::Forbidden | FailureKind::Denied => {
                write!(formatter, "{place}: “{mention}” should not be linked to {found}")
            }
            FailureKind::Unexpected => {
                write!(formatter, "{place}: “{mention}” is linked to {found}, which is not expected")
            }
        }
    }
}

impl Expectations {
    /// Number of texts and name lists that are for another terminology than `name`.
    pub fn n_for_others(&self, name: &str) -> usize {
        let texts = self.text.iter().filter(|text| !is_for(text.terminology.as_deref(), name));
        texts.count() + self.names.iter().filter(|list| !is_for(list.terminology.as_deref(), name)).count()
    }

    /// Keeps what is for the terminology `name`.
    pub fn retain(&mut self, name: &str) {
        self.text.retain(|text| is_for(text.terminology.as_deref(), name));
        self.names.retain(|list| is_for(list.terminology.as_deref(), name));
    }

    /// Number of expectations: required and forbidden links, complete texts, and names.
    pub fn n(&self) -> usize {
        let of_text = |text: &TextExpectation| text.require.len() + text.forbid.len() + usize::from(text.complete);
        let of_list = |list: &NameLists| list.overrides.len() + list.deny.len();
        self.text.iter().map(of_text).sum::<usize>() + self.names.iter().map(of_list).sum::<usize>()
    }
}

fn is_for(terminology: Option<&str>, name: &str) -> bool {
    terminology.is_none_or(|wanted| wanted == name)
}

impl TextExpectation {
    /// Its name in reports.
    pub fn place(&self, row: usize) -> String {
        if self.id.is_empty() { format!("text {}", row + 1) } else { self.id.clone() }
    }
}

impl ExpectedLink {
    fn is_mention(&self, annotation: &Annotation) -> bool {
        self.mention.as_ref().is_none_or(|mention| plain(mention) == plain(&annotation.text))
    }

    fn matches(&self, annotation: &Annotation) -> bool {
        self.is_mention(annotation) && annotation.concept_id().is_some_and(|id| self.id.matches(id))
    }
}

/// Lower case, with single blanks.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ").to_lowercase()
}

fn failure(place: &str, kind: FailureKind, mention: &str, ids: &Ids, found: Option<&Annotation>) -> Failure {
    let best = found.and_then(|found| found.candidates.first().filter(|_| !found.nil));
    Failure {
        place: place.to_owned(),
        kind,
        mention: mention.to_owned(),
        ids: ids.0.clone(),
        found: best.map(|best| best.id.clone()),
        found_name: best.map(|best| best.name.clone()),
        is_mention: found.is_some(),
    }
}

/// What does not hold for text number `row` with these links.
pub fn check_text(text: &TextExpectation, row: usize, found: &[Annotation]) -> Vec<Failure> {
    let (place, mut failures) = (text.place(row), Vec::new());
    for link in &text.require {
        if !found.iter().any(|one| link.matches(one)) {
            let other = found.iter().find(|one| link.is_mention(one));
            let mention = link.mention.as_deref().unwrap_or_default();
            failures.push(failure(&place, FailureKind::Required, mention, &link.id, other));
        }
    }
    for link in &text.forbid {
        if let Some(one) = found.iter().find(|one| link.matches(one)) {
            failures.push(failure(&place, FailureKind::Forbidden, &one.text, &link.id, Some(one)));
        }
    }
    if text.complete {
        let is_expected = |one: &&Annotation| text.require.iter().chain(&text.open).any(|link| link.matches(one));
        let is_forbidden = |one: &&Annotation| text.forbid.iter().any(|link| link.matches(one));
        let unexpected =
            found.iter().filter(|one| one.concept_id().is_some() && !is_expected(one) && !is_forbidden(one));
        failures.extend(
            unexpected.map(|one| failure(&place, FailureKind::Unexpected, &one.text, &Ids::default(), Some(one))),
        );
    }
    failures
}

/// Links of denied names in text number `row`.
pub fn check_denied(lists: &[NameLists], text: &TextExpectation, row: usize, found: &[Annotation]) -> Vec<Failure> {
    let denied = lists.iter().flat_map(|list| &list.deny);
    let links = denied.flat_map(|(name, ids)| {
        let is_denied =
            |one: &&Annotation| plain(&one.text) == plain(name) && one.concept_id().is_some_and(|id| ids.matches(id));
        found.iter().filter(is_denied).map(move |one| (one, ids))
    });
    links.map(|(one, ids)| failure(&text.place(row), FailureKind::Denied, &one.text, ids, Some(one))).collect()
}

/// What does not hold for the links of names alone; `link` links one.
///
/// # Errors
/// Those of `link`.
pub fn check_names<E>(
    list: &NameLists,
    mut link: impl FnMut(&str) -> std::result::Result<Annotation, E>,
) -> std::result::Result<Vec<Failure>, E> {
    let mut failures = Vec::new();
    for (name, ids) in &list.overrides {
        let found = link(name)?;
        if !found.concept_id().is_some_and(|id| ids.matches(id)) {
            failures.push(failure("names", FailureKind::Override, name, ids, Some(&found)));
        }
    }
    for (name, ids) in &list.deny {
        let found = link(name)?;
        if found.concept_id().is_some_and(|id| ids.matches(id)) {
            failures.push(failure("names", FailureKind::Denied, name, ids, Some(&found)));
        }
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::corpus::CandidateRecord;

    fn linked(text: &str, id: &str) -> Annotation {
        let candidate = CandidateRecord { id: id.to_owned(), name: format!("name of {id}"), p_link: 1.0, p_both: None };
        Annotation { text: text.to_owned(), nil: id.is_empty(), candidates: vec![candidate], ..Annotation::default() }
    }

    fn check(json: &str, found: &[Annotation], expect: Expect) {
        let expectations: Expectations = serde_json::from_str(json).unwrap();
        assert_eq!(expectations.fault(), None);
        let text = &expectations.text[0];
        let mut failures = check_text(text, 0, found);
        failures.extend(check_denied(&expectations.names, text, 0, found));
        expect.assert_eq(&failures.iter().map(|failure| format!("{failure}\n")).collect::<String>());
    }

    #[test]
    fn required_and_forbidden_links_are_checked() {
        let found = [linked("Dry  cough", "X:1|Y:1"), linked("lead", "X:2"), linked("cold", "")];
        check(
            r#"{"text":[{"id":"n","text":"Dry cough, lead, cold, rash","require":[{"mention":"dry cough","id":["Y:1"]},
               {"mention":"Lead","id":"X:3"},{"mention":"cold","id":"X:4"},{"mention":"rash"}],
               "forbid":[{"mention":"lead","id":"X:2"},{"id":"X:1"},{"mention":"cold"}]}]}"#,
            &found,
            expect![[r#"
                n: “Lead” should be linked to X:3, but is linked to X:2 (name of X:2)
                n: “cold” should be linked to X:4, but is unlinked
                n: “rash” should be linked to a concept, but was not found
                n: “lead” should not be linked to X:2 (name of X:2)
                n: “Dry  cough” should not be linked to X:1|Y:1 (name of X:1|Y:1)
            "#]],
        );
    }

    #[test]
    fn complete_texts_have_no_other_links() {
        check(
            r#"{"text":[{"text":"a b c","complete":true,"require":[{"mention":"a","id":"X:1"}],"open":[{"mention":"b"}]}],
                "names":[{"deny":{"C":"*"}}]}"#,
            &[linked("a", "X:1"), linked("b", "X:2"), linked("c", "X:3")],
            expect![[r#"
                text 1: “c” is linked to X:3 (name of X:3), which is not expected
                text 1: “c” should not be linked, but is linked to X:3 (name of X:3)
            "#]],
        );
    }
}
