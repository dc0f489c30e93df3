//! Quality checks on the content of a compiled knowledge base.
//!
//! A finding is not necessarily an error: real terminologies have homonyms and short names. Each check counts its
//! findings and keeps the first ones in file order as examples, so memory is bounded. The syntax of source files is
//! checked by importers.

use std::collections::HashMap;

use serde::Serialize;

use super::reader::{ConceptId, FormId, KnowledgeBase, NameId};
use super::record::Scope;
use crate::text::words::is_linking_word;

/// Names with more words are never found in text, because windows of the recogniser are shorter.
const MAX_WORDS: usize = 12;

/// Maximum number of concepts listed in an example.
const MAX_NAMED: usize = 8;

/// A quality check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Concepts of one source with the same preferred name.
    DuplicateLabels,
    /// Names shared by several concepts.
    Homonyms,
    /// Names of a single letter or digit.
    OneLetter,
    /// Names that consist of stop words such as `of` and `the`.
    StopWords,
    /// Names that consist of digits.
    DigitsOnly,
    /// Names without letters and digits.
    NoLetters,
    /// Names longer than any window of text.
    LongNames,
    /// Names of one concept that differ only in case or punctuation.
    VariantNames,
    /// Parents that are missing in the file.
    DanglingParents,
    /// Concepts that are their own ancestors.
    CyclicParents,
    /// Concepts marked as obsolete in their name or definition.
    Obsolete,
    /// Concepts with an obsolete parent.
    ObsoleteParents,
    /// Concepts without a definition.
    NoDefinition,
    /// Concepts without a semantic type.
    NoType,
}

impl Check {
    /// All checks, in report order.
    pub const ALL: [Check; 14] = [
        Check::DuplicateLabels,
        Check::Homonyms,
        Check::OneLetter,
        Check::StopWords,
        Check::DigitsOnly,
        Check::NoLetters,
        Check::LongNames,
        Check::VariantNames,
        Check::DanglingParents,
        Check::CyclicParents,
        Check::Obsolete,
        Check::ObsoleteParents,
        Check::NoDefinition,
        Check::NoType,
    ];

    /// Name on the command line and in reports, and description.
    pub fn name_and_description(self) -> (&'static str, &'static str) {
        match self {
            Check::DuplicateLabels => ("duplicate-labels", "preferred names shared within a source"),
            Check::Homonyms => ("homonyms", "names shared by several concepts"),
            Check::OneLetter => ("one-letter", "names of one character"),
            Check::StopWords => ("stop-words", "stop words used as names, such as `of` and `the`"),
            Check::DigitsOnly => ("digits-only", "names of digits only"),
            Check::NoLetters => ("no-letters", "names without letters or digits (never matched)"),
            Check::LongNames => ("long-names", "names longer than 12 words (not found in text)"),
            Check::VariantNames => ("variant-names", "names duplicated except for case or punctuation"),
            Check::DanglingParents => ("dangling-parents", "missing parents"),
            Check::CyclicParents => ("cyclic-parents", "cycles in the hierarchy"),
            Check::Obsolete => ("obsolete", "obsolete concepts"),
            Check::ObsoleteParents => ("obsolete-parents", "active concepts with obsolete parents"),
            Check::NoDefinition => ("no-definition", "concepts without a definition"),
            Check::NoType => ("no-type", "concepts without a semantic type"),
        }
    }

    /// The check with this name.
    pub fn from_name(name: &str) -> Option<Check> {
        Check::ALL.into_iter().find(|check| check.name_and_description().0 == name)
    }

    /// Whether findings only show what the source does not provide.
    pub fn is_note(self) -> bool {
        matches!(self, Check::NoDefinition | Check::NoType)
    }
}

/// An example of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Ids of the concepts, at most eight.
    pub ids: Vec<String>,
    /// The name in question; for a concept its preferred name.
    pub name: String,
    /// Further details.
    pub note: String,
}

/// The findings of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The check.
    pub check: Check,
    /// Number of findings; `None` if the file does not contain the information.
    pub n_found: Option<u64>,
    /// The first findings.
    pub examples: Vec<Example>,
}

/// Runs `checks` and returns their findings in the same order, each with up to `max_examples`.
pub fn lint(kb: &KnowledgeBase, checks: &[Check], max_examples: usize) -> Vec<Findings> {
    let mut findings = AllFindings {
        kb,
        max_examples,
        found: checks.iter().map(|check| Findings { check: *check, n_found: Some(0), examples: Vec::new() }).collect(),
    };
    look_at_forms(&mut findings);
    look_at_concepts(&mut findings);
    if findings.wants(Check::CyclicParents) {
        for members in loops(kb) {
            findings.add(Check::CyclicParents, &members, kb.preferred_name(members[0]), String::new);
        }
    }
    for dangling in findings.found.iter_mut().filter(|findings| findings.check == Check::DanglingParents) {
        let unknown = kb.meta().unknown_parents.as_ref();
        dangling.n_found = unknown.map(|unknown| unknown.n);
        for (id, parent) in unknown.iter().flat_map(|unknown| &unknown.first).take(max_examples) {
            let name = kb.find(id).map(|concept| kb.preferred_name(concept).to_owned()).unwrap_or_default();
            dangling.examples.push(Example { ids: vec![id.clone()], name, note: format!("parent {parent}") });
        }
    }
    findings.found
}

/// Findings of the selected checks.
struct AllFindings<'a> {
    kb: &'a KnowledgeBase,
    max_examples: usize,
    found: Vec<Findings>,
}

impl AllFindings<'_> {
    fn wants(&self, check: Check) -> bool {
        self.found.iter().any(|findings| findings.check == check)
    }

    fn add(&mut self, check: Check, concepts: &[ConceptId], name: &str, note: impl FnOnce() -> String) {
        let Some(findings) = self.found.iter_mut().find(|findings| findings.check == check) else { return };
        findings.n_found = findings.n_found.map(|n| n + 1);
        if findings.examples.len() < self.max_examples {
            let ids = concepts.iter().take(MAX_NAMED).map(|concept| self.kb.id(*concept).to_owned()).collect();
            let mut note = note();
            if concepts.len() > MAX_NAMED {
                note = format!("{note}{} concepts", concepts.len());
            }
            findings.examples.push(Example { ids, name: name.to_owned(), note });
        }
    }
}

/// Checks on names, form by form.
fn look_at_forms(findings: &mut AllFindings<'_>) {
    let kb = findings.kb;
    let forms = kb.forms();
    let (mut names, mut concepts): (Vec<NameId>, Vec<ConceptId>) = (Vec::new(), Vec::new());
    for row in 0..forms.len() {
        names.clear();
        names.extend(kb.names_of_form(FormId(row as u32)));
        let Some(first) = names.first() else { continue };
        let name = kb.name(*first);
        concepts.clear();
        concepts.extend(names.iter().map(|name| kb.concept_of(*name)));
        concepts.sort_unstable();
        concepts.dedup();
        if concepts.len() > 1 {
            findings.add(Check::Homonyms, &concepts, name, String::new);
            look_at_labels(findings, &names);
        }
        for check in shapes(&forms.get(row)).into_iter().flatten() {
            findings.add(check, &concepts, name, String::new);
        }
    }
}

/// Checks that a folded name fails by itself.
fn shapes(form: &str) -> [Option<Check>; 2] {
    let words = || form.split(' ').filter(|word| !word.is_empty());
    let digits = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let one_letter = form.chars().nth(1).is_none().then_some(Check::OneLetter);
    match words().filter(|word| !is_linking_word(word)).count() {
        0 if words().next().is_none() => [Some(Check::NoLetters), None],
        0 => [Some(Check::StopWords), one_letter],
        n if n > MAX_WORDS => [Some(Check::LongNames), None],
        _ if words().all(digits) => [Some(Check::DigitsOnly), one_letter],
        _ => [one_letter, None],
    }
}

/// Finds concepts of one source with the same preferred name; `names` are all names of a form.
fn look_at_labels(findings: &mut AllFindings<'_>, names: &[NameId]) {
    let kb = findings.kb;
    let mut labels: Vec<(&str, NameId)> = names
        .iter()
        .filter(|name| kb.scope(**name) == Scope::Preferred)
        .map(|name| (kb.source(kb.concept_of(*name)), *name))
        .collect();
    labels.sort_unstable();
    for same_label in labels.chunk_by(|a, b| a.0 == b.0).filter(|labels| labels.len() > 1) {
        let concepts: Vec<ConceptId> = same_label.iter().map(|(_, name)| kb.concept_of(*name)).collect();
        findings.add(Check::DuplicateLabels, &concepts, kb.name(same_label[0].1), || same_label[0].0.to_owned());
    }
}

/// Checks on concepts.
fn look_at_concepts(findings: &mut AllFindings<'_>) {
    let kb = findings.kb;
    let mut seen: HashMap<FormId, NameId> = HashMap::new();
    for concept in kb.concepts() {
        let name = kb.preferred_name(concept);
        seen.clear();
        for other in kb.names(concept) {
            let first = *seen.entry(kb.form_of(other)).or_insert(other);
            if first != other {
                findings.add(Check::VariantNames, &[concept], kb.name(first), || format!("and {}", kb.name(other)));
            }
        }
        if is_obsolete(kb, concept) {
            findings.add(Check::Obsolete, &[concept], name, String::new);
        } else if let Some(parent) = kb.parents(concept).find(|parent| is_obsolete(kb, *parent)) {
            let note = || format!("parent {} {}", kb.id(parent), kb.preferred_name(parent));
            findings.add(Check::ObsoleteParents, &[concept], name, note);
        }
        if kb.definition(concept).is_none() {
            findings.add(Check::NoDefinition, &[concept], name, String::new);
        }
        if kb.types(concept).next().is_none() {
            findings.add(Check::NoType, &[concept], name, String::new);
        }
    }
}

/// Whether the preferred name or the definition marks a concept as obsolete, as ontologies do; the file has no flag.
fn is_obsolete(kb: &KnowledgeBase, concept: ConceptId) -> bool {
    let starts = |text: &str| {
        let word = text.trim_start().split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
        ["obsolete", "deprecated"].iter().any(|sign| word.eq_ignore_ascii_case(sign))
    };
    let defined = kb.definition(concept).is_some_and(|text| text.starts_with("OBSOLETE"));
    defined || (starts(kb.preferred_name(concept)) && kb.preferred_name(concept).contains(' '))
}

/// Cycles in the hierarchy: groups of concepts that are ancestors of each other, or of themselves. Each is in id order;
/// groups are ordered by their first concept.
///
/// Strongly connected components of the parent graph by Tarjan's algorithm, with an explicit stack because hierarchies
/// can be deep.
fn loops(kb: &KnowledgeBase) -> Vec<Vec<ConceptId>> {
    const NEW: u32 = u32::MAX;
    let n_concepts = kb.n_concepts();
    let mut order = vec![NEW; n_concepts];
    let mut lowest = vec![0u32; n_concepts];
    let mut is_open = vec![false; n_concepts];
    let mut open: Vec<u32> = Vec::new();
    let mut found: Vec<Vec<ConceptId>> = Vec::new();
    let mut next = 0;
    for root in kb.concepts() {
        if order[root.0 as usize] != NEW {
            continue;
        }
        let mut path: Vec<(u32, usize)> = vec![(root.0, 0)];
        while let Some((concept, n_seen)) = path.last_mut() {
            let row = *concept as usize;
            if *n_seen == 0 && order[row] == NEW {
                (order[row], lowest[row], is_open[row]) = (next, next, true);
                next += 1;
                open.push(*concept);
            }
            let parent = kb.parent_at(ConceptId(*concept), *n_seen);
            *n_seen += 1;
            match parent.map(|parent| parent.0 as usize) {
                Some(parent) if parent >= n_concepts => {}
                Some(parent) if order[parent] == NEW => path.push((parent as u32, 0)),
                Some(parent) if is_open[parent] => lowest[row] = lowest[row].min(order[parent]),
                Some(_) => {}
                None => {
                    let (concept, low) = (*concept, lowest[row]);
                    path.pop();
                    if let Some((below, _)) = path.last() {
                        lowest[*below as usize] = lowest[*below as usize].min(low);
                    }
                    if low == order[row] {
                        let at = open.iter().rposition(|other| *other == concept).unwrap_or(0);
                        let mut members: Vec<ConceptId> = open.drain(at..).map(ConceptId).collect();
                        members.iter().for_each(|member| is_open[member.0 as usize] = false);
                        members.sort_unstable();
                        if members.len() > 1 || kb.parents(members[0]).any(|parent| parent == members[0]) {
                            found.push(members);
                        }
                    }
                }
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord};

    /// Rows of id, names separated by `|`, parents separated by `|`, definition.
    fn kb(rows: &[(&str, &str, &str, &str)]) -> KnowledgeBase {
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, names, parents, definition) in rows {
            let names = names.split('|').map(|text| NameRecord { text: text.to_owned(), scope: Scope::Exact });
            let record = ConceptRecord {
                id: (*id).to_owned(),
                names: names.collect(),
                parents: parents.split('|').map(str::to_owned).collect(),
                definition: Some((*definition).to_owned()),
                types: vec!["T".to_owned()],
                ..ConceptRecord::default()
            };
            builder.add(record).unwrap();
        }
        KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
    }

    fn check(rows: &[(&str, &str, &str, &str)], checks: &[Check], expected: Expect) {
        let mut text = String::new();
        for findings in lint(&kb(rows), checks, 5) {
            let n = findings.n_found.map_or("?".to_owned(), |n| n.to_string());
            text += &format!("{} {n}\n", findings.check.name_and_description().0);
            for example in findings.examples {
                text += &format!("  {} | {} | {}\n", example.ids.join(" "), example.name, example.note);
            }
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn names_are_judged_by_their_folded_form() {
        let long = "a b c d e f g h i j k l m n o p";
        check(
            &[
                ("X:1", "Fever|FEVER|fever!|x", "", "d"),
                ("X:2", "fever|of the|5|12-3", "", "d"),
                ("X:3", &format!("pyrexia|Fever|--|{long}"), "", ""),
            ],
            &Check::ALL,
            expect![[r#"
                duplicate-labels 1
                  X:1 X:2 | Fever | 
                homonyms 1
                  X:1 X:2 X:3 | Fever | 
                one-letter 2
                  X:2 | 5 | 
                  X:1 | x | 
                stop-words 1
                  X:2 | of the | 
                digits-only 2
                  X:2 | 12-3 | 
                  X:2 | 5 | 
                no-letters 1
                  X:3 | -- | 
                long-names 1
                  X:3 | a b c d e f g h i j k l m n o p | 
                variant-names 2
                  X:1 | Fever | and FEVER
                  X:1 | Fever | and fever!
                dangling-parents 0
                cyclic-parents 0
                obsolete 0
                obsolete-parents 0
                no-definition 1
                  X:3 | pyrexia | 
                no-type 0
            "#]],
        );
    }

    #[test]
    fn loops_are_found_with_all_their_members() {
        check(
            &[
                ("X:1", "one", "X:2", "d"),
                ("X:2", "two", "X:3|X:5", "d"),
                ("X:3", "three", "X:1", "d"),
                ("X:4", "four", "X:4", "d"),
                ("X:5", "five", "X:6", "d"),
                ("X:6", "six", "", "d"),
                ("X:7", "seven", "X:1|X:9", "d"),
                ("X:8", "obsolete eight", "X:9", "d"),
                ("X:9", "nine", "X:8", "OBSOLETE. d"),
            ],
            &[Check::CyclicParents, Check::Obsolete, Check::ObsoleteParents],
            expect![[r#"
                cyclic-parents 3
                  X:1 X:2 X:3 | one | 
                  X:4 | four | 
                  X:8 X:9 | obsolete eight | 
                obsolete 2
                  X:8 | obsolete eight | 
                  X:9 | nine | 
                obsolete-parents 1
                  X:7 | seven | parent X:9 nine
            "#]],
        );
    }

    #[test]
    fn a_chain_of_parents_may_be_as_long_as_the_file() {
        let ids: Vec<(String, String)> =
            (0..50_000).map(|n| (format!("X:{n:06}"), format!("X:{:06}", n + 1))).collect();
        let rows: Vec<(&str, &str, &str, &str)> =
            ids.iter().map(|(id, parent)| (id.as_str(), "one", parent.as_str(), "")).collect();
        check(
            &rows,
            &[Check::CyclicParents, Check::DanglingParents],
            expect![[r#"
                cyclic-parents 0
                dangling-parents 1
                  X:049999 | one | parent X:050000
            "#]],
        );
    }

    #[test]
    fn examples_are_limited_and_counts_are_not() {
        let kb = kb(&[("X:1", "a|b|c|d", "", ""), ("X:2", "a|b", "", "")]);
        let findings = lint(&kb, &[Check::OneLetter], 1);
        assert_eq!((findings[0].n_found, findings[0].examples.len()), (Some(4), 1));
    }
}
