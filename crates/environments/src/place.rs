//! One environment behind a command: its state, and the task that checks it.

use std::sync::Arc;
use std::time::Duration;

use engine::EnvironmentState;
use protocol::{EnvironmentShell, EnvironmentSpec};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::probe::Prober;

/// Pause between two attempts to connect: initial and maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Pause before an attached environment is checked a second time.
const SECOND_THOUGHT: Duration = Duration::from_millis(200);

/// The state of an environment at the last check.
#[derive(Debug, Clone)]
pub(super) struct SeenEnvironment {
    pub(super) state: EnvironmentState,
    /// Why it cannot be used.
    pub(super) error: Option<String>,
    pub(super) shell: Option<EnvironmentShell>,
    pub(super) cwd: Option<String>,
    /// Started checks, and the last one that has ended.
    begun: u64,
    ended: u64,
}

#[derive(Debug)]
pub(super) struct EnvironmentPlace {
    pub(super) spec: EnvironmentSpec,
    prober: Prober,
    connect: Duration,
    sight: watch::Sender<SeenEnvironment>,
    wanted: Notify,
}

impl EnvironmentPlace {
    pub(super) fn new(spec: EnvironmentSpec, prober: Prober, connect: Duration) -> Self {
        let state = EnvironmentState::Starting;
        let sight = SeenEnvironment { state, error: None, shell: None, cwd: None, begun: 0, ended: 0 };
        Self { spec, prober, connect, sight: watch::channel(sight).0, wanted: Notify::new() }
    }

    pub(super) fn argv(&self) -> Arc<[String]> {
        self.prober.argv.clone()
    }

    pub(super) fn sight(&self) -> SeenEnvironment {
        self.sight.borrow().clone()
    }

    /// Requests a check, one for all concurrent callers.
    pub(super) fn request_check(&self) {
        self.wanted.notify_one();
    }

    /// Returns after a new check, or after the timeout.
    pub(super) async fn check_again(&self, patience: Duration) {
        let mut sight = self.sight.subscribe();
        let begun = sight.borrow().begun;
        self.request_check();
        // If the sender is dropped, the environment was removed.
        let _ = timeout(patience, sight.wait_for(|sight| sight.ended > begun)).await;
    }

    /// Connects, and then checks on request. `changed` is called when the state has changed.
    pub(super) async fn keep_watch(self: Arc<Self>, changed: impl Fn()) {
        if timeout(self.connect, self.connect()).await.is_err() {
            let reason = format!("it could not be used within {} ms", self.connect.as_millis());
            self.end_check(|sight| {
                sight.state = EnvironmentState::Disconnected;
                let last = sight.error.take();
                sight.error = Some(last.map_or_else(|| reason.clone(), |last| format!("{reason}: {last}")));
            });
        }
        changed();
        loop {
            self.wanted.notified().await;
            if self.look().await {
                changed();
            }
        }
    }

    /// Returns when the environment is attached.
    async fn connect(&self) {
        let mut pause = FIRST_PAUSE;
        loop {
            self.begin_check();
            match self.prober.answers().await {
                Ok(()) => return self.attach().await,
                Err(reason) => self.end_check(|sight| sight.error = Some(reason)),
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.wanted.notified() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Returns whether the state has changed.
    async fn look(&self) -> bool {
        let before = self.sight.borrow().state;
        self.begin_check();
        let mut answer = self.prober.answers().await;
        if answer.is_err() && before == EnvironmentState::Attached {
            // Checked twice, because a lost environment takes the model's tools away.
            sleep(SECOND_THOUGHT).await;
            answer = self.prober.answers().await;
        }
        match answer {
            Ok(()) if before == EnvironmentState::Attached => self.end_check(|_| {}),
            Ok(()) => self.attach().await,
            Err(reason) => self.end_check(|sight| {
                sight.state = EnvironmentState::Disconnected;
                sight.error = Some(reason);
            }),
        }
        self.sight.borrow().state != before
    }

    /// Explores it again: it may be a different one now.
    async fn attach(&self) {
        let found = self.prober.explore().await;
        self.end_check(|sight| {
            sight.state = EnvironmentState::Attached;
            sight.error = None;
            sight.shell = found.shell;
            sight.cwd = found.cwd;
        });
    }

    fn begin_check(&self) {
        self.sight.send_modify(|sight| sight.begun += 1);
    }

    fn end_check(&self, change: impl FnOnce(&mut SeenEnvironment)) {
        self.sight.send_modify(|sight| {
            sight.ended = sight.begun;
            change(sight);
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A prefix command that works once it is opened.
    struct Door {
        folder: TempDir,
        prefix: PathBuf,
    }

    impl Door {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let prefix = folder.path().join("prefix");
            Self { folder, prefix }.holding("#!/bin/sh\necho closed >&2\nexit 1\n")
        }

        fn holding(self, script: &str) -> Self {
            // Renamed when complete: a script that is open for writing cannot be run.
            let draft = self.folder.path().join("draft");
            fs::write(&draft, script).expect("written");
            fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("executable");
            fs::rename(&draft, &self.prefix).expect("moved");
            self
        }

        fn opened(self) -> Self {
            self.holding("#!/bin/sh\nexec \"$@\"\n")
        }

        fn place(&self, connect: Duration) -> Arc<EnvironmentPlace> {
            let argv: Arc<[String]> = Arc::new([self.prefix.to_string_lossy().into_owned()]);
            let spec = EnvironmentSpec::Command { argv: argv.to_vec(), cwd: "/".to_owned(), probe: None };
            let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
            let prober = Prober { argv, probe: vec!["true".to_owned()], cwd: "/".to_owned(), env };
            Arc::new(EnvironmentPlace::new(spec, prober, connect))
        }
    }

    async fn until(place: &EnvironmentPlace, state: EnvironmentState) -> SeenEnvironment {
        let mut sight = place.sight.subscribe();
        let seen = timeout(PATIENCE, sight.wait_for(|sight| sight.state == state)).await;
        seen.expect("in time").expect("it lives").clone()
    }

    #[tokio::test]
    async fn it_starts_attaches_is_lost_and_found_again() {
        let door = Door::new();
        let place = door.place(PATIENCE);
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let watching = place.clone();
        let watch = tokio::spawn(
            watching.clone().keep_watch(move || told.send(watching.sight().state).expect("heard")),
        );
        place.check_again(PATIENCE).await;
        let sight = place.sight();
        assert_eq!(sight.state, EnvironmentState::Starting);
        assert_eq!(sight.error.as_deref(), Some("the probe ended with code 1: closed"));

        let door = door.opened();
        let sight = until(&place, EnvironmentState::Attached).await;
        assert_eq!((sight.error, sight.cwd.as_deref()), (None, Some("/")));
        assert_eq!(sight.shell.map(|shell| shell.name).as_deref(), Some("sh"));

        fs::remove_file(&door.prefix).expect("removed");
        place.check_again(PATIENCE).await;
        let sight = place.sight();
        assert_eq!(sight.state, EnvironmentState::Disconnected);
        assert!(sight.error.is_some_and(|error| error.ends_with("no such program")));

        let _door = door.opened();
        place.check_again(PATIENCE).await;
        assert_eq!(place.sight().state, EnvironmentState::Attached);
        use EnvironmentState::{Attached, Disconnected};
        for expected in [Attached, Disconnected, Attached] {
            assert_eq!(heard.recv().await, Some(expected));
        }
        watch.abort();
    }

    #[tokio::test]
    async fn an_environment_that_never_answers_times_out() {
        let door = Door::new();
        let place = door.place(Duration::from_millis(150));
        let watch = tokio::spawn(place.clone().keep_watch(|| {}));
        let sight = until(&place, EnvironmentState::Disconnected).await;
        let error = sight.error.expect("a reason");
        assert!(error.starts_with("it could not be used within 150 ms"), "{error}");
        watch.abort();
    }

    #[tokio::test]
    async fn a_probe_that_hangs_does_not_outlive_its_watch() {
        let door = Door::new();
        let pid_file = door.folder.path().join("pid");
        let script =
            format!("#!/bin/sh\necho $$ > {0}.new && mv {0}.new {0}\nexec sleep 600\n", pid_file.display());
        let door = door.holding(&script);
        let place = door.place(PATIENCE);
        let watch = tokio::spawn(place.clone().keep_watch(|| {}));
        let pid = timeout(PATIENCE, pid_in(&pid_file)).await.expect("in time");
        watch.abort();
        let gone = async {
            while Path::new(&format!("/proc/{pid}")).exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, gone).await.expect("killed");
        drop(door);
    }

    async fn pid_in(file: &Path) -> u32 {
        loop {
            if let Some(pid) = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()) {
                return pid;
            }
            tokio::task::yield_now().await;
        }
    }
}
