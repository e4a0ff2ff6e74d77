//! Small things that several tests need.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_placements::{
    Placement, PlacementOrder, PlacementSettings, Placements, ProgressSink, RunLimits, ShortOutput,
    SpawnOptions, WorkspaceStart,
};

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// The long form: 200 spawns in place of 20.
pub(crate) fn is_long() -> bool {
    std::env::var_os("OARLOCK_TEST_LONG").is_some()
}

/// Unlike every other number of this machine's tests, and no part of another: all have ten digits.
pub(crate) fn unique() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    9_000_000_000 + u64::from(std::process::id()) % 1_000_000 * 1000 + COUNT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn has(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\" >/dev/null", "sh", tool])
        .env("PATH", path())
        .status();
    found.is_ok_and(|status| status.success())
}

/// Daemons are beside the tools of root.
pub(crate) fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Whether any process of this machine, in whatever container, has this in its command line. Zombies have none.
pub(crate) fn runs(text: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id().to_string();
    processes
        .filter(|entry| {
            entry.file_name().as_bytes().iter().all(u8::is_ascii_digit) && entry.file_name() != own.as_str()
        })
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(text))
}

pub(crate) fn signal(signal: &str, processes: &[String]) {
    assert!(Command::new("kill").arg(signal).args(processes).status().unwrap().success());
}

/// Waits for something that another process does.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..400 {
        if condition() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("{what}: not within 10 s");
}

pub(crate) async fn create(
    placements: &Placements,
    settings: &PlacementSettings,
    start: WorkspaceStart<'_>,
) -> Placement {
    let order = PlacementOrder { id: format!("t-{}", unique()), settings: settings.clone(), start };
    placements.create(order, &ProgressSink::none()).await.unwrap()
}

pub(crate) async fn sh(placement: &Placement, script: &str) -> ShortOutput {
    placement.run(&SpawnOptions::new(["sh", "-c", script]), RunLimits::default()).await.unwrap()
}

/// The stdout of a script that must succeed.
pub(crate) async fn text(placement: &Placement, script: &str) -> String {
    let output = sh(placement, script).await;
    assert_eq!(output.code, 0, "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every path of a tree with its kind, mode and content or target.
pub(crate) fn tree(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.mode() & 0o7777;
            let described = if metadata.is_dir() {
                open.push(path.clone());
                format!("folder {mode:o}")
            } else if metadata.is_symlink() {
                format!("link {:?}", fs::read_link(&path).unwrap())
            } else {
                format!("file {mode:o} {:?}", fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec(), described);
        }
    }
    found
}

/// Unpacks with the system's tar.
pub(crate) fn unpack(tar: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.tar"), tar).unwrap();
    fs::create_dir(folder.path().join("t")).unwrap();
    let status =
        Command::new("tar").args(["-xpf", "t.tar", "-C", "t"]).current_dir(folder.path()).status().unwrap();
    assert!(status.success());
    folder
}
