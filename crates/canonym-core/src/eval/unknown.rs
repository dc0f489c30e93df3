//! Gold ids that a terminology does not have, which no system can find.

use std::collections::{HashMap, HashSet};

use super::ids::IdSet;
use super::thousands;

/// Maximum number of ids listed in a warning.
const MAX_NAMED: usize = 3;

/// Mentions with ids that a terminology lacks.
pub struct Unknown<'a> {
    what: &'a str,
    n: usize,
    /// Number of mentions with ids.
    n_all: usize,
    /// The first unknown ids.
    first: Vec<&'a str>,
    /// An unknown id and a known one that differ only in the prefix.
    other_prefix: Option<(&'a str, &'a str)>,
}

/// The sets without an id in `known`, if any.
pub fn unknown<'a>(
    what: &'a str,
    sets: impl Iterator<Item = &'a IdSet>,
    known: &'a HashSet<String>,
) -> Option<Unknown<'a>> {
    let mut unknown = Unknown { what, n: 0, n_all: 0, first: Vec::new(), other_prefix: None };
    let mut missing = Vec::new();
    for set in sets.filter(|set| !set.is_nil()) {
        unknown.n_all += 1;
        if !set.any_in(known) {
            unknown.n += 1;
            missing.extend(set.iter());
        }
    }
    if unknown.n == 0 {
        return None;
    }
    let local = |id: &'a str| id.rsplit(':').next().unwrap_or(id);
    // The smallest of several, so that the message does not depend on set order.
    let mut known_as: HashMap<&str, &str> = HashMap::new();
    for id in known {
        let named = known_as.entry(local(id)).or_insert(id);
        *named = (*named).min(id);
    }
    unknown.other_prefix = missing.iter().find_map(|id| known_as.get(local(id)).map(|known| (*id, *known)));
    for id in missing {
        if unknown.first.len() < MAX_NAMED && !unknown.first.contains(&id) {
            unknown.first.push(id);
        }
    }
    Some(unknown)
}

impl Unknown<'_> {
    /// Whether no id is known, because of different prefixes.
    pub fn is_of_prefixes(&self) -> bool {
        self.n == self.n_all && self.other_prefix.is_some()
    }

    /// A warning and a hint; `terminology` is the name of the terminology.
    pub fn lines(&self, terminology: &str) -> [String; 2] {
        let Unknown { what, n, n_all, first, .. } = self;
        let terminology = if terminology.is_empty() { "the terminology" } else { terminology };
        let (n, n_all) = (thousands(*n as u64), thousands(*n_all as u64));
        let hint = match self.other_prefix {
            Some((missing, known)) => {
                format!(
                    "the terminology uses `{known}`, the annotations `{missing}`: use the same prefix for both (`--prefix`, `prefix`)"
                )
            }
            None => "these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the \
                     other with `canonym kb build --join`"
                .to_owned(),
        };
        [
            format!(
                "warning: {n} of {n_all} {what} have ids missing from {terminology} (such as {})",
                first.join(", ")
            ),
            format!("hint: {hint}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn ids_that_a_terminology_lacks_are_counted_and_named() {
        let check = |gold: &[&str], known: &[&str], expected: Expect| {
            let sets: Vec<IdSet> = gold.iter().map(|id| IdSet::parse_one(id)).collect();
            let known = known.iter().map(|id| (*id).to_owned()).collect();
            let lines = unknown("mentions", sets.iter(), &known).map(|unknown| unknown.lines("shapes").join("\n"));
            expected.assert_eq(&lines.unwrap_or_default());
        };
        check(&["S1", "S2|S9", "-1"], &["S1", "S2"], expect![""]);
        check(
            &["S1", "S9", "S9", "S7", "S6", "S5", "-1"],
            &["S1", "S2"],
            expect![[r#"
                warning: 5 of 6 mentions have ids missing from shapes (such as S9, S7, S6)
                hint: these cannot be linked correctly: use the release that the corpus was annotated with, or map one to the other with `canonym kb build --join`"#]],
        );
        check(
            &["S9", "S1"],
            &["Y:S1", "X:S1"],
            expect![[r#"
                warning: 2 of 2 mentions have ids missing from shapes (such as S9, S1)
                hint: the terminology uses `X:S1`, the annotations `S1`: use the same prefix for both (`--prefix`, `prefix`)"#]],
        );
    }
}
