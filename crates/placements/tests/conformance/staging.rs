//! Staging: twice, at once, and where a home cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::support::SystemClock;
use oarlock_placements::{
    CommandPlaceSettings, Placement, PlacementSettings, Placements, ProgressSink, RuntimeBuild,
    StagedRuntime, WorkspaceStart,
};

use crate::support::{block_on, create, has, is_root, text, unique};

/// A script of some size, which runs on every machine.
pub(crate) async fn build(folder: &Path, bytes: usize) -> RuntimeBuild {
    let number = unique();
    let path = folder.join(format!("build-{number}"));
    let mut content = format!("#!/bin/sh\necho staged {number}\nexit\n");
    let mut noise = number;
    while content.len() < bytes {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        content.push_str(&format!("# {noise}\n"));
    }
    fs::write(&path, content).unwrap();
    RuntimeBuild::open(&format!("{}-unknown-linux-musl", std::env::consts::ARCH), &path).await.unwrap()
}

pub(crate) async fn twice(placement: &Placement) {
    let folder = tempfile::tempdir().unwrap();
    let build = build(folder.path(), 700_000).await;
    let (seen, total) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (seen_too, total_too) = (Arc::clone(&seen), Arc::clone(&total));
    let progress = ProgressSink::new(move |progress| {
        seen_too.fetch_max(progress.done, Ordering::Relaxed);
        total_too.store(progress.total.unwrap(), Ordering::Relaxed);
    });
    let stage = || placement.stage(std::slice::from_ref(&build), &progress);
    let (first, second, third) = tokio::join!(stage(), stage(), stage());
    let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
    assert!(first.copied || second.copied || third.copied);
    assert!(
        seen.load(Ordering::Relaxed) > 10_000
            && seen.load(Ordering::Relaxed) == total.load(Ordering::Relaxed)
    );
    assert!(total.load(Ordering::Relaxed) < 600_000, "it was not compressed");
    assert_eq!((&first.path, &first.digest), (&second.path, &third.digest));
    let again = stage().await.unwrap();
    assert_eq!(again, StagedRuntime { copied: false, ..first });
    assert!(text(placement, &again.path).await.starts_with("staged "));
    let folder_there = again.path.trim_end_matches("/oarlock");
    assert_eq!(
        text(placement, &format!("ls -A {folder_there}")).await,
        "oarlock\n",
        "temporary files were left"
    );
    text(placement, &format!("rm -r {folder_there}")).await;
    let other = RuntimeBuild::open(
        "sparc64-unknown-linux-musl",
        &folder.path().join(fs::read_dir(folder.path()).unwrap().flatten().next().unwrap().file_name()),
    )
    .await
    .unwrap();
    let error = placement.stage(&[other], &ProgressSink::none()).await.unwrap_err().to_string();
    assert!(error.contains("is missing on this host (it has: sparc64-unknown-linux-musl)"), "{error}");
}

/// A machine whose home is mounted with these options, and whose PATH is this.
async fn odd_home(mount: &str, path: &str, check: impl AsyncFnOnce(&Placement)) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_string_lossy().into_owned();
    fs::create_dir(folder.path().join("home")).unwrap();
    let script = format!(
        "mount -t tmpfs -o {mount} none {at}/home && export HOME={at}/home PATH={path} && exec \"$@\""
    );
    let settings = CommandPlaceSettings {
        argv: ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec(),
        workspace: Some(format!("{at}/w")),
        ..CommandPlaceSettings::default()
    };
    let placements = Placements::new("staging", Arc::new(SystemClock)).unwrap();
    let placement = create(&placements, &PlacementSettings::Command(settings), WorkspaceStart::Empty).await;
    check(&placement).await;
    placement.destroy().await.unwrap();
}

/// The binary is staged outside the home, runs there, and is removed again.
async fn staged_elsewhere(placement: &Placement) {
    let folder = tempfile::tempdir().unwrap();
    let build = build(folder.path(), 300_000).await;
    let staged = placement.stage(&[build], &ProgressSink::none()).await.unwrap();
    assert!(staged.copied && staged.path.starts_with("/var/tmp/oarlock-"), "{}", staged.path);
    assert!(text(placement, &staged.path).await.starts_with("staged "));
    text(placement, &format!("rm -r {}", staged.path.trim_end_matches("/oarlock"))).await;
}

fn can_mount() -> bool {
    let can = is_root() && has("unshare");
    if !can {
        println!("skipped: unshare with mounts needs root");
    }
    can
}

#[test]
fn a_home_without_execution_room_or_write_permission_is_left_for_another_folder() {
    if can_mount() {
        let path = std::env::var("PATH").unwrap();
        for mount in ["size=4m,noexec", "size=64k", "size=4m,ro"] {
            block_on(odd_home(mount, &path, staged_elsewhere));
        }
    }
}

/// A folder with links to these tools alone.
fn tools(folder: &Path, names: &[&str]) {
    for name in names {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|path| path.join(name))
            .find(|path| path.exists());
        std::os::unix::fs::symlink(found.unwrap(), folder.join(name)).unwrap();
    }
}

const FEW: &[&str] =
    &["sh", "cat", "mkdir", "chmod", "mv", "rm", "rmdir", "id", "uname", "grep", "ls", "find"];

#[test]
fn without_sha256sum_and_gzip_the_copy_is_read_back() {
    if can_mount() {
        let folder = tempfile::tempdir().unwrap();
        tools(folder.path(), FEW);
        // The home does not outlast a command here, so that the copy is elsewhere.
        block_on(odd_home("size=4m,noexec", &folder.path().to_string_lossy(), staged_elsewhere));
    }
}

#[test]
fn a_damaged_copy_is_refused_by_its_digest_and_removed() {
    if !can_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    tools(folder.path(), FEW);
    let gzip = folder.path().join("gzip");
    fs::write(&gzip, "#!/bin/sh\ncat >/dev/null; echo damaged\n").unwrap();
    fs::set_permissions(&gzip, fs::Permissions::from_mode(0o755)).unwrap();
    block_on(odd_home("size=4m,noexec", &folder.path().to_string_lossy(), async |placement: &Placement| {
        let builds = tempfile::tempdir().unwrap();
        let build = build(builds.path(), 10_000).await;
        let digest = build.digest().to_owned();
        let error = placement.stage(&[build], &ProgressSink::none()).await.unwrap_err().to_string();
        assert!(
            error.contains("staging the runtime failed") && error.contains(&format!("not {digest}")),
            "{error}"
        );
        let found = text(placement, &format!("find /var/tmp/oarlock-0 /tmp/oarlock-0 /dev/shm/oarlock-0 -name '*{digest}*' -exec ls -A {{}} \\;")).await;
        assert_eq!(found, "");
        text(placement, &format!("rm -rf /var/tmp/oarlock-0/bin/{digest} /tmp/oarlock-0/bin/{digest} /dev/shm/oarlock-0/bin/{digest}")).await;
    }));
}

#[test]
fn a_build_whose_loader_is_not_there_is_refused_with_its_name() {
    block_on(async {
        let site = crate::places::local().unwrap();
        let placements = Placements::new("conformance", Arc::new(SystemClock)).unwrap();
        let placement = create(&placements, &site.settings, WorkspaceStart::Empty).await;
        let mut program = fs::read(std::env::current_exe().unwrap()).unwrap();
        let (there, missing) = (b"/ld-linux", b"/no-linux");
        let Some(at) = program.windows(there.len()).position(|window| window == there) else { return };
        program[at..at + missing.len()].copy_from_slice(missing);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("build"), program).unwrap();
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let build = RuntimeBuild::open(&target, &folder.path().join("build")).await.unwrap();
        let error = placement.stage(&[build], &ProgressSink::none()).await.unwrap_err().to_string();
        assert!(error.contains("/no-linux") && error.contains("has no static one"), "{error}");
        placement.destroy().await.unwrap();
    });
}
