//! Features of a name as the meaning of a query, input of a linear model.

use std::sync::LazyLock;

use crate::index::grams::{GramHit, GramScratch};
use crate::kb::lexicon::{bag_key, hash_form, token_hash};
use crate::kb::subset::KbView;
use crate::kb::{FormId, KnowledgeBase};
use crate::text::normalise::{canonical, fold, root};
use crate::text::words::{WordKind, is_linking_word, kind_of, parts_of};

use super::alignment::{Aligned, Token, Tokenised, align};

/// Number of features of a form.
pub const N_FEATURES: usize = 44;

/// Names of the features, for model files and reports.
pub const FEATURE_NAMES: [&str; N_FEATURES] = [
    "same folded text",
    "same text without blanks",
    "same canonical tokens",
    "same roots",
    "same plain roots",
    "n-gram cosine",
    "n-gram cosine squared",
    "query tokens found",
    "name tokens found",
    "query roots found",
    "name roots found",
    "query tokens resembled",
    "name tokens resembled",
    "query plain weight missing",
    "name plain weight missing",
    "query plain tokens missing",
    "name plain tokens missing",
    "query modifiers missing",
    "name modifiers missing",
    "query trouble missing",
    "name trouble missing",
    "trouble for trouble",
    "tokens by parts",
    "numbers only in query",
    "numbers only in name",
    "numbers clash",
    "same first root",
    "same last root",
    "same order",
    "length difference",
    "one token, cosine",
    "one token, name longer",
    "spelling of lone tokens",
    "initials",
    "name starts with query",
    "query starts with name",
    "query plain tokens resembled",
    "query weight missing",
    "name weight missing",
    "name is one token, query longer",
    "disease for other trouble",
    "disease added",
    "tokens resembled, both sides",
    "tokens resembled, cosine",
];

/// Descriptions for people.
pub const FEATURE_SENTENCES: [&str; N_FEATURES] = [
    "match except for case and punctuation",
    "match except for spaces",
    "match except for spelling and plurals",
    "same word stems",
    "same word stems, ignoring stop words",
    "shared character n-grams",
    "shared character n-grams, squared",
    "share of mention words in the name",
    "share of name words in the mention",
    "share of mention word stems in the name",
    "share of name word stems in the mention",
    "share of mention words with a similar word in the name",
    "share of name words with a similar word in the mention",
    "share of content words missing from the name",
    "share of content words missing from the mention",
    "number of content words missing from the name",
    "number of content words missing from the mention",
    "modifiers missing from the name",
    "modifiers missing from the mention",
    "disorder words missing from the name",
    "disorder words missing from the mention",
    "different disorder words",
    "compound word matches separate words",
    "numbers, single letters or levels missing from the name",
    "numbers, single letters or levels missing from the mention",
    "conflicting numbers, single letters or levels",
    "same stem of the first word",
    "same stem of the last word",
    "same word order",
    "difference in length",
    "shared character n-grams of a single-word mention",
    "single-word mention, longer name",
    "spelling similarity of two single words",
    "one is an acronym of the other",
    "the name starts with the mention",
    "the mention starts with the name",
    "similar content words in the name",
    "weight of words missing from the name",
    "weight of words missing from the mention",
    "single-word name, longer mention",
    "the name says “disease” for another disorder word",
    "the name adds “disease”",
    "word similarity, both sides",
    "word and character n-gram similarity",
];

/// Index of the cosine among the features.
pub const COSINE: usize = 5;

/// A form (folded name) with its features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FormFeatures {
    /// The form.
    pub form: FormId,
    /// The features, in the order of [`FEATURE_NAMES`].
    pub values: [f32; N_FEATURES],
}

/// A query prepared for comparison.
#[derive(Debug)]
pub struct PreparedQuery {
    /// The folded query.
    pub folded: String,
    squeezed: String,
    initials: String,
    tokens: Vec<Token>,
    /// The tokens with words for levels replaced, as in names.
    leveled: Vec<Token>,
}

/// Minimum number of forms that are compared with a query.
pub const N_NEAREST: usize = 48;

/// Maximum number of forms taken from one key.
const N_EQUAL: usize = 64;

/// Maximum length of a symbol whose hyphens may be missing.
const MAX_SYMBOL: usize = 12;

/// Whether a token is a number (Roman numerals are already converted) or a single letter, which distinguish subtypes.
fn is_subtype(token: &str) -> bool {
    token.len() == 1
        || token.bytes().all(|byte| byte.is_ascii_digit())
        || crate::text::variants::roman_numeral(token).is_some()
}

fn kind(word: &str, canonical: &str, linking: bool) -> WordKind {
    match linking {
        true => WordKind::Linking,
        false if is_subtype(word) => WordKind::Subtype,
        false => kind_of(canonical),
    }
}

fn initials(folded: &str) -> String {
    folded.split(' ').filter(|word| !is_linking_word(word)).filter_map(|word| word.chars().next()).collect()
}

fn hash_parts(token: &str) -> Option<[u64; 2]> {
    parts_of(token).map(|parts| parts.map(|part| token_hash(&root(part))))
}

impl PreparedQuery {
    /// Prepares `text` for comparison with the names of `kb`.
    pub fn new(kb: &KnowledgeBase, text: &str) -> PreparedQuery {
        let folded = fold(text);
        let words = folded.split(' ').filter(|word| !word.is_empty());
        let tokens: Vec<Token> = hash_form(&folded)
            .into_iter()
            .zip(words)
            .map(|(hashes, word)| {
                let token = canonical(word);
                let row = kb.token_row(hashes.canonical);
                let start = word.as_ptr() as usize - folded.as_ptr() as usize;
                Token {
                    row: row.unwrap_or(u32::MAX),
                    hash: hashes.canonical,
                    root: hashes.root,
                    parts: hash_parts(&token),
                    weight: token_weight(kb, hashes.linking, row),
                    kind: kind(word, &token, hashes.linking),
                    start,
                    end: start + word.len(),
                }
            })
            .collect();
        let mut leveled = tokens.clone();
        leveled.iter_mut().for_each(make_level);
        PreparedQuery { squeezed: folded.replace(' ', ""), initials: initials(&folded), folded, tokens, leveled }
    }

    /// The forms to compare: equal in text, tokens or roots, and the nearest by n-grams. Sorted by form; only forms
    /// that name a concept of the view.
    pub fn candidates<'a>(&self, view: impl Into<KbView<'a>>, scratch: &mut GramScratch) -> Vec<FormFeatures> {
        self.candidates_and(view, &[], scratch)
    }

    /// Like [`PreparedQuery::candidates`], with additional forms retrieved in another way.
    pub fn candidates_and<'a>(
        &self,
        view: impl Into<KbView<'a>>,
        others: &[FormId],
        scratch: &mut GramScratch,
    ) -> Vec<FormFeatures> {
        let view = view.into();
        let kb = view.kb;
        let has_row = |row| view.has_form(FormId(row));
        let wanted: Option<&dyn Fn(u32) -> bool> = if view.subset.is_some() { Some(&has_row) } else { None };
        let hits = kb.grams().search_among(&self.folded, N_NEAREST, wanted, scratch);
        let mut forms: Vec<(FormId, Option<f32>)> =
            hits.iter().map(|GramHit { row, cosine }| (FormId(*row), Some(*cosine))).collect();
        self.add_equal(view, &mut forms);
        forms.extend(others.iter().filter(|form| view.has_form(**form)).map(|form| (*form, None)));
        // A form with a cosine sorts after the same form without one, so `dedup` keeps the one with the cosine.
        forms.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.is_some().cmp(&a.1.is_some())));
        forms.dedup_by_key(|(form, _)| *form);
        let missing: Vec<u32> = forms.iter().filter(|(_, cosine)| cosine.is_none()).map(|(form, _)| form.0).collect();
        let mut computed = kb.grams().cosines(&self.folded, &missing, scratch).into_iter();
        let mut name = Vec::new();
        let mut aligned = Aligned::default();
        forms
            .into_iter()
            .map(|(form, cosine)| {
                let cosine = cosine.or_else(|| computed.next()).unwrap_or_default();
                let text = kb.forms().get(form.0 as usize);
                read_name(kb, form, &text, &mut name);
                // `openbite` has the words of `Open bite`.
                let has_letters = text.bytes().filter(|byte| *byte != b' ').eq(self.squeezed.bytes());
                let query = match has_letters {
                    true => Tokenised { text: &text, tokens: &name },
                    false => Tokenised { text: &self.folded, tokens: &self.leveled },
                };
                let name = Tokenised { text: &text, tokens: &name };
                align(query, name, &mut aligned);
                FormFeatures { form, values: self.compare(query, name, &aligned, cosine) }
            })
            .collect()
    }

    /// Adds forms with equal tokens or roots after removing modifiers and removing or substituting disorder words.
    fn add_equal(&self, view: KbView<'_>, forms: &mut Vec<(FormId, Option<f32>)>) {
        let kb = view.kb;
        let has_row = |row: &u32| view.has_form(FormId(*row));
        if self.tokens.is_empty() {
            return;
        }
        let counted = || self.tokens.iter().filter(|token| token.weight > 0.0);
        let canonical_key = bag_key(counted().map(|token| token.hash));
        forms.extend(kb.keys().get(canonical_key).iter().filter(has_row).take(256).map(|row| (FormId(row), None)));
        let mut keys = vec![bag_key(counted().map(|token| token.root))];
        let mut core = 0u64;
        let (mut n_plain, mut n_modifiers) = (0, 0);
        let (mut disorders, mut modifiers) = (0u64, 0u64);
        for token in counted() {
            match (token.kind, token.parts) {
                (WordKind::Disorder, _) => disorders = disorders.wrapping_add(token.root),
                (WordKind::Modifier, _) => {
                    n_modifiers += 1;
                    modifiers = modifiers.wrapping_add(token.root);
                }
                (_, Some([organ, ending])) => {
                    core = core.wrapping_add(organ);
                    disorders = disorders.wrapping_add(ending);
                    n_plain += 1;
                }
                _ => {
                    core = core.wrapping_add(token.root);
                    n_plain += 1;
                }
            }
        }
        if n_plain > 0 {
            keys.push(core.wrapping_add(disorders));
            keys.push(core);
            keys.extend(disorder_roots().map(|other| core.wrapping_add(other)));
            if n_modifiers > 0 {
                keys.push(core.wrapping_add(modifiers));
                keys.extend(disorder_roots().map(|other| core.wrapping_add(modifiers).wrapping_add(other)));
            }
        } else {
            keys.push(disorders);
        }
        // `low serum zinc` for `decreased serum zinc`.
        let all = bag_key(counted().map(|token| token.root));
        for token in counted() {
            let others = level_of(token.hash).into_iter().flat_map(|level| &LEVEL_HASHES[level]);
            keys.extend(others.map(|(_, root)| all.wrapping_sub(token.root).wrapping_add(*root)));
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            forms.extend(kb.roots().get(key).iter().filter(has_row).take(N_EQUAL).map(|row| (FormId(row), None)));
        }
        forms.extend(kb.find_form(&self.squeezed).filter(|form| view.has_form(*form)).map(|form| (form, None)));
        // `HepG2` for `Hep-G2`.
        let is_symbol = |text: &str| text.len() <= MAX_SYMBOL && text.bytes().any(|byte| byte.is_ascii_digit());
        if self.squeezed.is_ascii() && is_symbol(&self.squeezed) {
            let divided = (1..self.squeezed.len()).map(|at| self.squeezed.split_at(at));
            let found = divided.filter_map(|(one, other)| kb.find_form(&fold(&format!("{one}-{other}"))));
            forms.extend(found.filter(|form| view.has_form(*form)).map(|form| (form, None)));
        }
    }

    fn compare(&self, said: Tokenised<'_>, of_kb: Tokenised<'_>, aligned: &Aligned, cosine: f32) -> [f32; N_FEATURES] {
        let (text, name) = (of_kb.text, of_kb.tokens);
        let flag = |yes: bool| f32::from(u8::from(yes));
        let first = said.tokens.first().map(|token| token.root) == name.first().map(|token| token.root);
        let last = said.tokens.last().map(|token| token.root) == name.last().map(|token| token.root);
        let lens = (self.folded.len() as f32, text.len() as f32);
        let counted = |tokens: &[Token], hash: fn(&Token) -> u64| {
            bag_key(tokens.iter().filter(|token| token.weight > 0.0).map(hash))
        };
        let same = |hash: fn(&Token) -> u64| counted(said.tokens, hash) == counted(name, hash);
        let (query, other) = (&aligned.query, &aligned.name);
        let one = self.tokens.len() == 1;
        let lone = one && name.len() == 1;
        let is_same = text == self.folded;
        let without_blanks = || text.bytes().filter(|byte| *byte != b' ').eq(self.squeezed.bytes());
        let is_initials = || match (one, name.len() == 1) {
            (true, false) if self.folded.len() >= 2 => initials(text) == self.folded,
            (false, true) if self.initials.len() >= 2 => self.initials == text,
            _ => false,
        };
        [
            flag(is_same),
            flag(is_same || without_blanks()),
            flag(same(|token| token.hash)),
            flag(same(|token| token.root)),
            flag(query.plain_missing + other.plain_missing + query.numbers + other.numbers < 1e-3),
            cosine,
            cosine * cosine,
            query.exact / query.total,
            other.exact / other.total,
            query.rooted / query.total,
            other.rooted / other.total,
            query.resembled / query.total,
            other.resembled / other.total,
            query.plain_missing / query.total,
            other.plain_missing / other.total,
            query.n_plain_missing,
            other.n_plain_missing,
            query.modifiers,
            other.modifiers,
            query.disorders,
            other.disorders,
            aligned.substituted_disorders,
            aligned.by_parts,
            query.numbers,
            other.numbers,
            flag(query.numbers > 0.0 && other.numbers > 0.0),
            flag(first),
            flag(last),
            aligned.in_order,
            (lens.0 - lens.1).abs() / lens.0.max(lens.1).max(1.0),
            flag(one) * cosine,
            flag(one && name.len() > 1),
            if lone {
                rapidfuzz::distance::damerau_levenshtein::normalized_similarity(self.folded.chars(), text.chars())
                    as f32
            } else {
                0.0
            },
            flag(is_initials()),
            flag(text.starts_with(&self.folded) && text.len() > self.folded.len()),
            flag(self.folded.starts_with(text) && text.len() < self.folded.len()),
            query.n_plain_resembled,
            query.plain_missing / 10.0,
            other.plain_missing / 10.0,
            flag(!one && name.len() == 1),
            aligned.disease * flag(aligned.substituted_disorders > 0.0),
            aligned.disease * flag(aligned.substituted_disorders == 0.0),
            (query.resembled / query.total) * (other.resembled / other.total),
            (query.resembled / query.total) * (other.resembled / other.total) * cosine,
        ]
    }
}

/// Roots of the disorder words that can replace each other in names.
fn disorder_roots() -> impl Iterator<Item = u64> {
    static ROOTS: std::sync::OnceLock<Vec<u64>> = std::sync::OnceLock::new();
    const WORDS: [&str; 7] =
        ["disease", "dysfunction", "insufficiency", "injury", "abnormality", "toxicity", "syndrome"];
    ROOTS.get_or_init(|| WORDS.iter().map(|word| token_hash(&root(word))).collect()).iter().copied()
}

/// Reads the tokens of a form into `name`.
fn read_name(kb: &KnowledgeBase, form: FormId, text: &str, name: &mut Vec<Token>) {
    name.clear();
    let words = text.split(' ').filter(|word| !word.is_empty());
    for (row, word) in kb.tokens_of_form(form).zip(words) {
        let hash = kb.token_hash_at(row);
        let linking = is_linking_word(word);
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let mut token = Token {
            row,
            hash,
            root: kb.token_root(row),
            parts: None,
            weight: token_weight(kb, linking, Some(row)),
            kind: kind_of_name(word, hash, linking),
            start,
            end: start + word.len(),
        };
        make_level(&mut token);
        name.push(token);
    }
    // `Pneumonia, unspecified organism` is pneumonia, `Unspecified appendicitis` appendicitis, and `Lymphangioma, any site` lymphangioma.
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let ending = ANY_SITE.iter().find(|ending| words.ends_with(ending)).map(|ending| words.len() - ending.len());
    if let Some(at) = ending.or_else(|| words.iter().position(|word| *word == "unspecified")) {
        let is_at_end = at > 0 && name.len() <= at + 1 + MAX_UNSPECIFIED;
        let end = if is_at_end || ending.is_some() { name.len() } else { at + 1 };
        let weightless = name.len().saturating_sub(end.saturating_sub(at)) > 0;
        for token in name.iter_mut().take(end).skip(at).filter(|_| weightless) {
            (token.weight, token.kind) = (0.0, WordKind::Linking);
        }
    }
}

/// Maximum number of words after `unspecified` at the end of a name, as in `unspecified organism`.
const MAX_UNSPECIFIED: usize = 1;

/// Words at the end of names in classifications that leave the site open.
const ANY_SITE: [&[&str]; 3] = [&["site", "not", "specified"], &["any", "site"], &["site", "unspecified"]];

/// Synonyms for a low and for a high level. Like numbers, they distinguish concepts.
const LEVELS: [[&str; 5]; 2] = [
    ["decreased", "diminished", "low", "lowered", "reduced"],
    ["increased", "elevated", "heightened", "high", "raised"],
];

/// The hashes of the words of each level and of their roots.
static LEVEL_HASHES: LazyLock<[[(u64, u64); 5]; 2]> = LazyLock::new(|| {
    LEVELS.map(|words| {
        words.map(|word| {
            let token = canonical(word);
            (token_hash(&token), token_hash(&root(&token)))
        })
    })
});

/// The index of the level that a word stands for, by the hash of its canonical token.
fn level_of(hash: u64) -> Option<usize> {
    LEVEL_HASHES.iter().position(|words| words.iter().any(|(word, _)| *word == hash))
}

/// Replaces a word for a level by the first of its synonyms.
fn make_level(token: &mut Token) {
    if let Some(level) = level_of(token.hash) {
        (token.hash, token.root) = LEVEL_HASHES[level][0];
        token.kind = WordKind::Subtype;
    }
}

/// Like [`kind`], given the hash of the canonical token.
fn kind_of_name(word: &str, hash: u64, linking: bool) -> WordKind {
    use std::collections::HashMap;
    static KINDS: std::sync::OnceLock<HashMap<u64, WordKind>> = std::sync::OnceLock::new();
    let kinds = KINDS
        .get_or_init(|| crate::text::words::words_with_kinds().map(|(word, kind)| (token_hash(word), kind)).collect());
    match linking {
        true => WordKind::Linking,
        false if is_subtype(word) => WordKind::Subtype,
        false => kinds.get(&hash).copied().unwrap_or(WordKind::Plain),
    }
}

/// Inverse document frequency of a token; zero for function words.
fn token_weight(kb: &KnowledgeBase, linking: bool, row: Option<u32>) -> f32 {
    if linking {
        return 0.0;
    }
    let df = row.map_or(0, |row| kb.token_df(row));
    1.0 + ((1.0 + kb.n_forms() as f32) / (1.0 + df as f32)).ln()
}
