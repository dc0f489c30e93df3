//! `ConceptMap/$translate`: codes of one system in another, by ids and cross-references of the knowledge base.
//!
//! The code may be one of the terminology, or one that its concepts refer to; then it is followed through these concepts.

use canonym_core::kb::code_system::{self as systems, canonical_id, coding_of_id};
use canonym_core::kb::translate::{PredicateMappings, Translator};
use canonym_core::kb::{ConceptId, KnowledgeBase, Predicate, XrefRecord};
use serde_json::{Value, json};

use super::Parameters;
use crate::error::{ApiError, ApiResult};

/// The maximum number of matches.
const MAX_MATCHES: usize = 1000;

/// Runs the operation: `system` and `code`, or `coding`, and optionally `targetsystem` or `target`.
pub fn translate(kb: &KnowledgeBase, parameters: &Parameters) -> ApiResult<Value> {
    let (system, code) = parameters.coding("system", "code")?;
    if parameters.flag("reverse") {
        return Err(
            ApiError::bad("`reverse` is not supported").hint("cross-references are followed in both directions")
        );
    }
    let target = parameters.text("targetsystem").or_else(|| {
        // The implicit value set of a system has all of its codes.
        parameters.text("target").map(|set| set.split("?fhir_vs").next().unwrap_or_default().to_owned())
    });
    let sources = sources(kb, &system, &code);
    if sources.is_empty() {
        let shown: String = code.chars().take(80).collect();
        return Ok(answer(&[], Some(format!("the code `{shown}` is unknown"))));
    }
    // A system without any code has none for this concept either.
    let to_target = |target: &String| Translator::new(kb, target, PredicateMappings::default()).ok();
    let translator = target.as_ref().map(to_target);
    let mut matches: Vec<Value> = Vec::new();
    let mut push = |kb: &KnowledgeBase, id: &str, display: Option<&str>, predicate: Predicate| {
        let mut concept = super::coding(coding_of_id(kb, &canonical_id(id)));
        if let Some(display) = display {
            concept["display"] = json!(display);
        }
        let is_itself = concept["system"] == system.as_str() && concept["code"] == code.as_str();
        let found = json!({"name": "match", "part": [
            {"name": "equivalence", "valueCode": equivalence(predicate)},
            {"name": "concept", "valueCoding": concept},
        ]});
        if !is_itself && matches.len() < MAX_MATCHES && !matches.contains(&found) {
            matches.push(found);
        }
    };
    for (concept, to_concept) in sources {
        let is_wanted = |system: &str| target.as_ref().is_none_or(|target| target == system);
        if is_wanted(&systems::coding(kb, concept).system) {
            push(kb, kb.id(concept), Some(kb.preferred_name(concept)), to_concept);
        }
        for XrefRecord { id, predicate } in codes(kb, concept, translator.as_ref().map(Option::as_ref)) {
            let known = kb.find(&id).map(|concept| kb.preferred_name(concept));
            push(kb, &id, known, composed(to_concept, predicate));
        }
    }
    let message = matches.is_empty().then(|| match &target {
        Some(target) => format!("no code in {} is known", target.chars().take(200).collect::<String>()),
        None => "no code in another system is known".to_owned(),
    });
    Ok(answer(&matches, message))
}

/// The concepts that a code stands for, and how the code relates to each.
fn sources(kb: &KnowledgeBase, system: &str, code: &str) -> Vec<(ConceptId, Predicate)> {
    if let Some(own) = systems::find(kb, system, code) {
        return vec![(own, Predicate::Exact)];
    }
    let mut found: Vec<(ConceptId, Predicate)> = Vec::new();
    for prefix in systems::prefixes_of(kb, system) {
        let id = if code.starts_with(&format!("{prefix}:")) { code.to_owned() } else { format!("{prefix}:{code}") };
        for (concept, predicate) in kb.concepts_with_xref(&id).take(MAX_MATCHES) {
            if !found.iter().any(|(known, _)| *known == concept) {
                found.push((concept, predicate.inverse()));
            }
        }
    }
    found.sort_by_key(|(concept, predicate)| (*predicate, *concept));
    found
}

/// The codes of a concept in the target system, or in all, without obsolete ones: alternative ids of its own system.
fn codes(kb: &KnowledgeBase, concept: ConceptId, target: Option<Option<&Translator>>) -> Vec<XrefRecord> {
    let own = systems::coding(kb, concept).system;
    let (obsolete, others): (Vec<&str>, Vec<&str>) =
        kb.alternative_ids(concept).partition(|id| coding_of_id(kb, id).system == own);
    let mut codes: Vec<XrefRecord> = match target {
        Some(translator) => translator.map(|translator| translator.codes(kb, concept)).unwrap_or_default(),
        None => {
            let others = others.iter().map(|id| XrefRecord { id: (*id).to_owned(), predicate: Predicate::Exact });
            let xrefs = kb.xrefs(concept).map(|xref| XrefRecord { id: xref.id.to_owned(), predicate: xref.predicate });
            others.chain(xrefs).collect()
        }
    };
    codes.retain(|code| !obsolete.iter().any(|id| canonical_id(id) == code.id));
    codes
}

/// The relation of a code to another one through a concept.
fn composed(one: Predicate, other: Predicate) -> Predicate {
    match (one, other) {
        (Predicate::Exact, other) => other,
        (one, Predicate::Exact) => one,
        (one, other) if one == other && one != Predicate::Xref => one,
        _ => Predicate::Related,
    }
}

/// How the target relates to the source, in the words of R4.
fn equivalence(predicate: Predicate) -> &'static str {
    match predicate {
        Predicate::Exact => "equivalent",
        Predicate::Broad => "wider",
        Predicate::Narrow => "narrower",
        Predicate::Close | Predicate::Xref | Predicate::Related => "relatedto",
    }
}

fn answer(matches: &[Value], message: Option<String>) -> Value {
    let mut out = vec![json!({"name": "result", "valueBoolean": !matches.is_empty()})];
    out.extend(message.map(|message| json!({"name": "message", "valueString": message})));
    out.extend(matches.iter().cloned());
    json!({"resourceType": "Parameters", "parameter": out})
}
