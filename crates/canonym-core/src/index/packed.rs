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

/// A view of strings with offsets.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    /// `n + 1` offsets into `text`.
    pub at: U32s<'a>,
    /// The strings in UTF-8, concatenated.
    pub text: &'a [u8],
}

impl<'a> Strings<'a> {
    /// Number of strings.
    pub fn len(self) -> usize {
        self.at.len().saturating_sub(1)
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
