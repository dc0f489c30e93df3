//! Views of little-endian numbers in a mapped file.
//!
//! A view reads zero where a damaged file would point outside; it never panics on content.

/// A view of 32-bit numbers.
#[derive(Debug, Clone, Copy)]
pub struct U32s<'a>(pub &'a [u8]);

impl<'a> U32s<'a> {
    /// Number of elements.
    pub fn len(self) -> usize {
        self.0.len() / 4
    }

    /// Whether the view is empty.
    pub fn is_empty(self) -> bool {
        self.0.len() < 4
    }

    /// The number at `row`; zero out of range.
    #[inline]
    pub fn get(self, row: usize) -> u32 {
        match self.0.get(row * 4..row * 4 + 4) {
            Some(bytes) => u32::from_le_bytes(bytes.try_into().expect("four bytes")),
            None => 0,
        }
    }

    /// The numbers in `rows`, clipped to the view.
    #[inline]
    pub fn slice(self, rows: std::ops::Range<usize>) -> U32s<'a> {
        let end = rows.end.min(self.len());
        let start = rows.start.min(end);
        U32s(&self.0[start * 4..end * 4])
    }

    /// The index of the first number for which `before` is false, given that it is true for a prefix.
    pub fn partition_point(self, before: impl Fn(u32) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// All numbers in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.0.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    /// Row of `value` in a sorted view.
    pub fn find(self, value: u32) -> Option<usize> {
        let row = self.partition_point(|other| other < value);
        (row < self.len() && self.get(row) == value).then_some(row)
    }

    /// The range `at[row]..at[row + 1]` in a view of offsets.
    #[inline]
    pub fn range(self, row: usize) -> std::ops::Range<usize> {
        self.get(row) as usize..self.get(row + 1) as usize
    }
}

/// A view of 64-bit numbers.
#[derive(Debug, Clone, Copy)]
pub struct U64s<'a>(pub &'a [u8]);

impl U64s<'_> {
    /// Number of elements.
    pub fn len(self) -> usize {
        self.0.len() / 8
    }

    /// Whether the view is empty.
    pub fn is_empty(self) -> bool {
        self.0.len() < 8
    }

    /// The number at `row`; zero out of range.
    pub fn get(self, row: usize) -> u64 {
        match self.0.get(row * 8..row * 8 + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
            None => 0,
        }
    }

    /// Row of `value` in a sorted view.
    pub fn find(self, value: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(&value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// Entries whose start is stored in [`Lengths`]: one of this many.
const GROUP: usize = 32;

/// Where the items of a section start and end.
#[derive(Debug, Clone, Copy)]
pub enum Offsets<'a> {
    /// `n + 1` offsets, as in files of formats 1 and 2.
    Plain(U32s<'a>),
    /// Lengths.
    Lengths(Lengths<'a>),
}

impl Offsets<'_> {
    /// Number of items.
    pub fn len(self) -> usize {
        match self {
            Offsets::Plain(at) => at.len().saturating_sub(1),
            Offsets::Lengths(lengths) => lengths.lens.len(),
        }
    }

    /// Whether there are no items.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The range of the item at `row`; empty out of range.
    #[inline]
    pub fn range(self, row: usize) -> std::ops::Range<usize> {
        match self {
            Offsets::Plain(at) => at.range(row),
            Offsets::Lengths(lengths) => lengths.range(row),
        }
    }
}

/// Lengths of items, a byte each, with the start of every 32nd item. The rest of lengths from 255 stands apart.
#[derive(Debug, Clone, Copy)]
pub struct Lengths<'a> {
    starts: U64s<'a>,
    /// Row and rest of each long item, by row.
    long: U32s<'a>,
    lens: &'a [u8],
}

impl<'a> Lengths<'a> {
    /// A view of the lengths of `n` items; without items if the number of bytes does not fit.
    pub fn new(bytes: &'a [u8], n: usize) -> Lengths<'a> {
        let long = 8 * n.div_ceil(GROUP);
        match bytes.len().checked_sub(long + n) {
            Some(len) if len % 8 == 0 => {
                let (starts, rest) = bytes.split_at(long);
                let (long, lens) = rest.split_at(len);
                Lengths { starts: U64s(starts), long: U32s(long), lens }
            }
            _ => Lengths { starts: U64s(&[]), long: U32s(&[]), lens: &[] },
        }
    }

    /// The bytes of a view: starts, long items, lengths.
    pub fn encode(items: impl Iterator<Item = usize>) -> Vec<u8> {
        let (mut starts, mut long, mut lens, mut end) = (Vec::new(), Vec::new(), Vec::new(), 0u64);
        for len in items {
            if lens.len() % GROUP == 0 {
                starts.extend(end.to_le_bytes());
            }
            if len >= 255 {
                long.extend((lens.len() as u32).to_le_bytes());
                long.extend((len as u32 - 255).to_le_bytes());
            }
            lens.push(len.min(255) as u8);
            end += len as u64;
        }
        [starts, long, lens].concat()
    }

    #[inline]
    fn range(self, row: usize) -> std::ops::Range<usize> {
        let Some(len) = self.lens.get(row) else { return 0..0 };
        let first = row / GROUP * GROUP;
        let before = &self.lens[first..row];
        let mut start = self.starts.get(row / GROUP) as usize;
        start = start.wrapping_add(before.iter().map(|len| usize::from(*len)).sum::<usize>());
        let mut end = start.wrapping_add(usize::from(*len));
        if *len == 255 || before.contains(&255) {
            let (more, own) = self.rest(first, row);
            start = start.wrapping_add(more);
            end = end.wrapping_add(more).wrapping_add(own);
        }
        start..end
    }

    /// The rest of the lengths of long items in `first..row`, and of `row`.
    #[cold]
    fn rest(self, first: usize, row: usize) -> (usize, usize) {
        let n_long = self.long.len() / 2;
        let (mut low, mut high) = (0, n_long);
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.long.get(2 * middle) as usize) < first {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (mut before, mut own) = (0, 0);
        for at in low..n_long {
            match (self.long.get(2 * at) as usize).cmp(&row) {
                std::cmp::Ordering::Less => before += self.long.get(2 * at + 1) as usize,
                std::cmp::Ordering::Equal => own = self.long.get(2 * at + 1) as usize,
                std::cmp::Ordering::Greater => break,
            }
        }
        (before, own)
    }
}

/// A view of strings with offsets.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    /// Where each string lies in `text`.
    pub at: Offsets<'a>,
    /// The strings in UTF-8, concatenated.
    pub text: &'a [u8],
}

impl<'a> Strings<'a> {
    /// Number of strings.
    pub fn len(self) -> usize {
        self.at.len()
    }

    /// Whether the view is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of the string at `row`; empty out of range.
    #[inline]
    pub fn bytes(self, row: usize) -> &'a [u8] {
        self.text.get(self.at.range(row)).unwrap_or_default()
    }

    /// The string at `row`; empty out of range or if not UTF-8.
    #[inline]
    pub fn get(self, row: usize) -> &'a str {
        std::str::from_utf8(self.bytes(row)).unwrap_or_default()
    }

    /// Row of `value` in sorted strings.
    pub fn find(self, value: &str) -> Option<usize> {
        let row = self.lower_bound(value);
        (row < self.len() && self.get(row) == value).then_some(row)
    }

    /// The first row not less than `value` in sorted strings.
    pub fn lower_bound(self, value: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.bytes(middle) < value.as_bytes() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lengths_give_the_ranges_that_they_were_made_from(lens in prop::collection::vec(prop_oneof![4 => 0usize..40, 1 => 200usize..3000], 0..200)) {
            let bytes = Lengths::encode(lens.iter().copied());
            let offsets = Offsets::Lengths(Lengths::new(&bytes, lens.len()));
            prop_assert_eq!(offsets.len(), lens.len());
            let mut start = 0;
            for (row, len) in lens.iter().enumerate() {
                prop_assert_eq!(offsets.range(row), start..start + len);
                start += len;
            }
            prop_assert!(offsets.range(lens.len()).is_empty());
        }

        #[test]
        fn damaged_lengths_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), row in 0usize..80) {
            for n in 0..9 {
                let offsets = Offsets::Lengths(Lengths::new(&bytes, n));
                prop_assert!(row < offsets.len() || offsets.range(row).is_empty());
            }
            let mut whole = Lengths::encode([3usize, 300, 7].into_iter());
            whole.iter_mut().zip(&bytes).for_each(|(byte, other)| *byte ^= other);
            let strings = Strings { at: Offsets::Lengths(Lengths::new(&whole, 3)), text: b"abc" };
            strings.get(row);
        }
    }
}
