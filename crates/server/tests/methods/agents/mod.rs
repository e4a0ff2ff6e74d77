//! Child agents, with the model of each conversation played by the test.

mod endings;
mod inheritance;
mod late_news;
mod limits;
mod restarts;
mod roles;
mod round_trip;

use serde_json::{Value, json};
use testkit::{ReceivedRequest, ScriptedModel, Stage, TestClient, TestServer, text, turn, until, within};

pub(crate) const AGENT_TOOLS: [&str; 5] =
    ["spawn_agent", "send_input", "resume_agent", "wait_agent", "close_agent"];

/// Begins what a parent is told of an agent.
const NEWS: &str = "<subagent_notification>";

/// A thread whose model can have children, and everything around it.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) model: ScriptedModel,
    server: Option<TestServer>,
    pub(crate) client: TestClient,
    pub(crate) root: String,
}

impl Play {
    /// With more keys in the user's configuration.
    pub(crate) async fn new(keys: &str) -> Self {
        Self::started(keys, json!({})).await
    }

    pub(crate) async fn started(keys: &str, mut params: Value) -> Self {
        let (stage, model) = (Stage::new(json!([])).await, ScriptedModel::new().await);
        stage.configure_port(model.port(), keys);
        let (server, mut client) = stage.open().await;
        if params["cwd"].is_null() {
            params["cwd"] = json!(stage.cwd());
        }
        let root = client.start_thread(params).await;
        Self { stage, model, server: Some(server), client, root }
    }

    /// A turn of the root, up to its first request.
    pub(crate) async fn begin(&mut self, said: &str) -> ReceivedRequest {
        self.begin_with(turn(&self.root, said)).await
    }

    pub(crate) async fn begin_with(&mut self, params: Value) -> ReceivedRequest {
        self.client.ask("turn/start", params).await;
        self.model.of(&self.root).await
    }

    /// The model that asked calls a tool; gives its next request.
    pub(crate) async fn call(
        &mut self,
        asked: ReceivedRequest,
        id: &str,
        name: &str,
        arguments: Value,
    ) -> ReceivedRequest {
        let thread = asked.thread().to_owned();
        asked.call(id, name, &arguments).await;
        self.model.of(&thread).await
    }

    /// The model that asked starts an agent: its id, its first request, and the next one of who started it.
    pub(crate) async fn spawn(
        &mut self,
        asked: ReceivedRequest,
        id: &str,
        arguments: Value,
    ) -> (String, ReceivedRequest, ReceivedRequest) {
        let asked = self.call(asked, id, "spawn_agent", arguments).await;
        let agent = text(&output(&asked, id)["agent_id"]);
        let child = self.model.of(&agent).await;
        (agent, child, asked)
    }

    /// The turn that asks ends with these words, also where it hears of an agent meanwhile and asks again.
    pub(crate) async fn end(&mut self, asked: ReceivedRequest, said: &str) -> Value {
        let thread = asked.thread().to_owned();
        let mut asked = asked;
        let waiting = async {
            loop {
                asked.say(said).await;
                let over = |params: &Value| params["threadId"] == thread.as_str();
                tokio::select! {
                    over = self.client.wait_for("turn/completed", over) => return over["turn"].clone(),
                    again = self.model.of(&thread) => asked = again,
                }
            }
        };
        within("the end of a turn", waiting).await
    }

    /// The next end of a turn of a thread.
    pub(crate) async fn over(&mut self, thread: &str) -> Value {
        self.client.wait_for("turn/completed", |params| params["threadId"] == thread).await["turn"].clone()
    }

    pub(crate) async fn kill(&mut self) {
        self.server.take().expect("a server").kill().await;
    }

    pub(crate) async fn stop(&mut self) {
        self.server.take().expect("a server").stop().await;
    }

    /// Another server with the root in memory.
    pub(crate) async fn reopen(&mut self) -> Value {
        let (server, client) = self.stage.open().await;
        (self.server, self.client) = (Some(server), client);
        self.client.ask("thread/resume", json!({"threadId": self.root})).await
    }

    /// The idle root has been told of so many ends.
    pub(crate) async fn told(&mut self, ends: usize) {
        let path = text(&self.read(&self.root.clone()).await["path"]);
        self.recorded(&path, ends).await;
    }

    /// A record has the news of so many ends.
    async fn recorded(&self, path: &str, ends: usize) {
        let recorded = || std::fs::read_to_string(path).map_or(0, |record| record.matches(NEWS).count());
        until(&format!("{path} has the news of {ends} ends"), || recorded() >= ends).await;
    }

    pub(crate) async fn read(&mut self, thread: &str) -> Value {
        let params = json!({"threadId": thread, "includeTurns": true});
        self.client.ask("thread/read", params).await["thread"].clone()
    }
}

/// The output of a call, read as JSON.
pub(crate) fn output(asked: &ReceivedRequest, call_id: &str) -> Value {
    let output = asked.output_of(call_id);
    serde_json::from_str(&output).unwrap_or_else(|_| panic!("JSON, not {output}"))
}

/// A notification in a word or two; nothing for what says how much was used.
pub(crate) fn word(message: &Value) -> Option<String> {
    let (method, params) = (text(&message["method"]), &message["params"]);
    let item = &params["item"];
    match method.as_str() {
        "thread/tokenUsage/updated" | "item/agentMessage/delta" => None,
        "thread/status/changed" => Some(text(&params["status"]["type"])),
        _ => {
            let what = item["tool"].as_str().or(item["type"].as_str()).unwrap_or_default();
            Some(format!("{method} {what}").trim_end().to_owned())
        }
    }
}
