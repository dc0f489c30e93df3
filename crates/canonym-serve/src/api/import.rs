//! Import of files into projects.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use canonym_core::corpus::csv::CsvColumns;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader};
use canonym_core::input::{Limits, Source as Bytes};
use rusqlite::Transaction;
use serde::Deserialize;

use super::{PathParam, QueryParams, bytes_with_permit};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::guard::Curator;
use crate::marks::convert::{self, DefaultSource};
use crate::marks::review::{self, About, Thread};
use crate::marks::{Change, Changes, Source};
use crate::state::App;
use crate::store::comments::{self, NewRow};
use crate::store::events::{self, NewEvent};
use crate::store::{documents, projects};
use crate::times::{Millis, parse_rfc3339};
use crate::wire::{ImportReport, Person, Problem};

/// The maximum number of problems in a report.
const MAX_PROBLEMS: usize = 100;

/// After an import of more documents or annotations than this, the write-ahead log is truncated.
const LARGE_IMPORT: usize = 10_000;

/// The maximum number of annotations per document.
const MAX_MARKS: usize = 100_000;

/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 400;

/// What to do about an annotation with wrong offsets.
const WRONG_OFFSETS: &str = "the annotation was skipped; import again with repaired offsets, or correct the file";

/// Limits of compressed uploads. Members are never unpacked to disk.
const ARCHIVE_LIMITS: Limits = Limits { expansion: 200, expansion_free: 1 << 20, members: 50_000, ..Limits::DEFAULT };

/// Query parameters of an import.
#[derive(Debug, Default, Deserialize)]
pub struct ImportQuery {
    format: Option<String>,
    filename: Option<String>,
    annotations: Option<String>,
    offsets: Option<String>,
    existing: Option<String>,
    text_column: Option<String>,
    id_column: Option<String>,
}

impl ImportQuery {
    /// How annotations without a recorded source are imported: as unreviewed predictions, or as gold.
    fn default_source(&self) -> ApiResult<DefaultSource> {
        match self.annotations.as_deref() {
            None | Some("auto" | "" | "pred") => Ok(DefaultSource::Pred),
            Some("gold") => Ok(DefaultSource::Gold),
            Some(other) => Err(not_one_of("annotations", other, "auto, pred or gold")),
        }
    }

    /// Whether unambiguous wrong offsets are repaired; otherwise such annotations are skipped.
    fn repairs(&self) -> ApiResult<bool> {
        match self.offsets.as_deref() {
            None | Some("drop" | "") => Ok(false),
            Some("fix") => Ok(true),
            Some(other) => Err(not_one_of("offsets", other, "drop or fix")),
        }
    }

    /// The columns of CSV files. The others become metadata.
    fn columns(&self) -> CsvColumns {
        let named =
            |name: &Option<String>| name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        CsvColumns { id: named(&self.id_column), text: named(&self.text_column), keeps_others: true }
    }

    /// Whether a document with an existing ID gets a new one; otherwise it is skipped.
    fn renames(&self) -> ApiResult<bool> {
        match self.existing.as_deref() {
            None | Some("skip" | "") => Ok(false),
            Some("rename") => Ok(true),
            Some(other) => Err(not_one_of("existing", other, "skip or rename")),
        }
    }
}

fn not_one_of(name: &str, value: &str, values: &str) -> ApiError {
    let value: String = value.chars().take(40).collect();
    ApiError::bad(format!("unknown value `{value}` of `{name}`")).hint(format!("use {values}"))
}

/// `POST /projects/{p}/import`: imports one file, which may be compressed or an archive.
pub async fn import(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<ImportQuery>,
    request: Request<Body>,
) -> ApiResult<axum::Json<ImportReport>> {
    // A slow upload holds memory permits, but no import permit.
    let (bytes, held) = bytes_with_permit(request, app.config.max_upload_bytes, Some(&app.upload_permits)).await?;
    let permit = app.import_permits.clone().try_acquire_owned();
    let permit = permit.map_err(|_| ApiError::busy("another import is running", 2))?;
    let report = app.blocking(move |app| {
        // Both permits are held until the import ends, even if the client disconnects.
        let _held = (held, permit);
        app.store.read(|connection| projects::check(connection, project))?;
        let limits = Limits { unpacked: app.config.max_unpacked_bytes, ..ARCHIVE_LIMITS };
        let upload = open(bytes, &query, limits)?;
        let report = import_documents(app, project, &person, upload, &query)?;
        if report.n_annotations > LARGE_IMPORT || report.n_documents > LARGE_IMPORT {
            app.store.truncate_log();
        }
        app.bus.publish(project, "import", &report);
        Ok(report)
    });
    Ok(axum::Json(report.await?))
}

/// An opened file or archive.
struct Upload {
    source: Bytes,
    reader: Reader,
    limits: Limits,
}

/// Opens a file or archive.
fn open(bytes: Vec<u8>, query: &ImportQuery, limits: Limits) -> ApiResult<Upload> {
    if bytes.is_empty() {
        return Err(ApiError::unprocessable("the file is empty").hint("choose a file with at least one document"));
    }
    let format = match query.format.as_deref() {
        None | Some("auto" | "") => None,
        Some(name) => Some(name.parse::<CorpusFormat>()?),
    };
    if format == Some(CorpusFormat::Biosyn) {
        return Err(
            ApiError::bad("BioSyn files have no document text").hint("use PubTator, BioC, brat, JSONL or plain text")
        );
    }
    let name = query.filename.as_deref().unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(120).collect();
    let name = if name.is_empty() || name == "-" { "upload".to_owned() } else { name };
    let source = Bytes::from_bytes(&name, bytes).with_limits(limits);
    let reader = Reader::from_source(&source, format).map_err(|error| {
        let hint = error.hint().unwrap_or("choose the format, or unpack the file");
        ApiError::unprocessable(one_line(&error.to_string())).hint(hint)
    })?;
    let reader = reader.with_columns(query.columns());
    let reader = reader.with_on_mismatch(OnMismatch::Drop).with_repairs(query.repairs()?);
    Ok(Upload { source, reader, limits })
}

/// Passes the documents of a file to `take`, one at a time, and reports problems.
fn read(
    upload: Upload,
    report: &mut ImportReport,
    mut take: impl FnMut(AnnotatedDocument, &mut ImportReport) -> ApiResult<()>,
) -> ApiResult<()> {
    let Upload { source, mut reader, limits } = upload;
    let mut n_bytes = 0;
    while let Some(item) = reader.next() {
        abort::check()?;
        for dropped in reader.dropped() {
            add_problem(report, Problem { hint: Some(WRONG_OFFSETS.to_owned()), ..problem(&source, dropped) });
        }
        match item {
            Ok(document) => {
                n_bytes += size(&document);
                if n_bytes > limits.unpacked {
                    let message = format!("more than {} bytes in total", limits.unpacked);
                    return Err(ApiError::unprocessable(message).hint("import it in smaller parts"));
                }
                take(document, report)?;
            }
            Err(error) => {
                report.n_skipped_documents += 1;
                add_problem(report, problem(&source, &error));
            }
        }
    }
    let counts = reader.counts();
    report.n_skipped_annotations += counts.n_bad_offsets as usize;
    report.n_fixed += counts.n_fixed as usize;
    Ok(())
}

/// The approximate size of a document in memory, in bytes.
fn size(document: &AnnotatedDocument) -> u64 {
    (document.document.text.len() + 256 * document.annotations.len()) as u64
}

/// A problem of an uploaded file; for an archive it names the member.
fn problem(source: &Bytes, error: &canonym_core::Error) -> Problem {
    let (line, message) = match error {
        canonym_core::Error::Parse { path, line, message, .. } if path == source.path() => {
            (Some(*line), message.clone())
        }
        canonym_core::Error::Parse { path, line, message, .. } => {
            let member = path.strip_prefix(source.path()).unwrap_or(path);
            (Some(*line), format!("{}: {message}", member.display()))
        }
        other => (None, other.to_string()),
    };
    // The page has fields for the options of the command line.
    let hint = error
        .hint()
        .map(|hint| hint.replace("`--text-column`", "“Text column”").replace("`--id-column`", "“ID column”"));
    Problem { line, document: None, message: one_line(&message), hint }
}

/// Limits a message with untrusted names to one line and a maximum length.
fn one_line(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_control()).take(MAX_MESSAGE).collect()
}

fn add_problem(report: &mut ImportReport, problem: Problem) {
    if report.problems.len() < MAX_PROBLEMS {
        report.problems.push(problem);
    }
}

fn skipped(document: &AnnotatedDocument, message: String, hint: &str) -> Problem {
    Problem { line: None, document: Some(document.document.id.clone()), message, hint: Some(hint.to_owned()) }
}

/// Imports the documents of a file in one transaction, with one document in memory at a time.
fn import_documents(
    app: &App,
    project: i64,
    person: &Person,
    upload: Upload,
    query: &ImportQuery,
) -> ApiResult<ImportReport> {
    let (kb, now) = (app.engine.kb(), app.now());
    let (default_source, renames, repairs) = (query.default_source()?, query.renames()?, query.repairs()?);
    let mut report = ImportReport::default();
    app.store.write(|transaction| {
        let mut next = events::next_mark(transaction)?;
        read(upload, &mut report, |mut document, report| {
            let mut review = take_review(&mut document, repairs, report);
            if let Some((message, hint)) = rejection(&document, review.rejected.len(), app.config.max_text_bytes) {
                report.n_skipped_documents += 1;
                add_problem(report, skipped(&document, message, hint));
                return Ok(());
            }
            if renames {
                document.document.id = documents::free_id(transaction, project, &document.document.id)?;
            }
            let on_document = convert::take_comment(&mut document.attributes);
            document.annotations.iter_mut().for_each(convert::restore_type);
            let all = document.annotations.iter_mut().chain(&mut review.rejected);
            let comments: Vec<Option<String>> = all.map(|one| convert::take_comment(&mut one.attributes)).collect();
            let Some(id) = documents::add(transaction, project, &document)? else {
                report.n_skipped_documents += 1;
                let message = format!("document “{}” already exists in this project", document.document.id);
                add_problem(report, skipped(&document, message, "import it under a new ID"));
                return Ok(());
            };
            let first = next;
            next += comments.len() as i64;
            let mut marks = Vec::new();
            for (annotation, id) in document.annotations.iter().zip(first..) {
                let mark = convert::from_file(kb, annotation, default_source, now);
                report.n_predictions += usize::from(mark.source == Source::Pred);
                report.n_unmarked += usize::from(!convert::has_recorded_source(annotation));
                marks.push(Change { id, before: None, after: Some(mark) });
            }
            for (annotation, id) in review.rejected.iter().zip(first + marks.len() as i64..) {
                let mark = convert::rejected_from_file(kb, annotation, now);
                marks.push(Change { id, before: None, after: Some(mark) });
            }
            let event =
                NewEvent { document: id, person: Some(person.id), at: now, kind: "import", ..NewEvent::default() };
            let finished = review.is_finished.then_some((false, true));
            events::add(transaction, &event, &Changes { marks, finished })?;
            // Where threads are known, the comments in attributes repeat them.
            let rows = document.annotations.len();
            let mark_of = |about: About| match about {
                About::Document => None,
                About::Annotation(row) => Some(first + row as i64),
                About::Rejected(row) => Some(first + (rows + row) as i64),
            };
            let on_marks = (first..).zip(comments).filter_map(|(mark, text)| Some((Some(mark), text?)));
            for (mark, text) in on_marks.chain(on_document.map(|text| (None, text))) {
                if !review.threads.iter().any(|thread| mark_of(thread.about) == mark) {
                    let text = cut(&text);
                    let new = NewRow { document: id, mark, parent: None, person: person.id, at: now, text: &text };
                    comments::add(transaction, &new)?;
                }
            }
            for thread in &review.threads {
                add_thread(transaction, id, mark_of(thread.about), thread, (person, now))?;
            }
            report.n_documents += 1;
            report.n_annotations += document.annotations.len();
            report.n_relations += document.relations.len();
            Ok(())
        })?;
        if report.n_documents == 0 {
            let first = report.problems.first().cloned();
            let message = first.as_ref().map_or("no documents in this file".to_owned(), |first| first.message.clone());
            let hint = first.and_then(|first| first.hint).unwrap_or("choose the format, or check the file".to_owned());
            return Err(ApiError::unprocessable(message)
                .hint(hint)
                .with_field("report", serde_json::to_value(&report)?));
        }
        events::set_next_mark(transaction, next)
    })?;
    Ok(report)
}

/// Removes the state of the review from a document, and reports what of it was not taken.
fn take_review(document: &mut AnnotatedDocument, repairs: bool, report: &mut ImportReport) -> review::Review {
    let detached = review::detach(document, repairs).unwrap_or_else(|error| {
        let message = format!("the state of the review was skipped: {}", one_line(&error.to_string()));
        add_problem(report, skipped(document, message, "export the project again as JSONL"));
        review::Detached::default()
    });
    report.n_skipped_annotations += detached.n_dropped;
    report.n_fixed += detached.n_fixed;
    for problem in &detached.problems {
        let message = format!("rejected mention: {}", one_line(problem));
        add_problem(report, skipped(document, message, WRONG_OFFSETS));
    }
    detached.review
}

/// The text of a comment, no longer than one may be.
fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(super::comments::MAX_COMMENT)].to_owned()
}

/// Adds a thread of comments. Those of others are stored in the name of whoever imports them, with author and time in the text.
fn add_thread(
    transaction: &Transaction<'_>,
    document: i64,
    mark: Option<i64>,
    thread: &Thread,
    (person, now): (&Person, Millis),
) -> ApiResult<()> {
    let mut parent = None;
    for remark in &thread.comments {
        let own = parse_rfc3339(&remark.at).filter(|_| remark.by == person.name);
        let text = cut(&own.map_or_else(|| convert::imported_comment(remark), |_| remark.text.clone()));
        if text.trim().is_empty() {
            continue;
        }
        let at = own.map_or(now, |at| at.min(now));
        let id = comments::add(transaction, &NewRow { document, mark, parent, person: person.id, at, text: &text })?;
        parent = parent.or(Some(id));
    }
    match parent {
        Some(first) if thread.resolved_by.is_some() => comments::resolve(transaction, first, Some(person.id)),
        _ => Ok(()),
    }
}

/// Why a document cannot be imported, with a hint.
fn rejection(document: &AnnotatedDocument, n_rejected: usize, max_text_bytes: usize) -> Option<(String, &'static str)> {
    let split = "split it, for instance into chapters";
    if document.document.text.trim().is_empty() {
        Some(("the document has no text".to_owned(), "remove it from the file"))
    } else if document.document.text.len() > max_text_bytes {
        Some((format!("the document text exceeds {max_text_bytes} bytes"), split))
    } else if document.annotations.len() + n_rejected > MAX_MARKS {
        Some((format!("the document has more than {MAX_MARKS} annotations"), split))
    } else {
        None
    }
}
