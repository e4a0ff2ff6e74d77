//! A cgroup of its own for a command, where one is to be had: it counts processes and memory of the whole tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Limits;

/// Removed, with what it limited, when dropped.
#[derive(Debug, Default)]
pub(crate) struct Group {
    folders: Vec<PathBuf>,
    processes: bool,
    memory: bool,
}

impl Group {
    /// Makes what can be made. Where none can, other limits have to do.
    pub(crate) fn make(limits: &Limits) -> Self {
        let mut group = Self::default();
        let Some(hierarchies) = Hierarchies::read() else { return group };
        let name = format!("oarlock-{}", std::process::id());
        let pids = limits.processes.to_string();
        group.processes = group.limit(hierarchies.parents_for("pids"), &name, &[("pids.max", pids)]);
        if let Some(bytes) = limits.memory {
            // The second is for old hierarchies; each has only its own file.
            let values = [("memory.max", bytes.to_string()), ("memory.limit_in_bytes", bytes.to_string())];
            group.memory = group.limit(hierarchies.parents_for("memory"), &name, &values);
        }
        group
    }

    pub(crate) fn limits_processes(&self) -> bool {
        self.processes
    }

    pub(crate) fn limits_memory(&self) -> bool {
        self.memory
    }

    /// The process must have one thread, as every helper has.
    pub(crate) fn add(&self, pid: i32) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| {
            // Old hierarchies take a thread at once, but make a whole process wait for all of the kernel's readers.
            let thread = folder.join("tasks");
            let file = if thread.exists() { thread } else { folder.join("cgroup.procs") };
            fs::write(file, pid.to_string())
        })
    }

    pub(crate) fn add_self(&self) -> io::Result<()> {
        // 0 stands for whoever writes it.
        self.add(0)
    }

    fn limit(&mut self, parents: Vec<PathBuf>, name: &str, values: &[(&str, String)]) -> bool {
        parents.into_iter().any(|parent| self.limit_in(&parent.join(name), values))
    }

    fn limit_in(&mut self, folder: &Path, values: &[(&str, String)]) -> bool {
        let known = self.folders.iter().any(|made| made == folder);
        if !known && fs::create_dir(folder).is_err() {
            return false;
        }
        let set = values.iter().filter(|(file, _)| folder.join(file).exists());
        let set = set
            .map(|(file, value)| fs::write(folder.join(file), value).is_ok())
            .fold(None, |all, ok| Some(all.unwrap_or(true) && ok));
        let limited = set == Some(true) && can_join(folder);
        if !known {
            if limited {
                self.folders.push(folder.to_owned());
            } else {
                let _ = fs::remove_dir(folder);
            }
        }
        limited
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn can_join(folder: &Path) -> bool {
    fs::File::options().write(true).open(folder.join("cgroup.procs")).is_ok()
}

/// Where this process stands in each hierarchy.
struct Hierarchies {
    /// Controllers ("" for the new hierarchy) and the folder in which this process is.
    places: Vec<(String, PathBuf)>,
}

impl Hierarchies {
    fn read() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let member = fs::read_to_string("/proc/self/cgroup").ok()?;
        Some(Self::parse(&mounts, &member))
    }

    fn parse(mounts: &str, member: &str) -> Self {
        let places = member.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let mount = mounts.lines().find_map(|line| mount_of(line, controllers))?;
            let inside = Path::new(path).strip_prefix(&mount.root).ok()?;
            Some((controllers.to_owned(), mount.at.join(inside)))
        });
        Self { places: places.collect() }
    }

    /// Folders in which a group with this controller could be made, the nearest first.
    fn parents_for(&self, controller: &str) -> Vec<PathBuf> {
        let mut parents = Vec::new();
        for (controllers, place) in &self.places {
            if controllers.split(',').any(|known| known == controller) {
                parents.push(place.clone());
            } else if controllers.is_empty() {
                // There a group that has processes cannot have limited groups below it, but its parent may.
                parents.extend(
                    place.ancestors().take(2).filter(|at| hands_down(at, controller)).map(Path::to_owned),
                );
            }
        }
        parents
    }
}

fn hands_down(folder: &Path, controller: &str) -> bool {
    fs::read_to_string(folder.join("cgroup.subtree_control"))
        .is_ok_and(|text| text.split_whitespace().any(|known| known == controller))
}

struct Mount {
    root: PathBuf,
    at: PathBuf,
}

/// The mount of a hierarchy, from one line of the table of mounts.
fn mount_of(line: &str, controllers: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1)?);
    let fits = match kind {
        "cgroup2" => controllers.is_empty(),
        "cgroup" => {
            !controllers.is_empty()
                && controllers.split(',').all(|name| options.split(',').any(|o| o == name))
        }
        _ => false,
    };
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?, before.next()?);
    fits.then(|| Mount { root: root.into(), at: at.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
40 30 0:35 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 30 0:36 /box /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory
42 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn finds_where_it_stands_in_old_and_new_hierarchies() {
        let found = Hierarchies::parse(MOUNTS, "8:pids:/a/b\n4:memory:/box/c\n0::/d\n3:cpu:/x");
        let expected: [(&str, &str); 3] = [
            ("pids", "/sys/fs/cgroup/pids/a/b"),
            ("memory", "/sys/fs/cgroup/memory/c"),
            ("", "/sys/fs/cgroup/unified/d"),
        ];
        let expected: Vec<_> = expected.iter().map(|(c, p)| ((*c).to_owned(), PathBuf::from(p))).collect();
        assert_eq!(found.places, expected);
    }
}
