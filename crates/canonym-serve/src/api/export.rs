//! Export of projects as files.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::folder::FileNames;
use canonym_core::corpus::format::{Writer, encode};
use canonym_core::corpus::losses::{Losses, losses, supports_attributes};
use canonym_core::corpus::{AnnotatedDocument, Attribute, CorpusFormat};
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
    let (mut n_finished, mut n_threads) = (0, 0);
    let mut renamed = Renamed::default();
    let wanted = Wanted::of(sources);
    for_each_document(
        kb,
        connection,
        project,
        |mark| wanted.has(mark),
        |_, mut document, review| {
            let is_told = format == CorpusFormat::Jsonl && wanted.are_complete();
            n_finished += usize::from(review.is_finished && !is_told);
            n_threads +=
                review.threads.iter().filter(|one| one.comments.len() > 1 || one.resolved_by.is_some()).count();
            for one in take_origin(&mut document) {
                let name = if one.name == convert::SOURCE { one.value } else { one.name };
                *counts.entry(name).or_default() += 1;
            }
            if format == CorpusFormat::Brat {
                document.annotations.iter_mut().for_each(convert::set_brat_type);
                renamed.add(&document.document.id);
            }
            all.add(losses(&document, format));
            Ok(())
        },
    )?;
    let mut lines: Vec<String> = all.forecast().collect();
    lines.extend(renamed.line());
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
    if n_finished > 0 {
        lines.push(match n_finished {
            1 => "the finished status of 1 document is lost".to_owned(),
            n => format!("the finished status of {n} documents is lost"),
        });
    }
    // JSONL has a field for the rest of the review.
    if format == CorpusFormat::Jsonl {
        return Ok(lines);
    }
    if n_threads > 0 && supports_attributes(format) {
        lines.push(match n_threads {
            1 => "1 comment thread will be written as one comment, without its resolution".to_owned(),
            n => format!("{n} comment threads will be written as one comment each, without their resolution"),
        });
    }
    let sql = "SELECT count(*) FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE d.project_id = ?1 AND m.state = ?2 AND NOT m.is_deleted";
    let n_rejected: i64 =
        connection.query_row(sql, rusqlite::params![project, Decided::Rejected.name()], |row| row.get(0))?;
    if n_rejected > 0 {
        lines.push(format!("lost: {n_rejected} rejected mentions"));
    }
    Ok(lines)
}

/// The annotations that are exported.
struct Wanted<'a> {
    sources: &'a BTreeSet<Source>,
    /// Whether a reviewed annotation of the current document is left out.
    leaves_out: Cell<bool>,
}

impl Wanted<'_> {
    fn of(sources: &BTreeSet<Source>) -> Wanted<'_> {
        Wanted { sources, leaves_out: Cell::new(false) }
    }

    fn has(&self, mark: &MarkState) -> bool {
        let has = self.sources.contains(&mark.source);
        self.leaves_out.set(self.leaves_out.get() || (!has && mark.is_human()));
        has
    }

    /// Whether all reviewed annotations of the current document are exported; otherwise it is not finished in the file. To be called once
    /// a document.
    fn are_complete(&self) -> bool {
        !self.leaves_out.replace(false)
    }
}

/// Removes the attributes of annotations that say where they come from.
fn take_origin(document: &mut AnnotatedDocument) -> Vec<Attribute> {
    let mut origin = Vec::new();
    for annotation in &mut document.annotations {
        let is_origin = |one: &Attribute| convert::is_origin(&one.name);
        let (taken, kept) = std::mem::take(&mut annotation.attributes).into_iter().partition(is_origin);
        annotation.attributes = kept;
        origin.extend::<Vec<Attribute>>(taken);
    }
    origin
}

/// Documents whose IDs are not valid file names.
#[derive(Default)]
struct Renamed {
    names: FileNames,
    n: usize,
    /// The first ID and its name.
    first: Option<(String, String)>,
}

impl Renamed {
    fn add(&mut self, id: &str) {
        let name = self.names.of(id);
        if name != id {
            self.n += 1;
            self.first.get_or_insert_with(|| (id.to_owned(), name));
        }
    }

    fn line(&self) -> Option<String> {
        let (id, name) = self.first.as_ref()?;
        Some(match self.n {
            1 => format!("1 document ID will be changed to a valid file name (`{id}` to `{name}`)"),
            n => format!("{n} document IDs will be changed to valid file names (first: `{id}` to `{name}`)"),
        })
    }
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
    let wanted = Wanted::of(sources);
    for_each_document(
        kb,
        connection,
        project,
        |mark| wanted.has(mark),
        |_, mut document, review| {
            let is_finished = wanted.are_complete() && review.is_finished;
            match format {
                CorpusFormat::Jsonl => review::attach(&mut document, Review { is_finished, ..review })?,
                // Without them, a document that nobody changed is written with the lines that it was read from.
                CorpusFormat::Conll => drop(take_origin(&mut document)),
                _ => {}
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
    let mut names = FileNames::default();
    let mut add = |name: String, bytes: &[u8]| -> ApiResult<()> {
        archive.start_file(name, options).map_err(|error| ApiError::internal(&error))?;
        archive.write_all(bytes).map_err(|error| ApiError::internal(&error))
    };
    let is_wanted = |mark: &MarkState| sources.contains(&mark.source);
    for_each_document(kb, connection, project, is_wanted, |_, mut document, _| {
        document.annotations.iter_mut().for_each(convert::set_brat_type);
        let name = names.of(&document.document.id);
        let mut annotations = Vec::new();
        encode(&document, CorpusFormat::Brat, &mut annotations)?;
        add(format!("{name}.txt"), document.document.text.as_bytes())?;
        add(format!("{name}.ann"), &annotations)
    })?;
    let bytes = archive.finish().map_err(|error| ApiError::internal(&error))?;
    Ok(bytes.into_inner())
}
