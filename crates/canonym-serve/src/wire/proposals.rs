//! Proposals for the terminology: new concepts and synonyms.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::marks::Named;

/// What is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProposalKind {
    /// A new concept.
    Concept,
    /// Another name of a concept.
    Synonym,
}

impl ProposalKind {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            ProposalKind::Concept => "concept",
            ProposalKind::Synonym => "synonym",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<ProposalKind> {
        [ProposalKind::Concept, ProposalKind::Synonym].into_iter().find(|kind| kind.name() == name)
    }
}

/// How a proposed synonym relates to its concept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SynonymScope {
    /// It means the same.
    #[default]
    Exact,
    /// It means something narrower.
    Narrow,
    /// It means something broader.
    Broad,
    /// It means something related.
    Related,
}

impl SynonymScope {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            SynonymScope::Exact => "exact",
            SynonymScope::Narrow => "narrow",
            SynonymScope::Broad => "broad",
            SynonymScope::Related => "related",
        }
    }

    /// The scope of this name.
    pub fn parse(name: &str) -> Option<SynonymScope> {
        let all = [SynonymScope::Exact, SynonymScope::Narrow, SynonymScope::Broad, SynonymScope::Related];
        all.into_iter().find(|scope| scope.name() == name)
    }
}

/// A new proposal.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProposal {
    /// What is proposed.
    pub kind: ProposalKind,
    /// The synonym, or the name of the new concept.
    pub name: String,
    /// The ID of the concept of a synonym, or of the broader concept of a new one.
    #[serde(default)]
    pub concept: Option<String>,
    /// How a synonym relates to its concept.
    #[serde(default)]
    pub scope: SynonymScope,
    /// The semantic type of a new concept; that of the broader one if null.
    #[serde(default, rename = "type")]
    pub semantic_type: Option<String>,
    /// The definition of a new concept.
    #[serde(default)]
    pub definition: Option<String>,
    /// The document where it occurs, kept as evidence.
    #[serde(default)]
    pub document: Option<i64>,
    /// The span where it occurs there, in code points, end exclusive.
    #[serde(default)]
    pub start: Option<usize>,
    /// The end of the span.
    #[serde(default)]
    pub end: Option<usize>,
}

/// A proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Proposal {
    /// The number.
    pub id: i64,
    /// What is proposed.
    pub kind: ProposalKind,
    /// The concept that mentions are linked to: the new one, or that of the synonym.
    pub concept: Named,
    /// The broader concept of a new one.
    pub broader: Option<Named>,
    /// The synonym, or the name of the new concept.
    pub name: String,
    /// How a synonym relates to its concept.
    pub scope: SynonymScope,
    /// The semantic type.
    #[serde(rename = "type")]
    pub semantic_type: String,
    /// The definition; empty if there is none.
    pub definition: String,
    /// The document where it was proposed.
    pub document: Option<i64>,
    /// The text around it there.
    pub evidence: String,
    /// Who proposed it.
    pub by: String,
    /// When.
    pub at: String,
    /// Number of reviewed mentions with this name and concept in the project.
    pub n_mentions: usize,
}

/// The proposals of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Proposals {
    /// Oldest first.
    pub proposals: Vec<Proposal>,
}

/// A stored proposal, and what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Proposed {
    /// The proposal.
    pub proposal: Proposal,
    /// Number of predictions that it added or changed in unfinished documents.
    pub n_predicted: usize,
}
