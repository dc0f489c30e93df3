//! What is called, and what each call promises beyond not to panic.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::path::Path;

use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader};
use canonym_core::eval::queries::{read_answers, read_queries, to_mentions};
use canonym_core::eval::ranking::Composite;
use canonym_core::input::{Input, Limits, Source};
use canonym_core::kb::KnowledgeBaseBuilder;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::sssom::{self, EXACT_MATCH};
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use canonym_core::kb::join::Mappings;
use canonym_core::text::abbreviations::{find_abbreviations, occurrences};
use canonym_core::text::composite::{coordinations, split_composite};
use canonym_core::text::normalise::{canonical, fold, root};
use canonym_core::text::offsets::OffsetMap;
use canonym_core::text::sentences::sentences;
use canonym_core::text::tokens::tokenize;
use canonym_core::text::{Span, biosyn};

use crate::hunt::without_values;
use crate::seeds::{corpus_seeds, import_seeds, input_seeds, table_names, text_seeds};
use crate::{knowledge, written};

/// A call with bytes; what it says of them tells one kind of input from another.
pub type Run = Box<dyn Fn(&[u8]) -> String>;

/// Something that takes bytes and says what it made of them.
pub struct Target {
    /// Its name on the command line.
    pub name: String,
    /// Inputs to start from.
    pub seeds: Vec<Vec<u8>>,
    /// Runs it on one input; a broken promise is a panic.
    pub run: Run,
}

/// Every target. New formats of the library are among them without a change here.
pub fn all() -> Vec<Target> {
    let mut targets = Vec::new();
    for format in CorpusFormat::ALL {
        let run = move |bytes: &[u8]| read_corpus(format, bytes);
        targets.push(target(&format!("corpus/{}", format.name()), corpus_seeds(), run));
    }
    for format in SourceFormat::ALL {
        let run = move |bytes: &[u8]| import(format, bytes);
        targets.push(target(&format!("import/{}", format.name()), import_seeds(format), run));
    }
    targets.push(target("detect", [corpus_seeds(), import_seeds(SourceFormat::Obo)].concat(), detect));
    targets.push(target("input", input_seeds(), read_input));
    targets.push(target(
        "queries",
        vec![
            b"7||0|9||Disease||fever|flu||D1|D2\n\x1e{\"query\":\"fever\",\"candidates\":[{\"id\":\"D1\"}]}\n".to_vec(),
        ],
        queries,
    ));
    targets.push(target(
        "sssom",
        vec![b"# head\nsubject_id\tpredicate_id\tobject_id\nX:1\tskos:exactMatch\tY:1\n".to_vec()],
        mappings,
    ));
    targets.push(target("text/abbreviations", text_seeds(), |bytes| on_text(bytes, abbreviations)));
    targets.push(target("text/composite", text_seeds(), |bytes| on_text(bytes, composites)));
    targets.push(target("text/tokens", text_seeds(), |bytes| on_text(bytes, tokens)));
    targets.push(target("text/offsets", text_seeds(), |bytes| on_text(bytes, offsets)));
    targets.push(target("text/biosyn", text_seeds(), |bytes| on_text(bytes, biosyn_names)));
    targets.extend(knowledge::targets());
    targets
}

/// A target over `run`.
pub fn target(name: &str, seeds: Vec<Vec<u8>>, run: impl Fn(&[u8]) -> String + 'static) -> Target {
    Target { name: name.to_owned(), seeds, run: Box::new(run) }
}

/// Documents hold spans that lie in their text, and what is written can be read again.
fn read_corpus(format: CorpusFormat, bytes: &[u8]) -> String {
    if format == CorpusFormat::Brat {
        return read_brat(bytes);
    }
    let reader = Input::from_bytes("input", bytes.to_vec()).and_then(|input| Reader::from_input(input, Some(format)));
    match reader {
        Ok(reader) => read_documents(reader, format, bytes.len()),
        Err(error) => error.to_string(),
    }
}

/// A text and its annotations, with 0x1e between them.
fn read_brat(bytes: &[u8]) -> String {
    let at = bytes.iter().position(|byte| *byte == 0x1e).unwrap_or(bytes.len());
    let annotations = bytes.get(at + 1..).unwrap_or_default();
    written::in_folder(|folder| {
        for (name, content) in [("a.txt", &bytes[..at]), ("a.ann", annotations)] {
            std::fs::write(folder.join(name), content).expect("a temporary file can be written");
        }
        match Reader::open(folder, Some(CorpusFormat::Brat)) {
            Ok(reader) => read_documents(reader, CorpusFormat::Brat, bytes.len()),
            Err(error) => without_values(&error.to_string().replace(&folder.display().to_string(), "")),
        }
    })
}

/// Reads all documents, in a way that `variant` chooses: offsets may be repaired, tags be of any scheme.
fn read_documents(reader: Reader, format: CorpusFormat, variant: usize) -> String {
    let tags = ["auto", "bio", "bioes", "bilou-strict"][variant / 2 % 4].parse().expect("these tags are known");
    let reader = reader.with_on_mismatch(OnMismatch::Drop).with_repairs(variant % 2 == 1).with_tags(tags);
    let mut said = BTreeSet::new();
    let mut documents = Vec::new();
    for item in reader {
        match item {
            Ok(read) => {
                check_document(&read);
                written::check(&read, format);
                said.insert(format!("a document with {}", words_for(&[read.annotations.len(), read.relations.len()])));
                documents.push(read);
            }
            Err(error) => {
                let text = error.to_string();
                // Folders have numbers in their names.
                let text = text.split_once("a.ann:").map_or(text.as_str(), |(_, text)| text);
                said.insert(without_values(text));
            }
        }
    }
    written::check_stream(&documents);
    Vec::from_iter(said).join(" ")
}

fn check_document(read: &AnnotatedDocument) {
    let text = &read.document.text;
    for section in &read.document.sections {
        assert!(
            text.get(section.span.start as usize..section.span.end as usize).is_some(),
            "a section lies in the text"
        );
    }
    for annotation in &read.annotations {
        assert!(!annotation.spans.is_empty(), "an annotation has a span");
        for span in &annotation.spans {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "a span lies in the text");
        }
        let in_order = annotation.spans.windows(2).all(|pair| pair[0].end <= pair[1].start);
        assert!(in_order, "the spans of an annotation are in text order");
    }
}

/// Records can be built; now and then they are.
fn import(format: SourceFormat, bytes: &[u8]) -> String {
    let names = table_names(format);
    let tables = bytes.splitn(names.len(), |byte| *byte == 0x1e).zip(names);
    let sources: Vec<Source> = tables.map(|(table, name)| Source::from_bytes(name, table.to_vec())).collect();
    let config = ImportConfig { prefix: Some("P".to_owned()), xrefs: true, ..ImportConfig::default() };
    let mut report = Report::default();
    let mut builder = KnowledgeBaseBuilder::new();
    let result = import_sources(format, &sources, &config, &mut report, &mut |record| builder.add(record));
    let drops: Vec<String> = report.dropped.keys().map(|(kind, reason)| format!("{kind} {reason}")).collect();
    let said = format!("{} {}", result.map_or_else(|error| error.to_string(), |()| "read".to_owned()), drops.join(" "));
    if bytes.len().is_multiple_of(64) && builder.n_names() > 0 {
        let built = builder.to_bytes(Meta::default()).expect("names can be compiled");
        knowledge::ask_everything(&knowledge::open(built).expect("what was compiled can be opened"));
    }
    said
}

fn detect(bytes: &[u8]) -> String {
    let source = SourceFormat::detect_content("input.txt", bytes).map(SourceFormat::name);
    let corpus = canonym_core::corpus::format::detect(Path::new("input"), bytes).map(CorpusFormat::name);
    format!("{source:?} {}", corpus.map_or_else(|error| error.to_string(), str::to_owned))
}

fn read_input(bytes: &[u8]) -> String {
    let limits = Limits { line: 1 << 16, expansion: 50, expansion_free: 1 << 20, ..Limits::DEFAULT };
    let source = Source::from_bytes("input", bytes.to_vec()).with_limits(limits);
    let members = match source.clone().members() {
        Ok(members) => members,
        Err(error) => return error.to_string(),
    };
    let mut said = format!("{} members ", members.len().min(2));
    for member in members.into_iter().chain([source]).take(8) {
        let lines = member.open().and_then(|mut input| {
            while input.next_line()?.is_some() {}
            Ok(())
        });
        said += &lines.map_or_else(|error| error.to_string(), |()| "read ".to_owned());
        if let Ok(input) = member.open() {
            std::io::copy(&mut input.take(1 << 22), &mut std::io::sink()).ok();
        }
    }
    said
}

fn queries(bytes: &[u8]) -> String {
    let (questions, answers) = match bytes.iter().position(|byte| *byte == 0x1e) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &b""[..]),
    };
    let questions = Input::from_bytes("queries", questions.to_vec()).and_then(|mut input| read_queries(&mut input));
    let answers = Input::from_bytes("answers", answers.to_vec()).and_then(|mut input| read_answers(&mut input));
    match (questions, answers) {
        (Ok(questions), Ok(answers)) => match to_mentions(&questions, &answers, Composite::All) {
            Ok(mentions) => format!("{} mentions", if mentions.is_empty() { "no" } else { "some" }),
            Err(error) => error.to_string(),
        },
        (Err(error), _) | (_, Err(error)) => error.to_string(),
    }
}

fn mappings(bytes: &[u8]) -> String {
    let (mut mappings, mut report) = (Mappings::default(), Report::default());
    let predicates = [EXACT_MATCH.to_owned()];
    let read = Input::from_bytes("mappings", bytes.to_vec())
        .and_then(|mut input| sssom::read(&mut input, &predicates, &mut mappings, &mut report));
    let drops: Vec<&str> = report.dropped.keys().map(|(_, reason)| reason.as_str()).collect();
    format!("{} {}", read.map_or_else(|error| error.to_string(), |()| "read".to_owned()), drops.join(" "))
}

fn on_text(bytes: &[u8], run: fn(&str) -> String) -> String {
    run(&String::from_utf8_lossy(bytes))
}

fn check_span(text: &str, span: Span) {
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "a span lies on character boundaries");
}

fn abbreviations(text: &str) -> String {
    let found = find_abbreviations(text);
    for one in &found {
        check_span(text, one.short);
        check_span(text, one.long);
    }
    let places = occurrences(text, &found).into_iter();
    let mut n_places = 0;
    for (span, row) in places {
        check_span(text, span);
        assert!(row < found.len(), "an occurrence belongs to a definition");
        n_places += 1;
    }
    words_for(&[found.len(), n_places])
}

fn composites(text: &str) -> String {
    let mut n_windows = 0;
    let mut n_readings = 0;
    for sentence in sentences(text) {
        check_span(text, sentence);
        for window in coordinations(text, sentence) {
            check_span(text, window);
            n_windows += 1;
            n_readings += split_composite(text, window).len();
        }
    }
    for reading in split_composite(text, Span::new(0, text.len())) {
        reading.iter().flat_map(|part| &part.spans).for_each(|span| check_span(text, *span));
        n_readings += 1;
    }
    words_for(&[n_windows, n_readings])
}

fn tokens(text: &str) -> String {
    let tokens = tokenize(text);
    let mut end = 0;
    for token in &tokens {
        check_span(text, token.span);
        assert!(token.span.start >= end && !token.span.is_empty(), "tokens stand in order and are not empty");
        end = token.span.end;
    }
    let folded = fold(text);
    assert!(!folded.starts_with(' ') && !folded.ends_with(' '), "folded text has no blanks at its ends");
    let n_roots =
        folded.split(' ').map(|token| root(&canonical(token)).into_owned()).filter(|root| !root.is_empty()).count();
    words_for(&[tokens.len(), n_roots])
}

fn offsets(text: &str) -> String {
    let map = OffsetMap::new(text);
    assert_eq!((map.n_chars(), map.n_utf16()), (text.chars().count(), text.encode_utf16().count()));
    let mut utf16 = 0;
    for (place, (at, letter)) in text.char_indices().enumerate() {
        assert_eq!((map.char_to_byte(place), map.byte_to_char(at)), (Some(at), Some(place)));
        assert_eq!((map.utf16_to_byte(utf16), map.byte_to_utf16(at)), (Some(at), Some(utf16)));
        utf16 += letter.len_utf16();
    }
    words_for(&[text.len(), map.n_utf16()])
}

fn biosyn_names(text: &str) -> String {
    let found = find_abbreviations(text);
    let table: HashMap<String, String> =
        found.iter().map(|one| (one.short.of(text).to_owned(), one.long.of(text).to_owned())).collect();
    let replaced = biosyn::replace_abbreviations(text, &table);
    let n_parts = biosyn::split_composite_query(text, 2).map_or(0, |parts| parts.len());
    let query = biosyn::normalise_query(&replaced, &HashMap::new());
    words_for(&[table.len(), n_parts, biosyn::normalise_name(&query).len()])
}

/// Numbers as words, coarse enough that inputs of one kind have the same.
pub fn words_for(numbers: &[usize]) -> String {
    let word = |number: &usize| match number {
        0 => "none",
        1 => "one",
        2..=4 => "few",
        5..=20 => "some",
        _ => "many",
    };
    numbers.iter().map(word).collect::<Vec<_>>().join(" ")
}
