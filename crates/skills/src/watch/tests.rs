use std::fs;

use config::{Env, Home, LoadRequest, Loader, LoaderOptions};
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::SkillChoices;

struct SkillsTest {
    folder: TempDir,
    skills: Arc<Skills>,
    received: mpsc::UnboundedReceiver<String>,
}

impl SkillsTest {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(folder.path().join("home/skills")).expect("made");
        fs::create_dir_all(folder.path().join("work")).expect("made");
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            environment: Env::fixed([("HOME", folder.path().join("user").as_os_str())]),
        };
        let loader = Loader::new(Home::at(folder.path().join("home")), Vec::new(), options);
        let (sender, received) = mpsc::unbounded_channel();
        let notify = move |thread: ThreadId| -> BoxFuture<'static, ()> {
            sender.send(format!("skills/changed {thread}")).expect("a receiver");
            Box::pin(async {})
        };
        let skills = Arc::new(Skills::new(loader, Box::new(notify)));
        Self { folder, skills, received }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, description: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(file, format!("---\ndescription: {description}\n---\n")).expect("written");
    }

    fn begin(&self, thread: &str) {
        let request = LoadRequest { cwd: Some(self.path("work")), ..LoadRequest::default() };
        let config = self.skills.loader.load(&request).expect("plain");
        self.skills.thread_opened(&ThreadId::new(thread), &config);
    }

    async fn open(&self, thread: &str) {
        self.begin(thread);
        self.until(|skills| skills.following.lock().is_watched(&self.path("work"))).await;
    }

    /// Until something that a task does is done.
    async fn until(&self, is_done: impl Fn(&Skills) -> bool) {
        let waiting = async {
            while !is_done(&self.skills) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("in time");
    }

    fn names(&self) -> Vec<String> {
        let lines = self.skills.lines(&self.path("work"), &SkillChoices::default(), None);
        lines.iter().map(|line| line.name.clone()).collect()
    }

    async fn received(&mut self) -> String {
        let received = tokio::time::timeout(Duration::from_secs(20), self.received.recv());
        received.await.expect("in time").expect("a notification")
    }
}

#[tokio::test]
async fn a_changed_skill_is_reported_to_the_threads_that_have_it() {
    let mut test = SkillsTest::new();
    test.write("home/skills/a/SKILL.md", "one");
    test.open("t1").await;
    test.open("t2").await;
    assert_eq!(test.names(), ["a"]);
    test.write("home/skills/b/SKILL.md", "two");
    assert_eq!(test.received().await, "skills/changed t1");
    assert_eq!(test.received().await, "skills/changed t2");
    assert_eq!(test.names(), ["a", "b"]);
}

#[tokio::test]
async fn a_folder_that_is_made_later_is_noticed() {
    let mut test = SkillsTest::new();
    test.open("t1").await;
    assert_eq!(test.names(), [""; 0]);
    test.write("work/.agents/skills/deep/er/SKILL.md", "new");
    assert_eq!(test.received().await, "skills/changed t1");
    assert_eq!(test.names(), ["er"]);
}

#[tokio::test]
async fn other_changes_are_not_reported() {
    let mut test = SkillsTest::new();
    test.write("home/skills/a/SKILL.md", "one");
    test.open("t1").await;
    test.names();
    fs::create_dir_all(test.path("home/skills/a/scripts")).expect("made");
    fs::write(test.path("home/skills/a/scripts/run.py"), "x").expect("written");
    fs::write(test.path("work/file"), "x").expect("written");
    fs::create_dir_all(test.path("work/.codex")).expect("made");
    // Comes after all of that, so it is the first notification.
    test.write("work/.codex/skills/b/SKILL.md", "two");
    assert_eq!(test.received().await, "skills/changed t1");
    assert_eq!(test.names(), ["b", "a"]);
    assert!(test.received.try_recv().is_err());
}

#[tokio::test]
async fn nothing_is_watched_without_threads() {
    let test = SkillsTest::new();
    test.open("t1").await;
    test.skills.unfollow(&ThreadId::new("t1"));
    test.until(|skills| !skills.following.lock().is_watched(&test.path("work"))).await;
    test.until(|skills| skills.known(&test.path("work")).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_notification_is_sent_at_once_and_the_next_after_a_pause() {
    let test = SkillsTest::new();
    let mut task = RefreshTask::new(Arc::downgrade(&test.skills), Arc::default());
    assert_eq!(task.notify_at(), None);
    task.changed.insert(test.path("work"));
    assert_eq!(task.notify_at(), Some(Instant::now()));
    task.notify(&test.skills).await;
    let notified = Instant::now();
    assert_eq!(task.notify_at(), None);
    tokio::time::advance(Duration::from_secs(3)).await;
    task.changed.insert(test.path("work"));
    assert_eq!(task.notify_at(), Some(notified + NOTIFY_INTERVAL));
}

#[tokio::test]
async fn the_task_ends_with_the_skills() {
    let test = SkillsTest::new();
    test.open("t1").await;
    let task = test.skills.following.lock().task.as_ref().expect("it runs").abort_handle();
    let SkillsTest { skills, .. } = test;
    drop(skills);
    let ended = async {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("in time");
}

#[test]
fn a_thread_has_a_limit_of_directories() {
    let mut following = FollowedThreads::default();
    let thread = ThreadId::new("t");
    for at in 0..20 {
        assert!(following.add(&thread, Path::new(&format!("/{at}"))));
        assert!(!following.add(&thread, Path::new(&format!("/{at}"))));
    }
    assert_eq!(following.directories().len(), MAX_THREAD_DIRECTORIES);
}

#[tokio::test]
async fn a_change_right_after_a_thread_was_opened_is_reported() {
    for at in 0..50 {
        let mut test = SkillsTest::new();
        test.write("home/skills/a/SKILL.md", "one");
        test.begin("t1");
        test.skills.wait_until_watched(&ThreadId::new("t1")).await;
        // Some change a file, others make the first folder of a project.
        test.write(["home/skills/a/SKILL.md", "work/.agents/skills/b/SKILL.md"][at % 2], "two!");
        assert_eq!(test.received().await, "skills/changed t1");
    }
}

#[tokio::test]
async fn nobody_waits_for_watched_or_unknown_threads() {
    let test = SkillsTest::new();
    test.open("t1").await;
    test.begin("t2");
    // Polled once only, before the task can run.
    for thread in ["t2", "unknown"] {
        let thread = ThreadId::new(thread);
        let waiting = tokio::time::timeout(Duration::ZERO, test.skills.wait_until_watched(&thread));
        waiting.await.expect("no wait");
    }
}

#[test]
fn a_forgotten_directory_is_scanned_before_the_next_change() {
    let test = SkillsTest::new();
    test.write("home/skills/a/SKILL.md", "one");
    let (work, mut watches) = (test.path("work"), SkillWatches::new(Watcher::default()));
    test.skills.following.lock().add(&ThreadId::new("t1"), &work);
    assert!(refresh(&test.skills, &mut watches, &BTreeSet::new()).is_empty());
    // As after a change of the roots: the test is covered, and nothing is known about it.
    test.skills.forget(&work);
    assert!(refresh(&test.skills, &mut watches, &BTreeSet::new()).is_empty());
    test.write("home/skills/a/SKILL.md", "two!");
    assert_eq!(refresh(&test.skills, &mut watches, &BTreeSet::from([work.clone()])), BTreeSet::from([work]));
}
