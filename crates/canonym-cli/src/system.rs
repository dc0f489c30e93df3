//! Options of commands that link: where mentions come from, and how unlinked ones are handled.

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

/// How unlinked mentions are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Nil {
    /// Drop them.
    Drop,
    /// Keep them, with `nil` set to true.
    Keep,
}
