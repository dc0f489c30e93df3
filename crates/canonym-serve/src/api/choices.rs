//! Candidate concepts for a mention: what people linked its text to, from the model, by name, and recently used.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::kb::search::{MatchKind, SearchHit, search};
use canonym_core::kb::subset::Subset;
use canonym_core::numbers::rounded;
use canonym_core::text::normalise::fold;
use canonym_core::text::offsets::OffsetMap;
use canonym_core::text::{Document, Span};
use serde::Deserialize;

use super::kb::{check_query, concept, filter, path};
use super::{PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::marks::{CandidateRow, MarkState};
use crate::spans::{from_pairs, surface};
use crate::state::App;
use crate::store::documents::{self, StoredDocument};
use crate::store::proposals::StoredProposal;
use crate::store::{derived, groups, projects, proposals};
use crate::wire::{Choice, Choices, MatchedName, Person, ProposalKind, ScopedName};

/// Candidates in all: more than nine have no key, and those after the first few are rarely chosen.
const N_CHOICES: usize = 8;

/// Concepts that are searched by name, for the evidence of those from the model.
const N_BY_NAME: usize = 20;

/// Concepts that are searched by name where only some belong to the scope of the project.
const N_IN_SCOPE: usize = 100;

/// Concepts from the model.
const N_MODEL: usize = 8;

/// Candidates of the model below this probability are listed only among the first three.
const MIN_SCORE: f64 = 0.01;

/// Names less similar to the mention are no evidence; what somebody typed is searched in full.
const MIN_SIMILARITY: f32 = 0.5;

/// Recently used concepts.
const N_RECENT: usize = 5;

/// Synonyms per concept.
const N_SYNONYMS: usize = 5;

/// Bytes of context on either side of the mention, so that latency does not depend on document length.
const WINDOW: usize = 2000;

/// Query parameters: the mention, and the text typed so far.
#[derive(Debug, Default, Deserialize)]
pub struct ChoiceQuery {
    mark: Option<i64>,
    start: Option<usize>,
    end: Option<usize>,
    #[serde(default)]
    q: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    under: Option<String>,
}

/// `GET /documents/{d}/candidates`.
pub async fn choices(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(id): PathParam<i64>,
    QueryParams(query): QueryParams<ChoiceQuery>,
) -> ApiResult<axum::Json<Choices>> {
    check_query(&query.q)?;
    let chosen = app.blocking(move |app| {
        let stored = app.store.read(|connection| documents::get(connection, id))?;
        let (spans, mark) = mention_spans(app, &stored, &query)?;
        let typed = query.q.trim();
        let model_candidates = model_candidates(app, &stored, &spans, mark.as_ref())?;
        let text = surface(&stored.text, &spans);
        let words = if typed.is_empty() { text.as_str() } else { typed };
        let words: String = words.chars().take(200).collect();
        let kb = app.engine.kb();
        let scope = app.store.read(|connection| projects::scope(connection, stored.project))?;
        let subsets = [app.subset_of(&scope)?, filter(app, query.kind.as_deref(), query.under.as_deref())?];
        let n_hits = if subsets.iter().any(Option::is_some) { N_IN_SCOPE } else { N_BY_NAME };
        let hits = search(kb, &words, n_hits);
        let mut list = ChoiceList { app, subsets: &subsets, hits: &hits, seen: HashSet::new(), choices: Vec::new() };
        let proposed = app.store.read(|connection| proposals::of_project(connection, stored.project))?;
        proposed.iter().for_each(|one| list.push_proposal(one, &words, !typed.is_empty()));
        let linked =
            app.store.read(|connection| groups::linked_concepts(connection, stored.project, &text, query.mark))?;
        if typed.is_empty() {
            let score = |id: &String| model_candidates.iter().find(|row| row.id == *id).map(|row| row.score);
            linked.iter().for_each(|(id, _)| list.push(id, score(id), "linked"));
            let good = model_candidates.iter().enumerate().filter(|(row, one)| *row < 3 || one.score >= MIN_SCORE);
            good.for_each(|(_, one)| list.push(&one.id, Some(one.score), "model"));
        }
        for hit in hits.iter().filter(|hit| !typed.is_empty() || is_similar(hit)) {
            let how = if hit.kind == MatchKind::Id { "exact" } else { hit.kind.name() };
            // The model's score of a concept takes precedence over the similarity of its name.
            let score = model_candidates.iter().find(|row| row.id == kb.id(hit.concept)).map(|row| row.score);
            let score = score.unwrap_or(rounded(hit.similarity));
            list.push(kb.id(hit.concept), Some(score), how);
        }
        let mut choices = app.store.read(|connection| {
            if typed.is_empty() {
                let recent = derived::recent_concepts(connection, stored.project, person.id, N_RECENT)?;
                recent.iter().for_each(|id| list.push(id, None, "recent"));
            }
            for choice in &mut list.choices {
                choice.n_chosen = derived::n_chosen(connection, stored.project, &choice.id)?;
                choice.n_linked = linked.iter().find(|(id, _)| *id == choice.id).map_or(0, |(_, n)| *n);
            }
            Ok(list.choices)
        })?;
        choices.truncate(N_CHOICES);
        Ok(Choices { candidates: choices })
    });
    Ok(axum::Json(chosen.await?))
}

/// The spans of the mention, and its mark.
fn mention_spans(app: &App, stored: &StoredDocument, query: &ChoiceQuery) -> ApiResult<(Vec<Span>, Option<MarkState>)> {
    if let Some(mark) = query.mark {
        let mut held = app.store.read(|connection| documents::marks(connection, stored.id))?;
        let held = held.remove(&mark).filter(|held| !held.mark.is_deleted);
        let held = held.ok_or_else(|| ApiError::not_found(format!("mention {mark} not found in this document")))?;
        return Ok((held.mark.spans(), Some(held.mark)));
    }
    let (Some(start), Some(end)) = (query.start, query.end) else {
        return Err(ApiError::bad("give `mark`, or `start` and `end`"));
    };
    Ok((from_pairs(&OffsetMap::new(&stored.text), &[(start, end)])?, None))
}

/// Candidates from the model; none while it is busy, because the picker does not wait.
fn model_candidates(
    app: &App,
    stored: &StoredDocument,
    spans: &[Span],
    mark: Option<&MarkState>,
) -> ApiResult<Vec<CandidateRow>> {
    if let Some(mark) = mark.filter(|mark| !mark.candidates.is_empty()) {
        return Ok(mark.candidates.clone());
    }
    let Ok(_permit) = app.unbatched_permits.try_acquire() else { return Ok(Vec::new()) };
    let (first, last) = (spans[0].start as usize, spans[spans.len() - 1].end as usize);
    let text = &stored.text;
    let mut start = first.saturating_sub(WINDOW);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut end = (last + WINDOW).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let moved = |span: &Span| Span::new(span.start as usize - start, span.end as usize - start);
    let annotation =
        Annotation { spans: spans.iter().map(moved).collect(), text: surface(text, spans), ..Annotation::default() };
    let document = Document { id: String::new(), text: text[start..end].to_owned(), sections: Vec::new() };
    let annotated = AnnotatedDocument { document, annotations: vec![annotation], ..AnnotatedDocument::default() };
    let (_, engine) = app.engine_of(stored.project)?;
    let linked = engine.link_mentions(vec![annotated], N_MODEL)?;
    let found = linked.iter().flat_map(|document| &document.annotations).flat_map(|one| &one.candidates);
    Ok(found.map(CandidateRow::new).collect())
}

/// Whether a hit is evidence for a concept of a mention.
fn is_similar(hit: &SearchHit) -> bool {
    hit.kind != MatchKind::Fuzzy || hit.similarity >= MIN_SIMILARITY
}

struct ChoiceList<'a> {
    app: &'a App,
    /// The concepts in the scope of the project, and those that the request asks for.
    subsets: &'a [Option<Arc<Subset>>],
    /// The concepts by name.
    hits: &'a [SearchHit],
    seen: HashSet<String>,
    choices: Vec<Choice>,
}

impl ChoiceList<'_> {
    /// Adds what somebody proposed for this name, or for names that start with what was typed.
    fn push_proposal(&mut self, one: &StoredProposal, words: &str, is_typed: bool) {
        let (name, wanted) = (fold(&one.name), fold(words));
        let how = match () {
            () if name == wanted || one.concept().id == words => "exact",
            () if is_typed && !wanted.is_empty() && name.starts_with(&wanted) => "prefix",
            () => return,
        };
        let similarity = wanted.len() as f64 / name.len().max(1) as f64;
        let matched = MatchedName { name: one.name.clone(), scope: one.scope.name(), how, similarity };
        let n_before = self.choices.len();
        if one.kind == ProposalKind::Synonym {
            self.push(&one.concept().id, None, "proposal");
        } else if self.subsets.iter().all(Option::is_none) && self.seen.insert(one.concept().id) {
            let kb = self.app.engine.kb();
            let broader = one.other.as_ref().and_then(|other| kb.find(&other.id));
            let above = broader.map(|broader| path(kb, broader)).unwrap_or_default();
            let names = above.into_iter().map(|step| kb.preferred_name(step).to_owned());
            self.choices.push(Choice {
                id: one.concept().id,
                name: one.name.clone(),
                types: Some(one.semantic_type.clone()).filter(|kind| !kind.is_empty()).into_iter().collect(),
                definition: Some(one.definition.clone()).filter(|text| !text.is_empty()),
                synonyms: Vec::new(),
                path: names.chain([one.name.clone()]).collect(),
                score: None,
                how: "proposal",
                matched: None,
                n_chosen: 0,
                n_linked: 0,
            });
        }
        if let Some(choice) = self.choices.get_mut(n_before) {
            choice.matched = Some(matched);
        }
    }

    fn push(&mut self, id: &str, score: Option<f64>, how: &'static str) {
        let kb = self.app.engine.kb();
        let Some(found) = kb.find(id) else { return };
        if self.subsets.iter().flatten().any(|subset| !subset.has(found)) {
            return;
        }
        if !self.seen.insert(kb.id(found).to_owned()) {
            return;
        }
        let hit = self.hits.iter().find(|hit| hit.concept == found && is_similar(hit));
        let matched = hit.map(|hit| MatchedName {
            name: kb.name(hit.name).to_owned(),
            scope: kb.scope(hit.name).name(),
            how: hit.kind.name(),
            similarity: rounded(hit.similarity),
        });
        let shown = concept(kb, found);
        let scoped = |name| ScopedName { name: kb.name(name).to_owned(), scope: kb.scope(name).name() };
        let others = kb.names(found).filter(|name| kb.name(*name) != shown.name);
        let synonyms = others.take(N_SYNONYMS).map(scoped).collect();
        self.choices.push(Choice {
            id: shown.id,
            name: shown.name,
            types: shown.types,
            definition: shown.definition,
            synonyms,
            path: path(kb, found).into_iter().map(|step| kb.preferred_name(step).to_owned()).collect(),
            score,
            how,
            matched,
            n_chosen: 0,
            n_linked: 0,
        });
    }
}
