//! The tools: what each is for, its schemas, and its computation.

use std::sync::Arc;

use canonym_core::corpus::{AnnotatedDocument, Annotation, contexts};
use canonym_core::kb::search::{MatchKind, children, nearest_ids, search};
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::numbers::rounded;
use canonym_core::text::Document;
use canonym_core::text::offsets::OffsetMap;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shapes::{
    AnnotateArgs, AnnotatedOut, ConceptArgs, ConceptDetails, ConceptOut, ConceptRef, GroundArgs, GroundedOut,
    GroundedTerm, MentionOut, Scored, SearchArgs, SearchOut, SearchRow, Status, ValidateArgs, ValidatedId,
    ValidatedOut,
};
use crate::engine::{Engine, LinkOptions, check_kb};
use crate::error::{ApiError, ApiResult};
use crate::spans::to_pairs;

/// The maximum length of a text, in bytes.
const MAX_TEXT: usize = 2 << 20;

/// The maximum length of a term, query or ID, in bytes.
const MAX_TERM: usize = 500;

/// The maximum number of terms or IDs.
const MAX_TERMS: usize = 1000;

/// The maximum number of candidates or results.
const MAX_TOP_K: usize = 50;

/// The probability below which a term has no match.
const MIN_SCORE: f32 = 0.5;

/// Candidates below this probability are noise.
const MIN_CANDIDATE: f32 = 1e-3;

/// Names that are spelled less similarly to a query are no match.
const MIN_SIMILARITY: f32 = 0.5;

/// Similar IDs for an unknown one.
const MAX_SIMILAR: usize = 3;

/// The names of all tools, in the order of [`all`].
pub const NAMES: [&str; 5] = ["annotate_text", "ground_terms", "search_concepts", "get_concept", "validate_ids"];

/// All tools.
pub fn all() -> Vec<Tool> {
    vec![
        tool::<AnnotateArgs, AnnotatedOut>(
            NAMES[0],
            "Annotate a text",
            "Find mentions of biomedical concepts in a text and link each to a concept of the terminology.",
        ),
        tool::<GroundArgs, GroundedOut>(
            NAMES[1],
            "Ground terms",
            "Link terms that stand alone, such as the cells of a table, to concepts of the terminology.",
        ),
        tool::<SearchArgs, SearchOut>(
            NAMES[2],
            "Search concepts",
            "Search the terminology by name or ID, by spelling alone.",
        ),
        tool::<ConceptArgs, ConceptOut>(
            NAMES[3],
            "Get a concept",
            "Names, definition, types, parents and children of the concept with an ID.",
        ),
        tool::<ValidateArgs, ValidatedOut>(
            NAMES[4],
            "Validate IDs",
            "Check whether the terminology has IDs. Use it before you report an ID that no other tool returned.",
        ),
    ]
}

fn tool<A: JsonSchema + 'static, R: JsonSchema + 'static>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    Tool::new(name, description, Arc::new(JsonObject::new()))
        .with_input_schema::<A>()
        .with_output_schema::<R>()
        .with_title(title)
        .with_annotations(hints)
}

/// Runs the tool `name`, which must be one of [`NAMES`].
pub fn call(engine: &dyn Engine, name: &str, arguments: JsonObject) -> ApiResult<Value> {
    check_kb(engine)?;
    let done = match name {
        "annotate_text" => run(name, arguments, |arguments| annotate(engine, arguments)),
        "ground_terms" => run(name, arguments, |arguments| ground(engine, arguments)),
        "search_concepts" => run(name, arguments, |arguments| find(engine.kb(), &arguments)),
        "get_concept" => run(name, arguments, |arguments| concept(engine.kb(), &arguments)),
        _ => run(name, arguments, |arguments| validate(engine.kb(), arguments)),
    }?;
    // Nothing read from a modified knowledge base file is returned.
    check_kb(engine)?;
    Ok(done)
}

fn run<A: DeserializeOwned, R: Serialize>(
    name: &str,
    arguments: JsonObject,
    work: impl FnOnce(A) -> ApiResult<R>,
) -> ApiResult<Value> {
    let arguments = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let error: String = error.to_string().chars().take(300).collect();
        ApiError::bad(format!("invalid arguments of `{name}`: {error}")).hint("see the input schema of the tool")
    })?;
    Ok(serde_json::to_value(work(arguments)?)?)
}

fn annotate(engine: &dyn Engine, arguments: AnnotateArgs) -> ApiResult<AnnotatedOut> {
    let AnnotateArgs { text, top_k, min_score } = arguments;
    check_length("text", text.len(), MAX_TEXT)?;
    let options =
        LinkOptions { top_k: check_top_k(top_k, 3)?, min_score: check_score(min_score)?, ..LinkOptions::default() };
    let document = Document { id: "text".to_owned(), text, sections: Vec::new() };
    let linked = engine.link(vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }], &options)?;
    let mut mentions = Vec::new();
    for mut document in linked {
        contexts::add(&mut document);
        let map = OffsetMap::new(&document.document.text);
        mentions.extend(document.annotations.iter().map(|annotation| mention(&map, annotation)));
    }
    Ok(AnnotatedOut { mentions })
}

fn mention(map: &OffsetMap<'_>, annotation: &Annotation) -> MentionOut {
    let best = annotation.candidates.first().filter(|_| !annotation.nil);
    let candidate = |one: &canonym_core::corpus::CandidateRecord| Scored {
        id: one.id.clone(),
        name: one.name.clone(),
        score: rounded(one.score()),
        p_link: rounded(one.p_link),
    };
    let context = annotation.attributes.iter().filter(|attribute| contexts::is_context(attribute));
    MentionOut {
        text: annotation.text.clone(),
        spans: to_pairs(map, &annotation.spans).into_iter().map(|(start, end)| [start, end]).collect(),
        kind: annotation.semantic_type.clone(),
        status: status(best.is_some()),
        concept: best.map(|best| ConceptRef { id: best.id.clone(), name: best.name.clone() }),
        score: rounded(annotation.score.unwrap_or_default()),
        context: context.map(|attribute| attribute.value.clone()).collect(),
        candidates: annotation.candidates.iter().map(candidate).collect(),
    }
}

fn ground(engine: &dyn Engine, arguments: GroundArgs) -> ApiResult<GroundedOut> {
    let GroundArgs { terms, top_k, min_score } = arguments;
    check_list("terms", &terms)?;
    let top_k = check_top_k(top_k, 3)?;
    let min_score = check_score(min_score)?.unwrap_or(MIN_SCORE);
    let kb = engine.kb();
    let links = engine.map(&terms, &LinkOptions::top(top_k))?;
    let grounded = terms.into_iter().zip(links).map(|(term, link)| {
        let candidates: Vec<_> = link.candidates.iter().filter(|one| one.p_link >= MIN_CANDIDATE).collect();
        let best = candidates.first().filter(|best| !link.nil && best.p_link >= min_score);
        let scored = |one: &&canonym_core::link::Candidate| Scored {
            id: kb.id(one.concept).to_owned(),
            name: kb.preferred_name(one.concept).to_owned(),
            score: rounded(one.p_link),
            p_link: rounded(one.p_link),
        };
        GroundedTerm {
            term,
            status: status(best.is_some()),
            concept: best.map(|best| reference(kb, best.concept)),
            candidates: candidates.iter().map(scored).collect(),
        }
    });
    Ok(GroundedOut { results: grounded.collect() })
}

fn find(kb: &KnowledgeBase, arguments: &SearchArgs) -> ApiResult<SearchOut> {
    check_length("query", arguments.query.len(), MAX_TERM)?;
    let mut hits = search(kb, &arguments.query, check_top_k(arguments.top_k, 10)?);
    hits.retain(|hit| hit.kind != MatchKind::Fuzzy || hit.similarity >= MIN_SIMILARITY);
    let row = |hit: &canonym_core::kb::search::SearchHit| SearchRow {
        id: kb.id(hit.concept).to_owned(),
        name: kb.preferred_name(hit.concept).to_owned(),
        matched: kb.name(hit.name).to_owned(),
        how: hit.kind.name().to_owned(),
        types: kb.types(hit.concept).map(str::to_owned).collect(),
    };
    Ok(SearchOut { status: status(!hits.is_empty()), results: hits.iter().map(row).collect() })
}

fn concept(kb: &KnowledgeBase, arguments: &ConceptArgs) -> ApiResult<ConceptOut> {
    check_length("id", arguments.id.len(), MAX_TERM)?;
    let found = kb.find(arguments.id.trim());
    let details = found.map(|concept| {
        let name = kb.preferred_name(concept);
        ConceptDetails {
            id: kb.id(concept).to_owned(),
            name: name.to_owned(),
            synonyms: kb
                .names(concept)
                .map(|other| kb.name(other))
                .filter(|other| *other != name)
                .map(str::to_owned)
                .collect(),
            definition: kb.definition(concept).map(str::to_owned),
            types: kb.types(concept).map(str::to_owned).collect(),
            parents: kb.parents(concept).map(|parent| reference(kb, parent)).collect(),
            children: children(kb, concept).into_iter().map(|child| reference(kb, child)).collect(),
        }
    });
    Ok(ConceptOut {
        status: status(found.is_some()),
        concept: details,
        did_you_mean: if found.is_some() { Vec::new() } else { similar(kb, &arguments.id) },
    })
}

fn validate(kb: &KnowledgeBase, arguments: ValidateArgs) -> ApiResult<ValidatedOut> {
    check_list("ids", &arguments.ids)?;
    let check = |given: String| {
        let found = kb.find(given.trim());
        let did_you_mean = if found.is_some() { Vec::new() } else { similar(kb, &given) };
        ValidatedId { valid: found.is_some(), concept: found.map(|found| reference(kb, found)), given, did_you_mean }
    };
    let results: Vec<ValidatedId> = arguments.ids.into_iter().map(check).collect();
    Ok(ValidatedOut { all_valid: results.iter().all(|one| one.valid), results })
}

fn similar(kb: &KnowledgeBase, id: &str) -> Vec<ConceptRef> {
    nearest_ids(kb, id, MAX_SIMILAR).into_iter().map(|near| reference(kb, near)).collect()
}

fn reference(kb: &KnowledgeBase, concept: ConceptId) -> ConceptRef {
    ConceptRef { id: kb.id(concept).to_owned(), name: kb.preferred_name(concept).to_owned() }
}

fn status(is_found: bool) -> Status {
    if is_found { Status::Match } else { Status::NoMatch }
}

fn check_length(name: &str, length: usize, limit: usize) -> ApiResult<()> {
    match length <= limit {
        true => Ok(()),
        false => Err(ApiError::bad(format!("`{name}` may have at most {limit} bytes, not {length}"))),
    }
}

fn check_list(name: &str, list: &[String]) -> ApiResult<()> {
    if list.is_empty() || list.len() > MAX_TERMS {
        let message = format!("`{name}` must have between 1 and {MAX_TERMS} entries, not {}", list.len());
        return Err(ApiError::bad(message).hint("split the list into several calls"));
    }
    list.iter().try_for_each(|entry| check_length(&format!("an entry of `{name}`"), entry.len(), MAX_TERM))
}

fn check_top_k(top_k: Option<usize>, default: usize) -> ApiResult<usize> {
    match top_k {
        None => Ok(default),
        Some(top_k) if (1..=MAX_TOP_K).contains(&top_k) => Ok(top_k),
        Some(top_k) => Err(ApiError::bad(format!("`top_k` must be between 1 and {MAX_TOP_K}, not {top_k}"))),
    }
}

/// Rounded, because the engine caches one system per setting.
fn check_score(min_score: Option<f32>) -> ApiResult<Option<f32>> {
    match min_score {
        Some(score) if !(0.0..=1.0).contains(&score) => {
            Err(ApiError::bad(format!("`min_score` must be between 0 and 1, not {score}")))
        }
        _ => Ok(min_score.map(|score| (score * 100.0).round() / 100.0)),
    }
}
