//! Plans, and commits to whole files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use oarlock_patch::{Applied, Boundary, CommitError, PatchPlan, TurnDiff, shown, verify};

struct Workspace {
    _held: tempfile::TempDir,
    root: PathBuf,
}

impl Workspace {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let held = tempfile::tempdir().expect("a temporary directory");
        let root = held.path().canonicalize().expect("it is there");
        let workspace = Self { _held: held, root };
        for (name, bytes) in files {
            let path = workspace.at(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, bytes).expect("written");
        }
        workspace
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn plan(&self, hunks: &str) -> Result<PatchPlan, String> {
        let error = |error: oarlock_patch::VerifyError| self.short(&error.to_string());
        verify(&format!("*** Begin Patch\n{hunks}\n*** End Patch"), &self.root).map_err(error)
    }

    fn apply(&self, hunks: &str) -> Applied {
        self.plan(hunks)
            .expect("it fits")
            .commit(&Boundary::roots(vec![self.root.clone()]))
            .expect("it commits")
    }

    fn short(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), "CWD")
    }

    /// Every file with its content, sorted.
    fn files(&self) -> Vec<String> {
        fn visit(directory: &Path, root: &Path, out: &mut Vec<String>) {
            for entry in fs::read_dir(directory).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_dir() {
                    visit(&path, root, out);
                } else {
                    let text = String::from_utf8_lossy(&fs::read(&path).expect("readable")).into_owned();
                    out.push(format!("{}={text:?}", path.strip_prefix(root).expect("beneath").display()));
                }
            }
        }
        let mut out = Vec::new();
        visit(&self.root, &self.root, &mut out);
        out.sort();
        out
    }

    fn changes(&self, hunks: &str) -> Vec<(String, String, String)> {
        let kind = |change: &oarlock_patch::PlannedChange| match &change.kind {
            oarlock_patch::ChangeKind::Add { .. } => "add".to_owned(),
            oarlock_patch::ChangeKind::Delete { .. } => "delete".to_owned(),
            oarlock_patch::ChangeKind::Update { move_path: None, .. } => "update".to_owned(),
            oarlock_patch::ChangeKind::Update { move_path: Some(path), .. } => {
                format!("update to {}", self.short(&shown(path)))
            }
        };
        let plan = self.plan(hunks).expect("it fits");
        let line = |change: oarlock_patch::PlannedChange| {
            (self.short(&shown(&change.path)), kind(&change), self.short(&change.diff()))
        };
        plan.changes().into_iter().map(line).collect()
    }
}

fn strings(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    rows.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
}

#[test]
fn changes_and_summary_are_what_clients_know() {
    let workspace = Workspace::new(&[
        ("a.txt", b"x\ny\n"),
        ("b.txt", b"old\n"),
        ("d.txt", b"q\n"),
        ("e.txt", b"was\n"),
        ("u.txt", b"l1\nl2\nl3\nl4\nl5\nl6\nl7\n"),
    ]);
    let hunks = "*** Delete File: a.txt\n*** Add File: b.txt\n+x\n*** Add File: n/c.txt\n*** Update File: d.txt\n\
                 *** Move to: e.txt\n@@\n q\n*** Update File: u.txt\n@@\n-l2\n+L2\n@@\n-l6\n+L6\n+L6b";
    assert_eq!(
        workspace.changes(hunks),
        strings(&[
            ("CWD/a.txt", "delete", "x\ny\n"),
            ("CWD/b.txt", "add", "x\n"),
            ("CWD/d.txt", "update to CWD/e.txt", "\n\nMoved to: CWD/e.txt"),
            ("CWD/n/c.txt", "add", ""),
            (
                "CWD/u.txt",
                "update",
                "@@ -1,3 +1,3 @@\n l1\n-l2\n+L2\n l3\n@@ -5,3 +5,4 @@\n l5\n-l6\n+L6\n+L6b\n l7\n"
            ),
        ])
    );
    assert_eq!(
        workspace.plan(hunks).expect("it fits").summary(),
        "Success. Updated the following files:\nA b.txt\nA n/c.txt\nM e.txt\nM u.txt\nD a.txt\n"
    );
    workspace.apply(hunks);
    assert_eq!(
        workspace.files(),
        [
            "b.txt=\"x\\n\"",
            "e.txt=\"q\\n\"",
            "n/c.txt=\"\"",
            "u.txt=\"l1\\nL2\\nl3\\nl4\\nl5\\nL6\\nL6b\\nl7\\n\""
        ]
    );
}

#[test]
fn hunks_see_what_the_hunks_before_them_did() {
    let workspace = Workspace::new(&[("a", b"one\n"), ("b", b"B\n")]);
    let hunks = "*** Update File: a\n@@\n-one\n+two\n*** Update File: ./a\n*** Move to: t\n@@\n-two\n+three\n\
                 *** Add File: new\n+1\n*** Update File: new\n@@\n-1\n+2\n*** Delete File: b\n*** Add File: b\n+b\n\
                 *** Add File: short\n+x\n*** Delete File: x/../short";
    assert_eq!(
        workspace.changes(hunks),
        strings(&[
            ("CWD/a", "update to CWD/t", "@@ -1 +1 @@\n-one\n+three\n\n\nMoved to: CWD/t"),
            ("CWD/b", "add", "b\n"),
            ("CWD/new", "add", "2\n"),
        ])
    );
    workspace.apply(hunks);
    assert_eq!(workspace.files(), ["b=\"b\\n\"", "new=\"2\\n\"", "t=\"three\\n\""]);
}

#[test]
fn files_can_change_places() {
    let workspace = Workspace::new(&[("a", b"A\n"), ("b", b"B\n")]);
    workspace.apply(
        "*** Update File: a\n*** Move to: t\n@@\n A\n*** Update File: b\n*** Move to: a\n@@\n B\n\
         *** Update File: t\n*** Move to: b\n@@\n A",
    );
    assert_eq!(workspace.files(), ["a=\"B\\n\"", "b=\"A\\n\""]);
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let workspace = Workspace::new(&[("a", b"one\n"), ("dir/x", b"1\n"), ("raw", b"\xff\n")]);
    let before = workspace.files();
    for (hunks, expected) in [
        ("*** Delete File: no", "Failed to read CWD/no: No such file or directory (os error 2)"),
        ("*** Delete File: dir", "Failed to read CWD/dir: Is a directory (os error 21)"),
        ("*** Delete File: raw", "Failed to read CWD/raw: it is not valid UTF-8"),
        ("*** Delete File: a\n*** Delete File: a", "Failed to read CWD/a: No such file"),
        (
            "*** Update File: no\n@@\n-x",
            "Failed to read file to update CWD/no: No such file or directory (os error 2)",
        ),
        ("*** Update File: raw\n@@\n-x", "Failed to read file to update CWD/raw: it is not valid UTF-8"),
        ("*** Update File: dir\n@@\n-x", "Failed to read file to update CWD/dir: Is a directory"),
        ("*** Add File: dir\n+x", "cannot write CWD/dir: Is a directory"),
        ("*** Add File: a/b\n+x", "cannot write CWD/a: Not a directory"),
        ("*** Update File: a\n*** Move to: dir\n@@\n one", "cannot write CWD/dir: Is a directory"),
        ("*** Add File: n\n+x\n*** Add File: n/m\n+x", "CWD/n would have to be both"),
        (
            "*** Delete File: a\n*** Update File: a\n@@\n one",
            "Failed to read file to update CWD/a: No such file",
        ),
        ("*** Add File: z\n+x\n*** Update File: a\n@@\n-nope", "lines not found in CWD/a:\nnope"),
    ] {
        let error = workspace.plan(hunks).expect_err(hunks);
        let expected = format!("apply_patch verification failed: {expected}");
        assert!(error.starts_with(&expected), "{hunks}\ngot      {error}\nexpected {expected}");
        assert_eq!(workspace.files(), before);
    }
    let nothing = verify("*** Begin Patch\n*** End Patch", &workspace.root).expect_err("nothing to do");
    assert_eq!(nothing.to_string(), "patch rejected: empty patch");
}

#[test]
fn modes_stay_and_links_are_cut() {
    let workspace = Workspace::new(&[("run", b"a\n"), ("mv", b"b\n"), ("over", b"c\n"), ("one", b"d\n")]);
    let mode = |name: &str| fs::metadata(workspace.at(name)).expect("there").mode() & 0o7777;
    let set = |name: &str, mode| {
        fs::set_permissions(workspace.at(name), fs::Permissions::from_mode(mode)).expect("set");
    };
    set("run", 0o755);
    set("mv", 0o710);
    set("over", 0o604);
    fs::hard_link(workspace.at("one"), workspace.at("two")).expect("linked");
    workspace.apply(
        "*** Update File: run\n@@\n-a\n+A\n*** Update File: mv\n*** Move to: x/mv\n@@\n b\n*** Add File: over\n+C\n\
         *** Update File: one\n@@\n-d\n+D\n*** Add File: plain\n+p",
    );
    assert_eq!((mode("run"), mode("x/mv"), mode("over")), (0o755, 0o710, 0o604));
    assert_eq!(mode("plain") & 0o111, 0);
    assert_eq!(fs::read(workspace.at("two")).expect("readable"), b"d\n", "the other name keeps its content");
    assert_eq!(fs::metadata(workspace.at("two")).expect("there").nlink(), 1);
}

#[test]
fn a_file_that_changed_since_is_left_alone() {
    let hunks = "*** Add File: new\n+n\n*** Update File: a\n@@\n-one\n+two\n*** Delete File: b";
    type Change = (&'static str, fn(&Workspace));
    let changes: [Change; 6] = [
        ("other bytes", |w| fs::write(w.at("a"), "ONE\n").expect("written")),
        ("another file", |w| {
            fs::write(w.at("a2"), "one\n").expect("written");
            fs::rename(w.at("a2"), w.at("a")).expect("renamed");
        }),
        ("gone", |w| fs::remove_file(w.at("b")).expect("removed")),
        ("appeared", |w| fs::write(w.at("new"), "").expect("written")),
        ("a link instead", |w| {
            fs::rename(w.at("a"), w.at("a2")).expect("renamed");
            std::os::unix::fs::symlink("a2", w.at("a")).expect("linked");
        }),
        ("a directory instead", |w| fs::create_dir(w.at("new")).expect("made")),
    ];
    for (what, change) in changes {
        let workspace = Workspace::new(&[("a", b"one\n"), ("b", b"B\n")]);
        let plan = workspace.plan(hunks).expect("it fits");
        change(&workspace);
        let before = workspace.files();
        let error = plan.commit(&Boundary::roots(vec![workspace.root.clone()])).expect_err(what);
        assert!(matches!(error, CommitError::Changed(_)), "{what}: {error}");
        assert!(error.to_string().contains("changed since the patch was checked"), "{error}");
        assert_eq!(workspace.files(), before, "{what}");
    }
}

#[test]
fn a_digest_names_the_patch_and_what_it_meets() {
    let workspace = Workspace::new(&[("a", b"one\n")]);
    let hunks = "*** Update File: a\n@@\n-one\n+two";
    let digest = |hunks: &str| workspace.plan(hunks).expect("it fits").digest();
    let first = digest(hunks);
    assert_eq!(digest(hunks), first);
    assert_ne!(digest("*** Update File: a\n@@\n-one\n+three"), first);
    assert_ne!(digest("*** Update File: a\n*** Move to: b\n@@\n-one\n+two"), first);
    // Another inode with the same bytes is another file.
    fs::write(workspace.at("b"), "one\n").expect("written");
    fs::rename(workspace.at("b"), workspace.at("a")).expect("renamed");
    assert_ne!(digest(hunks), first);
}

#[test]
fn a_turn_has_one_diff() {
    let workspace =
        Workspace::new(&[("a.txt", b"one\ntwo\n"), ("raw", b"\xff\x00"), ("mv", b"m\n"), ("del", b"x")]);
    let mut diff = TurnDiff::new(Some(workspace.root.clone()));
    assert_eq!(diff.unified(), None);
    diff.note(&workspace.apply("*** Add File: new.txt\n+alpha\n+beta"));
    let new = "diff --git a/new.txt b/new.txt\nnew file mode 100644\nindex \
               0000000000000000000000000000000000000000..fbbee861521bd5355538b096fa3998541cd33909\n--- /dev/null\n\
               +++ b/new.txt\n@@ -0,0 +1,2 @@\n+alpha\n+beta\n";
    assert_eq!(diff.unified().as_deref(), Some(new));
    diff.note(&workspace.apply("*** Delete File: new.txt"));
    assert_eq!(diff.unified(), None, "what came and went is no change");
    diff.note(&workspace.apply(
        "*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: raw\n+x\n*** Delete File: del\n*** Add File: empty",
    ));
    diff.note(&workspace.apply("*** Update File: a.txt\n*** Move to: sub/b.txt\n@@\n-one\n+1"));
    diff.note(&workspace.apply("*** Update File: mv\n*** Move to: mv2\n@@\n m"));
    let expected = [
        "diff --git a/del b/del\ndeleted file mode 100644\n\
         index c1b0730e0133447badcfd47fd144e254807b06e1..0000000000000000000000000000000000000000\n\
         --- a/del\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
        "diff --git a/empty b/empty\nnew file mode 100644\n\
         index 0000000000000000000000000000000000000000..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n",
        "diff --git a/mv b/mv2\nsimilarity index 100%\nrename from mv\nrename to mv2\n",
        "diff --git a/raw b/raw\nindex 5d983463ed9b1bcb008a040949025e83abf576d1..587be6b4c3f93f93c489c0111bba5596147a26cb\n\
         --- a/raw\n+++ b/raw\nBinary files differ\n",
        "diff --git a/a.txt b/sub/b.txt\nindex 814f4a422927b82f5f8a43f8fab6d3839e3983f2..1191247b6d9a206f6ba3d8ac79e26d041dd86941\n\
         --- a/a.txt\n+++ b/sub/b.txt\n@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n",
    ];
    assert_eq!(diff.unified().expect("there are changes"), expected.concat());
}

#[test]
fn a_move_there_and_back_is_no_change() {
    let workspace = Workspace::new(&[("a", b"one\n"), ("over", b"x\n")]);
    let mut diff = TurnDiff::new(Some(workspace.root.clone()));
    diff.note(&workspace.apply("*** Update File: a\n*** Move to: b\n@@\n-one\n+two"));
    diff.note(&workspace.apply("*** Update File: b\n*** Move to: c\n@@\n-two\n+three"));
    let text = diff.unified().expect("a change");
    assert!(text.starts_with("diff --git a/a b/c\nindex "), "{text}");
    assert_eq!(text.matches("diff --git").count(), 1);
    diff.note(&workspace.apply("*** Update File: c\n*** Move to: a\n@@\n-three\n+one"));
    assert_eq!(diff.unified(), None);
    // Over a file that was there, it is a deletion and a change: nothing may be hidden.
    diff.note(&workspace.apply("*** Update File: a\n*** Move to: over\n@@\n one"));
    let text = diff.unified().expect("a change");
    assert!(text.contains("diff --git a/a b/a\ndeleted file mode") && text.contains("-x\n+one\n"), "{text}");
}

#[test]
fn outside_the_display_root_paths_are_absolute() {
    let workspace = Workspace::new(&[]);
    let mut diff = TurnDiff::new(None);
    diff.note(&workspace.apply("*** Add File: new\n+x"));
    let text = workspace.short(&diff.unified().expect("a change"));
    assert!(text.starts_with("diff --git a/CWD/new b/CWD/new\n"), "{text}");
}
