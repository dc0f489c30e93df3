//! Splits texts into windows for the text encoder, and maps wordpieces back to bytes.
//!
//! Long texts are read in overlapping windows that end at sentence boundaries; a mention is taken from the window with the most context
//! around it. The published protocol, which ends a window after every eighth mention, is available for comparison.

use std::ops::Range;

use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::models::cross_encoder::context::{ENTITY, MarkedWindow, marked_window, trainx_window};
use crate::tokenizer::{Token, Tokenizer};

/// How texts are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowConfig {
    /// Maximum number of wordpieces of a window, including `[CLS]` and `[SEP]`.
    #[serde(alias = "pieces")]
    pub wordpieces: usize,
    /// Overlap with the previous window, in wordpieces of whole sentences; at most half a window.
    pub overlap: usize,
    /// Number of mentions after which a window ends, as published; requires given mentions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mentions: Option<usize>,
    /// Whether each mention gets its own window, with markers around it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub marked: bool,
    /// How a marked window is cut out of the text.
    #[serde(skip_serializing_if = "Crop::is_default")]
    pub crop: Crop,
    /// Whether marked windows and described concepts are filled up with `[PAD]`, to which all wordpieces attend, as without an attention mask.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub padded: bool,
}

/// How a marked window is cut out of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crop {
    /// The mention in the middle; if one side of the context is short, the other gets the remaining space.
    #[default]
    Balanced,
    /// As published for TrainX: the same number of wordpieces on both sides, see [`trainx_window`].
    Trainx,
}

impl Crop {
    fn is_default(&self) -> bool {
        *self == Crop::default()
    }
}

impl Default for WindowConfig {
    fn default() -> WindowConfig {
        WindowConfig {
            wordpieces: 512,
            overlap: 128,
            mentions: None,
            marked: false,
            crop: Crop::default(),
            padded: false,
        }
    }
}

/// The wordpiece that fills windows.
const PAD: &str = "[PAD]";

/// A text split into windows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Windows {
    /// `input_ids` of each window, from `[CLS]` to `[SEP]`.
    pub rows: Vec<Vec<u32>>,
    /// Range of wordpieces of each window; the first is at position 1. Empty for marked windows.
    pub ranges: Vec<Range<usize>>,
    /// Wordpieces of the text. Empty for marked windows.
    pub tokens: Vec<Token>,
    /// Position of each mention; `None` if it has no wordpieces. Always set for marked windows.
    pub places: Vec<Option<InWindow>>,
}

/// A mention in a window, both ends included; positions count from 0, which is `[CLS]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InWindow {
    /// Index of the window.
    pub window: usize,
    /// Position of its first wordpiece.
    pub first: usize,
    /// Position of its last wordpiece.
    pub last: usize,
}

/// Splits texts into windows.
#[derive(Debug, Clone, PartialEq)]
pub struct Windower {
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// Window settings.
    pub config: WindowConfig,
    // Private: ids of `[CLS]` and `[SEP]`.
    first: u32,
    behind: u32,
}

impl Windower {
    /// Creates a windower; the vocabulary must contain `[CLS]` and `[SEP]`.
    pub fn new(tokenizer: Tokenizer, config: WindowConfig) -> Result<Windower> {
        if config.wordpieces < 8 || config.mentions == Some(0) {
            let message =
                format!("invalid windows: {} wordpieces and {:?} mentions", config.wordpieces, config.mentions);
            let hint = "a window needs at least 8 wordpieces (typically 512) and 1 mention (typically 8)";
            return Err(Error::config(message).with_hint(hint));
        }
        let (first, behind) = tokenizer.ends()?;
        Ok(Windower { tokenizer, config, first, behind })
    }

    /// `input_ids` of a name, truncated to `n_wordpieces`.
    pub fn name(&self, name: &str, n_wordpieces: usize) -> Vec<u32> {
        let mut rows = vec![self.first];
        rows.extend(self.tokenizer.input_ids(name).into_iter().take(n_wordpieces.saturating_sub(2)));
        rows.push(self.behind);
        rows
    }

    /// `input_ids` of a concept as published for TrainX, at most as long as a window: name, [`ENTITY`], definition.
    pub fn described(&self, name: &str, definition: &str) -> Vec<u32> {
        let mut rows = vec![self.first];
        rows.extend(self.tokenizer.input_ids(name));
        rows.extend(self.tokenizer.find(ENTITY));
        rows.extend(self.tokenizer.input_ids(definition));
        rows.truncate(self.config.wordpieces - 1);
        rows.push(self.behind);
        self.fill(&mut rows);
        rows
    }

    fn fill(&self, rows: &mut Vec<u32>) {
        if self.config.padded {
            rows.resize(self.config.wordpieces.max(rows.len()), self.tokenizer.find(PAD).unwrap_or_default());
        }
    }

    /// Windows of a text with given mentions, whose boundaries are wordpiece boundaries.
    pub fn with_mentions(&self, document: &Analysis<'_>, mentions: &[Span]) -> Result<Windows> {
        if self.config.marked {
            return self.marked(document.text, mentions);
        }
        let tokens = divide(&self.tokenizer, document.text, mentions);
        let inside: Vec<Option<Range<usize>>> = mentions.iter().map(|span| tokens_of(&tokens, *span)).collect();
        let ranges = match self.config.mentions {
            Some(max_wordpieces) => {
                let mut known: Vec<Range<usize>> = inside.iter().flatten().cloned().collect();
                known.sort_by_key(|range| (range.start, range.end));
                chunks(tokens.len(), &known, self.config.wordpieces - 2, max_wordpieces)
            }
            None => self.ranges(document, &tokens),
        };
        let place = |range: &Option<Range<usize>>| range.as_ref().and_then(|range| home(range, &ranges, tokens.len()));
        let places = inside.iter().map(place).collect();
        Ok(self.windows(tokens, ranges, places))
    }

    /// Windows of a text for mention detection. `borders` become wordpiece boundaries; it is empty unless gold boundaries may leak, as in
    /// the published evaluation.
    pub fn without_mentions(&self, document: &Analysis<'_>, borders: &[Span]) -> Windows {
        let tokens = divide(&self.tokenizer, document.text, borders);
        let ranges = self.ranges(document, &tokens);
        self.windows(tokens, ranges, Vec::new())
    }

    fn windows(&self, tokens: Vec<Token>, ranges: Vec<Range<usize>>, places: Vec<Option<InWindow>>) -> Windows {
        let rows = |range: &Range<usize>| {
            let inner = tokens[range.clone()].iter().map(|piece| piece.row);
            std::iter::once(self.first).chain(inner).chain([self.behind]).collect()
        };
        Windows { rows: ranges.iter().map(rows).collect(), ranges, tokens, places }
    }

    fn marked(&self, text: &str, mentions: &[Span]) -> Result<Windows> {
        let mut windows = Windows::default();
        for span in mentions {
            let window = match self.config.crop {
                Crop::Balanced => marked_window,
                Crop::Trainx => trainx_window,
            };
            let MarkedWindow { mut rows, first, last } =
                window(&self.tokenizer, text, span.start as usize..span.end as usize, self.config.wordpieces)?;
            self.fill(&mut rows);
            windows.places.push(Some(InWindow { window: windows.rows.len(), first, last }));
            windows.rows.push(rows);
        }
        Ok(windows)
    }

    /// Overlapping ranges of whole sentences.
    fn ranges(&self, document: &Analysis<'_>, tokens: &[Token]) -> Vec<Range<usize>> {
        let max_wordpieces = self.config.wordpieces - 2;
        if tokens.len() <= max_wordpieces {
            return std::iter::once(0..tokens.len()).filter(|range| !range.is_empty()).collect();
        }
        let overlap = self.config.overlap.min(max_wordpieces / 2);
        let units = units(document.sentences(), tokens, max_wordpieces - overlap);
        let mut ranges = Vec::new();
        let mut first = 0;
        loop {
            let start = units[first].start;
            let next = units[first..].partition_point(|unit| unit.end - start <= max_wordpieces) + first;
            let end = units[next - 1].end;
            ranges.push(start..end);
            if next == units.len() {
                return ranges;
            }
            // A unit is at most as long as a window without the overlap, so every window contains a new unit.
            first = units[..next].partition_point(|unit| unit.start + overlap < end).max(first + 1);
        }
    }
}

/// Sentences as ranges of wordpieces, cut at `most` wordpieces.
fn units(sentences: &[Span], tokens: &[Token], max_wordpieces: usize) -> Vec<Range<usize>> {
    let mut units = Vec::new();
    let mut start = 0;
    for sentence in sentences {
        let end = start + tokens[start..].partition_point(|piece| piece.start < sentence.end as usize);
        while start < end {
            let cut = end.min(start + max_wordpieces.max(1));
            units.push(start..cut);
            start = cut;
        }
    }
    while start < tokens.len() {
        let cut = tokens.len().min(start + max_wordpieces.max(1));
        units.push(start..cut);
        start = cut;
    }
    units
}

/// Wordpieces of a text, split at mention boundaries.
pub fn divide(tokenizer: &Tokenizer, text: &str, mentions: &[Span]) -> Vec<Token> {
    let mut borders: Vec<usize> = mentions.iter().flat_map(|span| [span.start as usize, span.end as usize]).collect();
    borders.push(text.len());
    borders.sort_unstable();
    borders.dedup();
    let mut divided = Vec::new();
    let mut start = 0;
    for border in borders {
        let moved = |piece: Token| Token { row: piece.row, start: piece.start + start, end: piece.end + start };
        divided.extend(tokenizer.tokens(&text[start..border]).into_iter().map(moved));
        start = border;
    }
    divided
}

/// The range of wordpieces that overlap a span, if any.
pub fn tokens_of(tokens: &[Token], span: Span) -> Option<Range<usize>> {
    let start = tokens.partition_point(|piece| piece.end <= span.start as usize);
    let end = tokens.partition_point(|piece| piece.start < span.end as usize);
    (start < end).then_some(start..end)
}

/// The window in which the shorter side of the context of a mention is longest; mentions longer than a window are truncated.
pub(crate) fn home(mention: &Range<usize>, windows: &[Range<usize>], n_wordpieces: usize) -> Option<InWindow> {
    let around = |window: &Range<usize>| {
        let inside = mention.end.min(window.end).saturating_sub(mention.start.max(window.start));
        // Context that ends with the text counts as complete.
        let left = if window.start == 0 { n_wordpieces } else { mention.start.saturating_sub(window.start) };
        let right = if window.end == n_wordpieces { n_wordpieces } else { window.end.saturating_sub(mention.end) };
        (inside, left.min(right))
    };
    // Starts and ends of windows both increase, so windows that overlap the mention are contiguous.
    let from = windows.partition_point(|window| window.end <= mention.start);
    let to = windows.partition_point(|window| window.start < mention.end);
    // The first one wins a tie.
    let near = windows.iter().enumerate().take(to).skip(from);
    let (at, window) = near.rev().max_by_key(|(_, window)| around(window))?;
    let (first, last) = (mention.start.max(window.start), mention.end.min(window.end));
    (first < last).then(|| InWindow { window: at, first: first - window.start + 1, last: last - window.start })
}

/// Windows of the published protocol: a window ends after its `n_mentions`-th mention, or after the last one that fits. The remaining text
/// goes to the last window as far as it fits. If the text between two mentions is longer than a window, it is cut before the next mention,
/// so that no mention is lost.
fn chunks(
    n_wordpieces: usize,
    mentions: &[Range<usize>],
    max_wordpieces: usize,
    n_mentions: usize,
) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut end = 0;
    let mut n = 0;
    for mention in mentions {
        if n > 0 && mention.end > end && (n == n_mentions || mention.end - start > max_wordpieces) {
            ranges.push(start..end);
            // A mention that overlaps the previous one is kept whole.
            start = end.min(mention.start);
            n = 0;
        }
        while mention.end - start > max_wordpieces && mention.start > start {
            let cut = (start + max_wordpieces).min(mention.start);
            ranges.push(start..cut);
            start = cut;
        }
        end = end.max(mention.end).min(start + max_wordpieces);
        n += 1;
    }
    while start < n_wordpieces {
        let cut = n_wordpieces.min(start + max_wordpieces);
        ranges.push(start..cut);
        start = cut;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use canonym_core::eval::bootstrap::SplitMix64;

    fn windower(config: WindowConfig) -> Windower {
        let names = ["[UNK]", "[CLS]", "[SEP]", "[Ms]", "[Me]", "a", "b", ".", "##a", "##b", "A", "B"];
        Windower::new(Tokenizer::of(names.map(str::to_owned).to_vec()).unwrap(), config).unwrap()
    }

    fn span(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// A text of sentences with 4 wordpieces each: `a b a .`.
    fn text(n_sentences: usize) -> String {
        "A b a. ".repeat(n_sentences)
    }

    #[test]
    fn a_short_text_is_one_window_whatever_its_mentions() {
        let windower = windower(WindowConfig::default());
        let made = windower.with_mentions(&Analysis::of_text("ab b"), &[span(1, 2), span(3, 4)]).unwrap();
        // The mention boundary splits the word.
        assert_eq!(made.rows, [[1, 5, 6, 6, 2]]);
        assert_eq!(made.places[0], Some(InWindow { window: 0, first: 2, last: 2 }));
        assert_eq!(made.places[1], Some(InWindow { window: 0, first: 3, last: 3 }));
        assert_eq!(windower.without_mentions(&Analysis::of_text("ab b"), &[]).rows, [[1, 5, 9, 6, 2]]);
        assert_eq!(windower.with_mentions(&Analysis::of_text("a  b"), &[span(1, 2)]).unwrap().places, [None]);
        assert_eq!(windower.without_mentions(&Analysis::of_text(" "), &[]), Windows::default());
        assert_eq!(windower.name("ab a b", 4), [1, 5, 9, 2]);
    }

    #[test]
    fn windows_of_long_texts_end_with_sentences_cover_all_and_overlap() {
        let windower = windower(WindowConfig { wordpieces: 22, overlap: 8, ..WindowConfig::default() });
        let made = windower.without_mentions(&Analysis::of_text(&text(20)), &[]);
        assert_eq!(made.tokens.len(), 80);
        assert_eq!(made.ranges[0], 0..20);
        assert_eq!(made.ranges[1], 12..32);
        assert_eq!(made.ranges.last().unwrap().end, 80);
        for pair in made.ranges.windows(2) {
            assert!(pair[0].start < pair[1].start && pair[1].start <= pair[0].end && pair[0].end < pair[1].end);
        }
        // A sentence that never ends is cut.
        let endless = windower.without_mentions(&Analysis::of_text(&"a ".repeat(100)), &[]);
        assert!(endless.ranges.iter().all(|range| range.len() <= 20));
        assert_eq!(endless.ranges.last().unwrap().end, 100);
    }

    #[test]
    fn a_mention_is_read_where_most_stands_around_it() {
        let windows = [0..20, 12..32, 24..40];
        let at = |range: Range<usize>| home(&range, &windows, 40).unwrap();
        assert_eq!(at(0..2), InWindow { window: 0, first: 1, last: 2 });
        assert_eq!(at(13..14).window, 0);
        assert_eq!(at(18..19).window, 1);
        assert_eq!(at(30..31).window, 2);
        // Longer than any window: as much as fits.
        assert_eq!(at(5..35), InWindow { window: 1, first: 1, last: 20 });
        assert_eq!(home(&(0..1), &[], 0), None);
    }

    #[test]
    fn windows_of_the_published_protocol_end_with_mentions_and_lose_none() {
        let mentions = [2..4, 5..6, 9..12, 12..13];
        assert_eq!(chunks(20, &mentions, 100, 2), [0..6, 6..20]);
        assert_eq!(chunks(20, &mentions, 10, 8), [0..6, 6..16, 16..20]);
        assert_eq!(chunks(20, &mentions, 100, 8), vec![0..20; 1]);
        let far = vec![15..18; 1];
        assert_eq!(chunks(20, &far, 10, 8), [0..10, 10..20]);
        assert_eq!(chunks(22, &far, 10, 8), [0..10, 10..20, 20..22]);
        assert!(chunks(0, &[], 10, 8).is_empty());
        let mut rng = SplitMix64::new(3);
        for _ in 0..300 {
            let n = rng.below(9);
            let mut mention = |_| {
                let at = rng.below(60);
                at..at + 1 + rng.below(5)
            };
            let mut mentions: Vec<Range<usize>> = (0..n).map(&mut mention).collect();
            mentions.sort_by_key(|range| (range.start, range.end));
            let ranges = chunks(70, &mentions, 12, 3);
            assert!(ranges.iter().all(|range| !range.is_empty() && range.len() <= 12), "{mentions:?} {ranges:?}");
            for mention in &mentions {
                let whole = ranges.iter().any(|range| range.start <= mention.start && mention.end <= range.end);
                assert!(whole, "{mention:?} {mentions:?} {ranges:?}");
            }
        }
    }

    #[test]
    fn published_windows_and_descriptions_are_filled_where_pads_are_attended() {
        let names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[Ms]", "[Me]", "[ENT]", "a", "b"];
        let config = WindowConfig { wordpieces: 8, marked: true, crop: Crop::Trainx, ..WindowConfig::default() };
        let tokenizer = Tokenizer::of(names.map(str::to_owned).to_vec()).unwrap();
        let rows = |config: WindowConfig| {
            let windower = Windower::new(tokenizer.clone(), config).unwrap();
            let window = windower.with_mentions(&Analysis::of_text("a b"), &[span(2, 3)]).unwrap().rows.remove(0);
            [window, windower.described("a", "b"), windower.described("b", "a a a a a a")]
        };
        let expected = [vec![2, 7, 4, 8, 5, 3], vec![2, 7, 6, 8, 3], vec![2, 8, 6, 7, 7, 7, 7, 3]];
        assert_eq!(rows(config), expected);
        let filled = expected.map(|mut rows| {
            rows.resize(8, 0);
            rows
        });
        assert_eq!(rows(WindowConfig { padded: true, ..config }), filled);
    }

    #[test]
    fn marked_windows_are_one_a_mention() {
        let windower = windower(WindowConfig { wordpieces: 8, marked: true, ..WindowConfig::default() });
        let made = windower.with_mentions(&Analysis::of_text("a b a b a b a b"), &[span(6, 7), span(0, 1)]).unwrap();
        assert_eq!(made.rows.len(), 2);
        assert!(made.rows.iter().all(|rows| rows.len() <= 8 && rows.contains(&3) && rows.contains(&4)));
        assert_eq!(made.places.iter().map(|place| place.unwrap().window).collect::<Vec<_>>(), [0, 1]);
    }
}
