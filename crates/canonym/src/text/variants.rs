//! Placeholder until the branch with the word variants lands.
#![allow(missing_docs)]
use std::borrow::Cow;
pub fn american_spelling(token: &str) -> Cow<'_, str> { Cow::Borrowed(token) }
pub fn singular(token: &str) -> Cow<'_, str> { if token.len() > 3 && token.ends_with('s') && !token.ends_with("ss") && !token.ends_with("us") && !token.ends_with("is") { Cow::Borrowed(&token[..token.len() - 1]) } else { Cow::Borrowed(token) } }
pub fn greek_letter(token: &str) -> Option<&'static str> { match token { "α" => Some("alpha"), "β" => Some("beta"), "µ" | "μ" => Some("mu"), _ => None } }
pub fn roman_numeral(token: &str) -> Option<u32> { match token { "i" => Some(1), "ii" => Some(2), "iii" => Some(3), "iv" => Some(4), _ => None } }
