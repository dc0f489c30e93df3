//! The documents of a project as a corpus: with the annotations that its marks stand for, to be exported or trained on.

use std::collections::BTreeMap;

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::kb::KnowledgeBase;
use rusqlite::Connection;

use super::{comments, documents, people};
use crate::abort;
use crate::error::ApiResult;
use crate::marks::{MarkState, convert};

/// Documents per page.
const PAGE: usize = 200;

/// Hands the documents of a project to `take` one after the other, with the marks that are wanted, and the rejected ones apart. Ids are written as the
/// first file did that the project took, with the prefix of the knowledge base or without.
pub fn for_each_document(
    kb: &KnowledgeBase,
    connection: &Connection,
    project: i64,
    wanted: impl Fn(&MarkState) -> bool,
    mut take: impl FnMut(&documents::StoredDocument, AnnotatedDocument, Vec<Annotation>) -> ApiResult<()>,
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
            let mut comments_by_mark: BTreeMap<Option<i64>, Vec<String>> = BTreeMap::new();
            for one in comments::of_document(connection, stored.id, &names)? {
                comments_by_mark.entry(one.mark).or_default().push(convert::comment_line(&one.by, &one.at, &one.text));
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
                let comments = comments_by_mark.get(&Some(id)).map_or(&[][..], Vec::as_slice);
                convert::write_origin(&mut annotation, mark, convert::decided_by(mark, &names).as_deref(), comments);
                annotation
            };
            document.annotations = shown.into_iter().map(annotation_of).collect();
            let rejected = marks.iter().map(|(id, held)| (*id, &held.mark)).filter(|(_, mark)| mark.is_rejected());
            let mut rejected: Vec<Annotation> = rejected.map(annotation_of).collect();
            document.attributes.extend(comments_by_mark.remove(&None).map(|comments| convert::comment(&comments)));
            if is_raw == Some(true) {
                document.annotations.iter_mut().chain(&mut rejected).for_each(|one| convert::strip_ids(kb, one));
            }
            take(stored, document, rejected)?;
        }
    }
}
