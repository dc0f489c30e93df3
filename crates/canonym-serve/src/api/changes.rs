//! What a prediction changed in one document.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;
use serde::Deserialize;

use super::show::sections;
use super::{PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::marks::{Change, Event, MarkState, spread};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::{documents, events};
use crate::wire::{ChangeKind, ChangedMark, DocumentChanges, Person, Prediction};

/// Query parameters: the job.
#[derive(Debug, Default, Deserialize)]
pub struct FromQuery {
    from: Option<i64>,
}

/// `GET /documents/{d}/changes`: compares the predictions of a job with the previous ones.
pub async fn of_document(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(id): PathParam<i64>,
    QueryParams(query): QueryParams<FromQuery>,
) -> ApiResult<axum::Json<DocumentChanges>> {
    let job =
        query.from.ok_or_else(|| ApiError::bad("`from` is missing").hint("give the number of a job as `from`"))?;
    let changes = app.blocking(move |app| {
        app.store.read(|connection| {
            let stored = documents::get(connection, id)?;
            let map = OffsetMap::new(&stored.text);
            let events = events::of_job_in(connection, job, id)?;
            let all = || events.iter().flat_map(|event| &event.changes.marks);
            let (model_before, model_after) = compared_models(events.iter());
            let shown = |change: &Change| {
                let kind = kind_of(change)?;
                let mark = change.after.as_ref().or(change.before.as_ref())?;
                Some(ChangedMark {
                    mark: change.id,
                    change: kind,
                    spans: to_pairs(&map, &mark.spans()),
                    text: mark.text.clone(),
                    kind: mark.kind.clone(),
                    before: change.before.as_ref().map(prediction),
                    after: change.after.as_ref().map(prediction),
                })
            };
            let mut marks: Vec<ChangedMark> = all().filter_map(shown).collect();
            marks.sort_by(|a, b| a.spans.cmp(&b.spans));
            Ok(DocumentChanges {
                document: id,
                sections: sections(&stored, &map),
                model_before,
                model_after,
                n_same: all().filter(|change| kind_of(change).is_none()).count(),
                marks,
                external_id: stored.external_id.clone(),
                text: stored.text.clone(),
            })
        })
    });
    Ok(axum::Json(changes.await?))
}

/// The models that predictions compare, the one before and the one after. Several may have predicted before; it is the one of most
/// predictions.
pub(super) fn compared_models<'a>(events: impl Iterator<Item = &'a Event> + Clone) -> (Option<String>, Option<String>) {
    let mut n_by_name: BTreeMap<&str, usize> = BTreeMap::new();
    let before = events.clone().flat_map(|event| &event.changes.marks).filter_map(|change| change.before.as_ref());
    for mark in before.filter(|mark| !spread::is_spread(Some(mark))) {
        if let Some(model) = mark.model.as_deref() {
            *n_by_name.entry(model).or_default() += 1;
        }
    }
    let most = n_by_name.into_iter().max_by_key(|(_, n)| *n).map(|(name, _)| name.to_owned());
    (most, events.filter_map(|event| event.model.clone()).next())
}

/// How a prediction changed; `None` if the concept is the same.
fn kind_of(change: &Change) -> Option<ChangeKind> {
    match (&change.before, &change.after) {
        (None, Some(_)) => Some(ChangeKind::Added),
        (Some(_), None) => Some(ChangeKind::Removed),
        (Some(before), Some(after)) if before.concept != after.concept => Some(ChangeKind::Relinked),
        _ => None,
    }
}

fn prediction(mark: &MarkState) -> Prediction {
    Prediction { concept: mark.concept.clone(), score: mark.score }
}
