//! The program `canonym`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(canonym_cli::run(std::env::args_os()))
}
