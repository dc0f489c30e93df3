//! New inputs from old ones.

use canonym_core::eval::bootstrap::SplitMix64;

/// The longest input that is made, in bytes.
const MAX_LEN: usize = 1 << 15;

/// Tokenizer that mean something in one format or another, or are awkward in all.
#[rustfmt::skip]
const PIECES: [&[u8]; 96] = [
    b"\t", b"\n", b"\r\n", b"\n\n", b" ", b"|", b"||", b"+", b",", b";", b":", b"{", b"}", b"[", b"]", b"(", b")", b"\"",
    b"\\", b"\\u0000", b"\\ud800", b"\0", b"0", b"1", b"-1", b"-", b"255", b"65536", b"4294967295", b"4294967296",
    b"18446744073709551616", b"1e999", b"0.5", b"null", b"true", b"[[]]", b"{}", b"|t|", b"|a|", b"|t|\n", b"!", b"#",
    b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", "é".as_bytes(), "ß".as_bytes(), "İ".as_bytes(),
    "😀".as_bytes(), "e\u{301}".as_bytes(), "\u{200d}".as_bytes(), "\u{a0}".as_bytes(), "\u{2028}".as_bytes(), "ﬁ".as_bytes(),
    "α".as_bytes(), "µ".as_bytes(), b" and ", b" or ", b" (ABC)", b", and ", b"-/-", b" of the ", b"[Term]\n", b"id: X:1\n",
    b"name: a\n", b"is_a: X:1 ! a\n", b"synonym: \"b\" EXACT []\n", b"is_obsolete: true\n", b"<", b"&#x10ffff;",
    b"\x1e", b"T1\t", b";0 1", b" Arg1:T1", b"A2\tX T1\n", b"-DOCSTART-\n", b"# id = 7\n", b"\tB-X\n", b"\tO\n", b"18446744073709551615",
    b"18446744073709551610", b"\"offset\":", b"\"length\":", b"<offset>", b"<passage>", b"</passage>", b"<sentence>", b"</sentence>",
    b"<infon key=\"identifier\">", b"</infon>", b"<![CDATA[", b"]]>", b"\"begin\":", b"\"text\":\"\"",
];

/// An input made of one or two of the pool.
pub fn mutate(pool: &[Vec<u8>], rng: &mut SplitMix64) -> Vec<u8> {
    let mut input = if pool.is_empty() { Vec::new() } else { pool[rng.below(pool.len())].clone() };
    for _ in 0..=rng.below(6) {
        change(&mut input, pool, rng);
    }
    input.truncate(MAX_LEN);
    input
}

fn change(input: &mut Vec<u8>, pool: &[Vec<u8>], rng: &mut SplitMix64) {
    let at = rng.below(input.len() + 1);
    match rng.below(12) {
        0 => flip_bit(input, rng),
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.next_u64() as u8;
            }
        }
        2 => drop(input.drain(range(input, rng))),
        3 => input.truncate(at),
        4..=6 => insert(input, at, PIECES[rng.below(PIECES.len())]),
        7 => {
            let piece = input[range(input, rng)].to_vec();
            insert(input, at, &piece);
        }
        8 => {
            let piece = input[range(input, rng)].repeat(1 + rng.below(40));
            insert(input, at, &piece[..piece.len().min(MAX_LEN / 4)]);
        }
        9 if !pool.is_empty() => {
            let other = &pool[rng.below(pool.len())];
            let piece = other[range(other, rng)].to_vec();
            insert(input, at, &piece);
        }
        10 => swap_lines(input, rng),
        _ => {
            let piece = PIECES[rng.below(PIECES.len())].repeat(1 + rng.below(300));
            insert(input, at, &piece);
        }
    }
}

fn flip_bit(input: &mut [u8], rng: &mut SplitMix64) {
    if !input.is_empty() {
        let at = rng.below(input.len());
        input[at] ^= 1 << rng.below(8);
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if input.len() + piece.len() <= MAX_LEN {
        input.splice(at..at, piece.iter().copied());
    }
}

/// A range of an input: short ones are likely.
fn range(input: &[u8], rng: &mut SplitMix64) -> std::ops::Range<usize> {
    let start = rng.below(input.len() + 1);
    let rest = input.len() - start;
    let longest = if rng.below(4) == 0 { rest } else { rest.min(16) };
    start..start + rng.below(longest + 1)
}

fn swap_lines(input: &mut Vec<u8>, rng: &mut SplitMix64) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() < 2 {
        return;
    }
    let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
    lines.swap(one, other);
    *input = lines.concat();
}
