//! Packing, and kernels for tile units and for vector units.

use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::{DEPTH, LINES, Line, Right, STRIP};
use crate::tensor::matrix::{Threads, View, ViewMut, WriteMode};

/// Lines of the packed right factor that stay in the cache while the left factor is streamed.
const NEAR: usize = 1 << 13;

/// Number of rows whose sums are held in vector registers.
const GROUP: usize = 8;

/// Rows per thread.
const ROWS: usize = 128;

/// Columns per thread if there are few rows.
const COLUMNS: usize = 128;

/// Products with fewer multiplications run on the calling thread.
const WORTH_THREADS: usize = 1 << 23;

/// The factor that is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Tile configuration, in the layout of `LDTILECFG`.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start: u8,
    reserved: [u8; 14],
    line_bytes: [u16; 16],
    n_lines: [u8; 16],
}

static SHAPES: Shapes = {
    let (mut line_bytes, mut n_lines) = ([0; 16], [0; 16]);
    let mut tile = 0;
    while tile < 8 {
        (line_bytes[tile], n_lines[tile]) = (64, LINES as u8);
        tile += 1;
    }
    Shapes { palette: 1, start: 0, reserved: [0; 14], line_bytes, n_lines }
};

/// Permutation that interleaves two rows of 16 values.
static IN_TURNS: Line = {
    let (mut order, mut at) = ([0; 32], 0);
    while at < 32 {
        (order[at as usize], at) = (at / 2 + at % 2 * 16, at + 1);
    }
    Line(order)
};

/// Buffers reused by a thread.
#[derive(Default)]
struct Scratch {
    left: Vec<Line>,
    sums: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// What multiplies bfloat16 values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Units {
    /// Tile registers (Intel AMX).
    Tiles,
    /// Dot products of pairs in vector registers (AVX512-BF16).
    Vectors,
}

pub fn available() -> bool {
    units().is_some()
}

fn units() -> Option<Units> {
    static UNITS: OnceLock<Option<Units>> = OnceLock::new();
    *UNITS.get_or_init(|| {
        let vectors = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16");
        vectors.then(|| if has_tiles() && is_lent() { Units::Tiles } else { Units::Vectors })
    })
}

fn has_tiles() -> bool {
    const BFLOAT: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    __cpuid_count(7, 0).edx & (BFLOAT | TILES) == BFLOAT | TILES
}

/// Requests permission to use the tile registers, for the whole process.
fn is_lent() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const REQUEST: i64 = 0x1023;
    const TILE_DATA: i64 = 18;
    let answer: i64;
    // SAFETY: the call reads two numbers and changes only the permissions of this process.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => answer, in("rdi") REQUEST, in("rsi") TILE_DATA,
            out("rcx") _, out("r11") _, options(nostack));
    }
    answer == 0
}

/// Packs a factor into the start of `workspace`, which grows if needed. Rows of `side` are the rows of the left or the columns of the right
/// factor; its columns are the depth.
pub fn pack<'a>(side: View<'_>, of: Side, workspace: &'a mut Vec<Line>) -> &'a [Line] {
    assert!(available(), "bfloat16 units; check `available` first");
    side.check();
    let n_tiles = side.n_cols.div_ceil(DEPTH);
    let n_lines = side.n_rows.div_ceil(STRIP) * n_tiles * 2 * LINES;
    if workspace.len() < n_lines {
        workspace.resize(n_lines, Line([0; 32]));
    }
    // Every line is overwritten below.
    let lines = &mut workspace[..n_lines];
    let tiles = lines.as_chunks_mut::<LINES>().0;
    let n_strips = side.n_rows.div_ceil(STRIP);
    let mut pack = |strip: usize, depth: usize| {
        for half in 0..2 {
            let tile = &mut tiles[(strip * n_tiles + depth) * 2 + half];
            // SAFETY: the assertion checks the features.
            unsafe { pack_tile(side, strip * STRIP + half * LINES, depth * DEPTH, of, tile) };
        }
    };
    // In memory order.
    if side.col_step == 1 {
        (0..n_strips).for_each(|strip| (0..n_tiles).for_each(|depth| pack(strip, depth)));
    } else {
        (0..n_tiles).for_each(|depth| (0..n_strips).for_each(|strip| pack(strip, depth)));
    }
    lines
}

/// Packs one tile of 16 rows and depth 32, zero-padded.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack_tile(side: View<'_>, row: usize, depth: usize, of: Side, tile: &mut [Line; LINES]) {
    let n_rows = side.n_rows.saturating_sub(row).min(LINES);
    let n_depth = (side.n_cols - depth).min(DEPTH);
    let mut made = [_mm512_setzero_si512(); LINES];
    let along = side.col_step == 1;
    if along {
        for (line, made) in made.iter_mut().enumerate().take(n_rows) {
            let from = &side.values[(row + line) * side.row_step + depth..][..n_depth];
            let (lower, upper) = from.split_at(n_depth.min(LINES));
            *made = rounded(load(lower), load(upper));
        }
    } else {
        let from = |depth: usize| match n_rows {
            0 => _mm512_setzero_ps(),
            _ => load(&side.values[depth * side.col_step + row..][..n_rows]),
        };
        // SAFETY: the line has 64 bytes.
        let order = unsafe { _mm512_load_si512((&raw const IN_TURNS).cast()) };
        for (pair, made) in made.iter_mut().enumerate().take(n_depth.div_ceil(2)) {
            let second = if 2 * pair + 1 < n_depth { from(depth + 2 * pair + 1) } else { _mm512_setzero_ps() };
            *made = _mm512_permutexvar_epi16(order, rounded(from(depth + 2 * pair), second));
        }
    }
    if along == (of == Side::Right) {
        made = transposed(made);
    }
    for (line, made) in tile.iter_mut().zip(made) {
        // SAFETY: a line has 64 bytes and is aligned to them.
        unsafe { _mm512_store_si512((&raw mut *line).cast(), made) };
    }
}

/// Up to sixteen values, zero-padded.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(from: &[f32]) -> __m512 {
    let mask = ((1u32 << from.len().min(LINES)) - 1) as __mmask16;
    // SAFETY: the mask has no more bits than there are values.
    unsafe { _mm512_maskz_loadu_ps(mask, from.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn rounded(lower: __m512, upper: __m512) -> __m512i {
    // SAFETY: both types have 64 bytes, and every bit pattern is valid for both.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(upper, lower)) }
}

/// Transposes a 16 x 16 matrix of 32-bit values.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512i; LINES]) -> [__m512i; LINES] {
    let zero = _mm512_setzero_si512();
    let (mut pairs, mut fours, mut eights, mut all) = ([zero; 16], [zero; 16], [zero; 16], [zero; 16]);
    for at in 0..8 {
        pairs[2 * at] = _mm512_unpacklo_epi32(rows[2 * at], rows[2 * at + 1]);
        pairs[2 * at + 1] = _mm512_unpackhi_epi32(rows[2 * at], rows[2 * at + 1]);
    }
    for at in 0..4 {
        for half in 0..2 {
            let (first, second) = (pairs[4 * at + half], pairs[4 * at + 2 + half]);
            fours[4 * at + 2 * half] = _mm512_unpacklo_epi64(first, second);
            fours[4 * at + 2 * half + 1] = _mm512_unpackhi_epi64(first, second);
        }
    }
    for col in 0..4 {
        for half in 0..2 {
            let (first, second) = (fours[8 * half + col], fours[8 * half + 4 + col]);
            eights[8 * half + col] = _mm512_shuffle_i32x4(first, second, 0x88);
            eights[8 * half + 4 + col] = _mm512_shuffle_i32x4(first, second, 0xdd);
        }
    }
    for col in 0..4 {
        all[col] = _mm512_shuffle_i32x4(eights[col], eights[8 + col], 0x88);
        all[8 + col] = _mm512_shuffle_i32x4(eights[col], eights[8 + col], 0xdd);
        all[4 + col] = _mm512_shuffle_i32x4(eights[4 + col], eights[12 + col], 0x88);
        all[12 + col] = _mm512_shuffle_i32x4(eights[4 + col], eights[12 + col], 0xdd);
    }
    all
}

pub fn multiply(out: ViewMut<'_>, left: View<'_>, right: Right<'_>, mode: WriteMode, threads: Threads) {
    let (n_rows, n_cols, row_step) = (out.n_rows, out.n_cols, out.row_step);
    if threads == Threads::One || n_rows * n_cols * right.depth < WORTH_THREADS {
        return rows_times(out.values, row_step, left, right, 0..n_cols, mode);
    }
    if n_rows > ROWS {
        let parts = out.values[..(n_rows - 1) * row_step + n_cols].par_chunks_mut(ROWS * row_step).enumerate();
        return parts.for_each(|(part, to)| {
            let first = part * ROWS;
            let left = left.rows(first, ROWS.min(n_rows - first));
            rows_times(to, row_step, left, right, 0..n_cols, mode);
        });
    }
    let parts = (0..n_cols).into_par_iter().step_by(COLUMNS);
    let made: Vec<Vec<f32>> = parts
        .map(|first| {
            let columns = first..n_cols.min(first + COLUMNS);
            let mut made = vec![0.0; n_rows * columns.len()];
            rows_times(&mut made, columns.len(), left, right, columns, WriteMode::Replace);
            made
        })
        .collect();
    for (part, made) in made.iter().enumerate() {
        let width = made.len() / n_rows;
        for (row, made) in made.chunks_exact(width).enumerate() {
            write(&mut out.values[row * row_step + part * COLUMNS..][..width], made, mode);
        }
    }
}

/// Product of a range of rows on the calling thread. `columns` starts at a strip boundary.
fn rows_times(
    to: &mut [f32],
    row_step: usize,
    left: View<'_>,
    right: Right<'_>,
    columns: std::ops::Range<usize>,
    mode: WriteMode,
) {
    let n_tiles = right.depth.div_ceil(DEPTH);
    let strip_lines = n_tiles * 2 * LINES;
    if n_tiles == 0 {
        if mode == WriteMode::Replace {
            to.chunks_mut(row_step).for_each(|row| row[..columns.len()].fill(0.0));
        }
        return;
    }
    let strips = columns.start / STRIP..columns.end.div_ceil(STRIP);
    let near = (NEAR / strip_lines).max(1);
    SCRATCH.with_borrow_mut(|Scratch { left: packed, sums }| {
        let packed = pack(left, Side::Left, packed);
        let n_sums = STRIP * near.min(strips.len()) * STRIP;
        if sums.len() < n_sums {
            sums.resize(n_sums, 0.0);
        }
        for first in strips.clone().step_by(near) {
            let strips = first..strips.end.min(first + near);
            let width = strips.len() * STRIP;
            let right = &right.lines[strips.start * strip_lines..strips.end * strip_lines];
            let begin = first * STRIP - columns.start;
            let n_cols = width.min(columns.len() - begin);
            for (strip, left_lines) in packed.chunks_exact(strip_lines).enumerate() {
                let n_rows = STRIP.min(left.n_rows - strip * STRIP);
                let place = strip * STRIP * row_step + begin;
                if n_rows == STRIP && n_cols == width {
                    strip_times(left_lines, right, n_tiles, true, &mut to[place..], row_step, mode);
                    continue;
                }
                strip_times(left_lines, right, n_tiles, n_rows > LINES, sums, width, WriteMode::Replace);
                for (row, sums) in sums.chunks_exact(width).take(n_rows).enumerate() {
                    write(&mut to[place + row * row_step..][..n_cols], &sums[..n_cols], mode);
                }
            }
        }
    });
}

fn write(to: &mut [f32], made: &[f32], mode: WriteMode) {
    match mode {
        WriteMode::Replace => to.copy_from_slice(made),
        WriteMode::Add => to.iter_mut().zip(made).for_each(|(to, made)| *to += made),
    }
}

/// Multiplies a strip of the left factor with strips of the right: `[32, 32 * strips]`; only 16 rows unless `whole`. Rows of the sums are
/// `row_step` values apart.
fn strip_times(
    left: &[Line],
    right: &[Line],
    n_tiles: usize,
    whole: bool,
    sums: &mut [f32],
    row_step: usize,
    mode: WriteMode,
) {
    let strip_lines = n_tiles * 2 * LINES;
    let n_strips = right.len() / strip_lines;
    let units = units().expect("bfloat16 units; check `available` first");
    assert!(n_tiles > 0 && n_strips > 0, "a product of something");
    assert_eq!((left.len(), right.len()), (strip_lines, n_strips * strip_lines), "whole strips");
    assert!(sums.len() >= (STRIP - 1) * row_step + STRIP * n_strips, "sums of a strip");
    if units == Units::Vectors {
        let n_rows = if whole { STRIP } else { LINES };
        for (strip, right) in right.chunks_exact(strip_lines).enumerate() {
            for row in (0..n_rows).step_by(GROUP) {
                let to = &mut sums[row * row_step + strip * STRIP..];
                // SAFETY: `units` detected the features.
                unsafe { rows_of_strip(left, right, row, to, row_step, mode) };
            }
        }
        return;
    }
    let row_bytes = row_step * size_of::<f32>();
    // Tiles 0 to 3 are the sums, 4 and 5 the left factor, 6 and 7 the right factor.
    macro_rules! kernel {
        ([$($begin:literal)*] [$($below:literal)*] [$($keep:literal)*]) => {
            // SAFETY: the loops read `n_tiles` pairs of tiles of the left factor and as many for each of `n_strips` of the right, and read
            // or write 32 rows of 32 values per strip, all within the slices, as asserted. Tiles are released at the end.
            unsafe {
                asm!(
                    "ldtilecfg [{shapes}]",
                    "2:",
                    $($begin,)*
                    "mov {at}, {left}",
                    "mov {rest}, {n_tiles}",
                    "3:",
                    "tileloadd tmm4, [{at} + {line}*1]",
                    "tileloadd tmm6, [{right} + {line}*1]",
                    "tileloadd tmm7, [{right} + {line}*1 + 1024]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    $($below,)*
                    "add {at}, 2048",
                    "add {right}, 2048",
                    "dec {rest}",
                    "jnz 3b",
                    "tilestored [{sums} + {row}*1], tmm0",
                    "tilestored [{sums} + {row}*1 + 64], tmm1",
                    $($keep,)*
                    "add {sums}, 128",
                    "dec {n_strips}",
                    "jnz 2b",
                    "tilerelease",
                    shapes = in(reg) &raw const SHAPES,
                    left = in(reg) left.as_ptr(),
                    n_tiles = in(reg) n_tiles,
                    line = in(reg) size_of::<Line>(),
                    row = in(reg) row_bytes,
                    right = inout(reg) right.as_ptr() => _,
                    sums = inout(reg) sums.as_mut_ptr() => _,
                    n_strips = inout(reg) n_strips => _,
                    at = out(reg) _,
                    rest = out(reg) _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        };
        (below $begin:tt) => {
            kernel!(
                $begin
                ["tileloadd tmm5, [{at} + {line}*1 + 1024]" "tdpbf16ps tmm2, tmm5, tmm6" "tdpbf16ps tmm3, tmm5, tmm7"]
                ["mov {at}, {row}" "shl {at}, 4" "add {at}, {sums}" "tilestored [{at} + {row}*1], tmm2"
                 "tilestored [{at} + {row}*1 + 64], tmm3"]
            )
        };
    }
    match (whole, mode) {
        (true, WriteMode::Replace) => kernel!(below ["tilezero tmm0" "tilezero tmm1" "tilezero tmm2" "tilezero tmm3"]),
        (true, WriteMode::Add) => kernel!(below
            ["mov {at}, {row}" "shl {at}, 4" "add {at}, {sums}" "tileloadd tmm0, [{sums} + {row}*1]"
             "tileloadd tmm1, [{sums} + {row}*1 + 64]" "tileloadd tmm2, [{at} + {row}*1]"
             "tileloadd tmm3, [{at} + {row}*1 + 64]"]
        ),
        (false, WriteMode::Replace) => kernel!(["tilezero tmm0" "tilezero tmm1"] [] []),
        (false, WriteMode::Add) => kernel!(
            ["tileloadd tmm0, [{sums} + {row}*1]" "tileloadd tmm1, [{sums} + {row}*1 + 64]"] [] []
        ),
    }
}

/// Multiplies [`GROUP`] rows of a strip of the left factor, from `row`, with a strip of the right, in vector registers.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn rows_of_strip(left: &[Line], right: &[Line], row: usize, to: &mut [f32], row_step: usize, mode: WriteMode) {
    let pair_of = |line: &Line, pair: usize| {
        _mm512_set1_epi32((u32::from(line.0[2 * pair]) | u32::from(line.0[2 * pair + 1]) << 16).cast_signed())
    };
    let mut sums = [[_mm512_setzero_ps(); 2]; GROUP];
    let half = row / LINES * LINES;
    for (left, right) in left.as_chunks::<{ 2 * LINES }>().0.iter().zip(right.as_chunks::<{ 2 * LINES }>().0) {
        let lines: &[Line; GROUP] = left[half + row % LINES..].first_chunk().expect("rows of a tile");
        for pair in 0..LINES {
            let columns = [whole_line(&right[pair]), whole_line(&right[LINES + pair])];
            // Unrolled by hand, so that the sums stay in registers.
            macro_rules! accumulate {
                ($($line:literal)*) => {$(
                    let values = bfloats(pair_of(&lines[$line], pair));
                    sums[$line][0] = _mm512_dpbf16_ps(sums[$line][0], values, columns[0]);
                    sums[$line][1] = _mm512_dpbf16_ps(sums[$line][1], values, columns[1]);
                )*};
            }
            accumulate!(0 1 2 3 4 5 6 7);
        }
    }
    for (line, mut sums) in sums.into_iter().enumerate() {
        let (lower, upper) = to[line * row_step..][..STRIP].split_at_mut(LINES);
        if mode == WriteMode::Add {
            sums = [_mm512_add_ps(load(lower), sums[0]), _mm512_add_ps(load(upper), sums[1])];
        }
        // SAFETY: each half has sixteen values.
        unsafe {
            _mm512_storeu_ps(lower.as_mut_ptr(), sums[0]);
            _mm512_storeu_ps(upper.as_mut_ptr(), sums[1]);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn whole_line(line: &Line) -> __m512bh {
    // SAFETY: a line has 64 bytes and is aligned to them.
    bfloats(unsafe { _mm512_load_si512((&raw const *line).cast()) })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn bfloats(bits: __m512i) -> __m512bh {
    // SAFETY: both types have 64 bytes, and every bit pattern is valid for both.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}
