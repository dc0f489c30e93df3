//! Error messages and exit status.

/// A usage error with a hint; the exit status is 2.
pub fn usage(message: impl Into<String>, hint: &str) -> anyhow::Error {
    canonym_core::Error::usage(message, hint).into()
}

/// Turns an error about a value into a usage error; keeps its hint.
pub fn wrong_usage(error: canonym_core::Error) -> anyhow::Error {
    let hint = error.hint().map(str::to_owned);
    canonym_core::Error::Usage { message: error.to_string(), hint }.into()
}

/// The context of an error of a command that exits with 1 for differences, as `diff` does; the exit status is 2.
#[derive(Debug)]
pub struct CannotCompare;

impl std::fmt::Display for CannotCompare {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("cannot compare")
    }
}

/// Prints `error` and returns the exit status: 2 for usage errors and for a comparison that failed, 0 for a broken pipe, else 1.
pub fn report(error: &anyhow::Error) -> u8 {
    if is_broken_pipe(error) {
        return 0;
    }
    tell(error);
    let is_usage = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(canonym_core::Error::Usage { .. })));
    if is_usage || error.downcast_ref::<CannotCompare>().is_some() { 2 } else { 1 }
}

/// Prints an error, even in quiet mode.
pub fn tell(error: &anyhow::Error) {
    crate::progress::write(&describe(error));
}

/// Fails if `n_files` files of a folder were skipped or partly read; each was reported before.
pub fn left_out(n_files: u64) -> anyhow::Result<()> {
    match n_files {
        0 => Ok(()),
        1 => Err(canonym_core::Error::no_data("1 file was skipped or only partly read").with_hint(SKIPPED_HINT).into()),
        n => Err(canonym_core::Error::no_data(format!("{n} files were skipped or only partly read"))
            .with_hint(SKIPPED_HINT)
            .into()),
    }
}

const SKIPPED_HINT: &str = "all other files were processed; fix or remove the files named above";

/// Parses the value of an option; the hint is part of the error message.
pub fn parse<T: std::str::FromStr<Err = canonym_core::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: canonym_core::Error| {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{error}{hint}")
    })
}

/// Whether the reader of our output has closed it, as `head` does.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => error.kind() == std::io::ErrorKind::BrokenPipe,
        None => false,
    })
}

/// An error, its causes and its hint, one per line, without causes that only repeat the line above.
fn describe(error: &anyhow::Error) -> String {
    let mut last = error.to_string();
    let mut text = format!("error: {last}\n");
    for cause in error.chain().skip(1) {
        let line = cause.to_string();
        if !last.contains(&line) {
            text += &format!("  caused by: {line}\n");
            last = line;
        }
    }
    let hint = error.chain().find_map(|cause| cause.downcast_ref::<canonym_core::Error>()?.hint());
    if let Some(hint) = hint.or_else(|| default_hint(error)) {
        text += &format!("hint: {hint}\n");
    }
    text
}

/// The hint for malformed files whose reader gave none.
fn default_hint(error: &anyhow::Error) -> Option<&'static str> {
    let hint_for = |cause: &canonym_core::Error| match cause {
        canonym_core::Error::Parse { .. } => {
            Some("fix this line, or get a complete copy; see `canonym help formats` and `canonym help sources`")
        }
        canonym_core::Error::Artifact { .. } => Some("get a complete copy of the file"),
        _ => None,
    };
    error.chain().filter_map(|cause| cause.downcast_ref()).find_map(hint_for)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn each_cause_has_its_own_line_and_none_repeats() {
        let inner = std::io::Error::other("the disk is full");
        let error: anyhow::Result<()> = Err(inner).context("cannot write: the disk is full").context("no result");
        let text = describe(&error.expect_err("it is one"));
        assert_eq!(text, "error: no result\n  caused by: cannot write: the disk is full\n");
    }

    #[test]
    fn hints_are_found_anywhere_in_the_chain() {
        let error = usage("invalid number of threads: 0", "choose another").context("cannot start");
        let text = "error: cannot start\n  caused by: invalid number of threads: 0\nhint: choose another\n";
        assert_eq!(describe(&error), text);
    }
}
