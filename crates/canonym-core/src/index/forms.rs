//! The distinct folded names of a knowledge base: whole, or as sequences of words.

use std::borrow::Cow;

use super::packed::{Offsets, Strings, U32s};

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
        let mut buffer = Vec::new();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.bytes(middle, &mut buffer) < value.as_bytes() {
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
        (row < self.len() && self.get(row) == value).then_some(row)
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

    fn append(self, row: usize, to: &mut Vec<u8>) {
        for (at, word) in self.words_of(row).enumerate() {
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
