//! Concept-level diff of two knowledge bases, such as two releases of a terminology.
//!
//! Both files are traversed once in id order and nothing is collected: a callback gets each change. Only content is
//! compared, not source formats or options.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::reader::{ConceptId, KnowledgeBase};

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The concept is only in the new file.
    Added,
    /// The concept is only in the old file.
    Removed,
    /// The concept is only in the old file, and in the new one its id is an alternative id of another concept.
    Merged,
    /// The concept is in both files with different content.
    Changed,
}

/// The list of cross-references.
const XREFS: &str = "cross-references";

/// A changed concept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its id.
    pub id: String,
    /// The kind of the change.
    #[serde(rename = "fate")]
    pub kind: ChangeKind,
    /// Its preferred name, in the new file if present there.
    pub name: String,
    /// The concept that it was merged into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Its previous preferred name, if that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_name: Option<String>,
    /// Changed lists: `names`, `scopes`, `types`, `parents`, `alternative ids`, `cross-references`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ListChange>,
    /// Changed single values: `definition`, `source`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueChange>,
}

/// Changes of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListChange {
    /// Which list.
    pub list: &'static str,
    /// Entries that are only in the new file.
    pub added: Vec<String>,
    /// Entries that are only in the old file.
    pub removed: Vec<String>,
}

/// Change of a single value; empty means absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueChange {
    /// Which value.
    pub value: &'static str,
    /// Its old content.
    pub old: String,
    /// Its new content.
    pub new: String,
}

/// Number of changed concepts and entries by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Number of unchanged concepts.
    pub n_equal: u64,
    /// Counts by kind, such as `concepts added` or `names removed`.
    pub counts: BTreeMap<String, u64>,
}

impl Summary {
    fn count(&mut self, what: &str, n: usize) {
        if n > 0 {
            *self.counts.entry(what.to_owned()).or_insert(0) += n as u64;
        }
    }

    fn add(&mut self, change: &Change) {
        let kind = match change.kind {
            ChangeKind::Added => "concepts added",
            ChangeKind::Removed => "concepts removed",
            ChangeKind::Merged => "concepts merged into others",
            ChangeKind::Changed => "concepts changed",
        };
        self.count(kind, 1);
        self.count("preferred names changed", usize::from(change.old_name.is_some()));
        for list in &change.lists {
            self.count(&format!("{} added", list.list), list.added.len());
            self.count(&format!("{} removed", list.list), list.removed.len());
        }
        for value in &change.values {
            self.count(&format!("{}s changed", value.value), 1);
        }
    }
}

/// Calls `visit` for each changed concept in id order, and counts changes.
pub fn diff<E>(
    old: &KnowledgeBase,
    new: &KnowledgeBase,
    visit: &mut dyn FnMut(&Change) -> Result<(), E>,
) -> Result<Summary, E> {
    let mut summary = Summary::default();
    let (mut olds, mut news) = (old.concepts().peekable(), new.concepts().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return Ok(summary),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(was), Some(is)) => old.id(*was).cmp(new.id(*is)),
        };
        let was = if order.is_le() { olds.next() } else { None };
        let is = if order.is_ge() { news.next() } else { None };
        let change = match (was, is) {
            (Some(was), Some(is)) => changed(old, was, new, is),
            (Some(was), None) => Some(removed(old, was, new)),
            (_, is) => is.map(|is| change_of(new, is, ChangeKind::Added)),
        };
        match change {
            Some(change) => {
                summary.add(&change);
                visit(&change)?;
            }
            None => summary.n_equal += 1,
        }
    }
}

fn change_of(kb: &KnowledgeBase, concept: ConceptId, kind: ChangeKind) -> Change {
    Change {
        id: kb.id(concept).to_owned(),
        kind,
        name: kb.preferred_name(concept).to_owned(),
        into: None,
        old_name: None,
        lists: Vec::new(),
        values: Vec::new(),
    }
}

fn removed(old: &KnowledgeBase, was: ConceptId, new: &KnowledgeBase) -> Change {
    let into = new.find(old.id(was)).map(|other| new.id(other).to_owned());
    let kind = if into.is_some() { ChangeKind::Merged } else { ChangeKind::Removed };
    Change { into, ..change_of(old, was, kind) }
}

/// The differences between the old and the new version of a concept; `None` if there are none.
fn changed(old: &KnowledgeBase, was: ConceptId, new: &KnowledgeBase, is: ConceptId) -> Option<Change> {
    // Files of format 1 have no cross-references to compare.
    let is_comparable = |list: &&str| *list != XREFS || [old, new].iter().all(|kb| kb.container().format() > 1);
    let lists = ["names", "scopes", "types", "parents", "alternative ids", XREFS]
        .into_iter()
        .filter(is_comparable)
        .filter_map(|list| compare(list, &entries(old, was, list), &entries(new, is, list)));
    let mut lists: Vec<ListChange> = lists.collect();
    forget_scopes_of_other_names(&mut lists);
    let texts = [
        ("definition", old.definition(was).unwrap_or_default(), new.definition(is).unwrap_or_default()),
        ("source", old.source(was), new.source(is)),
    ];
    let differ = texts.into_iter().filter(|(_, old, new)| old != new);
    let values: Vec<ValueChange> =
        differ.map(|(value, old, new)| ValueChange { value, old: old.to_owned(), new: new.to_owned() }).collect();
    let old_name = Some(old.preferred_name(was)).filter(|name| *name != new.preferred_name(is)).map(str::to_owned);
    if lists.is_empty() && values.is_empty() && old_name.is_none() {
        return None;
    }
    Some(Change { old_name, lists, values, ..change_of(new, is, ChangeKind::Changed) })
}

/// The entries of a list as strings that are comparable between knowledge bases.
fn entries<'a>(kb: &'a KnowledgeBase, concept: ConceptId, list: &str) -> BTreeSet<std::borrow::Cow<'a, str>> {
    match list {
        "names" => kb.names(concept).map(|name| kb.name(name).into()).collect(),
        // Preferred and exact names are not distinguished: a change of the preferred name is reported separately.
        "scopes" => kb
            .names(concept)
            .map(|name| (kb.scope(name).name(), kb.name(name)))
            .filter(|(scope, _)| !matches!(*scope, "preferred" | "exact"))
            .map(|(scope, name)| format!("{scope}: {name}").into())
            .collect(),
        "types" => kb.types(concept).map(Into::into).collect(),
        "parents" => kb.parents(concept).map(|parent| kb.id(parent).into()).collect(),
        "alternative ids" => kb.alternative_ids(concept).map(Into::into).collect(),
        _ => kb.xrefs(concept).map(|xref| format!("{} {}", xref.predicate.name(), xref.id).into()).collect(),
    }
}

fn compare(
    list: &'static str,
    old: &BTreeSet<std::borrow::Cow<'_, str>>,
    new: &BTreeSet<std::borrow::Cow<'_, str>>,
) -> Option<ListChange> {
    let only = |in_one: &BTreeSet<std::borrow::Cow<'_, str>>, in_other: &BTreeSet<std::borrow::Cow<'_, str>>| {
        in_one.difference(in_other).map(|entry| entry.clone().into_owned()).collect::<Vec<String>>()
    };
    let change = ListChange { list, added: only(new, old), removed: only(old, new) };
    (!change.added.is_empty() || !change.removed.is_empty()).then_some(change)
}

/// Drops scope changes of names that were added or removed, because these are reported already.
fn forget_scopes_of_other_names(lists: &mut Vec<ListChange>) {
    let Some(names) = lists.iter().find(|list| list.list == "names").cloned() else { return };
    let is_reported = |entry: &String, names: &[String]| {
        entry.split_once(": ").is_some_and(|(_, name)| names.iter().any(|known| known == name))
    };
    for scopes in lists.iter_mut().filter(|list| list.list == "scopes") {
        scopes.added.retain(|entry| !is_reported(entry, &names.added));
        scopes.removed.retain(|entry| !is_reported(entry, &names.removed));
    }
    lists.retain(|list| !list.added.is_empty() || !list.removed.is_empty());
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::input::Source;
    use crate::kb::KnowledgeBaseBuilder;
    use crate::kb::format::Meta;
    use crate::kb::import::{ImportConfig, Report, SourceFormat, import_sources};

    fn kb(lines: &str) -> KnowledgeBase {
        let source = Source::from_bytes("x.jsonl", lines.as_bytes().to_vec());
        let mut builder = KnowledgeBaseBuilder::new();
        let mut add = |record| builder.add(record);
        let config = ImportConfig::default();
        import_sources(SourceFormat::Jsonl, &[source], &config, &mut Report::default(), &mut add).unwrap();
        KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
    }

    fn check(old: &str, new: &str, expected: Expect) {
        let mut text = String::new();
        let summary = diff(&kb(old), &kb(new), &mut |change| -> Result<(), Infallible> {
            text += &(serde_json::to_string(change).unwrap() + "\n");
            Ok(())
        });
        let Ok(summary) = summary;
        text += &format!("{} equal, {:?}\n", summary.n_equal, summary.counts);
        expected.assert_eq(&text);
    }

    #[test]
    fn equal_content_has_no_difference() {
        let one = r#"{"id":"X:1","name":"a","synonyms":["b"],"types":["T","U"],"parents":["X:1"]}"#;
        let other = r#"{"id":"X:1","name":"a","synonyms":["b","a"],"types":["U","T"],"parents":["X:1"]}"#;
        check(
            one,
            other,
            expect![[r#"
            1 equal, {}
        "#]],
        );
    }

    #[test]
    fn added_removed_and_merged_concepts_are_listed() {
        let old = concat!(
            r#"{"id":"X:1","name":"a"}"#,
            "\n",
            r#"{"id":"X:2","name":"b"}"#,
            "\n",
            r#"{"id":"X:3","name":"c"}"#
        );
        let new = concat!(r#"{"id":"X:0","name":"z"}"#, "\n", r#"{"id":"X:3","name":"c","alternative_ids":["X:2"]}"#);
        check(
            old,
            new,
            expect![[r#"
            {"id":"X:0","fate":"added","name":"z"}
            {"id":"X:1","fate":"removed","name":"a"}
            {"id":"X:2","fate":"merged","name":"b","into":"X:3"}
            {"id":"X:3","fate":"changed","name":"c","lists":[{"list":"alternative ids","added":["X:2"],"removed":[]}]}
            0 equal, {"alternative ids added": 1, "concepts added": 1, "concepts changed": 1, "concepts merged into others": 1, "concepts removed": 1}
        "#]],
        );
    }

    #[test]
    fn each_part_of_a_concept_is_compared() {
        let old = r#"{"id":"X:1","name":"a","synonyms":["b",{"text":"r","scope":"related"},{"text":"n","scope":"narrow"}],"types":["T"],"definition":"d"}"#;
        let new =
            r#"{"id":"X:1","name":"b","synonyms":["a","c",{"text":"r","scope":"broad"}],"types":["U"],"source":"S"}"#;
        check(
            old,
            new,
            expect![[r#"
            {"id":"X:1","fate":"changed","name":"b","old_name":"a","lists":[{"list":"names","added":["c"],"removed":["n"]},{"list":"scopes","added":["broad: r"],"removed":["related: r"]},{"list":"types","added":["U"],"removed":["T"]}],"values":[{"value":"definition","old":"d","new":""},{"value":"source","old":"","new":"S"}]}
            0 equal, {"concepts changed": 1, "definitions changed": 1, "names added": 1, "names removed": 1, "preferred names changed": 1, "scopes added": 1, "scopes removed": 1, "sources changed": 1, "types added": 1, "types removed": 1}
        "#]],
        );
    }
}
