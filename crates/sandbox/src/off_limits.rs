//! From the off-limits paths to what one command cannot reach: its working folder, and the paths named by its policy or
//! a grant, stay accessible even inside such a path.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::OffLimits;
use crate::presence::existing;

impl OffLimits {
    /// The paths that a command of a thread in `cwd` can neither read nor write. `named` are the roots that its policy
    /// lists: a listed root is accessible, unless it is ours. Missing paths, as most are, matter only inside a writable
    /// root, where the command could create them.
    pub(crate) fn hidden_from(&self, cwd: &Path, named: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
        let is_reachable = |place: &PathBuf| writable.iter().any(|root| place.starts_with(root));
        let credentials = self.credentials.iter().zip(existing(&self.credentials));
        let credentials = credentials.filter(|(place, there)| *there || is_reachable(place));
        let credentials: Vec<PathBuf> = credentials.map(|(place, _)| place.clone()).collect();
        let mut open = spellings(cwd);
        let mut hidden = self.sealed_except(&open);
        self.keep_uncovered(&mut hidden, |place| place.symlink_metadata().is_ok() || is_reachable(place));
        open.extend_from_slice(named);
        hidden.extend(except(&credentials, &open));
        self.outermost(hidden)
    }

    /// Our own part of them, which only working inside it makes accessible.
    pub fn sealed_in(&self, cwd: &Path) -> Vec<PathBuf> {
        let now = self.now();
        let mut hidden = now.sealed_except(&spellings(cwd));
        now.keep_uncovered(&mut hidden, |place| place.symlink_metadata().is_ok());
        now.outermost(hidden)
    }

    /// A command that works inside a folder of ours can access that branch, but nothing listed separately. One that
    /// works in the folder itself gets only its shown parts.
    fn sealed_except(&self, open: &[PathBuf]) -> Vec<PathBuf> {
        let sealed: HashSet<&Path> = self.sealed.iter().map(PathBuf::as_path).collect();
        let is_inside = |place: &PathBuf| place.ancestors().skip(1).any(|above| sealed.contains(above));
        let (inner, outer): (Vec<_>, Vec<_>) = self.sealed.iter().cloned().partition(is_inside);
        let mut hidden = except(&outer, open);
        hidden.extend(inner);
        for place in outer.iter().filter(|place| open.contains(place)) {
            let entries = fs::read_dir(place).into_iter().flatten().flatten();
            hidden.extend(entries.map(|entry| entry.path()));
        }
        hidden.retain(|place| !self.shown.contains(place));
        hidden
    }

    /// Our folders that contain `cwd`. Missing paths inside them cannot be covered, so they must not be writable.
    pub(crate) fn opened_in(&self, cwd: &Path) -> Vec<PathBuf> {
        let open = spellings(cwd);
        let places = self.sealed.iter();
        places.filter(|place| open.iter().any(|cwd| cwd.starts_with(place))).cloned().collect()
    }

    /// Whether the path is ours or inside ours, and not in a shown part.
    pub fn is_sealed(&self, path: &Path) -> bool {
        let (now, real) = (self.now(), real_place(path));
        let within = |places: &[PathBuf]| {
            places.iter().any(|place| path.starts_with(place) || real.starts_with(real_place(place)))
        };
        within(&now.sealed) && !within(&now.shown)
    }

    /// Keeps what `is_wanted`. Does not ask about paths inside a kept one, because asking costs a system call.
    fn keep_uncovered(&self, paths: &mut Vec<PathBuf>, is_wanted: impl Fn(&PathBuf) -> bool) {
        paths.sort();
        let mut above: Vec<PathBuf> = Vec::new();
        paths.retain(|path| {
            let is_kept = !self.is_covered(path, &mut above) && is_wanted(path);
            if is_kept {
                above.push(path.clone());
            }
            is_kept
        });
    }

    /// Removes paths inside another hidden path, unless something between them is shown.
    fn outermost(&self, mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        paths.sort();
        paths.dedup();
        let (mut above, mut outer) = (Vec::new(), Vec::new());
        for path in &paths {
            if !self.is_covered(path, &mut above) {
                outer.push(path.clone());
            }
            above.push(path);
        }
        outer
    }

    /// Whether a path is inside a hidden one, with nothing shown between them. Called with sorted paths, in which a
    /// folder precedes its contents: `above` is the stack of hidden parents of the last path, and afterwards of this
    /// one. This runs for hundreds of paths before every command.
    fn is_covered<P: AsRef<Path>>(&self, path: &Path, above: &mut Vec<P>) -> bool {
        while above.pop_if(|above| !path.starts_with(above)).is_some() {}
        let length = |path: &Path| path.components().count();
        let Some(nearest) = above.last().map(|above| length(above.as_ref())) else { return false };
        !self.shown.iter().any(|shown| path.starts_with(shown) && length(shown) > nearest)
    }
}

/// As written, and resolved.
pub(crate) fn spellings(path: &Path) -> Vec<PathBuf> {
    let real = fs::canonicalize(path).ok().filter(|real| real != path);
    [path.to_owned()].into_iter().chain(real).collect()
}

fn except(places: &[PathBuf], open: &[PathBuf]) -> Vec<PathBuf> {
    let apart = |places: Vec<PathBuf>, open: &PathBuf| {
        places.into_iter().flat_map(|place| split(place, open)).collect()
    };
    places.iter().flat_map(|place| open.iter().fold(vec![place.clone()], apart)).collect()
}

/// Whether a named path is inside a place. A path that gets there through a link or `..` was not shown as such to the
/// approver, and does not count.
pub fn is_named_within(path: &Path, place: &Path) -> bool {
    within(path, place).is_some()
}

/// The place without the branch that leads to `open`: its siblings stay. Empty if the whole place is opened.
pub fn split(place: PathBuf, open: &Path) -> Vec<PathBuf> {
    let Some(root) = within(open, &place) else { return vec![place] };
    let Ok(branch) = open.strip_prefix(&root) else { return vec![place] };
    let (mut beside, mut folder) = (Vec::new(), root.clone());
    for name in branch.components() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let others = entries.filter(|entry| entry.file_name() != name.as_os_str());
        beside.extend(others.map(|entry| entry.path()));
        folder.push(name);
    }
    beside
}

/// The path of the place, or of its target if it is a link, that the given path starts with.
fn within(path: &Path, place: &Path) -> Option<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    if path.starts_with(place) {
        return Some(place.to_owned());
    }
    let end = link_end(place)?;
    let is_plain = path.starts_with(&end) && fs::canonicalize(path).is_ok_and(|real| real == path);
    is_plain.then_some(end)
}

/// The target of a place that is a link. Cached briefly, because nearly none is one, and all are checked before every
/// command.
fn link_end(place: &Path) -> Option<PathBuf> {
    type LinkEnds = HashMap<PathBuf, Option<PathBuf>>;
    static KNOWN: Mutex<Option<(Instant, LinkEnds)>> = Mutex::new(None);
    const FRESH: Duration = Duration::from_secs(1);
    let mut known = KNOWN.lock();
    if known.as_ref().is_none_or(|(since, _)| since.elapsed() > FRESH) {
        *known = Some((Instant::now(), HashMap::new()));
    }
    let (_, ends) = known.as_mut()?;
    if let Some(end) = ends.get(place) {
        return end.clone();
    }
    let end = fs::read_link(place).ok().and_then(|_| fs::canonicalize(place).ok());
    ends.insert(place.to_owned(), end.clone());
    end
}

/// The resolved path, as far as it exists; the rest as written.
fn real_place(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
    let Some((above, mut place)) = found else { return path.to_owned() };
    for part in path.strip_prefix(above).into_iter().flat_map(Path::components) {
        match part {
            Component::ParentDir => _ = place.pop(),
            Component::Normal(name) => place.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["home/skills", "home/ws/sub", "home/rules", "ssh/keys", "aws"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["home/key", "ssh/id", "ssh/keys/one", "ssh/keys/two"] {
            fs::write(root.join(path), "").unwrap();
        }
        (folder, root)
    }

    fn limits(root: &Path) -> OffLimits {
        OffLimits {
            sealed: ["home", "home/key"].map(|path| root.join(path)).to_vec(),
            credentials: ["ssh", "aws", "none", "made/key"].map(|path| root.join(path)).to_vec().into(),
            shown: vec![root.join("home/skills")],
            ..OffLimits::default()
        }
    }

    #[track_caller]
    fn check(root: &Path, cwd: &str, named: &[&str], expected: &[&str]) {
        let named: Vec<PathBuf> = named.iter().map(|path| root.join(path)).collect();
        let hidden = limits(root).hidden_from(&root.join(cwd), &named, &[root.join("made")]);
        let expected: Vec<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
        assert_eq!(hidden, expected, "in {cwd}");
    }

    #[test]
    fn everything_is_hidden_except_the_branch_of_the_working_directory() {
        let (_folder, root) = tree();
        check(&root, "", &[], &["aws", "home", "made/key", "ssh"]);
        check(&root, "elsewhere", &["home", "home/rules", "ssh/../aws"], &["aws", "home", "made/key", "ssh"]);
        check(&root, "ssh", &[], &["aws", "home", "made/key"]);
        check(&root, "ssh/keys", &[], &["aws", "home", "made/key", "ssh/id"]);
        check(&root, "elsewhere", &["ssh/keys/one"], &["aws", "home", "made/key", "ssh/id", "ssh/keys/two"]);
        let beside = ["aws", "home/key", "home/rules", "made/key", "ssh"];
        check(&root, "home/ws/sub", &[], &beside);
        check(&root, "home", &[], &["aws", "home/key", "home/rules", "home/ws", "made/key", "ssh"]);
        // A path that is listed as ours is not opened by working in it.
        check(&root, "home/key", &[], &["aws", "home/key", "home/rules", "home/ws", "made/key", "ssh"]);
        assert_eq!(limits(&root).opened_in(&root.join("home/ws")), [root.join("home")]);
        assert!(limits(&root).opened_in(&root).is_empty());
    }

    #[test]
    fn links_change_nothing() {
        let (_folder, root) = tree();
        symlink(root.join("ssh"), root.join("link")).unwrap();
        symlink(root.join("home"), root.join("linked-home")).unwrap();
        // An approver of a link was shown the link.
        check(&root, "elsewhere", &["link"], &["aws", "home", "made/key", "ssh"]);
        // The working directory is resolved.
        check(&root, "link", &[], &["aws", "home", "made/key"]);
        check(&root, "linked-home/ws", &[], &["aws", "home/key", "home/rules", "made/key", "ssh"]);
        let sealed = limits(&root);
        assert!(sealed.is_sealed(&root.join("linked-home/rules/new")));
        assert!(sealed.is_sealed(&root.join("elsewhere/../home/key")));
        assert!(!sealed.is_sealed(&root.join("home/skills/one")) && !sealed.is_sealed(&root));
    }
}
