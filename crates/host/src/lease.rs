//! The lease of this host among others on the same store, and who it is among them.

use std::time::Duration;

use tokio::time::Instant;

/// The lease of this host, by its own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The store is this host's alone.
    Forever,
    Until {
        /// Another one after the lease was lost.
        term: LeaseTerm,
        ends: Instant,
    },
    /// Others may have its tasks. Nothing of it may go on.
    Over,
}

/// Tells a lease from the next one, after it was lost.
pub(crate) type LeaseTerm = i64;

impl LeaseState {
    /// The current term. Work that began in another one must stop.
    pub(crate) fn term(self) -> Option<LeaseTerm> {
        match self {
            Self::Forever => Some(0),
            Self::Until { term, .. } => Some(term),
            Self::Over => None,
        }
    }
}

/// The identity of this host among others.
#[derive(Debug, Clone)]
pub struct ReplicaOptions {
    /// Stays the same when the host is started again. No two hosts that run share one.
    pub id: String,
    /// Where its runtimes are. Only hosts of the same site take over each other's tasks.
    pub site: String,
    /// How long others wait before they take over the tasks of a host that was not heard of.
    pub ttl: Duration,
    /// Whether tasks that nobody runs go on by themselves. Else each does when a client opens it or decides in it.
    pub adopts: bool,
}

impl ReplicaOptions {
    /// The only host of an embedded store.
    pub fn embedded() -> Self {
        let (id, site) = ("embedded".to_owned(), "local".to_owned());
        Self { id, site, ttl: Duration::from_secs(15), adopts: true }
    }
}
