//! The distinct folded names of a knowledge base: whole, or as sequences of words.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::packed::{Offsets, Strings, U32s};

/// Bytes of a form after which no further word is appended. Names have at most 1,000 bytes, so only damaged files have longer forms.
const MAX_FORM: usize = 1 << 16;

/// The forms of a knowledge base, sorted.
#[derive(Debug, Clone, Copy)]
pub enum Forms<'a> {
    /// Strings.
    Whole(Strings<'a>),
    /// Sequences of words, in large knowledge bases.
    Words(WordForms<'a>),
}

impl<'a> Forms<'a> {
    /// Number of forms.
    pub fn len(self) -> usize {
        match self {
            Forms::Whole(strings) => strings.len(),
            Forms::Words(forms) => forms.at.len(),
        }
    }

    /// Whether there are no forms.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The form at `row`; empty out of range or if damaged.
    #[inline]
    pub fn get(self, row: usize) -> Cow<'a, str> {
        match self {
            Forms::Whole(strings) => Cow::Borrowed(strings.get(row)),
            Forms::Words(forms) => {
                let mut form = Vec::with_capacity(64);
                forms.append(row, &mut form);
                Cow::Owned(String::from_utf8(form).unwrap_or_default())
            }
        }
    }

    /// The bytes of the form at `row`, in `buffer` if they are not stored as such.
    #[inline]
    pub fn bytes<'b>(self, row: usize, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Forms::Whole(strings) => strings.bytes(row),
            Forms::Words(forms) => {
                buffer.clear();
                forms.append(row, buffer);
                buffer
            }
        }
    }

    /// The first row not less than `value`.
    pub fn lower_bound(self, value: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(middle, value) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Row of `value`.
    pub fn find(self, value: &str) -> Option<usize> {
        let row = self.lower_bound(value);
        (row < self.len() && self.compare(row, value) == Ordering::Equal).then_some(row)
    }

    #[inline]
    fn compare(self, row: usize, value: &str) -> Ordering {
        match self {
            Forms::Whole(strings) => strings.bytes(row).cmp(value.as_bytes()),
            Forms::Words(forms) => forms.compare(row, value.as_bytes()),
        }
    }
}

/// Forms as sequences of words, which are joined by a space.
#[derive(Debug, Clone, Copy)]
pub struct WordForms<'a> {
    /// The distinct words, most frequent first.
    pub words: Strings<'a>,
    /// Where the sequence of each form lies in `rows`.
    pub at: Offsets<'a>,
    /// Rows of words, in bytes of seven bits.
    pub rows: &'a [u8],
}

impl<'a> WordForms<'a> {
    /// The bytes of the sequence of a form.
    #[inline]
    pub fn sequence(self, row: usize) -> &'a [u8] {
        self.rows.get(self.at.range(row)).unwrap_or_default()
    }

    /// The rows of the words of a form, in order.
    #[inline]
    pub fn words_of(self, row: usize) -> impl Iterator<Item = u32> + use<'a> {
        let mut rest = self.sequence(row);
        std::iter::from_fn(move || take(&mut rest))
    }

    /// Compares a form with a value, up to the first word that differs.
    fn compare(self, row: usize, value: &[u8]) -> Ordering {
        let mut rest = value;
        for (at, word) in self.words_of(row).enumerate() {
            if at > 0 {
                let Some((byte, after)) = rest.split_first() else { return Ordering::Greater };
                if *byte != b' ' {
                    return b' '.cmp(byte);
                }
                rest = after;
            }
            let word = self.words.bytes(word as usize);
            let shared = word.len().min(rest.len());
            let order = word[..shared].cmp(&rest[..shared]);
            if order != Ordering::Equal {
                return order;
            }
            if shared < word.len() {
                return Ordering::Greater;
            }
            rest = &rest[shared..];
        }
        if rest.is_empty() { Ordering::Equal } else { Ordering::Less }
    }

    fn append(self, row: usize, to: &mut Vec<u8>) {
        for (at, word) in self.words_of(row).enumerate() {
            if to.len() > MAX_FORM {
                break;
            }
            if at > 0 {
                to.push(b' ');
            }
            to.extend_from_slice(self.words.bytes(word as usize));
        }
    }
}

/// The canonical tokens of a form, as rows of the vocabulary.
#[derive(Debug, Clone)]
pub enum FormTokens<'a> {
    /// As they are stored.
    Rows(U32s<'a>),
    /// Of the words of the form.
    Words {
        /// Rows of the words, in bytes of seven bits.
        rest: &'a [u8],
        /// The token of each word; the maximum for none.
        tokens: U32s<'a>,
    },
}

impl Iterator for FormTokens<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self {
            FormTokens::Rows(rows) => {
                let (first, rest) = rows.0.split_first_chunk::<4>()?;
                rows.0 = rest;
                Some(u32::from_le_bytes(*first))
            }
            FormTokens::Words { rest, tokens } => loop {
                let token = tokens.get(take(rest)? as usize);
                if token != u32::MAX {
                    return Some(token);
                }
            },
        }
    }
}

/// Appends a number in bytes of seven bits, lowest first; all but the last have the highest bit set.
pub fn put(mut number: u32, to: &mut Vec<u8>) {
    while number >= 128 {
        to.push(number as u8 | 128);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Reads a number written by [`put`]; `None` at the end, or where the bytes are damaged.
#[inline(always)]
pub fn take(rest: &mut &[u8]) -> Option<u32> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    let mut number = u32::from(byte & 127);
    let (mut byte, mut shift) = (*byte, 7);
    while byte >= 128 {
        let (next, after) = rest.split_first().filter(|_| shift < 32)?;
        *rest = after;
        byte = *next;
        number |= u32::from(byte & 127) << shift;
        shift += 7;
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packed::Lengths;
    use super::*;

    proptest! {
        #[test]
        fn forms_of_words_are_ordered_like_strings(
            form in prop::collection::vec(0u32..6, 0..4),
            value in prop_oneof!["[ab ]{0,7}", prop::collection::vec(prop::sample::select(vec!["", "a", "ab", "b", "ba", "~"]), 0..4).prop_map(|words| words.join(" "))],
        ) {
            let words = ["", "a", "ab", "b", "ba", "~"];
            let at = Lengths::encode(words.iter().map(|word| word.len()));
            let text = words.concat();
            let mut rows = Vec::new();
            form.iter().for_each(|word| put(*word, &mut rows));
            let row_at = Lengths::encode(std::iter::once(rows.len()));
            let forms = WordForms {
                words: Strings { at: Offsets::Lengths(Lengths::new(&at, words.len())), text: text.as_bytes() },
                at: Offsets::Lengths(Lengths::new(&row_at, 1)),
                rows: &rows,
            };
            let whole = form.iter().map(|word| words[*word as usize]).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(Forms::Words(forms).get(0), whole.as_str());
            prop_assert_eq!(forms.compare(0, value.as_bytes()), whole.as_bytes().cmp(value.as_bytes()));
        }
    }
}
