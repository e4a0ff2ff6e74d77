//! The limits of a command without a cgroup.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::failure::At;
use super::sys::{self, ResourceLimit};
use super::wire::{StartFailure, StartStage};

/// Process limits, inherited by all children.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessLimits {
    pub(crate) processes: Option<u64>,
    pub(crate) memory: Option<u64>,
}

impl ProcessLimits {
    pub(crate) fn apply(self) -> Result<(), StartFailure> {
        sys::set_limit(ResourceLimit::Core, 0).at(StartStage::Limits, "switch off core dumps")?;
        if let Some(processes) = self.processes {
            sys::set_limit(ResourceLimit::Processes, processes).at(StartStage::Limits, "limit processes")?;
        }
        if let Some(memory) = self.memory {
            sys::set_limit(ResourceLimit::Memory, memory).at(StartStage::Limits, "limit memory")?;
        }
        Ok(())
    }
}

/// The number of this user's threads on the machine, which is what the kernel limits outside a user namespace.
pub(crate) fn running_threads() -> u64 {
    let user = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let own = entries.flatten().filter(|entry| {
        entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit)
            && entry.metadata().is_ok_and(|found| found.uid() == user)
    });
    own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, |tasks| tasks.count() as u64)).sum()
}
