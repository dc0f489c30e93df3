//! Parts of words that conjuncts share: "hypo- and hyperthyroidism", "interleukin-1, -6 and -8".

use super::{Part, is_label, joined};
use crate::text::Span;

/// Prefixes, for ellipsis in which the last word has no hyphen. Sorted.
const PREFIXES: [&str; 46] = [
    "auto", "bi", "cardio", "cerebro", "di", "endo", "epi", "eu", "ex", "extra", "gastro", "hemi", "hepato", "hetero",
    "homo", "hyper", "hypo", "immuno", "infra", "inter", "intra", "macro", "mega", "micro", "mono", "multi", "myo",
    "neo", "neuro", "non", "normo", "oro", "pan", "para", "per", "peri", "poly", "post", "pre", "pro", "sub", "super",
    "supra", "tetra", "trans", "tri",
];

/// "hypo- and hyperthyroidism": the conjuncts before the last are prefixes that share the rest of its first word.
pub(super) fn prefix_ellipsis(text: &str, conjuncts: &[Vec<Span>]) -> Option<Vec<Part>> {
    let (last, prefixes) = conjuncts.split_last()?;
    let mut stems = Vec::new();
    for prefix in prefixes {
        let (&stem, before) = prefix.split_last()?;
        let bare = stem.of(text).strip_suffix(['-', '‐', '‑', '–'])?;
        if bare.is_empty() || (!before.is_empty() && !stems.is_empty()) {
            return None;
        }
        stems.push((before, Span::new(stem.start as usize, stem.start as usize + bare.len())));
    }
    let word = last[0];
    let tail = Span::new(word.start as usize + inner_cut(word.of(text))?, word.end as usize);
    let shared = stems.first()?.0;
    let rest = &last[1..];
    let mut parts: Vec<Part> = Vec::new();
    for (_, stem) in &stems {
        let words = shared.iter().chain([stem, &tail]).chain(rest).copied();
        parts.push(joined(text, words));
    }
    parts.push(joined(text, shared.iter().chain(last).copied()));
    Some(parts)
}

/// "interleukin-1, -6 and -8": the conjuncts after the first are labels that share its words before the hyphen.
pub(super) fn number_ellipsis(text: &str, conjuncts: &[Vec<Span>]) -> Option<Vec<Part>> {
    let (first, others) = conjuncts.split_first()?;
    let (word, before) = first.split_last()?;
    let hyphen = word.of(text).rfind(['-', '‐', '‑'])?;
    let head = Span::new(word.start as usize, word.start as usize + hyphen);
    let label_of = |word: &str| word.trim_start_matches(['-', '‐', '‑']).len();
    let is_label_after = |word: &str| label_of(word) > 0 && is_label(&word[word.len() - label_of(word)..]);
    if head.is_empty() || !is_label_after(&word.of(text)[hyphen..]) {
        return None;
    }
    let mut parts = vec![joined(text, first.iter().copied())];
    for other in others {
        let [label] = other[..] else { return None };
        let written = label.of(text);
        let is_number = written.bytes().all(|byte| byte.is_ascii_digit());
        if !(written.starts_with(['-', '‐', '‑']) && is_label_after(written) || is_number) {
            return None;
        }
        let end = label.end as usize;
        let label = Span::new(end - label_of(written), end);
        parts.push(joined(text, before.iter().copied().chain([head, label])));
    }
    Some(parts)
}

/// Position in a word after which a prefix ellipsis could share the rest.
fn inner_cut(word: &str) -> Option<usize> {
    if let Some(hyphen) = word.find('-') {
        return (hyphen + 1 < word.len()).then_some(hyphen + 1);
    }
    let known = PREFIXES.iter().filter(|prefix| {
        let head = word.get(..prefix.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(prefix)) && word.len() >= prefix.len() + 4
    });
    // Combining forms end in "o": "cardiotoxicity".
    let combining = || word.find('o').filter(|&at| at >= 2 && word.len() >= at + 5).map(|at| at + 1);
    known.map(|prefix| prefix.len()).max().or_else(combining)
}
