//! Views of little-endian numbers inside a mapped file.
//!
//! A view reads zero where a damaged file would point outside of it; it never panics on content.

/// 32-bit numbers.
#[derive(Debug, Clone, Copy)]
pub struct U32s<'a>(pub &'a [u8]);

impl<'a> U32s<'a> {
    /// How many numbers.
    pub fn len(self) -> usize {
        self.0.len() / 4
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.len() < 4
    }

    /// The number at `row`; zero outside.
    #[inline]
    pub fn get(self, row: usize) -> u32 {
        match self.0.get(row * 4..row * 4 + 4) {
            Some(bytes) => u32::from_le_bytes(bytes.try_into().expect("four bytes")),
            None => 0,
        }
    }

    /// The numbers of `rows`, cut to what is there.
    #[inline]
    pub fn slice(self, rows: std::ops::Range<usize>) -> U32s<'a> {
        let end = rows.end.min(self.len());
        let start = rows.start.min(end);
        U32s(&self.0[start * 4..end * 4])
    }

    /// How many numbers stand before the first for which `before` is false, where those for which it is true come first.
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

    /// Rows `at[row]..at[row + 1]`, where this view holds offsets.
    #[inline]
    pub fn range(self, row: usize) -> std::ops::Range<usize> {
        self.get(row) as usize..self.get(row + 1) as usize
    }
}

/// 64-bit numbers.
#[derive(Debug, Clone, Copy)]
pub struct U64s<'a>(pub &'a [u8]);

impl U64s<'_> {
    /// How many numbers.
    pub fn len(self) -> usize {
        self.0.len() / 8
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.len() < 8
    }

    /// The number at `row`; zero outside.
    pub fn get(self, row: usize) -> u64 {
        match self.0.get(row * 8..row * 8 + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
            None => 0,
        }
    }

    /// The row of `value` in a sorted view.
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

/// Strings behind offsets.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    /// `n + 1` offsets into `text`.
    pub at: U32s<'a>,
    /// UTF-8.
    pub text: &'a [u8],
}

impl<'a> Strings<'a> {
    /// How many strings.
    pub fn len(self) -> usize {
        self.at.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes of the string at `row`; empty outside.
    #[inline]
    pub fn bytes(self, row: usize) -> &'a [u8] {
        self.text.get(self.at.range(row)).unwrap_or_default()
    }

    /// The string at `row`; empty outside and where the bytes are no UTF-8.
    #[inline]
    pub fn get(self, row: usize) -> &'a str {
        std::str::from_utf8(self.bytes(row)).unwrap_or_default()
    }

    /// The row of `value` among sorted strings.
    pub fn find(self, value: &str) -> Option<usize> {
        let row = self.lower_bound(value);
        (row < self.len() && self.get(row) == value).then_some(row)
    }

    /// The first row that is not below `value` among sorted strings.
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
