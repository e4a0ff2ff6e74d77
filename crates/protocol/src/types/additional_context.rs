//! Context a client adds to a turn without it becoming a user prompt.

use super::prelude::*;

/// One entry. The key beside it is the client's own and becomes the tag around the value.
#[wire]
pub struct AdditionalContextEntry {
    /// Cut in the middle when longer than about 1,000 tokens.
    pub value: String,
    pub kind: AdditionalContextKind,
}

/// Decides the role the model sees the entry under.
#[wire]
pub enum AdditionalContextKind {
    /// From outside: shown with the user role, marked as external.
    Untrusted,
    /// From the application itself: shown with the developer role.
    Application,
}
