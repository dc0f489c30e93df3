//! Explanations of the pipeline: the contribution of each feature to the log-odds of a mention and its concept.

use canonym_core::link::explain::{Contribution, Explanation, contribution, definitions, explained, uses_in};
use canonym_core::link::{Candidate, LinkedMention};
use canonym_core::numbers::rounded;
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use canonym_core::text::offsets::OffsetMap;
use rayon::prelude::*;

use super::{Pipeline, SpanProposal};
use crate::models::decision::{FEATURES, N_DISTINCT, UNNAMED, WIDTH};

impl Pipeline {
    /// Like [`canonym_core::link::Annotator::annotate`], with an explanation of each mention.
    pub(super) fn explain_all(&self, documents: &[Analysis<'_>]) -> Vec<Vec<(LinkedMention, Explanation)>> {
        let proposals = self.proposals(documents);
        let of_document = |(document, proposals): (&Analysis<'_>, Vec<SpanProposal>)| {
            let (text, map) = (document.text, OffsetMap::new(document.text));
            let given = self.given(text, &proposals);
            given.iter().map(|proposal| self.explain_proposal(text, &map, document.short_forms(), proposal)).collect()
        };
        documents.par_iter().zip(proposals).map(of_document).collect()
    }

    fn explain_proposal(
        &self,
        text: &str,
        map: &OffsetMap<'_>,
        uses: &[(Span, Span)],
        proposal: &SpanProposal,
    ) -> (LinkedMention, Explanation) {
        let linked = self.linked(proposal);
        // A short form from the sense inventory is compared by its long form, like an abbreviation defined in the text.
        let is_sense = proposal.dictionary_match.as_ref().is_some_and(|matched| matched.best().0.sense.is_some());
        let long_form = linked.link.candidates.first().and_then(|best| best.name).filter(|_| is_sense);
        let compared = long_form.map_or(proposal.name.as_str(), |name| self.kb.name(name)).to_owned();
        let parts = || -> Vec<Contribution> {
            let (weights, values) = (&self.decision.link, proposal.factors.features());
            let weigh = |row: usize| f64::from(weights[row]) * f64::from(values[row]);
            let part = |(row, (name, sentence)): (usize, &(&str, &str))| {
                let rows = || (row..values.len()).step_by(N_DISTINCT);
                // The last blocks repeat the values of the others.
                let value =
                    rows().take_while(|row| *row < UNNAMED * WIDTH).step_by(2).map(|row| f64::from(values[row])).sum();
                contribution(name, sentence, value, rows().map(weigh).sum())
            };
            let mut parts: Vec<Contribution> = FEATURES.iter().enumerate().map(part).collect();
            let sum: f64 = parts.iter().map(|part| part.log_odds).sum();
            let log_odds = |probability: f32| {
                let kept = f64::from(probability.clamp(1e-6, 1.0 - 1e-6));
                (kept / (1.0 - kept)).ln()
            };
            let (given, before) = (self.decision.link(proposal), self.decision.link_uncalibrated(proposal));
            let more = log_odds(before) - sum;
            if more.abs() > 1e-3 {
                let (name, sentence) = if proposal.stated > 0.0 {
                    ("abbreviations", "abbreviation file (`--abbreviations`)")
                } else if proposal.sense_score().is_some() {
                    ("average", "average with the score of the dictionary and the sense inventory")
                } else if proposal.is_phrase() {
                    ("least", "minimum score of an exact multi-word name")
                } else {
                    ("least", "minimum score of a name that the dictionary links")
                };
                parts.push(contribution(name, sentence, 1.0, more));
            }
            if before > given {
                let lowered = log_odds(given) - log_odds(before);
                parts.push(contribution("calibration", "calibration of high scores", 1.0, lowered));
            }
            parts
        };
        let explain = |(rank, candidate): (usize, &Candidate)| {
            let contributions = match rank {
                0 => parts(),
                _ => {
                    let behind = f64::from(linked.p_both_of(candidate).clamp(1e-6, 1.0 - 1e-6));
                    let log_odds = (behind / (1.0 - behind)).ln();
                    vec![contribution("rank", "another concept is more likely for this name", 1.0, log_odds)]
                }
            };
            let name = candidate.name.or_else(|| self.kb.names(candidate.concept).next())?;
            let explained = explained(&self.kb, &compared, name, candidate, contributions);
            Some(explained.detected(linked.p_both_of(candidate)))
        };
        let candidates = linked.link.candidates.iter().enumerate().filter_map(explain).collect();
        let definitions = definitions(text, map, &uses_in(&proposal.spans, uses));
        let threshold = Some(rounded(self.min_link(proposal)));
        let coordinated = proposal.spans.len() > 1;
        let sense_of = long_form.map(|_| linked.mention.surface(text));
        (linked, Explanation { compared, sense_of, definitions, coordinated, threshold, candidates })
    }
}
