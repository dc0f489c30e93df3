//! Word-sense disambiguation of short forms and ordinary words that the text does not define.
//!
//! For each form the inventory (`assets/senses.tsv`) lists its senses with their priors and cue words. A sense is a
//! long form, so the inventory works with any terminology that has such a name. Each use is scored by a log-linear
//! model of the prior, cues near the form, the topics of the document (`assets/topics.tsv`) and occurrences of the long
//! form. A cue that contains the form (`stroke of luck`) weighs more; the cue `#` means that a number follows the form.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::accept::{is_acronym, is_target_of_antibody};
use super::common::frequency;
use super::scan::Word;
use super::sense_concepts::SenseConcepts;
use super::sense_context::DocumentContext;
use super::sense_match::{FormUse, sense_match};
use super::word_topics::WordTopics;
use crate::Result;
use crate::input::Input;
use crate::kb::lexicon::hash_token;
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, NameId};
use crate::text::Span;
use crate::text::normalise::fold;
use crate::text::taught::{can_begin, can_end};
use crate::text::tokens::Gap;

const SENSES: &str = include_str!("../../../assets/senses.tsv");
const TOPICS: &str = include_str!("../../../assets/topics.tsv");

/// A sense in the inventory.
#[derive(Debug, Clone, PartialEq)]
pub struct Sense {
    /// Its share of all uses of the form, 0 to 1.
    pub prior: f32,
    /// Whether it comes from the user's file.
    pub is_own: bool,
    long_forms: Cow<'static, str>,
    /// Its concept in the knowledge base that the inventory is for, with a name, instead of that of its long forms.
    concept: Option<(ConceptId, NameId)>,
    topics: Vec<u8>,
    cues: &'static str,
    /// Filled when the sense is first met.
    prepared: OnceLock<Prepared>,
    /// Its index in the inventory.
    number: u32,
}

impl Sense {
    /// Its topics; empty if unknown.
    pub(super) fn topics(&self) -> &[u8] {
        &self.topics
    }

    /// Its concept, if it was given.
    pub(super) fn concept(&self) -> Option<(ConceptId, NameId)> {
        self.concept
    }

    /// Its index in the inventory.
    pub(super) fn number(&self) -> usize {
        self.number as usize
    }

    pub(super) fn prepared(&self) -> &Prepared {
        self.prepared.get_or_init(|| {
            let mut cues: Vec<Phrase> = self.cues().filter_map(Phrase::of).collect();
            // Two cues of one root count once.
            cues.sort_unstable();
            cues.dedup_by(|one, other| one.roots == other.roots);
            Prepared {
                anchors: cues.iter().map(Phrase::anchor_root).collect(),
                has_number: parts(self.cues).any(|cue| cue == NUMBER),
                long_forms: self.long_forms().filter_map(Phrase::of).collect(),
                cues,
            }
        })
    }

    /// Words and phrases that suggest it.
    pub(super) fn cues(&self) -> impl Iterator<Item = &'static str> {
        parts(self.cues).filter(|cue| *cue != NUMBER)
    }

    /// Its names in terminologies; empty if the sense is not a concept.
    pub fn long_forms(&self) -> impl Iterator<Item = &str> {
        parts(&self.long_forms).filter(|name| *name != "-")
    }
}

/// Cues and long forms of a sense, to be found in a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Prepared {
    /// Words and phrases that suggest it.
    pub(super) cues: Vec<Phrase>,
    /// The root of the anchor of each; most cues do not occur in a text, and only these are read.
    pub(super) anchors: Vec<u64>,
    /// Whether a number after the form suggests it.
    pub(super) has_number: bool,
    /// Its long forms.
    pub(super) long_forms: Vec<Phrase>,
}

/// One or more words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Phrase {
    /// Hashes of the roots of its words; at least one.
    pub(super) roots: Box<[u64]>,
    /// The index of its rarest word, by which it is looked up.
    pub(super) anchor: usize,
}

impl Phrase {
    /// `None` if the text has no words.
    pub(super) fn of(text: &str) -> Option<Phrase> {
        let folded = fold(text);
        let words = || folded.split(' ').filter(|word| !word.is_empty());
        let roots: Box<[u64]> = words().map(root_of).collect();
        let anchor = words().enumerate().min_by_key(|(_, word)| frequency(word))?.0;
        Some(Phrase { roots, anchor })
    }

    /// The root of the anchor.
    pub(super) fn anchor_root(&self) -> u64 {
        self.roots[self.anchor]
    }
}

/// The hash of the root of a folded word; a thread computes each once, as cues have many words in common.
fn root_of(word: &str) -> u64 {
    thread_local! {
        static ROOTS: RefCell<HashMap<u64, u64, Hashed>> = RefCell::default();
    }
    ROOTS.with_borrow_mut(|roots| *roots.entry(xxh3_64(word.as_bytes())).or_insert_with(|| hash_token(word).root))
}

/// A form with its senses.
type Form = (Box<str>, Vec<Sense>);

/// The sense inventory.
#[derive(Debug, Clone, Default)]
pub struct SenseInventory {
    // By the first word of the form; the longest form first.
    forms: HashMap<u64, Vec<Form>, Hashed>,
    pub(super) topics_of: Arc<HashMap<u64, Vec<u8>, Hashed>>,
    pub(super) n_topics: usize,
    pub(super) word_topics: Arc<WordTopics<'static>>,
    n_senses: usize,
    /// The topic of general language, outside medicine and biology.
    pub(super) everyday: Option<u8>,
    /// Topics of genes and molecules, whose short forms are symbols.
    symbolic: Vec<u8>,
}

/// A use of a form with its senses.
#[derive(Debug, Clone, PartialEq)]
pub struct SenseMatch {
    /// Its span.
    pub span: Span,
    /// The candidate concepts with their names and probabilities, most probable first.
    pub concepts: Vec<(ConceptId, NameId, f32)>,
    /// The most probable sense that the terminology lacks, by its first long form, and its probability.
    pub absent: Option<(String, f32)>,
    /// Probability of all senses that the terminology lacks.
    pub p_absent: f32,
    /// Whether the form comes from the user's file.
    pub is_own: bool,
    /// Whether it is a phrase or short form in which no part is a mention: `cold feet`.
    pub is_idiom: bool,
}

impl SenseMatch {
    /// A phrase in which no part is a mention.
    fn idiom(span: Span) -> SenseMatch {
        SenseMatch { span, concepts: Vec::new(), absent: None, p_absent: 0.0, is_own: false, is_idiom: true }
    }

    /// Probability that the form means a concept, which the terminology may lack.
    pub fn p_concept(&self) -> f32 {
        self.concepts.iter().map(|one| one.2).sum::<f32>() + self.p_absent
    }
}

/// Drops entries that overlap idioms.
pub fn drop_idioms<T>(sensed: &[SenseMatch], entries: &mut Vec<T>, span: impl Fn(&T) -> Span) {
    let idioms: Vec<Span> = sensed.iter().filter(|one| one.is_idiom).map(|one| one.span).collect();
    if !idioms.is_empty() {
        // They are in text order and do not overlap.
        let next = |span: Span| idioms.get(idioms.partition_point(|idiom| idiom.end <= span.start));
        entries.retain(|entry| next(span(entry)).is_none_or(|idiom| !idiom.overlaps(span(entry))));
    }
}

/// Prefixes of words that mean something else with them.
const NEGATING: [&str; 4] = ["Anti", "Non", "anti", "non"];

/// The cue for a number after the form.
const NUMBER: &str = "#";
/// Minimum prior of a sense that is assumed without context.
const MIN_USUAL: f32 = 0.6;
/// Weight of unlisted senses in a general-language document.
const GENERAL_WEIGHT: f32 = 6.0;
/// Topics of senses that are genes, proteins or molecules.
const SYMBOLIC: [&str; 2] = ["genetics", "molecular-biology"];

impl SenseInventory {
    /// The embedded inventory.
    pub fn embedded() -> Arc<SenseInventory> {
        static EMBEDDED: LazyLock<Arc<SenseInventory>> = LazyLock::new(|| {
            let mut inventory = SenseInventory::default();
            inventory.n_topics = TOPICS.lines().count();
            inventory.word_topics = Arc::new(WordTopics::embedded(inventory.n_topics));
            let mut topics_of: HashMap<u64, Vec<u8>, Hashed> = HashMap::default();
            let mut names: Vec<&str> = Vec::new();
            for (topic, line) in TOPICS.lines().enumerate() {
                let (name, words) = line.split_once('\t').unwrap_or((line, ""));
                names.push(name);
                words
                    .split('|')
                    .for_each(|word| topics_of.entry(xxh3_64(word.as_bytes())).or_default().push(topic as u8));
            }
            inventory.topics_of = Arc::new(topics_of);
            let numbered = names.iter().enumerate().filter(|(_, name)| SYMBOLIC.contains(name));
            inventory.symbolic = numbered.map(|(topic, _)| topic as u8).collect();
            inventory.everyday = names.iter().position(|name| *name == "everyday").map(|topic| topic as u8);
            for line in SENSES.lines() {
                let fields: Vec<&str> = line.split('\t').collect();
                let &[form, long_forms, prior, topics, cues] = fields.as_slice() else {
                    panic!("a test reads the embedded inventory: {line}");
                };
                let topic_number = |topic: &str| names.iter().position(|name| *name == topic).map(|topic| topic as u8);
                let mut topics: Vec<u8> = topics.split(',').filter_map(topic_number).collect();
                if topics.is_empty() && long_forms == "-" {
                    topics.extend(inventory.everyday);
                }
                let prior = prior.parse::<f32>().expect("a test reads the embedded inventory") / 100.0;
                let long_forms = long_forms.into();
                inventory.add(
                    form,
                    Sense {
                        prior,
                        is_own: false,
                        long_forms,
                        concept: None,
                        topics,
                        cues,
                        prepared: OnceLock::new(),
                        number: 0,
                    },
                );
            }
            Arc::new(inventory)
        });
        EMBEDDED.clone()
    }

    /// The embedded inventory with the short forms of files; `None` without files.
    ///
    /// # Errors
    /// Those of [`SenseInventory::with_file`].
    pub fn of_files(files: &[PathBuf]) -> Result<Option<Arc<SenseInventory>>> {
        let mut senses = None;
        for file in files {
            let before = senses.unwrap_or_else(SenseInventory::embedded);
            senses = Some(Arc::new(before.with_file(&mut Input::open(file)?)?));
        }
        Ok(senses)
    }

    /// Adds the short forms of a user, which replace entries of the same form. Lines have tab-separated columns: form,
    /// long form (several separated by `|`), and optionally the share of uses in percent.
    ///
    /// # Errors
    /// If the file cannot be read or a line has no long form.
    pub fn with_file(&self, input: &mut Input) -> Result<SenseInventory> {
        let mut inventory = self.clone();
        let mut own: Vec<Box<str>> = Vec::new();
        while let Some((_, line)) = input.next_line()? {
            let line = line.trim_end().to_owned();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split('\t').map(str::trim);
            let (Some(form), Some(long_forms)) = (fields.next(), fields.next().filter(|long| parts(long).count() > 0))
            else {
                let error = input.error("short form without a long form");
                return Err(error.with_hint("the format is `form<TAB>long form`, one short form per line"));
            };
            if form.is_empty() || form.len() > MAX_FORM {
                let error = input.error("the short form is empty or too long");
                return Err(error.with_hint(format!("a short form has 1 to {MAX_FORM} bytes")));
            }
            let prior = match fields.next().filter(|share| !share.is_empty()).map(str::parse::<f32>) {
                None => 97.0,
                Some(Ok(share)) if share > 0.0 && share <= 100.0 => share,
                Some(_) => {
                    let error = input.error("the percentage of uses is not a number from 0 to 100");
                    return Err(error.with_hint("leave the third column empty if there is only one sense"));
                }
            };
            if !own.iter().any(|known| **known == *form) {
                own.push(form.into());
                inventory.remove(form);
            }
            inventory.add_own(form, long_forms, None, prior / 100.0);
        }
        Ok(inventory)
    }

    /// Adds a form with its concept in one knowledge base, the preferred name of that, and the share of its uses that mean it, as from a user's
    /// file; it replaces the entries of the same form, unless they come from a user's file.
    pub fn teach(&mut self, form: &str, concept: (ConceptId, NameId), preferred: &str, share: f32) {
        if !self.senses(form).iter().any(|sense| sense.is_own) {
            self.remove(form);
            self.add_own(form, preferred, Some(concept), share);
        }
    }

    fn add_own(&mut self, form: &str, long_forms: &str, concept: Option<(ConceptId, NameId)>, prior: f32) {
        let long_forms = Cow::Owned(long_forms.to_owned());
        let (topics, prepared) = (Vec::new(), OnceLock::new());
        self.add(form, Sense { prior, is_own: true, long_forms, concept, topics, cues: "", prepared, number: 0 });
    }

    /// All senses with their forms, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Sense)> {
        let forms = self.forms.values().flatten();
        forms.flat_map(|(form, senses)| senses.iter().map(move |sense| (&**form, sense)))
    }

    /// The number of a topic.
    #[cfg(test)]
    pub(super) fn topic(&self, name: &str) -> Option<u8> {
        TOPICS.lines().position(|line| line.split('\t').next() == Some(name)).map(|topic| topic as u8)
    }

    fn add(&mut self, form: &str, mut sense: Sense) {
        sense.number = self.n_senses as u32;
        self.n_senses += 1;
        let forms = self.forms.entry(key(first_word(form))).or_default();
        match forms.iter_mut().find(|(known, _)| **known == *form) {
            Some((_, senses)) => senses.push(sense),
            None => {
                // The longest come first.
                let at = forms.partition_point(|(known, _)| known.len() >= form.len());
                forms.insert(at, (form.into(), vec![sense]));
            }
        }
    }

    fn remove(&mut self, form: &str) {
        if let Some(forms) = self.forms.get_mut(&key(first_word(form))) {
            forms.retain(|(known, _)| **known != *form);
        }
    }

    /// Number of senses that were ever added.
    pub(super) fn n_senses(&self) -> usize {
        self.n_senses
    }

    /// Number of forms.
    pub fn n_forms(&self) -> usize {
        self.forms.values().map(Vec::len).sum()
    }

    /// The senses of a form as written; empty if it is not in the inventory.
    pub fn senses(&self, form: &str) -> &[Sense] {
        let forms = self.forms.get(&key(first_word(form)));
        forms.and_then(|forms| forms.iter().find(|(known, _)| **known == *form)).map_or(&[], |(_, senses)| senses)
    }

    /// The most common sense of a form, for names without context: the concept, its name and the prior. `None` if the form is a name in the
    /// terminology, if it may be an ordinary word, or if no sense is common enough.
    pub fn usual(&self, view: KbView<'_>, form: &str) -> Option<(ConceptId, NameId, f32)> {
        let form = form.trim();
        let known = view.kb.find_form(&fold(form)).filter(|known| view.has_form(*known));
        if form.len() > MAX_FORM || known.is_some() {
            return None;
        }
        // In lower case, with a vowel, it may be an ordinary word, which other parts link better.
        let is_short_form = form.contains(|letter: char| letter.is_uppercase() || letter.is_ascii_digit());
        if !is_short_form && form.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            return None;
        }
        let upper = form.to_uppercase();
        let senses = [form, &upper].into_iter().map(|form| self.senses(form)).find(|senses| !senses.is_empty())?;
        let usual = senses.iter().max_by(|left, right| left.prior.total_cmp(&right.prior))?;
        let found = super::sense_concepts::concepts_of(view, usual);
        let (concept, name) = found.first().filter(|_| usual.prior >= MIN_USUAL)?;
        Some((*concept, *name, usual.prior))
    }

    /// Every use of a form that the text does not define, with its candidate concepts. `defined` are the spans of short
    /// forms that the text defines.
    pub(super) fn find(
        &self,
        view: KbView<'_>,
        text: &str,
        words: &[Word],
        defined: &dyn Fn(Span) -> bool,
        concepts: &SenseConcepts,
    ) -> Vec<SenseMatch> {
        let mut found = Vec::new();
        let mut document: Option<DocumentContext<'_>> = None;
        let mut next = 0;
        for (at, word) in words.iter().enumerate() {
            if at < next || word.token.before == Gap::Glued {
                continue;
            }
            let Some(form) = self.form_at(text, word.token.span) else { continue };
            let span = form.span;
            let end = words.partition_point(|word| word.token.span.end <= span.end);
            // The form must be a whole word, and must not follow a prefix such as `anti-`: `anti-HBs`.
            let is_whole = end > at
                && (words[end - 1].token.span.end == span.end || ends_with_sign(text, span))
                && words.get(end).is_none_or(|next| next.token.before != Gap::Glued);
            let prefix = words[..at]
                .last()
                .filter(|_| word.token.before == Gap::Hyphen)
                .map(|prefix| prefix.token.span.of(text));
            let is_negated =
                prefix.is_some_and(|prefix| NEGATING.contains(&prefix) && !is_target_of_antibody(text, prefix, span));
            if !is_whole || is_negated || defined(span) {
                continue;
            }
            if form.is_idiom() && concepts.of_form(view, form.form, form.senses).is_empty() {
                found.push(SenseMatch::idiom(span));
                next = end;
                continue;
            }
            let document = document.get_or_insert_with(|| DocumentContext::new(text, words, self));
            let near = document.words_near(&(at..end));
            let score = |sense: &Sense| document.score(sense, &(at..end), &near);
            let scores: Vec<f32> = form.senses.iter().map(score).collect();
            let has_other = form.senses.iter().any(|sense| sense.long_forms().next().is_none());
            let other = if has_other { GENERAL_WEIGHT * document.general } else { 0.0 };
            let Some(sensed) = sense_match(view, &form, &scores, other, (concepts, &self.symbolic)) else { continue };
            // If no sense of a longer form is in the knowledge base, its later words are tried on their own, as in
            // `brain mets`.
            next = if sensed.concepts.is_empty() && !sensed.is_idiom { at + 1 } else { end };
            found.push(sensed);
        }
        found
    }

    /// The longest form whose first word is a word of the text, with the signs that a form such as `+/- pain` begins with.
    fn form_at<'a>(&'a self, text: &'a str, word: Span) -> Option<FormUse<'a>> {
        let written = word.of(text);
        let start_of = |form: &str| (word.start as usize).checked_sub(n_signs(form));
        let fits = |(form, _): &&Form| {
            let Some(start) = start_of(form) else { return false };
            let Some(begin) = text.get(start..start + form.len()) else { return false };
            if start < word.start as usize {
                let before = text[..start].chars().next_back();
                return begin == &**form && form.chars().next().is_some_and(|first| can_begin(before, first));
            }
            let small = !form.chars().any(char::is_uppercase);
            begin == &**form || small && is_capitalised(begin, form)
        };
        let of = |first: &str| self.forms.get(&key(first)).and_then(|forms| forms.iter().find(fits));
        let as_written = of(written);
        // Plurals of upper-case forms: `UTIs`, `DVTs`.
        let singular = || written.strip_suffix('s').filter(|core| core.len() >= 2 && is_acronym(core)).and_then(of);
        let (form, senses) = as_written.or_else(singular)?;
        let start = start_of(form)?;
        let plural = text[start + form.len()..].starts_with('s') && is_acronym(form) && form.len() >= 2;
        let span = Span::new(start, start + form.len() + usize::from(plural));
        Some(FormUse { span, written: span.of(text), form, senses })
    }
}

/// The long forms in a field.
fn parts(field: &str) -> impl Iterator<Item = &str> {
    field.split('|').map(str::trim).filter(|part| !part.is_empty())
}

/// Maximum length of a form in a user's file, in bytes.
const MAX_FORM: usize = 60;

/// Key of the first word of a form, ignoring case.
fn key(word: &str) -> u64 {
    match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => xxh3_64(word.to_ascii_lowercase().as_bytes()),
        false => xxh3_64(word.as_bytes()),
    }
}

/// Hash map state for keys that are hashes already.
pub(super) type Hashed = std::hash::BuildHasherDefault<Identity>;

/// Identity hasher for keys that are hashes already.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers of 64 bits");
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

fn first_word(form: &str) -> &str {
    let token = crate::text::tokens::tokenize(form).first().map(|token| token.span);
    token.map_or(form, |span| span.of(form))
}

/// The number of bytes of the signs that a form begins with; 0 if it has no word.
fn n_signs(form: &str) -> usize {
    form.find(char::is_alphanumeric).unwrap_or(0)
}

/// Whether a form ends with a sign, such as `V+`, and the word with it: not in `V+ve` or `V++`.
fn ends_with_sign(text: &str, span: Span) -> bool {
    let (Some(last), next) = (span.of(text).chars().next_back(), text[span.end as usize..].chars().next()) else {
        return false;
    };
    !last.is_alphanumeric() && can_end(last, next)
}

/// Whether two texts are equal except for an initial capital.
fn is_capitalised(written: &str, form: &str) -> bool {
    let (mut one, mut other) = (written.chars(), form.chars());
    let first = one.next().zip(other.next());
    first.is_some_and(|(one, other)| one.to_lowercase().eq(other.to_lowercase())) && one.as_str() == other.as_str()
}
