#![allow(clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use engine::Reach;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn shown(thread: &ThreadId, notification: &ServerNotification) -> String {
    let (what, id) = match notification {
        ServerNotification::ThreadEnvironmentConnected(told) => ("connected", &told.environment_id),
        ServerNotification::ThreadEnvironmentDisconnected(told) => ("disconnected", &told.environment_id),
        other => panic!("nothing else is told here: {other:?}"),
    };
    format!("{thread} {id} {what}")
}

/// Forwards the notifications for clients of a thread.
#[derive(Debug)]
struct Listening(mpsc::UnboundedSender<String>);

impl Subscribers for Listening {
    fn notify<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let _ = self.0.send(shown(thread, &notification));
        Box::pin(async {})
    }
}

/// A registry, its notifications, and a folder whose `prefix` leads to an environment once it is written.
struct Scene {
    registry: Arc<Environments>,
    heard: mpsc::UnboundedReceiver<String>,
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        Self {
            registry: Environments::new(Arc::new(Listening(told)), || PathBuf::from("/bin/sh")),
            heard,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// Makes `box` reachable.
    fn open(&self) {
        std::os::unix::fs::symlink("/usr/bin/env", self.folder.path().join("prefix")).expect("a link");
    }

    fn close(&self) {
        fs::remove_file(self.folder.path().join("prefix")).expect("removed");
    }

    fn add(&self, id: &str, environment: &Value) -> Result<(), String> {
        let params = json!({"environmentId": id, "environment": environment});
        let params = serde_json::from_value(params).expect("params");
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        self.registry.add(params, env).map_err(|error| error.to_string())
    }

    fn add_box(&self) -> Result<(), String> {
        self.add("box", &json!({"type": "command", "argv": [self.path("prefix")], "cwd": "/"}))
    }

    fn choose(&self, thread: &str, chosen: &[(&str, &str)]) -> Result<Chosen, String> {
        let chosen = self.registry.choose(&ThreadId::new(thread), selections(chosen));
        chosen.map_err(|error| error.to_string())
    }

    async fn status(&self, id: &str) -> Value {
        let status = self.registry.status(&EnvironmentId::new(id)).await;
        serde_json::to_value(status.status).expect("serialises")
    }

    async fn hears(&mut self, expected: &str) {
        assert_eq!(self.next().await, expected);
    }

    async fn next(&mut self) -> String {
        tokio::time::timeout(LIMIT, self.heard.recv()).await.expect("in time").expect("a notification")
    }
}

fn selections(chosen: &[(&str, &str)]) -> Vec<EnvironmentSelection> {
    let one = |(id, cwd): &(&str, &str)| EnvironmentSelection {
        environment_id: EnvironmentId::new(*id),
        cwd: (*cwd).to_owned(),
    };
    chosen.iter().map(one).collect()
}

/// `id state` of each.
fn states(places: &Places) -> Vec<String> {
    places.environments.iter().map(|one| format!("{} {:?}", one.id, one.state)).collect()
}

#[tokio::test]
async fn clients_of_a_thread_are_notified_of_changes() {
    let mut scene = Scene::new();
    scene.add_box().expect("added");
    let chosen = scene.choose("t1", &[("box", "/w")]).expect("chosen");
    let places = scene.registry.places(Some(&chosen), "/repo");
    assert_eq!(states(&places), ["box Starting"]);
    assert_eq!(places.shell.as_deref(), Some("sh"));
    scene.open();
    scene.hears("t1 box connected").await;
    let places = scene.registry.places(Some(&chosen), "/repo");
    assert_eq!(states(&places), ["box Attached"]);
    let argv: Arc<[String]> = Arc::new([scene.path("prefix")]);
    assert_eq!(places.environments[0].reach, Reach::Command { argv });
    // Another thread that chooses it now gets its state.
    let other = scene.choose("t2", &[("box", "/w")]).expect("chosen");
    scene.close();
    scene.registry.doubt(&EnvironmentId::new("box")).await;
    assert_eq!(states(&scene.registry.places(Some(&other), "/repo")), ["box Disconnected"]);
    let mut heard = [scene.next().await, scene.next().await];
    heard.sort_unstable();
    assert_eq!(heard, ["t1 box disconnected", "t2 box disconnected"]);
    // A thread that was closed, or has chosen something else, gets no further notifications.
    drop(other);
    scene.open();
    scene.registry.doubt(&EnvironmentId::new("box")).await;
    scene.hears("t1 box connected").await;
    assert!(scene.heard.try_recv().is_err());
}

#[tokio::test]
async fn an_environment_in_use_is_not_replaced() {
    let scene = Scene::new();
    let here = |cwd: &str| json!({"type": "local", "cwd": cwd});
    scene.add("x", &here("/a")).expect("added");
    scene.add("x", &here("/b")).expect("nobody uses it");
    let chosen = scene.choose("t1", &[("x", "/b")]).expect("chosen");
    let again = scene.choose("t1", &[("x", "/b")]).expect("chosen");
    assert!(Arc::ptr_eq(&chosen, &again), "the same choice is no change");
    drop(chosen);
    let refused = scene.add("x", &here("/c")).expect_err("it is used");
    assert!(refused.starts_with("environmentId: `x` is used by a loaded thread"), "{refused}");
    drop(again);
    scene.add("x", &here("/c")).expect("nobody uses it any more");
    let info = scene.registry.info(&EnvironmentId::new("x")).expect("known");
    assert_eq!(serde_json::to_value(info.environment).expect("JSON")["cwd"], "/c");
}

#[tokio::test]
async fn a_folder_that_comes_and_goes_is_noticed_when_it_is_looked_for() {
    let mut scene = Scene::new();
    let folder = scene.path("project");
    let chosen = scene.choose("t1", &[("local", &folder)]).expect("chosen");
    assert_eq!(states(&scene.registry.places(Some(&chosen), "/repo")), ["local Disconnected"]);
    fs::create_dir(&folder).expect("made");
    let places = scene.registry.places(Some(&chosen), "/repo");
    assert_eq!((states(&places), places.shell), (vec!["local Attached".to_owned()], None));
    scene.hears("t1 local connected").await;
    fs::remove_dir(&folder).expect("removed");
    scene.registry.places(Some(&chosen), "/repo");
    scene.hears("t1 local disconnected").await;
}

#[tokio::test]
async fn a_stored_choice_waits_until_its_environment_is_known_again() {
    let mut scene = Scene::new();
    let thread = ThreadId::new("t1");
    let chosen = scene.registry.choose_again(&thread, selections(&[("box", "/w")]));
    let places = scene.registry.places(Some(&chosen), "/repo");
    assert_eq!(states(&places), ["box Disconnected"]);
    assert_ne!(places.environments[0].reach, Reach::Local, "it is never this machine");
    scene.open();
    scene.add_box().expect("added, though a thread uses the id");
    scene.hears("t1 box connected").await;
}

#[tokio::test]
async fn an_id_is_known_or_unknown() {
    let scene = Scene::new();
    scene.add("gone", &json!({"type": "local", "cwd": "/nonexistent"})).expect("added");
    assert_eq!(scene.status("local").await, "attached");
    assert_eq!(scene.status("gone").await, "disconnected");
    assert_eq!(scene.status("nowhere").await, "unknown");
    let info = scene.registry.info(&EnvironmentId::new("local")).expect("always there");
    assert!(info.shell.is_some_and(|shell| Path::new(&shell.path).exists()));
    let refused = scene.registry.info(&EnvironmentId::new("nowhere")).expect_err("unknown").to_string();
    assert_eq!(refused, "environmentId: no environment has the id `nowhere`; known are `local`, `gone`");
    assert_eq!(scene.choose("t1", &[]).expect("chosen").len(), 0);
    assert!(scene.registry.places(Some(&Arc::from([])), "/repo").environments.is_empty());
}

#[tokio::test]
async fn the_number_of_environments_is_limited() {
    let scene = Scene::new();
    let here = || json!({"type": "local", "cwd": "/"});
    for number in 0..MAX_KNOWN {
        scene.add(&format!("e{number}"), &here()).expect("room");
    }
    let refused = scene.add("one-more", &here()).expect_err("full");
    assert_eq!(refused, "environmentId: there are 256 environments already; replace one of them");
    scene.add("e0", &here()).expect("replaced");
}

#[test]
fn children_get_what_is_attached() {
    let environment = |id: &str, state, is_chosen| StepEnvironment {
        id: EnvironmentId::new(id),
        state,
        is_chosen,
        ..StepEnvironment::here("/w")
    };
    let children_of = |environments: Vec<StepEnvironment>| {
        let step = Step { environments: environments.into(), ..Step::bare("m", "/repo") };
        attached_selections(&step)
    };
    assert_eq!(children_of(vec![StepEnvironment::here("/repo")]), None);
    assert_eq!(children_of(vec![]), Some(vec![]));
    let mixed = vec![
        environment("a", EnvironmentState::Starting, true),
        environment("b", EnvironmentState::Attached, true),
        environment("c", EnvironmentState::Disconnected, true),
    ];
    assert_eq!(children_of(mixed), Some(selections(&[("b", "/w")])));
    assert_eq!(children_of(vec![environment("a", EnvironmentState::Starting, true)]), Some(vec![]));
}
