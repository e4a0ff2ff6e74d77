//! A process in a placement: clean pipes, its exit code, and an end that leaves nothing behind.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Notify, oneshot, watch};

use crate::backend::Prefix;
use crate::error::{PlacementError, last_line, shown};
use crate::manifest::ResolvedEnv;
use crate::scratch::random_hex;
use crate::script::{self, BOOTSTRAP, Leader, MAX_LINE, ProcessLine};
use crate::settings::check_name;
use crate::stderr::{ShellMessage, StderrFilter, StderrPiece};
use crate::tool::{ToolRun, end_group, start};

/// From the tool's start until the place runs our shell. An image is pulled and a pod is scheduled before.
const START_LIMIT: Duration = Duration::from_secs(60);
const END_LIMIT: Duration = Duration::from_secs(30);
/// Stderr not yet read by the caller; then the process waits.
const STDERR_BUFFER: usize = 64 << 10;
/// Kept of what a tool says before the process starts, and of its last words.
const KEPT_LINES: usize = 8 << 10;
/// After the tool's end, how long its stderr may stay open before the end is reported.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// A program to run, and its folder. Relative folders are beneath the workspace.
#[derive(Debug, Clone, Default)]
pub struct SpawnOptions {
    pub argv: Vec<String>,
    pub cwd: Option<String>,
    pub env: ResolvedEnv,
    /// By which the process is found again: unlike that of any other, and none the beginning of another. Random unless set.
    pub name: Option<String>,
}

impl SpawnOptions {
    pub fn new<Word: Into<String>>(argv: impl IntoIterator<Item = Word>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The exit code; 128 and the signal's number where a signal ended it.
    Exited(i32),
    /// By [`AttachedProcess::kill`].
    Killed,
    /// The pipes broke before the process ended: the last words of the tool that carried them. Whether it still runs
    /// is not known; [`crate::Placement::end_spawn`] ends it when the place can be reached again.
    Lost(String),
}

/// Dropping it ends the process as [`kill`](Self::kill) does, in the background.
#[derive(Debug)]
pub struct AttachedProcess {
    /// Dropping it closes the process's stdin, and nothing else.
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<DuplexStream>,
    id: String,
    cwd_exists: bool,
    control: Arc<ProcessControl>,
}

/// The means to end a process, apart from its pipes.
#[derive(Debug)]
struct ProcessControl {
    prefix: Prefix,
    /// See [`SpawnSite::command_prefix`].
    command_prefix: Option<Prefix>,
    mark: String,
    leader: Leader,
    /// Set before anything is ended, so that the end that follows is not taken for a loss.
    killing: AtomicBool,
    /// Asks the task that owns the tool to end it.
    end_tool: Notify,
    ended: watch::Receiver<Option<ProcessEnd>>,
}

/// Where a process is started.
#[derive(Debug)]
pub(crate) struct SpawnSite<'a> {
    pub(crate) placement: &'a str,
    pub(crate) workspace: &'a str,
    /// Where commands run as another user than the process: their environment is open to that user alone, so by the mark in it
    /// only that user finds those that got away.
    pub(crate) command_prefix: Option<Prefix>,
}

pub(crate) async fn spawn(
    prefix: Prefix,
    site: &SpawnSite<'_>,
    options: &SpawnOptions,
) -> Result<AttachedProcess, PlacementError> {
    // Only our own shell knows it: what a command prints cannot pass for a message of that shell.
    let secret = random_hex()?;
    let id = options.name.clone().unwrap_or_else(|| secret.clone());
    check_name("name", &id)?;
    let mark = script::mark(site.placement, &id);
    let line = program_line(&secret, &mark, site, options)?;
    let argv = prefix.around(&["sh", "-c", BOOTSTRAP, &mark]);
    let mut child = start("starting a process", &argv, |command| {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        prefix.set_environment(command);
    })?;
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(PlacementError::invalid("pipes", "the system gave none"));
    };
    let (mine, theirs) = tokio::io::duplex(STDERR_BUFFER);
    let (started, on_start) = oneshot::channel();
    let (end, ended) = watch::channel(None);
    let reader = tokio::spawn(read_stderr(stderr, StderrFilter::new(&secret), mine, started));
    // A tool that has already failed does not read it; its stderr says why.
    let begin = async {
        let _ = stdin.write_all(line.as_bytes()).await;
        tokio::select! {
            answer = on_start => answer.ok(),
            () = over(&mut child) => None,
        }
    };
    let Ok(answer) = tokio::time::timeout(START_LIMIT, begin).await else {
        end_group(&mut child);
        prefix.give_up();
        return Err(PlacementError::TimedOut {
            action: "starting a process".to_owned(),
            command: shown(&prefix.shown_argv()),
            limit: START_LIMIT,
        });
    };
    let Some(ProcessStart { leader, cwd_exists }) = answer else {
        return Err(unreachable(&prefix, &mut child, reader).await);
    };
    let control = Arc::new(ProcessControl {
        prefix,
        command_prefix: site.command_prefix.clone(),
        mark,
        leader,
        killing: AtomicBool::new(false),
        end_tool: Notify::new(),
        ended,
    });
    tokio::spawn(watch_tool(child, reader, Arc::clone(&control), end));
    Ok(AttachedProcess {
        stdin: Some(stdin),
        stdout: Some(stdout),
        stderr: Some(theirs),
        id,
        cwd_exists,
        control,
    })
}

fn program_line(
    id: &str,
    mark: &str,
    site: &SpawnSite,
    options: &SpawnOptions,
) -> Result<String, PlacementError> {
    if options.argv.is_empty() {
        return Err(PlacementError::invalid("argv", "it is empty; name the program that is to be run"));
    }
    if options.argv.iter().chain(&options.cwd).any(|word| word.contains('\0')) {
        return Err(PlacementError::invalid("argv", "a NUL character cannot be passed to a program"));
    }
    let cwd = match &options.cwd {
        Some(cwd) if cwd.starts_with('/') => cwd.clone(),
        Some(cwd) => format!("{}/{cwd}", site.workspace),
        None => site.workspace.to_owned(),
    };
    let env = options.env.pairs();
    let line = script::process_line(&ProcessLine {
        spawn: id,
        mark,
        argv: &options.argv,
        env: &env,
        cwd: &cwd,
        root: site.workspace,
    });
    match line.len() <= MAX_LINE {
        true => Ok(line),
        false => Err(PlacementError::TooLarge {
            what: "the process's arguments and environment".to_owned(),
            limit: format!("{} KiB", MAX_LINE >> 10),
        }),
    }
}

/// The tool has ended, and what it had to say has had time to arrive.
async fn over(child: &mut Child) {
    let _ = child.wait().await;
    tokio::time::sleep(DRAIN_LIMIT).await;
}

/// Why a tool ended before the place ran anything.
async fn unreachable(
    prefix: &Prefix,
    child: &mut Child,
    reader: tokio::task::JoinHandle<StderrEnd>,
) -> PlacementError {
    let status = tokio::time::timeout(DRAIN_LIMIT, child.wait()).await;
    end_group(child);
    let last = tokio::time::timeout(DRAIN_LIMIT, reader).await.ok().and_then(Result::ok);
    let line = last.and_then(|end| last_line(&end.tail)).unwrap_or_else(|| match status {
        Ok(Ok(status)) => format!("it ended without a word, {status}"),
        _ => "it closed its stderr without a word".to_owned(),
    });
    PlacementError::Unreachable { command: shown(&prefix.shown_argv()), line }
}

#[derive(Debug)]
struct ProcessStart {
    leader: Leader,
    cwd_exists: bool,
}

#[derive(Debug)]
struct StderrEnd {
    code: Option<i32>,
    /// The last bytes, for a sentence.
    tail: Vec<u8>,
}

/// Passes stderr on until it ends. Bytes before the start and after the end are the tool's own, and kept for an error.
async fn read_stderr(
    mut stderr: ChildStderr,
    mut filter: StderrFilter,
    mut to: DuplexStream,
    started: oneshot::Sender<ProcessStart>,
) -> StderrEnd {
    let mut started = Some(started);
    let mut end = StderrEnd { code: None, tail: Vec::new() };
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = stderr.read(&mut buffer).await.unwrap_or(0);
        let pieces = match read {
            0 => filter.finish(),
            _ => filter.feed(&buffer[..read]),
        };
        for piece in pieces {
            match piece {
                StderrPiece::Plain(bytes) => {
                    keep_tail(&mut end.tail, &bytes);
                    if started.is_none() && end.code.is_none() {
                        // A caller that does not want it has dropped the other half.
                        let _ = to.write_all(&bytes).await;
                    }
                }
                StderrPiece::Message(ShellMessage::Started { leader, cwd_exists }) => {
                    if let Some(started) = started.take() {
                        let _ = started.send(ProcessStart { leader, cwd_exists });
                    }
                }
                StderrPiece::Message(ShellMessage::Ended(code)) => end.code = Some(code),
            }
        }
        if read == 0 {
            return end;
        }
    }
}

fn keep_tail(tail: &mut Vec<u8>, more: &[u8]) {
    tail.extend_from_slice(more);
    if tail.len() > KEPT_LINES {
        tail.drain(..tail.len() - KEPT_LINES);
    }
}

/// Owns the tool until it ends, then reports how the process ended.
async fn watch_tool(
    mut child: Child,
    mut reader: tokio::task::JoinHandle<StderrEnd>,
    control: Arc<ProcessControl>,
    end: watch::Sender<Option<ProcessEnd>>,
) {
    loop {
        tokio::select! {
            _ = child.wait() => break,
            () = control.end_tool.notified() => end_group(&mut child),
        }
    }
    let killed = control.killing.load(Ordering::Relaxed);
    let last = tokio::time::timeout(DRAIN_LIMIT, &mut reader).await;
    let result = match last {
        Ok(Ok(StderrEnd { code: Some(code), .. })) if !killed => ProcessEnd::Exited(code),
        _ if killed => ProcessEnd::Killed,
        Ok(Ok(StderrEnd { tail, .. })) => {
            ProcessEnd::Lost(last_line(&tail).unwrap_or_else(|| "the pipes broke".to_owned()))
        }
        // Something the process started still holds its stderr: the tool's own code is as good as the shell's.
        _ => child.wait().await.ok().and_then(|status| status.code()).map_or_else(
            || ProcessEnd::Lost("the tool was ended by a signal".to_owned()),
            ProcessEnd::Exited,
        ),
    };
    end.send_replace(Some(result));
}

impl AttachedProcess {
    /// Names this process for [`crate::Placement::end_spawn`], also after a restart of the host. No secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the folder that was asked for exists there. If not, the process runs in the workspace's root.
    pub fn cwd_exists(&self) -> bool {
        self.cwd_exists
    }

    /// Pid and start time of the process's shell there, as `/proc` has them; zeros where there is no `/proc`.
    pub fn pid_and_start_time(&self) -> (u32, u64) {
        (self.control.leader.pid, self.control.leader.started)
    }

    pub fn has_ended(&self) -> bool {
        self.control.ended.borrow().is_some()
    }

    /// Waits for the end, whoever else waits. Processes that it left in the background run on.
    pub async fn wait(&self) -> ProcessEnd {
        let mut ended = self.control.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(end)) => end.clone(),
            _ => ProcessEnd::Lost("nobody watches the process any more".to_owned()),
        }
    }

    /// Sends a signal (`TERM`, `INT`, `USR1`) to the process and what it started.
    pub async fn signal(&self, signal: &str) -> Result<(), PlacementError> {
        if signal.is_empty() || !signal.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(PlacementError::invalid("signal", "give its name without SIG, like TERM"));
        }
        let line = script::signal_line(signal, self.control.leader);
        run_line(&self.control.prefix, "sending a signal", &line).await
    }

    /// Ends the process with all it started, those that left its session included, and confirms that none is left.
    /// Also after its end, for what it left in the background.
    pub async fn kill(&self) -> Result<(), PlacementError> {
        self.control.kill().await
    }
}

impl ProcessControl {
    async fn kill(&self) -> Result<(), PlacementError> {
        self.killing.store(true, Ordering::Relaxed);
        let mut there = end_marked(&self.prefix, &self.mark, self.leader).await;
        if let (Ok(()), Some(prefix)) = (&there, &self.command_prefix) {
            there = end_marked(prefix, &self.mark, Leader::UNKNOWN).await;
        }
        self.end_tool.notify_one();
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(Option::is_some).await;
        there
    }
}

impl Drop for AttachedProcess {
    fn drop(&mut self) {
        let is_over = self.control.ended.borrow().is_some();
        let control = Arc::clone(&self.control);
        if let (false, Ok(runtime)) = (is_over, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { control.kill().await });
        }
    }
}

/// Ends every process there that has the mark.
pub(crate) async fn end_marked(prefix: &Prefix, mark: &str, leader: Leader) -> Result<(), PlacementError> {
    run_line(prefix, "ending a process", &script::end_line(mark, leader)).await
}

async fn run_line(prefix: &Prefix, action: &str, line: &str) -> Result<(), PlacementError> {
    run_script(prefix, action, line).await.map(drop)
}

/// Runs a program line of ours there, without marks and messages, and returns its stdout.
pub(crate) async fn run_script(prefix: &Prefix, action: &str, line: &str) -> Result<Vec<u8>, PlacementError> {
    let argv = prefix.around(&["sh", "-c", BOOTSTRAP, "oarlock"]);
    let call = ToolRun { stdin: line.as_bytes(), limit: END_LIMIT, ..ToolRun::new(action, &argv) };
    let output = call.run_in(|command| prefix.set_environment(command)).await;
    if matches!(output, Err(PlacementError::TimedOut { .. })) {
        prefix.give_up();
    }
    let output = output?;
    match output.success {
        true => Ok(output.stdout),
        // The bootstrap in the argv would fill the sentence.
        false => Err(ToolRun { argv: &prefix.shown_argv(), ..call }.failed(&output)),
    }
}
