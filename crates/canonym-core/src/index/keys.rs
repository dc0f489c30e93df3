//! Exact lookup of rows by 64-bit key, in sorted arrays that are used directly from the file.
//!
//! The upper bits of a key select a bucket; inside it the lower 32 bits are compared. A false hit requires two keys
//! with the same bucket and lower bits, so callers that need certainty compare the names.

use super::packed::U32s;

/// A table ready to be written.
#[derive(Debug, Default)]
pub struct KeyTable {
    /// Offsets into `checks` and `rows`, `[2^bits + 1]`.
    pub buckets: Vec<u32>,
    /// Lower 32 bits of the keys, sorted within a bucket.
    pub checks: Vec<u32>,
    /// Row of each entry; equal keys are consecutive, rows ascending.
    pub rows: Vec<u32>,
}

/// Bits of the number of buckets, which hold two to four entries each.
fn bits_for(n_entries: usize) -> u32 {
    (usize::BITS - n_entries.max(1).leading_zeros()).saturating_sub(2).max(1)
}

#[inline]
fn bucket_of(key: u64, n_buckets: usize) -> usize {
    (key >> (64 - n_buckets.trailing_zeros())) as usize
}

impl KeyTable {
    /// Sorts `entries` and builds the table.
    pub fn build(mut entries: Vec<(u64, u32)>) -> KeyTable {
        use rayon::slice::ParallelSliceMut;
        let n_buckets = 1usize << bits_for(entries.len());
        let order = |entry: &(u64, u32)| (bucket_of(entry.0, n_buckets), entry.0 as u32, entry.1);
        entries.par_sort_unstable_by_key(order);
        entries.dedup();
        let mut table = KeyTable { buckets: Vec::with_capacity(n_buckets + 1), ..KeyTable::default() };
        for (key, row) in &entries {
            let bucket = bucket_of(*key, n_buckets);
            while table.buckets.len() <= bucket {
                table.buckets.push(table.rows.len() as u32);
            }
            table.checks.push(*key as u32);
            table.rows.push(*row);
        }
        table.buckets.resize(n_buckets + 1, table.rows.len() as u32);
        table
    }
}

/// A view of a table in a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct KeyTableView<'a> {
    /// See [`KeyTable::buckets`].
    pub buckets: U32s<'a>,
    /// See [`KeyTable::checks`].
    pub checks: U32s<'a>,
    /// See [`KeyTable::rows`].
    pub rows: U32s<'a>,
}

impl<'a> KeyTableView<'a> {
    /// The rows of `key`, ascending.
    #[inline]
    pub fn get(self, key: u64) -> U32s<'a> {
        let n_buckets = self.buckets.len().saturating_sub(1);
        if n_buckets == 0 || !n_buckets.is_power_of_two() || n_buckets == 1 {
            return U32s(&[]);
        }
        let range = self.buckets.range(bucket_of(key, n_buckets));
        // A damaged bucket could extend past the table.
        let last = range.end.min(self.checks.len());
        let check = key as u32;
        let mut start = range.start;
        while start < last && self.checks.get(start) < check {
            start += 1;
        }
        let mut end = start;
        while end < last && self.checks.get(end) == check {
            end += 1;
        }
        self.rows.slice(start..end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    proptest! {
        #[test]
        fn every_key_finds_its_rows_and_no_others(seeds in prop::collection::vec((0u64..40, 0u32..9), 0..60)) {
            let spread = |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let entries: Vec<(u64, u32)> = seeds.iter().map(|(seed, row)| (spread(*seed), *row)).collect();
            let table = KeyTable::build(entries.clone());
            let (buckets, checks, rows) = (bytes(&table.buckets), bytes(&table.checks), bytes(&table.rows));
            let view = KeyTableView { buckets: U32s(&buckets), checks: U32s(&checks), rows: U32s(&rows) };
            for seed in 0..41 {
                let mut expected: Vec<u32> =
                    entries.iter().filter(|(key, _)| *key == spread(seed)).map(|(_, row)| *row).collect();
                expected.sort_unstable();
                expected.dedup();
                prop_assert_eq!(view.get(spread(seed)).iter().collect::<Vec<_>>(), expected);
            }
        }
    }
}
