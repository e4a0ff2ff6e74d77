//! `list_dir`: the entries of a folder and of the folders below it.

use std::collections::{BTreeMap, BinaryHeap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;
use workspace::EntryKind;

use crate::files::access::{FileAccess, StopFlag, failed, look_soon};
use crate::files::look::{Look, LookAction, option};
use crate::files::shown::{LONGEST, cut, one_line, room};
use crate::remote::{Elsewhere, look_there};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const LIMIT: usize = 25;
const DEPTH: usize = 2;
/// Deeper than real folders, and far below the stack limit.
const DEEPEST: usize = 100;
/// Limit of the listing fetched from another environment.
const MOST_BYTES: usize = 4 << 20;
/// The script that lists a folder there.
const WALK: &str = include_str!("../remote/walk.sh");

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Absolute path of the folder.
    dir_path: String,
    /// The first entry to show, counted from 1. Default: 1.
    offset: Option<NonZeroU32>,
    /// How many entries to show at most. Default: 25.
    limit: Option<NonZeroU32>,
    /// How many levels of folders to go down. Default: 2.
    depth: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Copy)]
pub struct ListDir;

impl BuiltinTool for ListDir {
    const NAME: &'static str = "list_dir";
    const ABOUT: &'static str = "List the entries of a folder and of the folders in it, each under its folder and \
        indented. A folder ends in `/`, a symbolic link in `@`, anything else that is not a file in `?`.";
    const PARALLEL: bool = true;
    const NEEDS_PLACE: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.knows(Self::NAME))
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let room = room(cx.step());
        let more = [("--offset", args.offset), ("--limit", args.limit), ("--depth", args.depth)];
        let more = more.map(|(name, value)| option(name, value)).concat();
        let look = Look::begin(cx, LookAction::List(args.dir_path.clone()), more);
        let page = match cx.elsewhere() {
            Some(place) => list_there(&args, room, cx, &place).await,
            None => {
                let given = args.dir_path.clone();
                look_soon(cx, &given, move |access, stop| list(&args, room, access, stop)).await
            }
        };
        Ok(look.end(cx, page).await)
    }
}

fn number(given: Option<NonZeroU32>, default: usize) -> usize {
    given.map_or(default, |number| number.get() as usize)
}

fn list(args: &Args, room: usize, access: &FileAccess, stop: &StopFlag) -> Result<String, ToolError> {
    let folder = access.find(&args.dir_path)?;
    page(args, room, &Disk { access, stop }, &folder, &folder).map_err(|error| match error {
        Unlisted::Unreadable(error) => failed(&folder, &error),
        Unlisted::Past(error) => error,
    })
}

/// Why there is no listing.
enum Unlisted {
    Unreadable(io::Error),
    Past(ToolError),
}

fn page<F: Folders>(
    args: &Args,
    room: usize,
    folders: &F,
    folder: &F::Folder,
    path: &Path,
) -> Result<String, Unlisted> {
    let offset = number(args.offset, 1);
    let mut page = ListingPage {
        folders,
        skip: offset - 1,
        limit: number(args.limit, LIMIT),
        room: room.saturating_sub(LONGEST),
        seen: 0,
        shown: 0,
        more: false,
        unreadable: 0,
        text: format!("Absolute path: {}", one_line(path.as_os_str())),
    };
    page.fill(folder, 0, args.depth()).map_err(Unlisted::Unreadable)?;
    if offset > 1 && page.shown == 0 {
        let problem = format!("offset {offset} is past the last of {} entries", page.seen);
        return Err(Unlisted::Past(ToolError::Failed(problem)));
    }
    if page.more {
        page.text.push_str(&format!("\nMore than {} entries found", page.shown));
    }
    if page.unreadable > 0 {
        page.text.push_str(&format!("\nFolders that could not be read: {}", page.unreadable));
    }
    Ok(page.text)
}

impl Args {
    fn depth(&self) -> usize {
        number(self.depth, DEPTH).min(DEEPEST)
    }
}

/// The listing of a folder in another environment, fetched as a tree.
async fn list_there(args: &Args, room: usize, cx: &ToolCx, place: &Elsewhere) -> Result<String, ToolError> {
    let script = format!("{WALK}walk {} | head -c {MOST_BYTES}\nexit 0\n", args.depth());
    let looked = look_there(cx, place, &args.dir_path, &script, 2 * MOST_BYTES).await?;
    if looked.rest.len() >= MOST_BYTES {
        let path = one_line(looked.real.as_os_str());
        return Err(ToolError::Failed(format!(
            "{path} holds too many entries to be listed; name a folder in it, or a smaller depth"
        )));
    }
    let tree = RemoteTree::read(&looked.rest);
    page(args, room, &Trees, &tree, &looked.real).map_err(|error| match error {
        Unlisted::Unreadable(error) => failed(&looked.real, &error),
        Unlisted::Past(error) => error,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ListedKind {
    File,
    Folder,
    Link,
    Other,
}

impl ListedKind {
    fn of(kind: EntryKind) -> Self {
        match kind {
            EntryKind::Folder => Self::Folder,
            EntryKind::Link => Self::Link,
            EntryKind::File => Self::File,
            EntryKind::Other => Self::Other,
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::File => "",
            Self::Folder => "/",
            Self::Link => "@",
            Self::Other => "?",
        }
    }
}

/// The requested page of the listing. Entries after it are neither stored nor sorted.
#[derive(Debug)]
struct ListingPage<'a, F> {
    folders: &'a F,
    skip: usize,
    limit: usize,
    /// In bytes.
    room: usize,
    seen: usize,
    shown: usize,
    more: bool,
    unreadable: usize,
    text: String,
}

/// A source of folder listings.
trait Folders {
    type Folder;

    /// The first `wanted` entries by name, whatever their total number.
    fn first_of(&self, folder: &Self::Folder, wanted: usize) -> io::Result<Vec<(OsString, ListedKind)>>;

    /// Calls this with the folder of that name, if access is allowed.
    fn with<T>(
        &self,
        folder: &Self::Folder,
        name: &OsStr,
        look: impl FnOnce(&Self::Folder) -> io::Result<T>,
    ) -> io::Result<T>;

    /// The call was cancelled.
    fn is_over(&self) -> bool;
}

impl<F: Folders> ListingPage<'_, F> {
    fn fill(&mut self, folder: &F::Folder, level: usize, depth: usize) -> io::Result<()> {
        let wanted = self.skip.saturating_add(self.limit).saturating_sub(self.seen).saturating_add(1);
        for (name, kind) in self.folders.first_of(folder, wanted)? {
            if self.seen >= self.skip.saturating_add(self.limit) || self.text.len() > self.room {
                self.more = true;
            }
            if self.more || self.folders.is_over() {
                return Ok(());
            }
            self.seen += 1;
            if self.seen > self.skip {
                self.shown += 1;
                let line = one_line(&name);
                let (indent, line) = ("  ".repeat(level), cut(&line, LONGEST));
                self.text.push_str(&format!("\n{indent}{line}{}", kind.suffix()));
            }
            if kind == ListedKind::Folder && level + 1 < depth {
                let folders = self.folders;
                if folders.with(folder, &name, |inner| self.fill(inner, level + 1, depth)).is_err() {
                    self.unreadable += 1;
                }
            }
        }
        Ok(())
    }
}

/// Folders of this machine.
#[derive(Debug)]
struct Disk<'a> {
    access: &'a FileAccess,
    stop: &'a StopFlag,
}

impl Folders for Disk<'_> {
    type Folder = PathBuf;

    fn first_of(&self, folder: &PathBuf, wanted: usize) -> io::Result<Vec<(OsString, ListedKind)>> {
        let mut first = BinaryHeap::new();
        self.access.each_entry(folder, &mut |entry| {
            first.push((entry.name, ListedKind::of(entry.kind)));
            if first.len() > wanted {
                first.pop();
            }
            !self.stop.requested()
        })?;
        Ok(first.into_sorted_vec())
    }

    fn with<T>(
        &self,
        folder: &PathBuf,
        name: &OsStr,
        look: impl FnOnce(&PathBuf) -> io::Result<T>,
    ) -> io::Result<T> {
        let inner = folder.join(name);
        if self.access.allows(&inner) { look(&inner) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    fn is_over(&self) -> bool {
        self.stop.requested()
    }
}

/// A folder of another environment, from its script's output.
#[derive(Debug, Default)]
struct RemoteTree {
    entries: BTreeMap<OsString, (ListedKind, RemoteTree)>,
    unreadable: bool,
}

impl RemoteTree {
    fn read(bytes: &[u8]) -> Self {
        Self::read_from(&mut bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()))
    }

    fn read_from<'a>(records: &mut impl Iterator<Item = &'a [u8]>) -> Self {
        let mut tree = Self::default();
        while let Some((kind, name)) = records.next().and_then(|record| record.split_first()) {
            let name = OsStr::from_bytes(name).to_owned();
            let entry = match kind {
                b'u' => break,
                b'x' => {
                    tree.unreadable = true;
                    continue;
                }
                b'd' => (ListedKind::Folder, Self::read_from(records)),
                b'l' => (ListedKind::Link, Self::default()),
                b'f' => (ListedKind::File, Self::default()),
                _ => (ListedKind::Other, Self::default()),
            };
            tree.entries.insert(name, entry);
        }
        tree
    }
}

/// Folders that were fetched already.
#[derive(Debug)]
struct Trees;

impl Folders for Trees {
    type Folder = RemoteTree;

    fn first_of(&self, folder: &RemoteTree, wanted: usize) -> io::Result<Vec<(OsString, ListedKind)>> {
        if folder.unreadable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(folder.entries.iter().take(wanted).map(|(name, (kind, _))| (name.clone(), *kind)).collect())
    }

    fn with<T>(
        &self,
        folder: &RemoteTree,
        name: &OsStr,
        look: impl FnOnce(&RemoteTree) -> io::Result<T>,
    ) -> io::Result<T> {
        look(folder.entries.get(name).map(|(_, inner)| inner).ok_or(io::ErrorKind::NotFound)?)
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use crate::scene::{Scene, while_a_folder_is_swapped};

    fn tree() -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("b/c/d")).expect("made");
        for file in ["a.txt", "b/in.txt", "b/c/deep.txt", "b/c/d/deepest.txt", "z.txt"] {
            std::fs::write(root.join(file), "x").expect("written");
        }
        symlink("b", root.join("link")).expect("linked");
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), 0o600.into()).expect("made");
        folder
    }

    async fn check(folder: &TempDir, more: Value, expected: &str) {
        let mut arguments = json!({"dir_path": "."});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let (text, _) = Scene::in_folder(folder.path()).run_text("list_dir", arguments).await;
        let root = folder.path().canonicalize().expect("there");
        assert_eq!(text, expected.replace("ROOT", &root.display().to_string()));
    }

    #[tokio::test]
    async fn entries_are_listed_under_their_folder() {
        let folder = tree();
        let whole = "Absolute path: ROOT\na.txt\nb/\n  c/\n  in.txt\nlink@\npipe?\nz.txt";
        check(&folder, json!({}), whole).await;
        check(&folder, json!({"depth": 1}), "Absolute path: ROOT\na.txt\nb/\nlink@\npipe?\nz.txt").await;
        let deep = "Absolute path: ROOT\na.txt\nb/\n  c/\n    d/\n      deepest.txt\n    deep.txt\n  in.txt\nlink@\npipe?\nz.txt";
        check(&folder, json!({"depth": 4_000_000_000_u32}), deep).await;
    }

    #[tokio::test]
    async fn a_long_listing_comes_in_pages() {
        let folder = tree();
        check(&folder, json!({"limit": 2}), "Absolute path: ROOT\na.txt\nb/\nMore than 2 entries found")
            .await;
        let middle = "Absolute path: ROOT\n  c/\n  in.txt\nMore than 2 entries found";
        check(&folder, json!({"offset": 3, "limit": 2}), middle).await;
        check(&folder, json!({"offset": 7, "limit": 1}), "Absolute path: ROOT\nz.txt").await;
        check(&folder, json!({"offset": 8}), "offset 8 is past the last of 7 entries").await;
        let scene = Scene::in_folder(folder.path());
        let (text, _) = scene.run_text("list_dir", json!({"dir_path": ".", "depth": 0})).await;
        assert!(text.contains("expected a nonzero"), "{text}");
    }

    #[tokio::test]
    async fn a_crowded_folder_is_listed_within_the_size_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..300 {
            std::fs::write(folder.path().join(format!("{number:03}-{}", "é".repeat(100))), "")
                .expect("written");
        }
        let arguments = json!({"dir_path": folder.path(), "limit": 4_000_000_000_u32});
        let (text, _) = Scene::in_folder(folder.path()).run_text("list_dir", arguments).await;
        assert!(text.len() < 10_000);
        let shown = text.lines().count() - 2;
        assert_eq!(text.lines().last(), Some(format!("More than {shown} entries found").as_str()));
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("000-é")));
    }

    #[tokio::test]
    async fn long_and_odd_names_are_cut_and_escaped() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("two\nlines"), "").expect("written");
        check(&folder, json!({}), "Absolute path: ROOT\ntwo\\nlines").await;
    }

    #[tokio::test]
    async fn invalid_paths_are_refused() {
        let folder = tree();
        let cases = [
            ("\0".to_owned(), "this is not a usable path: it contains a NUL character".to_owned()),
            ("x".repeat(5_000), "this is not a usable path: it is longer than 4096 bytes".to_owned()),
            (String::new(), "this is not a usable path: it is empty".to_owned()),
            ("/nowhere/at/all".to_owned(), "/nowhere/at/all does not exist".to_owned()),
            ("/proc/self".to_owned(), "/proc/self is not among what you may read".to_owned()),
        ];
        for (path, expected) in cases {
            let scene = Scene::in_folder(folder.path());
            let (text, success) = scene.run_text("list_dir", json!({"dir_path": path})).await;
            assert_eq!((text, success), (expected, false));
        }
    }

    #[test]
    fn a_folder_that_becomes_a_link_is_not_listed() {
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["keys/secret", "open/plain"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "x").expect("written");
        }
        let listing = json!({"dir_path": folder.path().join("open"), "depth": 3});
        while_a_folder_is_swapped(folder.path(), "list_dir", &listing, |listed| listed.contains("secret"));
    }
}
