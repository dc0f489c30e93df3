//! Two-stage system: one model detects mentions, and another, which does not detect any itself, links them.

use std::sync::Arc;

use crate::models::joint::{IS_MENTION, Joint, log_odds};
use crate::system::{LinkingModel, Target};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::explain::{Explanation, contribution};
use canonym_core::link::recognise::RecogniseConfig;
use canonym_core::link::{Annotator, Link, LinkInput, LinkedMention, Linker};
use canonym_core::text::Mention;
use canonym_core::text::analysis::Analysis;

/// Default threshold below which a mention stays unlinked. The F1-optimal threshold of calibrated probabilities is half of the optimal F1
/// (Lipton et al. 2014); 0.4 corresponds to an F1 of about 0.8.
const MIN_SCORE: f32 = 0.4;

/// A mention detector followed by a linker.
pub struct DetectThenLink {
    kb: Arc<KnowledgeBase>,
    detector: Box<dyn Annotator>,
    linker: Box<dyn Linker>,
    joint: Option<Joint>,
    min_score: f32,
}

impl DetectThenLink {
    /// Combines `linker` with the mention detector `model`.
    pub fn new(
        on: &Target,
        model: &dyn LinkingModel,
        linker: Box<dyn Linker>,
        joint: Option<Joint>,
        config: RecogniseConfig,
    ) -> canonym_core::Result<DetectThenLink> {
        let detector = model.annotator(on, RecogniseConfig { top_k: 1, ..config })?;
        let min_score = config.min_score.unwrap_or(joint.map_or(MIN_SCORE, |joint| joint.threshold));
        Ok(DetectThenLink { kb: on.kb.clone(), detector, linker, joint, min_score })
    }

    /// Detects the mentions of each document.
    fn detect(&self, documents: &[Analysis<'_>]) -> canonym_core::Result<Vec<Vec<Mention>>> {
        let linked = self.detector.annotate(documents)?;
        Ok(linked.into_iter().map(|linked| linked.into_iter().map(|one| one.mention).collect()).collect())
    }

    /// Detected mentions with their mention probabilities, and the link of each given that it is a mention.
    #[allow(clippy::type_complexity, reason = "two lists of one shape")]
    pub fn link(&self, documents: &[Analysis<'_>]) -> canonym_core::Result<(Vec<Vec<Mention>>, Vec<Vec<Link>>)> {
        let found = self.detect(documents)?;
        let links = self.linker.link(&LinkInput::all(documents, &found))?;
        Ok((found, links))
    }

    /// Combines mention and link probability and applies the threshold.
    fn decided(&self, mention: &Mention, mut link: Link) -> LinkedMention {
        let p_link = link.candidates.first().map_or(0.0, |best| best.p_link);
        let p_both =
            self.joint.map_or(mention.p_mention * p_link, |joint| joint.probability(mention.p_mention, p_link));
        link.nil |= p_both < self.min_score;
        let of_kb = link.candidates.first().and_then(|best| self.kb.types(best.concept).next()).map(str::to_owned);
        let semantic_type = of_kb.or_else(|| mention.semantic_type.clone());
        LinkedMention { mention: Mention { semantic_type, ..mention.clone() }, link, p_both }
    }
}

/// Adds the mention probability to the explanation of each candidate. Candidates without names have none.
pub fn explain_mention(kb: &KnowledgeBase, explanation: &mut Explanation, linked: &LinkedMention) {
    for explained in &mut explanation.candidates {
        let mut candidates = linked.link.candidates.iter();
        if let Some(candidate) = candidates.find(|candidate| kb.id(candidate.concept) == explained.id) {
            let change = f64::from(log_odds(linked.p_both_of(candidate))) - explained.log_odds;
            explained.add(contribution("mention", IS_MENTION, f64::from(linked.mention.p_mention), change));
        }
    }
}

impl Annotator for DetectThenLink {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn annotate(&self, documents: &[Analysis<'_>]) -> canonym_core::Result<Vec<Vec<LinkedMention>>> {
        let (found, links) = self.link(documents)?;
        let one = |(mention, link)| self.decided(mention, link);
        Ok(found.iter().zip(links).map(|(found, links)| found.iter().zip(links).map(one).collect()).collect())
    }

    fn explain(&self, documents: &[Analysis<'_>]) -> canonym_core::Result<Vec<Vec<(LinkedMention, Explanation)>>> {
        let found = self.detect(documents)?;
        let explained = self.linker.explain(&LinkInput::all(documents, &found))?;
        let one = |(mention, (link, mut explanation)): (&Mention, (Link, Explanation))| {
            let linked = self.decided(mention, link);
            explain_mention(&self.kb, &mut explanation, &linked);
            (linked, explanation)
        };
        Ok(found.iter().zip(explained).map(|(found, links)| found.iter().zip(links).map(one).collect()).collect())
    }
}
