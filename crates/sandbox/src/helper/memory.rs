//! The default memory limit of a command: most of the available memory, so that a runaway command is killed before
//! everything else on the machine or in the container.

use std::fs;
use std::path::Path;

/// A cgroup's limit, in new and old hierarchies.
pub(crate) const LIMIT_FILES: [&str; 2] = ["memory.max", "memory.limit_in_bytes"];

/// In per cent.
const SHARE: u64 = 80;

/// Most of the memory that a process in this cgroup can have.
pub(crate) fn most(group: &Path) -> Option<u64> {
    let system = rustix::system::sysinfo();
    let machine = u64::from(system.mem_unit).checked_mul(system.totalram)?;
    // The first folder without a limit file is above the root of the hierarchy.
    let texts = group
        .ancestors()
        .map_while(|folder| LIMIT_FILES.iter().find_map(|file| fs::read_to_string(folder.join(file)).ok()));
    Some(share(machine, texts))
}

/// "max", and values above the machine's memory, mean no limit.
fn share(machine: u64, limits: impl Iterator<Item = String>) -> u64 {
    let least = limits.filter_map(|text| text.trim().parse().ok()).fold(machine, u64::min);
    least / 100 * SHARE
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_smallest_limit_counts() {
        let share = |limits: &[&str]| share(1000, limits.iter().map(|limit| format!("{limit}\n")));
        assert_eq!(share(&[]), 800);
        assert_eq!(share(&["max", "9223372036854771712"]), 800);
        assert_eq!(share(&["max", "500", "700"]), 400);
    }
}
