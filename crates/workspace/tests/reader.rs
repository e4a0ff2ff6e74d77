//! The reader's opens and refusals, over real files.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_workspace::{Access, EntryKind, Reader};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    /// `project` with a few files, `out` beside it, and `project/state`, which is hidden.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (path, text) in [
            ("project/a.txt", "a"),
            ("project/sub/b.txt", "b"),
            ("project/state/key", "secret"),
            ("out/secret", "secret"),
        ] {
            let path = place.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn link(&self, from: &str, to: impl AsRef<Path>) {
        symlink(to, self.path(from)).unwrap();
    }

    fn access(&self) -> Access {
        Access { readable: None, hidden: vec![self.path("project/state")], shown: Vec::new() }
    }

    fn reader(&self) -> Reader {
        Reader::new(self.access()).beneath(&self.path("project")).unwrap()
    }

    #[track_caller]
    fn check(&self, path: &str, expected: &str) {
        let read = self.reader().read_whole(Path::new(path), 100);
        let got = match read {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.problem.to_string(),
        };
        assert!(got.starts_with(expected), "{path}: {got}");
    }
}

const OUTSIDE: &str = "it leads out of the project";
const HIDDEN: &str = "it is hidden from this thread";

#[test]
fn links_are_followed_as_long_as_they_stay_inside() {
    let place = Place::new();
    place.link("project/inside", "sub/b.txt");
    place.link("project/round", "sub/../sub/../a.txt");
    place.link("project/absolute", place.path("project/sub/b.txt"));
    place.link("project/folder", place.path("project/sub"));
    place.link("project/up", "../out/secret");
    place.link("project/away", place.path("out/secret"));
    place.link("project/way", place.path("out"));
    place.link("project/two", "away");
    place.link("project/magic", "/proc/self/root/etc/passwd");
    place.link("project/nowhere", "gone");
    place.link("project/circle", "circle");
    for (path, expected) in [
        ("a.txt", "a"),
        ("sub/b.txt", "b"),
        ("inside", "b"),
        ("round", "a"),
        ("absolute", "b"),
        ("folder/b.txt", "b"),
        ("sub/../a.txt", "a"),
        ("up", OUTSIDE),
        ("away", OUTSIDE),
        ("way/secret", OUTSIDE),
        ("two", OUTSIDE),
        ("magic", OUTSIDE),
        ("../out/secret", OUTSIDE),
        ("/etc/passwd", OUTSIDE),
        ("nowhere", "No such file"),
        ("circle", "Too many levels"),
        ("sub", "it is not a regular file"),
    ] {
        place.check(path, expected);
    }
    let absolute = place.path("project/a.txt");
    place.check(absolute.to_str().unwrap(), "a");
}

#[test]
fn what_is_hidden_is_not_read_under_any_name() {
    let place = Place::new();
    place.link("project/linked", "state/key");
    place.link("project/folder", "state");
    fs::hard_link(place.path("project/state/key"), place.path("project/hard")).unwrap();
    fs::hard_link(place.path("project/a.txt"), place.path("project/other-name")).unwrap();
    for (path, expected) in [
        ("state/key", HIDDEN),
        ("linked", HIDDEN),
        ("folder/key", HIDDEN),
        ("hard", HIDDEN),
        ("other-name", "a"),
    ] {
        place.check(path, expected);
    }
    assert!(place.reader().list(Path::new("state"), 10).is_err());
    // A file that is hidden by its own name, wherever it is read from.
    let access = Access { hidden: vec![place.path("out/secret")], ..Access::default() };
    fs::hard_link(place.path("out/secret"), place.path("project/hard-file")).unwrap();
    let reader = Reader::new(access);
    for path in ["out/secret", "project/hard-file"] {
        assert!(reader.read_whole(&place.path(path), 100).unwrap_err().is_refused(), "{path}");
    }
    assert!(reader.read_whole(Path::new("/proc/self/environ"), 100).is_err());
    // A granted file inside a hidden folder is read.
    let access = Access { shown: vec![place.path("project/state/key")], ..place.access() };
    assert!(Reader::new(access).read_whole(&place.path("project/state/key"), 100).is_ok());
}

#[test]
fn only_the_readable_roots_are_read() {
    let place = Place::new();
    let access = Access { readable: Some(vec![place.path("project/sub")]), ..place.access() };
    let reader = Reader::new(access).beneath(&place.path("project")).unwrap();
    assert!(reader.read_whole(Path::new("sub/b.txt"), 9).is_ok());
    let error = reader.read_whole(Path::new("a.txt"), 9).unwrap_err();
    assert_eq!(error.to_string(), "a.txt: it is outside of what this thread may read");
}

#[test]
fn only_regular_files_are_opened_and_nothing_waits() {
    let place = Place::new();
    let pipe = place.path("project/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.path("project/socket")).unwrap();
    place.check("pipe", "it is not a regular file");
    place.check("socket", "it is not a regular file");
    for device in ["/dev/zero", "/dev/null", "/dev/tty", "/dev"] {
        let error = Reader::default().read_start(Path::new(device), 9).unwrap_err();
        assert!(error.to_string().ends_with("it is not a regular file"), "{error}");
    }
    let error = Reader::default().read_start(&pipe, 9).unwrap_err();
    assert_eq!(error.into_io().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn sizes_are_bounded() {
    let place = Place::new();
    let path = place.path("project/a.txt");
    fs::write(&path, "12345").unwrap();
    let reader = place.reader();
    assert_eq!(reader.read_start(&path, 3).unwrap(), b"123");
    assert_eq!(reader.read_whole(&path, 5).unwrap(), b"12345");
    let error = reader.read_whole(&path, 4).unwrap_err();
    assert!(error.to_string().ends_with("a.txt: it is larger than 4 bytes"), "{error}");
    fs::File::create(&path).and_then(|file| file.set_len(1 << 40)).unwrap();
    assert!(reader.read_whole(&path, 1 << 20).unwrap_err().to_string().ends_with("larger than 1 MiB"));
    assert_eq!(reader.read_start(&path, 7).unwrap().len(), 7);
}

#[test]
fn folders_are_listed_with_a_bound() {
    let place = Place::new();
    place.link("project/link", "sub");
    let listing = place.reader().list(Path::new("."), 10).unwrap();
    let mut entries: Vec<(String, EntryKind)> =
        listing.entries.into_iter().map(|entry| (entry.name.into_string().unwrap(), entry.kind)).collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("a.txt", EntryKind::File),
        ("link", EntryKind::Link),
        ("state", EntryKind::Folder),
        ("sub", EntryKind::Folder),
    ];
    assert_eq!(entries, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(listing.is_complete);
    let listing = place.reader().list(Path::new("."), 2).unwrap();
    assert_eq!((listing.entries.len(), listing.is_complete), (2, false));
    assert!(place.reader().list(Path::new("a.txt"), 2).is_err());
    assert!(
        place.reader().has_entry(Path::new("."), "link") && !place.reader().has_entry(Path::new("."), "x")
    );
}

/// A link that changes between inside and outside while it is read: never anything from outside.
#[test]
fn a_link_that_changes_never_leads_out() {
    let place = Place::new();
    place.link("project/one", "a.txt");
    place.link("project/two", place.path("out/secret"));
    let (here, stop) = (place.path("project/flip"), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for target in [PathBuf::from("a.txt"), place.path("out/secret"), PathBuf::from("state/key")] {
                    let _ = fs::remove_file(place.path("project/new"));
                    symlink(target, place.path("project/new")).unwrap();
                    fs::rename(place.path("project/new"), &here).unwrap();
                }
            }
        });
        let reader = place.reader();
        for _ in 0..20_000 {
            if let Ok(bytes) = reader.read_whole(&here, 100) {
                assert_eq!(bytes, b"a");
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
