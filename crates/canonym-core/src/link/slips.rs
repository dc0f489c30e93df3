//! The distance between a mistyped word and the word that was meant.

/// Weighted restricted Damerau-Levenshtein distance in which keyboard and phonetic errors cost less than other edits.
/// Returns `f32::MAX` as soon as the distance must exceed `max`.
pub fn slips(word: &str, target: &str, max: f32) -> f32 {
    let (word, target): (Vec<char>, Vec<char>) = (word.chars().collect(), target.chars().collect());
    let n = target.len();
    let mut rows: [Vec<f32>; 3] = [vec![f32::MAX; n + 1], (0..=n).map(|at| at as f32).collect(), vec![0.0; n + 1]];
    for row in 1..=word.len() {
        let [before, last, next] = &mut rows;
        next[0] = row as f32;
        let mut min = next[0];
        for column in 1..=n {
            let (typed, right) = (word[row - 1], target[column - 1]);
            let doubled = |letters: &[char], at: usize| at >= 1 && letters[at] == letters[at - 1];
            let extra = if doubled(&word, row - 1) { DOUBLED } else { 1.0 };
            let missing = if doubled(&target, column - 1) { DOUBLED } else { 1.0 };
            // The first letter is rarely mistyped.
            let first = if row == 1 && column == 1 { FIRST } else { 0.0 };
            let mut cost = (last[column] + extra)
                .min(next[column - 1] + missing)
                .min(last[column - 1] + if typed == right { 0.0 } else { substitution(typed, right) + first });
            if row > 1 && right == 'f' && word[row - 2..row] == ['p', 'h'] {
                cost = cost.min(before[column - 1] + DOUBLED);
            }
            if column > 1 && typed == 'f' && target[column - 2..column] == ['p', 'h'] {
                cost = cost.min(last[column - 2] + DOUBLED);
            }
            if row > 1 && column > 1 && typed == target[column - 2] && word[row - 2] == right {
                cost = cost.min(before[column - 2] + SWAPPED);
            }
            next[column] = cost;
            min = min.min(cost);
        }
        if min > max {
            return f32::MAX;
        }
        rows.rotate_left(1);
    }
    rows[1][n]
}

/// Costs of common typing errors.
const DOUBLED: f32 = 0.5;
const SWAPPED: f32 = 0.7;
const FIRST: f32 = 0.8;

fn substitution(typed: char, right: char) -> f32 {
    const VOWELS: &str = "aeiouy";
    /// Pairs of letters that sound alike.
    const ALIKE: [(char, char); 8] =
        [('c', 'k'), ('c', 's'), ('s', 'z'), ('f', 'v'), ('g', 'j'), ('m', 'n'), ('d', 't'), ('b', 'p')];
    const KEYS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
    let alike = |(one, other): &(char, char)| (*one, *other) == (typed, right) || (*other, *one) == (typed, right);
    let key_of = |letter: char| {
        KEYS.iter().enumerate().find_map(|(row, keys)| keys.find(letter).map(|column| (row as i32, column as i32)))
    };
    let near = key_of(typed)
        .zip(key_of(right))
        .is_some_and(|(one, other)| (one.0 - other.0).abs() <= 1 && (one.1 - other.1).abs() <= 1);
    match () {
        () if VOWELS.contains(typed) && VOWELS.contains(right) => 0.7,
        () if ALIKE.iter().any(alike) || near => 0.8,
        () => 1.0,
    }
}
