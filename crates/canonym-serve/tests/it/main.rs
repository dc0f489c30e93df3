//! Tests of the HTTP API without a socket: requests go directly to the router.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod archives;
mod attacked;
mod costs;
mod curation;
mod described;
mod disagreements;
mod durable;
mod fhir;
mod files;
mod flow;
mod gilda;
mod hostile;
mod inception;
mod jobs;
mod linking;
mod maintenance;
mod mcp;
mod members;
mod options;
mod people;
mod review;
mod scale;
mod schema;
mod security;
mod support;
mod team;
mod tls;
