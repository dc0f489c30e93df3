//! One sense per discourse (Gale, Church and Yarowsky 1992) as a soft constraint on mentions with the same surface form.

use std::collections::BTreeMap;

use canonym_core::kb::ConceptId;

use crate::models::fusion::Evidence;

/// Interpolates the log-probability of each candidate with its mean over all mentions of the same surface form. With `weight` 0 nothing
/// changes; with 1 all of these mentions get the mean. A candidate that a mention lacks counts with the lowest log-probability of that
/// mention.
///
/// # Panics
/// If `words` and `mentions` differ in length.
pub fn one_sense_per_discourse(words: &[String], mentions: &mut [Vec<Evidence>], weight: f32) {
    assert_eq!(words.len(), mentions.len(), "words of each mention");
    if weight <= 0.0 {
        return;
    }
    let mut alike: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (mention, words) in words.iter().enumerate().filter(|(mention, _)| !mentions[*mention].is_empty()) {
        // Case distinguishes short forms from words: "AIDS" is not "aids".
        let is_short_form = words.chars().all(|letter| !letter.is_lowercase());
        let key = if is_short_form { words.clone() } else { words.to_lowercase() };
        alike.entry(key).or_default().push(mention);
    }
    for group in alike.into_values().filter(|group| group.len() > 1) {
        let lowest: Vec<f32> = group
            .iter()
            .map(|mention| mentions[*mention].iter().map(|one| one.dense_score).fold(f32::INFINITY, f32::min))
            .collect();
        let mut of_concept: BTreeMap<ConceptId, (Evidence, Vec<Option<f32>>)> = BTreeMap::new();
        for (place, mention) in group.iter().enumerate() {
            for one in &mentions[*mention] {
                let known = of_concept.entry(one.scored.concept).or_insert_with(|| (*one, vec![None; group.len()]));
                known.1[place] = Some(one.dense_score);
            }
        }
        for (place, mention) in group.iter().enumerate() {
            let voted = |(one, scores): &(Evidence, Vec<Option<f32>>)| {
                let score = |place: usize| scores[place].unwrap_or(lowest[place]);
                let mean = (0..group.len()).map(score).sum::<f32>() / group.len() as f32;
                Evidence { dense_score: (1.0 - weight) * score(place) + weight * mean, ..*one }
            };
            mentions[*mention] = of_concept.values().map(voted).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::NameId;
    use canonym_core::link::lexical::Scored;
    use canonym_core::link::model::N;

    use super::*;

    fn evidence(concept: u32, score: f32) -> Evidence {
        let scored = Scored { concept: ConceptId(concept), name: NameId(0), features: [0.0; N], score: 0.0 };
        Evidence { scored, dense_score: score, name_score: 0.0 }
    }

    fn best(mention: &[Evidence]) -> u32 {
        mention.iter().max_by(|a, b| a.dense_score.total_cmp(&b.dense_score)).unwrap().scored.concept.0
    }

    #[test]
    fn mentions_of_the_same_words_come_to_mean_the_same() {
        let words = ["Cold", "cold", "COLD", "cold"].map(str::to_owned);
        let mentions = vec![
            vec![evidence(1, -0.1), evidence(2, -2.0)],
            vec![evidence(1, -0.9), evidence(2, -0.8)],
            vec![evidence(3, -0.1), evidence(2, -0.5)],
            vec![],
        ];
        let after = |weight| {
            let mut mentions = mentions.clone();
            one_sense_per_discourse(&words, &mut mentions, weight);
            mentions
        };
        assert_eq!(after(0.0), mentions);
        let half = after(0.5);
        assert_eq!((best(&half[0]), best(&half[1]), best(&half[2])), (1, 1, 3));
        assert!(half[3].is_empty());
        let scores = |mention: &[Evidence]| mention.iter().map(|one| one.dense_score).collect::<Vec<f32>>();
        assert_eq!(scores(&half[1]), [-0.7, -1.1]);
        let whole = after(1.0);
        assert_eq!(scores(&whole[0]), scores(&whole[1]));
    }

    #[test]
    fn a_candidate_that_one_lacks_has_its_least_share_there() {
        let words = ["gout", "gout"].map(str::to_owned);
        let mut mentions = vec![vec![evidence(1, -1.0)], vec![evidence(2, -3.0)]];
        one_sense_per_discourse(&words, &mut mentions, 1.0);
        let scores: Vec<f32> = mentions[0].iter().map(|one| one.dense_score).collect();
        assert_eq!(scores, [-2.0, -2.0]);
    }
}
