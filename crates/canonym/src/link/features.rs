//! What speaks for a name as the meaning of a query: numbers that a linear model weighs.

use crate::index::grams::{GramHit, GramScratch};
use crate::kb::lexicon::{TokenHashes, bag_key, hash_form};
use crate::kb::{FormId, KnowledgeBase};
use crate::text::normalise::fold;

/// How many features a form has.
pub const N_FEATURES: usize = 18;

/// What each feature is, for reports and explanations.
pub const FEATURE_NAMES: [&str; N_FEATURES] = [
    "same folded text",
    "same canonical tokens",
    "same roots",
    "n-gram cosine",
    "n-gram cosine squared",
    "query tokens found",
    "name tokens found",
    "query roots found",
    "name roots found",
    "same first root",
    "same last root",
    "numbers only in query",
    "numbers only in name",
    "length difference",
    "one token",
    "all query roots found",
    "all name roots found",
    "spelling of lone tokens",
];

/// A name of the knowledge base in folded form, and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormFeatures {
    /// The form.
    pub form: FormId,
    /// The features, in the order of [`FEATURE_NAMES`].
    pub values: [f32; N_FEATURES],
}

/// A query prepared for comparison.
#[derive(Debug)]
pub struct Query {
    /// The folded query.
    pub folded: String,
    /// Its tokens.
    pub tokens: Vec<TokenHashes>,
    rows: Vec<Option<u32>>,
    idf: Vec<f32>,
    numeric: Vec<bool>,
}

/// Forms compared with a query, at least.
pub const N_NEAREST: usize = 48;

/// A number, a Roman numeral already read as one, or a single letter: what tells kinds of one thing apart.
fn is_discerning(token: &str) -> bool {
    token.len() == 1 || token.bytes().all(|byte| byte.is_ascii_digit()) || crate::text::variants::roman_numeral(token).is_some()
}

impl Query {
    /// Prepares `text` for comparison with the names of `kb`.
    pub fn new(kb: &KnowledgeBase, text: &str) -> Query {
        let folded = fold(text);
        let tokens = hash_form(&folded);
        let rows: Vec<Option<u32>> = tokens.iter().map(|token| kb.token_row(token.canonical)).collect();
        let idf = tokens.iter().zip(&rows).map(|(token, row)| token_weight(kb, token.linking, *row)).collect();
        let numeric = folded.split(' ').map(is_discerning).collect();
        Query { folded, tokens, rows, idf, numeric }
    }

    /// The forms worth comparing: equal in text, tokens or roots, and the nearest by n-grams. Sorted by form.
    pub fn candidates(&self, kb: &KnowledgeBase, scratch: &mut GramScratch) -> Vec<FormFeatures> {
        let hits = kb.grams().search(&self.folded, N_NEAREST, scratch);
        let counted = || self.tokens.iter().filter(|token| !token.linking);
        let key = bag_key(counted().map(|token| token.canonical));
        let root = bag_key(counted().map(|token| token.root));
        let mut forms: Vec<(FormId, Option<f32>)> = hits.iter().map(|GramHit { row, cosine }| (FormId(*row), Some(*cosine))).collect();
        if !self.tokens.is_empty() {
            let equal = kb.keys().get(key).iter().chain(kb.roots().get(root).iter()).take(256);
            forms.extend(equal.map(|row| (FormId(row), None)));
        }
        // A form with a cosine sorts behind the same form without one, and is the one kept.
        forms.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.is_some().cmp(&a.1.is_some())));
        forms.dedup_by_key(|(form, _)| *form);
        let missing: Vec<u32> = forms.iter().filter(|(_, cosine)| cosine.is_none()).map(|(form, _)| form.0).collect();
        let mut computed = kb.grams().cosines(&self.folded, &missing, scratch).into_iter();
        forms
            .into_iter()
            .map(|(form, cosine)| {
                let cosine = cosine.or_else(|| computed.next()).unwrap_or_default();
                FormFeatures { form, values: self.compare(kb, form, cosine, key, root) }
            })
            .collect()
    }

    fn compare(&self, kb: &KnowledgeBase, form: FormId, cosine: f32, key: u64, root: u64) -> [f32; N_FEATURES] {
        let text = kb.forms().get(form.0 as usize);
        let rows: Vec<u32> = kb.tokens_of_form(form).iter().collect();
        let words: Vec<&str> = text.split(' ').collect();
        let name: Vec<NameToken> = rows
            .iter()
            .zip(&words)
            .map(|(row, word)| NameToken {
                row: *row,
                hash: kb.token_hash_at(*row),
                root: kb.token_root(*row),
                weight: token_weight(kb, crate::text::words::is_linking_word(word), Some(*row)),
                discerning: is_discerning(word),
            })
            .collect();
        let total_query: f32 = self.idf.iter().sum::<f32>().max(1e-6);
        let total_name: f32 = name.iter().map(|token| token.weight).sum::<f32>().max(1e-6);
        let (mut query_tokens, mut query_roots, mut numbers_query) = (0.0, 0.0, 0.0);
        for (place, token) in self.tokens.iter().enumerate() {
            let same_token = name.iter().any(|other| Some(other.row) == self.rows[place]);
            if same_token {
                query_tokens += self.idf[place];
            }
            if same_token || name.iter().any(|other| other.root == token.root) {
                query_roots += self.idf[place];
            } else if self.numeric[place] {
                numbers_query += 1.0;
            }
        }
        let (mut name_tokens, mut name_roots, mut numbers_name) = (0.0, 0.0, 0.0);
        for token in &name {
            let same_token = self.rows.contains(&Some(token.row));
            if same_token {
                name_tokens += token.weight;
            }
            if same_token || self.tokens.iter().any(|other| other.root == token.root) {
                name_roots += token.weight;
            } else if token.discerning {
                numbers_name += 1.0;
            }
        }
        let counted: Vec<&NameToken> = name.iter().filter(|token| token.weight > 0.0).collect();
        let name_key = bag_key(counted.iter().map(|token| token.hash));
        let name_root = bag_key(counted.iter().map(|token| token.root));
        let flag = |yes: bool| f32::from(u8::from(yes));
        let first = self.tokens.first().map(|token| token.root) == name.first().map(|token| token.root);
        let last = self.tokens.last().map(|token| token.root) == name.last().map(|token| token.root);
        let lens = (self.folded.len() as f32, text.len() as f32);
        let lone = self.tokens.len() == 1 && name.len() == 1;
        [
            flag(text == self.folded),
            flag(key == name_key),
            flag(root == name_root),
            cosine,
            cosine * cosine,
            query_tokens / total_query,
            name_tokens / total_name,
            query_roots / total_query,
            name_roots / total_name,
            flag(first),
            flag(last),
            numbers_query,
            numbers_name,
            (lens.0 - lens.1).abs() / lens.0.max(lens.1).max(1.0),
            flag(self.tokens.len() == 1),
            flag(query_roots / total_query > 0.999),
            flag(name_roots / total_name > 0.999),
            if lone { rapidfuzz::distance::damerau_levenshtein::normalized_similarity(self.folded.chars(), text.chars()) as f32 } else { 0.0 },
        ]
    }
}

struct NameToken {
    row: u32,
    hash: u64,
    root: u64,
    weight: f32,
    discerning: bool,
}

/// The inverse document frequency of a token; zero for linking words.
fn token_weight(kb: &KnowledgeBase, linking: bool, row: Option<u32>) -> f32 {
    if linking {
        return 0.0;
    }
    let df = row.map_or(0, |row| kb.token_df(row));
    1.0 + ((1.0 + kb.n_forms() as f32) / (1.0 + df as f32)).ln()
}
