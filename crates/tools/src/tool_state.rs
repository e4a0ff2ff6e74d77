//! State that tools keep for a thread between calls, found by its type: the thread knows no individual tool.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use parking_lot::Mutex;

pub(crate) trait ToolState: Any + Send + Sync {
    /// Ends everything that runs. The thread is being closed, or its terminals are cleared.
    fn clear(&self);
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl Debug for dyn ToolState + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToolState")
    }
}

#[derive(Debug, Default)]
pub(crate) struct ToolStates(Mutex<HashMap<TypeId, Arc<dyn ToolState>>>);

impl ToolStates {
    /// The state of this type, created on first use.
    pub(crate) fn get<T: ToolState + Default>(&self) -> Arc<T> {
        let mut all = self.0.lock();
        let made = || -> Arc<dyn ToolState> { Arc::new(T::default()) };
        let found: Arc<dyn Any + Send + Sync> = all.entry(TypeId::of::<T>()).or_insert_with(made).clone();
        // The key is the type, so the downcast succeeds.
        found.downcast().unwrap_or_default()
    }

    pub(crate) fn clear(&self) {
        let all: Vec<_> = self.0.lock().values().cloned().collect();
        all.iter().for_each(|state| state.clear());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Counter(AtomicUsize);

    impl ToolState for Counter {
        fn clear(&self) {
            self.0.store(0, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_state_is_the_same_for_every_call_until_it_is_cleared() {
        let states = ToolStates::default();
        states.get::<Counter>().0.store(3, Ordering::SeqCst);
        assert_eq!(states.get::<Counter>().0.load(Ordering::SeqCst), 3);
        states.clear();
        assert_eq!(states.get::<Counter>().0.load(Ordering::SeqCst), 0);
    }
}
