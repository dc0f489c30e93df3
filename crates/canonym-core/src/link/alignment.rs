//! Which tokens of a query stand in a name, and which of a name in a query.

use crate::kb::lexicon::token_hash;
use crate::text::normalise::root;
use crate::text::words::Kind;

/// A token of a query or of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Token {
    /// The row of the canonical token in the vocabulary; `u32::MAX` where it is not in there.
    pub row: u32,
    /// The hash of the canonical token.
    pub hash: u64,
    /// The hash of its root.
    pub root: u64,
    /// The roots of the organ and the trouble that it is made of.
    pub parts: Option<[u64; 2]>,
    /// The inverse document frequency; zero for linking words.
    pub weight: f32,
    /// What it does in the name.
    pub kind: Kind,
    /// Its first byte in the folded text.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

/// What became of the tokens of one side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Side {
    /// The weight of all tokens, never zero.
    pub total: f32,
    /// The weight of the tokens that the other side has.
    pub exact: f32,
    /// That, and the weight of the tokens of which the other side has the root.
    pub rooted: f32,
    /// That, and a part of the weight of the tokens of which the other side has one that looks alike.
    pub resembled: f32,
    /// The weight of plain tokens that the other side lacks, less for those that look alike.
    pub plain_missing: f32,
    /// Their number.
    pub n_plain_missing: f32,
    /// The number of plain tokens of which the other side has one that looks alike, each times the resemblance.
    pub n_plain_resembled: f32,
    /// The number of modifiers that the other side lacks.
    pub modifiers: f32,
    /// The number of words of trouble for which the other side has none.
    pub trouble: f32,
    /// The number of discerning tokens that the other side lacks.
    pub numbers: f32,
}

/// Two sides compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aligned {
    /// The query.
    pub query: Side,
    /// The name.
    pub name: Side,
    /// The number of words of trouble that stand for others.
    pub trouble_for_trouble: f32,
    /// The number of tokens of which the other side has a part.
    pub by_parts: f32,
    /// 1 where the name says `disease` or the like and the query does not.
    pub disease: f32,
    /// The share of neighbours in the query that are neighbours in the same order in the name.
    pub in_order: f32,
    place: Vec<Option<usize>>,
    query_found: Vec<f32>,
    name_found: Vec<f32>,
}

/// How much of a token was found: all of it, its root, or less for those that look alike.
const EXACT: f32 = 2.0;
const ROOT: f32 = 1.0;

/// Compares the tokens of a query and of a name.
pub fn align((query_text, query): (&str, &[Token]), (name_text, name): (&str, &[Token]), aligned: &mut Aligned) {
    let Aligned { query_found, name_found, place, .. } = aligned;
    query_found.clear();
    query_found.resize(query.len(), 0.0);
    name_found.clear();
    name_found.resize(name.len(), 0.0);
    place.clear();
    place.resize(query.len(), None);
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
                place[row] = Some(column);
            }
            name_found[column] = name_found[column].max(found);
        }
        if let (Some(parts), true) = (token.parts, query_found[row] == 0.0) {
            for (column, other) in name.iter().enumerate() {
                if parts[0] == other.root || (parts[1] == other.root && other.kind == Kind::Trouble) {
                    name_found[column] = name_found[column].max(ROOT);
                    query_found[row] = ROOT;
                    by_parts += 1.0;
                }
            }
        }
    }
    for (row, token) in query.iter().enumerate() {
        if query_found[row] >= ROOT || token.kind != Kind::Plain {
            continue;
        }
        for (column, other) in name.iter().enumerate() {
            if name_found[column] >= ROOT || other.kind != Kind::Plain {
                continue;
            }
            let alike = resemblance(&query_text[token.start..token.end], &name_text[other.start..other.end]);
            query_found[row] = query_found[row].max(alike);
            name_found[column] = name_found[column].max(alike);
        }
    }
    let mut in_order = 0.0;
    for pair in place.windows(2) {
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
    aligned.query = sum_up(query, &aligned.query_found);
    aligned.name = sum_up(name, &aligned.name_found);
    aligned.trouble_for_trouble = aligned.query.trouble.min(aligned.name.trouble);
    aligned.query.trouble -= aligned.trouble_for_trouble;
    aligned.name.trouble -= aligned.trouble_for_trouble;
}

/// The root of the least specific word of trouble.
fn disease() -> u64 {
    static DISEASE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *DISEASE.get_or_init(|| token_hash(&root("disease")))
}

fn sum_up(tokens: &[Token], found: &[f32]) -> Side {
    let mut side = Side { total: 1e-6, ..Side::default() };
    for (token, found) in tokens.iter().zip(found) {
        side.total += token.weight;
        if *found >= EXACT {
            side.exact += token.weight;
        }
        let share = found.min(1.0);
        side.resembled += token.weight * share;
        if *found >= ROOT {
            side.rooted += token.weight;
            continue;
        }
        match token.kind {
            Kind::Plain => {
                side.plain_missing += token.weight * (1.0 - share);
                side.n_plain_missing += 1.0;
                side.n_plain_resembled += share;
            }
            Kind::Trouble => side.trouble += 1.0,
            Kind::Modifier => side.modifiers += 1.0,
            Kind::Discerning => side.numbers += 1.0,
            Kind::Linking => {}
        }
    }
    side
}

/// How much two words look alike, 0 to below 1: a long common beginning or end, or few edits.
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
    fn words_that_look_alike_resemble_each_other() {
        assert!(resemblance("tachyarrhythmia", "tachycardia") > 0.3);
        assert!(resemblance("leucocytoclastic", "leukocytoclastic") > 0.8);
        assert!(resemblance("polyneuropathy", "neuropathy") > 0.5);
        assert_eq!(resemblance("renal", "skin"), 0.0);
    }
}
