//! How a command ended.

use crate::helper::wire::HelperStatus;

/// Shells add this to the number of the signal that ended a command.
const SIGNAL_BASE: i32 = 128;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// As a shell reports it: 128 + n for signal n.
    pub code: i32,
    pub signal: Option<i32>,
}

impl Exit {
    pub(crate) fn with_code(code: i32) -> Self {
        Self { code, signal: None }
    }

    pub(crate) fn by_signal(signal: i32) -> Self {
        Self { code: SIGNAL_BASE + signal, signal: Some(signal) }
    }

    /// `None` if the status is not an end.
    pub(crate) fn from_status(status: &HelperStatus) -> Option<Self> {
        match *status {
            HelperStatus::Exited { code } => Some(Self::with_code(code)),
            HelperStatus::Signaled { signal } => Some(Self::by_signal(signal)),
            HelperStatus::Started { .. } | HelperStatus::Failed(_) => None,
        }
    }

    pub fn success(self) -> bool {
        self.code == 0
    }
}
