//! The documents of a project as a corpus: with the annotations that its marks stand for, to be exported or trained on.

use std::collections::BTreeMap;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::kb::KnowledgeBase;
use rusqlite::Connection;

use super::{comments, documents, people};
use crate::abort;
use crate::error::ApiResult;
use crate::marks::{MarkState, convert};

/// Documents per page.
const PAGE: usize = 200;

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
    let names = people::names(connection)?;
    loop {
        let page = documents::page(connection, project, (after, PAGE), None)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for kept in &page {
            abort::check()?;
            let mut document = kept.restore()?;
            let marks = documents::marks(connection, kept.id)?;
            let mut remarks: BTreeMap<Option<i64>, Vec<String>> = BTreeMap::new();
            for one in comments::of_document(connection, kept.id, &names)? {
                remarks.entry(one.mark).or_default().push(convert::remark(&one.by, &one.at, &one.text));
            }
            let is_shown = |(_, mark): &(i64, &MarkState)| mark.is_listed() && wanted(mark);
            let mut shown: Vec<(i64, &MarkState)> =
                marks.iter().map(|(id, held)| (*id, &held.mark)).filter(is_shown).collect();
            // Imported marks keep their order; others follow in text order.
            let place = |mark: &MarkState| (mark.original.is_none()).then(|| mark.spans.first().copied());
            shown.sort_by_key(|(_, mark)| place(mark));
            is_raw = is_raw.or_else(|| convert::has_raw_ids(kb, marks.values().map(|held| &held.mark)));
            let written = |(id, mark): (i64, &MarkState)| {
                let mut annotation = convert::to_file(mark);
                let remarks = remarks.get(&Some(id)).map_or(&[][..], Vec::as_slice);
                convert::tell_origin(&mut annotation, mark, convert::decided_by(mark, &names).as_deref(), remarks);
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
