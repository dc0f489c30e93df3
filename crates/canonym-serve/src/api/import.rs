//! Files in and out of projects.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym::corpus::folder::safe_name;
use canonym::corpus::format::{Writer, encode};
use canonym::corpus::{AnnotatedDocument, CorpusFormat, Reader};
use canonym::input::{Limits, Source as Bytes};
use canonym::kb::KnowledgeBase;
use rusqlite::Connection;
use serde::Deserialize;

use super::{Ask, At, held_bytes};
use crate::abandon;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::guard::{Client, Curator};
use crate::marks::{Change, Changes, MarkState, Source, convert};
use crate::store::events::{self, NewEvent};
use crate::store::people::Person;
use crate::store::{documents, projects};
use crate::wire::{ImportReport, Problem};

/// Problems that are told one by one.
const MAX_PROBLEMS: usize = 100;

/// The longest message of a problem, in characters.
const MAX_MESSAGE: usize = 400;

/// What an upload may cost that is packed. Members are read where they are and never unpacked to disk.
const PACKED: Limits = Limits { expansion: 200, expansion_free: 1 << 20, members: 50_000, ..Limits::DEFAULT };

/// Documents that are read at a time for an export.
const PAGE: usize = 200;

/// What an import says of its file.
#[derive(Debug, Default, Deserialize)]
pub struct ImportQuery {
    format: Option<String>,
    filename: Option<String>,
}

/// `POST /projects/{p}/import`: the bytes of one file, which may be packed or an archive.
pub async fn import(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
    At(project): At<i64>,
    Ask(query): Ask<ImportQuery>,
    request: Request<Body>,
) -> ApiResult<axum::Json<ImportReport>> {
    // A slow upload holds what it has sent, and no place.
    let (bytes, held) = held_bytes(request, app.config.max_upload_bytes, Some(&app.uploads)).await?;
    let place = app.imports.clone().try_acquire_owned();
    let place = place.map_err(|_| ApiError::busy("other files are being imported", 2))?;
    let report = app.blocking(move |app| {
        // Both are held until the work ends, also where the client has left.
        let _held = (held, place);
        app.store.read(|connection| projects::check(connection, project))?;
        let limits = Limits { unpacked: app.config.max_unpacked_bytes, ..PACKED };
        let (read, mut report) = read(bytes, &query, limits)?;
        keep(app, (project, person.id), read, &mut report)?;
        if report.n_documents == 0 {
            let first = report.problems.first().cloned();
            let message = first.as_ref().map_or("the file has no documents".to_owned(), |first| first.message.clone());
            let hint = first.and_then(|first| first.hint).unwrap_or("name its format, and look into it".to_owned());
            return Err(ApiError::refused(message).hint(hint).beside("report", serde_json::to_value(&report)?));
        }
        app.hub.tell(project, "import", &report);
        Ok(report)
    });
    Ok(axum::Json(report.await?))
}

/// Reads the documents of a file or archive and notes what is wrong with it.
fn read(bytes: Vec<u8>, query: &ImportQuery, limits: Limits) -> ApiResult<(Vec<AnnotatedDocument>, ImportReport)> {
    if bytes.is_empty() {
        return Err(ApiError::refused("the file is empty").hint("choose a file with at least one document"));
    }
    let format = match query.format.as_deref() {
        None | Some("auto" | "") => None,
        Some(name) => Some(name.parse::<CorpusFormat>()?),
    };
    if format == Some(CorpusFormat::Biosyn) {
        return Err(ApiError::bad("biosyn files hold mentions without texts").hint("send a format with texts"));
    }
    let name = query.filename.as_deref().unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(120).collect();
    let name = if name.is_empty() || name == "-" { "upload".to_owned() } else { name };
    let mut report = ImportReport::default();
    let source = Bytes::from_bytes(&name, bytes).with_limits(limits);
    let reader = Reader::from_source(&source, format).map_err(|error| {
        let hint = error.hint().unwrap_or("name its format, or unpack it and send the files one by one");
        ApiError::refused(shown(&error.to_string())).hint(hint)
    })?;
    let (mut read, mut n_bytes) = (Vec::new(), 0);
    for item in reader {
        match item {
            Ok(document) => {
                n_bytes += size(&document);
                if n_bytes > limits.unpacked {
                    let message = format!("the documents have more than {} bytes together", limits.unpacked);
                    return Err(ApiError::refused(message).hint("send them in smaller parts"));
                }
                read.push(document);
            }
            Err(error) => {
                report.n_skipped_documents += 1;
                note(&mut report, problem(&source, &error));
            }
        }
    }
    Ok((read, report))
}

/// About how many bytes a document takes in memory.
fn size(document: &AnnotatedDocument) -> u64 {
    (document.document.text.len() + 256 * document.annotations.len()) as u64
}

/// What could not be read of an upload; of an archive it names the member.
fn problem(source: &Bytes, error: &canonym::Error) -> Problem {
    let (line, message) = match error {
        canonym::Error::Parse { path, line, message, .. } if path == source.path() => (Some(*line), message.clone()),
        canonym::Error::Parse { path, line, message, .. } => {
            let member = path.strip_prefix(source.path()).unwrap_or(path);
            (Some(*line), format!("{}: {message}", member.display()))
        }
        other => (None, other.to_string()),
    };
    Problem { line, document: None, message: shown(&message), hint: error.hint().map(str::to_owned) }
}

/// A message that may hold names from outside, on one line and not too long.
fn shown(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_control()).take(MAX_MESSAGE).collect()
}

fn note(report: &mut ImportReport, problem: Problem) {
    if report.problems.len() < MAX_PROBLEMS {
        report.problems.push(problem);
    }
}

/// Adds what was read, all of it or nothing.
fn keep(
    app: &App,
    (project, person): (i64, i64),
    read: Vec<AnnotatedDocument>,
    report: &mut ImportReport,
) -> ApiResult<()> {
    let (kb, now) = (app.engine.kb(), app.now());
    app.store.write(|transaction| {
        let mut next = events::next_mark(transaction)?;
        for document in read {
            let skip = |message: String, hint: &str| Problem {
                line: None,
                document: Some(document.document.id.clone()),
                message,
                hint: Some(hint.to_owned()),
            };
            if document.document.text.trim().is_empty() {
                report.n_skipped_documents += 1;
                note(report, skip("the document has no text".to_owned(), "leave it out"));
                continue;
            }
            let Some(id) = documents::add(transaction, project, &document)? else {
                report.n_skipped_documents += 1;
                let message = format!("the project has a document `{}`", document.document.id);
                note(
                    report,
                    skip(message, "give it another id, or import into another project; nothing was overwritten"),
                );
                continue;
            };
            let first = next;
            next += document.annotations.len() as i64;
            let gold = document.annotations.iter().zip(first..);
            let marks = gold
                .map(|(annotation, id)| Change { id, before: None, after: Some(convert::of_file(kb, annotation, now)) })
                .collect();
            let event = NewEvent { document: id, person: Some(person), at: now, kind: "import", ..NewEvent::default() };
            events::add(transaction, &event, &Changes { marks, finished: None })?;
            report.n_documents += 1;
            report.n_annotations += document.annotations.len();
        }
        events::set_next_mark(transaction, next)
    })
}

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
    loop {
        let page = documents::page(connection, project, (after, PAGE), None)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for kept in &page {
            abandon::check()?;
            let mut document = kept.beside.restore(&kept.external_id, &kept.text);
            let marks = documents::marks(connection, kept.id)?;
            let mut shown: Vec<&MarkState> =
                marks.values().map(|held| &held.mark).filter(|mark| mark.is_listed() && wanted(mark)).collect();
            // Marks of files keep their order; others stand behind them, in that of the text.
            let read: Vec<&MarkState> = shown.iter().filter(|mark| mark.original.is_some()).copied().collect();
            shown.retain(|mark| mark.original.is_none());
            shown.sort_by_key(|mark| mark.spans.first().copied());
            is_raw = is_raw.or_else(|| convert::has_raw_ids(kb, marks.values().map(|held| &held.mark)));
            document.annotations = read.into_iter().chain(shown).map(convert::to_file).collect();
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
