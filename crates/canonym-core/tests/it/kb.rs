//! Builder and reader of knowledge bases: what goes in comes out, and no file makes the reader panic.

use std::io::Cursor;
use std::path::Path;

use canonym_core::artifact::{ArtifactKind, Container, ContainerWriter};
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::index::grams::GramScratch;
use canonym_core::index::packed::Lengths;
use canonym_core::kb::format::{KIND, Meta};
use canonym_core::kb::search::{MatchKind, children, nearest_ids, search};
use canonym_core::kb::{
    ConceptId, ConceptRecord, FormId, KnowledgeBase, KnowledgeBaseBuilder, Layout, NameId, NameRecord, Scope,
};
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use expect_test::{Expect, expect};
use proptest::prelude::*;

/// A record of one id and its names, the scope before each: `=Circle` is preferred, `~round` exact, `?bend` related.
fn record(id: &str, names: &[&str]) -> ConceptRecord {
    let name = |text: &&str| {
        let (sign, text) = text.split_at(1);
        let scope = match sign {
            "=" => Scope::Preferred,
            "?" => Scope::Related,
            _ => Scope::Exact,
        };
        NameRecord { text: text.to_owned(), scope }
    };
    ConceptRecord { id: id.to_owned(), names: names.iter().map(name).collect(), ..ConceptRecord::default() }
}

fn shapes() -> Vec<ConceptRecord> {
    let mut circle = record("X:1", &["~round", "=Circle", "=Disk", "~round"]);
    circle.types = vec!["Curve".to_owned(), "Plane".to_owned(), "Curve".to_owned()];
    circle.alternative_ids = vec!["OLD:7".to_owned(), "OLD:3".to_owned()];
    circle.source = "geo".to_owned();
    let mut circle_again = record("X:1", &["?bend", "~ring shape"]);
    circle_again.definition = Some(" All points at one distance. ".to_owned());
    circle_again.parents = vec!["X:9".to_owned(), "X:404".to_owned()];
    let mut figure = record("X:9", &["~figure", "~plane figure"]);
    figure.definition = Some("What can be drawn.".to_owned());
    vec![circle, figure, record("X:10|Y:2", &["=Ring Shape"]), circle_again, record("X:5", &[])]
}

fn compile(records: Vec<ConceptRecord>) -> Vec<u8> {
    compile_as(KnowledgeBaseBuilder::new(), records)
}

fn by_words(records: Vec<ConceptRecord>) -> Vec<u8> {
    compile_as(KnowledgeBaseBuilder::new().with_layout(Layout::Words), records)
}

fn compile_as(mut builder: KnowledgeBaseBuilder, records: Vec<ConceptRecord>) -> Vec<u8> {
    for record in records {
        builder.add(record).unwrap();
    }
    let meta = Meta { name: "shapes".to_owned(), added_prefixes: vec!["X".to_owned()], ..Meta::default() };
    builder.to_bytes(meta).unwrap()
}

fn open(bytes: Vec<u8>) -> canonym_core::Result<KnowledgeBase> {
    KnowledgeBase::from_vec(bytes, "shapes.kb")
}

fn check(records: Vec<ConceptRecord>, expected: Expect) {
    let kb = open(compile(records)).unwrap();
    let mut text = String::new();
    for concept in kb.concepts() {
        text += &format!("{} ({}) {}\n", kb.id(concept), kb.raw_id(concept), kb.preferred_name(concept));
        for name in kb.names(concept) {
            let form = kb.forms().get(kb.form_of(name).0 as usize);
            text += &format!("  {:?} {} [{form}]\n", kb.scope(name), kb.name(name));
            assert_eq!(kb.concept_of(name), concept);
            assert!(kb.names_of_form(kb.form_of(name)).any(|other| other == name));
        }
        let listed = [
            ("types", kb.types(concept).collect::<Vec<_>>().join(", ")),
            ("definition", kb.definition(concept).unwrap_or_default().to_owned()),
            ("parents", kb.parents(concept).map(|parent| kb.id(parent)).collect::<Vec<_>>().join(", ")),
            ("alternatives", kb.alternative_ids(concept).collect::<Vec<_>>().join(", ")),
            ("source", kb.source(concept).to_owned()),
        ];
        for (what, value) in listed.iter().filter(|(_, value)| !value.is_empty()) {
            text += &format!("  {what}: {value}\n");
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn fragments_of_a_concept_become_one() {
    check(
        shapes(),
        expect![[r#"
            X:1 (1) Circle
              Preferred Circle [circle]
              Exact round [round]
              Exact Disk [disk]
              Related bend [bend]
              Exact ring shape [ring shape]
              types: Curve, Plane
              definition: All points at one distance.
              parents: X:9
              alternatives: OLD:3, OLD:7
              source: geo
            X:10|Y:2 (10|Y:2) Ring Shape
              Preferred Ring Shape [ring shape]
            X:9 (9) figure
              Preferred figure [figure]
              Exact plane figure [plane figure]
              definition: What can be drawn.
        "#]],
    );
}

#[test]
fn concepts_are_found_by_every_id() {
    let kb = open(compile(shapes())).unwrap();
    let found = |id: &str| kb.find(id).map(|concept| kb.id(concept).to_owned());
    assert_eq!(found("X:1").as_deref(), Some("X:1"));
    assert_eq!(found("OLD:3").as_deref(), Some("X:1"));
    assert_eq!(found("9").as_deref(), Some("X:9"));
    assert_eq!(found("X:10|Y:2").as_deref(), Some("X:10|Y:2"));
    assert_eq!([found("X:5"), found(""), found("Circle")], [None, None, None]);
}

#[test]
fn what_is_dropped_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = KnowledgeBaseBuilder::new();
    for record in shapes() {
        builder.add(record).unwrap();
    }
    builder.add(record(" ", &["=Nobody"])).unwrap();
    builder.add(record("X:1", &["~ ", &format!("~{}", "long ".repeat(300))])).unwrap();
    let (meta, report) = builder.write(Meta::default(), &folder.path().join("shapes.kb")).unwrap();
    let lines: Vec<String> =
        report.dropped.iter().map(|((kind, reason), n)| format!("{n} {kind}: {reason}\n")).collect();
    expect![[r#"
        1 concept: empty id
        1 concept: no name
        1 name: duplicate within its concept
        1 name: empty
        1 name: longer than 1,000 bytes
        1 parent: not in the knowledge base
    "#]]
    .assert_eq(&lines.concat());
    assert_eq!((meta.n_concepts, meta.n_names), (3, 8));
}

#[test]
fn nothing_to_compile_is_an_error_and_writes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.kb");
    let error = KnowledgeBaseBuilder::new().write(Meta::default(), &path).unwrap_err();
    assert_eq!(error.to_string(), "no concepts to compile: none has a name");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Records with names that share words and forms.
fn records(n: usize) -> Vec<ConceptRecord> {
    let colours = ["red", "Blue", "grün", "violet"];
    let name = |row: usize| format!("{} shape {}", colours[row % 4], row % 61);
    (0..n)
        .map(|row| record(&format!("X:{row}"), &[&format!("={}", name(row)), &format!("~{}", name(row * 7))]))
        .collect()
}

#[test]
fn equal_input_gives_equal_bytes_with_any_number_of_threads() {
    let bytes: Vec<Vec<u8>> = [1, 2, 7]
        .iter()
        .map(|n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(*n_threads).build().unwrap();
            pool.install(|| compile(records(700)))
        })
        .collect();
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}

#[test]
fn a_file_and_its_bytes_in_memory_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shapes.kb");
    let mut builder = KnowledgeBaseBuilder::new();
    records(50).into_iter().for_each(|record| builder.add(record).unwrap());
    let meta = Meta { name: "shapes".to_owned(), added_prefixes: vec!["X".to_owned()], ..Meta::default() };
    builder.write(meta, &path).unwrap();
    assert!(std::fs::read(&path).unwrap() == compile(records(50)));
    let kb = KnowledgeBase::open(&path).unwrap();
    assert_eq!((kb.n_concepts(), kb.container().verify().is_ok()), (50, true));
}

#[test]
fn changed_bytes_and_cut_files_are_errors() {
    let whole = compile(shapes());
    let used = {
        let container = Container::from_vec(whole.clone(), Path::new("shapes.kb"), KIND).unwrap();
        let ranges: Vec<_> = container.sections().iter().map(|(name, _)| container.range(name).unwrap()).collect();
        move |at: usize| ranges.iter().any(|range| range.contains(&at))
    };
    // A prime step visits every section and every place of a number in turn.
    for at in (0..whole.len()).step_by(1009).filter(|at| *at < 64 || used(*at)) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        assert!(open(changed).is_err(), "byte {at}");
    }
    for len in (0..whole.len()).step_by(4099) {
        assert!(open(whole[..len].to_vec()).is_err(), "length {len}");
    }
}

#[test]
fn foreign_and_newer_files_are_named() {
    let wrapped = |kind: ArtifactKind| {
        let mut writer = ContainerWriter::new(kind, Cursor::new(Vec::new())).unwrap();
        writer.section("meta", [&b"{}"[..]]).unwrap();
        open(writer.finish().unwrap().into_inner()).unwrap_err().to_string()
    };
    let newer = wrapped(ArtifactKind { format: KIND.format + 1, ..KIND });
    assert!(newer.contains(&format!("it has format {}", KIND.format + 1)), "{newer}");
    assert!(wrapped(ArtifactKind { tag: *b"ELSE", ..KIND }).contains("not a compiled knowledge base"));
    assert!(wrapped(KIND).contains("it has no section"));
    assert!(open(b"id\tname\n".repeat(20)).unwrap_err().to_string().contains("not a compiled knowledge base"));
}

/// A container of valid checksums whose sections, but for the metadata, hold what `fill` makes of them.
fn refilled(whole: &[u8], mut fill: impl FnMut(&str, &[u8]) -> Vec<u8>) -> Vec<u8> {
    let container = Container::from_vec(whole.to_vec(), Path::new("shapes.kb"), KIND).unwrap();
    let mut writer = ContainerWriter::new(KIND, Cursor::new(Vec::new())).unwrap();
    for (name, _) in container.sections() {
        let old = &container.bytes()[container.range(&name).unwrap()];
        let new = if name == "meta" { old.to_vec() } else { fill(&name, old) };
        writer.section(&name, [&new[..]]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// `len` bytes of numbers below `below`, little-endian.
fn noise(len: usize, below: u64, rng: &mut SplitMix64) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..len.div_ceil(4)).flat_map(|_| ((rng.next_u64() % below) as u32).to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Asks everything that a knowledge base can be asked.
fn ask_everything(kb: KnowledgeBase) {
    let far = [0, 1, 7, kb.n_names() as u32, u32::MAX / 4, u32::MAX - 1, u32::MAX];
    let rows: Vec<u32> = (0..kb.n_concepts().max(kb.n_forms()) as u32).chain(far).collect();
    let mut n_seen = 0;
    for row in rows {
        let (concept, name, form) = (ConceptId(row), NameId(row), FormId(row));
        n_seen += kb.id(concept).len() + kb.raw_id(concept).len() + kb.preferred_name(concept).len();
        n_seen += kb.names(concept).count() + kb.types(concept).count() + kb.parents(concept).count();
        n_seen += kb.alternative_ids(concept).count() + kb.source(concept).len() + children(&kb, concept).len();
        n_seen += kb.definition(concept).map_or(0, str::len);
        n_seen += kb.name(name).len() + kb.scope(name) as usize + kb.form_of(name).0 as usize;
        assert!(kb.concept_of(name).0 < kb.n_concepts().max(1) as u32);
        n_seen += kb.names_of_form(form).count() + kb.tokens_of_form(form).count() + kb.forms().get(row as usize).len();
        n_seen += kb.token_df(row) as usize + (kb.token_hash_at(row) ^ kb.token_root(row)) as usize % 2;
        n_seen +=
            usize::from(kb.token_row(u64::from(row) << 30).is_some()) + usize::from(kb.knows_root(u64::from(row)));
        n_seen += kb.keys().get(u64::from(row) << 32).len() + kb.roots().get(u64::MAX - u64::from(row)).len();
    }
    for query in ["circle", "ring shape", "X:1", "", "z", "a b c d e f 😀"] {
        n_seen += kb.find(query).is_some() as usize + kb.find_form(query).is_some() as usize;
        n_seen += search(&kb, query, 20).len() + nearest_ids(&kb, query, 5).len();
        n_seen += kb.grams().search(query, 9, &mut GramScratch::default()).len();
    }
    let linker = LexicalLinker::new(kb.into(), LexicalModel::embedded(), LinkConfig::default());
    n_seen += linker.link_names(&["circle", "Ring shapes", "", "😀"]).len();
    assert!(n_seen > 0);
}

#[test]
fn both_layouts_of_names_answer_alike() {
    let words = ["ring", "shape", "bent", "curve", "of", "the", "plane", "3", "bends", "café"];
    let name = |at: usize| format!("~{} {} {}", words[at % 10], words[at / 10 % 10], words[at * 7 / 3 % 10]);
    let records =
        || (0..200).map(|at| record(&format!("X:{at}"), &[&name(at), &name(3 * at + 1), "~Ring, shape"])).collect();
    let (whole, words) = (open(compile(records())).unwrap(), open(by_words(records())).unwrap());
    assert!(words.container().range("form.text").is_err() && whole.container().range("word.text").is_err());
    assert_eq!((whole.n_forms(), whole.n_names()), (words.n_forms(), words.n_names()));
    for row in 0..whole.n_forms() {
        let form = whole.forms().get(row);
        assert_eq!(words.forms().get(row), form);
        assert_eq!(words.find_form(&form), Some(FormId(row as u32)));
        let hashes = |kb: &KnowledgeBase| -> Vec<u64> {
            kb.tokens_of_form(FormId(row as u32)).map(|token| kb.token_hash_at(token)).collect()
        };
        assert_eq!(hashes(&words), hashes(&whole));
    }
    for row in 0..whole.n_tokens() {
        assert_eq!((words.token_df(row), words.token_hash_at(row)), (whole.token_df(row), whole.token_hash_at(row)));
    }
    let mut scratch = GramScratch::default();
    for query in ["ring shape", "rnig shpae", "bentcurve", "curv plane", "of the 3", "the", "zzz", ""] {
        let near = |kb: &KnowledgeBase, scratch: &mut GramScratch| -> Vec<f32> {
            kb.grams().search(query, 5, scratch).into_iter().map(|hit| hit.cosine).collect()
        };
        let (one, other) = (near(&whole, &mut scratch), near(&words, &mut scratch));
        assert_eq!(one.first(), other.first(), "{query}");
    }
    // More words than are marked.
    let long = "ri sh ".repeat(40);
    for query in [
        "ring",
        "ring sh",
        "sh ri",
        "3 cur b",
        "cafe",
        "ca be",
        "b b",
        "th o",
        "a",
        "shape ring shape",
        "be zzz",
        long.trim(),
    ] {
        let found = |kb: &KnowledgeBase| -> Vec<_> {
            search(kb, query, 300).into_iter().take_while(|hit| hit.kind <= MatchKind::Prefix).collect()
        };
        assert_eq!(found(&words), found(&whole), "{query}");
        assert!(!found(&words).is_empty() || ["a", "b b", "be zzz"].contains(&query), "{query}");
    }
}

#[test]
fn any_number_of_hits_can_be_asked_for() {
    for bytes in [compile(records(60)), by_words(records(60))] {
        let kb = open(bytes).unwrap();
        for query in ["shape", "blue", "violet shapes"] {
            let all = search(&kb, query, 1000);
            assert!((1..1000).contains(&all.len()), "{query}");
            assert_eq!(search(&kb, query, usize::MAX), all);
            let mut scratch = GramScratch::default();
            assert_eq!(
                kb.grams().search(query, usize::MAX, &mut scratch),
                kb.grams().search(query, 1000, &mut scratch)
            );
        }
    }
}

#[test]
fn a_form_of_a_million_long_words_takes_little_memory() {
    let lens = |first: usize, n: usize| Lengths::encode(std::iter::once(first).chain(std::iter::repeat_n(0, n - 1)));
    let whole = by_words(shapes());
    let n_forms = open(whole.clone()).unwrap().n_forms();
    let n_words =
        Container::from_vec(whole.clone(), Path::new("shapes.kb"), KIND).unwrap().range("word.df").unwrap().len() / 4;
    let (word_len, n_repeated) = (100_000, 1_000_000);
    let bytes = refilled(&whole, |name, old| match name {
        "word.at" => lens(word_len, n_words),
        "word.text" => b"circle s".iter().copied().cycle().take(word_len).collect(),
        "form.word.at" => lens(n_repeated, n_forms),
        "form.word.row" => vec![0; n_repeated],
        _ => old.to_vec(),
    });
    let kb = open(bytes).unwrap();
    assert!(kb.forms().get(0).len() < 3 * word_len);
    for query in ["circle", "circles"] {
        search(&kb, query, 20);
        kb.grams().search(query, 9, &mut GramScratch::default());
    }
}

#[test]
fn a_whole_file_answers_everything() {
    ask_everything(open(compile(records(60))).unwrap());
    ask_everything(open(by_words(records(60))).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn numbers_without_sense_do_no_harm(
        seed in any::<u64>(),
        below in prop::sample::select(vec![1u64, 3, 40, 5000, 1 << 32]),
        share in 1usize..5,
    ) {
        let mut rng = SplitMix64::new(seed);
        let whole = if seed % 2 == 0 { compile(shapes()) } else { by_words(shapes()) };
        let bytes = refilled(&whole, |_, old| match rng.below(share) {
            0 => noise(old.len(), below, &mut rng),
            _ => old.to_vec(),
        });
        ask_everything(open(bytes).unwrap());
    }

    #[test]
    fn sections_of_other_lengths_are_refused_or_do_no_harm(seed in any::<u64>()) {
        let mut rng = SplitMix64::new(seed);
        let whole = if seed % 2 == 0 { compile(shapes()) } else { by_words(shapes()) };
        let bytes = refilled(&whole, |_, old| match rng.below(30) {
            0 => noise(rng.below(40), 9, &mut rng),
            1 => old[..old.len() / 2].to_vec(),
            2 => [old, &[1, 0, 0, 0]].concat(),
            _ => old.to_vec(),
        });
        if let Ok(kb) = open(bytes) {
            ask_everything(kb);
        }
    }
}
