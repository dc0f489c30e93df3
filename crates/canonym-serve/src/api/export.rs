//! Export of projects as files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::CorpusFormat;
use canonym_core::corpus::folder::safe_name;
use canonym_core::corpus::format::{Writer, encode};
use canonym_core::corpus::losses::{Losses, losses, supports_attributes};
use canonym_core::kb::KnowledgeBase;
use rusqlite::Connection;
use serde::Deserialize;

use super::{PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::guard::Client;
use crate::marks::review::{self, Review};
use crate::marks::{MarkState, Source, State as Decided, convert};
use crate::state::App;
use crate::store::corpus::for_each_document;
use crate::store::projects;
use crate::wire::{ExportLosses, Person};

/// Query parameters of an export.
#[derive(Debug, Default, Deserialize)]
pub struct ExportQuery {
    format: Option<String>,
    sources: Option<String>,
}

/// `GET /projects/{p}/export`: all documents as one file; brat as a zip archive.
pub async fn export(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<ExportQuery>,
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
                    CorpusFormat::Brat => brat(app.engine.kb(), connection, project.id, &sources)?,
                    _ => file(app.engine.kb(), connection, project.id, &sources, format)?,
                };
                let name: String = project
                    .name
                    .chars()
                    .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
                    .collect();
                Ok((bytes, format!("{name}.{ending}")))
            })?;
            app.audit.record(app.now(), &person.name, Some(client.0), "export", &format!("project {project}"));
            Ok(exported)
        })
        .await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let kind = if name.ends_with(".zip") { "application/zip" } else { "text/plain; charset=utf-8" };
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], bytes).into_response())
}

/// `GET /projects/{p}/export/losses`: what an export would lose.
pub async fn losses_of(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<ExportQuery>,
) -> ApiResult<axum::Json<ExportLosses>> {
    let lines = app.blocking(move |app| {
        let format: CorpusFormat = query.format.as_deref().unwrap_or("pubtator").parse()?;
        let sources = sources(query.sources.as_deref())?;
        app.store.read(|connection| {
            projects::check(connection, project)?;
            loss_lines(app.engine.kb(), connection, project, &sources, format)
        })
    });
    Ok(axum::Json(ExportLosses { lines: lines.await? }))
}

fn loss_lines(
    kb: &KnowledgeBase,
    connection: &Connection,
    project: i64,
    sources: &BTreeSet<Source>,
    format: CorpusFormat,
) -> ApiResult<Vec<String>> {
    let mut all = Losses::default();
    // Number of annotations by attribute name, or by source.
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut n_finished = 0;
    let is_wanted = |mark: &MarkState| sources.contains(&mark.source);
    for_each_document(kb, connection, project, is_wanted, |stored, mut document, _| {
        n_finished += usize::from(stored.is_finished);
        for annotation in &mut document.annotations {
            let (project_attributes, file_attributes) =
                std::mem::take(&mut annotation.attributes).into_iter().partition(|one| convert::is_origin(&one.name));
            annotation.attributes = file_attributes;
            if format == CorpusFormat::Brat {
                convert::set_brat_type(annotation);
            }
            let project_attributes: Vec<_> = project_attributes;
            for one in project_attributes {
                let name = if one.name == convert::SOURCE { one.value } else { one.name };
                *counts.entry(name).or_default() += 1;
            }
        }
        all.add(losses(&document, format));
        Ok(())
    })?;
    let mut lines: Vec<String> = all.forecast().collect();
    let n = |name: &str| counts.get(name).copied().unwrap_or_default();
    let (decided, predicted) = (n("GOLD") + n("USER"), n("PRED") + n("SILVER"));
    if !supports_attributes(format) {
        if format != CorpusFormat::Texoo && predicted > 0 {
            lines.insert(
                0,
                format!(
                    "{predicted} unreviewed predictions will be indistinguishable from {decided} reviewed annotations"
                ),
            );
        }
        let rows = [(convert::ANNOTATOR, "annotator names"), ("unsure", "“unsure” flags"), ("comment", "comments")];
        lines.extend(
            rows.iter().filter(|(name, _)| n(name) > 0).map(|(name, what)| format!("lost: {} {what}", n(name))),
        );
    }
    // JSONL has a field for the state of the review.
    if format == CorpusFormat::Jsonl {
        return Ok(lines);
    }
    let sql = "SELECT count(*) FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE d.project_id = ?1 AND m.state = ?2 AND NOT m.is_deleted";
    let n_rejected: i64 =
        connection.query_row(sql, rusqlite::params![project, Decided::Rejected.name()], |row| row.get(0))?;
    if n_rejected > 0 {
        lines.push(format!("lost: {n_rejected} rejected mentions"));
    }
    if n_finished > 0 {
        lines.push(match n_finished {
            1 => "the finished status of 1 document is lost".to_owned(),
            n => format!("the finished status of {n} documents is lost"),
        });
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
            _ => Err(ApiError::bad(format!("unknown annotation source `{word}`")).hint("use gold, user or pred")),
        })
        .collect()
}

fn file(
    kb: &KnowledgeBase,
    connection: &Connection,
    project: i64,
    sources: &BTreeSet<Source>,
    format: CorpusFormat,
) -> ApiResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Path::new("export"), format)?;
    for_each_document(
        kb,
        connection,
        project,
        |mark| sources.contains(&mark.source),
        |stored, mut document, rejected| {
            if format == CorpusFormat::Jsonl {
                review::attach(&mut document, Review { is_finished: stored.is_finished, rejected })?;
            }
            Ok(writer.write(&document)?)
        },
    )?;
    writer.finish()?;
    Ok(bytes)
}

fn brat(kb: &KnowledgeBase, connection: &Connection, project: i64, sources: &BTreeSet<Source>) -> ApiResult<Vec<u8>> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let mut names = BTreeSet::new();
    let mut add = |name: String, bytes: &[u8]| -> ApiResult<()> {
        archive.start_file(name, options).map_err(|error| ApiError::internal(&error))?;
        archive.write_all(bytes).map_err(|error| ApiError::internal(&error))
    };
    for_each_document(
        kb,
        connection,
        project,
        |mark| sources.contains(&mark.source),
        |stored, mut document, _| {
            document.annotations.iter_mut().for_each(convert::set_brat_type);
            let mut name = safe_name(&document.document.id);
            if !names.insert(name.to_lowercase()) {
                name = format!("{name}-{}", stored.id);
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
