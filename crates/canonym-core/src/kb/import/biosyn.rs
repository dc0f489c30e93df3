//! Dictionaries with lines `ids||name` or `ids||name|name…`, as in BioSyn and MEDIC.
//!
//! Ids joined by `|` (alternatives) or `+` (composites) are one concept. Consecutive lines of one concept become one
//! record. The first name of a concept in the file is the preferred one.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::{ImportConfig, Report, Sink, keep, map_parts, push_name, with_prefix};
use crate::Result;
use crate::input::Input;
use crate::kb::{ConceptRecord, Scope};

/// Maximum number of names per record, to bound memory.
const MAX_NAMES: usize = 1 << 16;

/// Reads a dictionary.
///
/// Ids without a prefix get that of `config`. If it has none, `D` or `C` with digits get `MESH:`, and six digits get
/// `OMIM:`.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    // Hashes of the ids read so far: the preferred name of a repeated concept is already set.
    let mut seen: HashSet<u64> = HashSet::new();
    let mut raw_id = String::new();
    let mut record = ConceptRecord::default();
    while let Some((_, line)) = input.next_line()? {
        if line.trim().is_empty() {
            report.drop_one("row", "blank");
            continue;
        }
        let Some((ids, names)) = line.split_once("||") else {
            return Err(input
                .error("`||` is missing")
                .with_hint("the format is `ids||name`, with ids separated by `|`"));
        };
        if ids.trim().is_empty() {
            return Err(input.error("the id is empty"));
        }
        report.n_read += 1;
        if ids != raw_id || record.names.len() > MAX_NAMES {
            if !raw_id.is_empty() {
                keep(std::mem::take(&mut record), config, report, sink)?;
            }
            raw_id.clear();
            raw_id.push_str(ids);
            record.id = id_of(ids, config);
        }
        for name in names.split('|') {
            push_name(&mut record.names, name, Scope::Exact, report);
        }
        if let [first, ..] = &mut record.names[..]
            && first.scope == Scope::Exact
            && seen.insert(xxh3_64(record.id.as_bytes()))
        {
            first.scope = Scope::Preferred;
        }
    }
    if !raw_id.is_empty() {
        keep(record, config, report, sink)?;
    }
    Ok(())
}

/// The displayed ids, with the prefix of `config`, else with one inferred from their shape.
pub(in crate::kb) fn id_of(ids: &str, config: &ImportConfig) -> String {
    if config.prefix.is_some() {
        return map_parts(ids, &['+'], |id| with_prefix(id, config));
    }
    map_parts(ids, &['|', '+'], |id| {
        let digits = id.strip_prefix(['C', 'D']).unwrap_or(id);
        let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match numeric {
            true if digits.len() < id.len() => format!("MESH:{id}"),
            true if id.len() == 6 => format!("OMIM:{id}"),
            _ => id.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_get_the_prefix_of_their_shape() {
        let none = ImportConfig::default();
        let cases = [
            ("D001260|208900", "MESH:D001260|OMIM:208900"),
            (" D015862+C058499 ", "MESH:D015862+MESH:C058499"),
            ("OMIM:217000 |C", "OMIM:217000|C"),
            ("1234", "1234"),
        ];
        for (written, shown) in cases {
            assert_eq!(id_of(written, &none), shown);
        }
        let own = ImportConfig { prefix: Some("X".to_owned()), ..none };
        assert_eq!(id_of("D001260|208900+1", &own), "X:D001260|X:208900+X:1");
    }
}
