//! The lexical linker: compares the words of a mention with the names of the knowledge base.
//!
//! Candidates are forms equal in text, tokens or roots, and the nearest by character n-grams. A linear model scores the
//! features of each; a concept has the score of its best name. All concepts of a homonym are candidates.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::explain::Explanation;
use super::features::{COSINE, FormFeatures, N_FEATURES, PreparedQuery};
use super::lookalike::check_first;
use super::model::{Calibration, Features, LexicalModel, N_NAME_FEATURES};
use super::written_out::written_out;
use super::{Candidate, Link, LinkInput, Linker, explain_by_name};
use crate::Result;
use crate::index::grams::GramScratch;
use crate::kb::subset::{KbView, Subset};
use crate::kb::{ConceptId, FormId, KnowledgeBase, NameId, Scope};
use crate::text::Span;
use crate::text::normalise::fold;
use crate::text::notes::{NonMentionKind, covers, non_mentions};
use crate::text::words::is_stop_word;

/// A candidate before calibration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The concept.
    pub concept: ConceptId,
    /// Its best name.
    pub name: NameId,
    /// The features of that name.
    pub features: Features,
    /// The weighted sum of the features.
    pub score: f32,
}

/// Number of candidates, and the threshold for NIL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// Maximum number of candidates of a mention.
    pub top_k: usize,
    /// If the best candidate is less probable, the mention is not linked.
    pub min_score: f32,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig { top_k: 5, min_score: 0.0 }
    }
}

/// Links mentions by their words alone, without context.
#[derive(Debug, Clone)]
pub struct LexicalLinker {
    pub(super) kb: Arc<KnowledgeBase>,
    pub(super) model: LexicalModel,
    pub(super) config: LinkConfig,
    subset: Option<Arc<Subset>>,
}

impl LexicalLinker {
    /// A linker to the concepts of `kb`.
    pub fn new(kb: Arc<KnowledgeBase>, model: LexicalModel, config: LinkConfig) -> LexicalLinker {
        LexicalLinker { kb, model, config, subset: None }
    }

    /// The knowledge base.
    pub fn kb(&self) -> &Arc<KnowledgeBase> {
        &self.kb
    }

    /// Restricts candidates to `subset`, which must belong to the same knowledge base; `None` lifts the restriction.
    #[must_use]
    pub fn within(self, subset: Option<Arc<Subset>>) -> LexicalLinker {
        LexicalLinker { subset, ..self }
    }

    /// Links names without context, in order. Each distinct name is looked up once.
    pub fn link_names<T: AsRef<str> + Sync>(&self, names: &[T]) -> Vec<Link> {
        each_once(names, |distinct| {
            distinct.par_iter().map_init(GramScratch::default, |scratch, name| self.link_name(name, scratch)).collect()
        })
    }

    /// Links one name.
    pub fn link_name(&self, name: &str, scratch: &mut GramScratch) -> Link {
        self.calibrate(&self.rank(name, scratch))
    }

    /// Scores the best name of each concept, best concept first.
    pub(super) fn rank(&self, name: &str, scratch: &mut GramScratch) -> Vec<Scored> {
        let view = KbView { kb: &self.kb, subset: self.subset.as_deref() };
        let mut scored = score_name(view, &self.model, name, scratch);
        best_of_each_concept(&mut scored);
        scored
    }

    /// Calibrates ranked concepts and builds the link.
    pub(super) fn calibrate(&self, scored: &[Scored]) -> Link {
        link_ranked(scored, &self.model.calibration, &self.config)
    }
}

impl Linker for LexicalLinker {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>> {
        Ok(inputs.iter().map(|input| self.link_names(&input.names())).collect())
    }

    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        explain_by_name(self, inputs)
    }

    fn link_names(&self, names: &[&str]) -> Result<Vec<Link>> {
        Ok(self.link_names(names))
    }

    fn explain_names(&self, names: &[&str]) -> Result<Vec<(Link, Explanation)>> {
        let explain = |scratch: &mut GramScratch, name: &&str| self.explain_name(name, scratch);
        Ok(names.par_iter().map_init(GramScratch::default, explain).collect())
    }
}

/// Links each distinct name once: `link` gets the distinct names and returns their links in order.
pub fn each_once<T: AsRef<str>>(names: &[T], link: impl FnOnce(&[&str]) -> Vec<Link>) -> Vec<Link> {
    let mut row_of: HashMap<&str, usize> = HashMap::with_capacity(names.len());
    let mut distinct: Vec<&str> = Vec::with_capacity(names.len());
    for name in names.iter().map(AsRef::as_ref) {
        row_of.entry(name).or_insert_with(|| {
            distinct.push(name);
            distinct.len() - 1
        });
    }
    let links = link(&distinct);
    names.iter().map(|name| links[row_of[name.as_ref()]].clone()).collect()
}

/// Folded placeholders of empty cells.
const PLACEHOLDERS: [&str; 15] = [
    "n a",
    "nil",
    "no",
    "none",
    "not applicable",
    "not available",
    "not known",
    "not specified",
    "null",
    "other",
    "see above",
    "see below",
    "unknown",
    "unspecified",
    "yes",
];

/// Whether a text can name a concept of `kb`. It needs a letter and a word that is not a stop word. Placeholders such
/// as `n/a`, single letters and doses are rejected unless `kb` has them as preferred names. Stop words in upper case are
/// accepted if `kb` has that name as written, so `NEC` may be a short form and `nec` is not.
pub fn may_name(kb: &KnowledgeBase, text: &str) -> bool {
    if !text.chars().any(char::is_alphabetic) {
        return false;
    }
    let folded = fold(text);
    let is_dose = || covers(text, &non_mentions(text), Span::new(0, text.len()));
    if folded.chars().count() == 1 || PLACEHOLDERS.contains(&folded.as_str()) || is_dose() {
        let names = kb.find_form(&folded).into_iter().flat_map(|form| kb.names_of_form(form));
        return names.into_iter().any(|name| kb.scope(name) == Scope::Preferred);
    }
    if !folded.split(' ').all(is_stop_word) {
        return true;
    }
    let text = text.trim();
    let is_short_form = text.len() > 1 && text.chars().all(char::is_uppercase);
    is_short_form && kb.find_form(&folded).is_some_and(|form| kb.names_of_form(form).any(|name| kb.name(name) == text))
}

/// A name without dose and dosage form, unless a name has them: `lisinopril 10 mg oral tablet`.
fn without_dose<'a>(kb: &KnowledgeBase, name: &'a str) -> &'a str {
    if kb.find_form(&fold(name)).is_some() {
        return name;
    }
    let dose = non_mentions(name).into_iter().find(|one| one.kind == NonMentionKind::Dose);
    let mut rest = dose.map_or(name, |dose| &name[..dose.span.start as usize]).trim_end();
    while let Some((before, last)) = rest.rsplit_once(' ')
        && DOSAGE_FORMS.contains(&last.to_ascii_lowercase().as_str())
    {
        rest = before.trim_end();
    }
    if rest.contains(char::is_alphabetic) { rest } else { name }
}

/// Dosage forms at the end of names of drugs.
#[rustfmt::skip]
const DOSAGE_FORMS: [&str; 12] =
    ["cap", "caps", "capsule", "capsules", "er", "odt", "sr", "tab", "tablet", "tablets", "tabs", "xr"];

/// A name as it is looked up, and without dose and dosage form if it has them.
struct Wording<'a> {
    whole: Cow<'a, str>,
    bare: Option<String>,
}

impl<'a> Wording<'a> {
    fn of(kb: &KnowledgeBase, name: &'a str) -> Wording<'a> {
        let whole = written_out(kb, name);
        let bare = Some(without_dose(kb, &whole).to_owned()).filter(|bare| *bare != whole);
        Wording { whole, bare }
    }

    /// Whether a name of the knowledge base has the numbers of the dose, so that it is meant.
    fn has_dose(&self, name: &str) -> bool {
        let bare = numbers(self.bare.as_deref().unwrap_or(&self.whole));
        let (whole, name) = (numbers(&self.whole), numbers(name));
        let mut added = whole.iter().filter(|number| !bare.contains(number)).peekable();
        added.peek().is_some() && added.all(|number| name.contains(number))
    }
}

/// The numbers of a text, with their decimals and without commas.
fn numbers(text: &str) -> Vec<String> {
    let text = text.replace(',', "");
    let parts = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    parts.map(|number| number.trim_matches('.').to_owned()).filter(|number| !number.is_empty()).collect()
}

/// Each name in the wording that is looked up, with its link: doses and dosage forms are left out unless the name found has them, units and
/// abbreviations are written as in the knowledge base.
fn worded<T: AsRef<str>>(
    kb: &KnowledgeBase,
    names: &[T],
    link: impl FnOnce(&[&str]) -> Result<Vec<Link>>,
) -> Result<Vec<(String, Link)>> {
    let wordings: Vec<Wording<'_>> = names.iter().map(|name| Wording::of(kb, name.as_ref())).collect();
    let mut asked: Vec<&str> = Vec::with_capacity(wordings.len());
    for wording in &wordings {
        asked.push(&wording.whole);
        asked.extend(wording.bare.as_deref());
    }
    let mut links = if asked.is_empty() { Vec::new() } else { link(&asked)? }.into_iter();
    let mut next = || links.next().unwrap_or_default();
    let chosen = wordings.iter().map(|wording| {
        let whole = next();
        let Some(bare) = &wording.bare else { return (wording.whole.to_string(), whole) };
        let other = next();
        let has_dose =
            whole.candidates.first().and_then(|first| first.name).is_some_and(|name| wording.has_dose(kb.name(name)));
        if has_dose { (wording.whole.to_string(), whole) } else { (bare.clone(), other) }
    });
    Ok(chosen.collect())
}

/// Links the names for which [`may_name`] holds; the others get no candidates. `link` gets names and returns their links in order. Each
/// link comes with the name as it was looked up: without dose and dosage form unless the name found has them, with units and abbreviations
/// as in the knowledge base.
///
/// # Errors
/// Those of `link`.
pub fn where_named<T: AsRef<str>>(
    kb: &KnowledgeBase,
    names: &[T],
    link: impl FnOnce(&[&str]) -> Result<Vec<Link>>,
) -> Result<Vec<(String, Link)>> {
    let may: Vec<bool> = names.iter().map(|name| may_name(kb, name.as_ref())).collect();
    let named: Vec<&str> = names.iter().zip(&may).filter(|(_, may)| **may).map(|(name, _)| name.as_ref()).collect();
    let mut links = worded(kb, &named, link)?;
    links.iter_mut().for_each(|(wording, link)| check_first(kb, wording, link));
    let mut links = links.into_iter();
    let next = |(name, may): (&T, bool)| {
        let none = || (name.as_ref().to_owned(), Link { candidates: Vec::new(), nil: true });
        may.then(|| links.next()).flatten().unwrap_or_else(none)
    };
    Ok(names.iter().zip(may).map(next).collect())
}

/// Builds a link from ranked concepts, best first, without duplicates.
pub fn link_ranked(scored: &[Scored], calibration: &Calibration, config: &LinkConfig) -> Link {
    let top = scored.first().map_or(0.0, |first| first.score);
    let next = scored.get(1).map_or(top - 10.0, |second| second.score);
    let mut candidates: Vec<Candidate> = scored
        .iter()
        .take(config.top_k.max(1))
        .enumerate()
        .map(|(rank, scored)| {
            let margin = if rank == 0 { top - next } else { scored.score - top };
            let p_link = calibration.probability(scored.score, margin);
            Candidate { concept: scored.concept, name: Some(scored.name), p_link }
        })
        .collect();
    // Equal scores have margin zero; probabilities never increase along the list.
    for rank in 1..candidates.len() {
        candidates[rank].p_link = candidates[rank].p_link.min(candidates[rank - 1].p_link);
    }
    let nil = candidates.first().is_none_or(|best| best.p_link < config.min_score);
    Link { candidates, nil }
}

/// Every concept of every candidate form with features and score, unordered.
pub fn score_name<'a>(
    view: impl Into<KbView<'a>>,
    model: &LexicalModel,
    name: &str,
    scratch: &mut GramScratch,
) -> Vec<Scored> {
    score_name_and(view, model, name, &[], scratch)
}

/// Like [`score_name`], with additional forms retrieved in another way.
pub fn score_name_and<'a>(
    view: impl Into<KbView<'a>>,
    model: &LexicalModel,
    name: &str,
    others: &[FormId],
    scratch: &mut GramScratch,
) -> Vec<Scored> {
    let view = view.into();
    let kb = view.kb;
    let query = PreparedQuery::new(kb, name);
    let forms = query.candidates_and(view, others, scratch);
    let mut scored = Vec::with_capacity(2 * forms.len());
    for FormFeatures { form, values } in &forms {
        let before = scored.len();
        for name_id in kb.names_of_form(*form) {
            let concept = kb.concept_of(name_id);
            if !view.has(concept) {
                continue;
            }
            let mut features = [0.0; N_FEATURES + N_NAME_FEATURES];
            features[..N_FEATURES].copy_from_slice(values);
            match kb.scope(name_id) {
                Scope::Preferred => features[N_FEATURES] = 1.0,
                Scope::Exact => {}
                Scope::Narrow => features[N_FEATURES + 1] = 1.0,
                Scope::Broad => features[N_FEATURES + 2] = 1.0,
                Scope::Related => features[N_FEATURES + 3] = 1.0,
            }
            features[N_FEATURES + 4] = f32::from(u8::from(kb.name(name_id) == name));
            scored.push(Scored { concept, name: name_id, features, score: 0.0 });
        }
        let shared = f32::from(u8::from(scored[before..].windows(2).any(|pair| pair[0].concept != pair[1].concept)));
        scored[before..].iter_mut().for_each(|one| one.features[N_FEATURES + 8] = shared);
    }
    add_concept_features(kb, &mut scored);
    scored.iter_mut().for_each(|one| one.score = model.score(&one.features));
    scored
}

/// Adds the features computed from the other names of each concept.
fn add_concept_features(kb: &KnowledgeBase, scored: &mut [Scored]) {
    let cosine = |one: &Scored| one.features[COSINE];
    scored.sort_unstable_by(|a, b| {
        a.concept.cmp(&b.concept).then(cosine(b).total_cmp(&cosine(a))).then(a.name.cmp(&b.name))
    });
    let best_of_all = scored.iter().map(cosine).fold(0.0, f32::max);
    for group in scored.chunk_by_mut(|a, b| a.concept == b.concept) {
        let n_names = (kb.names(group[0].concept).count() as f32).ln_1p();
        let n_matched = (group.len() as f32).ln();
        let second = group.get(1).map_or(0.0, cosine);
        let margin = cosine(&group[0]) - best_of_all;
        for one in group {
            one.features[N_FEATURES + 5] = n_names;
            one.features[N_FEATURES + 6] = n_matched;
            one.features[N_FEATURES + 7] = second;
            one.features[N_FEATURES + 9] = margin;
        }
    }
}

/// Keeps the best name of each concept, best concept first; ties in concept order.
pub fn best_of_each_concept(scored: &mut Vec<Scored>) {
    scored
        .sort_unstable_by(|a, b| a.concept.cmp(&b.concept).then(b.score.total_cmp(&a.score)).then(a.name.cmp(&b.name)));
    scored.dedup_by_key(|candidate| candidate.concept);
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.concept.cmp(&b.concept)));
}
