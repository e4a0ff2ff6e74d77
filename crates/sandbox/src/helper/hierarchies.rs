//! The cgroup hierarchies, and this process's position in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Where this process stands in each hierarchy.
pub(super) struct Hierarchies {
    /// Controllers ("" for the new hierarchy) and this process's folder.
    places: Vec<(String, PathBuf)>,
}

impl Hierarchies {
    pub(super) fn read() -> Option<Self> {
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

    /// The folder that counts this process for a controller.
    pub(super) fn place_of(&self, controller: &str) -> Option<&Path> {
        let old = self.places.iter().find(|(known, _)| known.split(',').any(|known| known == controller));
        let new = || self.places.iter().find(|(known, _)| known.is_empty());
        old.or_else(new).map(|(_, place)| place.as_path())
    }

    /// Folders in which a group with this controller could be created, nearest first.
    pub(super) fn parents_for(&self, controller: &str) -> Vec<PathBuf> {
        let mut parents = Vec::new();
        for (controllers, place) in &self.places {
            if controllers.split(',').any(|known| known == controller) {
                parents.push(place.clone());
            } else if controllers.is_empty() {
                // There, a group with processes cannot have limited subgroups, but its parent may.
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

struct CgroupMount {
    root: PathBuf,
    at: PathBuf,
}

/// The mount of a hierarchy, from one line of the mount table.
fn mount_of(line: &str, controllers: &str) -> Option<CgroupMount> {
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
    fits.then(|| CgroupMount { root: root.into(), at: at.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
40 30 0:35 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 30 0:36 /box /sys/fs/cgroup/memory rw shared:5 - cgroup cgroup rw,memory
42 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn finds_its_position_in_old_and_new_hierarchies() {
        let found = Hierarchies::parse(MOUNTS, "8:pids:/a/b\n4:memory:/box/c\n0::/d\n3:cpu:/x");
        let expected: [(&str, &str); 3] = [
            ("pids", "/sys/fs/cgroup/pids/a/b"),
            ("memory", "/sys/fs/cgroup/memory/c"),
            ("", "/sys/fs/cgroup/unified/d"),
        ];
        let expected: Vec<_> = expected.iter().map(|(c, p)| ((*c).to_owned(), PathBuf::from(p))).collect();
        assert_eq!(found.places, expected);
    }

    #[test]
    fn the_place_that_counts_is_the_one_of_the_controller() {
        let found = Hierarchies::parse(MOUNTS, "8:pids:/a/b\n4:memory:/box/c\n0::/d");
        assert_eq!(found.place_of("memory"), Some(Path::new("/sys/fs/cgroup/memory/c")));
        assert_eq!(found.place_of("io"), Some(Path::new("/sys/fs/cgroup/unified/d")));
    }
}
