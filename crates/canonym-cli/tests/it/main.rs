//! The command line as users meet it: exit status, standard output and standard error of every command.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adapt;
mod compare;
mod convert;
mod damaged;
mod documents;
mod dual;
mod eval;
mod eval_report;
mod eval_warnings;
mod everyday;
mod filter;
mod frozen;
mod help;
mod hostile;
mod interrupt;
mod kb_build;
mod kb_diff;
mod kb_fetch;
mod kb_lint;
mod kb_read;
mod kb_starter;
mod leaks;
mod link;
mod link_abbreviations;
mod link_output;
mod link_unlinked;
mod map;
mod multitask;
mod output;
mod pipeline;
mod rescnn;
mod rivals;
mod sampling;
mod serve;
mod support;
