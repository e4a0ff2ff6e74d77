//! Flags that a client switches for the process's lifetime, unless a layer sets them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Feature;
use crate::features::RUNTIME_CONTROLLED;

/// Clones share the flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuntimeFeatures(Arc<Mutex<BTreeMap<String, bool>>>);

impl RuntimeFeatures {
    pub(crate) fn current(&self) -> BTreeMap<String, bool> {
        self.0.lock().clone()
    }

    /// Switches these flags and keeps the others. If one cannot be switched, nothing changes.
    pub(crate) fn set(&self, flags: &BTreeMap<String, bool>) -> Result<(), String> {
        flags.keys().try_for_each(|key| check(key))?;
        let mut current = self.0.lock();
        current.extend(flags.iter().map(|(key, enabled)| (key.clone(), *enabled)));
        Ok(())
    }
}

fn check(key: &str) -> Result<(), String> {
    if RUNTIME_CONTROLLED.contains(&key) {
        return Ok(());
    }
    Err(match (Feature::newer_name(key), Feature::find(key)) {
        (Some(newer), _) => {
            format!("invalid feature enablement `{key}`: use canonical feature key `{newer}`")
        }
        (None, None) => format!("invalid feature enablement `{key}`"),
        (None, Some(_)) => format!(
            "unsupported feature enablement `{key}`: currently supported features are {}",
            RUNTIME_CONTROLLED.join(", ")
        ),
    })
}
