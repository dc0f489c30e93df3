//! The lexical sections of a compiled knowledge base: forms, tokens, keys and n-grams.

use std::collections::HashMap;
use std::io::{Seek, Write};

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::arena::{lengths, strings};
use crate::Result;
use crate::artifact::ContainerWriter;
use crate::index::grams::GramIndex;
use crate::index::keys::KeyTable;
use crate::index::words::WordIndex;
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

/// Hashes of the tokens of a folded name. If all are function words, none is left out. At its start, `nos` and `nec` are short forms
/// (`NOS type II`), not the qualifiers `not otherwise specified` and `not elsewhere classified`.
pub fn hash_form(form: &str) -> Vec<TokenHashes> {
    let mut hashes: Vec<TokenHashes> = form.split(' ').filter(|token| !token.is_empty()).map(hash_token).collect();
    if let Some(first) = hashes.first_mut().filter(|_| form.starts_with("nos ") || form.starts_with("nec ")) {
        first.linking = false;
    }
    if hashes.iter().all(|token| token.linking) {
        hashes.iter_mut().for_each(|token| token.linking = false);
    }
    hashes
}

/// Strings stored back to back.
#[derive(Debug, Default)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }

    fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Folds names.
    fn folded(names: &[&str]) -> Texts {
        let parts: Vec<Vec<String>> =
            names.par_chunks(CHUNK).map(|names| names.iter().map(|name| fold(name)).collect()).collect();
        let mut all = Texts::default();
        parts.into_iter().flatten().for_each(|name| all.push(&name));
        all
    }
}

/// Names or forms per task; their intermediate results are small.
const CHUNK: usize = 1 << 14;

/// What a range of forms adds to the lexicon.
#[derive(Default)]
struct Hashed {
    /// Number of tokens of each form.
    lens: Vec<u32>,
    /// Hashes of all canonical tokens, in order.
    tokens: Vec<u64>,
    /// Distinct hashes of canonical tokens, with those of their roots.
    words: Vec<(u64, u64)>,
    keys: Vec<(u64, u32)>,
    roots: Vec<(u64, u32)>,
    literal_starts: Vec<u64>,
}

impl Hashed {
    /// Hashes the forms in `rows`.
    fn of(forms: &Texts, rows: std::ops::Range<usize>, is_signed: impl Fn(usize) -> bool) -> Hashed {
        let mut all = Hashed::default();
        for form in rows {
            let tokens = hash_form(forms.get(form));
            let counted = || tokens.iter().filter(|token| !token.linking);
            all.lens.push(tokens.len() as u32);
            all.tokens.extend(tokens.iter().map(|token| token.canonical));
            all.words.extend(tokens.iter().map(|token| (token.canonical, token.root)));
            if tokens.is_empty() {
                continue;
            }
            all.keys.push((bag_key(counted().map(|token| token.canonical)), form as u32));
            all.roots.push((bag_key(counted().map(|token| token.root)), form as u32));
            let is_literal = tokens.len() > MAX_TOKENS || is_signed(form);
            if let Some((first, second)) = counted().next().zip(counted().nth(1)).filter(|_| is_literal) {
                all.literal_starts.push(literal_start(first.root, second.root));
            }
        }
        all.sort();
        all
    }

    fn sort(&mut self) {
        self.words.par_sort_unstable();
        self.words.dedup_by_key(|(canonical, _)| *canonical);
        self.literal_starts.par_sort_unstable();
        self.literal_starts.dedup();
    }

    /// Appends the next range.
    fn append(&mut self, mut next: Hashed) {
        self.lens.append(&mut next.lens);
        self.tokens.append(&mut next.tokens);
        self.words.append(&mut next.words);
        self.keys.append(&mut next.keys);
        self.roots.append(&mut next.roots);
        self.literal_starts.append(&mut next.literal_starts);
    }
}

/// How forms are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As strings, with posting lists of their n-grams: for terminologies of up to a million names.
    Whole,
    /// As sequences of words, with posting lists of the words.
    Words,
}

/// Forms from which [`Layout::Words`] is used.
const MANY: usize = 1 << 20;

/// Forms and how similar ones are found.
enum Contents {
    Whole { token_at: Vec<u32>, token_row: Vec<u32>, grams: GramIndex },
    Words { index: WordIndex, tokens: Vec<u32> },
}

/// The lexical sections before writing.
pub(super) struct Lexicon {
    forms: Texts,
    name_form: Vec<u32>,
    form_name_at: Vec<u32>,
    form_name_row: Vec<u32>,
    vocabulary: Vec<u64>,
    vocabulary_roots: Vec<u64>,
    df: Vec<u32>,
    contents: Contents,
    keys: KeyTable,
    roots: KeyTable,
    literal_starts: Vec<u64>,
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
    /// Indexes names, in a given layout or in that for their number.
    pub(super) fn build(names: &[&str], layout: Option<Layout>) -> Result<Lexicon> {
        let folded = Texts::folded(names);
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.par_sort_unstable_by(|left, right| {
            folded.get(*left as usize).cmp(folded.get(*right as usize)).then(left.cmp(right))
        });
        let mut forms = Texts::default();
        let mut name_form = vec![0; names.len()];
        let (mut form_name_at, mut form_name_row) = (vec![0], Vec::with_capacity(names.len()));
        for row in order {
            let form = folded.get(row as usize);
            if forms.len() == 0 || forms.get(forms.len() - 1) != form {
                if forms.len() > 0 {
                    form_name_at.push(form_name_row.len() as u32);
                }
                forms.push(form);
            }
            name_form[row as usize] = forms.len() as u32 - 1;
            form_name_row.push(row);
        }
        form_name_at.push(form_name_row.len() as u32);
        drop(folded);
        let layout = layout.unwrap_or(if forms.len() > MANY { Layout::Words } else { Layout::Whole });

        let is_signed = |form: usize| {
            let rows = &form_name_row[form_name_at[form] as usize..form_name_at[form + 1] as usize];
            rows.iter().any(|row| names[*row as usize].contains(SIGNS))
        };
        let mut hashed = Hashed::default();
        // Merged in steps, so that the parts are never all in memory beside the whole.
        for first in (0..forms.len()).step_by(CHUNK * 32) {
            let rows = first..forms.len().min(first + CHUNK * 32);
            let starts: Vec<usize> = rows.clone().step_by(CHUNK).collect();
            let chunk = |start: &usize| {
                let hashed = Hashed::of(&forms, *start..rows.end.min(start + CHUNK), is_signed);
                // The tokens of many forms are found by their words.
                if layout == Layout::Words { Hashed { lens: Vec::new(), tokens: Vec::new(), ..hashed } } else { hashed }
            };
            let parts: Vec<Hashed> = starts.par_iter().map(chunk).collect();
            parts.into_iter().for_each(|part| hashed.append(part));
            hashed.sort();
        }
        let Hashed { lens, tokens, words, keys, roots, literal_starts } = hashed;
        let (keys, roots) = (KeyTable::build(keys), KeyTable::build(roots));
        let (vocabulary, vocabulary_roots): (Vec<u64>, Vec<u64>) = words.into_iter().unzip();
        let rows: HashMap<u64, u32> = vocabulary.iter().enumerate().map(|(row, hash)| (*hash, row as u32)).collect();
        let texts: Vec<&str> = forms.iter().collect();
        let mut df = vec![0; vocabulary.len()];
        let mut distinct = Vec::new();
        let mut count = |tokens: &mut dyn Iterator<Item = u32>| {
            distinct.clear();
            distinct.extend(tokens);
            distinct.sort_unstable();
            distinct.dedup();
            distinct.iter().for_each(|row| df[*row as usize] += 1);
        };
        let contents = match layout {
            Layout::Whole => {
                let token_row: Vec<u32> = tokens.into_iter().map(|token| rows[&token]).collect();
                let mut token_at = vec![0u32];
                for len in lens {
                    let start = token_at[token_at.len() - 1];
                    token_at.push(start + len);
                    count(&mut token_row[start as usize..(start + len) as usize].iter().copied());
                }
                Contents::Whole { token_at, token_row, grams: GramIndex::build(&texts) }
            }
            Layout::Words => {
                let index = WordIndex::build(&texts);
                let row_of = |word: &String| match word.is_empty() {
                    true => u32::MAX,
                    false => rows[&hash_token(word).canonical],
                };
                let tokens: Vec<u32> = index.words.iter().map(row_of).collect();
                for words in index.sequences() {
                    count(&mut words.map(|word| tokens[word as usize]).filter(|row| *row != u32::MAX));
                }
                Contents::Words { index, tokens }
            }
        };
        drop((rows, texts));
        Ok(Lexicon {
            name_form,
            form_name_at,
            form_name_row,
            vocabulary,
            vocabulary_roots,
            df,
            contents,
            keys,
            roots,
            literal_starts,
            forms,
        })
    }

    pub(super) fn n_forms(&self) -> usize {
        self.forms.len()
    }

    /// Number of forms of names of several concepts.
    pub(super) fn n_shared_forms(&self, concept_of: impl Fn(u32) -> u32) -> u64 {
        let is_shared = |ends: &&[u32]| {
            let mut concepts =
                self.form_name_row[ends[0] as usize..ends[1] as usize].iter().map(|name| concept_of(*name));
            let first = concepts.next();
            concepts.any(|concept| Some(concept) != first)
        };
        self.form_name_at.windows(2).filter(is_shared).count() as u64
    }

    /// Writes the sections. The fingerprint of a file depends on their order.
    pub(super) fn write<W: Write + Seek>(&self, writer: &mut ContainerWriter<W>) -> std::io::Result<()> {
        if let Contents::Whole { .. } = &self.contents {
            strings(writer, "form", self.forms.iter())?;
        }
        writer.section_u32("name.form", &self.name_form)?;
        let lens = |at: &[u32]| -> Vec<usize> { at.windows(2).map(|ends| (ends[1] - ends[0]) as usize).collect() };
        lengths(writer, "form.name.at", lens(&self.form_name_at).into_iter())?;
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
        if let Contents::Whole { token_at, token_row, .. } = &self.contents {
            lengths(writer, "form.token.at", lens(token_at).into_iter())?;
            writer.section_u32("form.token.row", token_row)?;
        }
        for (prefix, table) in [("key", &self.keys), ("root", &self.roots)] {
            writer.section_u32(&format!("{prefix}.buckets"), &table.buckets)?;
            writer.section_u32(&format!("{prefix}.checks"), &table.checks)?;
            writer.section_u32(&format!("{prefix}.rows"), &table.rows)?;
        }
        let (grams, inverse_norms) = match &self.contents {
            Contents::Whole { grams, .. } => (grams, &grams.inverse_norms),
            Contents::Words { index, tokens } => {
                strings(writer, "word", index.words.iter().map(String::as_str))?;
                writer.section_u32("word.df", &index.df)?;
                writer.section_u32("word.token", tokens)?;
                writer.section_u32("word.norms", &index.grams.inverse_norms)?;
                lengths(writer, "word.form.at", index.lens.iter().copied())?;
                writer.section("word.form.gaps", [&index.names[..]])?;
                lengths(writer, "form.word.at", index.row_lens.iter().copied())?;
                writer.section("form.word.row", [&index.rows[..]])?;
                (&index.grams, &index.inverse_norms)
            }
        };
        writer.section_u32("gram.codes", &grams.codes)?;
        writer.section_u32("gram.df", &grams.df)?;
        let at: Vec<u8> = grams.at.iter().flat_map(|end| end.to_le_bytes()).collect();
        writer.section("gram.gaps.at", [&at[..]])?;
        writer.section("gram.gaps", grams.gaps())?;
        writer.section_u32("gram.norms", inverse_norms)
    }
}
