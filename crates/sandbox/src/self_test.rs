//! Tests for real whether the sandbox works on this machine.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use serde::Serialize;

use crate::helper::launch::launch;
use crate::helper::probe::{self, EscapeAttempt};
use crate::helper::wire::HelperStatus;
use crate::helper::{cgroup, landlock};
use crate::{Confinement, Limits, Order, Strength};

/// Prefix of the test folders.
const PREFIX: &str = "oarlock-self-test-";

/// A self-test takes less than a second; an older folder belongs to a killed one.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

/// The result of one layer of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LayerResult {
    pub name: String,
    pub ok: bool,
    pub detail: String,
}

/// The result of the self-test.
#[derive(Debug, Clone)]
pub struct SelfTestReport {
    pub layers: Vec<LayerResult>,
    /// The sandbox for commands, or why there is no full one.
    pub strength: Result<Strength, String>,
    /// Whether the weaker level could be chosen explicitly.
    pub landlock_only: bool,
}

impl SelfTestReport {
    /// Why sandboxed commands would be refused, if they would. `landlock_only` is the weaker level, asked for by name.
    pub fn missing(&self, landlock_only: bool) -> Option<String> {
        match (&self.strength, landlock_only) {
            (_, true) if self.landlock_only => None,
            (_, true) => Some("Landlock alone is asked for, and this kernel has too little of it".to_owned()),
            (Ok(_), false) => None,
            (Err(why), false) => Some(why.clone()),
        }
    }
}

/// The test of the sandbox on this machine.
#[derive(Debug, Clone, Copy)]
pub struct SelfTest;

impl SelfTest {
    /// Runs once per process; later calls return the same result.
    pub fn run() -> &'static SelfTestReport {
        static REPORT: OnceLock<SelfTestReport> = OnceLock::new();
        REPORT.get_or_init(|| report(attempts()))
    }
}

fn report(attempts: Result<Vec<EscapeAttempt>, String>) -> SelfTestReport {
    let landlock_only = landlock::is_enough_alone();
    let (mut layers, strength) = match attempts {
        Ok(attempts) => {
            let open: Vec<&str> = attempts.iter().filter(|a| !a.held).map(|a| a.layer.as_str()).collect();
            let strength = if open.is_empty() {
                Ok(Strength::Full)
            } else {
                Err(refusal(&format!("these layers do not hold here: {}", open.join(", ")), landlock_only))
            };
            let layers =
                attempts.into_iter().map(|a| LayerResult { name: a.layer, ok: a.held, detail: a.detail });
            (layers.collect(), strength)
        }
        Err(why) => {
            let layer = LayerResult { name: "start".to_owned(), ok: false, detail: why.clone() };
            (vec![layer], Err(refusal(&why, landlock_only)))
        }
    };
    layers.push(limits());
    SelfTestReport { layers, strength, landlock_only }
}

fn refusal(why: &str, landlock_only: bool) -> String {
    let instead =
        if landlock_only { "; the weaker level with Landlock alone can be asked for by name" } else { "" };
    format!("sandboxed commands are refused: {why}{instead}")
}

/// Limits are reported, but do not affect the strength: they are no barrier.
fn limits() -> LayerResult {
    cgroup::remove_leftovers();
    let group = cgroup::Group::make(&Limits { memory: Some(1 << 30), ..Limits::default() });
    let as_root = rustix::process::geteuid().is_root();
    let detail = match (group.limits_processes(), group.limits_memory()) {
        (true, true) => "processes and memory by cgroup",
        (true, false) => "processes by cgroup, memory not at all",
        (false, true) => "memory by cgroup, processes by user",
        (false, false) => "processes by user, memory not at all",
    };
    // The kernel does not limit root's processes.
    LayerResult {
        name: "limits".to_owned(),
        ok: group.limits_processes() || !as_root,
        detail: detail.to_owned(),
    }
}

/// Runs the attempts inside. An error if it could not start, which is how a missing layer shows.
fn attempts() -> Result<Vec<EscapeAttempt>, String> {
    let place = SelfTestFolder::make().map_err(|error| format!("no folder to try in: {error}"))?;
    let order = Order {
        argv: vec![probe::SELF.to_owned(), probe::NAME.to_owned()],
        cwd: place.inside(),
        env: Default::default(),
        confinement: Some(Confinement {
            writable: vec![place.inside()],
            protected: vec![".codex".to_owned()],
            ..Confinement::read_only()
        }),
        limits: Limits::default(),
        terminal: false,
    };
    let order = serde_json::to_vec(&order).map_err(|error| error.to_string())?;
    let mut helper = launch(&order, Stdio::null(), Stdio::piped(), Stdio::piped())
        .map_err(|error| format!("the helper process cannot be started: {error}"))?;
    let end = helper.end();
    let mut text = String::new();
    if let Some(mut output) = helper.child.stdout.take() {
        let _ = output.read_to_string(&mut text);
    }
    match end {
        Some(HelperStatus::Exited { code: 0 }) => {
            serde_json::from_str(&text).map_err(|_| "the probe gave no answer".to_owned())
        }
        Some(HelperStatus::Failed(failure)) => Err(failure.message),
        end => Err(format!("the probe ended early: {end:?}")),
    }
}

/// Removes folders of killed self-tests. Folders of other users stay.
fn remove_left_over(folder: &Path, age: Duration) {
    let mine = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        let is_ours = facts.is_dir() && facts.uid() == mine;
        let is_old = facts.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|since| since >= age);
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) && is_ours && is_old {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder with a writable part and a file next to it.
struct SelfTestFolder(PathBuf);

impl SelfTestFolder {
    fn make() -> io::Result<Self> {
        // Random, because process ids repeat in other namespaces.
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{PREFIX}{}-{random:016x}", std::process::id());
        // Not a folder that the sandbox mounts anew, such as shared memory.
        let folders = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let mut made = folders.iter().filter(|folder| !folder.starts_with("/dev")).map(|folder| {
            let place = Self(folder.join(&name));
            fs::create_dir_all(place.inside()).map(|()| place)
        });
        let place = made.find_map(Result::ok).ok_or(io::ErrorKind::NotFound)?;
        if let Some(folder) = place.path().parent() {
            remove_left_over(folder, ABANDONED_AFTER);
        }
        fs::write(place.path().join("outside"), "")?;
        Ok(place)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn inside(&self) -> PathBuf {
        self.0.join("inside")
    }
}

impl Drop for SelfTestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_works_on_this_machine() {
        let report = SelfTest::run();
        let open: Vec<&LayerResult> =
            report.layers.iter().filter(|layer| !layer.ok && layer.name != "limits").collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(report.strength, Ok(Strength::Full));
        assert!(report.layers.len() >= 9);
    }

    #[test]
    fn folders_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let made = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.join("inside")).expect("a folder inside");
            path
        };
        let (left, other) = (made("oarlock-self-test-1-2"), made("somebody-else"));
        let link = folder.path().join("oarlock-self-test-3-4");
        std::os::unix::fs::symlink(&other, &link).expect("a link");
        remove_left_over(folder.path(), ABANDONED_AFTER);
        assert!(left.exists(), "it may be in use");
        remove_left_over(folder.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(other.join("inside").exists() && link.is_symlink(), "links and other names stay");
    }

    #[test]
    fn one_failing_layer_is_named_and_refuses_all() {
        let attempt =
            |layer: &str, held| EscapeAttempt { layer: layer.to_owned(), held, detail: String::new() };
        let report = report(Ok(vec![attempt("files", true), attempt("network", false)]));
        assert!(report.strength.unwrap_err().contains("do not hold here: network"));
    }

    #[test]
    fn what_is_asked_for_counts() {
        let report = |strength: Result<Strength, &str>, landlock_only| SelfTestReport {
            layers: Vec::new(),
            strength: strength.map_err(str::to_owned),
            landlock_only,
        };
        assert_eq!(report(Ok(Strength::Full), false).missing(false), None);
        assert_eq!(report(Err("none here"), true).missing(true), None);
        assert_eq!(report(Err("none here"), true).missing(false).as_deref(), Some("none here"));
        assert!(report(Ok(Strength::Full), false).missing(true).is_some_and(|why| why.contains("Landlock")));
    }

    #[test]
    fn a_failed_start_is_reported_unchanged() {
        let report = report(Err("cannot make namespaces: EPERM".to_owned()));
        assert!(report.strength.unwrap_err().contains("cannot make namespaces: EPERM"));
        assert!(!report.layers[0].ok);
    }
}
