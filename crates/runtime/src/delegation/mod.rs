//! Full delegation: the host carries model requests, and the turn cannot tell. One stream, one request; what each side
//! may do in it is in `stream.rs`, what a host may ask for when it opens a thread in `terms.rs`.

mod error;
mod failure;
mod host;
mod incoming;
mod reading;
#[cfg(test)]
mod record_tests;
mod request;
#[cfg(test)]
mod schedules;
mod seat;
mod shape;
mod stream;
#[cfg(test)]
mod stream_tests;
mod terms;
#[cfg(test)]
mod testing;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use protocol::ThreadId;

pub use error::DelegationError;
pub(crate) use failure::{gone_for_good, superseded};
pub use host::{Host, HostError, HostId};
pub use seat::Seat;
pub(crate) use shape::{shape, shape_offer};
pub(crate) use terms::Terms;
pub use terms::{DELEGATION_FEATURES, DELEGATION_VERSION};
pub use transport::DelegatedTransport;

use crate::runtime::{Runtime, lock};

/// What the process knows of hosts and their threads.
#[derive(Debug, Default)]
pub(crate) struct Delegation {
    /// Each is owned by its thread.
    seats: Mutex<HashMap<ThreadId, Weak<Seat>>>,
    /// The newest lease seen of each thread, loaded or not.
    epochs: Mutex<HashMap<ThreadId, u64>>,
}

impl Delegation {
    pub(crate) fn seat(&self, thread: &ThreadId) -> Option<Arc<Seat>> {
        lock(&self.seats).get(thread)?.upgrade()
    }

    fn keep(&self, seat: &Arc<Seat>) {
        let mut seats = lock(&self.seats);
        seats.retain(|_, seat| seat.strong_count() > 0);
        seats.insert(seat.thread_id().clone(), Arc::downgrade(seat));
    }

    /// A host whose lease has passed to another may not go on.
    fn fence(&self, thread: &ThreadId, given: Option<u64>) -> Result<(), DelegationError> {
        let mut epochs = lock(&self.epochs);
        let seen = epochs.get(thread).copied();
        match (given, seen) {
            (given, Some(seen)) if given.is_none_or(|given| given < seen) => {
                Err(DelegationError::Fenced { given, seen })
            }
            (Some(given), _) => {
                epochs.insert(thread.clone(), given);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }
}

impl Runtime {
    /// A host's connection has ended: what it carried will not come.
    pub fn host_gone(&self, host: HostId) {
        let seats: Vec<_> = lock(&self.inner.delegation.seats).values().filter_map(Weak::upgrade).collect();
        for seat in seats {
            seat.detach(host);
        }
        self.inner.uploads.forget(host);
    }
}
