//! One environment behind a command: what is known of it, and who finds out more.

use std::sync::Arc;
use std::time::Duration;

use engine::EnvironmentState;
use protocol::{EnvironmentShell, EnvironmentSpec};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::probe::Prober;

/// Between two attempts to connect: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Before an environment that was attached is asked a second time.
const SECOND_THOUGHT: Duration = Duration::from_millis(200);

/// The state of an environment when it was last looked at.
#[derive(Debug, Clone)]
pub(super) struct SeenEnvironment {
    pub(super) state: EnvironmentState,
    /// Why it cannot be used.
    pub(super) error: Option<String>,
    pub(super) shell: Option<EnvironmentShell>,
    pub(super) cwd: Option<String>,
    /// Looks that have begun, and the last of them that has ended.
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

    /// Has it looked at soon, once however many ask.
    pub(super) fn want_look(&self) {
        self.wanted.notify_one();
    }

    /// Returns when somebody has looked since, or when patience is over.
    pub(super) async fn look_again(&self, patience: Duration) {
        let mut sight = self.sight.subscribe();
        let begun = sight.borrow().begun;
        self.want_look();
        // The place is gone when its sender is; then there is nothing to see either.
        let _ = timeout(patience, sight.wait_for(|sight| sight.ended > begun)).await;
    }

    /// Connects, and then looks whenever somebody wants to know. `changed` is called when the state is another.
    pub(super) async fn keep_watch(self: Arc<Self>, changed: impl Fn()) {
        if timeout(self.connect, self.connect()).await.is_err() {
            let reason = format!("it could not be used within {} ms", self.connect.as_millis());
            self.end_look(|sight| {
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
            self.begin_look();
            match self.prober.answers().await {
                Ok(()) => return self.attach().await,
                Err(reason) => self.end_look(|sight| sight.error = Some(reason)),
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.wanted.notified() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Says whether the state is another now.
    async fn look(&self) -> bool {
        let before = self.sight.borrow().state;
        self.begin_look();
        let mut answer = self.prober.answers().await;
        if answer.is_err() && before == EnvironmentState::Attached {
            // Once may be an accident, and taking the tools from a model is no small thing.
            sleep(SECOND_THOUGHT).await;
            answer = self.prober.answers().await;
        }
        match answer {
            Ok(()) if before == EnvironmentState::Attached => self.end_look(|_| {}),
            Ok(()) => self.attach().await,
            Err(reason) => self.end_look(|sight| {
                sight.state = EnvironmentState::Disconnected;
                sight.error = Some(reason);
            }),
        }
        self.sight.borrow().state != before
    }

    /// Explores it again: another thing may be there than before.
    async fn attach(&self) {
        let found = self.prober.explore().await;
        self.end_look(|sight| {
            sight.state = EnvironmentState::Attached;
            sight.error = None;
            sight.shell = found.shell;
            sight.cwd = found.cwd;
        });
    }

    fn begin_look(&self) {
        self.sight.send_modify(|sight| sight.begun += 1);
    }

    fn end_look(&self, change: impl FnOnce(&mut SeenEnvironment)) {
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

    /// A prefix that works once it is opened.
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
            // Put in place whole: a script that is open for writing cannot be run.
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
        place.look_again(PATIENCE).await;
        let sight = place.sight();
        assert_eq!(sight.state, EnvironmentState::Starting);
        assert_eq!(sight.error.as_deref(), Some("the probe ended with code 1: closed"));

        let door = door.opened();
        let sight = until(&place, EnvironmentState::Attached).await;
        assert_eq!((sight.error, sight.cwd.as_deref()), (None, Some("/")));
        assert_eq!(sight.shell.map(|shell| shell.name).as_deref(), Some("sh"));

        fs::remove_file(&door.prefix).expect("removed");
        place.look_again(PATIENCE).await;
        let sight = place.sight();
        assert_eq!(sight.state, EnvironmentState::Disconnected);
        assert!(sight.error.is_some_and(|error| error.ends_with("no such program")));

        let _door = door.opened();
        place.look_again(PATIENCE).await;
        assert_eq!(place.sight().state, EnvironmentState::Attached);
        use EnvironmentState::{Attached, Disconnected};
        for expected in [Attached, Disconnected, Attached] {
            assert_eq!(heard.recv().await, Some(expected));
        }
        watch.abort();
    }

    #[tokio::test]
    async fn what_never_answers_is_given_up() {
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
