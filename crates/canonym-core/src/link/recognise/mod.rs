//! Dictionary-based mention detection: longest match over the names of a knowledge base, with linking.
//!
//! For each document: match every window that is a name ([`mod@scan`]), score its senses ([`accept`]), apply the
//! abbreviation definitions of the document, suppress overlaps in favour of longer matches, and drop unlikely mentions.
//! Word frequencies come from abstracts ([`common`]).

pub mod accept;
pub mod common;
mod coordination;
mod edges;
mod equivalents;
pub mod fit;
mod nested;
mod phrases;
mod predicates;
mod respell;
pub mod scan;
pub mod sense_concepts;
mod sense_context;
mod sense_match;
pub mod senses;
mod spelling;
pub mod touched;
mod word_topics;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use self::accept::{AcceptModel, Features, SenseCandidate, sense_candidates};
use self::coordination::Coordinated;
use self::edges::{is_cause, is_cut, is_hanging_prefix, whole_name, with_bracket};
use self::nested::{ConceptSpans, add_other_types, longest};
pub use self::nested::{
    Nested, Overlapping, SpanSet, drop_inside_pieces, is_all_but_letters, is_other_type, is_preferred, keep_disjoint,
    nested_in,
};
use self::scan::{ScanScratch, Tier, WindowMatch, Word, expand, scan, scan_from, words};
use self::sense_concepts::{OtherNames, SenseConcepts};
use self::senses::{SenseInventory, SenseMatch, drop_idioms};
use super::{Annotator, Candidate, Link, LinkedMention, Pool, PoolGuard};
use crate::Result;
use crate::kb::subset::{KbView, Subset};
use crate::kb::{ConceptId, KnowledgeBase};
use crate::link::explain::Explanation;
use crate::link::short_list::ShortList;
use crate::text::analysis::Analysis;
use crate::text::notes::{covers, non_mentions_near};
use crate::text::proper_names::is_proper_name;
use crate::text::{Mention, Span};

/// Which mentions are reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecogniseConfig {
    /// Maximum number of candidates of a mention.
    pub top_k: usize,
    /// Minimum probability of a linked mention. A value below the threshold of the model replaces that threshold; with
    /// a higher one, mentions in between are reported unlinked. `None` uses the threshold of the model.
    pub min_score: Option<f32>,
    /// Which mentions nested in longer ones are reported.
    pub nested: Nested,
}

impl Default for RecogniseConfig {
    fn default() -> Self {
        RecogniseConfig { top_k: 5, min_score: None, nested: Nested::default() }
    }
}

/// Finds and links mentions by the names of a knowledge base.
#[derive(Debug)]
pub struct DictionaryAnnotator {
    pub(super) kb: Arc<KnowledgeBase>,
    pub(super) model: AcceptModel,
    pub(super) config: RecogniseConfig,
    subset: Option<Arc<Subset>>,
    inventory: Arc<SenseInventory>,
    other_names: Option<OtherNames>,
    sense_concepts: SenseConcepts,
    /// The words of a short list; `None` for other terminologies.
    short_list: Option<ShortList>,
    corrects_spelling: bool,
    /// The root concept of the hierarchy, if any: `cell` in an ontology of cells is not a mention.
    root: Option<ConceptId>,
    scratches: Pool<ScanScratch>,
}

/// A match in a document with its sense candidates, before the threshold is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct DictionaryMatch {
    /// From the first to the last byte of the match.
    pub span: Span,
    /// The pieces; more than one only in a coordination.
    pub spans: Vec<Span>,
    /// Number of words without function words.
    pub n_words: usize,
    /// Whether it names a cause, such as the drug in `lithium-induced tremor`.
    pub is_cause: bool,
    /// Whether a short form in it was expanded.
    pub expanded: bool,
    /// Whether a misspelling in it was corrected.
    pub is_corrected: bool,
    /// Whether it is nested in a longer match and reported beside it ([`Nested::OtherTypes`]).
    pub is_nested: bool,
    /// The sense candidates with their probabilities, most probable first.
    pub senses: Vec<(SenseCandidate, f32)>,
}

impl DictionaryAnnotator {
    /// An annotator for the concepts of `kb`.
    pub fn new(kb: Arc<KnowledgeBase>, model: AcceptModel, config: RecogniseConfig) -> DictionaryAnnotator {
        let inventory = SenseInventory::embedded();
        let sense_concepts = SenseConcepts::new(&inventory, None);
        let (root, scratches) = (root_of(&kb), Pool::default());
        let short_list = ShortList::of(KbView { kb: &kb, subset: None });
        DictionaryAnnotator {
            kb,
            model,
            config,
            subset: None,
            inventory,
            other_names: None,
            sense_concepts,
            short_list,
            corrects_spelling: false,
            root,
            scratches,
        }
    }

    /// Also corrects misspellings. Slower.
    #[must_use]
    pub fn correcting_spelling(self) -> DictionaryAnnotator {
        DictionaryAnnotator { corrects_spelling: true, ..self }
    }

    /// Replaces the sense inventory.
    #[must_use]
    pub fn with_senses(self, inventory: Arc<SenseInventory>) -> DictionaryAnnotator {
        DictionaryAnnotator { inventory, ..self }.with_new_senses()
    }

    /// Links senses of short forms that the knowledge base lacks by other names.
    #[must_use]
    pub fn with_other_names(self, other_names: OtherNames) -> DictionaryAnnotator {
        DictionaryAnnotator { other_names: Some(other_names), ..self }.with_new_senses()
    }

    fn with_new_senses(self) -> DictionaryAnnotator {
        let sense_concepts = SenseConcepts::new(&self.inventory, self.other_names.clone());
        DictionaryAnnotator { sense_concepts, ..self }
    }

    /// Restricts candidates to `subset`, which must belong to the same knowledge base; `None` lifts the restriction.
    /// Names of other concepts do not compete, so a shorter name may match instead of a longer one.
    #[must_use]
    pub fn within(self, subset: Option<Arc<Subset>>) -> DictionaryAnnotator {
        let short_list = ShortList::of(KbView { kb: &self.kb, subset: subset.as_deref() });
        DictionaryAnnotator { subset, short_list, ..self }.with_new_senses()
    }

    fn view(&self) -> KbView<'_> {
        KbView { kb: &self.kb, subset: self.subset.as_deref() }
    }

    /// The linked mentions of one document.
    pub fn annotate_one(&self, document: &Analysis<'_>, scratch: &mut ScanScratch) -> Vec<LinkedMention> {
        let threshold = self.threshold();
        self.matches(document, scratch)
            .into_iter()
            .filter(|matched| matched.senses[0].1 >= threshold && self.is_reported(matched))
            .map(|matched| self.linked(&matched))
            .collect()
    }

    /// Whether a match is reported: a nested one only if its semantic type is known.
    pub(super) fn is_reported(&self, matched: &DictionaryMatch) -> bool {
        !matched.is_nested || self.kb.types(matched.best().0.concept).next().is_some()
    }

    pub(super) fn linked(&self, matched: &DictionaryMatch) -> LinkedMention {
        // At most one sense is right, so the probabilities of all senses add up to that of a mention.
        let p_mention = matched.senses.iter().map(|(_, p)| p).sum::<f32>().clamp(1e-6, 1.0);
        let candidate = |(sense, p): &(SenseCandidate, f32)| Candidate {
            concept: sense.concept,
            name: Some(sense.name),
            p_link: (p / p_mention).min(1.0),
        };
        let candidates: Vec<Candidate> = matched.senses.iter().take(self.config.top_k.max(1)).map(candidate).collect();
        let mut types = self.kb.types(candidates[0].concept);
        let semantic_type = types.next().map(str::to_owned);
        let mention = Mention { spans: matched.spans.clone(), semantic_type, p_mention };
        let p_both = matched.senses[0].1;
        let nil = self.config.min_score.is_some_and(|wanted| p_both < wanted);
        LinkedMention { mention, link: Link { candidates, nil }, p_both }
    }

    /// Whether the dictionary alone links a match.
    pub fn is_linked(&self, matched: &DictionaryMatch) -> bool {
        matched.best().1 >= self.model.threshold
    }

    /// Mentions below this probability are dropped; those below a higher `min_score` are reported unlinked.
    pub(super) fn threshold(&self) -> f32 {
        self.config.min_score.map_or(self.model.threshold, |wanted| wanted.min(self.model.threshold))
    }

    /// The matches left after overlaps are resolved, in text order, before the threshold is applied.
    pub fn matches(&self, analysis: &Analysis<'_>, scratch: &mut ScanScratch) -> Vec<DictionaryMatch> {
        self.matches_and_senses(analysis, scratch).0
    }

    /// Like [`DictionaryAnnotator::matches`], with all forms of the sense inventory that the text uses without defining
    /// them.
    pub fn matches_and_senses(
        &self,
        analysis: &Analysis<'_>,
        scratch: &mut ScanScratch,
    ) -> (Vec<DictionaryMatch>, Vec<SenseMatch>) {
        let text = analysis.text;
        let words = words(&self.kb, analysis, scratch);
        let uses = analysis.short_forms();
        let unlikely = UNLIKELY * self.threshold();
        let mut matched = self.all_matches(text, &words, |_| true);
        if let Some((respelled, is_new)) = respell::respelled(&self.kb, text, &words, &mut scratch.respell) {
            let known: HashSet<Span> = matched.iter().map(|entry| entry.span).collect();
            let starts = respell::starts(&is_new);
            let found = scan_from(self.view(), text, &respelled, starts);
            let new = found.iter().filter(|found| is_new[found.first..=found.last].contains(&true));
            let new: Vec<DictionaryMatch> = new.filter_map(|found| self.match_of(text, &respelled, found)).collect();
            matched.extend(new.into_iter().filter(|entry| !known.contains(&entry.span)));
        }
        phrases::add(self, text, &words, &mut matched);
        let (predicated, parted): (Vec<Coordinated>, Vec<Coordinated>) =
            predicates::predicated(self.view(), text, &words).into_iter().partition(|part| part.spans.len() == 1);
        let known: HashSet<Span> = matched.iter().map(|entry| entry.span).collect();
        let new = predicated.into_iter().filter(|part| !known.contains(&part.spans[0]));
        matched.extend(new.filter_map(|part| self.match_of_parts(text, part)));
        if self.corrects_spelling
            && let Some((corrected, is_corrected)) = spelling::corrected(&self.kb, text, &words, &mut scratch.spelling)
        {
            let mut matches =
                self.all_matches(text, &corrected, |found| is_corrected[found.first..=found.last].contains(&true));
            matches.iter_mut().for_each(|found| found.is_corrected = true);
            matched.extend(matches);
        }
        if let Some(expanded) = expand(&words, uses) {
            let matches = self.all_matches(text, &expanded, |found| found.expanded);
            let by_definition: HashSet<Span> = matches.iter().map(|entry| entry.span).collect();
            matched.retain(|entry| !by_definition.contains(&entry.span));
            let defined: HashMap<Span, Span> = uses.iter().copied().collect();
            for entry in &mut matched {
                if let Some(long) = defined.get(&entry.span) {
                    self.contradict(entry, &words, *long);
                }
            }
            matched.extend(matches);
        }
        let defined = |span: Span| {
            // `uses` are sorted and do not overlap.
            let first = uses.partition_point(|(short, _)| short.end <= span.start);
            uses.get(first).is_some_and(|(short, _)| short.overlaps(span))
        };
        let sensed = self.inventory.find(self.view(), text, &words, &defined, &self.sense_concepts);
        if !sensed.is_empty() {
            drop_idioms(&sensed, &mut matched, |entry| entry.span);
            let spans: HashSet<Span> = sensed.iter().map(|sensed| sensed.span).collect();
            matched.retain(|entry| !spans.contains(&entry.span));
            matched.extend(sensed.iter().filter_map(|sensed| self.match_of_senses(text, &words, sensed)));
        }
        matched.retain(|entry| entry.senses.first().is_some_and(|best| best.1 >= unlikely));
        drop_non_mentions(text, &mut matched, |entry| entry.span);
        nested::drop_crossing(text, &mut matched);
        if self.config.nested != Nested::All {
            let (kept, nested) = longest(matched);
            matched = kept;
            if self.config.nested == Nested::OtherTypes {
                add_other_types(&self.kb, text, &mut matched, nested);
            }
        }
        let is_long_name =
            |entry: &&DictionaryMatch| entry.n_words > 1 && entry.is_exact() && !entry.is_discontinuous();
        let long_names = SpanSet::new(matched.iter().filter(is_long_name).map(|entry| entry.span).collect());
        let mut concepts = ConceptSpans::default();
        matched.iter().for_each(|entry| concepts.insert(entry.best().0.concept, entry.span));
        for part in coordination::coordinated(self.view(), analysis, &words).into_iter().chain(parted) {
            let Some(found) = self.match_of_parts(text, part) else { continue };
            // In `feel tired and have tired eyes`, the parts only repeat the concept of the whole name.
            let concept = found.best().0.concept;
            let repeats = found.spans.iter().any(|piece| concepts.overlap(concept, *piece));
            // In `chemical burns and smoke inhalation`, the burns are part of a longer name.
            if !repeats && !long_names.contains_behind_start(found.spans[0]) {
                concepts.insert(concept, found.span);
                matched.push(found);
            }
        }
        if self.config.nested != Nested::All {
            drop_inside_pieces(&mut matched, |entry| entry.senses[0].1 >= unlikely, |_| false);
        }
        self.count_mentions(&mut matched);
        matched.sort_by_key(|matched| (matched.span.start, Reverse(matched.span.end)));
        (matched, sensed)
    }

    /// A form of the inventory as a match with the concepts of its senses.
    fn match_of_senses(&self, text: &str, words: &[Word], sensed: &SenseMatch) -> Option<DictionaryMatch> {
        let first = words.partition_point(|word| word.token.span.start < sensed.span.start);
        let end = words.partition_point(|word| word.token.span.end <= sensed.span.end);
        if first >= end || sensed.concepts.is_empty() {
            return None;
        }
        let found = WindowMatch { first, last: end - 1, n_counted: end - first, forms: Vec::new(), expanded: false };
        if accept::is_isoform(text, found.span(words)) {
            return None;
        }
        let score = |(concept, name, sense): &(ConceptId, crate::kb::NameId, f32)| {
            let features = accept::features(&self.kb, text, words, &found, Tier::Folded, *name);
            let candidate =
                SenseCandidate { concept: *concept, name: *name, tier: Tier::Folded, features, sense: Some(*sense) };
            (candidate, self.model.score(&candidate, self.kb.n_names()))
        };
        let is_root = |(concept, ..): &&(ConceptId, crate::kb::NameId, f32)| Some(*concept) == self.root;
        let senses: Vec<_> = sensed.concepts.iter().filter(|one| !is_root(one)).map(score).collect();
        if senses.is_empty() {
            return None;
        }
        let (span, spans, is_cause) = (sensed.span, vec![sensed.span], is_cause(text, words, found.last));
        let n_words = found.n_counted;
        Some(DictionaryMatch {
            span,
            spans,
            n_words,
            is_cause,
            expanded: false,
            is_corrected: false,
            is_nested: false,
            senses,
        })
    }

    fn all_matches(&self, text: &str, words: &[Word], wanted: impl Fn(&WindowMatch) -> bool) -> Vec<DictionaryMatch> {
        let found = scan(self.view(), text, words);
        found.iter().filter(|found| wanted(found)).filter_map(|found| self.match_of(text, words, found)).collect()
    }

    fn match_of(&self, text: &str, words: &[Word], found: &WindowMatch) -> Option<DictionaryMatch> {
        let mut candidates = sense_candidates(self.view(), &self.model, text, words, found);
        candidates.retain(|candidate| Some(candidate.concept) != self.root);
        if candidates.is_empty() {
            return None;
        }
        let scored =
            candidates.into_iter().map(|candidate| (candidate, self.model.score(&candidate, self.kb.n_names())));
        let span = found.span(words);
        let senses = scored.collect();
        let is_cause = is_cause(text, words, found.last);
        let mut matched = DictionaryMatch {
            span,
            spans: vec![span],
            n_words: found.n_counted,
            is_cause,
            expanded: found.expanded,
            is_corrected: false,
            is_nested: false,
            senses,
        };
        matched.sort();
        let (best, _) = matched.best();
        if best.tier >= Tier::Ordered && !found.expanded {
            matched.span = whole_name(text, span, self.kb.name(best.name));
        }
        matched.span = with_bracket(text, matched.span);
        matched.spans = vec![matched.span];
        Some(matched)
    }

    /// A name whose words are not next to each other, or in another order.
    fn match_of_parts(&self, text: &str, part: Coordinated) -> Option<DictionaryMatch> {
        let found = self.match_of(text, &part.words, &part.found)?;
        let span = if part.spans.len() == 1 { part.spans[0] } else { found.span };
        Some(DictionaryMatch { span, spans: part.spans, ..found })
    }

    /// Handles a short form whose long form is not a name: only concepts with a similar name are kept.
    fn contradict(&self, matched: &mut DictionaryMatch, words: &[Word], long: Span) {
        let first = words.partition_point(|word| word.token.span.start < long.start);
        let inside = words[first..].iter().take_while(|word| word.token.span.end <= long.end);
        let roots: Vec<u64> = inside.filter(|word| !word.hashes.linking).map(|word| word.hashes.root).collect();
        matched.senses.retain(|(candidate, _)| self.has_name_like(candidate.concept, &roots));
        for (candidate, score) in &mut matched.senses {
            candidate.features[accept::DIFFERS] = 1.0;
            candidate.features[accept::UNDEFINED] = 0.0;
            *score = self.model.score(candidate, self.kb.n_names());
        }
        matched.sort();
    }

    /// Whether a name of the concept contains most of the words with these roots.
    fn has_name_like(&self, concept: ConceptId, roots: &[u64]) -> bool {
        self.kb.names(concept).any(|name| {
            let rows = self.kb.tokens_of_form(self.kb.form_of(name));
            let name_roots: Vec<u64> = rows.map(|row| self.kb.token_root(row)).collect();
            let n_shared = roots.iter().filter(|root| name_roots.contains(root)).count();
            n_shared as f32 >= MIN_SHARED_WORDS * roots.len() as f32
        })
    }

    /// Adds the document counts: concepts mentioned elsewhere in the document are more likely.
    fn count_mentions(&self, matched: &mut [DictionaryMatch]) {
        let mut counts: HashMap<ConceptId, u32> = HashMap::new();
        for entry in matched.iter().filter(|entry| !entry.is_nested) {
            *counts.entry(entry.senses[0].0.concept).or_insert(0) += 1;
        }
        for entry in matched.iter_mut() {
            for (candidate, score) in &mut entry.senses {
                let n_others =
                    counts.get(&candidate.concept).map_or(0, |n| n.saturating_sub(u32::from(!entry.is_nested)));
                candidate.features[accept::MENTIONED] = (n_others as f32 + 1.0).ln();
                *score = self.model.score(candidate, self.kb.n_names());
            }
            entry.sort();
        }
    }
}

impl DictionaryMatch {
    fn sort(&mut self) {
        self.senses.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.concept.cmp(&b.0.concept)));
    }

    /// The best sense candidate and its probability.
    pub fn best(&self) -> (&SenseCandidate, f32) {
        let (candidate, score) = &self.senses[0];
        (candidate, *score)
    }

    /// Whether exactly one concept has this name, word for word, and the match is not an ambiguous short form or
    /// ordinary word.
    pub fn is_unambiguous(&self) -> bool {
        self.senses.len() == 1 && self.is_exact()
    }

    /// Whether the best candidate has this name, word for word and without a misspelling, and the match is not an
    /// ambiguous short form or ordinary word.
    pub fn is_exact(&self) -> bool {
        let (candidate, _) = self.best();
        candidate.sense.is_none()
            && candidate.tier >= Tier::Ordered
            && candidate.features[accept::UNDEFINED] == 0.0
            && !self.is_corrected
    }

    /// Whether it is a short form or symbol that exactly one concept has as a name, letter by letter, such as KRAS.
    pub fn is_symbol(&self) -> bool {
        let (candidate, _) = self.best();
        self.senses.len() == 1
            && candidate.sense.is_none()
            && candidate.tier >= Tier::Ordered
            && candidate.features[accept::UNDEFINED] != 0.0
            && !self.is_corrected
    }

    /// The features of the best sense candidate.
    pub fn features(&self) -> &Features {
        &self.senses[0].0.features
    }
}

/// Drops entries in headings, doses, dates and the like. Only the text around suspicious entries is examined.
pub fn drop_non_mentions<T>(text: &str, entries: &mut Vec<T>, span: impl Fn(&T) -> Span) {
    let may_be = |entry: &&T| {
        let span = span(entry);
        let (before, inside, after) = (&text[..span.start as usize], span.of(text), &text[span.end as usize..]);
        let digit = |letter: char| letter.is_ascii_digit();
        let is_value = inside.contains(digit) && (inside.len() <= 4 || inside.starts_with(digit));
        is_value
            || before.trim_end().ends_with(digit)
            || after.starts_with(':')
            || starts_heading(before, after)
            || is_in_capitals(before, inside, after)
    };
    let mut doubtful: Vec<Span> = entries.iter().filter(may_be).map(&span).collect();
    if !doubtful.is_empty() {
        doubtful.sort_unstable();
        let outside = non_mentions_near(text, doubtful.into_iter());
        entries.retain(|entry| !covers(text, &outside, span(entry)));
    }
    entries.retain(|entry| {
        let span = span(entry);
        !is_proper_name(text, span) && !is_hanging_prefix(text, span) && !is_cut(text, span)
    });
}

/// Whether a match starts a line or sentence in which a colon follows after few words: `Discharge summary: …`.
fn starts_heading(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    (before.is_empty() || before.ends_with(['\n', '.', ':', ';', '|']))
        && after
            .bytes()
            .take(MAX_HEADING_CHARS)
            .find(|byte| matches!(byte, b':' | b'.' | b'\n' | b';' | b','))
            .is_some_and(|byte| byte == b':')
}

/// Whether a match is in an upper-case line or clause, as in headings; examines at most [`MAX_HEADING_CHARS`] characters
/// on either side.
fn is_in_capitals(before: &str, inside: &str, after: &str) -> bool {
    let is_end = |sign: &char| matches!(sign, '\n' | ':' | '.' | ';');
    let has_small = |letters: &mut dyn Iterator<Item = char>| {
        letters.take(MAX_HEADING_CHARS).take_while(|letter| !is_end(letter)).any(char::is_lowercase)
    };
    inside.len() > 2
        && !has_small(&mut inside.chars())
        && !has_small(&mut before.chars().rev())
        && !has_small(&mut after.chars())
}

/// Maximum number of characters examined on either side.
const MAX_HEADING_CHARS: usize = 80;

/// The common ancestor of most concepts, following the first parent of each. `None` for a small terminology, where such
/// a concept may be meant: `diabetes` above its types. Of a large one, evenly spaced concepts are examined.
pub(super) fn root_of(kb: &KnowledgeBase) -> Option<ConceptId> {
    if kb.n_concepts() < MIN_CONCEPTS_WITH_ROOT {
        return None;
    }
    let mut below: HashMap<ConceptId, usize> = HashMap::new();
    let step = kb.n_concepts().div_ceil(MAX_CONCEPTS_EXAMINED);
    let examined = kb.concepts().step_by(step);
    let n_examined = kb.n_concepts().div_ceil(step);
    for concept in examined {
        let mut top = concept;
        for _ in 0..MAX_DEPTH {
            match kb.parents(top).next() {
                Some(parent) if parent != top => top = parent,
                _ => break,
            }
        }
        if top != concept {
            *below.entry(top).or_default() += 1;
        }
    }
    below.into_iter().find(|(_, n)| 2 * n > n_examined).map(|(root, _)| root)
}

/// Minimum number of concepts for which a root concept is excluded.
const MIN_CONCEPTS_WITH_ROOT: usize = 200;

/// Maximum number of concepts from which the root is determined.
const MAX_CONCEPTS_EXAMINED: usize = 1 << 14;

/// Maximum number of steps up a hierarchy, which may contain cycles.
const MAX_DEPTH: usize = 64;

/// Share of the words of a long form that a similar name must contain.
const MIN_SHARED_WORDS: f32 = 0.7;

/// Matches below this fraction of the threshold do not suppress others.
const UNLIKELY: f32 = 0.5;

/// The text of a mention with its short forms replaced by their long forms, unless the long form is in the mention
/// itself. `uses` are in text order.
pub fn expanded(text: &str, spans: &[Span], uses: &[(Span, Span)]) -> String {
    let write = |span: &Span| {
        let (mut piece, mut end) = (String::new(), span.start);
        let first = uses.partition_point(|(short, _)| short.start < span.start);
        for (short, long) in uses[first..].iter().take_while(|(short, _)| short.start < span.end) {
            let is_inside = long.start >= span.start && long.end <= span.end;
            if short.start >= end && short.end <= span.end && !is_inside {
                piece += &text[end as usize..short.start as usize];
                piece += long.of(text);
                end = short.end;
            }
        }
        piece + &text[end as usize..span.end as usize]
    };
    spans.iter().map(write).collect::<Vec<_>>().join(" ")
}

impl Annotator for DictionaryAnnotator {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<LinkedMention>>> {
        let annotate =
            |scratch: &mut PoolGuard<'_, ScanScratch>, document: &Analysis<'_>| self.annotate_one(document, scratch);
        Ok(documents.par_iter().map_init(|| self.scratches.borrow(), annotate).collect())
    }

    fn explain(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let explain =
            |scratch: &mut PoolGuard<'_, ScanScratch>, document: &Analysis<'_>| self.explain_one(document, scratch);
        Ok(documents.par_iter().map_init(|| self.scratches.borrow(), explain).collect())
    }
}
