//! Input of a mention in context: `[CLS] left [Ms] mention [Me] right [SEP]`.
//!
//! Used by the single-mention dual encoder (Bhowmik et al. 2021) and by cross-encoders (Logeswaran et al. 2019). Left context, mention and
//! right context are tokenised separately, so mention boundaries are wordpiece boundaries. The two markers are in the vocabulary;
//! [`add_marks`] appends them if a checkpoint lacks them.
//!
//! ```
//! use canonym_neural::models::cross_encoder::context::marked_window;
//! use canonym_neural::tokenizer::Tokenizer;
//!
//! let tokenizer = Tokenizer::from_lines("[UNK]\n[CLS]\n[SEP]\n[Ms]\n[Me]\nacute\nliver\nfailure").unwrap();
//! let window = marked_window(&tokenizer, "acute liver failure", 6..11, 128).unwrap();
//! assert_eq!((window.rows.as_slice(), window.first, window.last), ([1, 5, 3, 6, 4, 7, 2].as_slice(), 3, 3));
//! ```

use std::ops::Range;

use canonym_core::{Error, Result};

use crate::models::bert::{BertConfig, DEVIATION};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tokenizer::Tokenizer;

/// Marker before a mention.
pub const BEGIN: &str = "[Ms]";

/// Marker after a mention.
pub const END: &str = "[Me]";

/// Token between name and definition of a concept.
pub const ENTITY: &str = "[ENT]";

/// Default window length, in wordpieces.
pub const N_PIECES: usize = 128;

/// Special tokens of a window: `[CLS]`, `[SEP]` and both markers.
const N_MARKS: usize = 4;

/// Initial number of bytes to tokenise per requested wordpiece.
const BYTES_A_PIECE: usize = 8;

/// Maximum number of bytes to tokenise per requested wordpiece. This bounds the time on long runs of white space or very long words.
const MAX_BYTES_PER_PIECE: usize = 64;

/// A mention in its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedWindow {
    /// `input_ids` from `[CLS]` to `[SEP]`.
    pub rows: Vec<u32>,
    /// Index in `rows` of the first wordpiece of the mention, after `[Ms]`.
    pub first: usize,
    /// Index in `rows` of its last wordpiece, before `[Me]`.
    pub last: usize,
}

/// Adds the markers to the vocabulary, and randomly initialised embeddings to the encoder under `scope`, if they are missing. Call it once
/// per scope for encoders that share a vocabulary.
pub fn add_marks(
    config: &mut BertConfig,
    tokenizer: &mut Tokenizer,
    scope: &str,
    parameters: &mut Parameters,
    rng: &mut SplitMix64,
) -> Result<()> {
    add_tokens(&[BEGIN, END], config, tokenizer, scope, parameters, rng)
}

/// Like [`add_marks`], with other tokens.
pub fn add_tokens(
    tokens: &[&str],
    config: &mut BertConfig,
    tokenizer: &mut Tokenizer,
    scope: &str,
    parameters: &mut Parameters,
    rng: &mut SplitMix64,
) -> Result<()> {
    tokens.iter().try_for_each(|token| tokenizer.add(token).map(drop))?;
    let row = parameters.find(&format!("{scope}embedding.word"))?;
    let table = parameters.at_mut(row);
    // A checkpoint may have unused embedding rows; the markers take those first.
    let n_new = tokenizer.len().saturating_sub(table.n_rows) * table.n_cols;
    if n_new > 0 {
        let mut values = std::mem::take(&mut table.values);
        values.extend((0..n_new).map(|_| DEVIATION * random::normal(rng)));
        *table = Matrix::new(tokenizer.len(), table.n_cols, values);
    }
    config.vocab_size = table.n_rows;
    Ok(())
}

/// A window of at most `n_wordpieces` (at least 5) wordpieces centred on a mention. If one side of the context is short, the other gets the
/// remaining space. A mention that is too long is truncated at the end; one without wordpieces becomes `[UNK]`. `span` is in bytes; for a
/// discontinuous mention it is the hull.
pub fn marked_window(
    tokenizer: &Tokenizer,
    text: &str,
    span: Range<usize>,
    n_wordpieces: usize,
) -> Result<MarkedWindow> {
    let outside = || Error::invalid(format!("the text has no mention at {}..{}", span.start, span.end));
    let mention = text.get(span.clone()).ok_or_else(outside)?;
    let (first, behind) = tokenizer.ends()?;
    let (begin, end) = (tokenizer.require(BEGIN)?, tokenizer.require(END)?);
    let room = n_wordpieces.saturating_sub(N_MARKS).max(1);
    let mut mention = from_left(tokenizer, mention, room);
    if mention.is_empty() {
        mention.push(tokenizer.unknown);
    }
    let room = room - mention.len();
    let mut left = from_right(tokenizer, &text[..span.start], room);
    let mut right = from_left(tokenizer, &text[span.end..], room);
    let n_left = left.len().min((room / 2).max(room.saturating_sub(right.len())));
    left.drain(..left.len() - n_left);
    right.truncate(room - n_left);

    let mut rows = Vec::with_capacity(left.len() + mention.len() + right.len() + N_MARKS);
    rows.push(first);
    rows.extend(left);
    rows.push(begin);
    let place = rows.len();
    rows.extend(&mention);
    rows.push(end);
    rows.extend(right);
    rows.push(behind);
    Ok(MarkedWindow { rows, first: place, last: place + mention.len() - 1 })
}

/// A window as published for TrainX: c = ⌈(`n_wordpieces` − n) / 2 − 1⌉ wordpieces on each side of the n of the mention with its markers, cut to
/// `n_wordpieces`. A side that is short is not made up for by the other. Square brackets of the text become angle brackets, so that no text is
/// read as a token. A mention that is too long loses wordpieces in its middle, so that both markers stay.
pub fn trainx_window(
    tokenizer: &Tokenizer,
    text: &str,
    span: Range<usize>,
    n_wordpieces: usize,
) -> Result<MarkedWindow> {
    let outside = || Error::invalid(format!("the text has no mention at {}..{}", span.start, span.end));
    text.get(span.clone()).ok_or_else(outside)?;
    let (first, behind) = tokenizer.ends()?;
    let (begin, end) = (tokenizer.require(BEGIN)?, tokenizer.require(END)?);
    let plain = |part: &str| part.replace('[', "<").replace(']', ">");
    let n_wordpieces = n_wordpieces.max(N_MARKS + 1);
    let mut mention = tokenizer.input_ids(&plain(&text[span.clone()]));
    if mention.is_empty() {
        mention.push(tokenizer.unknown);
    }
    let room = n_wordpieces - N_MARKS;
    if mention.len() > room {
        let n_cut = mention.len() - room;
        let middle = room.div_ceil(2);
        mention.drain(middle..middle + n_cut);
    }
    let n_each = (n_wordpieces - mention.len() - 2).saturating_sub(1) / 2;
    let mut rows = vec![first];
    rows.extend(from_right(tokenizer, &plain(&text[..span.start]), n_each));
    rows.push(begin);
    let place = rows.len();
    rows.extend(&mention);
    rows.push(end);
    rows.extend(from_left(tokenizer, &plain(&text[span.end..]), n_each));
    rows.truncate(n_wordpieces - 1);
    rows.push(behind);
    Ok(MarkedWindow { rows, first: place, last: place + mention.len() - 1 })
}

/// The first `n` wordpieces of a text.
fn from_left(tokenizer: &Tokenizer, text: &str, n: usize) -> Vec<u32> {
    let mut rows = divided(tokenizer, text, n, |size| {
        let stretch = &text[..text.floor_char_boundary(size)];
        (stretch, stretch.rfind(is_blank).map(|end| &stretch[..end]))
    });
    rows.truncate(n);
    rows
}

/// The last `n` wordpieces of a text.
fn from_right(tokenizer: &Tokenizer, text: &str, n: usize) -> Vec<u32> {
    let mut rows = divided(tokenizer, text, n, |size| {
        let stretch = &text[text.ceil_char_boundary(text.len() - size)..];
        (stretch, stretch.find(is_blank).map(|start| &stretch[start..]))
    });
    rows.drain(..rows.len().saturating_sub(n));
    rows
}

/// Tokenises only as much of a text as yields `n` wordpieces. `cut` returns a stretch of a given size, and the part of it that is cut at
/// white space and therefore consists of whole words.
fn divided<'a>(
    tokenizer: &Tokenizer,
    text: &str,
    n: usize,
    cut: impl Fn(usize) -> (&'a str, Option<&'a str>),
) -> Vec<u32> {
    let mut size = n * BYTES_A_PIECE;
    while n > 0 && size < text.len() {
        let (stretch, of_words) = cut(size);
        let is_last = size >= n * MAX_BYTES_PER_PIECE;
        if let Some(words) = of_words.or(is_last.then_some(stretch)) {
            let rows = tokenizer.input_ids(words);
            if rows.len() >= n || is_last {
                return rows;
            }
        }
        size *= 2;
    }
    if n == 0 { Vec::new() } else { tokenizer.input_ids(text) }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\n' | '\r' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_trainx_has_as_many_wordpieces_on_both_sides() {
        let names = ["[UNK]", "[CLS]", "[SEP]", "[Ms]", "[Me]", "a", "b", "<", ">"].map(str::to_owned);
        let tokenizer = Tokenizer::of(names.to_vec()).unwrap();
        let of = |n_left: usize, n_mention: usize, n_right: usize| {
            let text = "a ".repeat(n_left) + &"b ".repeat(n_mention) + &"a ".repeat(n_right);
            let window = trainx_window(&tokenizer, &text, 2 * n_left..2 * (n_left + n_mention), 50).unwrap();
            let at = |row: u32| window.rows.iter().position(|one| *one == row);
            let (begin, end) = (at(3).unwrap(), at(4).unwrap());
            assert_eq!((window.first, window.last), (begin + 1, end - 1));
            (begin - 1, end - begin - 1, window.rows.len() - end - 2, window.rows.len())
        };
        // With markers n is 4: 22 wordpieces on each side; n is 5: 22, of which the last is cut.
        assert_eq!(of(60, 2, 60), (22, 2, 22, 50));
        assert_eq!(of(60, 3, 60), (22, 3, 21, 50));
        // At the beginning of a text the right side gets no more.
        assert_eq!(of(0, 2, 60), (0, 2, 22, 28));
        // Both markers of a long mention stay.
        assert_eq!(of(9, 80, 9), (0, 46, 0, 50));
        // No text is read as a token.
        let window = trainx_window(&tokenizer, "[ a ]", 2..3, 50).unwrap();
        assert_eq!(window.rows, [1, 7, 3, 5, 4, 8, 2]);
    }

    use crate::models::bert::tests::drawn_model;
    use crate::tensor::elementwise::Activation;

    const WORDS: &str =
        "[UNK]\n[CLS]\n[SEP]\n[Ms]\n[Me]\nacute\nliver\nfailure\nin\n##flam\nα\n,\n##s\nmuscle\nfever\nmen";

    fn tokenizer() -> Tokenizer {
        Tokenizer::from_lines(WORDS).unwrap()
    }

    /// The window as text, with its special tokens.
    fn shown(text: &str, mention: &str, n_wordpieces: usize) -> String {
        let start = text.find(mention).unwrap();
        let tokenizer = tokenizer();
        let window = marked_window(&tokenizer, text, start..start + mention.len(), n_wordpieces).unwrap();
        let names: Vec<&str> = WORDS.lines().collect();
        let name = |row: &u32| names[*row as usize];
        assert_eq!((name(&window.rows[window.first - 1]), name(&window.rows[window.last + 1])), (BEGIN, END));
        assert!(window.rows.len() <= n_wordpieces.max(5), "{} wordpieces", window.rows.len());
        window.rows.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_mention_stands_between_its_marks_wherever_it_is() {
        let text = "Acute α-inflam, liver failure";
        assert_eq!(shown(text, "inflam", 128), "[CLS] acute α [UNK] [Ms] in ##flam [Me] , liver failure [SEP]");
        assert_eq!(shown(text, "Acute", 128), "[CLS] [Ms] acute [Me] α [UNK] in ##flam , liver failure [SEP]");
        assert_eq!(shown(text, "failure", 9), "[CLS] in ##flam , liver [Ms] failure [Me] [SEP]");
        assert_eq!(shown("αliver", "liver", 128), "[CLS] α [Ms] liver [Me] [SEP]");
        // The mention is tokenised separately; within the word, `s` would be a continuation wordpiece.
        assert_eq!(shown("livers", "s", 128), "[CLS] liver [Ms] [UNK] [Me] [SEP]");
    }

    #[test]
    fn the_window_has_the_mention_in_its_middle_and_gives_one_side_what_the_other_leaves() {
        let text = "in in in in acute acute fever men men men men";
        assert_eq!(shown(text, "fever", 9), "[CLS] acute acute [Ms] fever [Me] men men [SEP]");
        assert_eq!(shown(text, "fever", 10), "[CLS] acute acute [Ms] fever [Me] men men men [SEP]");
        assert_eq!(
            shown("in fever men men men men men", "fever", 10),
            "[CLS] in [Ms] fever [Me] men men men men [SEP]"
        );
        assert_eq!(shown("in in in in fever men", "fever", 9), "[CLS] in in in [Ms] fever [Me] men [SEP]");
    }

    #[test]
    fn of_a_mention_that_is_longer_than_the_window_the_first_pieces_are_kept() {
        let text = "in acute liver failure men";
        assert_eq!(shown(text, "acute liver failure", 6), "[CLS] [Ms] acute liver [Me] [SEP]");
        assert_eq!(shown(text, "acute liver failure", 0), "[CLS] [Ms] acute [Me] [SEP]");
        let text = format!("in {} men", "fever ".repeat(1000));
        assert_eq!(marked_window(&tokenizer(), &text, 3..text.len() - 4, 128).unwrap().rows.len(), 128);
    }

    #[test]
    fn a_mention_without_pieces_is_unknown_and_one_outside_of_the_text_is_refused() {
        let tokenizer = tokenizer();
        let window = marked_window(&tokenizer, "in  men", 3..3, 128).unwrap();
        assert_eq!((window.rows[window.first], window.first, window.last), (tokenizer.unknown, 3, 3));
        for span in [(3, 9), (1, 2), (4, 3)].map(|(start, end)| start..end) {
            assert!(marked_window(&tokenizer, "α liver", span, 128).is_err());
        }
        let without = Tokenizer::from_lines("[UNK]\n[CLS]\n[SEP]").unwrap();
        assert!(marked_window(&without, "liver", 0..5, 128).unwrap_err().to_string().contains("[Ms]"));
    }

    #[test]
    fn a_window_in_a_long_text_has_the_pieces_of_the_whole_text() {
        let tokenizer = tokenizer();
        let words = ["acute", "inflam,", "α", "  ", "livers", "failure\n", "\u{200b}", "é"];
        let mut rng = SplitMix64::new(4);
        let mut side = || (0..4000).map(|_| words[rng.below(words.len())]).collect::<Vec<_>>().join(" ");
        let (left, right) = (side(), side());
        let text = format!("{left} fever {right}");
        let start = left.len() + 1;
        for n_wordpieces in [5, 9, 40, 128, 129] {
            let window = marked_window(&tokenizer, &text, start..start + 5, n_wordpieces).unwrap();
            let (before, after) = (tokenizer.input_ids(&left), tokenizer.input_ids(&right));
            let room = n_wordpieces - 5;
            assert_eq!(window.rows[1..window.first - 1], before[before.len() - room / 2..]);
            assert_eq!(window.rows[window.last + 2..window.rows.len() - 1], after[..room - room / 2]);
        }
    }

    #[test]
    fn texts_without_blanks_and_texts_of_blanks_alone_are_looked_at_in_part() {
        let tokenizer = tokenizer();
        for side in ["liver,", "α", " ", "x"].map(|part| part.repeat(1 << 20)) {
            let text = format!("{side}fever{side}");
            let window = marked_window(&tokenizer, &text, side.len()..side.len() + 5, 128).unwrap();
            assert!((5..=128).contains(&window.rows.len()));
            assert_eq!(window.rows[window.first..=window.last], [tokenizer.find("fever").unwrap()]);
        }
    }

    #[test]
    fn marks_are_appended_once_to_the_vocabulary_and_once_to_each_encoder() {
        let (config, drawn) = drawn_model(1, Activation::Gelu);
        let mut tokenizer = Tokenizer::from_lines("[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\ng").unwrap();
        let mut parameters = Parameters::default();
        for scope in ["mention.", "entity."] {
            drawn.iter().for_each(|(name, value)| parameters.add(format!("{scope}{name}"), value.clone()));
        }
        let before = parameters.get("entity.embedding.word").unwrap().clone();
        let mut configs = [config.clone(), config];
        let mut rng = SplitMix64::new(1);
        for _ in 0..2 {
            for (config, scope) in configs.iter_mut().zip(["mention.", "entity."]) {
                add_marks(config, &mut tokenizer, scope, &mut parameters, &mut rng).unwrap();
            }
        }
        // The table had an unused row, which the first marker takes.
        assert_eq!((tokenizer.len(), tokenizer.find(BEGIN), tokenizer.find(END)), (12, Some(10), Some(11)));
        for (config, scope) in configs.iter().zip(["mention.", "entity."]) {
            config.check(&parameters, scope).unwrap();
            assert_eq!(config.vocab_size, 12);
        }
        let after = parameters.get("entity.embedding.word").unwrap();
        assert_eq!(after.values[..before.values.len()], before.values);
        assert!(after.row(11).iter().all(|value| *value != 0.0 && value.abs() < 0.1));
        assert!(add_marks(&mut configs[0].clone(), &mut tokenizer, "other.", &mut parameters, &mut rng).is_err());
    }
}
