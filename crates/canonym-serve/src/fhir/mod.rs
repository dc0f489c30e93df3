//! A subset of the FHIR R4 terminology service over one knowledge base: `$lookup`, `$validate-code`, `$subsumes`, `$expand` and
//! `$translate` by cross-references, and the statements about it.
//!
//! [`operate`] takes the parameters of an operation and returns a resource; it knows nothing of HTTP.

mod parameters;
mod statements;
mod translate;

pub use parameters::Parameters;
pub use statements::{capabilities, terminology_capabilities};

use std::collections::HashSet;

use canonym_core::kb::code_system::{self as systems, Coding};
use canonym_core::kb::search::{MatchKind, SearchHit, children, search};
use canonym_core::kb::subset::{Subset, SubsetConfig};
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::text::normalise::fold;
use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};

/// The maximum number of codes in an expansion.
const MAX_COUNT: usize = 1000;

/// The number of codes in an expansion, unless the request says otherwise.
const COUNT: usize = 100;

/// Codes that are examined for a filter within a part of the hierarchy.
const MAX_SEARCHED: usize = 2000;

/// The maximum length of a filter, in bytes.
const MAX_FILTER: usize = 500;

/// The similarity from which on a name matches a filter that is misspelt.
const MIN_SIMILARITY: f32 = 0.7;

/// Children beyond this number are left out of `$lookup`.
const MAX_CHILDREN: usize = 200;

/// The operations, as resource and name.
pub const OPERATIONS: [(&str, &str); 5] = [
    ("CodeSystem", "lookup"),
    ("CodeSystem", "validate-code"),
    ("CodeSystem", "subsumes"),
    ("ValueSet", "expand"),
    ("ConceptMap", "translate"),
];

/// Runs the operation `name` of a resource type; `now` is the current time.
pub fn operate(kb: &KnowledgeBase, resource: &str, name: &str, parameters: &Parameters, now: &str) -> ApiResult<Value> {
    match (resource, name) {
        ("CodeSystem", "lookup") => lookup(kb, parameters),
        ("CodeSystem", "validate-code") => validate(kb, parameters),
        ("CodeSystem", "subsumes") => subsumes(kb, parameters),
        ("ValueSet", "expand") => expand(kb, parameters, now),
        ("ConceptMap", "translate") => translate::translate(kb, parameters),
        _ => {
            let all: Vec<String> = OPERATIONS.iter().map(|(resource, name)| format!("{resource}/${name}")).collect();
            let asked: String = format!("{resource}/{name}").chars().take(80).collect();
            Err(ApiError::not_found(format!("`{asked}` is not supported"))
                .hint(format!("the operations are {}", all.join(", "))))
        }
    }
}

/// An error as OperationOutcome.
pub fn outcome(error: &ApiError) -> Value {
    let code = match error.status.as_u16() {
        401 => "login",
        403 => "forbidden",
        400 | 404 | 406 if error.message.ends_with("not supported") => "not-supported",
        404 => "not-found",
        413 => "too-long",
        429 => "throttled",
        500.. => "exception",
        _ => "invalid",
    };
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    json!({
        "resourceType": "OperationOutcome",
        "issue": [{"severity": "error", "code": code, "diagnostics": format!("{}{hint}", error.message)}],
    })
}

/// A Coding of FHIR.
fn coding(coding: Coding) -> Value {
    let mut value = json!({"system": coding.system, "code": coding.code});
    if !coding.version.is_empty() {
        value["version"] = json!(coding.version);
    }
    value
}

/// The concept of a code in `system`; `name` is the parameter of the code.
fn concept(kb: &KnowledgeBase, system: &str, code: &str) -> ApiResult<ConceptId> {
    check_system(kb, system)?;
    systems::find(kb, system, code).ok_or_else(|| {
        let shown: String = code.chars().take(80).collect();
        ApiError::not_found(format!("the code system {system} has no code `{shown}` here"))
            .hint("search by name with ValueSet/$expand?filter=…")
    })
}

fn check_system(kb: &KnowledgeBase, system: &str) -> ApiResult<()> {
    if systems::has(kb, system) {
        return Ok(());
    }
    let shown: String = system.chars().take(200).collect();
    let all: Vec<String> = systems::prefixes(kb).iter().map(|prefix| systems::uri(kb, prefix)).collect();
    Err(ApiError::not_found(format!("no code system `{shown}` here"))
        .hint(format!("this terminology has {}", all.join(", "))))
}

/// What is wrong with the version of the code system that a request about `concept` names.
fn wrong_version(kb: &KnowledgeBase, concept: ConceptId, parameters: &Parameters) -> Option<String> {
    let asked = parameters.version()?;
    let version = systems::coding(kb, concept).version;
    if asked == version {
        return None;
    }
    let asked: String = asked.chars().take(80).collect();
    Some(match version.is_empty() {
        true => format!("version `{asked}` not found: the release of this terminology is not known"),
        false => format!("version `{asked}` not found: this terminology has release {version}"),
    })
}

/// The code that replaces `code` of `system` if that is an obsolete code of `concept`.
fn replacement(kb: &KnowledgeBase, system: &str, code: &str, concept: ConceptId) -> Option<String> {
    let current = systems::coding(kb, concept);
    let local = |code: &str| code.rsplit(':').next().unwrap_or_default().to_lowercase();
    (current.system == system && local(&current.code) != local(code)).then_some(current.code)
}

fn lookup(kb: &KnowledgeBase, parameters: &Parameters) -> ApiResult<Value> {
    let (system, code) = parameters.coding("system", "code")?;
    let found = concept(kb, &system, &code)?;
    if let Some(message) = wrong_version(kb, found, parameters) {
        return Err(ApiError::not_found(message).hint("omit `version`"));
    }
    let display = kb.preferred_name(found);
    let mut out = vec![json!({"name": "name", "valueString": kb.meta().name})];
    let version = systems::coding(kb, found).version;
    if !version.is_empty() {
        out.push(json!({"name": "version", "valueString": version}));
    }
    out.push(json!({"name": "display", "valueString": display}));
    let others = kb.names(found).map(|name| kb.name(name)).filter(|name| *name != display);
    out.extend(others.map(|name| json!({"name": "designation", "part": [{"name": "value", "valueString": name}]})));
    let property = |name: &str, value: Value| {
        let mut part = json!({"name": "value"});
        let key = if ["parent", "child", "replaced-by"].contains(&name) { "valueCode" } else { "valueString" };
        part[key] = value;
        json!({"name": "property", "part": [{"name": "code", "valueCode": name}, part]})
    };
    if let Some(current) = replacement(kb, &system, &code, found) {
        let inactive = json!({"name": "value", "valueBoolean": true});
        out.push(json!({"name": "property", "part": [{"name": "code", "valueCode": "inactive"}, inactive]}));
        out.push(property("replaced-by", json!(current)));
    }
    out.extend(kb.definition(found).map(|definition| property("definition", json!(definition))));
    out.extend(kb.types(found).map(|kind| property("semantic-type", json!(kind))));
    out.extend(kb.parents(found).map(|parent| property("parent", json!(systems::coding(kb, parent).code))));
    let children = children(kb, found).into_iter().take(MAX_CHILDREN);
    out.extend(children.map(|child| property("child", json!(systems::coding(kb, child).code))));
    Ok(json!({"resourceType": "Parameters", "parameter": out}))
}

fn validate(kb: &KnowledgeBase, parameters: &Parameters) -> ApiResult<Value> {
    let (system, code) = parameters.coding("url", "code")?;
    check_system(kb, &system)?;
    let answer = |is_valid: bool, message: Option<String>, display: Option<&str>| {
        let mut out = vec![json!({"name": "result", "valueBoolean": is_valid})];
        out.extend(message.map(|message| json!({"name": "message", "valueString": message})));
        out.extend(display.map(|display| json!({"name": "display", "valueString": display})));
        json!({"resourceType": "Parameters", "parameter": out})
    };
    let Some(found) = systems::find(kb, &system, &code) else {
        let shown: String = code.chars().take(80).collect();
        return Ok(answer(false, Some(format!("the code `{shown}` is unknown")), None));
    };
    let display = kb.preferred_name(found);
    if let Some(message) = wrong_version(kb, found, parameters) {
        return Ok(answer(false, Some(message), None));
    }
    let wrong = parameters.text("display").filter(|given| {
        let folded = fold(given);
        !kb.names(found).any(|name| fold(kb.name(name)) == folded)
    });
    let message = wrong.map(|given| {
        let given: String = given.chars().take(80).collect();
        format!("`{given}` is not a name of this code")
    });
    let is_valid = message.is_none();
    let obsolete = replacement(kb, &system, &code, found)
        .map(|current| format!("the code is obsolete and was replaced by `{current}`"));
    let messages: Vec<String> = message.into_iter().chain(obsolete).collect();
    Ok(answer(is_valid, (!messages.is_empty()).then(|| messages.join("; ")), Some(display)))
}

fn subsumes(kb: &KnowledgeBase, parameters: &Parameters) -> ApiResult<Value> {
    let system = parameters.required("system")?;
    let of = |name: &str| concept(kb, &system, &parameters.required(name)?);
    let (a, b) = (of("codeA")?, of("codeB")?);
    if a != b && !kb.has_parents() {
        return Err(ApiError::bad("this terminology has no hierarchy, so $subsumes is not supported")
            .hint("build the knowledge base from a source with parents"));
    }
    let outcome = if a == b {
        "equivalent"
    } else if is_below(kb, b, a) {
        "subsumes"
    } else if is_below(kb, a, b) {
        "subsumed-by"
    } else {
        "not-subsumed"
    };
    Ok(json!({"resourceType": "Parameters", "parameter": [{"name": "outcome", "valueCode": outcome}]}))
}

/// Whether `ancestor` is above `concept`; cycles end.
fn is_below(kb: &KnowledgeBase, concept: ConceptId, ancestor: ConceptId) -> bool {
    let mut seen: HashSet<ConceptId> = HashSet::new();
    let mut waiting = vec![concept];
    while let Some(at) = waiting.pop() {
        for parent in kb.parents(at) {
            if parent == ancestor {
                return true;
            }
            if seen.insert(parent) {
                waiting.push(parent);
            }
        }
    }
    false
}

/// Whether a name that is only spelled similarly has the words of the filter, or the start of each, or is nearly the same.
fn is_match(kb: &KnowledgeBase, filter: &str, hit: &SearchHit) -> bool {
    let (filter, name) = (fold(filter), fold(kb.name(hit.name)));
    let has = |word: &str| name.split(' ').any(|other| other.starts_with(word));
    hit.kind != MatchKind::Fuzzy || hit.similarity >= MIN_SIMILARITY || filter.split(' ').all(has)
}

/// The implicit value sets of FHIR: all codes of a system, `URI?fhir_vs`, and those that a code subsumes,
/// `URI?fhir_vs=isa/CODE`. Without `url` all codes of the terminology.
fn expand(kb: &KnowledgeBase, parameters: &Parameters, now: &str) -> ApiResult<Value> {
    let url = parameters.text("url");
    let (system, subset) = match url.as_deref() {
        None => (None, None),
        Some(url) => {
            let Some((system, rest)) = url.split_once("?fhir_vs") else {
                let shown: String = url.chars().take(200).collect();
                return Err(ApiError::not_found(format!("no value set `{shown}` here"))
                    .hint("use SYSTEM?fhir_vs for all codes, or SYSTEM?fhir_vs=isa/CODE"));
            };
            check_system(kb, system)?;
            let subset = match rest.strip_prefix("=isa/") {
                Some(code) => {
                    let only_under = vec![kb.id(concept(kb, system, code)?).to_owned()];
                    Some(Subset::choose(kb, &SubsetConfig { only_under, ..SubsetConfig::default() })?)
                }
                None if rest.is_empty() => None,
                None => return Err(ApiError::bad("only `?fhir_vs` and `?fhir_vs=isa/CODE` are supported")),
            };
            (Some(system.to_owned()), subset)
        }
    };
    let count = parameters.number("count")?.unwrap_or(COUNT).min(MAX_COUNT);
    let offset = parameters.number("offset")?.unwrap_or(0);
    let filter = parameters.text("filter").filter(|filter| !filter.trim().is_empty());
    if filter.as_ref().is_some_and(|filter| filter.len() > MAX_FILTER) {
        return Err(ApiError::bad(format!("`filter` may have at most {MAX_FILTER} bytes")));
    }
    let is_wanted = |concept: &ConceptId| {
        subset.as_ref().is_none_or(|subset| subset.has(*concept))
            && system.as_ref().is_none_or(|system| systems::coding(kb, *concept).system == *system)
    };
    let (concepts, total): (Vec<ConceptId>, Option<usize>) = match &filter {
        Some(filter) => {
            let n = MAX_SEARCHED.min(offset.saturating_add(MAX_COUNT));
            let found =
                search(kb, filter, n).into_iter().filter(|hit| is_match(kb, filter, hit)).map(|hit| hit.concept);
            (found.filter(is_wanted).skip(offset).take(count).collect(), None)
        }
        None => {
            let total = kb.concepts().filter(is_wanted).count();
            (kb.concepts().filter(is_wanted).skip(offset).take(count).collect(), Some(total))
        }
    };
    let contains: Vec<Value> = concepts
        .into_iter()
        .map(|concept| {
            let mut coding = coding(systems::coding(kb, concept));
            coding["display"] = json!(kb.preferred_name(concept));
            coding
        })
        .collect();
    let mut given =
        vec![json!({"name": "count", "valueInteger": count}), json!({"name": "offset", "valueInteger": offset})];
    given.extend(filter.map(|filter| json!({"name": "filter", "valueString": filter})));
    let mut expansion = json!({"timestamp": now, "offset": offset, "parameter": given});
    if let Some(total) = total {
        expansion["total"] = json!(total);
    }
    // FHIR has no empty lists.
    if !contains.is_empty() {
        expansion["contains"] = json!(contains);
    }
    let mut set = json!({"resourceType": "ValueSet", "status": "active", "expansion": expansion});
    if let Some(url) = url {
        set["url"] = json!(url);
    }
    Ok(set)
}
