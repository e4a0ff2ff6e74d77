use std::fs;

use config::{Env, Home, LoadRequest, Loader, LoaderOptions};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::skills::SkillChoices;
use crate::testing::Ear;

struct Place {
    folder: TempDir,
    skills: Arc<Skills>,
    heard: mpsc::UnboundedReceiver<String>,
}

impl Place {
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
        let (told, heard) = mpsc::unbounded_channel();
        let ear = Ear(move |thread: &ThreadId, notification: ServerNotification| {
            told.send(format!("{} {thread}", notification.method())).expect("somebody listens");
        });
        let skills = Arc::new(Skills::new(loader, Arc::new(ear)));
        Self { folder, skills, heard }
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
        self.skills.opened(&ThreadId::new(thread), &config);
    }

    async fn open(&self, thread: &str) {
        self.begin(thread);
        self.until(|skills| lock(&skills.following).is_watched(&self.path("work"))).await;
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

    async fn heard(&mut self) -> String {
        let heard = tokio::time::timeout(Duration::from_secs(20), self.heard.recv());
        heard.await.expect("in time").expect("a word")
    }
}

#[tokio::test]
async fn a_changed_skill_is_told_to_the_threads_that_have_it() {
    let mut place = Place::new();
    place.write("home/skills/a/SKILL.md", "one");
    place.open("t1").await;
    place.open("t2").await;
    assert_eq!(place.names(), ["a"]);
    place.write("home/skills/b/SKILL.md", "two");
    assert_eq!(place.heard().await, "skills/changed t1");
    assert_eq!(place.heard().await, "skills/changed t2");
    assert_eq!(place.names(), ["a", "b"]);
}

#[tokio::test]
async fn a_folder_that_is_made_later_is_noticed() {
    let mut place = Place::new();
    place.open("t1").await;
    assert_eq!(place.names(), [""; 0]);
    place.write("work/.agents/skills/deep/er/SKILL.md", "new");
    assert_eq!(place.heard().await, "skills/changed t1");
    assert_eq!(place.names(), ["er"]);
}

#[tokio::test]
async fn what_changes_no_skill_is_not_told() {
    let mut place = Place::new();
    place.write("home/skills/a/SKILL.md", "one");
    place.open("t1").await;
    place.names();
    fs::create_dir_all(place.path("home/skills/a/scripts")).expect("made");
    fs::write(place.path("home/skills/a/scripts/run.py"), "x").expect("written");
    fs::write(place.path("work/file"), "x").expect("written");
    fs::create_dir_all(place.path("work/.codex")).expect("made");
    // Comes after all of that, so it is the first word there is.
    place.write("work/.codex/skills/b/SKILL.md", "two");
    assert_eq!(place.heard().await, "skills/changed t1");
    assert_eq!(place.names(), ["b", "a"]);
    assert!(place.heard.try_recv().is_err());
}

#[tokio::test]
async fn nothing_is_watched_for_nobody() {
    let place = Place::new();
    place.open("t1").await;
    place.skills.unfollow(&ThreadId::new("t1"));
    place.until(|skills| !lock(&skills.following).is_watched(&place.path("work"))).await;
    place.until(|skills| skills.known(&place.path("work")).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_word_comes_at_once_and_the_next_after_a_pause() {
    let place = Place::new();
    let mut watcher = Watcher::new(Arc::downgrade(&place.skills), Arc::default());
    assert_eq!(watcher.tell_at(), None);
    watcher.changed.insert(place.path("work"));
    assert_eq!(watcher.tell_at(), Some(Instant::now()));
    watcher.tell(&place.skills).await;
    let told = Instant::now();
    assert_eq!(watcher.tell_at(), None);
    tokio::time::advance(Duration::from_secs(3)).await;
    watcher.changed.insert(place.path("work"));
    assert_eq!(watcher.tell_at(), Some(told + PAUSE));
}

#[tokio::test]
async fn the_task_ends_with_the_skills() {
    let place = Place::new();
    place.open("t1").await;
    let task = lock(&place.skills.following).task.as_ref().expect("it runs").abort_handle();
    let Place { skills, .. } = place;
    drop(skills);
    let ended = async {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("in time");
}

#[test]
fn a_thread_is_followed_to_so_many_places() {
    let mut following = Following::default();
    let thread = ThreadId::new("t");
    for at in 0..20 {
        assert!(following.add(&thread, Path::new(&format!("/{at}"))));
        assert!(!following.add(&thread, Path::new(&format!("/{at}"))));
    }
    assert_eq!(following.directories().len(), MAX_PLACES);
}

#[tokio::test]
async fn a_change_right_after_a_thread_was_opened_is_told() {
    for at in 0..50 {
        let mut place = Place::new();
        place.write("home/skills/a/SKILL.md", "one");
        place.begin("t1");
        place.skills.watched(&ThreadId::new("t1")).await;
        // Some change a file, others make the first folder of a project.
        place.write(["home/skills/a/SKILL.md", "work/.agents/skills/b/SKILL.md"][at % 2], "two!");
        assert_eq!(place.heard().await, "skills/changed t1");
    }
}

#[tokio::test]
async fn nobody_waits_for_what_is_watched_or_not_followed() {
    let place = Place::new();
    place.open("t1").await;
    place.begin("t2");
    // Polled once only, before the task can run.
    for thread in ["t2", "unknown"] {
        let thread = ThreadId::new(thread);
        let waiting = tokio::time::timeout(Duration::ZERO, place.skills.watched(&thread));
        waiting.await.expect("no wait");
    }
}

#[test]
fn what_was_dropped_from_memory_is_looked_at_before_the_next_change() {
    let place = Place::new();
    place.write("home/skills/a/SKILL.md", "one");
    let (work, mut watches) = (place.path("work"), Watches::default());
    lock(&place.skills.following).add(&ThreadId::new("t1"), &work);
    assert!(look(&place.skills, &mut watches, &BTreeSet::new()).is_empty());
    // As after a change of the roots: the place is covered, and nothing is known about it.
    place.skills.forget(&work);
    assert!(look(&place.skills, &mut watches, &BTreeSet::new()).is_empty());
    place.write("home/skills/a/SKILL.md", "two!");
    assert_eq!(look(&place.skills, &mut watches, &BTreeSet::from([work.clone()])), BTreeSet::from([work]));
}
