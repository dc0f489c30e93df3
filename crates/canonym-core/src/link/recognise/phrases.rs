//! Phrases of a text that stand for names of a short list: `apixaban 5 mg` for Apixaban 5 mg tablets.

use super::scan::{Tier, WindowMatch, Word};
use super::{DictionaryAnnotator, DictionaryMatch};
use crate::link::short_list::Phrase;

/// Adds the phrases that lie in no match.
pub(super) fn add(annotator: &DictionaryAnnotator, text: &str, words: &[Word], matched: &mut Vec<DictionaryMatch>) {
    let Some(list) = &annotator.short_list else { return };
    let window = |phrase: Phrase| {
        let (first, last) = (phrase.first, phrase.last);
        let n_counted = words[first..=last].iter().filter(|word| !word.hashes.linking).count();
        let forms = vec![(annotator.kb.form_of(phrase.name), Tier::Root)];
        WindowMatch { first, last, n_counted, forms, expanded: false }
    };
    let found = list.phrases(text, words).into_iter().map(window);
    let new = found.filter_map(|found| annotator.match_of(text, words, &found));
    let is_new = |found: &DictionaryMatch| {
        !matched.iter().any(|known| known.span.start <= found.span.start && found.span.end <= known.span.end)
    };
    let new: Vec<DictionaryMatch> = new.filter(is_new).collect();
    matched.extend(new);
}
