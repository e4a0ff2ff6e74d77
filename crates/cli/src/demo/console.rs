//! `oarlock demo --console`: a host with the offline model and tasks in several states, for a look at the console.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::place::DemoFolder;
use crate::host::client::{HostChoice, HostConnection};
use crate::private_folder::private_temporary;

/// How long the host may take to start, and a task to come to where it is to be shown.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The state that a task of the demo is left in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scene {
    Done,
    Failed,
    Waiting,
    Suspended,
    Running,
    /// Its command had begun when the host was killed.
    Unknown,
}

struct SceneTask {
    name: &'static str,
    scene: Scene,
    prompt: &'static str,
}

/// Played first, and left running when the host is killed.
const LOST: SceneTask = SceneTask {
    name: "Copy the archive",
    scene: Scene::Unknown,
    prompt: "run sleep 600 # copies the archive to the other site",
};

const TASKS: &[SceneTask] = &[
    SceneTask {
        name: "Correct the greeting",
        scene: Scene::Done,
        prompt: "plan: find the mistake; correct it; check it\nread greet.sh\nreplace Helo with Hello in greet.sh\nrun sh \
                 test.sh\nfinish the plan\nsum up",
    },
    SceneTask {
        name: "Look at both ends",
        scene: Scene::Done,
        prompt: "call spawn_agent {\"message\": \"read greet.sh, then sum up\"}\ncall spawn_agent {\"message\": \"run sh \
                 test.sh, then sum up\"}\nsum up",
    },
    SceneTask {
        name: "Translate the greeting",
        scene: Scene::Failed,
        prompt: "read greet.sh\nfail with \"You exceeded your current quota, please check your plan and billing details.\"",
    },
    SceneTask {
        name: "Publish release 2.4",
        scene: Scene::Waiting,
        prompt: "run git push --force origin main",
    },
    SceneTask {
        name: "Write down what changed",
        scene: Scene::Waiting,
        prompt: "create CHANGES.md with \"Corrected the greeting.\"",
    },
    SceneTask {
        name: "Choose where to publish",
        scene: Scene::Waiting,
        prompt: "call request_user_input {\"questions\": [{\"id\": \"place\", \"header\": \"Place\", \"question\": \"Where is the \
                 release to be published?\", \"options\": [{\"label\": \"Staging (Recommended)\", \"description\": \"Seen by \
                 the team alone.\"}, {\"label\": \"Production\", \"description\": \"Seen by everybody.\"}]}]}",
    },
    SceneTask {
        name: "Tidy the build folder",
        scene: Scene::Suspended,
        prompt: "run rm -rf build\u{200b} ./cache \u{202e}# harmless",
    },
    SceneTask {
        name: "Watch the tests",
        scene: Scene::Running,
        prompt: "plan: run the tests until told to stop\nrun for i in $(seq 600); do printf '\\033[32mok\\033[0m run %s\\n' \
                 $i; sleep 1; done",
    },
];

/// Ends the host with the demo, whatever happens.
struct HostProcess(Child);

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Its runtimes end when it does.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn run(port: u16) -> Result<ExitCode> {
    let scratch = private_temporary("oarlock-demo-");
    let scratch = scratch.context("a folder for the demo cannot be made")?;
    let place = DemoFolder::make(scratch.path())?;
    let mut host = start(&place, port)?;
    let (mut connection, _) = connect(&place, &mut host)?;
    let lost = play(&mut connection, &place.workspace, &LOST)?;
    drop((connection, host));
    let mut host = start(&place, port)?;
    let (mut connection, address) = connect(&place, &mut host)?;
    wait_for(|| Ok(read(&mut connection, &lost)?["waitingOperations"] != 0))
        .context("what the killed host left behind was not found")?;
    for task in TASKS {
        play(&mut connection, &place.workspace, task)
            .with_context(|| format!("the task `{}` could not be made", task.name))?;
    }
    let mut out = std::io::stdout();
    writeln!(
        out,
        "A host with the offline model and {} tasks. Open this page in a browser:\n\n  http://{address}/\n\nCtrl-C ends it; \
         nothing is left behind.",
        TASKS.len() + 1
    )?;
    out.flush()?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(until_signal())?;
    drop((connection, host));
    remove(scratch)?;
    Ok(ExitCode::SUCCESS)
}

/// Runtimes end a moment after their host, and may still write while the folder is being removed.
fn remove(scratch: tempfile::TempDir) -> Result<()> {
    let folder = scratch.keep();
    let begun = Instant::now();
    loop {
        let removed = std::fs::remove_dir_all(&folder);
        if !folder.exists() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return removed.with_context(|| format!("{} cannot be removed", folder.display()));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// In a process group of its own: Ctrl-C is for the demo, which then ends the host at once.
fn start(place: &DemoFolder, port: u16) -> Result<HostProcess> {
    let log = File::create(log_of(place)).context("the demo's folder cannot be written")?;
    // Runtimes that are killed leave their temporary folders behind: let these go with the demo's own folder.
    let temporary = place.home.join("tmp");
    std::fs::create_dir_all(&temporary).context("the demo's folder cannot be written")?;
    let child = Command::new(std::env::current_exe().context("this program cannot find itself")?)
        .args(["host", "--provider", "offline", "-c", "allow_login_shell=false"])
        .args(["-c", "features.default_mode_request_user_input=true"])
        .args(["-c", "prices.offline={input = 5.0, output = 25.0}", "--store"])
        .arg(format!("sqlite:{}", store_of(place).display()))
        .arg("--listen")
        .arg(format!("ws://127.0.0.1:{port}"))
        .env("OARLOCK_HOME", &place.home)
        .env("TMPDIR", &temporary)
        .env_remove("CODEX_HOME")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0)
        .spawn()
        .context("the host does not start")?;
    Ok(HostProcess(child))
}

fn store_of(place: &DemoFolder) -> std::path::PathBuf {
    place.home.join("host.sqlite")
}

fn log_of(place: &DemoFolder) -> std::path::PathBuf {
    place.home.join("host.log")
}

/// A connection to the host, and the address it told.
fn connect(place: &DemoFolder, host: &mut HostProcess) -> Result<(HostConnection, String)> {
    let begun = Instant::now();
    let choice = HostChoice::of_store(&store_of(place));
    loop {
        let log = std::fs::read_to_string(log_of(place)).unwrap_or_default();
        let address = log.lines().find_map(|line| line.trim().strip_prefix("listening on: ws://"));
        if let Some(address) = address
            && let Ok(connection) = HostConnection::open(&choice)
        {
            return Ok((connection, address.to_owned()));
        }
        if host.0.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
            bail!("the host does not start: {}", log.trim());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The task, once it is where it is to be shown.
fn play(connection: &mut HostConnection, workspace: &Path, task: &SceneTask) -> Result<Value> {
    let policy = if matches!(task.scene, Scene::Waiting | Scene::Suspended) { "untrusted" } else { "never" };
    let params = json!({ "cwd": workspace, "approvalPolicy": policy, "sandbox": "workspace-write" });
    let opened = connection.ask("thread/start", &params)?;
    let id = opened["thread"]["id"].clone();
    let input = json!([{ "type": "text", "text": task.prompt }]);
    connection.ask("turn/start", &json!({ "threadId": id, "input": input }))?;
    connection.ask("thread/name/set", &json!({ "threadId": id, "name": task.name }))?;
    wait_for(|| is_there(connection, &id, task.scene))?;
    if task.scene == Scene::Suspended {
        connection.ask("task/suspend", &json!({ "threadId": id }))?;
    }
    Ok(id)
}

fn wait_for(mut is_there: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_there()? {
        if begun.elapsed() > PATIENCE {
            bail!("it took too long");
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn read(connection: &mut HostConnection, id: &Value) -> Result<Value> {
    Ok(connection.ask("task/read", &json!({ "threadId": id }))?["task"].take())
}

fn is_there(connection: &mut HostConnection, id: &Value, scene: Scene) -> Result<bool> {
    let task = read(connection, id)?;
    Ok(match scene {
        Scene::Done => task["state"] == "idle" && task["lastTurn"]["status"] == "completed",
        Scene::Failed => task["state"] == "idle" && task["lastTurn"]["status"] == "failed",
        Scene::Waiting | Scene::Suspended => task["waitingOperations"] != 0,
        Scene::Running => task["state"] == "running",
        Scene::Unknown => {
            let begun = connection.ask("operation/list", &json!({ "threadId": id, "state": "started" }))?;
            begun["data"] != json!([])
        }
    })
}

async fn until_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}
