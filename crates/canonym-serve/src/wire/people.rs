//! Accounts, sign-in and tokens.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The name of the user of a server without accounts.
pub const LOCAL: &str = "local";

/// The role of an account. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Annotates.
    Annotator,
    /// Manages projects, imports, jobs and models.
    Curator,
    /// Manages accounts.
    Admin,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Role::Annotator => "annotator",
            Role::Curator => "curator",
            Role::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Role> {
        [Role::Annotator, Role::Curator, Role::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Person {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// Whether it can sign in.
    pub is_active: bool,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokenRow {
    /// The first characters of its hash.
    pub id: String,
    /// The name.
    pub name: String,
    /// When it was created.
    pub made_at: String,
    /// When it expires; null if never.
    pub expires_at: Option<String>,
}

/// Credentials.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// The signed-in user.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct LoggedIn {
    /// The account.
    pub user: Person,
}

/// A new account.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPerson {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// The role.
    pub role: Role,
}

/// A new member of a project.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMember {
    /// The number of the account.
    pub id: i64,
}

/// Accounts.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct People {
    /// In order of creation.
    pub people: Vec<Person>,
}

/// Changes to an account.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonPatch {
    /// The role.
    #[serde(default)]
    pub role: Option<Role>,
    /// A new password; signs out all sessions and revokes all tokens.
    #[serde(default)]
    pub password: Option<String>,
    /// Whether it can sign in.
    #[serde(default)]
    pub is_active: Option<bool>,
}

/// A change of one's own password.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The current password.
    pub old: String,
    /// The new password.
    pub new: String,
}

/// Tokens.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Tokens {
    /// Oldest first.
    pub tokens: Vec<TokenRow>,
}

/// A new token.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The name.
    pub name: String,
    /// Days until it expires; never if not given.
    #[serde(default)]
    pub days: Option<usize>,
}

/// A token with its secret, which is shown only once.
#[derive(Clone, Serialize, ToSchema)]
pub struct Token {
    /// The name.
    pub name: String,
    /// The secret, sent as `Authorization: Bearer …`.
    pub token: String,
}
