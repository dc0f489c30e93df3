//! The lexical sections of a compiled knowledge base: forms, tokens, keys and n-grams.

use std::collections::HashMap;
use std::io::{Seek, Write};

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::builder::strings;
use crate::Result;
use crate::artifact::ContainerWriter;
use crate::index::grams::GramIndex;
use crate::index::keys::KeyTable;
use crate::text::normalise::{canonical, fold, root};
use crate::text::words::is_linking_word;

/// The hash of a canonical token or of a root.
pub fn token_hash(token: &str) -> u64 {
    xxh3_64(token.as_bytes())
}

/// Lookup data of one folded token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenHashes {
    /// The hash of the canonical token.
    pub canonical: u64,
    /// The hash of its root.
    pub root: u64,
    /// Whether the token is a function word, left out of lookup keys.
    pub linking: bool,
}

/// Hashes of one folded token.
pub fn hash_token(folded: &str) -> TokenHashes {
    let token = canonical(folded);
    TokenHashes { canonical: token_hash(&token), root: token_hash(&root(&token)), linking: is_linking_word(folded) }
}

/// Key of a bag of tokens: the sum of their hashes, so extending a window costs one addition.
pub fn bag_key(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(0, u64::wrapping_add)
}

/// Hashes of the tokens of a folded name. If all are function words, none is left out.
pub fn hash_form(form: &str) -> Vec<TokenHashes> {
    let mut hashes: Vec<TokenHashes> = form.split(' ').filter(|token| !token.is_empty()).map(hash_token).collect();
    if hashes.iter().all(|token| token.linking) {
        hashes.iter_mut().for_each(|token| token.linking = false);
    }
    hashes
}

/// The lexical sections before writing.
pub(super) struct Lexicon {
    forms: Vec<String>,
    name_form: Vec<u32>,
    form_name_at: Vec<u32>,
    form_name_row: Vec<u32>,
    vocabulary: Vec<u64>,
    vocabulary_roots: Vec<u64>,
    df: Vec<u32>,
    form_token_at: Vec<u32>,
    form_token_row: Vec<u32>,
    keys: KeyTable,
    roots: KeyTable,
    literal_starts: Vec<u64>,
    grams: GramIndex,
}

/// Maximum number of tokens of a window that is looked up as a bag of roots, without function words.
pub const MAX_TOKENS: usize = 12;

/// Characters across which only literal matches extend.
const SIGNS: [char; 7] = [',', '.', ':', ';', '(', '[', '{'];

/// Hash of the start of a name: the roots of its first two tokens that are not function words.
pub fn literal_start(first: u64, second: u64) -> u64 {
    first.rotate_left(17) ^ second
}

impl Lexicon {
    pub(super) fn build(names: &[&str]) -> Result<Lexicon> {
        let mut folded: Vec<(String, u32)> =
            names.par_iter().enumerate().map(|(row, name)| (fold(name), row as u32)).collect();
        folded.par_sort_unstable();
        let mut forms = Vec::new();
        let mut name_form = vec![0; names.len()];
        let (mut form_name_at, mut form_name_row) = (vec![0], Vec::with_capacity(names.len()));
        for (form, row) in folded {
            if forms.last() != Some(&form) {
                if !forms.is_empty() {
                    form_name_at.push(form_name_row.len() as u32);
                }
                forms.push(form);
            }
            name_form[row as usize] = forms.len() as u32 - 1;
            form_name_row.push(row);
        }
        form_name_at.push(form_name_row.len() as u32);

        let hashes: Vec<Vec<TokenHashes>> = forms.par_iter().map(|form| hash_form(form)).collect();
        let key_of = |tokens: &[TokenHashes], hash: fn(&TokenHashes) -> u64| {
            bag_key(tokens.iter().filter(|token| !token.linking).map(hash))
        };
        let filled = || hashes.iter().enumerate().filter(|(_, tokens)| !tokens.is_empty());
        let keys = filled().map(|(row, tokens)| (key_of(tokens, |token| token.canonical), row as u32)).collect();
        let roots = filled().map(|(row, tokens)| (key_of(tokens, |token| token.root), row as u32)).collect();

        let is_signed = |form: usize| {
            let rows = &form_name_row[form_name_at[form] as usize..form_name_at[form + 1] as usize];
            rows.iter().any(|row| names[*row as usize].contains(SIGNS))
        };
        let starts = |(form, tokens): (usize, &Vec<TokenHashes>)| {
            let mut counted = tokens.iter().filter(|token| !token.linking);
            let (first, second) = counted.next().zip(counted.next())?;
            (tokens.len() > MAX_TOKENS || is_signed(form)).then(|| literal_start(first.root, second.root))
        };
        let mut literal_starts: Vec<u64> = hashes.par_iter().enumerate().filter_map(starts).collect();
        literal_starts.par_sort_unstable();
        literal_starts.dedup();

        let mut tokens: Vec<(u64, u64)> = hashes.iter().flatten().map(|token| (token.canonical, token.root)).collect();
        tokens.par_sort_unstable();
        tokens.dedup_by_key(|(canonical, _)| *canonical);
        let (vocabulary, vocabulary_roots): (Vec<u64>, Vec<u64>) = tokens.into_iter().unzip();
        let rows: HashMap<u64, u32> = vocabulary.iter().enumerate().map(|(row, hash)| (*hash, row as u32)).collect();
        let mut df = vec![0; vocabulary.len()];
        let (mut form_token_at, mut form_token_row) = (vec![0], Vec::new());
        let mut distinct = Vec::new();
        for tokens in &hashes {
            distinct.clear();
            distinct.extend(tokens.iter().map(|token| rows[&token.canonical]));
            form_token_row.extend_from_slice(&distinct);
            form_token_at.push(form_token_row.len() as u32);
            distinct.sort_unstable();
            distinct.dedup();
            distinct.iter().for_each(|row| df[*row as usize] += 1);
        }
        let texts: Vec<&str> = forms.iter().map(String::as_str).collect();
        let grams = GramIndex::build(&texts);
        Ok(Lexicon {
            name_form,
            form_name_at,
            form_name_row,
            vocabulary,
            vocabulary_roots,
            df,
            form_token_at,
            form_token_row,
            keys: KeyTable::build(keys),
            roots: KeyTable::build(roots),
            literal_starts,
            grams,
            forms,
        })
    }

    pub(super) fn n_forms(&self) -> usize {
        self.forms.len()
    }

    pub(super) fn write<W: Write + Seek>(&self, writer: &mut ContainerWriter<W>) -> std::io::Result<()> {
        strings(writer, "form", self.forms.iter().map(String::as_str))?;
        writer.section_u32("name.form", &self.name_form)?;
        writer.section_u32("form.name.at", &self.form_name_at)?;
        writer.section_u32("form.name.row", &self.form_name_row)?;
        for (name, hashes) in [("vocab.hash", &self.vocabulary), ("vocab.root", &self.vocabulary_roots)] {
            let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            writer.section(name, [&bytes[..]])?;
        }
        let mut roots = self.vocabulary_roots.clone();
        roots.sort_unstable();
        roots.dedup();
        for (name, hashes) in [("root.hash", &roots), ("literal.start", &self.literal_starts)] {
            let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
            writer.section(name, [&bytes[..]])?;
        }
        writer.section_u32("vocab.df", &self.df)?;
        writer.section_u32("form.token.at", &self.form_token_at)?;
        writer.section_u32("form.token.row", &self.form_token_row)?;
        for (prefix, table) in [("key", &self.keys), ("root", &self.roots)] {
            writer.section_u32(&format!("{prefix}.buckets"), &table.buckets)?;
            writer.section_u32(&format!("{prefix}.checks"), &table.checks)?;
            writer.section_u32(&format!("{prefix}.rows"), &table.rows)?;
        }
        writer.section_u32("gram.codes", &self.grams.codes)?;
        writer.section_u32("gram.df", &self.grams.df)?;
        let at: Vec<u8> = self.grams.at.iter().flat_map(|end| end.to_le_bytes()).collect();
        writer.section("gram.gaps.at", [&at[..]])?;
        writer.section("gram.gaps", self.grams.gaps())?;
        writer.section_u32("gram.norms", &self.grams.inverse_norms)
    }
}
