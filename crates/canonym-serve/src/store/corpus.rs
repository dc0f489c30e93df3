//! The documents of a project as a corpus: with the annotations that its marks stand for, to be exported or trained on.

use std::collections::{BTreeMap, HashMap};

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::kb::KnowledgeBase;
use rusqlite::Connection;

use super::{comments, documents, people};
use crate::abort;
use crate::error::ApiResult;
use crate::marks::review::{About, Review, Thread};
use crate::marks::{MarkState, convert};
use crate::wire::Comment;

/// Documents per page.
const PAGE: usize = 200;

/// Hands the documents of a project to `take` one after the other, with the marks that are wanted, and the state of the review: rejected
/// mentions and comments. Ids are written as the first file did that the project took, with the prefix of the knowledge base or without.
pub fn for_each_document(
    kb: &KnowledgeBase,
    connection: &Connection,
    project: i64,
    wanted: impl Fn(&MarkState) -> bool,
    mut take: impl FnMut(&documents::StoredDocument, AnnotatedDocument, Review) -> ApiResult<()>,
) -> ApiResult<()> {
    let mut after = 0;
    let mut is_raw = None;
    let names = people::names(connection)?;
    loop {
        let page = documents::page(connection, project, after, PAGE, None)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for stored in &page {
            abort::check()?;
            let mut document = stored.restore()?;
            let marks = documents::marks(connection, stored.id)?;
            let comments = comments::of_document(connection, stored.id, &names)?;
            let mut lines_by_mark: BTreeMap<Option<i64>, Vec<String>> = BTreeMap::new();
            for one in &comments {
                let line = convert::comment_line(&convert::remark(&one.by, &one.at, &one.text));
                lines_by_mark.entry(one.mark).or_default().push(line);
            }
            let is_shown = |(_, mark): &(i64, &MarkState)| mark.is_listed() && wanted(mark);
            let mut shown: Vec<(i64, &MarkState)> =
                marks.iter().map(|(id, held)| (*id, &held.mark)).filter(is_shown).collect();
            // Imported marks keep their order; others follow in text order.
            let position = |mark: &MarkState| (mark.original.is_none()).then(|| mark.spans.first().copied());
            shown.sort_by_key(|(_, mark)| position(mark));
            is_raw = is_raw.or_else(|| convert::has_raw_ids(kb, marks.values().map(|held| &held.mark)));
            let annotation_of = |(id, mark): (i64, &MarkState)| {
                let mut annotation = convert::to_file(mark);
                let comments = lines_by_mark.get(&Some(id)).map_or(&[][..], Vec::as_slice);
                convert::write_origin(&mut annotation, mark, convert::decided_by(mark, &names).as_deref(), comments);
                annotation
            };
            let rejected: Vec<(i64, &MarkState)> =
                marks.iter().map(|(id, held)| (*id, &held.mark)).filter(|(_, mark)| mark.is_rejected()).collect();
            let rows = |marks: &[(i64, &MarkState)], about: fn(usize) -> About| -> Vec<(i64, About)> {
                marks.iter().enumerate().map(|(row, (id, _))| (*id, about(row))).collect()
            };
            let about = rows(&shown, About::Annotation).into_iter().chain(rows(&rejected, About::Rejected)).collect();
            let threads = threads(&comments, &about);
            document.annotations = shown.into_iter().map(annotation_of).collect();
            let mut rejected: Vec<Annotation> = rejected.into_iter().map(annotation_of).collect();
            document.attributes.extend(lines_by_mark.remove(&None).map(|comments| convert::comment(&comments)));
            if is_raw == Some(true) {
                document.annotations.iter_mut().chain(&mut rejected).for_each(|one| convert::strip_ids(kb, one));
            }
            take(stored, document, Review { is_finished: stored.is_finished, rejected, threads })?;
        }
    }
}

/// The threads of the comments on a document, without those on mentions that are not written.
fn threads(comments: &[Comment], about: &HashMap<i64, About>) -> Vec<Thread> {
    let mut replies: HashMap<i64, Vec<&Comment>> = HashMap::new();
    for one in comments {
        replies.entry(one.parent.unwrap_or(one.id)).or_default().push(one);
    }
    let thread = |first: &Comment| {
        let about = match first.mark {
            Some(mark) => *about.get(&mark)?,
            None => About::Document,
        };
        let remark = |one: &&Comment| convert::remark(&one.by, &one.at, &one.text);
        let comments = replies[&first.id].iter().map(remark).collect();
        Some(Thread { about, resolved_by: first.resolved_by.clone(), comments })
    };
    comments.iter().filter(|one| one.parent.is_none()).filter_map(thread).collect()
}
