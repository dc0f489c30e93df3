//! Document frequencies of English and biomedical words, counted on abstracts.

use std::collections::HashMap;
use std::sync::LazyLock;

/// `word\tabstracts per thousand`, made by `experiments/common_words.py`.
const LIST: &str = include_str!("../../../assets/common-words.txt");

static FREQUENCIES: LazyLock<HashMap<&'static str, u16>> = LazyLock::new(|| {
    LIST.lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(word, count)| Some((word, count.parse().ok()?)))
        .collect()
});

/// Number of abstracts per thousand that contain a folded token; 0 below two.
pub fn frequency(token: &str) -> u16 {
    FREQUENCIES.get(token).copied().unwrap_or(0)
}
