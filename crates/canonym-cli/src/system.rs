//! Options of commands that link: where mentions come from, and what becomes of those without a concept.

use canonym_neural::system::linked::MentionSource;

/// Where mentions come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mentions {
    /// Detect mentions in the text.
    Detect,
    /// Use the annotations of the input.
    Gold,
}

impl From<Mentions> for MentionSource {
    fn from(mentions: Mentions) -> MentionSource {
        match mentions {
            Mentions::Detect => MentionSource::Detect,
            Mentions::Gold => MentionSource::Given,
        }
    }
}

/// What becomes of mentions without a concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Nil {
    /// Drop them.
    Drop,
    /// Keep them, with `nil` set to true.
    Keep,
}
