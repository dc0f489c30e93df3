//! Checks the character maps of SentencePiece normalisers, whose offsets the library follows unchecked.

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// Checks all character maps (`precompiled_charsmap`) in a normaliser of `tokenizer.json`.
pub(super) fn check(normalizer: &Value) -> Result<(), String> {
    match normalizer {
        Value::Object(fields) => {
            if let Some(Value::String(map)) = fields.get("precompiled_charsmap") {
                check_map(map).ok_or("the character map of the normaliser is damaged")?;
            }
            fields.values().try_for_each(check)
        }
        Value::Array(items) => items.iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// Whether every lookup stays within the map. A map is the length of a double-array trie in bytes, the trie, and the replacements,
/// all as Base64; leaves of the trie hold offsets into the replacements.
fn check_map(map: &str) -> Option<()> {
    let bytes = BASE64_STANDARD.decode(map).ok()?;
    let (length, rest) = bytes.split_first_chunk()?;
    let (trie, replacements) = rest.split_at_checked(u32::from_le_bytes(*length) as usize / 4 * 4)?;
    let replacements = str::from_utf8(replacements).ok()?;
    let unit = |at: usize| Some(u32::from_le_bytes(*trie.get(4 * at..)?.first_chunk()?) as usize);
    let offset = |unit: usize| (unit >> 10) << ((unit & 1 << 9) >> 6);
    let root = offset(unit(0)?);
    let (mut nodes, mut seen) = (vec![root], HashSet::from([root]));
    while let Some(node) = nodes.pop() {
        for byte in 1..=255 {
            let child = unit(node ^ byte)?;
            if child & (1 << 31 | 0xff) != byte {
                continue;
            }
            let next = node ^ byte ^ offset(child);
            let has_leaf = child >> 8 & 1 == 1;
            if has_leaf && !replacements.is_char_boundary(unit(next)? & ((1 << 31) - 1)) {
                return None;
            }
            if seen.insert(next) {
                nodes.push(next);
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A normaliser with a map that replaces `a` by the text at `offset`, and has `n_units` units in its trie.
    fn normalizer(offset: u32, n_units: usize, replacements: &[u8]) -> Value {
        let letter = u32::from(b'a');
        let mut trie = vec![0; 768];
        trie[0] = 256 << 10;
        trie[(256 ^ letter) as usize] = (256 ^ letter ^ 512) << 10 | 1 << 8 | letter;
        trie[512] = offset;
        let mut bytes = (4 * n_units as u32).to_le_bytes().to_vec();
        bytes.extend(trie[..n_units.min(768)].iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(replacements);
        let map = BASE64_STANDARD.encode(bytes);
        serde_json::json!({"type": "Sequence", "normalizers": [{"type": "Precompiled", "precompiled_charsmap": map}]})
    }

    #[test]
    fn a_map_that_leads_outside_itself_is_refused() {
        assert_eq!(check(&normalizer(0, 768, "ä\0b\0".as_bytes())), Ok(()));
        assert_eq!(check(&normalizer(3, 768, "ä\0b\0".as_bytes())), Ok(()));
        for (offset, n_units, replacements) in [
            (1, 768, "ä\0".as_bytes()),
            (4, 768, "ä\0".as_bytes()),
            (0, 768, b"\xff\0".as_slice()),
            (0, 700, b"".as_slice()),
            (0, 300, b"".as_slice()),
            (0, 0, b"".as_slice()),
            (0, 1 << 28, b"".as_slice()),
        ] {
            assert!(check(&normalizer(offset, n_units, replacements)).is_err(), "{offset} {n_units}");
        }
        assert!(check(&serde_json::json!({"precompiled_charsmap": "no Base64!"})).is_err());
        assert_eq!(check(&serde_json::json!({"type": "Precompiled", "precompiled_charsmap": null})), Ok(()));
    }
}
