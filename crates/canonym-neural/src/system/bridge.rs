//! Names that a terminology lacks, found by other names that the starter has for the same concept: `voice box` for Larynx.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use canonym_core::kb::lexicon::hash_form;
use canonym_core::kb::subset::{KbView, Subset};
use canonym_core::kb::variants::{joined_parts, variants};
use canonym_core::kb::{ConceptId, KnowledgeBase, NameId, Scope};
use canonym_core::link::lookalike::only_looks_alike;
use canonym_core::link::recognise::sense_concepts::OtherNames;
use canonym_core::link::rephrased::{Rephrased, of_roots, only, rephrased};
use canonym_core::link::short_list::ShortList;
use canonym_core::link::written_out::{expanded, forms_of};
use canonym_core::link::{Candidate, Link};
use canonym_core::text::normalise::fold;

use super::terminology::starter;

/// Probability that a concept found by other names of the starter is right.
const TRUST: f32 = 0.9;

/// Minimum length of a name of the starter by which a concept is found; shorter ones are often ambiguous.
const MIN_LENGTH: usize = 5;

/// Minimum number of names by which a concept is found that has as many; one alone is often narrower.
const MIN_NAMES: usize = 2;

/// Probability that a concept found by its only name is right, a name other than the starter's preferred one.
const TRUST_ONE: f32 = 0.65;

/// Probability that a concept as such is right: `Essential hypertension` for hypertension.
const TRUST_AS_SUCH: f32 = 0.7;

/// Minimum length of a word that the terminology lacks and the starter has other words for.
const MIN_WORD: usize = 4;

/// From this probability on, what was found without the starter comes before a concept found by its only name.
const MIN_OWN: f32 = 0.3;

/// Words of classifications for a concept as such: `Crohn's disease, unspecified`.
const AS_SUCH: [&str; 6] = [
    "unspecified",
    "essential primary",
    "site not specified",
    "unspecified site",
    "any site",
    "not otherwise specified",
];

/// Words that hardly make a name narrower.
const GENERIC: [&str; 4] = ["acute", "disease", "disorder", "syndrome"];

/// Minimum probability of a concept that a search for the preferred name of the starter finds.
const MIN_SEARCHED: f32 = 0.75;

/// Maximum number of names of a concept of the starter that are looked up.
const MAX_NAMES: usize = 64;

/// The starter; `None` if it cannot be opened, which is reported where it is opened as the terminology.
fn opened() -> Option<&'static Arc<KnowledgeBase>> {
    static STARTER: LazyLock<Option<Arc<KnowledgeBase>>> = LazyLock::new(|| starter().ok());
    STARTER.as_ref()
}

/// A concept, its name in the terminology, and the probability that it is right.
type Bridged = (ConceptId, NameId, f32);

/// The names of a terminology in the words of `name`, or else, of concepts with one name, in other words for the same or with words such as
/// `unspecified`, and whether it is the latter two.
fn names_of(view: KbView<'_>, name: &str) -> (Vec<NameId>, bool) {
    let named = |name: &str| -> Vec<NameId> {
        let names = forms_of(view, name).flat_map(|form| view.kb.names_of_form(form));
        let is_name = |name: &NameId| {
            matches!(view.kb.scope(*name), Scope::Preferred | Scope::Exact) && view.has(view.kb.concept_of(*name))
        };
        names.filter(is_name).collect()
    };
    let is_of_one = |name: &NameId| has_one_name(view.kb, view.kb.concept_of(*name));
    let as_such = || {
        let names = |words: &&str| named(&format!("{name} {words}")).into_iter().filter(is_of_one).collect::<Vec<_>>();
        AS_SUCH.iter().map(names).find(|names| !names.is_empty())
    };
    let in_other_words = || {
        let of_roots = only(of_roots(view, name).filter(|(.., is_exact)| *is_exact).collect());
        let found = of_roots.or_else(|| rephrased(view, name).filter(|(.., is_exact)| *is_exact));
        found.map(|(_, name, _)| name).filter(is_of_one).map(|name| vec![name])
    };
    match named(name) {
        names if !names.is_empty() => (names, false),
        _ => (in_other_words().or_else(as_such).unwrap_or_default(), true),
    }
}

/// The only concept of the starter with a name.
fn known_as(starter: &KnowledgeBase, name: &str) -> Option<ConceptId> {
    let concept_of = |form| starter.names_of_form(form).map(|name| starter.concept_of(name));
    let mut concepts = forms_of(KbView { kb: starter, subset: None }, name).flat_map(concept_of);
    let first = concepts.next()?;
    concepts.all(|concept| concept == first).then_some(first)
}

/// The concept with the words of a name of which the terminology lacks one, which the starter has other words for: `Fracture of clavicle`
/// for `broken collarbone`.
fn in_words_of_starter(view: KbView<'_>, name: &str) -> Option<Rephrased> {
    let starter = opened()?;
    let folded = fold(name);
    let words: Vec<&str> = folded.split(' ').collect();
    let is_lacking = |word: &&str| {
        word.len() >= MIN_WORD && hash_form(word).iter().all(|word| !word.linking && !view.kb.knows_root(word.root))
    };
    let mut lacking = words.iter().enumerate().filter(|(_, word)| is_lacking(word));
    let (at, word) = lacking.next().filter(|_| words.len() > 1)?;
    let concept = known_as(starter, word).filter(|_| lacking.next().is_none())?;
    let others = starter.names(concept).take(MAX_NAMES).map(|name| fold(starter.name(name)));
    let mut others: Vec<String> = others.filter(|other| other.len() >= MIN_LENGTH && other != word).collect();
    others.sort_unstable();
    others.dedup();
    let written = others.iter().map(|other| [&words[..at], &[other.as_str()], &words[at + 1..]].concat().join(" "));
    only(written.flat_map(|name| of_roots(view, &name).chain(rephrased(view, &name)).collect::<Vec<_>>()).collect())
}

/// What the starter's other names for `name` lead to; `None` if there is no such concept, or more than one. If the terminology has none of
/// them, `search` looks up the starter's preferred name.
fn bridged(view: KbView<'_>, name: &str, search: impl FnOnce(&str) -> Link) -> Option<Bridged> {
    let starter = opened()?;
    let concept = known_as(starter, name)?;
    let mut found: Vec<(ConceptId, NameId, usize, &str)> = Vec::new();
    let preferred = starter.preferred_name(concept);
    let others = starter.names(concept).take(MAX_NAMES).map(|name| starter.name(name));
    for other in std::iter::once(preferred).chain(others) {
        let (named, is_loose) = names_of(view, other);
        let mut named = named.into_iter().map(|name| (view.kb.concept_of(name), name)).peekable();
        if other == preferred && named.peek().is_some() {
            // What the starter calls the concept itself counts most.
            let named: Vec<(ConceptId, NameId)> = named.collect();
            if named.iter().all(|one| one.0 == named[0].0) {
                return Some((named[0].0, named[0].1, if is_loose { TRUST_AS_SUCH } else { TRUST }));
            }
            continue;
        }
        // `malignant neoplasm` is narrower than Neoplasms, and `bruised knee` than Contusions.
        let is_wide = |named: &(ConceptId, NameId)| {
            other.len() >= MIN_LENGTH && [other, view.kb.name(named.1)].iter().all(|one| !is_narrower(one, preferred))
        };
        for (concept, name) in named.filter(is_wide) {
            match found.iter_mut().find(|one| one.0 == concept) {
                Some(one) => one.2 += 1,
                None => found.push((concept, name, 1, other)),
            }
        }
    }
    // Of several, the one with most of the names: the others have narrower or related ones.
    found.sort_by_key(|one| std::cmp::Reverse(one.2));
    let Some((concept, of_kb, n_names, other)) = found.first().copied() else {
        return searched(view, preferred, search);
    };
    let is_only = || has_one_name(view.kb, concept) && !is_narrower(other, name);
    let is_enough = n_names >= MIN_NAMES || is_only();
    let is_clear = is_enough && found.get(1).is_none_or(|next| 2 * next.2 <= n_names);
    is_clear.then_some((concept, of_kb, if n_names >= MIN_NAMES { TRUST } else { TRUST_ONE }))
}

/// The other names of the starter, for the senses of short forms.
pub(super) fn other_names(kb: &Arc<KnowledgeBase>, subset: Option<Arc<Subset>>) -> OtherNames {
    let kb = kb.clone();
    let list = ShortList::of(KbView { kb: &kb, subset: subset.as_deref() });
    OtherNames::new(move |long| {
        let view = KbView { kb: &kb, subset: subset.as_deref() };
        let search = |name: &str| {
            let mut link = Link::default();
            list.iter().for_each(|list| list.correct(&kb, name, 1, &mut link));
            link
        };
        let in_other_words = rephrased(view, long).map(|(concept, name, _)| (concept, name));
        in_other_words.or_else(|| bridged(view, long, search).map(|(concept, name, _)| (concept, name)))
    })
}

/// Whether a concept has one name; variants of its preferred name do not count.
fn has_one_name(kb: &KnowledgeBase, concept: ConceptId) -> bool {
    let preferred = kb.preferred_name(concept);
    let of_preferred = [variants(preferred, true), joined_parts(preferred)].concat();
    kb.names(concept).filter(|name| !of_preferred.iter().any(|variant| variant == kb.name(*name))).count() == 1
}

/// Whether a name has all words of another one and more: `radiation proctitis` beside `proctitis`.
fn is_narrower(name: &str, other: &str) -> bool {
    let words_of = |name: &str| -> BTreeSet<u64> {
        let name = fold(name);
        let words = name.split(' ').filter(|word| !GENERIC.contains(word)).collect::<Vec<_>>().join(" ");
        hash_form(&words).iter().filter(|word| !word.linking).map(|word| word.canonical).collect()
    };
    let (words, others) = (words_of(name), words_of(other));
    words.len() > others.len() && others.is_subset(&words)
}

/// The concept that a search for the starter's preferred name finds, unless its name only looks like it.
fn searched(view: KbView<'_>, preferred: &str, search: impl FnOnce(&str) -> Link) -> Option<Bridged> {
    let Candidate { concept, name, p_link } = search(preferred).candidates.into_iter().next()?;
    let name = name?;
    let is_same = p_link >= MIN_SEARCHED && !only_looks_alike(view.kb, preferred, view.kb.name(name), Some(concept));
    is_same.then_some((concept, name, TRUST * p_link))
}

/// Puts first the concept with a name in which a short form is written out, or else that to which the starter leads, unless another one is
/// more probable or the terminology has the name itself.
pub(super) fn bridge(view: KbView<'_>, name: &str, top_k: usize, link: &mut Link, search: impl FnOnce(&str) -> Link) {
    let sure = link.candidates.first().map_or(0.0, |first| first.p_link);
    if sure >= TRUST || forms_of(view, name).next().is_some() {
        return;
    }
    let written_out = expanded(view, name).map(|(concept, name)| (concept, name, TRUST));
    let in_other_words = || {
        let found = rephrased(view, name);
        let found = found.map(|(concept, name, exact)| (concept, name, if exact { TRUST } else { TRUST_ONE }));
        found.or_else(|| in_words_of_starter(view, name).map(|(concept, name, _)| (concept, name, TRUST_ONE)))
    };
    let Some((concept, found, p_link)) = written_out
        .or_else(in_other_words)
        .or_else(|| bridged(view, name, search))
        .filter(|(.., p_link)| *p_link > sure && (*p_link > TRUST_ONE || sure < MIN_OWN))
    else {
        return;
    };
    link.candidates.retain(|candidate| candidate.concept != concept);
    link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= 1.0 - p_link);
    link.candidates.insert(0, Candidate { concept, name: Some(found), p_link });
    link.candidates.truncate(top_k.max(1));
    link.nil = false;
}
