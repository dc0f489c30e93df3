//! How common English and biomedical words are: a list derived from the texts of abstracts.

use std::collections::HashMap;
use std::sync::LazyLock;

/// `word\tabstracts in a thousand`, made by `experiments/common_words.py`.
const LIST: &str = include_str!("../../../assets/common-words.txt");

static FREQUENCIES: LazyLock<HashMap<&'static str, u16>> = LazyLock::new(|| {
    LIST.lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(word, count)| Some((word, count.parse().ok()?)))
        .collect()
});

/// In how many of a thousand abstracts a folded token stands; 0 for those in fewer than two.
pub fn frequency(token: &str) -> u16 {
    FREQUENCIES.get(token).copied().unwrap_or(0)
}
