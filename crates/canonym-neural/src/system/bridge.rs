//! Names that a terminology lacks, found by other names that the starter has for the same concept: `voice box` for Larynx.

use std::sync::{Arc, LazyLock};

use canonym_core::kb::subset::KbView;
use canonym_core::kb::{ConceptId, KnowledgeBase, NameId, Scope};
use canonym_core::link::written_out::{expanded, forms_of};
use canonym_core::link::{Candidate, Link};

use super::terminology::starter;

/// Probability that a concept found by other names of the starter is right.
const TRUST: f32 = 0.9;

/// Minimum length of a name of the starter by which a concept is found; shorter ones are often ambiguous.
const MIN_LENGTH: usize = 5;

/// Minimum number of names by which a concept is found; one alone is often narrower.
const MIN_NAMES: usize = 2;

/// Maximum number of names of a concept of the starter that are looked up.
const MAX_NAMES: usize = 64;

/// The starter; `None` if it cannot be opened, which is reported where it is opened as the terminology.
fn opened() -> Option<&'static Arc<KnowledgeBase>> {
    static STARTER: LazyLock<Option<Arc<KnowledgeBase>>> = LazyLock::new(|| starter().ok());
    STARTER.as_ref()
}

/// The concept that the starter's other names for `name` lead to, its name in the terminology and the probability that it is right;
/// `None` if there is no such concept, or more than one.
fn bridged(view: KbView<'_>, name: &str) -> Option<(ConceptId, NameId, f32)> {
    let starter = opened()?;
    let concept_of = |form| starter.names_of_form(form).map(|name| starter.concept_of(name));
    let mut concepts: Vec<ConceptId> =
        forms_of(KbView { kb: starter, subset: None }, name).flat_map(concept_of).collect();
    concepts.sort_unstable();
    concepts.dedup();
    let [concept] = concepts.as_slice() else { return None };
    let mut found: Vec<(ConceptId, NameId, usize)> = Vec::new();
    let preferred = starter.preferred_name(*concept);
    for other in
        std::iter::once(preferred).chain(starter.names(*concept).take(MAX_NAMES).map(|name| starter.name(name)))
    {
        let names = forms_of(view, other).flat_map(|form| view.kb.names_of_form(form));
        let is_meant = |name: &NameId| {
            matches!(view.kb.scope(*name), Scope::Preferred | Scope::Exact) && view.has(view.kb.concept_of(*name))
        };
        let mut named = names.filter(is_meant).map(|name| (view.kb.concept_of(name), name)).peekable();
        if other == preferred && named.peek().is_some() {
            // What the starter calls the concept itself counts most.
            let named: Vec<(ConceptId, NameId)> = named.collect();
            if named.iter().all(|one| one.0 == named[0].0) {
                return Some((named[0].0, named[0].1, TRUST));
            }
            continue;
        }
        for (concept, name) in named.filter(|_| other.len() >= MIN_LENGTH) {
            match found.iter_mut().find(|one| one.0 == concept) {
                Some(one) => one.2 += 1,
                None => found.push((concept, name, 1)),
            }
        }
    }
    // Of several, the one with most of the names: the others have narrower or related ones.
    found.sort_by_key(|one| std::cmp::Reverse(one.2));
    let (concept, name, n_names) = *found.first()?;
    let is_clear = n_names >= MIN_NAMES && found.get(1).is_none_or(|next| 2 * next.2 <= n_names);
    is_clear.then_some((concept, name, TRUST))
}

/// Puts first the concept with a name in which a short form is written out, or else that to which the starter leads, unless another one is
/// more probable or the terminology has the name itself.
pub(super) fn bridge(view: KbView<'_>, name: &str, top_k: usize, link: &mut Link) {
    let sure = link.candidates.first().map_or(0.0, |first| first.p_link);
    if sure >= TRUST || forms_of(view, name).next().is_some() {
        return;
    }
    let written_out = expanded(view, name).map(|(concept, name)| (concept, name, TRUST));
    let Some((concept, found, p_link)) =
        written_out.or_else(|| bridged(view, name)).filter(|(.., p_link)| *p_link > sure)
    else {
        return;
    };
    link.candidates.retain(|candidate| candidate.concept != concept);
    link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= 1.0 - p_link);
    link.candidates.insert(0, Candidate { concept, name: Some(found), p_link });
    link.candidates.truncate(top_k.max(1));
    link.nil = false;
}
