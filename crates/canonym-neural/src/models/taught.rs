//! Names as annotated documents write them, with their concepts: shorthand such as `FLUTD` or `V+` that no terminology has.
//!
//! A name that is nearly always linked to one concept in the documents of a project is found wherever it occurs, as if the user had listed it
//! as a short form.

use std::collections::{BTreeMap, HashMap};

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::ids::IdSet;
use canonym_core::kb::subset::KbView;
use canonym_core::kb::{ConceptId, NameId};
use canonym_core::text::taught::{MAX_LENGTH, can_begin, can_end, is_lower, lower, name_of};

/// Minimum share of the occurrences of a name that are linked to its concept.
const MIN_SHARE: f32 = 0.5;

/// Pseudo-count of occurrences with another meaning.
const OTHER: f32 = 0.25;

/// Counts of a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Uses {
    /// Links by concept id.
    of_id: BTreeMap<String, u32>,
    /// Occurrences in the texts, linked or not.
    n: u32,
}

/// The names that documents taught.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taught {
    of_name: BTreeMap<String, Uses>,
}

/// A name with its concept in a knowledge base.
#[derive(Debug, Clone, PartialEq)]
pub struct TaughtName<'a> {
    /// The name as written; in lower case, it may begin with a capital.
    pub name: &'a str,
    /// Its concept, with the preferred name.
    pub concept: (ConceptId, NameId),
    /// The preferred name.
    pub preferred: &'a str,
    /// Share of its occurrences that mean this concept.
    pub share: f32,
}

impl Taught {
    /// Counts the names of annotated documents; in those that are not `complete`, what is not annotated does not count.
    pub fn of(complete: &[AnnotatedDocument], incomplete: &[AnnotatedDocument]) -> Taught {
        let mut taught = Taught::default();
        complete.iter().chain(incomplete).for_each(|document| taught.add(document));
        let mut of_first: HashMap<String, Vec<String>> = HashMap::new();
        for name in taught.of_name.keys() {
            of_first.entry(first_of(name)).or_default().push(name.clone());
        }
        for document in complete {
            taught.add_occurrences(&document.document.text, &of_first);
        }
        for uses in taught.of_name.values_mut() {
            uses.n = uses.n.max(uses.of_id.values().sum());
        }
        taught
    }

    /// Replaces the names that `newer` has, and adds the others.
    pub fn join(&mut self, newer: Taught) {
        self.of_name.extend(newer.of_name);
    }

    fn add(&mut self, document: &AnnotatedDocument) {
        for annotation in &document.annotations {
            let ([span], [id]) = (annotation.spans.as_slice(), annotation.ids.as_slice()) else { continue };
            // In a composite mention, it is unknown which part has which id.
            if IdSet::parse_one(id).is_nil() || id.contains(['|', '+']) || id.contains(char::is_whitespace) {
                continue;
            }
            let Some(name) = name_of(span.of(&document.document.text)) else { continue };
            *self.of_name.entry(name).or_default().of_id.entry(id.clone()).or_default() += 1;
        }
    }

    fn add_occurrences(&mut self, text: &str, of_first: &HashMap<String, Vec<String>>) {
        let mut before = None;
        for (at, letter) in text.char_indices() {
            let begins = can_begin(before, letter);
            before = Some(letter);
            if !begins {
                continue;
            }
            let names = of_first.get(&first_of(&text[at..]));
            for name in names.into_iter().flatten().filter(|name| is_at(&text[at..], name)) {
                self.of_name.get_mut(name).expect("a name of the table").n += 1;
            }
        }
    }

    /// One line per name: the name, its number of occurrences, and each id with its count, separated by tabs.
    pub fn to_lines(&self) -> String {
        let mut lines = String::new();
        for (name, uses) in &self.of_name {
            lines += &format!("{name}\t{}", uses.n);
            uses.of_id.iter().for_each(|(id, n)| lines += &format!("\t{id} {n}"));
            lines.push('\n');
        }
        lines
    }

    /// Parses the lines of [`Taught::to_lines`]; `None` if a line is malformed.
    pub fn from_lines(lines: &str) -> Option<Taught> {
        let mut taught = Taught::default();
        for line in lines.lines() {
            let mut fields = line.split('\t');
            let (name, n) = (fields.next()?, fields.next()?.parse().ok()?);
            let id = |field: &str| {
                let (id, n) = field.rsplit_once(' ')?;
                Some((id.to_owned(), n.parse().ok()?))
            };
            let of_id = fields.map(id).collect::<Option<BTreeMap<String, u32>>>()?;
            taught.of_name.insert(name.to_owned(), Uses { of_id, n });
        }
        Some(taught)
    }

    /// The names that usually mean one concept, which the knowledge base has under the same id.
    pub fn on<'a>(&'a self, view: KbView<'a>) -> impl Iterator<Item = TaughtName<'a>> {
        self.of_name.iter().filter_map(move |(name, uses)| {
            let (id, n) = uses.of_id.iter().max_by_key(|(_, n)| **n)?;
            let concept = view.kb.find(id).filter(|concept| view.has(*concept))?;
            let share = *n as f32 / (uses.n as f32 + OTHER);
            let (first, preferred) = (view.kb.names(concept).next()?, view.kb.preferred_name(concept));
            (share >= MIN_SHARE).then_some(TaughtName { name, concept: (concept, first), preferred, share })
        })
    }
}

/// The letters and digits that a text begins with, or else its first character, in lower case.
fn first_of(text: &str) -> String {
    let word: String = text.chars().take_while(|letter| letter.is_alphanumeric()).take(MAX_LENGTH).map(lower).collect();
    if word.is_empty() { text.chars().take(1).collect() } else { word }
}

/// Whether a text begins with a name, at whose end a word ends.
fn is_at(text: &str, name: &str) -> bool {
    let Some(written) = text.get(..name.len()) else { return false };
    let is_same = written == name || {
        let (mut one, mut other) = (written.chars(), name.chars());
        is_lower(name) && one.next().map(lower) == other.next() && one.as_str() == other.as_str()
    };
    let (last, next) = (name.chars().next_back(), text[name.len()..].chars().next());
    is_same && last.is_some_and(|last| can_end(last, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use canonym_core::corpus::Annotation;
    use canonym_core::kb::format::Meta;
    use canonym_core::kb::record::{ConceptRecord, NameRecord};
    use canonym_core::kb::{KnowledgeBase, KnowledgeBaseBuilder, Scope};
    use canonym_core::text::{Document, Span};

    fn document(text: &str, mentions: &[(&str, &str)]) -> AnnotatedDocument {
        let annotation = |(mention, id): &(&str, &str)| {
            let start = text.find(mention).unwrap() as u32;
            let spans = vec![Span { start, end: start + mention.len() as u32 }];
            Annotation { spans, ids: vec![(*id).to_owned()], ..Annotation::default() }
        };
        AnnotatedDocument {
            document: Document { text: text.to_owned(), ..Document::default() },
            annotations: mentions.iter().map(annotation).collect(),
            ..AnnotatedDocument::default()
        }
    }

    #[test]
    fn names_that_mean_one_concept_are_taught() {
        let documents = [
            document("Lame since May, V+ twice. Low fat diet.", &[("Lame", "X:1"), ("V+", "X:2"), ("fat", "X:3")]),
            document("Not lame. No fat. Too fat? Fat.", &[("lame", "X:1")]),
        ];
        let taught = Taught::of(&documents, &[]);
        assert_eq!(taught.to_lines(), "V+\t1\tX:2 1\nfat\t4\tX:3 1\nlame\t2\tX:1 2\n");
        assert_eq!(Taught::from_lines(&taught.to_lines()), Some(taught.clone()));
        assert_eq!(Taught::from_lines("a\tb"), None);
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, name) in [("X:1", "Lameness"), ("X:2", "Vomiting"), ("X:3", "Obesity")] {
            let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: id.to_owned(), names, ..ConceptRecord::default() }).unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        let found: Vec<(&str, &str)> =
            taught.on(KbView { kb: &kb, subset: None }).map(|one| (one.name, one.preferred)).collect();
        assert_eq!(found, [("V+", "Vomiting"), ("lame", "Lameness")]);
        // What an incomplete document leaves unannotated does not count.
        assert_eq!(Taught::of(&[], &documents).to_lines(), "V+\t1\tX:2 1\nfat\t1\tX:3 1\nlame\t2\tX:1 2\n");
    }
}
