//! Names that a coordination takes apart: `breast and ovarian cancer` speaks of breast cancer, too.

use std::collections::HashSet;

use super::scan::{Found, Tier, Word, lookup};
use crate::kb::subset::View;
use crate::text::Span;
use crate::text::composite::{Part, coordinations, split_composite};
use crate::text::sentences::sentences;

/// A discontinuous name: where its pieces stand, its words, and what it was found to be.
pub struct Coordinated {
    /// The pieces, in text order.
    pub spans: Vec<Span>,
    /// The words of the pieces, one after the other.
    pub words: Vec<Word>,
    /// The name; its words are those above.
    pub found: Found,
}

/// The discontinuous names of a text, for readings of which every part is a name.
pub fn coordinated(view: View<'_>, text: &str, words: &[Word]) -> Vec<Coordinated> {
    let mut all: Vec<Coordinated> = Vec::new();
    let mut seen: HashSet<Vec<Span>> = HashSet::new();
    for sentence in sentences(text) {
        for window in coordinations(text, sentence) {
            if !all_known(text, words, window) {
                continue;
            }
            // The first reading whose parts are all names is the best one.
            let read = |reading: Vec<Part>| -> Option<Vec<Coordinated>> {
                reading.into_iter().map(|part| name_of(view, text, words, part.spans)).collect()
            };
            let Some(parts) = split_composite(text, window).into_iter().find_map(read) else { continue };
            for part in parts {
                if part.spans.len() > 1 && seen.insert(part.spans.clone()) {
                    all.push(part);
                }
            }
        }
    }
    all
}

/// Whether every word of a window stands in some name; without that no reading can be all names.
fn all_known(text: &str, words: &[Word], window: Span) -> bool {
    let first = words.partition_point(|word| word.token.span.start < window.start);
    let mut inside = words[first..].iter().take_while(|word| word.token.span.end <= window.end);
    inside.all(|word| {
        word.known || word.hashes.linking || JOINING.contains(&word.token.span.of(text).to_ascii_lowercase().as_str())
    })
}

/// Words that join the parts of a coordination.
const JOINING: [&str; 6] = ["and", "or", "both", "either", "neither", "nor"];

fn name_of(view: View<'_>, text: &str, words: &[Word], spans: Vec<Span>) -> Option<Coordinated> {
    let mut own = Vec::new();
    for span in &spans {
        let first = words.partition_point(|word| word.token.span.start < span.start);
        let inside = words[first..].iter().take_while(|word| word.token.span.end <= span.end);
        let before = own.len();
        own.extend(inside.copied());
        // A piece of a word has no hashes of its own: such a reading is left alone.
        let covered = own.get(before).is_some_and(|word| word.token.span.start == span.start)
            && own.last().is_some_and(|word| word.token.span.end == span.end);
        if !covered {
            return None;
        }
    }
    let found = lookup(view, text, &own)?;
    let sure = found.n_counted > 1 || found.forms.iter().any(|(_, tier)| *tier >= Tier::Permuted);
    sure.then_some(Coordinated { spans, words: own, found })
}
