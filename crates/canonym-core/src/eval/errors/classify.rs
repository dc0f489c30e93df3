//! Pairs predictions with gold annotations and classifies the pairs.

use std::collections::{HashMap, HashSet};

use super::{Case, CaseCandidate, CaseSide, ErrorClass, MAX_CANDIDATES, NOWHERE_IN_GOLD, Terminology};
use crate::corpus::{AnnotatedDocument, Annotation};
use crate::eval::ids::{IdPolicy, IdSet};
use crate::eval::overlap::{length, overlaps, shared};
use crate::eval::{DocumentPair, Entry};
use crate::text::Span;
use crate::text::normalise::fold;
use crate::text::offsets::OffsetMap;

/// Counts of the concepts that gold assigns to a folded text.
pub(super) struct GoldSurfaces {
    ids: HashMap<String, HashMap<String, u64>>,
    /// All ids in gold.
    known: HashSet<String>,
}

impl GoldSurfaces {
    pub(super) fn of(documents: &[DocumentPair], texts: &[String]) -> GoldSurfaces {
        let mut surfaces = GoldSurfaces { ids: HashMap::new(), known: HashSet::new() };
        for (document, text) in documents.iter().zip(texts) {
            let points = OffsetMap::new(text);
            for entry in &document.gold {
                let ids = surfaces.ids.entry(fold(&surface(text, &points, &entry.spans))).or_default();
                for id in entry.ids.iter() {
                    *ids.entry(id.to_owned()).or_default() += 1;
                    surfaces.known.insert(id.to_owned());
                }
            }
        }
        surfaces
    }

    /// Whether gold assigns one of `ids` to `form`.
    fn gives(&self, form: &str, ids: &IdSet) -> bool {
        // Formats without texts have empty forms, which match nothing.
        !form.is_empty() && self.ids.get(form).is_some_and(|given| ids.iter().any(|id| given.contains_key(id)))
    }
}

/// The text of `spans`, given in code points; pieces are joined by a space.
pub(super) fn surface(text: &str, points: &OffsetMap<'_>, spans: &[Span]) -> String {
    let part = |span: &Span| {
        let start = points.char_to_byte(span.start as usize).unwrap_or(text.len());
        &text[start..points.char_to_byte(span.end as usize).unwrap_or(text.len())]
    };
    spans.iter().map(part).collect::<Vec<&str>>().join(" ")
}

/// Indices of a paired gold annotation and prediction; one may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Match {
    gold: Option<usize>,
    predicted: Option<usize>,
}

/// Classifies cases.
pub(super) struct Classifier<'a> {
    terminology: Option<&'a Terminology<'a>>,
    /// The predicted annotations of each document, in the order of the entries of its pair.
    predicted: HashMap<&'a str, Vec<&'a Annotation>>,
    /// Names from candidates, for ids without a terminology.
    names: HashMap<String, &'a str>,
    surfaces: GoldSurfaces,
    policy: IdPolicy,
}

impl<'a> Classifier<'a> {
    pub(super) fn new(
        terminology: Option<&'a Terminology<'a>>,
        documents: &'a [AnnotatedDocument],
        surfaces: GoldSurfaces,
        policy: IdPolicy,
    ) -> Classifier<'a> {
        let mut predicted: HashMap<&str, Vec<&Annotation>> = HashMap::new();
        let mut names = HashMap::new();
        for document in documents {
            predicted.entry(document.document.id.as_str()).or_default().extend(&document.annotations);
            // Names from the terminology have priority.
            let named = document.annotations.iter().filter(|_| terminology.is_none());
            for candidate in named.flat_map(|annotation| &annotation.candidates) {
                for id in IdSet::parse_one(&candidate.id).iter().filter(|_| !candidate.name.is_empty()) {
                    names.entry(id.to_owned()).or_insert(candidate.name.as_str());
                }
            }
        }
        Classifier { terminology, predicted, names, surfaces, policy }
    }

    /// The cases of a document, in text order.
    pub(super) fn cases(&self, document: &DocumentPair, text: &str) -> Vec<Case> {
        let points = OffsetMap::new(text);
        let annotations = self.predicted.get(document.id.as_str()).map_or(&[][..], Vec::as_slice);
        let context = DocumentContext { document, annotations, text, points };
        let mut matches = match_up(document, self.policy);
        let spans_of = |found: &Match| {
            let gold = found.gold.map(|row| document.gold[row].spans.as_slice());
            gold.or(found.predicted.map(|row| document.predicted[row].spans.as_slice())).map(<[Span]>::to_vec)
        };
        matches.sort_by_cached_key(|found| (spans_of(found), found.gold, found.predicted));
        matches.into_iter().map(|found| self.case(&context, found)).collect()
    }

    fn case(&self, context: &DocumentContext<'_>, found: Match) -> Case {
        let gold = found.gold.map(|row| &context.document.gold[row]);
        let predicted = found.predicted.map(|row| &context.document.predicted[row]);
        let annotation = found.predicted.and_then(|row| context.annotations.get(row).copied());
        let rank = gold.zip(predicted).and_then(|(gold, predicted)| {
            predicted.candidates.iter().position(|candidate| self.policy.matches(&gold.ids, candidate))
        });
        let (class, reason) = match (gold, predicted) {
            (Some(gold), Some(predicted)) if !predicted.ids.is_nil() => {
                self.classify_pair(context, gold, predicted, rank)
            }
            (Some(gold), abstained) => self.classify_gold(context, gold, abstained.is_some()),
            (None, Some(predicted)) => self.classify_prediction(context, predicted),
            (None, None) => (ErrorClass::Correct, ""),
        };
        let candidates = annotation.map_or(&[][..], |annotation| &annotation.candidates).iter().take(MAX_CANDIDATES);
        let considered = |candidate: &crate::corpus::CandidateRecord| CaseCandidate {
            id: candidate.id.clone(),
            name: candidate.name.clone(),
            score: candidate.score(),
            is_gold: gold.is_some_and(|gold| self.policy.matches(&gold.ids, &IdSet::parse_one(&candidate.id))),
        };
        Case {
            document: context.document.id.clone(),
            class,
            reason: reason.to_owned(),
            gold: gold.map(|entry| self.side(context, entry)),
            predicted: predicted.map(|entry| CaseSide {
                score: annotation.and_then(|annotation| annotation.score),
                ..self.side(context, entry)
            }),
            candidates: candidates.map(considered).collect(),
            gold_rank: rank.map(|rank| rank as u64 + 1),
        }
    }

    fn side(&self, context: &DocumentContext<'_>, entry: &Entry) -> CaseSide {
        let owned = |set: &IdSet| set.iter().map(str::to_owned).collect::<Vec<String>>();
        CaseSide {
            spans: entry.spans.iter().map(|span| (span.start, span.end)).collect(),
            text: context.surface(entry),
            ids: owned(&entry.ids),
            names: entry.ids.iter().map(|id| self.name(id).unwrap_or_default()).collect(),
            types: owned(&entry.types),
            score: None,
        }
    }

    fn name(&self, id: &str) -> Option<String> {
        match self.terminology {
            Some(terminology) => (terminology.name)(id),
            None => self.names.get(id).map(|&name| name.to_owned()),
        }
    }

    /// Whether the terminology has one of `ids`; true without a terminology.
    fn has(&self, ids: &IdSet) -> bool {
        self.terminology.is_none_or(|terminology| ids.iter().any(|id| (terminology.name)(id).is_some()))
    }

    /// Whether `form` is a name of one of `ids`; `None` without a terminology.
    fn has_name(&self, form: &str, ids: &IdSet) -> Option<bool> {
        if form.is_empty() {
            return None;
        }
        let concepts = (self.terminology?.concepts_of_form)(form);
        Some(concepts.iter().any(|concept| concept.intersects(ids)))
    }

    fn classify_pair(
        &self,
        context: &DocumentContext<'_>,
        gold: &Entry,
        predicted: &Entry,
        rank: Option<usize>,
    ) -> (ErrorClass, &'static str) {
        let same_spans = gold.spans == predicted.spans;
        if self.policy.matches(&gold.ids, &predicted.ids) {
            return match same_spans {
                false => (ErrorClass::Boundary, boundary_reason(gold, predicted)),
                true if types_agree(gold, predicted) => (ErrorClass::Correct, ""),
                true => (ErrorClass::Type, ""),
            };
        }
        if !self.has(&gold.ids) {
            return (ErrorClass::NotInTerminology, "another concept was linked");
        }
        let form = fold(&context.surface(gold));
        let named = self.has_name(&form, &gold.ids);
        if same_spans && named == Some(true) {
            return (ErrorClass::WrongSense, "the text is also a name of the gold concept");
        }
        if self.surfaces.gives(&fold(&context.surface(predicted)), &predicted.ids) {
            return (ErrorClass::GoldDoubtful, "gold links this text to the predicted concept elsewhere");
        }
        if same_spans && rank.is_some() {
            return (ErrorClass::WrongSense, "the gold concept was a candidate");
        }
        match named {
            Some(false) => (ErrorClass::MissingName, "another concept was linked"),
            _ if same_spans => (ErrorClass::WrongConcept, ""),
            _ => (ErrorClass::WrongConcept, "the span also differs"),
        }
    }

    fn classify_gold(
        &self,
        context: &DocumentContext<'_>,
        gold: &Entry,
        abstained: bool,
    ) -> (ErrorClass, &'static str) {
        let reason = if abstained { "left unlinked" } else { "" };
        if !self.has(&gold.ids) {
            return (ErrorClass::NotInTerminology, reason);
        }
        match self.has_name(&fold(&context.surface(gold)), &gold.ids) {
            Some(false) => (ErrorClass::MissingName, reason),
            _ => (ErrorClass::Missed, reason),
        }
    }

    fn classify_prediction(&self, context: &DocumentContext<'_>, predicted: &Entry) -> (ErrorClass, &'static str) {
        let form = fold(&context.surface(predicted));
        let here = |gold: &&Entry| gold.ids.intersects(&predicted.ids) && fold(&context.surface(gold)) == form;
        if !form.is_empty() && context.document.gold.iter().any(|gold| here(&gold)) {
            return (ErrorClass::GoldDoubtful, "gold links this text to this concept elsewhere in the document");
        }
        if self.surfaces.gives(&form, &predicted.ids) {
            return (ErrorClass::GoldDoubtful, "gold links this text to this concept in another document");
        }
        let mut ids = predicted.ids.iter();
        if ids.any(|id| self.surfaces.known.contains(id) && self.name(id).is_some_and(|name| fold(&name) == form)) {
            return (ErrorClass::GoldDoubtful, "the text is the preferred name of a concept found elsewhere in gold");
        }
        let overlapping = context.document.gold.iter().find(|gold| shares_text(gold, predicted));
        match overlapping {
            Some(gold) if gold.ids.is_nil() => (ErrorClass::Spurious, "gold has no concept here (NIL)"),
            Some(_) => (ErrorClass::Spurious, "another prediction matches this gold mention"),
            None if !predicted.ids.iter().any(|id| self.surfaces.known.contains(id)) => {
                (ErrorClass::Spurious, NOWHERE_IN_GOLD)
            }
            None => (ErrorClass::Spurious, "gold uses this concept only for other texts"),
        }
    }
}

/// A document while its cases are built.
struct DocumentContext<'a> {
    document: &'a DocumentPair,
    annotations: &'a [&'a Annotation],
    text: &'a str,
    points: OffsetMap<'a>,
}

impl DocumentContext<'_> {
    fn surface(&self, entry: &Entry) -> String {
        surface(self.text, &self.points, &entry.spans)
    }
}

fn shares_text(gold: &Entry, predicted: &Entry) -> bool {
    shared(&gold.spans, &predicted.spans) > 0
}

fn types_agree(gold: &Entry, predicted: &Entry) -> bool {
    gold.types.is_empty() || predicted.types.is_empty() || gold.types.intersects(&predicted.types)
}

fn boundary_reason(gold: &Entry, predicted: &Entry) -> &'static str {
    let common = shared(&gold.spans, &predicted.spans);
    match (common == length(&gold.spans), common == length(&predicted.spans)) {
        (true, false) => "the prediction is longer",
        (false, true) => "the prediction is shorter",
        _ => "the spans partly overlap",
    }
}

/// Pairs gold annotations and predictions one to one, best agreement first.
fn match_up(document: &DocumentPair, policy: IdPolicy) -> Vec<Match> {
    let gold_rows: Vec<usize> = unique(&document.gold).filter(|&row| !document.gold[row].ids.is_nil()).collect();
    let predicted_rows: Vec<usize> = unique(&document.predicted).collect();
    let gold_spans: Vec<&[Span]> = gold_rows.iter().map(|&row| document.gold[row].spans.as_slice()).collect();
    let predicted_spans: Vec<&[Span]> =
        predicted_rows.iter().map(|&row| document.predicted[row].spans.as_slice()).collect();
    let tier = |gold: &Entry, predicted: &Entry| {
        let same_spans = gold.spans == predicted.spans;
        let same_concept = policy.matches(&gold.ids, &predicted.ids);
        match (same_spans, same_concept) {
            (true, true) if types_agree(gold, predicted) => Some(0),
            (true, true) => Some(1),
            (false, true) => Some(2),
            (true, false) if !predicted.ids.is_nil() => Some(3),
            (false, false) if !predicted.ids.is_nil() => Some(4),
            (true, false) => Some(5),
            (false, false) => None,
        }
    };
    let pairs = overlaps(&gold_spans, &predicted_spans, |_, _| true);
    let mut ranked: Vec<(u8, u64, usize, usize)> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let (row, column) = (gold_rows[pair.gold], predicted_rows[pair.predicted]);
        if let Some(tier) = tier(&document.gold[row], &document.predicted[column]) {
            ranked.push((tier, u64::MAX - pair.shared, row, column));
        }
    }
    ranked.sort_unstable();
    let (mut gold_taken, mut predicted_taken) = (HashSet::new(), HashSet::new());
    let mut matches = Vec::with_capacity(gold_rows.len() + predicted_rows.len());
    for (_, _, row, column) in ranked {
        if !gold_taken.contains(&row) && !predicted_taken.contains(&column) {
            gold_taken.insert(row);
            predicted_taken.insert(column);
            matches.push(Match { gold: Some(row), predicted: Some(column) });
        }
    }
    let left_gold = gold_rows.into_iter().filter(|row| !gold_taken.contains(row));
    matches.extend(left_gold.map(|row| Match { gold: Some(row), predicted: None }));
    let linked = |row: &usize| !predicted_taken.contains(row) && !document.predicted[*row].ids.is_nil();
    let left = predicted_rows.into_iter().filter(linked);
    matches.extend(left.map(|row| Match { gold: None, predicted: Some(row) }));
    matches
}

/// Index of the first of all entries with the same spans and ids.
fn unique(entries: &[Entry]) -> impl Iterator<Item = usize> {
    let mut seen = HashSet::new();
    let rows = entries.iter().enumerate();
    rows.filter(move |(_, entry)| seen.insert((&entry.spans, entry.ids.sorted()))).map(|(row, _)| row)
}
