//! Knowledge bases: damaged files, and whole containers of which the numbers make no sense.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use canonym_core::artifact::{Container, ContainerWriter};
use canonym_core::index::grams::GramScratch;
use canonym_core::kb::format::{KIND, Meta};
use canonym_core::kb::search::{children, nearest_ids, search};
use canonym_core::kb::{
    ConceptId, ConceptRecord, FormId, KnowledgeBase, KnowledgeBaseBuilder, Layout, NameId, NameRecord, Scope,
    XrefRecord,
};
use canonym_core::link::Annotator;
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::recognise::accept::AcceptModel;
use canonym_core::link::recognise::{DictionaryAnnotator, Nested, RecogniseConfig};
use canonym_core::text::Document;
use canonym_core::text::analysis::Analysis;

use crate::targets::{Target, target};

/// Rows of each kind that are asked for, at most.
const MAX_ROWS: u32 = 200;

/// The targets over knowledge bases.
pub fn targets() -> Vec<Target> {
    let whole = sample(Layout::Whole);
    let kb = Arc::new(open(whole.clone()).expect("the sample is whole"));
    let config = RecogniseConfig { top_k: 3, min_score: None, nested: Nested::All };
    let annotator = DictionaryAnnotator::new(kb.clone(), AcceptModel::embedded(), config);
    let linker = LexicalLinker::new(kb, LexicalModel::embedded(), LinkConfig::default());
    let texts = vec![
        b"Red shapes 3 and blue shape no. 2 (BSN), or ring 7. The BSN and rings 4, 5 and 6.".to_vec(),
        "red and grün shapes 1 or 2; non-red ring 12 😀 ring 3's".as_bytes().to_vec(),
    ];
    let names = vec![b"red circle\nround thing\n\nshape no. 2".to_vec(), "Ring😀 of α-shapes".as_bytes().to_vec()];
    let mut targets = Vec::from(files("kb", whole));
    targets.extend(files("kb-words", sample(Layout::Words)));
    targets.extend([
        target("annotate", texts, move |bytes| annotate(&annotator, &String::from_utf8_lossy(bytes))),
        target("link", names, move |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let names: Vec<&str> = text.lines().take(20).collect();
            let links = linker.link_names(&names);
            assert_eq!(links.len(), names.len(), "every name has a link");
            let scores = links.iter().flat_map(|link| &link.candidates).map(|candidate| candidate.p_link);
            assert!(scores.clone().all(|score| (0.0..=1.0).contains(&score)), "scores are probabilities");
            format!("{} candidates", if scores.count() == 0 { "no" } else { "some" })
        }),
    ]);
    targets
}

/// Targets over the content of sections, and over the first and last bytes of a file.
fn files(name: &str, whole: Vec<u8>) -> [Target; 2] {
    let container = Container::from_vec(whole.clone(), Path::new("sample"), KIND).expect("the sample is whole");
    // Long sections stay as they are, so that mutations reach the others.
    let mutable: Vec<String> =
        container.sections().into_iter().filter(|(_, len)| *len < 1 << 14).map(|(name, _)| name).collect();
    let sections: Vec<u8> = mutable.iter().flat_map(|name| section(&container, name).to_vec()).collect();
    let ends = vec![whole[..256].to_vec(), whole[whole.len() - 2048..].to_vec()];
    [
        target(&format!("{name}/sections"), vec![sections], move |bytes| refill(&container, &mutable, bytes)),
        target(&format!("{name}/file"), ends, move |bytes| open_damaged(&whole, bytes)),
    ]
}

/// Mentions lie in the text, and a batch gives what its documents give one by one.
fn annotate(annotator: &DictionaryAnnotator, text: &str) -> String {
    let document = |text: &str| Document { id: "1".to_owned(), text: text.to_owned(), sections: Vec::new() };
    let batch = [document(text), document("A red shape 1."), document(text)];
    let found = annotator.annotate(&Analysis::all(&batch)).expect("texts can be annotated");
    assert_eq!(found.len(), 3, "every document has an answer");
    assert_eq!(found[0], found[2], "equal documents have equal answers");
    for linked in &found[0] {
        assert!(!linked.mention.spans.is_empty(), "a mention has a span");
        for span in &linked.mention.spans {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "a span lies in the text");
        }
        assert!((0.0..=1.0).contains(&linked.score()), "a score is a probability");
    }
    let n_parts = found[0].iter().map(|linked| linked.mention.spans.len()).max().unwrap_or_default();
    crate::targets::words_for(&[found[0].len(), n_parts])
}

fn sample(layout: Layout) -> Vec<u8> {
    let mut builder = KnowledgeBaseBuilder::new().with_layout(layout);
    for row in 0..40u32 {
        let colour = ["red", "blue", "grün"][row as usize % 3];
        let names = [format!("{colour} shape {}", row % 11), format!("ring {row}")];
        let scope = |place: usize| if place == 0 { Scope::Preferred } else { Scope::Related };
        let record = ConceptRecord {
            id: format!("X:{row}"),
            names: names
                .into_iter()
                .enumerate()
                .map(|(place, text)| NameRecord { text, scope: scope(place) })
                .collect(),
            types: vec![format!("T{}", row % 4)],
            definition: (row % 2 == 0).then(|| format!("Shape {row}.")),
            parents: vec![format!("X:{}", row / 2)],
            alternative_ids: vec![format!("OLD:{row}")],
            xrefs: vec![XrefRecord::plain(&format!("ICD10CM:{row}"))],
            source: if row % 2 == 0 { "geo".to_owned() } else { String::new() },
        };
        builder.add(record).expect("a small record fits");
    }
    builder.to_bytes(Meta { added_prefixes: vec!["X".to_owned()], ..Meta::default() }).expect("the sample has names")
}

/// Opens a knowledge base that lies in memory.
pub fn open(bytes: Vec<u8>) -> canonym_core::Result<KnowledgeBase> {
    KnowledgeBase::from_vec(bytes, "sample")
}

fn section<'a>(container: &'a Container, name: &str) -> &'a [u8] {
    &container.bytes()[container.range(name).expect("the section was listed")]
}

/// Spreads `bytes` over the sections in `mutable`, writes right checksums, opens and asks.
fn refill(container: &Container, mutable: &[String], bytes: &[u8]) -> String {
    let mut rest = bytes;
    let mut writer = ContainerWriter::new(KIND, Cursor::new(Vec::new())).expect("memory can be written");
    for (name, _) in container.sections() {
        let old = section(container, &name);
        let mut new = old.to_vec();
        if mutable.contains(&name) {
            let n_taken = old.len().min(rest.len());
            new[..n_taken].copy_from_slice(&rest[..n_taken]);
            rest = &rest[n_taken..];
        }
        writer.section(&name, [&new[..]]).expect("memory can be written");
    }
    match open(writer.finish().expect("memory can be written").into_inner()) {
        Ok(kb) => ask_everything(&kb),
        Err(error) => error.to_string(),
    }
}

/// Opens the sample with its first or last bytes replaced, or the bytes by themselves.
fn open_damaged(whole: &[u8], bytes: &[u8]) -> String {
    let n_bytes = bytes.len().min(whole.len());
    let mut first = whole.to_vec();
    first[..n_bytes].copy_from_slice(&bytes[..n_bytes]);
    let mut last = whole.to_vec();
    last[whole.len() - n_bytes..].copy_from_slice(&bytes[..n_bytes]);
    let say = |bytes: Vec<u8>| open(bytes).map_or_else(|error| error.to_string(), |kb| ask_everything(&kb));
    [say(first), say(last), say(bytes.to_vec())].join(" ")
}

/// Asks everything that a knowledge base can be asked.
pub fn ask_everything(kb: &KnowledgeBase) -> String {
    let rows = (0..(kb.n_concepts().max(kb.n_forms()) as u32).min(MAX_ROWS)).chain([u32::MAX / 4, u32::MAX]);
    let mut n_seen = 0;
    for row in rows {
        let (concept, name, form) = (ConceptId(row), NameId(row), FormId(row));
        n_seen += kb.id(concept).len() + kb.raw_id(concept).len() + kb.preferred_name(concept).len();
        n_seen += kb.names(concept).count() + kb.types(concept).count() + kb.parents(concept).count();
        n_seen += kb.alternative_ids(concept).count() + kb.source(concept).len();
        n_seen += kb.definition(concept).map_or(0, str::len) + kb.name(name).len() + kb.scope(name) as usize;
        n_seen += kb.concept_of(name).0 as usize + kb.form_of(name).0 as usize + kb.forms().get(row as usize).len();
        n_seen += kb.names_of_form(form).count() + kb.tokens_of_form(form).count() + kb.token_df(row) as usize;
        n_seen += usize::from(kb.token_row(kb.token_hash_at(row)).is_some());
        n_seen += usize::from(kb.knows_root(kb.token_root(row)));
        n_seen += kb.keys().get(u64::from(row) << 32).len() + kb.roots().get(u64::MAX - u64::from(row)).len();
    }
    n_seen += children(kb, ConceptId(0)).len();
    let mut n_hits = 0;
    for query in ["red shape 3", "ring", "X:1", "z 😀"] {
        n_hits += search(kb, query, 10).len() + nearest_ids(kb, query, 3).len();
        n_hits += kb.grams().search(query, 5, &mut GramScratch::default()).len();
    }
    let seen = if n_seen > 0 { "something" } else { "nothing" };
    format!("{seen} seen, {} found", if n_hits > 0 { "something" } else { "nothing" })
}
