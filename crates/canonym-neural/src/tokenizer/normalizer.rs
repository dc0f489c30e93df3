//! Settings of BERT's normalisation, as bundles and `tokenizer.json` store them.

use serde::{Deserialize, Serialize};
use tokenizers::normalizers;

/// Normalisation settings, with the field names of `tokenizer.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BertNormalizer {
    /// Whether control characters are removed.
    #[serde(default = "yes")]
    pub clean_text: bool,
    /// Whether each CJK ideograph is a word of its own.
    #[serde(default = "yes")]
    pub handle_chinese_chars: bool,
    /// Whether accents are stripped; `None` means that they are if text is lower-cased.
    #[serde(default)]
    pub strip_accents: Option<bool>,
    /// Whether text is lower-cased.
    #[serde(default)]
    pub lowercase: bool,
}

fn yes() -> bool {
    true
}

impl BertNormalizer {
    /// Normalisation of uncased models.
    pub const UNCASED: BertNormalizer =
        BertNormalizer { clean_text: true, handle_chinese_chars: true, strip_accents: None, lowercase: true };

    /// Normalisation of cased models, such as BioBERT.
    pub const CASED: BertNormalizer = BertNormalizer { lowercase: false, ..BertNormalizer::UNCASED };

    /// Whether it is equivalent to [`BertNormalizer::UNCASED`].
    pub fn is_uncased(&self) -> bool {
        let strips_accents = self.strip_accents.unwrap_or(self.lowercase);
        BertNormalizer { strip_accents: None, ..*self } == BertNormalizer::UNCASED && strips_accents
    }
}

impl From<&normalizers::BertNormalizer> for BertNormalizer {
    fn from(known: &normalizers::BertNormalizer) -> BertNormalizer {
        BertNormalizer {
            clean_text: known.clean_text,
            handle_chinese_chars: known.handle_chinese_chars,
            strip_accents: known.strip_accents,
            lowercase: known.lowercase,
        }
    }
}

impl From<BertNormalizer> for normalizers::BertNormalizer {
    fn from(settings: BertNormalizer) -> normalizers::BertNormalizer {
        let BertNormalizer { clean_text, handle_chinese_chars, strip_accents, lowercase } = settings;
        normalizers::BertNormalizer::new(clean_text, handle_chinese_chars, strip_accents, lowercase)
    }
}
