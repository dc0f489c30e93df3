//! Expands `{fold}` in an experiment, so that one file serves all folds of a corpus.

/// Replaces `{fold}` in every string of an experiment by the value of its entry `fold`.
pub fn fill(table: &mut toml::Table) -> canonym_core::Result<()> {
    let fold = table.get("fold").map(toml::Value::to_string);
    table.iter_mut().try_for_each(|(key, value)| fill_value(key, value, fold.as_deref()))
}

fn fill_value(key: &str, value: &mut toml::Value, fold: Option<&str>) -> canonym_core::Result<()> {
    match value {
        toml::Value::String(text) if text.contains("{fold}") => {
            let missing = || {
                let error = canonym_core::Error::config(format!("`{key}` uses {{fold}}, but there is no entry `fold`"));
                error.with_hint("choose one, for example `--set fold=0`")
            };
            *text = text.replace("{fold}", fold.ok_or_else(missing)?);
            Ok(())
        }
        toml::Value::Array(rows) => rows.iter_mut().try_for_each(|row| fill_value(key, row, fold)),
        toml::Value::Table(table) => table.iter_mut().try_for_each(|(key, value)| fill_value(key, value, fold)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fold_number_is_filled_into_nested_strings() {
        let text = "fold = 3\n\n[data]\nqueries = \"fold-{fold}.txt\"\n\n[[more]]\npath = [\"{fold}/{fold}\"]\n";
        let mut table: toml::Table = toml::from_str(text).unwrap();
        fill(&mut table).unwrap();
        assert_eq!(toml::to_string(&table).unwrap(), text.replace("{fold}", "3"));
        let mut table: toml::Table = toml::from_str("[data]\nqueries = \"fold-{fold}.txt\"").unwrap();
        assert_eq!(fill(&mut table).unwrap_err().to_string(), "`queries` uses {fold}, but there is no entry `fold`");
    }
}
