//! Expectations that say nothing or can never fail.

use super::{ANY, Expectations, ExpectedLink, Ids, NameLists, TextExpectation, is_for, plain};

/// A step from the root of a file of expectations to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The value of this key.
    Key(String),
    /// The entry at this place, from 0.
    At(usize),
}

/// An expectation that says nothing or can never fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it is in the file.
    pub path: Vec<Step>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl Fault {
    fn new(path: Vec<Step>, message: String, hint: impl Into<String>) -> Option<Fault> {
        Some(Fault { path, message, hint: hint.into() })
    }
}

/// The path of entry number `row` of the list `list`.
fn path(list: &str, row: usize) -> Vec<Step> {
    vec![Step::Key(list.to_owned()), Step::At(row)]
}

fn below(mut path: Vec<Step>, steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    path.extend(steps);
    path
}

impl Expectations {
    /// The first expectation that says nothing or can never fail, whatever the terminology.
    pub fn fault(&self) -> Option<Fault> {
        let has_denials = self.names.iter().any(|list| !list.deny.is_empty());
        let texts = self.text.iter().enumerate();
        let names = self.names.iter().enumerate();
        texts
            .filter_map(|(row, text)| fault_of_text(text, row, has_denials))
            .chain(names.filter_map(|(row, list)| fault_of_names(list, row)))
            .next()
    }

    /// The first expectation that can never fail because no concept of the terminology `name` is written with one of its ids. `written` gives
    /// the id that links to the concept with an id or alternative id have.
    pub fn unknown(&self, name: &str, written: impl Fn(&str) -> Option<String>) -> Option<Fault> {
        let texts = self.text.iter().enumerate().filter(|(_, text)| is_for(text.terminology.as_deref(), name));
        let forbidden = texts.flat_map(|(row, text)| {
            let place = text.place(row);
            let entry = move |(at, link): (usize, &'_ ExpectedLink)| {
                (below(path("text", row), path("forbid", at)), format!("{place}: a forbidden link"), link.id.clone())
            };
            text.forbid.iter().enumerate().map(entry)
        });
        let lists = self.names.iter().enumerate().filter(|(_, list)| is_for(list.terminology.as_deref(), name));
        let denied = lists.flat_map(|(row, list)| {
            list.deny.iter().map(move |(denied, ids)| {
                let steps = [Step::Key("deny".to_owned()), Step::Key(denied.clone())];
                (below(path("names", row), steps), format!("the denial of “{denied}”"), ids.clone())
            })
        });
        for (path, what, ids) in forbidden.chain(denied) {
            let is_written =
                |id: &String| written(id).is_some_and(|of_concept| Ids(vec![id.clone()]).matches(&of_concept));
            if ids.0.is_empty() || ids.0.iter().any(|id| id == ANY || is_written(id)) {
                continue;
            }
            let hint = match ids.0.iter().find_map(|id| Some((id, written(id)?))) {
                Some((id, of_concept)) => format!("links to the concept with the id {id} have the id {of_concept}"),
                None => "correct the id, or say with `terminology` for which terminology it is".to_owned(),
            };
            return Fault::new(path, format!("{what} can never fail: {name} links nothing to {ids}"), hint);
        }
        None
    }
}

fn fault_of_text(text: &TextExpectation, row: usize, has_denials: bool) -> Option<Fault> {
    let (place, here) = (text.place(row), path("text", row));
    if text.require.is_empty() && text.forbid.is_empty() && !text.complete && !has_denials {
        let hint = "add `require`, `forbid` or `complete = true`";
        return Fault::new(here, format!("{place}: nothing is required or forbidden"), hint);
    }
    for (list, links) in [("require", &text.require), ("forbid", &text.forbid), ("open", &text.open)] {
        for (at, link) in links.iter().enumerate() {
            let wrong = |message: String, hint: &str| {
                Fault::new(below(here.clone(), path(list, at)), format!("{place}: {message}"), hint)
            };
            let kind = match list {
                "require" => "a required",
                "forbid" => "a forbidden",
                _ => "an open",
            };
            match &link.mention {
                None if list == "require" => {
                    return wrong(format!("{kind} link has no `mention`"), "add the mention as it is in the text");
                }
                None if link.id.0.is_empty() => {
                    return wrong(format!("{kind} link has neither `mention` nor `id`"), "add one of them");
                }
                Some(mention) if plain(mention).is_empty() => {
                    return wrong(
                        format!("the mention of {kind} link is empty"),
                        "add the mention as it is in the text",
                    );
                }
                Some(mention) if list != "open" && !has_mention(&text.text, mention) => {
                    let message = format!("the text does not contain “{}”", plain(mention));
                    return wrong(message, "correct the mention or the text");
                }
                _ => {}
            }
            if has_empty(&link.id) {
                return wrong(format!("an id of {kind} link is empty"), "add the id, or omit `id` for any concept");
            }
        }
    }
    None
}

fn fault_of_names(list: &NameLists, row: usize) -> Option<Fault> {
    for (key, names) in [("override", &list.overrides), ("deny", &list.deny)] {
        for (name, ids) in names {
            let wrong = |message: String| {
                let steps = [Step::Key(key.to_owned()), Step::Key(name.clone())];
                Fault::new(below(path("names", row), steps), message, "add an id; in `deny`, `\"*\"` is any concept")
            };
            if ids.0.is_empty() {
                return wrong(format!("the name “{name}” has no concept"));
            }
            if has_empty(ids) {
                return wrong(format!("an id of the name “{name}” is empty"));
            }
            if plain(name).is_empty() {
                return wrong(format!("a name in `{key}` is empty"));
            }
        }
    }
    None
}

fn has_empty(ids: &Ids) -> bool {
    ids.0.iter().any(|id| id.trim().is_empty())
}

/// Whether the words of a mention are in the text, in their order; a discontinuous mention has other words between them.
fn has_mention(text: &str, mention: &str) -> bool {
    let text = plain(text);
    let mut rest = text.as_str();
    plain(mention).split(' ').all(|word| match rest.find(word) {
        Some(at) => {
            rest = &rest[at + word.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Checks the texts and names of a file against a terminology with the concept `X:1`, formerly `X:0`.
    fn check(json: &str, expect: Expect) {
        let expectations: Expectations = serde_json::from_str(json).unwrap();
        let written = |id: &str| ["X:1", "X:0"].contains(&id).then(|| "X:1".to_owned());
        let step = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::At(row) => row.to_string(),
        };
        let fault = expectations.fault().or_else(|| expectations.unknown("test", written));
        let shown = |fault: Fault| {
            let path: Vec<String> = fault.path.iter().map(step).collect();
            format!("{}: {}\n{}\n", path.join("."), fault.message, fault.hint)
        };
        expect.assert_eq(&fault.map_or_else(|| "none\n".to_owned(), shown));
    }

    #[test]
    fn links_need_a_mention_of_the_text_or_an_id() {
        check(
            r#"{"text":[{"text":"b","complete":true},{"text":"a","require":[{"mention":"a"},{"id":"X:1"}]}]}"#,
            expect![[r#"
                text.1.require.1: text 2: a required link has no `mention`
                add the mention as it is in the text
            "#]],
        );
        check(
            r#"{"text":[{"id":"n","text":"heart","forbid":[{"mention":"haert","id":"X:1"}]}]}"#,
            expect![[r#"
                text.0.forbid.0: n: the text does not contain “haert”
                correct the mention or the text
            "#]],
        );
        check(
            r#"{"text":[{"text":"a","forbid":[{"mention":" "}]}]}"#,
            expect![[r#"
                text.0.forbid.0: text 1: the mention of a forbidden link is empty
                add the mention as it is in the text
            "#]],
        );
        check(
            r#"{"text":[{"text":"a","complete":true,"open":[{"mention":"b"},{}]}]}"#,
            expect![[r#"
                text.0.open.1: text 1: an open link has neither `mention` nor `id`
                add one of them
            "#]],
        );
        check(
            r#"{"text":[{"text":"a"}]}"#,
            expect![[r#"
                text.0: text 1: nothing is required or forbidden
                add `require`, `forbid` or `complete = true`
            "#]],
        );
        // Discontinuous mentions, and texts in which names are denied.
        check(
            r#"{"text":[{"text":"Breast  and lung cancer","forbid":[{"mention":"breast cancer","id":"X:1"}]},{"text":"b"}],
                "names":[{"deny":{"b":"*"}}]}"#,
            expect![[r#"
                none
            "#]],
        );
    }

    #[test]
    fn ids_are_not_empty() {
        check(
            r#"{"text":[{"text":"a","forbid":[{"mention":"a","id":["X:1",""]}]}]}"#,
            expect![[r#"
                text.0.forbid.0: text 1: an id of a forbidden link is empty
                add the id, or omit `id` for any concept
            "#]],
        );
        check(
            r#"{"names":[{},{"deny":{"lead":""}}]}"#,
            expect![[r#"
                names.1.deny.lead: an id of the name “lead” is empty
                add an id; in `deny`, `"*"` is any concept
            "#]],
        );
        check(
            r#"{"names":[{"deny":{"a":[]}}]}"#,
            expect![[r#"
                names.0.deny.a: the name “a” has no concept
                add an id; in `deny`, `"*"` is any concept
            "#]],
        );
        check(
            r#"{"names":[{"deny":{"":"*"}}]}"#,
            expect![[r#"
                names.0.deny.: a name in `deny` is empty
                add an id; in `deny`, `"*"` is any concept
            "#]],
        );
    }

    #[test]
    fn what_is_forbidden_has_to_be_possible() {
        check(
            r#"{"text":[{"text":"a","forbid":[{"id":["X:1","X:9"]},{"mention":"a"},{"id":"X:9"}]}]}"#,
            expect![[r#"
                text.0.forbid.2: text 1: a forbidden link can never fail: test links nothing to X:9
                correct the id, or say with `terminology` for which terminology it is
            "#]],
        );
        check(
            r#"{"text":[{"text":"a","terminology":"other","forbid":[{"id":"X:9"}]}],"names":[{"deny":{"a":"*","b":"X:0"}}]}"#,
            expect![[r#"
                names.0.deny.b: the denial of “b” can never fail: test links nothing to X:0
                links to the concept with the id X:0 have the id X:1
            "#]],
        );
    }
}
