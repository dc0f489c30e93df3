//! The context of a case, and selection of examples.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Case, ErrorClass, Example};
use crate::text::Span;
use crate::text::normalise::fold;
use crate::text::offsets::OffsetMap;
use crate::text::sentences::sentences;

/// Maximum number of code points of context on either side.
const MAX_MARGIN: usize = 240;

/// Maximum number of code points between the first and the last span of a case; the rest is cut off.
const MAX_HULL: usize = 600;

/// An excerpt of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// Its start in code points.
    pub start: u32,
    /// Its text.
    pub text: String,
    /// Whether it starts within a sentence.
    pub cut_before: bool,
    /// Whether it ends within a sentence.
    pub cut_after: bool,
}

/// The first of each group of equal cases, largest groups first, up to `n` per class.
pub(super) fn examples(cases: &[Case], texts: &[String], rows: &HashMap<&str, usize>, n: usize) -> Vec<Example> {
    type Key<'a> = (ErrorClass, String, Option<&'a [String]>, Option<&'a [String]>);
    let mut kinds: HashMap<Key<'_>, (u64, usize)> = HashMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| case.class != ErrorClass::Correct) {
        let text = case.gold.as_ref().or(case.predicted.as_ref()).map_or_else(String::new, |side| fold(&side.text));
        let key = (
            case.class,
            text,
            case.gold.as_ref().map(|side| side.ids.as_slice()),
            case.predicted.as_ref().map(|side| side.ids.as_slice()),
        );
        kinds.entry(key).or_insert((0, index)).0 += 1;
    }
    let mut chosen: Vec<(ErrorClass, u64, usize)> =
        kinds.into_iter().map(|((class, ..), (n_alike, index))| (class, n_alike, index)).collect();
    chosen.sort_by_key(|&(class, n_alike, index)| (class, u64::MAX - n_alike, index));
    let mut n_of_class: HashMap<ErrorClass, usize> = HashMap::new();
    chosen.retain(|(class, ..)| {
        let taken = n_of_class.entry(*class).or_default();
        *taken += 1;
        *taken <= n
    });
    let mut contexts = Contexts::default();
    let mut order: Vec<usize> = (0..chosen.len()).collect();
    // Sorted by document, so that each document is split into sentences once.
    order.sort_by_key(|&row| chosen[row].2);
    let mut found: Vec<Option<Example>> = vec![None; chosen.len()];
    for row in order {
        let (_, n_alike, index) = chosen[row];
        let document = rows.get(cases[index].document.as_str()).copied();
        let text = document.and_then(|row| texts.get(row)).map_or("", String::as_str);
        let context = contexts.around(document, text, &cases[index]);
        found[row] = Some(Example { case: index, n_alike, context });
    }
    found.into_iter().flatten().collect()
}

/// The sentences of the most recent document.
#[derive(Default)]
struct Contexts {
    document: Option<usize>,
    sentences: Vec<Span>,
}

impl Contexts {
    fn around(&mut self, document: Option<usize>, text: &str, case: &Case) -> Excerpt {
        if document.is_none() || self.document != document {
            self.document = document;
            self.sentences = sentences(text);
        }
        let points = OffsetMap::new(text);
        let spans = [&case.gold, &case.predicted].into_iter().flatten().flat_map(|side| &side.spans);
        let (first, last) = spans.fold((u32::MAX, 0), |(first, last), &(start, end)| (first.min(start), last.max(end)));
        let first = (first as usize).min(points.n_chars());
        let last = (last as usize).min(points.n_chars()).max(first).min(first + MAX_HULL);
        let byte = |point: usize| points.char_to_byte(point).unwrap_or(text.len());
        let point = |byte: u32| points.byte_to_char(byte as usize).unwrap_or(points.n_chars());
        let n_before = self.sentences.partition_point(|sentence| sentence.end as usize <= byte(first));
        let n_up_to = self.sentences.partition_point(|sentence| (sentence.start as usize) < byte(last));
        let start = self.sentences.get(n_before).map_or(first, |sentence| point(sentence.start).min(first));
        let end = n_up_to.checked_sub(1).and_then(|row| self.sentences.get(row));
        let end = end.map_or(last, |sentence| point(sentence.end).max(last));
        let (from, to) = (start.max(first.saturating_sub(MAX_MARGIN)), end.min(last + MAX_MARGIN));
        Excerpt {
            start: from as u32,
            text: text[byte(from)..byte(to)].to_owned(),
            cut_before: from > start,
            cut_after: to < end,
        }
    }
}
