//! The running program: the executable, unless the crate is part of a module that another program has loaded, such as Python.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// The file that contains this code, and the command that runs the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable or the loaded module. Its size and time distinguish versions.
    pub file: PathBuf,
    /// The program and its first arguments; never empty.
    pub command: Vec<OsString>,
}

static HOSTED: OnceLock<Program> = OnceLock::new();

/// Declares that the code runs inside another program; the first declaration holds.
pub fn set_hosted(program: Program) {
    // A second declaration comes from a second import of the same module.
    drop(HOSTED.set(program));
}

/// The running program.
///
/// # Errors
/// If the operating system does not tell the path of the executable.
pub fn current() -> io::Result<Program> {
    match HOSTED.get() {
        Some(program) => Ok(program.clone()),
        None => std::env::current_exe().map(|file| Program { command: vec![file.clone().into()], file }),
    }
}

impl Program {
    /// The command line, without arguments.
    pub fn command(&self) -> Command {
        let (program, arguments) = self.command.split_first().expect("a command names a program");
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_the_executable_unless_declared() {
        let executable = current().unwrap();
        assert_eq!(executable.command, [executable.file.clone().into_os_string()]);
        let hosted =
            Program { file: "canonym.so".into(), command: vec!["python".into(), "-m".into(), "canonym".into()] };
        set_hosted(hosted.clone());
        assert_eq!(current().unwrap(), hosted);
        let command = hosted.command();
        assert_eq!(command.get_program(), "python");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-m", "canonym"]);
    }
}
