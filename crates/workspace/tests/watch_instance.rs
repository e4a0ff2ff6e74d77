//! The process has one inotify instance and one thread for it, and only while something is watched. Alone in its file, so
//! that no other test of the process watches anything.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::time::{Duration, Instant};

use oarlock_workspace::Watcher;

/// The inotify instances and the threads that read them.
fn running() -> (usize, usize) {
    let entries = |folder: &str| fs::read_dir(folder).expect("proc").flatten().map(|entry| entry.path());
    let links = entries("/proc/self/fd").filter_map(|descriptor| fs::read_link(descriptor).ok());
    let instances = links.filter(|link| link.to_string_lossy().contains("inotify")).count();
    let names = entries("/proc/self/task").filter_map(|task| fs::read_to_string(task.join("comm")).ok());
    (instances, names.filter(|name| name.starts_with("notify-rs")).count())
}

fn wait_for(expected: (usize, usize)) {
    let started = Instant::now();
    while running() != expected {
        assert!(started.elapsed() < Duration::from_secs(20), "{:?} and not {expected:?}", running());
        std::thread::yield_now();
    }
}

#[test]
fn one_instance_while_something_is_watched() {
    let dir = tempfile::tempdir().expect("a directory");
    let subscriptions: Vec<_> = (0..10).map(|_| Watcher::shared().subscribe(Duration::ZERO)).collect();
    assert_eq!(running(), (0, 0), "subscriptions without paths cost nothing");
    for (at, subscription) in subscriptions.iter().enumerate() {
        subscription.set_paths([dir.path().join(at.to_string())]);
    }
    wait_for((1, 1));
    drop(subscriptions);
    wait_for((0, 0));
}
