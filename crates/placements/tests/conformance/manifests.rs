//! Workspaces from manifests, on every backend and by themselves.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use ::support::SystemClock;
use oarlock_placements::{
    LocalSettings, Placement, PlacementOrder, PlacementSettings, Placements, PreparedManifest, ProgressSink,
    ResolvedEnv, WorkspaceLimits, WorkspaceManifest, WorkspaceStart,
};
use serde_json::{Value, json};

use crate::support::{block_on, create, text, tree, unique, unpack};

async fn prepare(json: Value) -> Result<PreparedManifest, String> {
    let manifest = WorkspaceManifest::from_json(&json).map_err(|error| error.to_string())?;
    PreparedManifest::new(manifest, WorkspaceLimits::default()).await.map_err(|error| error.to_string())
}

/// Odd names, modes and links.
fn odd_tree(root: &Path) {
    let deep = format!("{}/{}", "deep".repeat(30), "er".repeat(100));
    fs::create_dir_all(root.join(&deep)).unwrap();
    let names: &[&[u8]] = &[
        b"plain",
        b"with space",
        b"-dash",
        b"new\nline",
        "ünï".as_bytes(),
        b"not-utf8-\xff\xfe",
        b"quote'\"$`\\",
        b"*",
    ];
    for (name, mode) in names.iter().zip([0o644, 0o755, 0o600, 0o444, 0o640, 0o664, 0o711, 0o777]) {
        let path = root.join(OsStr::from_bytes(name));
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(root.join(&deep).join("x".repeat(255)), [0, 255, 10]).unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::create_dir(root.join("closed")).unwrap();
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("with space", root.join("link")).unwrap();
    symlink("../plain", root.join("closed/up")).unwrap();
    symlink("nowhere/".repeat(20), root.join("long-link")).unwrap();
}

/// Into a placement by a manifest, out as a tar, in again by that tar, out again: the same three times.
pub(crate) async fn round_trip(placements: &Placements, settings: &PlacementSettings) {
    let source = tempfile::tempdir().unwrap();
    odd_tree(source.path());
    let prepared =
        prepare(json!({"entries": {"a": {"type": "localDir", "path": source.path()}}})).await.unwrap();
    let placement =
        create(placements, settings, WorkspaceStart::Manifest(&prepared, &ResolvedEnv::default())).await;
    let mut expected = tree(source.path());
    assert_eq!(tree(&unpack(&get(&placement, "a").await).path().join("t")), expected);
    text(&placement, "ln a/plain a/hard").await;
    expected.insert(b"hard".to_vec(), expected[&b"plain"[..]].clone());
    // Not in a namespace that knows one user alone, and not for a user who is not root.
    let given = text(&placement, "chown 1234:2345 a/plain 2>/dev/null && echo yes || true").await;
    let first = get(&placement, "a").await;
    placement.put_tar("b/c", first.as_slice()).await.unwrap();
    if given == "yes\n" {
        let owner = "ls -n b/c/plain | tr -s ' ' | cut -d ' ' -f 3,4";
        assert_eq!(text(&placement, owner).await, "1234 2345\n", "the owner is kept");
    }
    assert_eq!(
        text(&placement, "ls -l b/c/hard | tr -s ' ' | cut -d ' ' -f 2").await,
        "2\n",
        "the hard link is one"
    );
    assert_eq!(tree(&unpack(&get(&placement, "b/c").await).path().join("t")), expected);

    text(&placement, "mkdir bad && ln -s /etc bad/out").await;
    let outside = get(&placement, "bad").await;
    let error = placement.put_tar("d", outside.as_slice()).await.unwrap_err().to_string();
    assert!(error.contains("points outside"), "{error}");
    let error = placement.put_tar("../up", first.as_slice()).await.unwrap_err().to_string();
    assert!(error.contains("beneath the workspace"), "{error}");
    placement.destroy().await.unwrap();
}

async fn get(placement: &Placement, folder: &str) -> Vec<u8> {
    let mut tar = Vec::new();
    let bytes = placement.get_tar(folder, &mut tar).await.unwrap();
    assert_eq!(bytes, tar.len() as u64);
    tar
}

fn local(folder: &Path) -> PlacementSettings {
    PlacementSettings::Local(LocalSettings {
        workspace: None,
        folder: Some(folder.to_string_lossy().into_owned()),
    })
}

#[test]
fn entries_of_every_kind_arrive() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir_all(source.join("target/deep")).unwrap();
        fs::create_dir_all(source.join("src/inner")).unwrap();
        for file in ["a.rs", "src/b.rs", "src/inner/c.txt", "target/deep/d.rs"] {
            fs::write(source.join(file), file).unwrap();
        }
        let prepared = prepare(json!({"entries": {
            ".": {"type": "localDir", "path": source, "include": ["*.rs"], "exclude": ["target"]},
            "bin/run": {"type": "text", "text": "#!/bin/sh\necho ran\n", "mode": 0o755},
            "data": {"type": "bytes", "base64": "AP8K"},
            "empty": {"type": "dir", "mode": 0o700},
            "copy": {"type": "localFile", "path": source.join("a.rs")},
        }}))
        .await
        .unwrap();
        let placements = Placements::new("manifests", Arc::new(SystemClock)).unwrap();
        let placement = create(
            &placements,
            &local(folder.path()),
            WorkspaceStart::Manifest(&prepared, &ResolvedEnv::default()),
        )
        .await;
        let found: Vec<String> = tree(Path::new(&placement.reference().workspace))
            .into_iter()
            .map(|(path, described)| format!("{} {described}", String::from_utf8(path).unwrap()))
            .collect();
        let of = |text: &str| format!("{:?}", text.as_bytes());
        assert_eq!(
            found,
            [
                format!("a.rs file 644 {}", of("a.rs")),
                "bin folder 755".to_owned(),
                format!("bin/run file 755 {}", of("#!/bin/sh\necho ran\n")),
                format!("copy file 644 {}", of("a.rs")),
                "data file 644 [0, 255, 10]".to_owned(),
                "empty folder 700".to_owned(),
                "src folder 755".to_owned(),
                format!("src/b.rs file 644 {}", of("src/b.rs")),
            ]
        );
        placement.destroy().await.unwrap();
    });
}

#[test]
fn the_digest_is_of_the_content() {
    block_on(async {
        let digest = async |text: &str, env: &str| {
            let json = json!({"entries": {"a": {"type": "text", "text": text}}, "env": {"A": env}});
            prepare(json).await.unwrap().digest().to_owned()
        };
        let first = digest("x", "1").await;
        assert_eq!(first, digest("x", "1").await);
        assert_ne!(first, digest("y", "1").await);
        assert_ne!(first, digest("x", "2").await);
    });
}

#[test]
fn links_out_of_the_workspace_and_large_files_are_refused() {
    block_on(async {
        let source = tempfile::tempdir().unwrap();
        symlink("../../etc", source.path().join("out")).unwrap();
        let json = json!({"entries": {"a": {"type": "localDir", "path": source.path()}}});
        let error = prepare(json.clone()).await.unwrap_err();
        assert!(error.contains("\"a/out\"") && error.contains("exclude it"), "{error}");
        fs::remove_file(source.path().join("out")).unwrap();
        fs::write(source.path().join("large"), vec![0; 5000]).unwrap();
        for limits in [
            WorkspaceLimits { file_bytes: 4000, ..WorkspaceLimits::default() },
            WorkspaceLimits { bytes: 4000, ..WorkspaceLimits::default() },
            WorkspaceLimits { entries: 1, ..WorkspaceLimits::default() },
        ] {
            let manifest = WorkspaceManifest::from_json(&json).unwrap();
            let error = PreparedManifest::new(manifest, limits).await.unwrap_err().to_string();
            assert!(error.contains("is larger than"), "{error}");
        }
    });
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_repository_arrives_at_its_commit() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("repo");
        fs::create_dir(&source).unwrap();
        git(&source, &["init", "-q"]);
        fs::write(source.join("file"), "one").unwrap();
        git(&source, &["add", "."]);
        git(&source, &["commit", "-q", "-m", "one"]);
        git(&source, &["tag", "v1"]);
        let first = git(&source, &["rev-parse", "HEAD"]);
        fs::write(source.join("file"), "two").unwrap();
        git(&source, &["commit", "-q", "-am", "two"]);
        let second = git(&source, &["rev-parse", "HEAD"]);
        let url = format!("file://{}", source.display());
        let placements = Placements::new("manifests", Arc::new(SystemClock)).unwrap();
        for (rev, commit, content) in [
            (json!("v1"), &first, "one"),
            (json!(first), &first, "one"),
            (json!("main"), &second, "two"),
            (Value::Null, &second, "two"),
        ] {
            let prepared =
                prepare(json!({"entries": {"r": {"type": "git", "url": url, "rev": rev}}})).await.unwrap();
            assert_eq!(prepared.commits()["r"], *commit);
            let placement = create(
                &placements,
                &local(folder.path()),
                WorkspaceStart::Manifest(&prepared, &ResolvedEnv::default()),
            )
            .await;
            assert_eq!(
                text(&placement, "cat r/file; git -C r rev-parse HEAD; git -C r status --short").await,
                format!("{content}{commit}\n")
            );
            placement.destroy().await.unwrap();
        }
        let error =
            prepare(json!({"entries": {"r": {"type": "git", "url": url, "rev": "nope"}}})).await.unwrap_err();
        assert!(error.contains("has no branch or tag \"nope\""), "{error}");
    });
}

#[test]
fn of_a_repository_a_folder_or_more_of_the_history_may_come() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("repo");
        fs::create_dir_all(source.join("docs/deep")).unwrap();
        git(&source, &["init", "-q"]);
        symlink("/etc", source.join("out")).unwrap();
        for content in ["one", "two", "three"] {
            fs::write(source.join("docs/deep/file"), content).unwrap();
            git(&source, &["add", "."]);
            git(&source, &["commit", "-q", "-m", content]);
        }
        git(&source, &["rm", "-q", "out"]);
        git(&source, &["commit", "-q", "-m", "four"]);
        let url = format!("file://{}", source.display());
        let placements = Placements::new("manifests", Arc::new(SystemClock)).unwrap();
        let shown = async |more: Value, command: &str| {
            let mut entry = json!({"type": "git", "url": url});
            entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let prepared = prepare(json!({"entries": {"r": entry}})).await?;
            let start = WorkspaceStart::Manifest(&prepared, &ResolvedEnv::default());
            let placement = create(&placements, &local(folder.path()), start).await;
            let shown = text(&placement, command).await;
            placement.destroy().await.unwrap();
            Ok::<_, String>(shown)
        };
        let count = "git -C r rev-list --count HEAD";
        for (more, commits) in
            [(json!({}), "1\n"), (json!({"depth": 2}), "2\n"), (json!({"depth": 0}), "4\n")]
        {
            assert_eq!(shown(more.clone(), count).await.unwrap(), commits, "{more}");
        }
        assert_eq!(
            shown(json!({"subpath": "docs/deep"}), "ls -A r; cat r/file").await.unwrap(),
            "file\nthree"
        );
        for (more, problem) in [
            (json!({"subpath": "../x"}), "without `..`"),
            (json!({"subpath": ".git/hooks"}), "subpath must be a folder"),
            (json!({"subpath": "nope"}), "no folder \"nope\""),
            (json!({"subpath": "docs/deep/file"}), "no folder"),
            (json!({"subpath": "out", "rev": git(&source, &["rev-parse", "HEAD~1"])}), "no folder \"out\""),
        ] {
            let error = shown(more.clone(), count).await.unwrap_err();
            assert!(error.contains(problem), "{more}: {error}");
        }
    });
}

#[test]
fn setup_reports_its_lines_and_shows_no_secret() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let secret = format!("hunter-{}", unique());
        let manifest = |last: &str| json!({"env": {"KEY": {"secret": "k"}, "NAME": "ann"}, "setup": [["sh", "-c", "echo hello $NAME > made; echo key $KEY"], last]});
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let progress = ProgressSink::new(move |progress| seen.lock().unwrap().extend(progress.line));
        let placements = Placements::new("manifests", Arc::new(SystemClock)).unwrap();
        let make = async |last: &str| {
            let prepared = prepare(manifest(last)).await.unwrap();
            let env = ResolvedEnv::resolve(&prepared.manifest().env, |_| Some(secret.clone())).unwrap();
            let order = PlacementOrder {
                id: format!("t-{}", unique()),
                settings: local(folder.path()),
                start: WorkspaceStart::Manifest(&prepared, &env),
            };
            placements.create(order, &progress).await
        };
        let placement = make("cat made").await.unwrap();
        assert_eq!(*lines.lock().unwrap(), ["key ***", "hello ann"]);
        let reference = placement.reference().to_json().unwrap().to_string();
        assert!(!reference.contains(&secret) && !format!("{placement:?}").contains(&secret));
        placement.destroy().await.unwrap();

        let error = make("echo the key $KEY is wrong >&2; exit 9").await.unwrap_err();
        assert!(error.to_string().ends_with("the key *** is wrong"), "{error}");
        assert!(!format!("{error:?}").contains(&secret));
        assert!(placements.leftovers(&local(folder.path())).await.unwrap().is_empty());
    });
}
