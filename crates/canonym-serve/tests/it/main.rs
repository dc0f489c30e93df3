//! The interface without a socket: every request goes straight to the router.

mod durable;
mod flow;
mod hostile;
mod jobs;
mod linking;
mod people;
mod security;
mod support;
