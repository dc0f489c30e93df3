//! Substances that a patient is said not to tolerate.

use crate::text::Span;
use crate::text::analysis::Analysis;

/// Words before a list of allergens: `allergic to`, `intolerance of`.
const STATES: [&str; 10] = [
    "allergic",
    "allergy",
    "allergies",
    "anaphylaxis",
    "hypersensitive",
    "hypersensitivity",
    "intolerance",
    "intolerances",
    "intolerant",
    "reaction",
];

/// Words after such a state, or the colon of a heading.
const TO: [&str; 5] = ["to", "of", "include", "includes", "are"];

/// Words after an allergen: `penicillin allergy`, `codeine and latex intolerance`.
const AFTER: [&str; 8] = [
    "allergy",
    "allergies",
    "anaphylaxis",
    "hypersensitivity",
    "intolerance",
    "intolerances",
    "allergic",
    "intolerant",
];

/// Maximum number of words between a state and an allergen.
const MAX_BETWEEN: usize = 8;

/// Maximum number of words in a list of allergens.
const MAX_LIST: usize = 60;

/// The allergens of a document.
#[derive(Debug, Clone)]
pub struct Allergens {
    /// Sorted and disjoint.
    spans: Vec<Span>,
}

impl Allergens {
    /// Finds the parts of a text that list allergens.
    pub fn new(document: &Analysis<'_>) -> Allergens {
        let (text, tokens) = (document.text, document.tokens());
        let mut spans = Vec::new();
        for sentence in document.sentences() {
            let first = tokens.partition_point(|token| token.span.start < sentence.start);
            let end = tokens.partition_point(|token| token.span.end <= sentence.end);
            let words: Vec<(Span, String)> = tokens[first..end.max(first)]
                .iter()
                .map(|token| (token.span, token.span.of(text).to_lowercase()))
                .collect();
            for (at, (span, word)) in words.iter().enumerate() {
                let word = word.as_str();
                let next = words.get(at + 1);
                let is_heading = text[span.end as usize..].trim_start_matches(' ').starts_with(':');
                if STATES.contains(&word) && (is_heading || next.is_some_and(|(_, next)| TO.contains(&next.as_str()))) {
                    // Only so many words, so that long texts take linear time.
                    let list = &words[at + 1..words.len().min(at + 1 + MAX_LIST)];
                    let ends = list.iter().position(|(_, word)| ENDS.contains(&word.as_str()));
                    let listed = &list[..ends.unwrap_or(list.len())];
                    spans.extend(listed.last().map(|(last, _)| Span { start: span.end, end: last.end }));
                }
                if AFTER.contains(&word) {
                    let before = words[..at].iter().rev().take(MAX_BETWEEN);
                    let listed = before
                        .take_while(|(_, word)| !ENDS.contains(&word.as_str()) && !BREAKS.contains(&word.as_str()));
                    if let Some((first, _)) = listed.last() {
                        spans.push(Span { start: first.start, end: span.start });
                    }
                }
            }
        }
        spans.sort_unstable();
        spans.dedup_by(|next, span| {
            let overlaps = next.start <= span.end;
            span.end = if overlaps { span.end.max(next.end) } else { span.end };
            overlaps
        });
        Allergens { spans }
    }

    /// Whether a mention lies in such a part.
    pub fn contains(&self, mention: &[Span]) -> bool {
        let is_inside = |span: &Span| {
            let next = self.spans.partition_point(|part| part.start <= span.start);
            next.checked_sub(1).is_some_and(|at| span.end <= self.spans[at].end)
        };
        mention.iter().all(is_inside)
    }
}

/// Words that end a list of allergens.
const ENDS: [&str; 9] = ["but", "so", "therefore", "takes", "taking", "took", "given", "started", "tolerates"];

/// Words that stand between other words and a state: `cetirizine for allergies`, `prednisone because of an allergic reaction`.
const BREAKS: [&str; 14] =
    ["for", "of", "because", "with", "has", "had", "have", "is", "was", "no", "causing", "caused", "after", "on"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_linear_time() {
        for part in ["allergic to ", "allergies: latex, ", "penicillin allergy "] {
            let text = part.repeat(100_000);
            assert!(Allergens::new(&Analysis::of_text(&text)).spans.is_sorted());
        }
    }

    fn is_allergen(text: &str, what: &str) -> bool {
        let start = text.find(what).unwrap();
        Allergens::new(&Analysis::of_text(text)).contains(&[Span::new(start, start + what.len())])
    }

    #[test]
    fn substances_that_are_not_tolerated_are_found() {
        for (text, what) in [
            ("Allergic to penicillin and codeine.", "codeine"),
            ("Penicillin allergy.", "Penicillin"),
            ("Intolerance to codeine.", "codeine"),
            ("Allergies: aspirin, latex", "latex"),
            ("ALLERGIES: sulfa", "sulfa"),
            ("Known penicillin and sulfa allergies; takes aspirin.", "penicillin"),
            ("She had a severe reaction to contrast.", "contrast"),
        ] {
            assert!(is_allergen(text, what), "{text}");
        }
        for (text, what) in [
            ("Takes cetirizine for allergies.", "cetirizine"),
            ("Allergic to penicillin, so takes clindamycin.", "clindamycin"),
            ("Takes aspirin. No known allergies.", "aspirin"),
            ("He was given prednisone because of an allergic reaction.", "prednisone"),
        ] {
            assert!(!is_allergen(text, what), "{text}");
        }
    }
}
