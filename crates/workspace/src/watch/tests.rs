use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// Long enough that changes made one after the other are reported together.
const DEBOUNCE: Duration = Duration::from_millis(50);

struct WatchTest {
    dir: TempDir,
    watcher: Watcher,
}

impl WatchTest {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), watcher: Watcher::default() }
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).expect("there").join(path)
    }

    fn write(&self, path: &str) {
        fs::write(self.path(path), "text").expect("written");
    }

    fn make(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("made");
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect("renamed");
    }

    fn watch(&self, paths: &[&str]) -> Subscription {
        let subscription = self.watcher.subscribe(DEBOUNCE);
        assert!(subscription.set_paths(paths.iter().map(|path| self.path(path))).is_complete);
        subscription
    }

    /// The paths that are reported next.
    async fn changed(&self, subscription: &mut Subscription) -> Vec<String> {
        let changes =
            tokio::time::timeout(Duration::from_secs(20), subscription.next()).await.expect("in time");
        assert!(!changes.is_incomplete);
        let top = self.path("");
        let line = |path: &Path| path.strip_prefix(&top).expect("below").to_string_lossy().into_owned();
        changes.paths().into_iter().map(line).collect()
    }
}

#[tokio::test]
async fn a_file_is_followed_through_replacement_and_removal() {
    let test = WatchTest::new();
    test.write("file");
    let mut subscription = test.watch(&["file"]);
    test.write("other");
    test.write("file");
    assert_eq!(test.changed(&mut subscription).await, ["file"]);
    test.write("next");
    test.rename("next", "file");
    assert_eq!(test.changed(&mut subscription).await, ["file"]);
    test.write("file");
    assert_eq!(test.changed(&mut subscription).await, ["file"]);
    fs::remove_file(test.path("file")).expect("removed");
    assert_eq!(test.changed(&mut subscription).await, ["file"]);
    test.write("file");
    assert_eq!(test.changed(&mut subscription).await, ["file"]);
}

#[tokio::test]
async fn entries_of_a_folder_are_reported_and_no_deeper_ones() {
    let test = WatchTest::new();
    test.make("folder/inner");
    let mut subscription = test.watch(&["folder"]);
    test.write("folder/inner/deep");
    test.write("folder/b");
    test.write("folder/a");
    test.make("folder/new");
    assert_eq!(test.changed(&mut subscription).await, ["folder/a", "folder/b", "folder/new"]);
}

#[tokio::test]
async fn events_say_what_happened() {
    let test = WatchTest::new();
    test.write("moved");
    test.make("folder");
    let mut subscription = test.watch(&["folder"]);
    test.write("folder/a");
    test.rename("moved", "folder/b");
    fs::remove_file(test.path("folder/a")).expect("removed");
    let changes = subscription.next().await;
    let event = |name: &str, event| (test.path("folder").join(name), event);
    let expected = [
        event("a", PathEvent::Created),
        event("a", PathEvent::Modified),
        event("a", PathEvent::Written),
        event("a", PathEvent::Removed),
        event("b", PathEvent::MovedIn),
    ];
    assert_eq!(changes.events.into_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_missing_path_is_noticed_when_it_appears() {
    for _ in 0..20 {
        let test = WatchTest::new();
        let mut subscription = test.watch(&["a/b/c"]);
        test.make("a/other");
        test.make("a/b/c/d");
        assert_eq!(test.changed(&mut subscription).await[0], "a/b/c");
        test.write("a/b/c/file");
        assert!(test.changed(&mut subscription).await.contains(&"a/b/c/file".to_owned()));
    }
}

#[tokio::test]
async fn a_folder_that_is_removed_and_made_again_stays_watched() {
    for _ in 0..10 {
        let test = WatchTest::new();
        test.make("folder");
        let mut subscription = test.watch(&["folder"]);
        fs::remove_dir(test.path("folder")).expect("removed");
        assert_eq!(test.changed(&mut subscription).await, ["folder"]);
        test.make("folder");
        assert_eq!(test.changed(&mut subscription).await, ["folder"]);
        test.write("folder/file");
        assert_eq!(test.changed(&mut subscription).await, ["folder/file"]);
    }
}

#[tokio::test]
async fn a_folder_that_is_renamed_is_watched_under_its_old_path_only() {
    let test = WatchTest::new();
    test.make("folder");
    let mut subscription = test.watch(&["folder"]);
    test.rename("folder", "away");
    test.make("folder");
    assert_eq!(test.changed(&mut subscription).await, ["folder"]);
    test.write("away/file");
    test.write("folder/file");
    assert_eq!(test.changed(&mut subscription).await, ["folder/file"]);
}

#[tokio::test]
async fn a_renamed_parent_takes_its_watched_folders_away() {
    let test = WatchTest::new();
    test.make("parent/folder");
    // Its own folder is watched for another path.
    let mut subscription = test.watch(&["parent/folder", "missing"]);
    test.rename("parent", "away");
    assert_eq!(test.changed(&mut subscription).await, ["parent/folder"]);
    test.write("away/folder/file");
    test.make("parent/folder");
    assert_eq!(test.changed(&mut subscription).await, ["parent/folder"]);
    test.write("parent/folder/file");
    assert_eq!(test.changed(&mut subscription).await, ["parent/folder/file"]);
}

#[tokio::test]
async fn links_are_followed_and_noticed_when_they_change() {
    let test = WatchTest::new();
    test.make("one");
    test.make("two");
    symlink(test.path("one"), test.path("link")).expect("linked");
    let mut subscription = test.watch(&["link"]);
    test.write("one/file");
    assert_eq!(test.changed(&mut subscription).await, ["link/file"]);
    symlink(test.path("two"), test.path("next")).expect("linked");
    test.rename("next", "link");
    assert_eq!(test.changed(&mut subscription).await, ["link"]);
    test.write("two/file");
    assert_eq!(test.changed(&mut subscription).await, ["link/file"]);
}

#[tokio::test]
async fn subscribers_share_a_folder_and_one_that_left_hears_nothing() {
    let test = WatchTest::new();
    test.make("folder");
    let (mut one, two) = (test.watch(&["folder"]), test.watch(&["folder/file"]));
    let queue = two.queue();
    drop(two);
    test.write("folder/file");
    assert_eq!(test.changed(&mut one).await, ["folder/file"]);
    assert!(!queue.has_changes());
}

#[tokio::test]
async fn other_paths_are_told_apart_from_the_same_ones() {
    let test = WatchTest::new();
    test.make("folder");
    let subscription = test.watch(&["folder"]);
    let set = |paths: &[&str]| subscription.set_paths(paths.iter().map(|path| test.path(path))).is_new;
    assert!(!set(&["folder"]));
    assert!(set(&["folder", "missing"]));
    assert!(!set(&["folder", "missing"]));
    test.make("missing");
    assert!(set(&["folder", "missing"]), "it is there now, so its entries count");
    assert!(set(&["folder"]));
    assert!(!set(&["folder"]));
    assert!(subscription.add_paths([test.path("other")]).is_new);
    assert!(!set(&["folder", "other"]));
    subscription.remove_paths([test.path("folder")]);
    assert!(!set(&["other"]));
}

#[tokio::test]
async fn there_is_one_instance_while_anything_is_watched() {
    let test = WatchTest::new();
    let idle = test.watcher.subscribe(DEBOUNCE);
    assert!(!test.watcher.backend.is_running());
    let (one, two) = (test.watch(&["a"]), test.watch(&["b"]));
    assert!(test.watcher.backend.is_running());
    drop(one);
    assert!(test.watcher.backend.is_running());
    drop((two, idle));
    assert!(!test.watcher.backend.is_running());
    // It can be used again.
    drop(test.watch(&["a"]));
    assert!(Arc::ptr_eq(&Watcher::shared().backend, &Watcher::shared().backend));
}

#[tokio::test]
async fn a_path_that_may_not_be_watched_is_reported() {
    let watcher = Watcher { backend: Arc::new(Backend::with_limit(2)) };
    let test = WatchTest { watcher, ..WatchTest::new() };
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| test.make(name));
    let mut subscription = test.watcher.subscribe(DEBOUNCE);
    let coverage = subscription.set_paths(names.map(|name| test.path(name)));
    assert!(!coverage.is_complete);
    test.write("a/file");
    assert_eq!(test.changed(&mut subscription).await, ["a/file"], "the first ones are watched");
    let coverage = subscription.set_paths([test.path("a"), test.path("c")]);
    assert!(coverage.is_complete && coverage.is_new);
    test.write("c/file");
    assert_eq!(test.changed(&mut subscription).await, ["c/file"]);
}
