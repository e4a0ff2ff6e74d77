//! Events of a store, for the user.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::damage::DamageReport;

#[derive(Debug, Clone)]
pub enum StoreEvent {
    /// The index lacks some journals, so they are read.
    IndexRebuilding {
        reason: RebuildReason,
        threads: usize,
    },
    IndexProgress {
        done: usize,
        total: usize,
    },
    IndexRebuilt {
        threads: usize,
        damaged: usize,
    },
    /// The index cannot be kept on disk; lists still work, from the journals.
    IndexInMemory {
        reason: String,
    },
    ThreadDamaged {
        path: PathBuf,
        damage: DamageReport,
    },
    /// A journal without a readable record. It is listed as damaged.
    ThreadUnreadable {
        path: PathBuf,
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebuildReason {
    Missing,
    /// The corrupt file is kept next to the new one.
    Corrupt {
        kept_as: Option<PathBuf>,
    },
    OtherVersion {
        found: i64,
    },
    /// Journals were added or changed while no process updated the index.
    Behind,
}

/// Called for every event, on any thread. Must not call the store.
pub type Observer = Arc<dyn Fn(&StoreEvent) + Send + Sync>;

impl fmt::Display for StoreEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexRebuilding { reason, threads } => write!(f, "{reason}: reading {threads} journals"),
            Self::IndexProgress { done, total } => write!(f, "thread index: {done} of {total}"),
            Self::IndexRebuilt { threads, damaged: 0 } => {
                write!(f, "thread index: ready with {threads} threads")
            }
            Self::IndexRebuilt { threads, damaged } => {
                write!(f, "thread index: ready with {threads} threads, {damaged} of them damaged")
            }
            Self::IndexInMemory { reason } => {
                write!(f, "thread index: kept in memory, because {reason}")
            }
            Self::ThreadDamaged { path, damage } => {
                write!(f, "{} is damaged in {} places", path.display(), damage.total())?;
                match damage.named().first() {
                    Some(first) => write!(f, ", first at {first}"),
                    None => Ok(()),
                }
            }
            Self::ThreadUnreadable { path, reason } => write!(f, "{}: {reason}", path.display()),
        }
    }
}

impl fmt::Display for RebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the thread index is missing"),
            Self::Corrupt { kept_as: Some(path) } => {
                write!(f, "the thread index is corrupt, kept as {}", path.display())
            }
            Self::Corrupt { kept_as: None } => f.write_str("the thread index is corrupt"),
            Self::OtherVersion { found } => write!(f, "the thread index has version {found}"),
            Self::Behind => f.write_str("the thread index is behind"),
        }
    }
}
