//! Probes of what a name encoder attends to.
//!
//! The probes of Lai et al. (2021), section 5: shuffling word n-grams (n = 1, 2, 3) destroys the word order, and
//! restricting the receptive field of the convolutions limits the context. A small drop in accuracy means that the
//! model hardly uses the information.

use std::sync::Arc;

use canonym_core::Result;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::chart::Chart;
use canonym_core::eval::ranking::Ranks;
use canonym_core::kb::{FormId, KnowledgeBase};
use serde::Serialize;

use super::queries::MentionQuery;
use crate::bundle::NameEncoderBundle;
use crate::index::FlatIndex;
use crate::models::rescnn::names::NameEncoder;
use crate::status::Stage;
use crate::system::terminology::bare;
use crate::tensor::random::shuffle;

/// The accuracy of one probe.
#[derive(Debug, Serialize)]
pub struct ProbeRow {
    /// What was changed.
    pub probe: String,
    /// Accuracy@1, from 0 to 1.
    pub accuracy: f64,
    /// Difference from the unchanged model and queries.
    pub change: f64,
}

/// Probes the name encoder of a bundle: unchanged, with shuffled words, and with smaller receptive fields.
///
/// # Errors
/// If a weight is missing.
pub fn probe(
    bundle: &NameEncoderBundle,
    kb: &Arc<KnowledgeBase>,
    mentions: &[MentionQuery],
    seed: u64,
) -> Result<Vec<ProbeRow>> {
    let mut accuracies = Vec::new();
    let unchanged = Prober::new(bundle, kb, None)?;
    accuracies.push(("unchanged".to_owned(), unchanged.accuracy(mentions, &mut |name| name.to_owned())));
    for n in [1, 2, 3] {
        let mut rng = SplitMix64::new(seed);
        let accuracy = unchanged.accuracy(mentions, &mut |name| shuffled(name, n, &mut rng));
        accuracies.push((format!("word {n}-grams shuffled"), accuracy));
    }
    let radius = bundle.manifest.rescnn.radius();
    for scope in (0..radius).rev() {
        let accuracy = Prober::new(bundle, kb, Some(scope))?.accuracy(mentions, &mut |name| name.to_owned());
        let seen = if scope == 0 { "one wordpiece".to_owned() } else { format!("{} wordpieces", 2 * scope + 1) };
        accuracies.push((format!("receptive field of {seen}"), accuracy));
    }
    let first = accuracies[0].1;
    let row = |(probe, accuracy)| ProbeRow { probe, accuracy, change: accuracy - first };
    Ok(accuracies.into_iter().map(row).collect())
}

/// A name encoder and the index of all names.
struct Prober<'a> {
    names: NameEncoder,
    index: FlatIndex,
    kb: &'a KnowledgeBase,
}

impl Prober<'_> {
    fn new<'a>(bundle: &NameEncoderBundle, kb: &'a Arc<KnowledgeBase>, scope: Option<usize>) -> Result<Prober<'a>> {
        let stage = Stage::start();
        let mut names = bundle.name_encoder()?;
        names.encoder.restrict(scope);
        let index = FlatIndex::new(names.encode_forms(kb));
        stage.done("encoded the names");
        Ok(Prober { names, index, kb })
    }

    /// Accuracy@1: the fraction of mentions all of whose parts retrieve a name of a gold concept first.
    fn accuracy(&self, mentions: &[MentionQuery], change: &mut dyn FnMut(&str) -> String) -> f64 {
        let parts = mentions.iter().flat_map(|mention| &mention.parts);
        let queries: Vec<String> = parts.map(|part| change(&part.query)).collect();
        let mut found = self.index.search(&self.names.encode(&queries), 1).into_iter();
        let mut ranks = Vec::with_capacity(mentions.len());
        for mention in mentions {
            let right = mention.parts.iter().filter(|part| {
                let hit = found.next().and_then(|hits| hits.first().copied());
                hit.is_some_and(|hit| {
                    let mut ids =
                        self.kb.names_of_form(FormId(hit.row)).map(|name| self.kb.id(self.kb.concept_of(name)));
                    ids.any(|id| id.split('|').any(|id| part.ids.contains(bare(id))))
                })
            });
            ranks.push((right.count() == mention.parts.len()).then_some(0));
        }
        Ranks::of(&ranks).accuracy_at(1)
    }
}

/// Shuffles the consecutive `n`-grams of words.
fn shuffled(name: &str, n: usize, rng: &mut SplitMix64) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    let mut runs: Vec<&[&str]> = words.chunks(n).collect();
    shuffle(&mut runs, rng);
    runs.concat().join(" ")
}

/// Bar chart of the accuracies as SVG.
pub fn chart(rows: &[ProbeRow]) -> String {
    let mut chart = Chart::new(640.0, 28.0 * rows.len() as f64 + 16.0, "accuracy@1 by probe, in %");
    for (place, ProbeRow { probe, accuracy, .. }) in rows.iter().enumerate() {
        let (top, bar) = (28.0 * place as f64 + 10.0, 330.0 * accuracy);
        chart.text((210.0, top + 15.0), "end", GREY, probe);
        chart.bar([220.0, top, bar, 20.0], "#3b6ea5");
        chart.text((228.0 + bar, top + 15.0), "start", GREY, &format!("{:.2}", 100.0 * accuracy));
    }
    chart.finish()
}

/// Colour of the texts of the chart.
const GREY: &str = "#333333";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffling_keeps_words_and_n_grams() {
        let mut rng = SplitMix64::new(1);
        let name = "acute lower respiratory tract infection";
        for n in 1..=3 {
            let mut changed = false;
            for _ in 0..20 {
                let text = shuffled(name, n, &mut rng);
                changed |= text != name;
                let (mut old, mut new): (Vec<&str>, Vec<&str>) = (name.split(' ').collect(), text.split(' ').collect());
                old.sort_unstable();
                new.sort_unstable();
                assert_eq!(old, new);
                assert!(n < 2 || text.contains("acute lower"), "{text}");
            }
            assert!(changed, "{n}");
        }
        assert_eq!(shuffled("", 2, &mut rng), "");
    }
}
