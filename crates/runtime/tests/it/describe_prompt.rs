//! The description of the next request equals the request, word for word; describing changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::support::Nobody;
use config::{Env, Home, Loader, LoaderOptions};
use model::RequestBody;
use model_http::ModelScript;
use oarlock_runtime::{
    Catalogue, Opener, PromptDescription, PromptOf, Responder, Runtime, RuntimeError, RuntimeOptions,
    StoreOptions, SystemClock, Then,
};
use protocol::{SessionSource, ThreadId};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A home, a working folder, and a model that accepts and stores every request.
struct Stage {
    folder: TempDir,
    model: ModelScript,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Stage {
    async fn new(steps: Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let model = ModelScript::from_json(&steps.to_string()).expect("a script");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(model_http::serve(listener, Arc::new(model.clone())));
        for name in ["home", "work/.git"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let provider = |name: &str| {
            format!(
                "[model_providers.{name}]\nname = \"{name}\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
                 request_max_retries = 0\nstream_max_retries = 0\n"
            )
        };
        let text = format!("model = \"mock\"\nmodel_provider = \"one\"\n{}", provider("one"));
        fs::write(folder.path().join("home/config.toml"), text).expect("a file");
        Self { folder, model, serving }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn runtime(&self) -> Runtime {
        let environment = Env::fixed([("HOME", self.folder.path().as_os_str())]);
        let options =
            LoaderOptions { system_file: None, managed_file: None, requirements_file: None, environment };
        Runtime::new(RuntimeOptions {
            loader: Loader::new(Home::at(self.path("home")), Vec::new(), options),
            audience: Arc::new(Nobody),
            clock: Arc::new(SystemClock),
            catalogue: Catalogue::bundled(),
            source: SessionSource::Vscode,
            version: "1.2.3".to_owned(),
            store: StoreOptions::default(),
            traces: None,
        })
    }

    /// Describes, and checks that nothing changed on the disk.
    fn describe(&self, of: &PromptOf) -> Result<PromptDescription, RuntimeError> {
        let before = tree(self.folder.path());
        let described = self.runtime().describe_prompt(of);
        assert_eq!(tree(self.folder.path()), before, "looking changed something");
        described
    }

    fn last_request(&self) -> RequestBody {
        self.model.requests().pop().expect("a request")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Every folder, and every file with its length and modification time. Without the index, which an earlier runtime of
/// the same test may still update.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<(u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("an entry")) {
            if entry.file_name().to_string_lossy().starts_with("index.") {
                continue;
            }
            let known = entry.metadata().expect("there");
            let is_file = known.is_file();
            found.insert(entry.path(), is_file.then(|| (known.len(), known.modified().expect("a time"))));
            if known.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

async fn say(runtime: &Runtime, thread: &ThreadId, text: &str) {
    let params = json!({"threadId": thread, "input": [{"type": "text", "text": text}]});
    let (told, wait) = oneshot::channel();
    let answer = Responder::new(move |turn| drop(told.send(turn.map(|_| ()))));
    runtime.start_turn(serde_json::from_value(params).expect("params"), answer).await;
    wait.await.expect("an answer").expect("a turn");
    runtime.drain(std::time::Duration::from_secs(60)).await;
}

/// Role and text of every part of every message; other items unchanged.
fn lines(input: &[Arc<protocol::ResponseItem>]) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for item in input {
        let item = serde_json::to_value(&**item).expect("JSON");
        match item["content"].as_array() {
            Some(parts) => lines.extend(parts.iter().map(|part| {
                (
                    item["role"].as_str().unwrap_or_default().to_owned(),
                    part["text"].as_str().unwrap_or_default().to_owned(),
                )
            })),
            None => lines.push((item["type"].to_string(), item.to_string())),
        }
    }
    lines
}

/// The request contains all that was described, in the same order, then only the user's message.
#[track_caller]
fn assert_sent(described: &PromptDescription, sent: &RequestBody, said: &str) {
    let sections: Vec<&str> = described.instructions.iter().map(|section| section.text.as_str()).collect();
    assert_eq!(sections.join("\n\n"), sent.instructions);
    assert_eq!(described.model, sent.model);
    assert_eq!(described.tools, sent.tools);
    let mut expected = lines(&described.history);
    // One message per role, the developer's first.
    for role in ["developer", "user"] {
        let of_role = described.next.iter().filter(|fragment| fragment.role == role);
        expected.extend(of_role.map(|fragment| (role.to_owned(), fragment.text.clone())));
    }
    expected.push(("user".to_owned(), said.to_owned()));
    assert_eq!(lines(&sent.input), expected);
}

fn names(described: &PromptDescription) -> Vec<&str> {
    described.next.iter().map(|fragment| fragment.name).collect()
}

#[tokio::test]
async fn the_first_request_is_as_described() {
    let tool = |name: &str, deferred: bool| {
        let schema = json!({"type": "object"});
        json!({"name": name, "description": "d", "inputSchema": schema, "deferLoading": deferred})
    };
    let cases = [
        json!({}),
        json!({"model": "gpt-5.2-codex", "personality": "friendly"}),
        json!({"model": "gpt-5", "personality": "pragmatic", "sandbox": "danger-full-access"}),
        json!({"baseInstructions": "Only this.", "developerInstructions": "And that."}),
        json!({"builtinTools": [], "approvalPolicy": "never"}),
        json!({"builtinTools": ["shell_command", "update_plan"], "sandbox": "workspace-write"}),
        json!({"dynamicTools": [tool("mine", false), tool("hidden", true)]}),
        json!({"environments": []}),
        json!({"config": {"features.unified_exec": false, "web_search": "live"}}),
    ];
    let replies: Vec<Value> = cases.iter().map(|_| json!({"text": "yes"})).collect();
    let stage = Stage::new(json!(replies)).await;
    stage.write("home/AGENTS.md", "Be kind.");
    stage.write("work/AGENTS.md", "Use tabs.");
    stage.write("work/.agents/skills/greet/SKILL.md", "---\ndescription: greets\n---\nWave.\n");
    for mut params in cases {
        params["cwd"] = json!(stage.path("work"));
        let params: protocol::ThreadStartParams = serde_json::from_value(params).expect("params");
        let described = stage.describe(&PromptOf::New(Box::new(params.clone()))).expect("described");
        assert_eq!(described.thread_id, None);
        let runtime = stage.runtime();
        let opened = runtime.start_thread(params, Opener::default()).await.expect("a thread");
        say(&runtime, &opened.thread.id, "hello").await;
        assert_sent(&described, &stage.last_request(), "hello");
        assert!(names(&described).contains(&"AGENTS.md") && names(&described).contains(&"skills"));
        runtime.shut_down(Duration::from_secs(5)).await;
    }
    stage.model.finish().expect("played");
}

/// Events in between, the settings of the resume, and the context sent because of them.
type Change<'a> = (&'a dyn Fn(), Value, &'a [&'a str]);

#[tokio::test]
async fn the_next_request_of_a_stored_thread_is_as_described() {
    let stage = Stage::new(json!([
        {"call": {"name": "update_plan", "arguments": {"plan": []}}},
        {"text": "one"}, {"text": "two"}, {"text": "three"}
    ]))
    .await;
    stage.write("work/AGENTS.md", "Use tabs.");
    let runtime = stage.runtime();
    let start = json!({"cwd": stage.path("work"), "developerInstructions": "And that."});
    let start = serde_json::from_value(start).expect("params");
    let id = runtime.start_thread(start, Opener::default()).await.expect("a thread").thread.id;
    say(&runtime, &id, "first").await;
    runtime.shut_down(Duration::from_secs(5)).await;

    let changes: [Change<'_>; 2] = [
        (&|| {}, json!({}), &[]),
        (
            &|| stage.write("work/AGENTS.md", "Use spaces."),
            json!({"model": "gpt-5.2-codex", "sandbox": "danger-full-access"}),
            &["model switch", "permissions", "AGENTS.md"],
        ),
    ];
    for (change, choices, expected) in changes {
        change();
        let mut params = choices;
        params["threadId"] = json!(id);
        let params: protocol::ThreadResumeParams = serde_json::from_value(params).expect("params");
        let described = stage.describe(&PromptOf::Stored(Box::new(params.clone()))).expect("described");
        assert_eq!(names(&described), expected);
        assert_eq!(described.thread_id.as_ref(), Some(&id));
        let runtime = stage.runtime();
        let (told, wait) = oneshot::channel();
        let then = Then::new(move |opened| {
            drop(told.send(opened.map(|_| ())));
            Box::pin(async {})
        });
        runtime.resume_thread(params, Opener::default(), then).await;
        wait.await.expect("an answer").expect("resumed");
        say(&runtime, &id, "more").await;
        assert_sent(&described, &stage.last_request(), "more");
        runtime.shut_down(Duration::from_secs(5)).await;
    }
    stage.model.finish().expect("played");
}

#[tokio::test]
async fn sections_are_named_after_their_tools() {
    let stage = Stage::new(json!([])).await;
    let describe = |params: Value| {
        let params = serde_json::from_value(params).expect("params");
        stage.describe(&PromptOf::New(Box::new(params))).expect("described").instructions
    };
    let of =
        |params: Value| -> Vec<String> { describe(params).into_iter().map(|section| section.name).collect() };
    assert_eq!(of(json!({"builtinTools": ["update_plan"]})), ["core", "update_plan"]);
    assert_eq!(of(json!({"builtinTools": []})), ["core"]);
    assert_eq!(of(json!({"baseInstructions": "Mine."})), ["configured"]);
    let usual = of(json!({}));
    assert!(usual.len() > 2 && usual[0] == "core", "{usual:?}");
}

#[tokio::test]
async fn errors_name_missing_threads() {
    let stage = Stage::new(json!([])).await;
    let describe = |id: &str| {
        let params = serde_json::from_value(json!({"threadId": id})).expect("params");
        stage.describe(&PromptOf::Stored(Box::new(params))).map(|_| ()).map_err(|error| error.to_string())
    };
    let unknown = "019a8b3c-0000-7000-8000-000000000001";
    assert_eq!(describe(unknown), Err(format!("no rollout found for thread id {unknown}")));
    assert!(describe("no id").is_err_and(|error| error.starts_with("invalid thread id")));
}
