//! Why a choice or a description of environments is refused, with the name of the field.

use protocol::EnvironmentId;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{field}: no environment has the id `{id}`; known are {known}")]
    Unknown { field: String, id: EnvironmentId, known: String },
    #[error("environments[{at}].environmentId: `{id}` is chosen twice")]
    Twice { at: usize, id: EnvironmentId },
    #[error("environments: {count} were chosen at once; the most is {max}")]
    TooManyChosen { count: usize, max: usize },
    /// A value that is invalid for any environment.
    #[error("{field} {problem}")]
    Invalid { field: String, problem: &'static str },
    #[error("environmentId: `local` is this machine and always there; choose another id")]
    Reserved,
    #[error(
        "environmentId: `{0}` is used by a loaded thread; unload the thread, let it choose another, or add this one under \
         another id"
    )]
    InUse(EnvironmentId),
    #[error("environmentId: there are {0} environments already; replace one of them")]
    TooMany(usize),
}

impl EnvironmentError {
    pub(super) fn invalid(field: impl Into<String>, problem: &'static str) -> Self {
        Self::Invalid { field: field.into(), problem }
    }
}
