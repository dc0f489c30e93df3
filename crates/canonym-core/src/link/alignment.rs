//! Aligns the tokens of a query with the tokens of a name.

use crate::kb::lexicon::token_hash;
use crate::text::normalise::root;
use crate::text::words::WordKind;

/// A token of a query or of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token {
    /// Row of the canonical token in the vocabulary, `u32::MAX` if absent.
    pub row: u32,
    /// Hash of the canonical token.
    pub hash: u64,
    /// Hash of its root.
    pub root: u64,
    /// Hashes of the roots of its parts: organ and disorder (`nephropathy`: kidney, disease).
    pub parts: Option<[u64; 2]>,
    /// Inverse document frequency; zero for function words.
    pub weight: f32,
    /// Its role in the name.
    pub kind: WordKind,
    /// Start byte in the folded text.
    pub start: usize,
    /// End byte in the folded text, exclusive.
    pub end: usize,
}

/// A folded text with its tokens.
#[derive(Debug, Clone, Copy)]
pub struct Tokenised<'a> {
    /// The folded text.
    pub text: &'a str,
    /// Its tokens.
    pub tokens: &'a [Token],
}

/// Sums over the tokens of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Side {
    /// Weight of all tokens, always positive.
    pub total: f32,
    /// Weight of the tokens that the other side contains.
    pub exact: f32,
    /// `exact`, plus the weight of the tokens that match by root.
    pub rooted: f32,
    /// `rooted`, plus the weight of similarly spelled tokens times their similarity.
    pub resembled: f32,
    /// Weight of the plain tokens missing on the other side; a similarly spelled token counts 1 - similarity.
    pub plain_missing: f32,
    /// Number of plain tokens missing on the other side.
    pub n_plain_missing: f32,
    /// Sum of the spelling similarities of the missing plain tokens.
    pub n_plain_resembled: f32,
    /// Number of modifiers missing on the other side.
    pub modifiers: f32,
    /// Number of disorder words (`disease`, `syndrome`) without a counterpart on the other side.
    pub disorders: f32,
    /// Number of numbers and single letters missing on the other side.
    pub numbers: f32,
}

/// The alignment of a query and a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aligned {
    /// The query.
    pub query: Side,
    /// The name.
    pub name: Side,
    /// Number of disorder words matched with a different disorder word.
    pub substituted_disorders: f32,
    /// Number of token pairs matched by a part.
    pub by_parts: f32,
    /// 1 if the name contains `disease` or a synonym and the query does not, else 0.
    pub disease: f32,
    /// Share of adjacent query tokens that are adjacent in the same order in the name.
    pub in_order: f32,
    /// For each query token, the best matching name token.
    matched: Vec<Option<usize>>,
    query_found: Vec<f32>,
    name_found: Vec<f32>,
}

/// How far a token is matched: `EXACT`, `ROOT`, or the spelling similarity, below 1.
const EXACT: f32 = 2.0;
const ROOT: f32 = 1.0;

/// Aligns a query and a name and writes the result to `aligned`.
pub fn align(query_text: Tokenised<'_>, name_text: Tokenised<'_>, aligned: &mut Aligned) {
    let (query, name) = (query_text.tokens, name_text.tokens);
    let Aligned { query_found, name_found, matched, .. } = aligned;
    query_found.clear();
    query_found.resize(query.len(), 0.0);
    name_found.clear();
    name_found.resize(name.len(), 0.0);
    matched.clear();
    matched.resize(query.len(), None);
    let mut by_parts = 0.0;
    for (row, token) in query.iter().enumerate() {
        for (column, other) in name.iter().enumerate() {
            let found = match () {
                () if token.row == other.row || token.hash == other.hash => EXACT,
                () if token.root == other.root => ROOT,
                () => continue,
            };
            if found > query_found[row] {
                query_found[row] = found;
                matched[row] = Some(column);
            }
            name_found[column] = name_found[column].max(found);
        }
        if let (Some(parts), true) = (token.parts, query_found[row] == 0.0) {
            for (column, other) in name.iter().enumerate() {
                if parts[0] == other.root || (parts[1] == other.root && other.kind == WordKind::Disorder) {
                    name_found[column] = name_found[column].max(ROOT);
                    query_found[row] = ROOT;
                    by_parts += 1.0;
                }
            }
        }
    }
    for (row, token) in query.iter().enumerate() {
        if query_found[row] >= ROOT || token.kind != WordKind::Plain {
            continue;
        }
        for (column, other) in name.iter().enumerate() {
            if name_found[column] >= ROOT || other.kind != WordKind::Plain {
                continue;
            }
            let alike = resemblance(&query_text.text[token.start..token.end], &name_text.text[other.start..other.end]);
            query_found[row] = query_found[row].max(alike);
            name_found[column] = name_found[column].max(alike);
        }
    }
    let mut in_order = 0.0;
    for pair in matched.windows(2) {
        if let [Some(first), Some(second)] = pair {
            in_order += f32::from(u8::from(first + 1 == *second));
        }
    }
    aligned.in_order = in_order / (query.len().max(2) - 1) as f32;
    aligned.by_parts = by_parts;
    let disease = disease();
    let says_disease =
        name.iter().zip(&aligned.name_found).any(|(other, found)| *found < ROOT && other.root == disease);
    aligned.disease = f32::from(u8::from(says_disease));
    aligned.query = sums(query, &aligned.query_found);
    aligned.name = sums(name, &aligned.name_found);
    aligned.substituted_disorders = aligned.query.disorders.min(aligned.name.disorders);
    aligned.query.disorders -= aligned.substituted_disorders;
    aligned.name.disorders -= aligned.substituted_disorders;
}

/// Hash of the root of `disease`, the least specific disorder word.
fn disease() -> u64 {
    static DISEASE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *DISEASE.get_or_init(|| token_hash(&root("disease")))
}

fn sums(tokens: &[Token], found: &[f32]) -> Side {
    let mut side = Side { total: 1e-6, ..Side::default() };
    for (token, found) in tokens.iter().zip(found) {
        side.total += token.weight;
        if *found >= EXACT {
            side.exact += token.weight;
        }
        let similarity = found.min(1.0);
        side.resembled += token.weight * similarity;
        if *found >= ROOT {
            side.rooted += token.weight;
            continue;
        }
        match token.kind {
            WordKind::Plain => {
                side.plain_missing += token.weight * (1.0 - similarity);
                side.n_plain_missing += 1.0;
                side.n_plain_resembled += similarity;
            }
            WordKind::Disorder => side.disorders += 1.0,
            WordKind::Modifier => side.modifiers += 1.0,
            WordKind::Subtype => side.numbers += 1.0,
            WordKind::Linking => {}
        }
    }
    side
}

/// Spelling similarity from 0 to 0.95: long common prefix, long common suffix, or few edits (Damerau-Levenshtein).
fn resemblance(one: &str, other: &str) -> f32 {
    let (long, short) = (one.len().max(other.len()), one.len().min(other.len()));
    if short < 4 {
        return 0.0;
    }
    let prefix = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let suffix = one.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count();
    let mut best = 0.0f32;
    if prefix >= 4 {
        best = prefix as f32 / long as f32;
    }
    if suffix >= 6 {
        best = best.max(0.8 * suffix as f32 / long as f32);
    }
    if long - short <= 2 && short >= 5 && prefix + suffix + 3 >= short {
        let edits = rapidfuzz::distance::damerau_levenshtein::distance(one.chars(), other.chars());
        best = best.max(1.0 - 2.0 * edits as f32 / long as f32);
    }
    best.clamp(0.0, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarly_spelled_words_are_similar() {
        assert!(resemblance("tachyarrhythmia", "tachycardia") > 0.3);
        assert!(resemblance("leucocytoclastic", "leukocytoclastic") > 0.8);
        assert!(resemblance("polyneuropathy", "neuropathy") > 0.5);
        assert_eq!(resemblance("renal", "skin"), 0.0);
    }
}
