//! A placement: made, attached to, used, suspended, ended. The same for every backend.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use support::Clock;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::backend::{PlaceBackend, PlaceServices, PlaceState, Prefix, backend};
use crate::error::{PlacementError, hide, last_line, shown};
use crate::manifest::{PreparedManifest, ResolvedEnv};
use crate::process::{self, AttachedProcess, ProcessEnd, SpawnOptions, SpawnSite, run_script};
use crate::progress::{PlacementStep, ProgressSink};
use crate::script::{self, Leader, short_line};
use crate::settings::{Labels, PlacementReference, PlacementSettings, REFERENCE_VERSION, check_name};
use crate::transfer::SnapshotFile;

/// A setup command may build a project.
const SETUP_LIMIT: Duration = Duration::from_secs(3600);
const MAX_SETUP_LINE: u64 = 16 << 10;

/// All placements of one host.
#[derive(Debug)]
pub struct Placements {
    owner: String,
    shared: PlaceServices,
}

/// A placement to be made. The id becomes a part of names and labels: lower-case letters, digits, hyphens.
#[derive(Debug)]
pub struct PlacementOrder<'a> {
    pub id: String,
    pub settings: PlacementSettings,
    pub start: WorkspaceStart<'a>,
}

#[derive(Debug, Clone, Copy)]
pub enum WorkspaceStart<'a> {
    Empty,
    /// With the environment for its setup commands.
    Manifest(&'a PreparedManifest, &'a ResolvedEnv),
    Snapshot(&'a SnapshotFile),
}

/// Something with our labels, whether or not anybody still needs it.
#[derive(Debug)]
pub struct LeftoverPlacement {
    /// Seconds since 1970.
    pub created_s: u64,
    pub reference: PlacementReference,
}

impl Placements {
    /// `owner` names this host in labels.
    pub fn new(owner: &str, clock: Arc<dyn Clock>) -> Result<Self, PlacementError> {
        check_name("owner", owner)?;
        Ok(Self { owner: owner.to_owned(), shared: PlaceServices { ssh: Arc::default(), clock } })
    }

    /// Makes a place with its workspace. If anything fails, what was made is removed again.
    pub async fn create(
        &self,
        order: PlacementOrder<'_>,
        progress: &ProgressSink,
    ) -> Result<Placement, PlacementError> {
        let PlacementOrder { id, settings, start } = order;
        check_name("id", &id)?;
        let backend = backend(&settings, &self.shared);
        let labels = Labels { id, owner: self.owner.clone(), created_s: self.shared.now_s() };
        let made = backend.make(&labels, progress).await?;
        let Labels { id, owner, .. } = labels;
        let version = REFERENCE_VERSION;
        let reference = PlacementReference {
            version,
            id,
            owner,
            workspace: made.workspace,
            handle: made.handle,
            command_user: made.command_user,
            settings,
        };
        let placement = Placement { backend, reference };
        let filled = async {
            placement.fill(start, made.had_workspace, progress).await?;
            if made.had_workspace || matches!(start, WorkspaceStart::Empty) {
                return Ok(());
            }
            placement.hand_over_workspace().await
        };
        match filled.await {
            Ok(()) => Ok(placement),
            Err(error) => {
                let _ = placement.destroy().await;
                Err(error)
            }
        }
    }

    /// The placement of this reference. Nothing is asked of it yet; see [`Placement::state`].
    pub fn attach(&self, reference: PlacementReference) -> Placement {
        Placement { backend: backend(&reference.settings, &self.shared), reference }
    }

    /// Everything with our labels that these settings lead to, of all hosts. To remove one, attach and destroy.
    pub async fn leftovers(
        &self,
        settings: &PlacementSettings,
    ) -> Result<Vec<LeftoverPlacement>, PlacementError> {
        let found = backend(settings, &self.shared).leftovers().await?;
        // Whoever may write labels may write anything there.
        let found = found.into_iter().filter(|found| check_name("id", &found.labels.id).is_ok());
        let to_leftover = |found: crate::backend::Labeled| LeftoverPlacement {
            created_s: found.labels.created_s,
            reference: PlacementReference {
                version: REFERENCE_VERSION,
                id: found.labels.id,
                owner: found.labels.owner,
                workspace: found.place.workspace,
                handle: found.place.handle,
                command_user: None,
                settings: settings.clone(),
            },
        };
        Ok(found.map(to_leftover).collect())
    }
}

/// Dropping it changes nothing there.
#[derive(Debug)]
pub struct Placement {
    backend: Box<dyn PlaceBackend>,
    reference: PlacementReference,
}

#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Of stdout and of stderr; the rest is dropped.
    pub bytes: usize,
    pub time: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { bytes: 1 << 20, time: Duration::from_secs(60) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortOutput {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Something was dropped.
    pub truncated: bool,
}

impl Placement {
    pub fn reference(&self) -> &PlacementReference {
        &self.reference
    }

    pub async fn state(&self) -> Result<PlaceState, PlacementError> {
        self.backend.state(&self.reference).await
    }

    pub async fn spawn(&self, options: &SpawnOptions) -> Result<AttachedProcess, PlacementError> {
        self.spawn_behind(self.prefix().await?, options).await
    }

    pub(crate) async fn spawn_behind(
        &self,
        prefix: Prefix,
        options: &SpawnOptions,
    ) -> Result<AttachedProcess, PlacementError> {
        let site = SpawnSite {
            placement: &self.reference.id,
            workspace: &self.reference.workspace,
            command_prefix: self.backend.command_prefix(&self.reference)?,
        };
        let spawned = process::spawn(prefix, &site, options).await;
        spawned.map_err(|error| error.without(&options.env.secrets()))
    }

    /// Ends a process by the id it was spawned with, whichever host spawned it, and confirms that nothing of it is left.
    pub async fn end_spawn(&self, spawn_id: &str) -> Result<(), PlacementError> {
        check_name("spawn id", spawn_id)?;
        self.end_all(&script::mark(&self.reference.id, spawn_id)).await
    }

    /// Ends all processes whose names begin with this, whichever host spawned them, and confirms that none is left.
    pub async fn end_spawns(&self, beginning: &str) -> Result<(), PlacementError> {
        check_name("beginning of a name", beginning.trim_end_matches('-'))?;
        self.end_all(&script::mark(&self.reference.id, beginning)).await
    }

    /// Those of the commands' user as well, which no other user finds.
    async fn end_all(&self, mark: &str) -> Result<(), PlacementError> {
        process::end_marked(&self.prefix().await?, mark, Leader::UNKNOWN).await?;
        match self.backend.command_prefix(&self.reference)? {
            Some(prefix) => process::end_marked(&prefix, mark, Leader::UNKNOWN).await,
            None => Ok(()),
        }
    }

    /// Runs a command to its end and keeps a bounded part of its output. One that takes too long is ended.
    pub async fn run(
        &self,
        options: &SpawnOptions,
        limits: RunLimits,
    ) -> Result<ShortOutput, PlacementError> {
        self.run_with(options, b"", limits).await
    }

    /// The same for a command that reads something.
    pub async fn run_with(
        &self,
        options: &SpawnOptions,
        input: &[u8],
        limits: RunLimits,
    ) -> Result<ShortOutput, PlacementError> {
        self.finish(self.spawn(options).await?, options, input, limits).await
    }

    /// As [`run_with`](Self::run_with), with the rights of commands and no more.
    pub(crate) async fn run_as_command(
        &self,
        options: &SpawnOptions,
        input: &[u8],
        limits: RunLimits,
    ) -> Result<ShortOutput, PlacementError> {
        let process = self.spawn_behind(self.command_prefix().await?, options).await?;
        self.finish(process, options, input, limits).await
    }

    async fn finish(
        &self,
        mut process: AttachedProcess,
        options: &SpawnOptions,
        input: &[u8],
        limits: RunLimits,
    ) -> Result<ShortOutput, PlacementError> {
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let feed = async move {
            // A command that reads no more says with its code whether it had enough.
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(input).await;
            }
        };
        let all = async {
            let out = bounded(stdout, limits.bytes);
            let (out, err, end, ()) = tokio::join!(out, bounded(stderr, limits.bytes), process.wait(), feed);
            (out, err, end)
        };
        let Ok(((stdout, cut), (stderr, cut_too), end)) = tokio::time::timeout(limits.time, all).await else {
            process.kill().await?;
            return Err(PlacementError::TimedOut {
                action: "a command".to_owned(),
                command: shown(&options.argv),
                limit: limits.time,
            });
        };
        let code = self.exit_code(end)?;
        Ok(ShortOutput { code, stdout, stderr, truncated: cut || cut_too })
    }

    pub(crate) fn exit_code(&self, end: ProcessEnd) -> Result<i32, PlacementError> {
        let command = format!("placement {}", self.reference.id);
        match end {
            ProcessEnd::Exited(code) => Ok(code),
            ProcessEnd::Killed => {
                Err(PlacementError::Unreachable { command, line: "the process was ended".to_owned() })
            }
            ProcessEnd::Lost(line) => Err(PlacementError::Unreachable { command, line }),
        }
    }

    /// Frees what a resting placement need not hold. Where that ends its workspace, a snapshot goes into `blobs` first, and
    /// [`wake`](Self::wake) wants it back.
    pub async fn suspend(&self, blobs: &Path) -> Result<Option<SnapshotFile>, PlacementError> {
        let snapshot = match self.backend.suspend_loses_workspace() {
            true => Some(self.snapshot(blobs).await?),
            false => None,
        };
        self.backend.suspend(&self.reference).await?;
        Ok(snapshot)
    }

    pub async fn wake(
        &self,
        snapshot: Option<&SnapshotFile>,
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        progress.step(PlacementStep::Creating, 0, None);
        self.backend.wake(&self.reference).await?;
        match snapshot {
            Some(snapshot) => self.fill(WorkspaceStart::Snapshot(snapshot), false, progress).await,
            None => Ok(()),
        }
    }

    /// Ends every process of the placement and removes what was made for it. A workspace that was there before stays.
    pub async fn destroy(&self) -> Result<(), PlacementError> {
        self.backend.destroy(&self.reference).await
    }

    pub(crate) async fn prefix(&self) -> Result<Prefix, PlacementError> {
        self.backend.prefix(&self.reference).await
    }

    /// For what runs with the rights of commands.
    pub(crate) async fn command_prefix(&self) -> Result<Prefix, PlacementError> {
        match self.backend.command_prefix(&self.reference)? {
            Some(prefix) => Ok(prefix),
            None => self.prefix().await,
        }
    }

    /// In a workspace that was there before, the files come to belong to its owner, and no others change hands.
    async fn fill(
        &self,
        start: WorkspaceStart<'_>,
        had_workspace: bool,
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        let unpacker = if had_workspace { self.command_prefix().await? } else { self.prefix().await? };
        match start {
            WorkspaceStart::Empty => Ok(()),
            WorkspaceStart::Snapshot(snapshot) => self.restore(snapshot, unpacker, progress).await,
            WorkspaceStart::Manifest(prepared, env) => {
                self.send_manifest(prepared, unpacker, progress).await?;
                let commands = &prepared.manifest().setup;
                for (done, command) in (0..).zip(commands) {
                    progress.step(PlacementStep::Setup, done, Some(commands.len() as u64));
                    let options = SpawnOptions { env: env.clone(), ..SpawnOptions::new(command.argv()) };
                    self.set_up(&options, (done, commands.len() as u64), progress).await?;
                }
                Ok(())
            }
        }
    }

    /// Gives unpacked files, which belong to root, to the user of commands. Links are not followed.
    async fn hand_over_workspace(&self) -> Result<(), PlacementError> {
        let Some(user) = &self.reference.command_user else { return Ok(()) };
        let line = short_line(
            r#"exec find "$1" -xdev -user 0 -exec chown -h "$2" {} +"#,
            &[&self.reference.workspace, user],
        );
        run_script(&self.prefix().await?, "handing over the workspace", &line).await.map(drop)
    }

    /// One setup command. Its lines are progress, its last one is the error's.
    async fn set_up(
        &self,
        options: &SpawnOptions,
        count: (u64, u64),
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        let secrets = options.env.secrets();
        let mut process = self.spawn(options).await?;
        drop(process.stdin.take());
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let report = |line: &str| progress.line(count.0, count.1, hide(line, &secrets));
        let all = async {
            let (_, last, end) =
                tokio::join!(each_line(stdout, &report), each_line(stderr, &report), process.wait());
            (last, end)
        };
        let Ok((last, end)) = tokio::time::timeout(SETUP_LIMIT, all).await else {
            process.kill().await?;
            return Err(PlacementError::TimedOut {
                action: "a setup command".to_owned(),
                command: hide(&shown(&options.argv), &secrets),
                limit: SETUP_LIMIT,
            });
        };
        let code = self.exit_code(end).map_err(|error| error.without(&secrets))?;
        if code == 0 {
            return Ok(());
        }
        let line = last_line(last.as_bytes()).unwrap_or_else(|| format!("it ended with code {code}"));
        let error = PlacementError::Failed {
            action: "a setup command".to_owned(),
            command: shown(&options.argv),
            line,
        };
        Err(error.without(&secrets))
    }
}

/// Calls for every line, cut where it is long, and returns the last one that says something.
async fn each_line(stream: Option<impl AsyncRead + Unpin>, report: &impl Fn(&str)) -> String {
    let mut last = String::new();
    let Some(stream) = stream else { return last };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stream).take(MAX_SETUP_LINE).read_until(b'\n', &mut line).await {
            Ok(1..) => {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if !text.is_empty() {
                    report(&text);
                    last = text;
                }
            }
            _ => return last,
        }
    }
}

/// Up to so many bytes, and whether there were more. The rest is read and dropped, so that the command can end.
pub(crate) async fn bounded(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let mut dropped = 0;
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(limit as u64).read_to_end(&mut kept).await;
        dropped = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap_or(0);
    }
    (kept, dropped > 0)
}
