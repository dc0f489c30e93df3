//! Train-test overlap: documents that the model was trained on are rejected, or scored separately.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::learned::{Fingerprints, Learned, Seen, corpus_of};
use canonym_core::eval::pairing::Paired;
use canonym_core::eval::queries::Query;
use canonym_core::eval::ranking::RankedMention;
use canonym_core::eval::report::{EvalConfig, Report, SeenDocuments, SeenSplit, evaluate_pairs, evaluate_ranking};

use super::inputs::Gold;
use crate::progress;

/// The gold documents that a model was trained or tuned on.
pub struct SeenGold {
    /// Counts and files.
    pub seen: Seen,
    /// Ids of the seen documents.
    pub ids: HashSet<String>,
}

/// Looks up the documents of the file `path` in the training record of a model.
pub fn look_up(gold: &Gold, path: &Path, learned: &Learned) -> SeenGold {
    let (ids, prints): (Vec<&str>, Vec<Fingerprints>) = match gold {
        Gold::Documents(documents) => documents.iter().map(of_document).unzip(),
        Gold::Queries(queries) => of_queries(queries).into_iter().unzip(),
    };
    let corpus = std::path::absolute(path).ok().and_then(|path| corpus_of(&path));
    let seen = learned.look_up(&prints, corpus.as_deref());
    let ids = ids.into_iter().zip(learned.has_seen(&prints)).filter(|(_, seen)| *seen);
    SeenGold { seen, ids: ids.map(|(id, _)| id.to_owned()).collect() }
}

fn of_document(document: &AnnotatedDocument) -> (&str, Fingerprints) {
    (&document.document.id, Fingerprints::of(&document.document))
}

fn of_queries(queries: &[Query]) -> Vec<(&str, Fingerprints)> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for query in queries {
        names.entry(&query.document).or_default().extend(query.parts.iter().map(String::as_str));
    }
    names.into_iter().map(|(id, names)| (id, Fingerprints::of_queries(id, names.into_iter()))).collect()
}

/// Notes that overlap cannot be checked for a prediction file.
pub fn of_files() {
    progress::say(
        "note: a prediction file does not record what its model was trained on, so overlap with these documents cannot be checked; \
         `canonym eval --data GOLD --model MODEL` checks it",
    );
}

/// Fails if `model` was trained on any of the documents, unless `allow_seen`; prints warnings and notes about overlap.
pub fn check(seen: &Seen, path: &Path, model: &str, allow_seen: bool) -> canonym_core::Result<()> {
    if seen.n_seen > 0 && !allow_seen {
        let message = format!("{}: {} by `{model}`: {}", path.display(), seen.sentence(), seen.details());
        let hint = "evaluate on unseen documents, or use `--allow-seen` to report seen documents separately";
        return Err(canonym_core::Error::seen(message).with_hint(hint));
    }
    if seen.n_seen > 0 {
        progress::say(&format!("warning: {}: {}", seen.sentence(), seen.details()));
    } else if !seen.related.is_empty() {
        let files = seen.related.join(", ");
        progress::say(&format!("note: the model was trained on other documents of this corpus: {files}"));
    }
    if !seen.unrecorded.is_empty() {
        let parts = seen.unrecorded.join(", ");
        progress::say(&format!(
            "note: no training record for {parts}; cannot check whether these documents were seen in training"
        ));
    }
    Ok(())
}

impl SeenGold {
    /// The overlap section of the report, with separate scores of seen and unseen documents.
    pub fn of_documents(self, paired: &Paired, config: &EvalConfig, rng: &mut SplitMix64) -> SeenDocuments {
        let mut part = |wanted: bool| {
            let documents = paired.documents.iter().filter(|one| self.ids.contains(&one.id) == wanted).cloned();
            let paired = Paired { documents: documents.collect(), ..Paired::default() };
            evaluate_pairs(&paired, config, rng)
        };
        self.apart(&mut part)
    }

    /// As [`SeenGold::of_documents`], for queries.
    pub fn of_mentions(self, ranked: &[RankedMention], config: &EvalConfig, rng: &mut SplitMix64) -> SeenDocuments {
        let mut part = |wanted: bool| {
            let mentions = ranked.iter().filter(|one| self.ids.contains(&one.document) == wanted).cloned();
            evaluate_ranking(&mentions.collect::<Vec<_>>(), config, rng)
        };
        self.apart(&mut part)
    }

    fn apart(&self, part: &mut dyn FnMut(bool) -> Report) -> SeenDocuments {
        let Seen { n_seen, n_documents, .. } = self.seen;
        let apart = (0 < n_seen && n_seen < n_documents)
            .then(|| SeenSplit { seen: Box::new(part(true)), unseen: Box::new(part(false)) });
        SeenDocuments { seen: self.seen.clone(), apart }
    }
}
