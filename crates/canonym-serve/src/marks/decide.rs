//! Decisions on marks, and what each of them changes.

use std::collections::{BTreeMap, HashSet};

use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::search::nearest_ids;
use canonym_core::text::Section;
use canonym_core::text::offsets::OffsetMap;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::context::{self, MentionContext};
use super::disagree::{SETTLE, fitness};
use super::predict::{Annotations, Reviewed};
use super::{Change, Changes, MarkState, Named, Source, State, span_pairs};
use crate::error::{ApiError, ApiResult};
use crate::spans::{Pairs, from_pairs, surface};
use crate::times::Millis;

/// The longest time recorded for a document.
const MAX_SECONDS: f64 = 24.0 * 3600.0;

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Decision {
    /// Adds an annotation.
    Add {
        /// Spans in code points, ends exclusive.
        #[schema(value_type = Vec<Vec<usize>>)]
        spans: Pairs,
        /// The semantic type.
        #[serde(default, rename = "type")]
        kind: Option<String>,
        /// The ID of the concept.
        #[serde(default)]
        concept: Option<String>,
        /// Whether no concept matches.
        #[serde(default)]
        is_nil: bool,
    },
    /// Accepts an annotation.
    Accept {
        /// The annotation.
        mark: i64,
    },
    /// Rejects an annotation.
    Reject {
        /// The annotation.
        mark: i64,
    },
    /// Links it to another concept.
    Concept {
        /// The annotation.
        mark: i64,
        /// The ID of the concept.
        concept: String,
    },
    /// Sets it to no matching concept.
    Nil {
        /// The annotation.
        mark: i64,
    },
    /// Marks it as unsure, or not.
    Unsure {
        /// The annotation.
        mark: i64,
        /// Whether it is unsure.
        value: bool,
    },
    /// Changes its boundaries.
    Spans {
        /// The annotation.
        mark: i64,
        /// Spans in code points, ends exclusive.
        #[schema(value_type = Vec<Vec<usize>>)]
        spans: Pairs,
    },
    /// Deletes an annotation that a person added.
    Delete {
        /// The annotation.
        mark: i64,
    },
    /// Changes its type.
    Type {
        /// The annotation.
        mark: i64,
        /// The semantic type.
        #[serde(rename = "type")]
        kind: String,
    },
    /// Sets its contexts.
    Context {
        /// The annotation.
        mark: i64,
        /// All its contexts; empty for a plain statement.
        contexts: Vec<MentionContext>,
    },
    /// Resolves a conflict between annotators.
    Settle {
        /// All annotations involved.
        marks: Vec<i64>,
        /// The mentions to keep; empty for "not a mention".
        keep: Vec<Keep>,
    },
    /// Finishes or reopens the document.
    Finish {
        /// Whether it is finished.
        value: bool,
        /// How many open predictions this accepts, as the client knows it; another number is a conflict. Required if there are any.
        #[serde(default)]
        accepts: Option<usize>,
        /// Seconds spent on the document without pauses, measured in the browser.
        #[serde(default)]
        seconds: Option<f64>,
    },
}

/// A mention of a resolved conflict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Keep {
    /// Spans in code points, ends exclusive.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub spans: Pairs,
    /// The ID of the concept.
    #[serde(default)]
    pub concept: Option<String>,
    /// Whether no concept matches.
    #[serde(default)]
    pub is_nil: bool,
}

impl Decision {
    /// The kind of its event.
    pub fn name(&self) -> &'static str {
        match self {
            Decision::Add { .. } => "add",
            Decision::Accept { .. } => "accept",
            Decision::Reject { .. } => "reject",
            Decision::Concept { .. } => "concept",
            Decision::Nil { .. } => "nil",
            Decision::Unsure { .. } => "unsure",
            Decision::Spans { .. } => "spans",
            Decision::Delete { .. } => "delete",
            Decision::Type { .. } => "type",
            Decision::Context { .. } => "context",
            Decision::Settle { .. } => SETTLE,
            Decision::Finish { .. } => "finish",
        }
    }

    /// Seconds spent on the document; at most a day, in case of a wrong clock.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Decision::Finish { value: true, seconds, .. } => seconds.map(|seconds| seconds.clamp(0.0, MAX_SECONDS)),
            _ => None,
        }
    }

    /// The marks concerned.
    pub fn marks(&self) -> &[i64] {
        match self {
            Decision::Add { .. } | Decision::Finish { .. } => &[],
            Decision::Settle { marks, .. } => marks,
            Decision::Accept { mark }
            | Decision::Reject { mark }
            | Decision::Nil { mark }
            | Decision::Delete { mark }
            | Decision::Concept { mark, .. }
            | Decision::Unsure { mark, .. }
            | Decision::Spans { mark, .. }
            | Decision::Type { mark, .. }
            | Decision::Context { mark, .. } => std::slice::from_ref(mark),
        }
    }
}

/// The state of a document while decisions are applied.
pub struct DocumentState<'a> {
    /// The terminology.
    pub kb: &'a KnowledgeBase,
    /// The text.
    pub text: &'a str,
    /// Its sections.
    pub sections: Vec<Section>,
    /// All its marks, hidden ones included.
    pub marks: BTreeMap<i64, MarkState>,
    /// Whether it is finished.
    pub is_finished: bool,
    /// The changes of the event that finished it; empty if it is open.
    pub last_finish_changes: Vec<Change>,
    /// The concepts that people proposed for the project, with their types.
    pub proposed: Vec<(Named, String)>,
    /// The user who decides.
    pub user: i64,
    /// The time of the decision.
    pub at: Millis,
    /// The number of the next mark.
    pub next_mark: i64,
}

impl DocumentState<'_> {
    /// Applies a decision and returns its changes.
    pub fn decide(&mut self, decision: &Decision) -> ApiResult<Changes> {
        let mut changes = Changes::default();
        match decision {
            Decision::Add { spans, kind, concept, is_nil } => {
                let mark = self.new_mark(spans, kind.as_deref(), concept.as_deref(), *is_nil)?;
                changes.marks.push(self.add_or_replace(mark, kind.is_some())?);
            }
            Decision::Finish { value, accepts, .. } => {
                changes.marks = if *value { self.accept_open(*accepts)? } else { self.reopen() };
                changes.finished = Some((self.is_finished, *value));
            }
            Decision::Accept { mark } => changes.marks.push(self.revise(*mark, |_| ())?),
            Decision::Reject { mark } => changes.marks.push(self.reject(*mark)?),
            Decision::Concept { mark, concept } => {
                let named = self.concept(concept)?;
                let change = self.revise(*mark, |mark| {
                    mark.concept = Some(named);
                    mark.is_nil = false;
                })?;
                changes.marks.push(change);
            }
            Decision::Nil { mark } => {
                let change = self.revise(*mark, |mark| {
                    mark.concept = None;
                    mark.is_nil = true;
                })?;
                changes.marks.push(change);
            }
            Decision::Unsure { mark, value } => {
                let before = self.get(*mark)?.clone();
                let after = MarkState { is_unsure: *value, at: self.at, by: Some(self.user), ..before.clone() };
                changes.marks.push(Change { id: *mark, before: Some(before), after: Some(after) });
            }
            Decision::Spans { mark, spans } => {
                let spans = from_pairs(&OffsetMap::new(self.text), spans)?;
                let text = surface(self.text, &spans);
                let change = self.revise(*mark, |mark| {
                    mark.spans = span_pairs(&spans);
                    mark.text = text;
                })?;
                changes.marks.push(change);
            }
            Decision::Type { mark, kind } => {
                let kind = checked_type(kind)?;
                changes.marks.push(self.revise(*mark, |mark| mark.kind = kind)?);
            }
            Decision::Context { mark, contexts } => {
                let contexts = context::checked(contexts).ok_or_else(|| {
                    ApiError::bad("these contexts exclude each other")
                        .hint("use one of negated and possible, and one of historical and hypothetical")
                })?;
                changes.marks.push(self.revise(*mark, |mark| mark.contexts = contexts)?);
            }
            Decision::Delete { mark } => changes.marks.push(self.delete(*mark)?),
            Decision::Settle { marks, keep } => changes.marks = self.settle(marks, keep)?,
        }
        self.drop_repeated(&mut changes);
        self.apply(&changes);
        Ok(changes)
    }

    /// Adds a mention. An unreviewed prediction with the same spans is changed instead.
    fn add_or_replace(&mut self, mark: MarkState, has_kind: bool) -> ApiResult<Change> {
        let same = self.marks.iter().find(|(_, other)| other.is_open() && other.spans == mark.spans);
        let Some(id) = same.map(|(id, _)| *id) else {
            self.next_mark += 1;
            return Ok(Change { id: self.next_mark - 1, before: None, after: Some(mark) });
        };
        self.revise(id, |other| {
            other.concept = mark.concept;
            other.is_nil = mark.is_nil;
            if has_kind {
                other.kind = mark.kind;
            }
        })
    }

    /// Accepts all open predictions but those that contradict an annotation of a person, which are removed; fails unless the number of all is
    /// the one that the client expected.
    fn accept_open(&self, expected: Option<usize>) -> ApiResult<Vec<Change>> {
        let open: Vec<i64> = self.marks.iter().filter(|(_, mark)| mark.is_open()).map(|(id, _)| *id).collect();
        let n = open.len();
        let message = match expected {
            None if n > 0 => format!("finishing would accept {n} open predictions, and `accepts` does not say so"),
            Some(expected) if expected != n => format!("finishing would accept {n} open predictions, not {expected}"),
            _ => {
                let people = Annotations::of(self.marks.values().filter(|mark| mark.is_human()));
                let decided = |id: i64| match self.get(id)? {
                    mark if people.contradict(mark) => Ok(Change { id, before: Some(mark.clone()), after: None }),
                    _ => self.revise(id, |_| ()),
                };
                return open.into_iter().map(decided).collect();
            }
        };
        Err(ApiError::conflict(message).hint("look at the document again; nothing was changed"))
    }

    /// Undoes what finishing accepted and removed, where nobody has decided since.
    fn reopen(&self) -> Vec<Change> {
        let unchanged = |change: &&Change| change.after.as_ref() == self.marks.get(&change.id);
        let back =
            |change: &Change| Change { id: change.id, before: change.after.clone(), after: change.before.clone() };
        self.last_finish_changes.iter().filter(unchanged).map(back).collect()
    }

    /// Removes unreviewed predictions that a human annotation now repeats, as the next prediction would.
    fn drop_repeated(&self, changes: &mut Changes) {
        let added = changes.marks.iter().filter_map(|change| change.after.as_ref());
        let reviewed = Reviewed::new(added.filter(|mark| mark.is_human()));
        let changed: HashSet<i64> = changes.marks.iter().map(|change| change.id).collect();
        let is_repeated = |(id, mark): &(&i64, &MarkState)| {
            mark.is_open() && !mark.is_unsure && !changed.contains(id) && reviewed.cover(mark)
        };
        let repeated: Vec<Change> = self
            .marks
            .iter()
            .filter(is_repeated)
            .map(|(id, mark)| Change { id: *id, before: Some(mark.clone()), after: None })
            .collect();
        changes.marks.extend(repeated);
    }

    /// Applies changes to the state.
    pub fn apply(&mut self, changes: &Changes) {
        for change in &changes.marks {
            match &change.after {
                Some(mark) => self.marks.insert(change.id, mark.clone()),
                None => self.marks.remove(&change.id),
            };
        }
        if let Some((_, after)) = changes.finished {
            self.is_finished = after;
        }
    }

    fn get(&self, id: i64) -> ApiResult<&MarkState> {
        self.marks.get(&id).filter(|mark| !mark.is_deleted).ok_or_else(|| {
            ApiError::not_found(format!("mention {id} not found in this document"))
                .hint("reload the document; it may have been deleted")
        })
    }

    /// A change that makes the mark the user's.
    fn revise(&self, id: i64, change: impl FnOnce(&mut MarkState)) -> ApiResult<Change> {
        let before = self.get(id)?.clone();
        let mut after = MarkState {
            source: Source::User,
            state: State::Accepted,
            by: Some(self.user),
            at: self.at,
            ..before.clone()
        };
        change(&mut after);
        Ok(Change { id, before: Some(before), after: Some(after) })
    }

    fn reject(&self, id: i64) -> ApiResult<Change> {
        let before = self.get(id)?.clone();
        let after = MarkState { state: State::Rejected, by: Some(self.user), at: self.at, ..before.clone() };
        Ok(Change { id, before: Some(before), after: Some(after) })
    }

    fn delete(&self, id: i64) -> ApiResult<Change> {
        let before = self.get(id)?.clone();
        if before.source != Source::User {
            let message = format!("mention {id} is {} and was not added by a person", before.source.name());
            return Err(ApiError::bad(message).hint("reject it; rejected mentions are hidden and never trained on"));
        }
        let after = MarkState { is_deleted: true, by: Some(self.user), at: self.at, ..before.clone() };
        Ok(Change { id, before: Some(before), after: Some(after) })
    }

    /// Includes every mark of the conflict, changed or not, so that the event records what was resolved.
    fn settle(&mut self, marks: &[i64], keep: &[Keep]) -> ApiResult<Vec<Change>> {
        if marks.is_empty() {
            return Err(ApiError::bad("`marks` is empty").hint("give the `marks` of the disagreement"));
        }
        let mut remaining: BTreeMap<i64, MarkState> = BTreeMap::new();
        for id in marks {
            let mark = self.marks.get(id).ok_or_else(|| {
                ApiError::not_found(format!("mention {id} not found in this document")).hint("reload the disagreements")
            })?;
            remaining.insert(*id, mark.clone());
        }
        let mut changes = Vec::new();
        for keep in keep {
            let wanted = self.new_mark(&keep.spans, None, keep.concept.as_deref(), keep.is_nil)?;
            let fit = |mark: &MarkState| fitness(mark, &wanted.spans, wanted.concept_id());
            let best =
                remaining.iter().filter(|(_, mark)| !mark.is_deleted).max_by_key(|(id, mark)| (fit(mark), -**id));
            let Some(id) = best.map(|(id, _)| *id) else {
                changes.push(Change { id: self.next_mark, before: None, after: Some(wanted) });
                self.next_mark += 1;
                continue;
            };
            let before = remaining.remove(&id);
            let change = self.revise(id, |mark| {
                mark.spans = wanted.spans;
                mark.text = wanted.text;
                mark.concept = wanted.concept;
                mark.is_nil = wanted.is_nil;
                mark.is_unsure = false;
            })?;
            changes.push(Change { before, ..change });
        }
        for (id, mark) in remaining {
            changes.push(match mark.is_listed() {
                true => self.reject(id)?,
                false => Change { id, before: Some(mark.clone()), after: Some(mark) },
            });
        }
        Ok(changes)
    }

    fn new_mark(&self, spans: &Pairs, kind: Option<&str>, concept: Option<&str>, is_nil: bool) -> ApiResult<MarkState> {
        let spans = from_pairs(&OffsetMap::new(self.text), spans)?;
        if concept.is_some() && is_nil {
            return Err(ApiError::bad("give either `concept` or `is_nil`, not both"));
        }
        let concept = concept.map(|id| self.concept(id)).transpose()?;
        let default_kind = concept.as_ref().and_then(|concept| {
            let Some(found) = self.kb.find(&concept.id) else {
                let known = self.proposed.iter().find(|(known, _)| known.id == concept.id);
                return known.map(|(_, kind)| kind.clone());
            };
            self.kb.types(found).next().map(str::to_owned)
        });
        Ok(MarkState {
            text: surface(self.text, &spans),
            spans: span_pairs(&spans),
            kind: kind.map(checked_type).transpose()?.or(default_kind).unwrap_or_default(),
            source: Source::User,
            state: State::Accepted,
            concept,
            is_nil,
            is_unsure: false,
            contexts: context::predict(self.text, self.sections.clone(), &spans),
            score: None,
            p_mention: None,
            p_link: None,
            candidates: Vec::new(),
            by: Some(self.user),
            at: self.at,
            model: None,
            spread_from: None,
            is_deleted: false,
            original: None,
        })
    }

    fn concept(&self, id: &str) -> ApiResult<Named> {
        let Some(found) = self.kb.find(id.trim()) else {
            if let Some((concept, _)) = self.proposed.iter().find(|(concept, _)| concept.id == id.trim()) {
                return Ok(concept.clone());
            }
            let near = nearest_ids(self.kb, id, 1).first().map(|near| self.kb.id(*near).to_owned());
            let hint = match near {
                Some(near) => format!("did you mean {near}?"),
                None => "search by name with GET /api/v1/kb/search".to_owned(),
            };
            let shown: String = id.chars().take(80).collect();
            return Err(ApiError::bad(format!("concept `{shown}` not found")).hint(hint));
        };
        Ok(Named { id: self.kb.id(found).to_owned(), name: self.kb.preferred_name(found).to_owned() })
    }
}

fn checked_type(kind: &str) -> ApiResult<String> {
    let kind = kind.trim();
    if kind.len() > 200 || kind.chars().any(char::is_control) {
        return Err(ApiError::bad("a type may have at most 200 bytes on one line"));
    }
    Ok(kind.to_owned())
}
