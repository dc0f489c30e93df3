//! Sums over the bits of codes by lookups in registers, for processors that count bits in vector registers slowly.
//!
//! As in the fast scan of André, Kermarrec and Le Scouarnec (2015): four bits of a code select one of sixteen sums, which fit a register, and
//! one instruction looks up 32 of them.

/// Rows of a block.
pub const BLOCK: usize = 16;

/// Maximum dimension, so that sums fit 16 bits.
pub const MAX_COLS: usize = 4096;

/// The sums for each four bits of a word of 32, byte by byte: low bits of bytes 0 and 1, their high bits, then those of bytes 2 and 3.
pub type Table = [[u8; 32]; 4];

/// A block: for each word of a row, that word of sixteen rows in little-endian order.
pub type Line = [u8; 4 * BLOCK];

/// The sums of a word: `values` are those of its 32 dimensions, of at most 7 in magnitude.
pub fn table(values: &[i8; 32]) -> Table {
    let mut table = [[0; 32]; 4];
    for (place, sums) in table.iter_mut().enumerate() {
        for (at, sum) in sums.iter_mut().enumerate() {
            let (byte, half, bits) = (2 * (place / 2) + at / 16, place % 2, at % 16);
            let first = 8 * byte + 4 * half;
            let selected = (0..4).filter(|bit| bits >> bit & 1 == 1);
            *sum = selected.map(|bit| values[first + bit]).sum::<i8>().cast_unsigned();
        }
    }
    table
}

/// Whether this processor can do lookups and counts bits in vector registers slowly.
#[must_use]
pub fn are_faster() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && !is_x86_feature_detected!("avx512vpopcntdq");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Calls `each` with every block of lines and the sums of its rows: the values of the dimensions whose bits are set. The first lines of a
/// block belong to `tables`, others are left to `each`.
///
/// # Panics
/// If the processor cannot do lookups.
#[cfg(target_arch = "x86_64")]
pub fn each_block<'a>(
    blocks: impl Iterator<Item = &'a [Line]>,
    tables: &[Table],
    each: impl FnMut(&'a [Line], &[f32; BLOCK]),
) {
    assert!(is_x86_feature_detected!("avx2"), "are_faster() is asked before");
    // SAFETY: the feature was detected above.
    unsafe { x86::each_block(blocks, tables, each) }
}

/// This processor cannot do lookups.
#[cfg(not(target_arch = "x86_64"))]
pub fn each_block<'a>(_: impl Iterator<Item = &'a [Line]>, _: &[Table], _: impl FnMut(&'a [Line], &[f32; BLOCK])) {
    unreachable!("are_faster() is asked before");
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{BLOCK, Line, Table};

    #[target_feature(enable = "avx2")]
    pub fn each_block<'a>(
        blocks: impl Iterator<Item = &'a [Line]>,
        tables: &[Table],
        mut each: impl FnMut(&'a [Line], &[f32; BLOCK]),
    ) {
        for block in blocks {
            each(block, &sums(block, tables));
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums(lines: &[Line], tables: &[Table]) -> [f32; BLOCK] {
        // Bytes of four rows in a lane, brought together by their place in the word.
        let by_place = _mm256_setr_epi8(
            0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
        );
        let mut sums = _mm256_setzero_si256();
        for (line, table) in lines.iter().zip(tables) {
            let halves = line.as_chunks().0;
            let first = _mm256_shuffle_epi8(load(&halves[0]), by_place);
            let last = _mm256_shuffle_epi8(load(&halves[1]), by_place);
            // Rows 0 to 3, 8 to 11, 4 to 7 and 12 to 15: bytes 0 and 1 in the lanes of one register, bytes 2 and 3 in those of the other.
            let lower = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_unpacklo_epi32(first, last));
            let upper = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_unpackhi_epi32(first, last));
            // Four sums of at most 28 fit a byte.
            let lower = _mm256_add_epi8(low(lower, &table[0]), high(lower, &table[1]));
            let upper = _mm256_add_epi8(low(upper, &table[2]), high(upper, &table[3]));
            let both = _mm256_add_epi8(lower, upper);
            sums = _mm256_add_epi16(sums, _mm256_cvtepi8_epi16(_mm256_castsi256_si128(both)));
            sums = _mm256_add_epi16(sums, _mm256_cvtepi8_epi16(_mm256_extracti128_si256::<1>(both)));
        }
        let sums = _mm256_permute4x64_epi64::<0b11_01_10_00>(sums);
        let first = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums)));
        let last = _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm256_extracti128_si256::<1>(sums)));
        // SAFETY: both types are 64 bytes without padding, of which any bits are valid.
        unsafe { std::mem::transmute::<[__m256; 2], [f32; BLOCK]>([first, last]) }
    }

    /// Lookups by the low four bits of each byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn low(bytes: __m256i, table: &[u8; 32]) -> __m256i {
        let bits = _mm256_and_si256(bytes, _mm256_set1_epi8(15));
        _mm256_shuffle_epi8(load(table), bits)
    }

    /// Lookups by the high four bits of each byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn high(bytes: __m256i, table: &[u8; 32]) -> __m256i {
        low(_mm256_srli_epi16::<4>(bytes), table)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; 32]) -> __m256i {
        // SAFETY: both types are 32 bytes without padding, of which any bits are valid.
        unsafe { std::mem::transmute::<[u8; 32], __m256i>(*bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::SplitMix64;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn sums_are_those_of_the_set_bits() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        let mut rng = SplitMix64::new(3);
        let n_words = MAX_COLS / 32;
        for all_set in [false, true] {
            let values: Vec<[i8; 32]> = (0..n_words)
                .map(|_| std::array::from_fn(|_| if all_set { -7 } else { rng.below(15) as i8 - 7 }))
                .collect();
            let words: Vec<[u32; BLOCK]> = (0..n_words)
                .map(|_| std::array::from_fn(|_| if all_set { u32::MAX } else { rng.next_u64() as u32 }))
                .collect();
            let lines: Vec<Line> =
                words.iter().map(|words| std::array::from_fn(|at| words[at / 4].to_le_bytes()[at % 4])).collect();
            let tables: Vec<Table> = values.iter().map(table).collect();
            let mut found = Vec::new();
            each_block([&lines[..]].into_iter(), &tables, |_, sums| found.push(*sums));
            let expected: [f32; BLOCK] = std::array::from_fn(|row| {
                let of_word = |(values, words): (&[i8; 32], &[u32; BLOCK])| -> i16 {
                    (0..32).filter(|bit| words[row] >> bit & 1 == 1).map(|bit| i16::from(values[bit])).sum()
                };
                f32::from(values.iter().zip(&words).map(of_word).sum::<i16>())
            });
            assert_eq!(found, [expected]);
        }
    }
}
