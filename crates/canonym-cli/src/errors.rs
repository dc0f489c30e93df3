//! How the program ends: what it says of an error, and with which status.

use std::process::ExitCode;

/// The error of an option or argument that cannot be used, and what to do about it.
pub fn usage(message: impl Into<String>, hint: &str) -> anyhow::Error {
    canonym_core::Error::usage(message, hint).into()
}

/// An error of a value as one of usage.
pub fn wrong_usage(error: canonym_core::Error) -> anyhow::Error {
    let hint = error.hint().map(str::to_owned);
    canonym_core::Error::Usage { message: error.to_string(), hint }.into()
}

/// The status of a run that ended with `error`, after telling the user of it.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    tell(error);
    let of_usage = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(canonym_core::Error::Usage { .. })));
    ExitCode::from(if of_usage { 2 } else { 1 })
}

/// Tells the user of an error, also where the program goes on.
pub fn tell(error: &anyhow::Error) {
    crate::progress::write(&describe(error));
}

/// The error of a run that left out files of a folder, after it told of each.
pub fn left_out(n_files: u64) -> anyhow::Result<()> {
    match n_files {
        0 => Ok(()),
        1 => Err(canonym_core::Error::invalid("1 file was skipped or only partly read").with_hint(MEND).into()),
        n => Err(canonym_core::Error::invalid(format!("{n} files were skipped or only partly read"))
            .with_hint(MEND)
            .into()),
    }
}

const MEND: &str = "all other files were processed; fix or remove the files named above";

/// A value of an option; where it is none, the message holds the hint.
pub fn parse<T: std::str::FromStr<Err = canonym_core::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: canonym_core::Error| {
        let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{error}{hint}")
    })
}

/// The reader of our output went away, as `head` does; nobody is left to be told.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<std::io::Error>() {
        Some(error) => error.kind() == std::io::ErrorKind::BrokenPipe,
        None => false,
    })
}

/// An error, its causes and its hint, a line each; a cause that only repeats the line above it is left out.
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
    if let Some(hint) = hint.or_else(|| usual_hint(error)) {
        text += &format!("hint: {hint}\n");
    }
    text
}

/// What helps with a malformed file where the reader knows nothing better.
fn usual_hint(error: &anyhow::Error) -> Option<&'static str> {
    let of_file = |cause: &canonym_core::Error| match cause {
        canonym_core::Error::Parse { .. } => {
            Some("fix the file there, or get a complete copy; see `canonym help formats` and `canonym help sources`")
        }
        canonym_core::Error::Artifact { .. } => Some("get a complete copy of the file"),
        _ => None,
    };
    error.chain().filter_map(|cause| cause.downcast_ref()).find_map(of_file)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn causes_stand_on_lines_of_their_own_and_do_not_repeat() {
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
