//! A home and a folder of one test, the binary in it, and models to talk to.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testkit::{EndInTime, LinesInTime, RunInTime, in_time};

pub(crate) struct Place {
    scratch: tempfile::TempDir,
}

/// The outcome of one run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self { scratch: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(place.folder().join(".git")).expect("made");
        place
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.scratch.path().canonicalize().expect("it exists")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// Where commands run; it looks like a git repository.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root().join("work")
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.root().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("a plain path").to_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
        command.args(arguments).current_dir(self.folder()).stdin(Stdio::null());
        for name in ["OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME", "RUST_LOG", "LOG_FORMAT", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("OARLOCK_HOME", self.home()).env("HOME", self.root());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output_in_time())
    }

    pub(crate) fn run_piped(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        child.stdin.take().expect("piped").write_all(input).expect("written");
        ran(child.end_in_time())
    }

    /// One turn with the offline model.
    pub(crate) fn offline(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["exec", "--provider", "offline"], arguments].concat())
    }
}

fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Ran {
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn bad(self) -> Self {
        assert_eq!(self.code, Some(1), "{self:?}");
        self
    }

    /// The lines of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    }

    pub(crate) fn types(&self) -> Vec<String> {
        let events = self.events();
        events.iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
    }

    /// The id in the first line.
    pub(crate) fn thread_id(&self) -> String {
        let first = self.events().into_iter().next().expect("a line");
        assert_eq!(first["type"], "thread.started");
        first["thread_id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.out).expect("one document")
    }
}

/// `offline-model --script`, ended with the test.
pub(crate) struct Scripted {
    child: Child,
    url: String,
}

impl Scripted {
    pub(crate) fn start(place: &Place, script: &Value) -> Self {
        let script = place.file("script.json", script.to_string());
        let mut command = place.command(&["offline-model", "--script", &script]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let url = LinesInTime::new(child.stdout.take().expect("piped")).next().expect("an address");
        Self { child, url }
    }

    pub(crate) fn flags(&self) -> Vec<String> {
        provider_flags(&self.url)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A provider without a key and without second attempts.
pub(crate) fn provider_flags(url: &str) -> Vec<String> {
    let table = format!(
        "model_providers.test={{name=\"test\",base_url=\"{url}\",request_max_retries=0,stream_max_retries=0}}"
    );
    ["-c", &table, "-c", "model_provider=test"].map(str::to_owned).to_vec()
}

/// `exec` with more arguments before those of the test.
pub(crate) fn exec<'a>(flags: &'a [String], arguments: &[&'a str]) -> Vec<&'a str> {
    ["exec"].into_iter().chain(flags.iter().map(String::as_str)).chain(arguments.iter().copied()).collect()
}

/// A named pipe through which a command says that it runs.
pub(crate) struct Sign(PathBuf);

impl Sign {
    pub(crate) fn make(path: PathBuf) -> Self {
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        Self(path)
    }

    /// Waits for the command to write, and returns what it wrote.
    pub(crate) fn wait(&self) -> String {
        let path = self.0.clone();
        let read = move || fs::read_to_string(path);
        in_time("a sign of the command", read).expect("something is written")
    }
}

/// Sends a signal to a child that is not waited for yet.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Processes on this machine with this text among their arguments.
pub(crate) fn running(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

pub(crate) fn records(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![home.join("threads")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
