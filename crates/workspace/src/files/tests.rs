use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;
use crate::within::StepCount;

struct Scene {
    _dir: TempDir,
    top: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(dir.path()).expect("there");
        Self { _dir: dir, top }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    fn file(&self, path: &str, content: &str) -> PathBuf {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("made");
        fs::write(&at, content).expect("written");
        at
    }

    fn pipe(&self, path: &str) -> PathBuf {
        let at = self.at(path);
        mknodat(CWD, &at, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
        at
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) -> PathBuf {
        symlink(target, self.at(path)).expect("linked");
        self.at(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).expect("a text")
    }

    /// No temporary file is left.
    fn is_clean(&self) -> bool {
        let mut folders = vec![self.top.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("listed").flatten() {
                if is_temporary_name(&entry.file_name()) {
                    return false;
                }
                if entry.file_type().expect("known").is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        true
    }
}

fn write(path: &Path, content: &str) -> Result<(), FileError> {
    write_file(path, content.as_bytes(), &StepCount::default())
}

fn read(path: &Path, max: u64) -> Result<Vec<u8>, FileError> {
    let mut content = Vec::new();
    read_in_pieces(path, max, &StepCount::default(), |piece| {
        assert!(piece.len() % 3 == 0 || piece.len() < 384 << 10);
        content.extend_from_slice(piece);
    })?;
    Ok(content)
}

fn copy_all(source: &Path, destination: &Path) -> Result<(), FileError> {
    copy(source, destination, true, &StepCount::default())
}

fn remove_all(path: &Path) -> Result<(), FileError> {
    remove(path, true, true, &StepCount::default())
}

fn os(error: rustix::io::Errno) -> FileError {
    error.into()
}

#[test]
fn a_file_is_read_whole_or_not_at_all() {
    let scene = Scene::new();
    let content = "0123456789".repeat(100_000);
    let path = scene.file("a", &content);
    assert_eq!(read(&path, 1_000_000).expect("read"), content.as_bytes());
    let error = read(&path, 1 << 19).expect_err("larger");
    assert_eq!(error, FileError::TooLarge { path: path.clone(), max: 1 << 19 });
    assert!(error.is_bad_request());
    assert_eq!(read(&scene.link("to-a", &path), 1_000_000).expect("read").len(), content.len());
    assert_eq!(read(&scene.top, 9), Err(os(rustix::io::Errno::ISDIR)));
    assert_eq!(read(&scene.at("none"), 9), Err(os(rustix::io::Errno::NOENT)));
}

#[test]
fn a_giant_file_is_refused_by_its_length() {
    let scene = Scene::new();
    let path = scene.file("giant", "");
    fs::File::options().write(true).open(&path).expect("open").set_len(1 << 40).expect("a sparse file");
    assert!(matches!(read(&path, 64 << 20), Err(FileError::TooLarge { .. })));
}

#[test]
fn nothing_waits_for_pipes_sockets_and_devices() {
    let scene = Scene::new();
    let pipe = scene.pipe("pipe");
    let socket = scene.at("socket");
    let _listener = UnixListener::bind(&socket).expect("bound");
    for path in [&pipe, &socket, &scene.link("to-pipe", &pipe), &PathBuf::from("/dev/zero")] {
        assert!(matches!(read(path, 9), Err(FileError::NotAFile(_))), "{}", path.display());
        assert!(matches!(write(path, "x"), Err(FileError::NotAFile(_))), "{}", path.display());
        let to = scene.file("plain", "x");
        assert!(matches!(copy(&to, path, false, &StepCount::default()), Err(FileError::NotAFile(_))));
    }
    assert_eq!(copy_all(&pipe, &scene.at("copy")), Err(FileError::NotCopied));
    let facts = path_facts(&pipe).expect("there");
    assert!(!facts.is_file && !facts.is_directory);
    assert_eq!(remove_all(&pipe), Ok(()));
    assert!(!pipe.exists());
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_mode() {
    let scene = Scene::new();
    let path = scene.file("a", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o750)).expect("set");
    let before = fs::metadata(&path).expect("there");
    write(&path, "new").expect("written");
    let after = fs::metadata(&path).expect("there");
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    assert_ne!(after.ino(), before.ino(), "put in place whole");
    assert_eq!(scene.text("a"), "new");
    write(&scene.at("b"), "").expect("made");
    assert_eq!(scene.text("b"), "");
    assert_eq!(write(&scene.at("none/b"), ""), Err(os(rustix::io::Errno::NOENT)));
    assert_eq!(write(&scene.at("a/b"), ""), Err(os(rustix::io::Errno::NOTDIR)));
    assert_eq!(write(&scene.top, ""), Err(os(rustix::io::Errno::ISDIR)));
    assert!(write(&scene.at("new/"), "").is_err());
    assert!(scene.is_clean());
}

#[test]
fn a_link_stays_and_its_target_is_written() {
    let scene = Scene::new();
    let path = scene.file("folder/a", "old");
    let link = scene.link("to-a", "folder/a");
    let chain = scene.link("to-link", &link);
    write(&chain, "new").expect("written");
    assert_eq!(fs::read_to_string(&path).expect("text"), "new");
    let dangling = scene.link("dangling", scene.at("folder/made"));
    write(&dangling, "made").expect("written");
    assert_eq!(scene.text("folder/made"), "made");
    for link in [&link, &chain, &dangling] {
        assert!(fs::symlink_metadata(link).expect("there").is_symlink());
    }
    let own = scene.link("loop", scene.at("loop"));
    assert_eq!(write(&own, "x"), Err(os(rustix::io::Errno::LOOP)));
}

#[test]
fn a_file_of_two_names_stays_one_file() {
    let scene = Scene::new();
    let path = scene.file("a", "a longer text");
    fs::hard_link(&path, scene.at("b")).expect("linked");
    write(&path, "new").expect("written");
    assert_eq!((scene.text("a"), scene.text("b")), ("new".into(), "new".into()));
}

#[test]
fn a_reader_sees_the_old_or_the_new_content() {
    let scene = Scene::new();
    let (one, other) = ("1".repeat(200_000), "2".repeat(100_000));
    let path = scene.file("a", &one);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..60 {
                write(&path, if round % 2 == 0 { &other } else { &one }).expect("written");
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            let seen = fs::read_to_string(&path).expect("always there");
            assert!(seen == one || seen == other, "a mix of {} bytes", seen.len());
        }
    });
    assert!(scene.is_clean());
}

#[test]
fn a_tree_is_copied_with_its_links_and_without_what_is_no_file() {
    let scene = Scene::new();
    let program = scene.file("a/bin/run", "#!");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("set");
    scene.file("outside", "secret");
    scene.link("a/out", scene.at("outside"));
    scene.link("a/up", "../outside");
    scene.pipe("a/pipe");
    assert_eq!(
        copy(&scene.at("a"), &scene.at("c"), false, &StepCount::default()),
        Err(FileError::NeedsRecursive)
    );
    copy_all(&scene.at("a"), &scene.at("c/d")).expect("copied");
    assert_eq!(scene.text("c/d/bin/run"), "#!");
    assert_eq!(fs::metadata(scene.at("c/d/bin/run")).expect("there").mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(scene.at("c/d/out")).expect("a link"), scene.at("outside"));
    assert_eq!(fs::read_link(scene.at("c/d/up")).expect("a link"), Path::new("../outside"));
    assert!(!scene.at("c/d/pipe").exists() && scene.is_clean());
}

#[test]
fn a_tree_is_not_copied_into_itself() {
    let scene = Scene::new();
    scene.file("a/b/f", "x");
    scene.link("to-b", scene.at("a/b"));
    let from = scene.at("a");
    for to in ["a", "a/b/c", "a/new", "to-b/c", "x/../a/b", "none/../a/c"] {
        assert_eq!(copy_all(&from, &scene.at(to)), Err(FileError::IntoItself), "{to}");
    }
    assert!(!scene.at("a/new").exists() && !scene.at("a/b/c").exists());
    copy_all(&scene.at("a/b"), &scene.at("a/sibling")).expect("beside it");
    let file = scene.at("a/b/f");
    let own = copy(&file, &file, false, &StepCount::default());
    assert_eq!((own, scene.text("a/b/f").as_str()), (Err(FileError::SameFile), "x"));
}

#[test]
fn a_copy_never_leaves_its_folder_by_a_link_that_is_there() {
    let scene = Scene::new();
    scene.file("a/f", "new");
    scene.file("a/folder/g", "new");
    scene.file("elsewhere/g", "old");
    let outside = scene.file("outside", "old");
    fs::create_dir(scene.at("c")).expect("made");
    let link = scene.link("c/f", &outside);
    assert_eq!(copy_all(&scene.at("a"), &scene.at("c")), Err(FileError::LinkInTheWay(link.clone())));
    fs::remove_file(link).expect("removed");
    let link = scene.link("c/folder", scene.at("elsewhere"));
    assert_eq!(copy_all(&scene.at("a"), &scene.at("c")), Err(FileError::LinkInTheWay(link)));
    assert_eq!((scene.text("outside"), scene.text("elsewhere/g")), ("old".into(), "old".into()));
}

#[test]
fn a_copy_over_an_existing_tree_replaces_files() {
    let scene = Scene::new();
    scene.file("a/f", "new");
    scene.file("c/f", "old");
    scene.file("c/kept", "kept");
    copy_all(&scene.at("a"), &scene.at("c")).expect("copied");
    assert_eq!((scene.text("c/f"), scene.text("c/kept")), ("new".into(), "kept".into()));
    let link = scene.link("a/l", "f");
    copy_all(&link, &scene.at("l2")).expect("copied");
    assert_eq!(copy_all(&link, &scene.at("l2")), Err(os(rustix::io::Errno::EXIST)));
}

#[test]
fn removing_follows_no_link() {
    let scene = Scene::new();
    scene.file("kept/f", "x");
    scene.file("a/b/c/f", "x");
    scene.link("a/b/out", scene.at("kept"));
    let strict = |path: &Path| remove(path, false, false, &StepCount::default());
    assert_eq!(strict(&scene.at("a")), Err(os(rustix::io::Errno::NOTEMPTY)));
    remove_all(&scene.at("a")).expect("removed");
    remove_all(&scene.at("a")).expect("gone already");
    assert_eq!(strict(&scene.at("a")), Err(os(rustix::io::Errno::NOENT)));
    let link = scene.link("link", scene.at("kept"));
    remove_all(&link).expect("the link alone");
    assert!(scene.at("kept/f").exists() && !scene.at("a").exists());
    for root in ["/", "//", "/.", "/..", "/tmp/.."] {
        // Not recursive, so that a failure of this test does no harm.
        assert_eq!(strict(Path::new(root)), Err(FileError::Root), "{root}");
    }
}

/// While a tree is removed, its folders are replaced by links that lead out, and back.
#[test]
fn a_race_of_links_never_removes_or_writes_what_is_outside() {
    let scene = Scene::new();
    for at in 0..20 {
        scene.file(&format!("outside/f{at}"), "precious");
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let folder = scene.at("a/b");
                if fs::rename(&folder, scene.at("aside")).is_ok() {
                    let _ = symlink(scene.at("outside"), &folder);
                    let _ = fs::remove_file(&folder);
                    let _ = fs::rename(scene.at("aside"), &folder);
                }
            }
        });
        for _ in 0..200 {
            for at in 0..20 {
                let path = scene.at(&format!("a/b/f{at}"));
                let _ = fs::create_dir_all(scene.at("a/b"));
                let _ = fs::hard_link(scene.at("outside/f0"), &path);
            }
            let _ = remove_all(&scene.at("a"));
            let _ = copy_all(&scene.at("outside"), &scene.at("a/b"));
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for at in 0..20 {
        assert_eq!(scene.text(&format!("outside/f{at}")), "precious");
    }
}

#[test]
fn a_folder_is_listed_by_name_with_links_as_what_they_lead_to() {
    let scene = Scene::new();
    scene.file("f", "x");
    scene.file("d/x", "x");
    scene.link("to-d", scene.at("d"));
    scene.link("dangling", scene.at("none"));
    scene.pipe("pipe");
    let listed = read_directory(&scene.top, &StepCount::default()).expect("listed");
    let rows: Vec<_> =
        listed.iter().map(|entry| (entry.name.as_str(), entry.is_directory, entry.is_file)).collect();
    assert_eq!(
        rows,
        [
            ("d", true, false),
            ("dangling", false, false),
            ("f", false, true),
            ("pipe", false, false),
            ("to-d", true, false)
        ]
    );
    let error = read_directory(&scene.at("f"), &StepCount::default());
    assert_eq!(error, Err(os(rustix::io::Errno::NOTDIR)));
    let facts = path_facts(&scene.at("to-d")).expect("there");
    assert!(facts.is_link && facts.is_directory && facts.modified_ms > 0);
    assert!(path_facts(&scene.at("dangling")).is_err());
}

#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let scene = Scene::new();
    let mut path = scene.at("a");
    for _ in 0..MAX_DEPTH + 5 {
        path.push("d");
    }
    fs::create_dir_all(&path).expect("made");
    assert!(matches!(copy_all(&scene.at("a"), &scene.at("c")), Err(FileError::TooDeep(_))));
    assert!(matches!(remove_all(&scene.at("a")), Err(FileError::TooDeep(_))));
}

#[test]
fn folders_are_made() {
    let scene = Scene::new();
    create_directory(&scene.at("a/b"), true).expect("made");
    create_directory(&scene.at("a/b"), true).expect("there already");
    assert_eq!(create_directory(&scene.at("a/b"), false), Err(os(rustix::io::Errno::EXIST)));
    assert_eq!(create_directory(&scene.at("x/y"), false), Err(os(rustix::io::Errno::NOENT)));
}
