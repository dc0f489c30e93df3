//! Rows with cells separated by tabs, or by commas with optional quotes.

use std::borrow::Cow;

/// The separator of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Division {
    /// Tabs; quotes have no meaning.
    Tabs,
    /// Commas; cells can be enclosed in `"`, with `""` for a quote.
    Commas,
}

/// The cells of a line. Quoted cells cannot contain line breaks.
pub(super) fn split(line: &str, division: Division) -> Result<Vec<Cow<'_, str>>, String> {
    if division == Division::Tabs {
        return Ok(line.split('\t').map(Cow::Borrowed).collect());
    }
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(inside) => quoted(inside).ok_or_else(|| format!("unclosed quote in column {}", cells.len() + 1))?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(cells),
            None => return Err(format!("text after the closing quote of column {}", cells.len())),
        }
    }
}

/// The content of a quoted cell, and the rest of the line.
fn quoted(inside: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut end = inside.find('"')?;
    let mut doubled = false;
    while inside[end + 1..].starts_with('"') {
        doubled = true;
        end += 2 + inside[end + 2..].find('"')?;
    }
    let cell = &inside[..end];
    let cell = if doubled { Cow::Owned(cell.replace("\"\"", "\"")) } else { Cow::Borrowed(cell) };
    Some((cell, &inside[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_hold_commas_and_quotes() {
        assert_eq!(split(r#"a,"b"",c"#, Division::Commas), Err("unclosed quote in column 2".to_owned()));
        let cells = split(r#"a,"b, ""c""",,"""","#, Division::Commas).unwrap();
        assert_eq!(cells, ["a", "b, \"c\"", "", "\"", ""]);
        assert!(split(r#""a"b"#, Division::Commas).is_err());
        assert_eq!(split("\"a\tb", Division::Tabs).unwrap(), ["\"a", "b"]);
    }

    proptest! {
        #[test]
        fn quoted_cells_round_trip(cells in prop::collection::vec("[a,\"é ]{0,6}", 1..5)) {
            let quoted: Vec<String> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
            let line = quoted.join(",");
            prop_assert_eq!(split(&line, Division::Commas).unwrap(), cells);
        }

        #[test]
        fn any_line_is_split_or_refused(line in "[a,\"é]{0,20}") {
            let _ = split(&line, Division::Commas);
        }
    }
}
