//! Dictionaries of lines `ids||name` or `ids||name|name…`, as the BioSyn protocol and MEDIC use them.
//!
//! `|` (alternatives) and `+` (parts of a composite) join ids; the joined ids are one concept. Lines of one concept
//! that follow each other become one record. The first name that the file gives a concept is the preferred one.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::{ImportConfig, Report, Sink, keep, map_parts, push_name, with_prefix};
use crate::Result;
use crate::input::Input;
use crate::kb::{ConceptRecord, Scope};

/// A record is handed on after this many names, so that one concept never fills the memory.
const MOST_NAMES: usize = 1 << 16;

/// Reads a dictionary to its end.
///
/// Ids without a prefix get the one of `config`; where it has none, `D` or `C` and digits are `MESH:`, six digits are `OMIM:`.
pub fn read(input: &mut Input, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<()> {
    // Hashes of the ids that were met: a concept that comes back has its preferred name already.
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
        if ids != raw_id || record.names.len() > MOST_NAMES {
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

/// Ids as they are shown: with the prefix of `config`, else with that of their shape.
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
