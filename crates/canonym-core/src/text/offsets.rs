//! Conversion between byte, code point and UTF-16 offsets of a text.
//!
//! Offsets inside the program are bytes; files and other programs use other units. An [`OffsetMap`] is built once per
//! text in linear time; a lookup costs a binary search and a scan of at most 256 bytes. Grapheme clusters are not
//! considered: a combining mark is a code point.
//!
//! ```
//! use canonym_core::text::offsets::OffsetMap;
//! let map = OffsetMap::new("α-cell");
//! assert_eq!(map.char_to_byte(1), Some(2));
//! assert_eq!(map.byte_to_char(1), None); // inside the letter
//! ```

/// Bytes between checkpoints, which bounds the scan of a lookup.
const STRIDE: usize = 256;

/// A position in three units.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    byte: usize,
    code_point: usize,
    utf16: usize,
}

impl Position {
    fn after(self, c: char) -> Position {
        Position { byte: self.byte + c.len_utf8(), code_point: self.code_point + 1, utf16: self.utf16 + c.len_utf16() }
    }
}

/// Offset conversion for one text.
#[derive(Debug, Clone)]
pub struct OffsetMap<'a> {
    text: &'a str,
    /// Sorted checkpoints from the start of the text, at most `STRIDE + 3` bytes apart; empty for ASCII text, in which
    /// all units are equal.
    checkpoints: Vec<Position>,
    end: Position,
}

impl<'a> OffsetMap<'a> {
    /// Builds the map in one pass over `text`.
    pub fn new(text: &'a str) -> OffsetMap<'a> {
        if text.is_ascii() {
            let end = Position { byte: text.len(), code_point: text.len(), utf16: text.len() };
            return OffsetMap { text, checkpoints: Vec::new(), end };
        }
        let mut checkpoints = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut position = Position::default();
        let mut next_checkpoint = 0;
        for c in text.chars() {
            if position.byte >= next_checkpoint {
                checkpoints.push(position);
                next_checkpoint = position.byte + STRIDE;
            }
            position = position.after(c);
        }
        OffsetMap { text, checkpoints, end: position }
    }

    /// Number of code points of the text.
    pub fn n_chars(&self) -> usize {
        self.end.code_point
    }

    /// Number of UTF-16 units of the text.
    pub fn n_utf16(&self) -> usize {
        self.end.utf16
    }

    /// Byte offset of code point `offset`; the end of the text is valid.
    pub fn char_to_byte(&self, offset: usize) -> Option<usize> {
        self.find(offset, |position| position.code_point).map(|position| position.byte)
    }

    /// Number of code points before byte `offset`; `None` inside a character or past the end.
    pub fn byte_to_char(&self, offset: usize) -> Option<usize> {
        self.find(offset, |position| position.byte).map(|position| position.code_point)
    }

    /// Byte offset of UTF-16 unit `offset`; `None` between surrogates or past the end.
    pub fn utf16_to_byte(&self, offset: usize) -> Option<usize> {
        self.find(offset, |position| position.utf16).map(|position| position.byte)
    }

    /// Number of UTF-16 units before byte `offset`; `None` inside a character or past the end.
    pub fn byte_to_utf16(&self, offset: usize) -> Option<usize> {
        self.find(offset, |position| position.byte).map(|position| position.utf16)
    }

    /// The position whose `unit` equals `offset`.
    fn find(&self, offset: usize, unit: impl Fn(&Position) -> usize) -> Option<Position> {
        if offset > unit(&self.end) {
            return None;
        }
        let n_before = self.checkpoints.partition_point(|position| unit(position) <= offset);
        let Some(checkpoint) = n_before.checked_sub(1) else {
            return Some(Position { byte: offset, code_point: offset, utf16: offset });
        };
        let mut position = self.checkpoints[checkpoint];
        let mut rest = self.text[position.byte..].chars();
        while unit(&position) < offset {
            position = position.after(rest.next()?);
        }
        (unit(&position) == offset).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// Every byte of `text` with its code point and UTF-16 offset, or `.`.
    fn check(text: &str, expect: Expect) {
        let map = OffsetMap::new(text);
        let show = |value: Option<usize>| value.map_or(".".to_owned(), |value| value.to_string());
        let rows: Vec<String> = (0..=text.len() + 1)
            .map(|byte| format!("{byte}:{},{}", show(map.byte_to_char(byte)), show(map.byte_to_utf16(byte))))
            .collect();
        expect.assert_eq(&rows.join(" "));
    }

    #[test]
    fn ascii_offsets_are_the_same_in_all_units() {
        check("ab\r\n", expect!["0:0,0 1:1,1 2:2,2 3:3,3 4:4,4 5:.,."]);
    }

    #[test]
    fn empty_text_has_one_offset() {
        check("", expect!["0:0,0 1:.,."]);
    }

    #[test]
    fn greek_letter_takes_two_bytes() {
        check("β-a", expect!["0:0,0 1:.,. 2:1,1 3:2,2 4:3,3 5:.,."]);
    }

    #[test]
    fn emoji_takes_two_utf16_units() {
        check("a😀b", expect!["0:0,0 1:1,1 2:.,. 3:.,. 4:.,. 5:2,3 6:3,4 7:.,."]);
        let map = OffsetMap::new("a😀b");
        assert_eq!(map.utf16_to_byte(1), Some(1));
        assert_eq!(map.utf16_to_byte(2), None);
        assert_eq!(map.utf16_to_byte(3), Some(5));
        assert_eq!(map.utf16_to_byte(5), None);
    }

    #[test]
    fn combining_mark_is_a_code_point() {
        check("e\u{301}", expect!["0:0,0 1:1,1 2:.,. 3:2,2 4:.,."]);
    }

    #[test]
    fn ligature_and_no_break_space_are_single_code_points() {
        check("ﬁ\u{a0}x", expect!["0:0,0 1:.,. 2:.,. 3:1,1 4:.,. 5:2,2 6:3,3 7:.,."]);
    }

    #[test]
    fn lookups_cross_checkpoints() {
        let text = "α1😀".repeat(1000);
        let map = OffsetMap::new(&text);
        assert_eq!(map.n_chars(), 3000);
        assert_eq!(map.n_utf16(), 4000);
        assert_eq!(map.char_to_byte(2999), Some(6996));
        assert_eq!(map.utf16_to_byte(3999), None);
        assert_eq!(map.byte_to_utf16(7000), Some(4000));
    }

    proptest! {
        #[test]
        fn conversions_agree_with_counting(text in "(.|[α-ω]|😀|\n|e\u{301}){0,400}") {
            let map = OffsetMap::new(&text);
            for (n, (byte, _)) in text.char_indices().enumerate() {
                let utf16 = text[..byte].encode_utf16().count();
                prop_assert_eq!(map.char_to_byte(n), Some(byte));
                prop_assert_eq!(map.byte_to_char(byte), Some(n));
                prop_assert_eq!(map.utf16_to_byte(utf16), Some(byte));
                prop_assert_eq!(map.byte_to_utf16(byte), Some(utf16));
            }
            prop_assert_eq!(map.char_to_byte(map.n_chars()), Some(text.len()));
            prop_assert_eq!(map.char_to_byte(map.n_chars() + 1), None);
            for byte in (0..text.len()).filter(|&byte| !text.is_char_boundary(byte)) {
                prop_assert_eq!(map.byte_to_char(byte), None);
            }
        }
    }
}
