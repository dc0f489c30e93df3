//! Splits windows and names into parts of similar size for parallel encoding.

use super::{Target, TrainingText};
use crate::models::bert::Sequences;
use crate::models::dual_encoder::WindowSpan;

/// Wordpieces per part.
const PART: usize = 512;

/// Sequences that are encoded together.
#[derive(Debug)]
pub(super) enum Part {
    /// Windows of texts, with their mentions.
    Windows(Sequences, Vec<WindowSpan>),
    /// Names of concepts.
    Names(Sequences),
}

/// Splits windows into parts of about [`PART`] wordpieces.
pub(super) fn window_parts<'a>(texts: impl Iterator<Item = &'a TrainingText>) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut windows, mut mention_spans) = (Sequences::default(), Vec::new());
    for text in texts {
        if !windows.is_empty() && windows.segments().n_rows() + text.rows.len() > PART {
            parts.push(Part::Windows(std::mem::take(&mut windows), std::mem::take(&mut mention_spans)));
        }
        let window = windows.segments().n_rows();
        let place = |target: &Target| WindowSpan { window, first: window + target.first, last: window + target.last };
        mention_spans.extend(text.mentions.iter().map(place));
        windows.push(&[&text.rows]);
    }
    if !windows.is_empty() {
        parts.push(Part::Windows(windows, mention_spans));
    }
    parts
}

/// Splits names into parts of about [`PART`] wordpieces.
pub(super) fn name_parts<'a>(names: impl Iterator<Item = &'a [u32]>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut sequences = Sequences::default();
    for name in names {
        if !sequences.is_empty() && sequences.segments().n_rows() + name.len() > PART {
            parts.push(Part::Names(std::mem::take(&mut sequences)));
        }
        sequences.push(&[name]);
    }
    if !sequences.is_empty() {
        parts.push(Part::Names(sequences));
    }
    parts
}
