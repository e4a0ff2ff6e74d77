//! Nothing is written where it may not be, however the path is spelled and whatever lies in the way.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use oarlock_patch::{Boundary, MAX_FILE_BYTES, verify};

/// A workspace with traps in it, and a place outside that must never change.
struct Field {
    _held: tempfile::TempDir,
    top: PathBuf,
    _listener: UnixListener,
}

impl Field {
    fn new() -> Self {
        let held = tempfile::tempdir().expect("a temporary directory");
        let top = held.path().canonicalize().expect("it is there");
        for directory in [
            "ws/real",
            "ws/.git/hooks",
            "ws/sub/.git",
            "ws/bare.repo/objects",
            "ws/bare.repo/refs",
            "ws/worktree",
            "out/dir",
            "second/.codex",
        ] {
            fs::create_dir_all(top.join(directory)).expect("made");
        }
        for (file, text) in [
            ("ws/a", "one\n"),
            ("ws/real/r", "one\n"),
            ("out/o", "one\n"),
            ("ws/.git/config", "one\n"),
            ("ws/bare.repo/HEAD", "ref: refs/heads/main\n"),
            ("ws/worktree/HEAD", "ref: refs/heads/main\n"),
            ("ws/worktree/commondir", "../somewhere\n"),
        ] {
            fs::write(top.join(file), text).expect("written");
        }
        for (to, link) in [
            ("../out/o", "ws/link_out"),
            ("a", "ws/link_in"),
            ("../out/dir", "ws/dirlink_out"),
            ("real", "ws/dirlink_in"),
            ("nowhere", "ws/dangling"),
            ("../out/fresh", "ws/dangling_out"),
            (".git", "ws/gitlink"),
            ("loop2", "ws/loop1"),
            ("loop1", "ws/loop2"),
            ("/proc/self/cwd", "ws/magic"),
            ("/", "ws/rootlink"),
        ] {
            symlink(to, top.join(link)).expect("linked");
        }
        fs::hard_link(top.join("out/o"), top.join("ws/hard")).expect("linked");
        let fifo = top.join("ws/fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("made");
        assert!(fs::symlink_metadata(&fifo).expect("there").file_type().is_fifo());
        let listener = UnixListener::bind(top.join("ws/socket")).expect("bound");
        let sparse = fs::File::create(top.join("ws/sparse")).expect("made");
        sparse.set_len(10 << 30).expect("a sparse file takes no room");
        let field = Self { _held: held, top, _listener: listener };
        field.check_outside("the beginning");
        field
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    fn boundary(&self) -> Boundary {
        Boundary::roots(vec![self.at("ws"), self.at("second")])
    }

    fn check_outside(&self, case: &str) {
        let names = |directory: &str| -> Vec<String> {
            let entries = fs::read_dir(self.at(directory)).expect("readable");
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<String> = entries.map(|entry| name(entry.expect("readable"))).collect();
            names.sort();
            names
        };
        assert_eq!(names("out"), ["dir", "o"], "{case}");
        assert_eq!(names("out/dir"), [""; 0], "{case}");
        assert_eq!(names("ws/.git"), ["config", "hooks"], "{case}");
        assert_eq!(names("ws/.git/hooks"), [""; 0], "{case}");
        assert_eq!(names("second/.codex"), [""; 0], "{case}");
        assert_eq!(fs::read_to_string(self.at("out/o")).expect("readable"), "one\n", "{case}");
        assert_eq!(fs::read_to_string(self.at("ws/.git/config")).expect("readable"), "one\n", "{case}");
        assert_eq!(names(""), ["out", "second", "ws"], "{case}");
    }

    /// Applies the patch in the workspace; the error is that of the plan or of the commit.
    fn apply(&self, hunks: &str, boundary: &Boundary) -> Result<(), String> {
        let patch = format!("*** Begin Patch\n{hunks}\n*** End Patch");
        let plan = verify(&patch, &self.at("ws")).map_err(|error| error.to_string())?;
        plan.commit(boundary).map(drop).map_err(|error| error.to_string())
    }
}

fn update(path: &str) -> String {
    format!("*** Update File: {path}\n@@\n-one\n+two")
}

fn add(path: &str) -> String {
    format!("*** Add File: {path}\n+new")
}

fn delete(path: &str) -> String {
    format!("*** Delete File: {path}")
}

fn moved(path: &str) -> String {
    format!("*** Update File: a\n*** Move to: {path}\n@@\n-one\n+two")
}

#[test]
fn refused_cases() {
    let field = Field::new();
    let absolute = field.at("out/x").display().to_string();
    let long = "n".repeat(5_000);
    let deep = format!("{}x", "d/".repeat(2_500));
    let nested = format!("{}x", "a/".repeat(2_000));
    let cases: Vec<(String, &str)> = vec![
        // Links as the file itself.
        (update("link_out"), "symbolic link"),
        (update("link_in"), "symbolic link"),
        (add("link_out"), "symbolic link"),
        (delete("link_out"), "symbolic link"),
        (moved("link_out"), "symbolic link"),
        (add("dangling"), "symbolic link"),
        (add("dangling_out"), "symbolic link"),
        (moved("dangling_out"), "symbolic link"),
        (add("loop1"), "symbolic link"),
        // Links on the way.
        (add("dirlink_out/x"), "symbolic link"),
        (add("dirlink_out/new/x"), "symbolic link"),
        (moved("dirlink_out/x"), "symbolic link"),
        (add("dirlink_in/x"), "symbolic link"),
        (update("dirlink_in/r"), "symbolic link"),
        (delete("dirlink_in/r"), "symbolic link"),
        (add("dangling/x"), "cannot write"),
        (add("loop1/x"), "cannot write"),
        (add("magic/x"), "symbolic link"),
        (add("rootlink/etc/oarlock-test"), "symbolic link"),
        (add("gitlink/hooks/pre-commit"), "protected"),
        // Out of the boundary by spelling.
        (add("../out/x"), "outside"),
        (add("../x"), "outside"),
        (add("sub/../../out/x"), "outside"),
        (add("./../out/dir/x"), "outside"),
        (update("../out/o"), "outside"),
        (delete("../out/o"), "outside"),
        (moved("../out/x"), "outside"),
        (add(&absolute), "outside"),
        (add("../ws2/x"), "outside"),
        // Protected names.
        (add(".git/hooks/pre-commit"), "protected"),
        (update(".git/config"), "protected"),
        (delete(".git/config"), "protected"),
        (moved(".git/x"), "protected"),
        (add(".GIT/hooks/x"), "protected"),
        (add(".Git/x"), "protected"),
        (add("sub/../.git/x"), "protected"),
        (add(".codex/config.toml"), "protected"),
        (add(".agents/x"), "protected"),
        (add(".oarlock/x"), "protected"),
        (add(".agent\u{17f}/x"), "protected"),
        (add(".codex"), "protected"),
        (add("../second/.codex/x"), "protected"),
        // The same at any depth, in any disguise.
        (add("sub/.codex/config.toml"), "protected"),
        (add("a1/b1/c1/.git/hooks/post-checkout"), "protected"),
        (add("real/.git"), "protected"),
        (add("new/.agents/skills/x/SKILL.md"), "protected"),
        (moved("sub/.oarlock/config.toml"), "protected"),
        (add(".g\u{200c}it/config"), "protected"),
        (add("sub/.git./config"), "protected"),
        (add("sub/.git /config"), "protected"),
        (add("GIT~1/config"), "protected"),
        (add(".git::$INDEX_ALLOCATION/config"), "protected"),
        (add("sub/\u{ff0e}git/config"), "protected"),
        (add(".codex\\config.toml"), "protected"),
        (add("bare.repo/hooks/post-receive"), "protected"),
        (add("bare.repo/config"), "protected"),
        (add("bare.repo/deep/er/x"), "protected"),
        (add("worktree/config.worktree"), "protected"),
        // Names that no file should have.
        (add("nul\0byte"), "NUL"),
        (add("esc\u{1b}[31m"), "control character"),
        (add("carriage\rreturn"), "control character"),
        (add(&long), "too long"),
        (add(&deep), "too long"),
        (add(&nested), "too many folders"),
        (add("trailing/"), "names a directory"),
        (add("."), "names a directory"),
        (add(".."), "names a directory"),
        (add("sub/.."), "names a directory"),
        (add("/"), "names a directory"),
        // The path exists and is no file.
        (update("fifo"), "FIFO"),
        (add("fifo"), "FIFO"),
        (delete("fifo"), "FIFO"),
        (moved("fifo"), "FIFO"),
        (add("socket"), "socket"),
        (update("socket"), "socket"),
        (add("/dev/null"), "device"),
        (update("/dev/zero"), "device"),
        (update("sparse"), "larger than 64 MiB"),
        (delete("sparse"), "larger than 64 MiB"),
        (add("sparse"), "larger than 64 MiB"),
        (add("real"), "Is a directory"),
        (add("a/b"), "Not a directory"),
        (add("fifo/x"), "Not a directory"),
    ];
    assert!(cases.len() > 60);
    assert_eq!(MAX_FILE_BYTES, 64 << 20);
    for (hunks, expected) in cases {
        // A good hunk before and after: neither may take effect.
        let whole = format!("{}\n{hunks}\n{}", add("good/first"), add("good2"));
        let error = field.apply(&whole, &field.boundary()).expect_err(&hunks);
        assert!(error.contains(expected), "{hunks}\ngot      {error}\nexpected {expected}");
        field.check_outside(&hunks);
        assert!(!field.at("ws/good").exists() && !field.at("ws/good2").exists(), "{hunks}");
        assert_eq!(fs::read_to_string(field.at("ws/a")).expect("readable"), "one\n", "{hunks}");
    }
}

#[test]
fn allowed_cases() {
    for (hunks, file, text) in [
        (update("a"), "ws/a", "two\n"),
        (update("./sub/../a"), "ws/a", "two\n"),
        (update("real//r"), "ws/real/r", "two\n"),
        (add("sub/.git2/x"), "ws/sub/.git2/x", "new\n"),
        (add(".gitignore"), "ws/.gitignore", "new\n"),
        (add("../second/x"), "second/x", "new\n"),
        (add("..."), "ws/...", "new\n"),
        (add("-rf"), "ws/-rf", "new\n"),
        (add("a b\u{202e}c"), "ws/a b\u{202e}c", "new\n"),
        (add("größe/文"), "ws/größe/文", "new\n"),
    ] {
        let field = Field::new();
        field.apply(&hunks, &field.boundary()).expect(&hunks);
        assert_eq!(fs::read_to_string(field.at(file)).expect("readable"), text, "{hunks}");
        if file == "second/x" {
            fs::remove_file(field.at(file)).expect("removed");
        }
        field.check_outside(&hunks);
    }
}

#[test]
fn a_hard_link_is_not_written_through() {
    let field = Field::new();
    field.apply(&update("hard"), &field.boundary()).expect("it is a file of the workspace");
    assert_eq!(fs::read_to_string(field.at("ws/hard")).expect("readable"), "two\n");
    field.check_outside("hard link");
}

#[test]
fn misleading_names_are_written_out() {
    let field = Field::new();
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", add("a\u{202e}txt.exe"));
    let plan = verify(&patch, &field.at("ws")).expect("it fits");
    assert!(plan.summary().ends_with("A a\\u{202e}txt.exe\n"), "{}", plan.summary());
    let error = field.apply(&add("../\u{202e}x"), &field.boundary()).expect_err("outside");
    assert!(error.contains("\\u{202e}x") && !error.contains('\u{202e}'), "{error}");
}

#[test]
fn anywhere_follows_links_to_where_they_led_when_it_was_planned() {
    let field = Field::new();
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", add("dirlink_out/x"));
    let plan = verify(&patch, &field.at("ws")).expect("it fits");
    let targets: Vec<&Path> = plan.targets().collect();
    assert_eq!(targets, [field.at("ws/dirlink_out/x"), field.at("out/dir/x")]);
    assert_eq!(plan.changes()[0].path, field.at("out/dir/x"), "the client sees where it really goes");
    assert!(!targets.iter().all(|target| field.boundary().allows(target)), "so it is asked for");
    plan.commit(&Boundary::Anywhere).expect("allowed");
    assert_eq!(fs::read_to_string(field.at("out/dir/x")).expect("readable"), "new\n");

    // A directory that became a link after the plan was made.
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", add("real/x"));
    let plan = verify(&patch, &field.at("ws")).expect("it fits");
    fs::rename(field.at("ws/real"), field.at("ws/real2")).expect("renamed");
    symlink(field.at("second"), field.at("ws/real")).expect("linked");
    let error = plan.commit(&Boundary::Anywhere).expect_err("swapped").to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert!(!field.at("second/x").exists() && !field.at("ws/real2/x").exists());
}

#[test]
fn a_working_directory_may_be_spelled_through_a_link() {
    let field = Field::new();
    symlink(field.at("ws"), field.at("second/alias")).expect("linked");
    let alias = field.at("second/alias");
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", update("a"));
    let plan = verify(&patch, &alias).expect("it fits");
    assert_eq!(plan.targets().collect::<Vec<_>>(), [alias.join("a")], "shown as the client spells it");
    plan.commit(&Boundary::roots(vec![alias.clone()])).expect("the root is spelled the same way");
    let patch = patch.replace("-one\n+two", "-two\n+three");
    let plan = verify(&patch, &alias).expect("it fits");
    plan.commit(&Boundary::roots(vec![field.at("ws")])).expect("the root is the real one");
    // Beneath a root, a link is a link, even if an inner root is named after it.
    let patch = patch.replace("-two\n+three", "-three\n+four");
    let plan = verify(&patch, &alias).expect("it fits");
    let nested = Boundary::roots(vec![alias, field.at("second")]);
    let error = plan.commit(&nested).expect_err("an inner root may have been swapped").to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert_eq!(fs::read_to_string(field.at("ws/a")).expect("readable"), "three\n");
}

#[test]
fn the_boundary_is_decided_by_spelling() {
    let boundary = Boundary::roots(vec!["/w".into(), "/w/inner/".into(), "/tmp/../t".into()]);
    for (path, allowed) in [
        ("/w/a", true),
        ("/w/a/../b", true),
        ("/w/../x", false),
        ("/w/../w/x", true),
        ("/wx/a", false),
        ("/", false),
        ("/w/.git", false),
        ("/w/.git/config", false),
        ("/w/.GIT/config", false),
        ("/w/a/../.codex/x", false),
        ("/w/a/.git/config", false),
        ("/w/inner/.git/config", false),
        ("/w/inner/.gitignore", true),
        ("/t/x", true),
        ("/tmp/x", false),
        ("w/a", false),
        ("/w/.agents", false),
        ("/w/.oarlock/rules", false),
    ] {
        assert_eq!(boundary.allows(Path::new(path)), allowed, "{path}");
        assert!(Boundary::Anywhere.allows(Path::new(path)));
    }
}

#[test]
fn a_base_that_is_no_directory_is_refused() {
    let field = Field::new();
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", add("x"));
    for base in [field.at("ws/missing"), field.at("ws/a"), PathBuf::from("relative")] {
        let error = verify(&patch, &base).expect_err("no directory").to_string();
        assert!(error.contains("base directory"), "{error}");
    }
}
