use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

type Files<'a> = &'a [(&'a str, &'a str)];

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn tree(files: Files<'_>) -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("inside")).expect("made");
        fs::write(path, text.replace("ROOT", dir.path().to_str().expect("plain"))).expect("written");
    }
    dir
}

fn info(sha: Option<&str>, branch: Option<&str>, origin_url: Option<&str>) -> Option<GitInfo> {
    let own = |text: Option<&str>| text.map(str::to_owned);
    Some(GitInfo { sha: own(sha), branch: own(branch), origin_url: own(origin_url) })
}

fn check(files: Files<'_>, cwd: &str, expected: &Option<GitInfo>) {
    let dir = tree(files);
    assert_eq!(git_info(&dir.path().join(cwd), &Reader::default()), *expected, "{files:?}");
}

#[test]
fn a_checkout_is_read() {
    let main = ("r/.git/HEAD", "ref: refs/heads/main\n");
    let loose = format!("{A}\n");
    let packed = format!(
        "# pack-refs with: peeled fully-peeled sorted \n{B} refs/heads/mainly\n{A} refs/heads/main\n^{B}\n"
    );
    let sha256 = "c".repeat(64);
    let cases: &[(Files<'_>, Option<GitInfo>)] = &[
        (&[("r/file", "")], None),
        (&[("r/.git/config", "")], None),
        (&[("r/.git/HEAD", "nonsense")], None),
        // No commit yet.
        (&[main], info(None, Some("main"), None)),
        (&[main, ("r/.git/refs/heads/main", &loose)], info(Some(A), Some("main"), None)),
        (&[main, ("r/.git/packed-refs", &packed)], info(Some(A), Some("main"), None)),
        (
            &[main, ("r/.git/packed-refs", &packed), ("r/.git/refs/heads/main", B)],
            info(Some(B), Some("main"), None),
        ),
        (&[("r/.git/HEAD", &loose)], info(Some(A), None, None)),
        (&[("r/.git/HEAD", &sha256)], info(Some(&sha256), None, None)),
        (
            &[("r/.git/HEAD", "ref: refs/heads/a/b"), ("r/.git/refs/heads/a/b", A)],
            info(Some(A), Some("a/b"), None),
        ),
        // One branch that stands for another.
        (
            &[main, ("r/.git/refs/heads/main", "ref: refs/heads/other"), ("r/.git/refs/heads/other", A)],
            info(Some(A), Some("main"), None),
        ),
        // In a circle.
        (&[main, ("r/.git/refs/heads/main", "ref: refs/heads/main")], info(None, Some("main"), None)),
        // Neither a path out of the repository nor another file's text gets out.
        (&[("r/.git/HEAD", "ref: refs/../../secret"), ("r/secret", A)], None),
        (&[("r/.git/HEAD", "ref: /etc/hostname")], None),
        (&[main, ("r/.git/refs/heads/main", "password=1")], info(None, Some("main"), None)),
        (&[("r/.git/HEAD", "ref: refs/heads/.invalid")], None),
        (
            &[main, ("r/.git/config", "[remote \"origin\"]\n\turl = https://example.org/r.git\n")],
            info(None, Some("main"), Some("https://example.org/r.git")),
        ),
    ];
    for (files, expected) in cases {
        check(files, "r", expected);
    }
}

#[test]
fn worktrees_and_submodules_are_followed() {
    let shared: Files<'_> = &[
        ("main/.git/HEAD", "ref: refs/heads/main"),
        ("main/.git/packed-refs", &format!("{A} refs/heads/main\n{B} refs/heads/topic\n")),
        ("main/.git/config", "[remote \"origin\"]\nurl = u\n"),
        ("main/.git/worktrees/w/HEAD", "ref: refs/heads/topic"),
        ("main/.git/worktrees/w/commondir", "../..\n"),
        ("main/.git/modules/s/HEAD", A),
        ("main/s/.git", "gitdir: ../.git/modules/s\n"),
        ("w/.git", "gitdir: ROOT/main/.git/worktrees/w\n"),
        ("w/deep/file", ""),
        ("broken/.git", "elsewhere"),
        ("gone/.git", "gitdir: nowhere"),
    ];
    let cases = [
        ("main", info(Some(A), Some("main"), Some("u"))),
        ("w/deep", info(Some(B), Some("topic"), Some("u"))),
        ("main/s", info(Some(A), None, None)),
        ("broken", None),
        ("gone", None),
        ("missing", None),
    ];
    for (cwd, expected) in cases {
        check(shared, cwd, &expected);
    }
    let dir = tree(shared);
    let root = dir.path().canonicalize().expect("there");
    let roots =
        [("main", Some("main")), ("w/deep", Some("w")), ("main/s", Some("main/s")), ("missing", None)];
    for (cwd, expected) in roots {
        assert_eq!(git_root(&root.join(cwd)), expected.map(|path| root.join(path)), "{cwd}");
    }
}

#[test]
fn a_name_that_the_sandbox_keeps_free_is_no_repository() {
    let dir = tree(&[("work/file", "")]);
    let root = dir.path().canonicalize().expect("there");
    let git = root.join(".git");
    fs::create_dir(&git).expect("made");
    assert_eq!(git_root(&root.join("work")), Some(root.clone()));
    fs::set_permissions(&git, fs::Permissions::from_mode(0o1755)).expect("set");
    assert_eq!(git_root(&root.join("work")), None);
}

#[test]
fn the_origin_is_found_in_the_configuration() {
    let cases = [
        ("", None),
        ("[remote \"origin\"]\n\turl = https://h/r\n", Some("https://h/r")),
        ("[remote \"origin\"]\r\n\tURL=https://h/r\r\n", Some("https://h/r")),
        ("[Remote \"origin\"] url = one line", Some("one line")),
        ("[remote.origin]\nurl = old form", Some("old form")),
        ("[remote \"Origin\"]\nurl = x", None),
        ("[remote \"upstream\"]\nurl = x\n[remote \"origin\"]\nfetch = f\nurl = y\nurl = z", Some("y")),
        ("[remote \"origin\"]\nurl = x ; about it", Some("x")),
        ("[remote \"origin\"]\nurl = \"a # b\" # c", Some("a # b")),
        ("[remote \"origin\"]\nurl = \"trailing  \"", Some("trailing  ")),
        ("[remote \"origin\"]\nurl = one\\\ntwo", Some("onetwo")),
        ("[remote \"origin\"]\nurl = a\\\\b\\\"c", Some("a\\b\"c")),
        ("[remote \"origin\"]\nurl\nurl =\nurl = x", Some("x")),
        ("[remote \"origin\"]\n# url = x\n; url = y\n", None),
        ("[a \"]\"]\nurl = x\n[remote \"origin\"]\nurl = y", Some("y")),
        ("[alias]\nx = !f\\\n[remote \"origin\"]\nurl = x", None),
        ("[remote \"origin\"]\nurl = x\\", Some("x")),
        ("[remote \"origin\"\nurl = x", None),
    ];
    for (config, expected) in cases {
        assert_eq!(url_of_origin(config).as_deref(), expected, "{config}");
    }
}

#[test]
fn credentials_are_left_out() {
    let cases = [
        ("https://example.org/r.git", "https://example.org/r.git"),
        ("https://user:secret@example.org/r.git", "https://example.org/r.git"),
        ("https://token@example.org:8443/r.git", "https://example.org:8443/r.git"),
        ("https://user:se@cret@example.org/r", "https://example.org/r"),
        ("https://user:se/cret@example.org/r", "https://example.org/r"),
        ("https://example.org/@scope/r", "https://example.org/@scope/r"),
        ("https://example.org:443/a@b", "https://example.org:443/a@b"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("https://example.org/r?private_token=secret#x", "https://example.org/r"),
        ("ssh://git@example.org/r", "ssh://git@example.org/r"),
        ("ssh://git:secret@example.org:22/r", "ssh://git@example.org:22/r"),
        ("ssh://:secret@example.org/r", "ssh://example.org/r"),
        ("git@example.org:team/r.git", "git@example.org:team/r.git"),
        ("user:secret@example.org:team/r.git", "user@example.org:team/r.git"),
        ("/srv/git/a@b:c", "/srv/git/a@b:c"),
        ("file:///srv/r", "file:///srv/r"),
    ];
    for (url, expected) in cases {
        assert_eq!(without_credentials(url), expected, "{url}");
    }
}
