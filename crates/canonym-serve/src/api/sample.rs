//! The sample project: ten short made-up documents with predictions, so that a newcomer can decide at once.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use canonym_core::active::Strategy;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, Reader, contexts};
use canonym_core::input::Source as Bytes;
use canonym_core::link::recognise::Nested;

use crate::engine::{LinkOptions, check_kb};
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::marks::{Change, Changes, convert};
use crate::state::App;
use crate::store::events::{self, NewEvent};
use crate::store::{documents, members, models, projects};
use crate::wire::{NewProject, Project};

/// The documents, made up for this purpose.
const DOCUMENTS: &str = include_str!("../../assets/sample.pubtator");

/// The guideline, as Markdown.
const GUIDELINE: &str = "\
## What to annotate
- Diseases, symptoms, drugs, procedures and genes, **as specific as the text is**
- The longest name: *type 2 diabetes*, not *diabetes*
- Abbreviations, too: `CKD`, `RA`, `MS`

## What to reject
1. Everyday words that only look like a name
2. Links to another meaning of an abbreviation

If no concept matches, press `n`. If you are not sure, press `s` and go on.
";

/// `POST /projects/sample`: creates a project with ten documents and the predictions of the server's model.
pub async fn add(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
) -> ApiResult<(StatusCode, axum::Json<Project>)> {
    let project = app.blocking(move |app| {
        let read = documents_of_sample()?;
        check_kb(app.engine.as_ref())?;
        let linked = {
            let _permit = app.unbatched_permits.try_acquire().map_err(|_| ApiError::busy("the model is busy", 1))?;
            let mut linked =
                app.engine.link(read.clone(), &LinkOptions { nested: Nested::None, ..LinkOptions::default() })?;
            linked.iter_mut().for_each(contexts::add);
            linked
        };
        let (kb, now) = (app.kb_fingerprint(), app.now());
        app.store.write(|transaction| {
            let new = NewProject {
                name: "Sample project".to_owned(),
                description: Some("Ten made-up notes and abstracts to try annotation with".to_owned()),
                guideline: Some(GUIDELINE.to_owned()),
                scope: None,
            };
            let project = projects::add(transaction, &new, &kb, Strategy::LeastConfident.name(), now)?;
            members::add(transaction, project, person.id)?;
            let model = models::get(transaction, app.base_model)?.model.name;
            let mut next = events::next_mark(transaction)?;
            for (document, linked) in read.iter().zip(&linked) {
                let Some(id) = documents::add(transaction, project, document)? else { continue };
                let event =
                    NewEvent { document: id, person: Some(person.id), at: now, kind: "import", ..NewEvent::default() };
                events::add(transaction, &event, &Changes::default())?;
                let predicted = linked.annotations.iter().map(|one| convert::from_model(one, &model, now));
                let marks: Vec<Change> =
                    (next..).zip(predicted).map(|(id, mark)| Change { id, before: None, after: Some(mark) }).collect();
                next += marks.len() as i64;
                let event = NewEvent { person: None, kind: "predict", model: Some(&model), ..event };
                events::add(transaction, &event, &Changes { marks, finished: None })?;
            }
            events::set_next_mark(transaction, next)?;
            projects::get(transaction, project)
        })
    });
    let project = project.await?;
    // Event streams check their permissions again.
    app.permissions_changed();
    Ok((StatusCode::CREATED, axum::Json(project)))
}

fn documents_of_sample() -> canonym_core::Result<Vec<AnnotatedDocument>> {
    let source = Bytes::from_bytes("sample.pubtator", DOCUMENTS.as_bytes().to_vec());
    Reader::from_source(&source, Some(CorpusFormat::Pubtator))?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_ten_short_documents() {
        let read = documents_of_sample().unwrap();
        assert_eq!(read.len(), 10);
        assert!(read.iter().all(|one| one.document.text.len() < 400 && one.document.sections.len() == 2));
    }
}
