//! TF-IDF over character unigrams and bigrams: the sparse score of BioSyn (Sung et al. 2020), as computed by scikit-learn.
//!
//! White space counts as a character. The weight of an n-gram is its count times the smoothed inverse document frequency
//! `1 + ln((1 + n) / (1 + df))`; vectors are L2-normalised. N-grams that occur in no name are ignored.

use std::collections::BTreeMap;

use rayon::prelude::*;

/// Sparse vector: sorted n-gram ids with weights.
pub(super) type Grams = Vec<(u32, f32)>;

/// TF-IDF vectors of names with an inverted index.
#[derive(Debug)]
pub(super) struct SparseIndex {
    /// Id of each n-gram; the second character is `None` for unigrams.
    number_of: BTreeMap<(char, Option<char>), u32>,
    /// Inverse document frequency of each n-gram.
    frequencies: Vec<f32>,
    rows: Vec<Grams>,
    /// Postings: for each n-gram the names that contain it, with weights, sorted by name.
    holders: Vec<Vec<(u32, f32)>>,
}

/// N-gram counts of a text.
fn counts(text: &str) -> BTreeMap<(char, Option<char>), f32> {
    let mut counts = BTreeMap::new();
    let mut last = None;
    for letter in text.chars().flat_map(char::to_lowercase) {
        let letter = if letter.is_whitespace() { ' ' } else { letter };
        if (letter, last) == (' ', Some(' ')) {
            continue;
        }
        *counts.entry((letter, None)).or_insert(0.0) += 1.0;
        if let Some(last) = last {
            *counts.entry((last, Some(letter))).or_insert(0.0) += 1.0;
        }
        last = Some(letter);
    }
    counts
}

impl SparseIndex {
    /// Builds the index of names.
    pub fn new(names: &[String]) -> SparseIndex {
        let counted: Vec<_> = names.par_iter().map(|name| counts(name)).collect();
        let mut n_holders: BTreeMap<(char, Option<char>), f32> = BTreeMap::new();
        counted.iter().flat_map(BTreeMap::keys).for_each(|gram| *n_holders.entry(*gram).or_insert(0.0) += 1.0);
        let n_names = names.len() as f32;
        let frequencies = n_holders.values().map(|n| 1.0 + ((1.0 + n_names) / (1.0 + n)).ln()).collect();
        let number_of = n_holders.into_keys().zip(0..).collect::<BTreeMap<_, u32>>();
        let holders = vec![Vec::new(); number_of.len()];
        let mut index = SparseIndex { number_of, frequencies, rows: Vec::new(), holders };
        index.rows = counted.par_iter().map(|counts| index.weighed(counts)).collect();
        for (row, grams) in index.rows.iter().enumerate() {
            grams.iter().for_each(|(gram, weight)| index.holders[*gram as usize].push((row as u32, *weight)));
        }
        index
    }

    fn weighed(&self, counts: &BTreeMap<(char, Option<char>), f32>) -> Grams {
        let weight = |(gram, n): (&(char, Option<char>), &f32)| {
            self.number_of.get(gram).map(|number| (*number, n * self.frequencies[*number as usize]))
        };
        let mut grams: Grams = counts.iter().filter_map(weight).collect();
        let length = grams.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
        grams.iter_mut().for_each(|(_, weight)| *weight /= length);
        grams
    }

    /// The TF-IDF vector of a text.
    pub fn vector(&self, text: &str) -> Grams {
        self.weighed(&counts(text))
    }

    /// Inner product of a vector with that of a name.
    pub fn score(&self, grams: &Grams, row: u32) -> f32 {
        let mut others = self.rows[row as usize].iter().peekable();
        let mut sum = 0.0;
        for (gram, weight) in grams {
            while others.next_if(|(other, _)| other < gram).is_some() {}
            if let Some((_, other)) = others.next_if(|(other, _)| other == gram) {
                sum += weight * other;
            }
        }
        sum
    }

    /// For each query, the `k` names with the highest inner product, best first, ties in row order; names without a common n-gram are left
    /// out.
    pub fn search(&self, queries: &[Grams], k: usize) -> Vec<Vec<u32>> {
        let one = |sums: &mut Vec<f32>, grams: &Grams| {
            sums.clear();
            sums.resize(self.rows.len(), 0.0);
            for (gram, weight) in grams {
                self.holders[*gram as usize].iter().for_each(|(row, other)| sums[*row as usize] += weight * other);
            }
            let mut rows: Vec<u32> = (0..sums.len() as u32).filter(|row| sums[*row as usize] > 0.0).collect();
            let by_sum =
                |left: &u32, right: &u32| sums[*right as usize].total_cmp(&sums[*left as usize]).then(left.cmp(right));
            if rows.len() > k && k > 0 {
                rows.select_nth_unstable_by(k - 1, by_sum);
            }
            rows.truncate(k);
            rows.sort_unstable_by(by_sum);
            rows
        };
        queries.par_iter().map_init(Vec::new, one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(names: &[&str]) -> SparseIndex {
        SparseIndex::new(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn vectors_are_those_of_the_definition() {
        // `a`, `aa` and `b` occur in one of two names each; the first name contains `a` twice.
        let index = index(&["aa", "b"]);
        let frequency = 1.0 + (3.0f32 / 2.0).ln();
        let length = (5.0 * frequency * frequency).sqrt();
        let vector = index.vector("AA z");
        let expected = [(0, 2.0 * frequency / length), (1, frequency / length)];
        assert_eq!(vector.len(), 2);
        for ((gram, weight), expected) in vector.iter().zip(expected) {
            assert!(*gram == expected.0 && (weight - expected.1).abs() < 1e-6, "{gram} {weight}");
        }
        assert!((index.score(&vector, 0) - 1.0).abs() < 1e-6);
        assert_eq!((index.score(&vector, 1), index.vector("z").len()), (0.0, 0));
    }

    #[test]
    fn search_gives_the_greatest_products_and_ties_by_row() {
        let index = index(&["leg pain", "pain", "pain", "rash", "arm pain"]);
        let queries = [index.vector("pain"), index.vector("leg  pains"), index.vector("xyz")];
        let found = index.search(&queries, 3);
        assert_eq!(found[0][..2], [1, 2]);
        assert_eq!((found[1][0], found[2].len()), (0, 0));
        for (query, rows) in queries.iter().zip(&found) {
            let scores: Vec<f32> = rows.iter().map(|row| index.score(query, *row)).collect();
            assert!(scores.is_sorted_by(|left, right| left + 1e-6 >= *right), "{scores:?}");
        }
        assert!(index.search(&queries, 0).iter().all(Vec::is_empty));
    }
}
