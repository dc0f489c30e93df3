//! Gazetteer: fingerprints of terminology names by semantic class.
//!
//! A name is stored as 32 bits of the sum of its word hashes, so word order and inflection do not matter and the names themselves are not
//! stored. With a hundred thousand names, the false-positive rate is one in forty thousand windows of text.

use std::collections::BTreeMap;

use canonym_core::kb::lexicon::{TokenHashes, bag_key, hash_form};
use canonym_core::text::normalise::fold;
use canonym_core::text::tokens::{Gap, Token};

/// Maximum number of words of a match, without function words.
const MAX_WORDS: usize = 8;

/// Maximum number of classes.
pub const MAX_CLASSES: usize = 8;

/// Fingerprints of names with their classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gazetteer {
    // Private: sorted by key.
    keys: Vec<u32>,
    classes: Vec<u8>,
}

impl Gazetteer {
    /// Builds a gazetteer of names; each class is one bit.
    pub fn build<'a>(names: impl IntoIterator<Item = (&'a str, u8)>) -> Gazetteer {
        let mut classes_of: BTreeMap<u32, u8> = BTreeMap::new();
        for (name, class) in names {
            let words = hash_form(&fold(name));
            if words.iter().any(|word| !word.linking) {
                *classes_of.entry(key(&words)).or_default() |= class;
            }
        }
        let (keys, classes) = classes_of.into_iter().unzip();
        Gazetteer { keys, classes }
    }

    /// Number of fingerprints.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The classes of a name; 0 if it is unknown.
    pub fn classes(&self, words: &[TokenHashes]) -> u8 {
        match words.iter().any(|word| !word.linking) {
            true => self.at(key(words)),
            false => 0,
        }
    }

    fn at(&self, key: u32) -> u8 {
        self.keys.binary_search(&key).map_or(0, |row| self.classes[row])
    }

    /// Adds the binary features of each token: four per class for the first of several tokens, inside, the last, and the only one. Of
    /// overlapping matches of a class, the leftmost longest is used.
    pub fn mark(&self, tokens: &[Token], words: &[TokenHashes], bits: &mut [u64]) {
        let mut busy_until = [0usize; MAX_CLASSES];
        for first in 0..tokens.len() {
            if words[first].linking || tokens[first].before == Gap::Glued {
                continue;
            }
            let mut longest = [None; MAX_CLASSES];
            let (mut sum, mut n_counted) = (0u64, 0);
            for last in first..tokens.len() {
                if last > first && matches!(tokens[last].before, Gap::Comma | Gap::Bracket | Gap::Stop) {
                    break;
                }
                if words[last].linking {
                    continue;
                }
                sum = sum.wrapping_add(words[last].canonical);
                n_counted += 1;
                if n_counted > MAX_WORDS {
                    break;
                }
                if tokens.get(last + 1).is_some_and(|next| next.before == Gap::Glued) {
                    continue;
                }
                let classes = self.at(upper(sum));
                for class in (0..MAX_CLASSES).filter(|class| classes & (1 << class) != 0) {
                    longest[class] = Some(last);
                }
            }
            for (class, last) in longest.into_iter().enumerate() {
                if let Some(last) = last.filter(|_| busy_until[class] <= first) {
                    mark_window(&mut bits[first..=last], class);
                    busy_until[class] = last + 1;
                }
            }
        }
    }

    /// Serialises the number of fingerprints, the fingerprints and their classes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.keys.len() as u32).to_le_bytes().to_vec();
        self.keys.iter().for_each(|key| bytes.extend_from_slice(&key.to_le_bytes()));
        bytes.extend_from_slice(&self.classes);
        bytes
    }

    /// Reads the bytes of [`Gazetteer::to_bytes`]; `None` if they are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Gazetteer> {
        let (n, rest) = bytes.split_first_chunk::<4>()?;
        let n = u32::from_le_bytes(*n) as usize;
        let (keys, classes) = rest.split_at_checked(n.checked_mul(4)?)?;
        let keys: Vec<u32> = keys.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let is_sorted = keys.windows(2).all(|pair| pair[0] < pair[1]);
        (classes.len() == n && is_sorted).then(|| Gazetteer { keys, classes: classes.to_vec() })
    }
}

/// Sets the features of the tokens of one match.
pub fn mark_window(bits: &mut [u64], class: usize) {
    let n = bits.len();
    for (at, bits) in bits.iter_mut().enumerate() {
        let place = match (n, at) {
            (1, _) => 3,
            (_, 0) => 0,
            _ if at + 1 == n => 2,
            _ => 1,
        };
        *bits |= 1 << (4 * class + place);
    }
}

fn key(words: &[TokenHashes]) -> u32 {
    upper(bag_key(words.iter().filter(|word| !word.linking).map(|word| word.canonical)))
}

fn upper(sum: u64) -> u32 {
    (sum >> 32) as u32
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::lexicon::hash_token;
    use canonym_core::text::tokens::tokenize;

    use super::*;

    fn marked(gazetteer: &Gazetteer, text: &str) -> Vec<u64> {
        let tokens = tokenize(text);
        let words: Vec<TokenHashes> = tokens.iter().map(|token| hash_token(&fold(token.span.of(text)))).collect();
        let mut bits = vec![0; tokens.len()];
        gazetteer.mark(&tokens, &words, &mut bits);
        bits
    }

    #[test]
    fn the_longest_name_of_each_class_is_marked_whatever_its_inflection_and_order() {
        let gazetteer = Gazetteer::build([("liver disease", 1), ("liver", 2), ("diseases", 1)]);
        assert_eq!(gazetteer.len(), 3);
        assert_eq!(marked(&gazetteer, "Liver diseases of the liver"), [1 | 1 << 7, 1 << 2, 0, 0, 1 << 7]);
        assert_eq!(marked(&gazetteer, "disease of the liver"), [1, 2, 2, 4 | 1 << 7]);
        assert_eq!(marked(&gazetteer, "liver, disease"), [1 << 7, 1 << 3]);
    }

    #[test]
    fn it_comes_back_from_its_bytes_and_damage_is_noticed() {
        let gazetteer = Gazetteer::build([("liver", 1), ("heart attack", 5)]);
        let bytes = gazetteer.to_bytes();
        assert_eq!(Gazetteer::from_bytes(&bytes), Some(gazetteer));
        for damaged in [&bytes[..bytes.len() - 1], &bytes[..3], &[255; 9], &[]] {
            assert_eq!(Gazetteer::from_bytes(damaged), None);
        }
    }
}
