//! Tokenizers: any `tokenizer.json` of Hugging Face (WordPiece, byte-level BPE, Unigram), or a WordPiece vocabulary learned from names and
//! text.
//!
//! The library `tokenizers` does the work. Each token has its bytes in the text. Special tokens such as `[SEP]` are never recognised in
//! text; there they are brackets around letters.
//!
//! The tokenizer of BERT (Devlin et al. 2019) is defined by its vocabulary, one wordpiece per line, and by [`BertRules`]. Its tokens do not
//! depend on neighbouring words, so a text is tokenised in stretches between blanks, those of ASCII on a fast path. A vocabulary is learned
//! by merging the most frequent adjacent pair (Sennrich et al. 2016); ties are broken by wordpiece order, so equal texts give equal
//! vocabularies. The trainer of the library breaks ties by hash order.
//!
//! ```
//! let tokenizer = canonym_neural::tokenizer::Tokenizer::of(["[UNK]", "liver", "##wort"].map(str::to_owned).to_vec()).unwrap();
//! assert_eq!(tokenizer.input_ids("Liverwort, liver"), [1, 2, 0, 1]);
//! ```

mod ascii;
mod character_map;
mod learn;
mod normalizer;
mod read;

use std::collections::HashMap;
use std::sync::Arc;

use canonym_core::{Error, Result};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{AddedToken, ModelWrapper, NormalizedString, Normalizer, Tokenizer as Library, normalizers};

use ascii::{Ascii, is_visible_ascii};
pub use normalizer::BertNormalizer;

/// The token for unknown words.
pub const UNKNOWN: &str = "[UNK]";

/// The first token of each BERT sequence.
pub const FIRST: &str = "[CLS]";

/// The token after each part of a BERT sequence.
pub const BEHIND: &str = "[SEP]";

/// Prefix of continuation wordpieces.
const INSIDE: &str = "##";

/// Maximum word length in characters, as in BERT; longer words are unknown.
const LONGEST_WORD: usize = 100;

/// Hint for tokenizers that cannot be used.
const HINT: &str =
    "use the `tokenizer.json` or `vocab.txt` of a Hugging Face checkpoint, which holds a token for unknown words";

/// The settings of a BERT tokenizer, which together with its vocabulary define it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BertRules {
    /// Normalisation before tokenisation.
    pub normalizer: BertNormalizer,
    /// Maximum word length in characters; longer words are unknown.
    pub longest_word: usize,
}

impl BertRules {
    /// The settings of uncased BERT.
    pub const UNCASED: BertRules = BertRules { normalizer: BertNormalizer::UNCASED, longest_word: LONGEST_WORD };
}

/// A tokenizer.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    // Private: the other fields are derived from the library's tokenizer.
    library: Arc<Library>,
    /// Set for tokenizers of BERT, whose model is then a [`WordPiece`].
    rules: Option<BertRules>,
    /// Row of unknown words.
    pub unknown: u32,
    /// The greatest row, plus one.
    n_rows: usize,
}

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Row in the vocabulary.
    pub row: u32,
    /// Start in the text, in bytes.
    pub start: usize,
    /// End in the text, in bytes, exclusive.
    pub end: usize,
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Tokenizer) -> bool {
        self.rules == other.rules && self.to_text() == other.to_text()
    }
}

impl Tokenizer {
    /// The tokenizer of an uncased BERT.
    pub fn of(wordpieces: Vec<String>) -> Result<Tokenizer> {
        Tokenizer::bert(wordpieces, BertRules::UNCASED)
    }

    /// The tokenizer of a BERT with this vocabulary, which must contain [`UNKNOWN`].
    pub fn bert(wordpieces: Vec<String>, rules: BertRules) -> Result<Tokenizer> {
        let n_rows = wordpieces.len();
        let rows: HashMap<String, u32, _> = wordpieces.into_iter().zip(0..).collect();
        let refused = |message: String| Error::config(message).with_hint(HINT);
        let missing = || refused(format!("the vocabulary lacks the token {UNKNOWN}"));
        let unknown = *rows.get(UNKNOWN).ok_or_else(missing)?;
        if rows.len() < n_rows {
            return Err(refused("the vocabulary contains a duplicate token".to_owned()));
        }
        let model = WordPiece::builder().vocab(rows).max_input_chars_per_word(rules.longest_word).build();
        let mut library = Library::new(model.map_err(|error| refused(error.to_string()))?);
        let normalizer = normalizers::BertNormalizer::from(rules.normalizer);
        library.with_normalizer(Some(normalizer)).map_err(|error| refused(error.to_string()))?;
        library.with_pre_tokenizer(Some(BertPreTokenizer));
        Ok(Tokenizer { library: Arc::new(library), rules: Some(rules), unknown, n_rows })
    }

    /// The same vocabulary under other settings.
    pub fn with_rules(&self, rules: BertRules) -> Result<Tokenizer> {
        Tokenizer::bert(self.vocabulary(), rules)
    }

    /// Learns a vocabulary of at most `size` wordpieces; pairs that occur only once are not merged.
    pub fn learn<'a>(texts: impl Iterator<Item = &'a str>, size: usize) -> Tokenizer {
        let wordpieces = learn::learn(learn::count(texts), &[UNKNOWN], size);
        Tokenizer::of(wordpieces).expect("the unknown wordpiece was given and wordpieces differ")
    }

    /// The tokenizer of an uncased BERT with this vocabulary, one wordpiece per line.
    pub fn from_lines(text: &str) -> Result<Tokenizer> {
        Tokenizer::of(text.lines().map(str::to_owned).collect())
    }

    /// How the tokenizer is stored: that of a BERT as one wordpiece per line, any other as `tokenizer.json`.
    pub fn to_text(&self) -> String {
        match self.rules {
            Some(_) => self.vocabulary().into_iter().flat_map(|piece| [piece, "\n".to_owned()]).collect(),
            None => self.library.to_string(false).expect("a tokenizer that was read from JSON can be written"),
        }
    }

    /// The settings that complete the vocabulary of a BERT; `None` for tokenizers that [`Tokenizer::to_text`] stores completely.
    pub fn rules(&self) -> Option<BertRules> {
        self.rules
    }

    /// Whether capitals and accented letters are tokenised like plain letters in lower case.
    pub fn is_uncased(&self) -> bool {
        if let Some(rules) = self.rules {
            return rules.normalizer.is_uncased();
        }
        let mut letter = NormalizedString::from("É");
        let normalised = self.library.get_normalizer().map(|normalizer| normalizer.normalize(&mut letter));
        normalised.is_some_and(|result| result.is_ok()) && letter.get() == "e"
    }

    /// Number of rows of the vocabulary.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// All tokens by row.
    fn vocabulary(&self) -> Vec<String> {
        let mut vocabulary: Vec<(String, u32)> = self.library.get_vocab(true).into_iter().collect();
        vocabulary.sort_unstable_by_key(|(_, row)| *row);
        vocabulary.into_iter().map(|(piece, _)| piece).collect()
    }

    /// The row of a token.
    pub fn find(&self, piece: &str) -> Option<u32> {
        self.library.token_to_id(piece)
    }

    /// Adds a special token, unless it exists, and returns its row.
    pub fn add(&mut self, piece: &str) -> Result<u32> {
        if let Some(row) = self.find(piece) {
            return Ok(row);
        }
        if let Some(rules) = self.rules {
            let mut vocabulary = self.vocabulary();
            vocabulary.push(piece.to_owned());
            *self = Tokenizer::bert(vocabulary, rules)?;
            return Ok(self.n_rows as u32 - 1);
        }
        let refused =
            |reason: String| Error::unsupported(format!("cannot add the token {piece}: {reason}")).with_hint(HINT);
        let library = Arc::make_mut(&mut self.library);
        library.add_special_tokens([AddedToken::from(piece, true)]).map_err(|error| refused(error.to_string()))?;
        let row = library.token_to_id(piece).filter(|row| *row as usize >= self.n_rows);
        let row = row.ok_or_else(|| refused("some ids of the vocabulary are missing".to_owned()))?;
        self.n_rows = row as usize + 1;
        Ok(row)
    }

    /// The row of a token that the model requires, such as a marker.
    pub fn require(&self, piece: &str) -> Result<u32> {
        let missing = || Error::mismatch(format!("the vocabulary lacks the token {piece}"));
        self.find(piece).ok_or_else(|| missing().with_hint("use the vocabulary that the model was trained with"))
    }

    /// Rows of the tokens before and after a sequence: [`FIRST`] and [`BEHIND`] for BERT, else those that the post-processor of
    /// `tokenizer.json` adds, such as `<s>` and `</s>`.
    pub fn ends(&self) -> Result<(u32, u32)> {
        if self.rules.is_none()
            && let Ok(sequence) = self.library.encode("", true)
            && let [first, behind] = *sequence.get_ids()
        {
            return Ok((first, behind));
        }
        Ok((self.require(FIRST)?, self.require(BEHIND)?))
    }

    /// `input_ids` of a text, without special tokens.
    pub fn input_ids(&self, text: &str) -> Vec<u32> {
        self.tokens(text).into_iter().map(|piece| piece.row).collect()
    }

    /// Decodes tokens to text. Unknown words are left out.
    pub fn text(&self, rows: &[u32]) -> String {
        let known: Vec<u32> = rows.iter().copied().filter(|row| *row != self.unknown).collect();
        if self.rules.is_none() {
            return self.library.decode(&known, true).unwrap_or_default();
        }
        let mut text = String::new();
        for piece in known.into_iter().filter_map(|row| self.library.id_to_token(row)) {
            match piece.strip_prefix(INSIDE) {
                Some(inside) => text.push_str(inside),
                None => {
                    text.push_str(if text.is_empty() { "" } else { " " });
                    text.push_str(&piece);
                }
            }
        }
        text
    }

    /// The tokens of a text with their byte offsets, on character boundaries and without surrounding white space.
    pub fn tokens(&self, text: &str) -> Vec<Token> {
        let (Some(rules), ModelWrapper::WordPiece(model)) = (self.rules, self.library.get_model()) else {
            return self.encode(text, 0).map(|piece| visible(text, piece)).collect();
        };
        let mut ascii = Ascii { model, rules, unknown: self.unknown, tokens: Vec::new(), key: String::new() };
        let mut start = 0;
        for stretch in text.split([' ', '\n', '\r', '\t']) {
            if is_visible_ascii(stretch) {
                ascii.divide(stretch, start);
            } else {
                ascii.tokens.extend(self.encode(stretch, start));
            }
            start += stretch.len() + 1;
        }
        ascii.tokens
    }

    /// The tokens of a stretch that starts at byte `at` of a text.
    fn encode(&self, stretch: &str, at: usize) -> impl Iterator<Item = Token> + use<> {
        let encoding = self.library.encode(stretch, false).expect("the tokenizer has an unknown token");
        let n = encoding.len();
        (0..n).map(move |token| {
            let (start, end) = encoding.get_offsets()[token];
            Token { row: encoding.get_ids()[token], start: at + start, end: at + end }
        })
    }
}

/// A token without the white space around it, which byte-level and Unigram tokens include.
fn visible(text: &str, piece: Token) -> Token {
    let (start, end) = (text.floor_char_boundary(piece.start), text.ceil_char_boundary(piece.end));
    let written = &text[start..end];
    let inner = written.trim();
    if inner.is_empty() {
        return Token { start, end, ..piece };
    }
    let start = start + written.len() - written.trim_start().len();
    Token { start, end: start + inner.len(), ..piece }
}

#[cfg(test)]
mod tests {
    use canonym_core::eval::bootstrap::SplitMix64;

    use super::*;

    fn learned() -> Tokenizer {
        let texts = ["fatty acid", "fatty liver", "liver disease", "acid reflux disease"];
        Tokenizer::learn(texts.into_iter().cycle().take(40), 60)
    }

    #[test]
    fn a_learned_vocabulary_divides_what_it_was_learned_from_and_more() {
        let tokenizer = learned();
        assert!(tokenizer.len() <= 60);
        assert_eq!(tokenizer.input_ids("liver disease").len(), 2);
        let text = "Fatty Líverseed ☃";
        let shown: Vec<&str> = tokenizer.tokens(text).iter().map(|piece| &text[piece.start..piece.end]).collect();
        assert_eq!(shown.concat(), "FattyLíverseed☃");
        assert_eq!(tokenizer.input_ids("☃"), [tokenizer.unknown]);
        assert!(tokenizer.input_ids("  \u{0}").is_empty());
        assert_eq!(tokenizer.input_ids(&"a".repeat(101)), [tokenizer.unknown]);
    }

    #[test]
    fn the_same_texts_give_the_same_vocabulary_and_it_can_be_read_back() {
        assert_eq!(learned().to_text(), learned().to_text());
        assert_eq!(Tokenizer::from_lines(&learned().to_text()).unwrap(), learned());
        assert!(Tokenizer::from_lines("liver\n").is_err());
        assert!(Tokenizer::from_lines("[UNK]\nliver\nliver\n").is_err());
    }

    #[test]
    fn ascii_is_tokenised_as_by_the_library() {
        let parts = "liver|Líver|LIVER-acid|a|é|e\u{301}| |  |\t|\r\n|\u{a0}|\u{b}|\u{1f}|(x)|_|[UNK]|[Ms]|##ac|≮|中|β2|...|\u{301}|\u{200b}|z";
        let parts: Vec<&str> = parts.split('|').collect();
        let mut rng = SplitMix64::new(11);
        let settings = [BertNormalizer::UNCASED, BertNormalizer::CASED].into_iter().flat_map(|normalizer| {
            [
                normalizer,
                BertNormalizer { strip_accents: Some(!normalizer.lowercase), ..normalizer },
                BertNormalizer { clean_text: false, handle_chinese_chars: false, ..normalizer },
            ]
        });
        for normalizer in settings {
            let tokenizer = learned().with_rules(BertRules { normalizer, longest_word: 9 }).unwrap();
            for _ in 0..500 {
                let text: String = (0..rng.below(12)).map(|_| parts[rng.below(parts.len())]).collect();
                assert_eq!(
                    tokenizer.tokens(&text),
                    tokenizer.encode(&text, 0).collect::<Vec<_>>(),
                    "{text:?} {normalizer:?}"
                );
            }
        }
    }

    #[test]
    fn added_tokens_have_rows_and_are_not_found_in_text() {
        let mut tokenizer = learned();
        let n = tokenizer.len();
        assert_eq!(tokenizer.add("[Ms]").unwrap(), n as u32);
        assert_eq!(
            (tokenizer.add("[Ms]").unwrap(), tokenizer.len(), tokenizer.find("[Ms]")),
            (n as u32, n + 1, Some(n as u32))
        );
        assert_eq!(tokenizer.input_ids("[Ms]"), learned().input_ids("[Ms]"));
        assert_eq!(Tokenizer::from_lines(&tokenizer.to_text()).unwrap(), tokenizer);
    }
}
