//! The command line as users meet it: exit status, standard output and standard error of every command.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod damaged;
mod eval;
mod help;
mod interrupt;
mod kb_build;
mod kb_read;
mod link;
mod map;
mod output;
mod support;
