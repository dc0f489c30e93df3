//! Substances that a patient is said not to tolerate.

use crate::text::Span;
use crate::text::sentences::sentences;
use crate::text::tokens::tokenize;

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

/// The allergens of a document.
#[derive(Debug, Clone)]
pub struct Allergens {
    spans: Vec<Span>,
}

impl Allergens {
    /// Finds the parts of a text that list allergens.
    pub fn new(text: &str) -> Allergens {
        let tokens = tokenize(text);
        let mut spans = Vec::new();
        for sentence in sentences(text) {
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
                    let until = words[at + 1..].iter().find(|(_, word)| ENDS.contains(&word.as_str()));
                    spans.push(Span { start: span.end, end: until.map_or(sentence.end, |(span, _)| span.start) });
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
        Allergens { spans }
    }

    /// Whether a mention lies in such a part.
    pub fn contains(&self, mention: &[Span]) -> bool {
        let is_inside = |span: &Span| self.spans.iter().any(|part| part.start <= span.start && span.end <= part.end);
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

    fn is_allergen(text: &str, what: &str) -> bool {
        let start = text.find(what).unwrap();
        Allergens::new(text).contains(&[Span::new(start, start + what.len())])
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
