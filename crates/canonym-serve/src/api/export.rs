//! Documents out of projects, as files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::folder::safe_name;
use canonym_core::corpus::format::{Writer, encode};
use canonym_core::corpus::losses::{Losses, holds_attributes, losses};
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat};
use canonym_core::kb::KnowledgeBase;
use rusqlite::Connection;
use serde::Deserialize;

use super::show::{by, comments, names};
use super::{Ask, At};
use crate::abandon;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::guard::Client;
use crate::marks::{MarkState, Source, State as Decided, convert};
use crate::store::people::Person;
use crate::store::{documents, projects};
use crate::wire::ExportLosses;

/// Documents that are read at a time.
const PAGE: usize = 200;

/// What an export holds.
#[derive(Debug, Default, Deserialize)]
pub struct ExportQuery {
    format: Option<String>,
    sources: Option<String>,
}

/// `GET /projects/{p}/export`: all documents in one file; brat, which has two files a document, as a zip.
pub async fn export(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    At(project): At<i64>,
    Ask(query): Ask<ExportQuery>,
) -> ApiResult<Response> {
    let (bytes, name) = app
        .blocking(move |app| {
            let format: CorpusFormat = query.format.as_deref().unwrap_or("pubtator").parse()?;
            let sources = sources(query.sources.as_deref())?;
            let exported = app.store.read(|connection| {
                let project = projects::get(connection, project)?;
                let ending = match format {
                    CorpusFormat::Pubtator => "pubtator",
                    CorpusFormat::Jsonl => "jsonl",
                    CorpusFormat::BiocXml | CorpusFormat::PubmedXml => "xml",
                    CorpusFormat::BiocJson | CorpusFormat::Texoo => "json",
                    CorpusFormat::Brat => "zip",
                    _ => "txt",
                };
                let bytes = match format {
                    CorpusFormat::Brat => brat((app.engine.kb(), connection), project.id, &sources)?,
                    _ => file((app.engine.kb(), connection), project.id, &sources, format)?,
                };
                let name: String = project
                    .name
                    .chars()
                    .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
                    .collect();
                Ok((bytes, format!("{name}.{ending}")))
            })?;
            app.audit.note(app.now(), (&person.name, Some(client.0)), "export", &format!("project {project}"));
            Ok(exported)
        })
        .await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let kind = if name.ends_with(".zip") { "application/zip" } else { "text/plain; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], bytes).into_response())
}

/// `GET /projects/{p}/export/losses`: what a format would lose, told before the export.
pub async fn lost(
    State(app): State<Arc<App>>,
    _: Person,
    At(project): At<i64>,
    Ask(query): Ask<ExportQuery>,
) -> ApiResult<axum::Json<ExportLosses>> {
    let told = app.blocking(move |app| {
        let format: CorpusFormat = query.format.as_deref().unwrap_or("pubtator").parse()?;
        let sources = sources(query.sources.as_deref())?;
        app.store.read(|connection| {
            projects::check(connection, project)?;
            lost_lines((app.engine.kb(), connection), project, &sources, format)
        })
    });
    Ok(axum::Json(ExportLosses { lines: told.await? }))
}

fn lost_lines(
    on: (&KnowledgeBase, &Connection),
    project: i64,
    sources: &BTreeSet<Source>,
    format: CorpusFormat,
) -> ApiResult<Vec<String>> {
    let mut all = Losses::default();
    // How many annotations say what of themselves, by the name of what they say; sources by their word.
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let mut n_finished = 0;
    let is_wanted = |mark: &MarkState| sources.contains(&mark.source);
    for_each_document(on, project, is_wanted, |kept, mut document| {
        n_finished += usize::from(kept.is_finished);
        for annotation in &mut document.annotations {
            let (of_project, of_file) =
                std::mem::take(&mut annotation.attributes).into_iter().partition(|one| convert::is_origin(&one.name));
            annotation.attributes = of_file;
            let of_project: Vec<_> = of_project;
            for one in of_project {
                let name = if one.name == convert::SOURCE { one.value } else { one.name };
                *said.entry(name).or_default() += 1;
            }
        }
        all.add(losses(&document, format));
        Ok(())
    })?;
    let mut lines: Vec<String> = all.forecast().collect();
    let n = |name: &str| said.get(name).copied().unwrap_or_default();
    let (decided, predicted) = (n("GOLD") + n("USER"), n("PRED") + n("SILVER"));
    if !holds_attributes(format) {
        if format != CorpusFormat::Texoo && predicted > 0 {
            lines.insert(
                0,
                format!("{predicted} open predictions will look like the {decided} annotations that people made or confirmed"),
            );
        }
        let rows = [(convert::ANNOTATOR, "names of annotators"), ("unsure", "“unsure” flags"), ("comment", "comments")];
        lines.extend(
            rows.iter()
                .filter(|(name, _)| n(name) > 0)
                .map(|(name, what)| format!("{} {what} will be left out", n(name))),
        );
    }
    let sql = "SELECT count(*) FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE d.project_id = ?1 AND m.state = ?2 AND NOT m.is_deleted";
    let n_rejected: i64 =
        on.1.query_row(sql, rusqlite::params![project, Decided::Rejected.word()], |row| row.get(0))?;
    if n_rejected > 0 {
        lines.push(format!("{n_rejected} rejected mentions will be left out"));
    }
    if n_finished > 0 {
        lines.push(format!("which {n_finished} documents are finished will not be told"));
    }
    Ok(lines)
}

fn sources(list: Option<&str>) -> ApiResult<BTreeSet<Source>> {
    let words = list.unwrap_or("gold,user").split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| match word.to_ascii_lowercase().as_str() {
            "gold" => Ok(Source::Gold),
            "user" => Ok(Source::User),
            "pred" => Ok(Source::Pred),
            _ => Err(ApiError::bad(format!("`{word}` is no source of marks")).hint("give gold, user or pred")),
        })
        .collect()
}

/// Hands the documents of a project to `take` one after the other, with the marks that are wanted. Ids are written as the first file did that the project
/// took, with the prefix of the knowledge base or without.
pub fn for_each_document(
    (kb, connection): (&KnowledgeBase, &Connection),
    project: i64,
    wanted: impl Fn(&MarkState) -> bool,
    mut take: impl FnMut(&documents::Kept, AnnotatedDocument) -> ApiResult<()>,
) -> ApiResult<()> {
    let mut after = 0;
    let mut is_raw = None;
    let names = names(connection)?;
    loop {
        let page = documents::page(connection, project, (after, PAGE), None)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for kept in &page {
            abandon::check()?;
            let mut document = kept.beside.restore(&kept.external_id, &kept.text);
            let marks = documents::marks(connection, kept.id)?;
            let mut remarks: BTreeMap<Option<i64>, Vec<String>> = BTreeMap::new();
            for one in comments(connection, kept.id, &names)? {
                remarks.entry(one.mark).or_default().push(convert::remark(&one.by, &one.at, &one.text));
            }
            let is_shown = |(_, mark): &(i64, &MarkState)| mark.is_listed() && wanted(mark);
            let mut shown: Vec<(i64, &MarkState)> =
                marks.iter().map(|(id, held)| (*id, &held.mark)).filter(is_shown).collect();
            // Marks of files keep their order; others stand behind them, in that of the text.
            let place = |mark: &MarkState| (mark.original.is_none()).then(|| mark.spans.first().copied());
            shown.sort_by_key(|(_, mark)| place(mark));
            is_raw = is_raw.or_else(|| convert::has_raw_ids(kb, marks.values().map(|held| &held.mark)));
            let written = |(id, mark): (i64, &MarkState)| {
                let mut annotation = convert::to_file(mark);
                let remarks = remarks.get(&Some(id)).map_or(&[][..], Vec::as_slice);
                convert::tell_origin(&mut annotation, mark, by(mark, &names).as_deref(), remarks);
                annotation
            };
            document.annotations = shown.into_iter().map(written).collect();
            document.attributes.extend(remarks.remove(&None).map(|remarks| convert::comment(&remarks)));
            if is_raw == Some(true) {
                document.annotations.iter_mut().for_each(|one| convert::strip_ids(kb, one));
            }
            take(kept, document)?;
        }
    }
}

fn file(
    on: (&KnowledgeBase, &Connection),
    project: i64,
    sources: &BTreeSet<Source>,
    format: CorpusFormat,
) -> ApiResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Path::new("export"), format)?;
    for_each_document(on, project, |mark| sources.contains(&mark.source), |_, document| Ok(writer.write(&document)?))?;
    writer.finish()?;
    Ok(bytes)
}

fn brat(on: (&KnowledgeBase, &Connection), project: i64, sources: &BTreeSet<Source>) -> ApiResult<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let mut names = BTreeSet::new();
    let mut add = |name: String, bytes: &[u8]| -> ApiResult<()> {
        archive.start_file(name, options).map_err(|error| ApiError::internal(&error))?;
        archive.write_all(bytes).map_err(|error| ApiError::internal(&error))
    };
    for_each_document(
        on,
        project,
        |mark| sources.contains(&mark.source),
        |kept, document| {
            let mut name = safe_name(&document.document.id);
            if !names.insert(name.to_lowercase()) {
                name = format!("{name}-{}", kept.id);
            }
            let mut annotations = Vec::new();
            encode(&document, CorpusFormat::Brat, &mut annotations)?;
            add(format!("{name}.txt"), document.document.text.as_bytes())?;
            add(format!("{name}.ann"), &annotations)
        },
    )?;
    let bytes = archive.finish().map_err(|error| ApiError::internal(&error))?;
    Ok(bytes.into_inner())
}
