//! The session as a user meets it: keys and messages in, a screen out.
#![allow(clippy::needless_pass_by_value, reason = "messages are written where they are sent")]

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{
    PromptTemplate, SessionOptions, SessionStart, TerminalEffect, TerminalEvent, TerminalState, ThreadChoices,
};
use crate::rows::ScreenRow;
use crate::screen::{ScreenSize, ScreenStyle};

const SMALL: ScreenSize = ScreenSize { columns: 80, rows: 24 };
const LARGE: ScreenSize = ScreenSize { columns: 200, rows: 50 };
const THREAD: &str = "01a1e1a1-feec-7000-80ad-c975e4b244a3";
const AGENT: &str = "02b2f2b2-0000-7000-8000-000000000000";

/// A session, what it sent, and everything it printed.
struct Stage {
    state: TerminalState,
    now: Duration,
    sent: Vec<Value>,
    printed: Vec<ScreenRow>,
    remembered: Vec<String>,
    left: Option<bool>,
    size: ScreenSize,
}

impl Stage {
    fn new(size: ScreenSize) -> Self {
        Self::with(size, SessionStart::New(ThreadChoices::default()), None)
    }

    fn with(size: ScreenSize, start: SessionStart, prompt: Option<&str>) -> Self {
        let state = TerminalState::new(SessionOptions {
            version: "0.1.0".to_owned(),
            folder: "/home/me/project".to_owned(),
            start,
            prompt: prompt.map(str::to_owned),
            images: Vec::new(),
            remote: None,
            resume_command: "oarlock resume".to_owned(),
            style: ScreenStyle { has_colours: false, is_ascii: false, can_redraw: true },
            size,
            history: vec!["an earlier prompt".to_owned()],
            prompts: Vec::new(),
            is_file: |path| path.ends_with("there.png"),
            image_url: |path| Ok(format!("data:image/png,{}", path.display())),
            home: Some("/home/me".into()),
            nearest: |typed, known| known.iter().find(|word| word.len() == typed.len()).cloned(),
            earlier: |_| ThreadChoices::default(),
        });
        let (sent, printed, remembered) = (Vec::new(), Vec::new(), Vec::new());
        let mut stage = Self { state, now: Duration::ZERO, sent, printed, remembered, left: None, size };
        let effects = stage.state.begin();
        stage.perform(effects);
        stage
    }

    /// With a thread that is open.
    fn open(size: ScreenSize) -> Self {
        let mut stage = Self::new(size);
        stage.answer("initialize", json!({}));
        stage.answer("thread/start", opened(json!([])));
        stage
    }

    /// With a turn that runs.
    fn running(size: ScreenSize) -> Self {
        let mut stage = Self::open(size);
        stage.types("fix the greeting");
        stage.key(KeyCode::Enter);
        stage.answer("turn/start", json!({ "turn": { "id": "turn-1" } }));
        stage.tell("turn/started", json!({ "turn": { "id": "turn-1" } }));
        let content = json!([{ "type": "text", "text": "fix the greeting" }]);
        stage.item("completed", json!({ "type": "userMessage", "id": "u1", "content": content }));
        stage
    }

    fn perform(&mut self, effects: Vec<TerminalEffect>) {
        for effect in effects {
            match effect {
                TerminalEffect::Send(message) => self.sent.push(message),
                TerminalEffect::Print(rows) => self.printed.extend(rows),
                TerminalEffect::Remember(text) => self.remembered.push(text),
                TerminalEffect::Sleep => {}
                TerminalEffect::Leave { is_good } => self.left = Some(is_good),
            }
        }
    }

    fn on(&mut self, event: TerminalEvent) {
        let effects = self.state.on(self.now, event);
        self.perform(effects);
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.on(TerminalEvent::Tick);
    }

    fn key(&mut self, code: KeyCode) {
        self.on(TerminalEvent::Key(KeyEvent::from(code)));
    }

    fn control(&mut self, letter: char) {
        self.on(TerminalEvent::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)));
    }

    fn types(&mut self, text: &str) {
        text.chars().for_each(|letter| self.key(KeyCode::Char(letter)));
    }

    /// The last request of this method is answered.
    #[track_caller]
    fn answer(&mut self, method: &str, result: Value) {
        let id = self.last(method)["id"].clone();
        self.on(TerminalEvent::Message(json!({ "id": id, "result": result })));
    }

    /// The thread that is asked for goes on.
    #[track_caller]
    fn resume(&mut self, mut answer: Value) {
        let turns = answer["thread"]["turns"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let newest_first: Vec<Value> = turns.into_iter().rev().collect();
        self.answer("thread/turns/list", json!({ "data": newest_first, "nextCursor": null }));
        assert_eq!(self.last("thread/resume")["params"]["excludeTurns"], true);
        self.answer("thread/resume", answer);
    }

    #[track_caller]
    fn refuse(&mut self, method: &str, message: &str) {
        let id = self.last(method)["id"].clone();
        self.on(TerminalEvent::Message(json!({ "id": id, "error": { "code": -32600, "message": message } })));
    }

    #[track_caller]
    fn last(&self, method: &str) -> &Value {
        let found = self.sent.iter().rev().find(|message| message["method"] == method);
        found.unwrap_or_else(|| panic!("no {method} among {:#?}", self.sent))
    }

    fn tell(&mut self, method: &str, mut params: Value) {
        params["threadId"] = THREAD.into();
        self.on(TerminalEvent::Message(json!({ "method": method, "params": params })));
    }

    /// A notification about the thread of an agent.
    fn tell_of_agent(&mut self, method: &str, mut params: Value) {
        params["threadId"] = AGENT.into();
        self.on(TerminalEvent::Message(json!({ "method": method, "params": params })));
    }

    fn item(&mut self, what: &str, item: Value) {
        self.tell(&format!("item/{what}"), json!({ "item": item, "turnId": "turn-1" }));
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.ask_in(THREAD, method, params);
    }

    fn ask_in(&mut self, thread: &str, method: &str, mut params: Value) {
        params["threadId"] = thread.into();
        // Nobody is typing any more.
        self.now += Duration::from_secs(2);
        self.on(TerminalEvent::Message(json!({ "id": 7, "method": method, "params": params })));
    }

    /// The answer to the server's question.
    #[track_caller]
    fn reply(&self) -> &Value {
        let found =
            self.sent.iter().rev().find(|message| message["id"] == 7 && message.get("method").is_none());
        &found.expect("an answer")["result"]
    }

    fn end_turn(&mut self, status: &str) {
        self.tell(
            "turn/completed",
            json!({ "turn": { "id": "turn-1", "status": status, "durationMs": 2_100 } }),
        );
    }

    /// The terminal as it looks now: what was printed, and the region below it. `▏` is the cursor.
    fn screen(&self) -> String {
        let region = self.state.region();
        let printed = self.printed.iter().flat_map(|row| row.wrapped(self.size.columns));
        let mut lines: Vec<String> = printed.map(|row| row.text().trim_end().to_owned()).collect();
        for (number, row) in region.rows.iter().enumerate() {
            assert!(row.width() <= self.size.columns, "{row:?}");
            let mut text = row.text();
            if number == region.cursor.0 {
                let at = text.char_indices().nth(region.cursor.1).map_or(text.len(), |(at, _)| at);
                text.insert(at, '▏');
            }
            lines.push(text.trim_end().to_owned());
        }
        let from = lines.len().saturating_sub(self.size.rows);
        lines[from..].join("\n")
    }

    fn printed(&self) -> String {
        self.printed.iter().map(|row| row.text() + "\n").collect()
    }
}

fn opened(turns: Value) -> Value {
    json!({
        "thread": { "id": THREAD, "name": null, "turns": turns },
        "model": "offline", "modelProvider": "offline", "cwd": "/home/me/project",
        "approvalPolicy": "on-request", "sandbox": { "type": "workspaceWrite" },
    })
}

fn command(status: &str) -> Value {
    json!({
        "type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'sh test.sh'", "cwd": "/home/me/project",
        "status": status, "aggregatedOutput": null, "exitCode": null, "durationMs": null,
    })
}

fn command_question() -> Value {
    json!({
        "itemId": "c1", "command": "/bin/bash -lc 'git push origin main'", "cwd": "/home/me/project",
        "reason": "needs the network",
        "availableDecisions": [
            "accept",
            { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["git", "push"] } },
            { "acceptWithCommandOverride": { "command": ["/bin/bash", "-lc", "git push origin main"] } },
            { "respond": { "contentItems": [], "success": true } },
            "cancel",
        ],
    })
}

fn whole_turn(size: ScreenSize) -> Stage {
    let mut stage = Stage::running(size);
    stage.tell(
        "turn/plan/updated",
        json!({ "explanation": null, "plan": [
        { "step": "Correct the word", "status": "completed" },
        { "step": "Run the test", "status": "inProgress" },
        { "step": "Say what changed", "status": "pending" },
    ] }),
    );
    let diff = "@@ -1,2 +1,2 @@\n # Greets whoever is named.\n-echo \"Helo\"\n+echo \"Hello\"\n";
    let changes = json!([{ "path": "/home/me/project/greet.sh", "kind": { "type": "update", "move_path": null }, "diff": diff }]);
    stage.item(
        "completed",
        json!({ "type": "fileChange", "id": "f1", "changes": changes, "status": "completed" }),
    );
    stage.item("started", command("inProgress"));
    stage.tell(
        "item/commandExecution/outputDelta",
        json!({ "itemId": "c1", "delta": "one\ntwo\n\u{1b}[32mok: Hello" }),
    );
    stage.wait(3);
    stage
}

#[test]
fn what_is_looked_at_and_what_is_refused_are_lines() {
    let mut stage = whole_turn(SMALL);
    let action = json!({ "type": "read", "command": "x", "name": "a", "path": "/srv/a" });
    let look = json!({ "type": "commandExecution", "id": "l1", "command": "read_file /srv/a", "cwd": "/srv",
        "status": "completed", "commandActions": [action], "aggregatedOutput": null, "exitCode": 0, "durationMs": 2 });
    stage.item("completed", look);
    let changes = json!([{ "path": "/srv/new", "kind": { "type": "add" }, "diff": "one\n" }]);
    stage.item(
        "completed",
        json!({ "type": "fileChange", "id": "f9", "changes": changes, "status": "declined",
            "reason": "patch rejected: /srv/new is outside of what may be written to" }),
    );
    let printed = stage.printed();
    for line in [
        "read /srv/a",
        "edit /srv/new (new) (not allowed)",
        "patch rejected: /srv/new is outside of what may be written",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(!printed.contains("read_file"), "{printed}");
}

#[test]
fn what_would_allow_it_is_named_unless_the_user_said_no() {
    let refused = || {
        let mut item = command("declined");
        item["aggregatedOutput"] = "`rm -rf x` was rejected: it deletes without asking back".into();
        item
    };
    let way_out = "  -> /approvals on-request has you asked; a rule can allow it without\n";
    let mut stage = Stage::running(SMALL);
    stage.item("completed", refused());
    assert!(stage.printed().contains(way_out), "{}", stage.printed());

    let mut stage = Stage::running(SMALL);
    stage.ask("item/commandExecution/requestApproval", command_question());
    stage.types("n");
    stage.item("completed", refused());
    assert!(!stage.printed().contains("->"), "{}", stage.printed());

    let mut stage = Stage::running(SMALL);
    let mut failed = command("failed");
    (failed["exitCode"], failed["aggregatedOutput"]) =
        (json!(1), "touch: cannot touch '/x': Permission denied".into());
    stage.item("completed", failed);
    assert!(stage.printed().contains("  -> commands may write to the folder alone"), "{}", stage.printed());
}

#[test]
fn a_turn_at_80x24() {
    let mut stage = whole_turn(SMALL);
    assert_snapshot!("turn_running_80x24", stage.screen());
    let mut ended = command("completed");
    (ended["aggregatedOutput"], ended["exitCode"], ended["durationMs"]) =
        (json!("ok: Hello, Ada!\n"), json!(0), json!(28));
    stage.item("completed", ended);
    stage.tell(
        "item/agentMessage/delta",
        json!({ "itemId": "m1", "delta": "The greeting was **misspelt**; `test.sh` pas" }),
    );
    stage.tell(
        "item/agentMessage/delta",
        json!({ "itemId": "m1", "delta": "ses now.\n\n- one word in greet.sh" }),
    );
    stage.item("completed", json!({ "type": "agentMessage", "id": "m1", "text": "whatever" }));
    stage.tell(
        "thread/tokenUsage/updated",
        json!({ "tokenUsage": {
        "total": { "inputTokens": 4_138, "outputTokens": 52 }, "last": { "totalTokens": 12_000 },
        "modelContextWindow": 100_000,
    } }),
    );
    stage.end_turn("completed");
    assert_snapshot!("turn_over_80x24", stage.screen());
}

#[test]
fn a_turn_at_200x50() {
    assert_snapshot!("turn_running_200x50", whole_turn(LARGE).screen());
}

#[test]
fn an_approval_shows_what_would_run() {
    let mut stage = Stage::running(SMALL);
    stage.item("started", command("inProgress"));
    stage.ask("item/commandExecution/requestApproval", command_question());
    assert_snapshot!("approval_80x24", stage.screen());
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
    assert!(!stage.screen().contains("y yes"), "the keys are gone");
}

#[test]
fn every_key_of_an_approval_answers_what_it_says() {
    let answer = |keys: &str, then: &str| {
        let mut stage = Stage::running(SMALL);
        stage.ask("item/commandExecution/requestApproval", command_question());
        stage.types(keys);
        if !then.is_empty() {
            stage.types(then);
            stage.key(KeyCode::Enter);
        }
        stage.reply()["decision"].clone()
    };
    assert_eq!(answer("n", ""), "decline");
    assert_eq!(answer("s", ""), "acceptForSession", "a server takes it for every command, listed or not");
    let amendment = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["git", "push"] } });
    assert_eq!(answer("a", ""), amendment);
    let edited = json!({ "acceptWithCommandOverride": { "command": ["/bin/bash", "-lc", "git push origin main -n"] } });
    assert_eq!(answer("e", " -n"), edited);
    let told = answer("w", "use a branch");
    assert_eq!(told["respond"]["success"], false);
    assert!(
        told["respond"]["contentItems"][0]["text"]
            .as_str()
            .is_some_and(|said| said.ends_with("says: use a branch"))
    );
    let told = answer("u", "se a branch");
    assert!(
        told["respond"]["contentItems"][0]["text"]
            .as_str()
            .is_some_and(|said| said.ends_with("says: use a branch"))
    );
}

#[test]
fn what_is_not_offered_cannot_be_chosen() {
    let mut stage = Stage::running(SMALL);
    let mut question = command_question();
    question["availableDecisions"] = json!(["accept", "cancel"]);
    stage.ask("item/commandExecution/requestApproval", question);
    let keys = stage.screen().lines().rfind(|line| line.starts_with("y yes")).map(str::to_owned);
    assert_eq!(keys.as_deref(), Some("y yes · s yes, for this session · n no · w a word to the model"));
    stage.types("a");
    stage.key(KeyCode::Esc);
    assert!(stage.sent.iter().all(|message| message["id"] != 7), "no key answered");
    stage.key(KeyCode::Esc);
    assert_eq!(stage.reply(), &json!({ "decision": "cancel" }));
}

#[test]
fn a_word_to_the_model_is_a_no_and_a_steer_where_there_is_no_other_way() {
    let mut stage = Stage::running(SMALL);
    let mut question = command_question();
    question["availableDecisions"] = json!(["accept", "cancel"]);
    stage.ask("item/commandExecution/requestApproval", question);
    stage.types("wnot now");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.reply(), &json!({ "decision": "decline" }));
    assert_eq!(stage.last("turn/steer")["params"]["input"][0]["text"], "not now");
}

#[test]
fn keys_that_were_on_their_way_answer_nothing() {
    let mut stage = Stage::running(SMALL);
    stage.types("sa");
    let question =
        json!({ "id": 7, "method": "item/commandExecution/requestApproval", "params": command_question() });
    stage.on(TerminalEvent::Message(question));
    stage.types("y");
    assert!(stage.sent.iter().all(|message| message["id"] != 7), "{:?}", stage.sent.last());
    stage.control('c');
    assert!(stage.screen().contains("Ctrl-C again leaves"), "leaving is always possible");
    stage.wait(2);
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
    assert_eq!(stage.state.editor.text(), "say", "and what was typed is still there");
}

#[test]
fn pasted_text_answers_nothing() {
    let mut stage = Stage::running(SMALL);
    stage.ask("item/commandExecution/requestApproval", command_question());
    stage.on(TerminalEvent::Paste("y".to_owned()));
    assert!(stage.sent.iter().all(|message| message["id"] != 7));
}

#[test]
fn hidden_characters_of_a_command_are_shown_by_number() {
    let mut stage = Stage::running(SMALL);
    let mut question = command_question();
    question["command"] = "/bin/bash -lc 'rm \u{202e}x\u{1b}[2K\u{200b}'".into();
    question["availableDecisions"][1]["acceptWithExecpolicyAmendment"]["execpolicy_amendment"] =
        json!(["rm\u{202e}"]);
    stage.ask("item/commandExecution/requestApproval", question);
    let screen = stage.screen();
    assert!(screen.contains(r"rm \u{202e}x\u{1b}[2K\u{200b}"), "{screen}");
    assert!(screen.contains(r"always, for `rm\u{202e}`"), "{screen}");
    assert!(!screen.contains(['\u{1b}', '\u{202e}', '\u{200b}']));
}

#[test]
fn a_patch_is_shown_with_its_question() {
    let mut stage = Stage::running(SMALL);
    let changes = json!([{ "path": "/home/me/project/a.txt", "kind": { "type": "add" }, "diff": "hello\n" }]);
    stage.item(
        "started",
        json!({ "type": "fileChange", "id": "f1", "changes": changes, "status": "inProgress" }),
    );
    stage
        .ask("item/fileChange/requestApproval", json!({ "itemId": "f1", "reason": null, "grantRoot": null }));
    assert_snapshot!("patch_approval_80x24", stage.screen());
    let again = json!({ "type": "fileChange", "id": "f1", "changes": changes, "status": "inProgress" });
    stage.item("started", again);
    stage.types("s");
    assert_eq!(stage.reply(), &json!({ "decision": "acceptForSession" }));
    stage.item(
        "completed",
        json!({ "type": "fileChange", "id": "f1", "changes": changes, "status": "completed" }),
    );
    assert_eq!(stage.printed().matches("+hello").count(), 1, "shown once");
}

fn new_file() -> Value {
    let changes = json!([{ "path": "/home/me/project/a.txt", "kind": { "type": "add" }, "diff": "hello\n" }]);
    json!({ "type": "fileChange", "id": "f1", "changes": changes, "status": "inProgress" })
}

#[test]
fn the_patch_of_an_agent_is_shown_with_its_question() {
    let mut stage = Stage::running(SMALL);
    stage.tell_of_agent("item/started", json!({ "item": new_file() }));
    stage.ask_in(AGENT, "item/fileChange/requestApproval", json!({ "itemId": "f1", "turnId": "turn-9" }));
    assert!(stage.printed().contains("add /home/me/project/a.txt\n    +hello\n"), "{}", stage.printed());
    assert!(stage.printed().contains("asked by the agent 02b2f2b2-0000"), "{}", stage.printed());
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
}

#[test]
fn a_patch_that_nobody_can_see_cannot_be_agreed_to() {
    let mut stage = Stage::running(SMALL);
    // The same item id in another thread is another patch.
    stage.item("started", new_file());
    stage.ask_in(AGENT, "item/fileChange/requestApproval", json!({ "itemId": "f1", "turnId": "turn-9" }));
    assert!(stage.printed().contains("the server did not tell which"), "{}", stage.printed());
    let keys = stage.screen().lines().rfind(|line| line.contains("n no")).map(str::to_owned);
    assert_eq!(keys.as_deref(), Some("n no · w a word to the model"));
    stage.key(KeyCode::Esc);
    assert_eq!(stage.reply(), &json!({ "decision": "cancel" }));
}

#[test]
fn questions_of_agents_outlive_the_turn_of_their_parent() {
    let mut stage = Stage::running(SMALL);
    stage.tell_of_agent("item/started", json!({ "item": new_file() }));
    stage.ask("item/commandExecution/requestApproval", command_question());
    let asked = json!({ "itemId": "f1", "threadId": AGENT, "turnId": "turn-9" });
    stage.on(TerminalEvent::Message(
        json!({ "id": 8, "method": "item/fileChange/requestApproval", "params": asked }),
    ));
    stage.end_turn("completed");
    assert!(stage.printed().contains("+hello"), "the agent's question is shown next: {}", stage.printed());
    assert!(stage.screen().contains("y yes"), "{}", stage.screen());
    stage.wait(2);
    stage.types("y");
    let answer = stage.sent.iter().find(|message| message["id"] == 8).expect("an answer");
    assert_eq!(answer["result"], json!({ "decision": "accept" }));

    let mut stage = Stage::running(SMALL);
    stage.ask_in(AGENT, "item/commandExecution/requestApproval", command_question());
    stage.tell_of_agent("turn/completed", json!({ "turn": { "id": "turn-9", "status": "failed" } }));
    assert!(!stage.screen().contains("y yes"), "{}", stage.screen());
}

#[test]
fn escape_says_no_to_more_permissions_and_stops_the_turn_that_asks() {
    for (thread, turn) in [(THREAD, "turn-1"), (AGENT, "turn-9")] {
        let mut stage = Stage::running(SMALL);
        let permissions = json!({ "network": { "enabled": true } });
        let asked = json!({ "itemId": "p", "turnId": turn, "permissions": permissions, "reason": null });
        stage.ask_in(thread, "item/permissions/requestApproval", asked);
        stage.key(KeyCode::Esc);
        assert_eq!(stage.reply(), &json!({ "permissions": {}, "scope": "turn" }));
        let stopped = &stage.last("turn/interrupt")["params"];
        assert_eq!((&stopped["threadId"], &stopped["turnId"]), (&json!(thread), &json!(turn)));
    }
}

#[test]
fn permissions_are_granted_as_asked_or_not_at_all() {
    let asked = json!({ "network": { "enabled": true }, "fileSystem": { "read": null, "write": ["/srv"] } });
    for (key, expected) in [
        ("y", json!({ "permissions": asked, "scope": "turn" })),
        ("s", json!({ "permissions": asked, "scope": "session" })),
        ("n", json!({ "permissions": {}, "scope": "turn" })),
    ] {
        let mut stage = Stage::running(SMALL);
        stage.ask(
            "item/permissions/requestApproval",
            json!({ "itemId": "p", "permissions": asked, "reason": "to deploy" }),
        );
        assert!(stage.printed().contains("reach the network\n    write /srv\n"), "{}", stage.printed());
        stage.types(key);
        assert_eq!(stage.reply(), &expected);
    }
}

#[test]
fn questions_of_the_model_are_a_form() {
    let mut stage = Stage::running(SMALL);
    stage.ask("item/tool/requestUserInput", json!({ "itemId": "q", "questions": [
        { "id": "colour", "header": "Colour", "question": "Which one?", "isOther": true, "isSecret": false,
          "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }] },
        { "id": "pin", "header": "PIN", "question": "Which number?", "isOther": false, "isSecret": true, "options": null },
    ] }));
    assert_snapshot!("form_80x24", stage.screen());
    stage.types("2");
    stage.key(KeyCode::Enter);
    stage.types("1234");
    assert!(stage.screen().contains("› ****▏"), "{}", stage.screen());
    stage.key(KeyCode::Enter);
    assert_eq!(
        stage.reply(),
        &json!({ "answers": { "colour": { "answers": ["Blue"] }, "pin": { "answers": ["1234"] } } })
    );
    assert!(!stage.printed().contains("1234"), "a secret is not printed");
    assert!(stage.remembered.iter().all(|text| !text.contains("1234")), "nor kept");
}

#[test]
fn a_form_of_an_mcp_server_is_checked() {
    let mut stage = Stage::running(SMALL);
    let schema = json!({ "type": "object", "required": ["n", "tags"], "properties": {
        "n": { "type": "integer", "minimum": 1, "maximum": 9 },
        "sure": { "type": "boolean", "default": true },
        "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        "note": { "type": "string", "maxLength": 3 },
    } });
    let params =
        json!({ "serverName": "shop", "mode": "form", "message": "How many?", "requestedSchema": schema });
    stage.ask("mcpServer/elicitation/request", params.clone());
    for line in ["12", "1.5", "", "3", "", "a, b", "long", ""] {
        stage.types(line);
        stage.key(KeyCode::Enter);
    }
    let content = json!({ "n": 3, "sure": true, "tags": ["a", "b"] });
    assert_eq!(stage.reply(), &json!({ "action": "accept", "content": content, "_meta": null }));
    let mut stage = Stage::running(SMALL);
    stage.ask("mcpServer/elicitation/request", params);
    stage.key(KeyCode::Esc);
    assert_eq!(stage.reply()["action"], "decline");
}

#[test]
fn a_question_answered_elsewhere_goes_away() {
    let mut stage = Stage::running(SMALL);
    stage.types("my draft");
    stage.ask("item/commandExecution/requestApproval", command_question());
    stage.tell("serverRequest/resolved", json!({ "requestId": 7 }));
    assert_eq!(stage.state.editor.text(), "my draft");
    assert!(stage.sent.iter().all(|message| message["id"] != 7));
}

#[test]
fn unknown_requests_are_refused_by_name() {
    let mut stage = Stage::running(SMALL);
    stage.ask("item/tool/call", json!({ "tool": "x" }));
    let refused = stage.sent.last().expect("an answer");
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32601)));
}

#[test]
fn enter_steers_and_tab_keeps_for_later() {
    let mut stage = Stage::running(SMALL);
    stage.types("also the readme");
    stage.key(KeyCode::Enter);
    let steer = stage.last("turn/steer")["params"].clone();
    assert_eq!(
        (&steer["expectedTurnId"], &steer["input"][0]["text"]),
        (&json!("turn-1"), &json!("also the readme"))
    );
    stage.types("then commit");
    stage.key(KeyCode::Tab);
    assert_snapshot!("queued_80x24", stage.screen());
    stage.end_turn("completed");
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "then commit");
}

#[test]
fn a_prompt_of_the_user_is_completed_filled_and_sent() {
    let with_prompt = || {
        let mut stage = Stage::open(SMALL);
        let (name, about) = ("explain".to_owned(), "FILE  Explain a file".to_owned());
        let body = "Explain $1.\nBriefly.".to_owned();
        stage.state.options.prompts = vec![PromptTemplate { name, about, body }];
        stage
    };
    let mut stage = with_prompt();
    stage.types("/p");
    assert!(stage.screen().contains("/prompts:explain  FILE  Explain a file"), "{}", stage.screen());
    stage.key(KeyCode::Tab);
    stage.types("'a b.rs' more");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "Explain a b.rs.\nBriefly.");
    assert_eq!(stage.remembered, ["/prompts:explain 'a b.rs' more"]);

    let mut stage = with_prompt();
    let before = stage.sent.len();
    for (line, told) in [
        ("/prompts:none", "there is no prompt none: its text would be prompts/none.md"),
        ("/prompts:explain 'a", "/prompts:explain: a quotation mark is not closed"),
    ] {
        stage.types(line);
        stage.key(KeyCode::Enter);
        assert!(stage.printed().contains(told), "{}", stage.printed());
    }
    assert_eq!(stage.sent.len(), before, "nothing is sent");
}

#[test]
fn what_waits_is_given_back_when_the_turn_did_not_end_well() {
    for status in ["interrupted", "failed"] {
        let mut stage = Stage::running(SMALL);
        for text in ["then commit", "then push"] {
            stage.types(text);
            stage.key(KeyCode::Tab);
        }
        stage.types("draft");
        let turns = stage.sent.iter().filter(|message| message["method"] == "turn/start").count();
        stage.end_turn(status);
        let now = stage.sent.iter().filter(|message| message["method"] == "turn/start").count();
        assert_eq!((now, stage.state.editor.text()), (turns, "then commit\nthen push\ndraft"), "{status}");
    }
}

#[test]
fn a_steer_that_came_too_late_is_the_next_turn() {
    let mut stage = Stage::running(SMALL);
    stage.types("late");
    stage.key(KeyCode::Enter);
    stage.end_turn("completed");
    stage.refuse("turn/steer", "no turn runs");
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "late");
}

#[test]
fn escape_stops_the_turn_also_before_it_has_a_name() {
    let mut stage = Stage::running(SMALL);
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Esc);
    let count = stage.sent.iter().filter(|message| message["method"] == "turn/interrupt").count();
    assert_eq!((count, &stage.last("turn/interrupt")["params"]["turnId"]), (1, &json!("turn-1")));
    assert!(stage.screen().contains("stopping"));
    stage.end_turn("interrupted");
    assert!(stage.printed().ends_with("\nstopped\n"));

    let mut stage = Stage::open(SMALL);
    stage.types("go");
    stage.key(KeyCode::Enter);
    stage.key(KeyCode::Esc);
    stage.answer("turn/start", json!({ "turn": { "id": "turn-1" } }));
    assert_eq!(stage.last("turn/interrupt")["params"]["turnId"], "turn-1");
}

#[test]
fn control_c_twice_leaves_and_says_how_to_go_on() {
    let mut stage = Stage::running(SMALL);
    stage.end_turn("completed");
    stage.types("draft");
    stage.control('c');
    assert_eq!((stage.left, stage.state.editor.text()), (None, ""));
    assert!(stage.screen().contains("Ctrl-C again leaves"));
    stage.wait(3);
    stage.control('c');
    assert_eq!(stage.left, None, "too slow");
    stage.control('c');
    assert_eq!(stage.left, Some(true));
    assert!(
        stage.printed().ends_with("thread 01a1e1a1-feec; go on with: oarlock resume 01a1e1a1-feec\n"),
        "{}",
        stage.printed()
    );
}

#[test]
fn leaving_stops_a_turn_of_our_own_server_alone() {
    for (remote, is_stopped) in [(None, true), (Some("unix:///run/host.sock".to_owned()), false)] {
        let mut stage = Stage::running(SMALL);
        stage.state.options.remote = remote;
        stage.control('c');
        assert!(
            stage.sent.iter().all(|message| message["method"] != "turn/interrupt"),
            "not by the first key"
        );
        stage.control('c');
        let was_stopped = stage.sent.iter().any(|message| message["method"] == "turn/interrupt");
        assert_eq!((stage.left, was_stopped), (Some(true), is_stopped));
    }
}

#[test]
fn a_server_that_is_gone_ends_the_session() {
    let mut stage = Stage::running(SMALL);
    stage.item("started", command("inProgress"));
    stage.on(TerminalEvent::Lost("signal: 9 (SIGKILL)".to_owned()));
    assert_eq!(stage.left, Some(false));
    assert!(stage.printed().contains("✗ the server is gone: signal: 9 (SIGKILL)"));
    assert!(stage.printed().contains("oarlock resume 01a1e1a1-feec"));
}

#[test]
fn commands_complete_and_are_found() {
    let mut stage = Stage::open(SMALL);
    stage.types("/");
    assert_snapshot!("commands_80x24", stage.screen());
    stage.types("st");
    stage.key(KeyCode::Tab);
    assert_eq!(stage.state.editor.text(), "/status ");
    stage.key(KeyCode::Enter);
    assert!(stage.printed().contains(THREAD), "{}", stage.printed());
    stage.types("/hlep");
    stage.key(KeyCode::Enter);
    assert!(stage.printed().contains("there is no command /hlep; did you mean /help?"));
    stage.types("/home/me is full");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "/home/me is full");
}

#[test]
fn files_are_found_by_the_server() {
    let mut stage = Stage::open(SMALL);
    stage.types("look at @gre");
    assert_eq!(stage.last("fuzzyFileSearch/sessionStart")["params"]["roots"], json!(["/home/me/project"]));
    assert_eq!(stage.last("fuzzyFileSearch/sessionUpdate")["params"]["query"], "gre");
    let session = stage.last("fuzzyFileSearch/sessionUpdate")["params"]["sessionId"].clone();
    let files = json!([{ "path": "greet.sh" }, { "path": "a dir/greet.md" }]);
    let found = json!({ "sessionId": session, "query": "gre", "files": files });
    stage.on(TerminalEvent::Message(json!({ "method": "fuzzyFileSearch/sessionUpdated", "params": found })));
    assert_snapshot!("files_80x24", stage.screen());
    stage.key(KeyCode::Down);
    stage.key(KeyCode::Enter);
    assert_eq!(stage.state.editor.text(), "look at \"a dir/greet.md\" ");
    stage.last("fuzzyFileSearch/sessionStop");
}

#[test]
fn images_are_sent_by_their_paths() {
    let mut stage = Stage::open(SMALL);
    stage.types("compare there.png and missing.png");
    stage.key(KeyCode::Enter);
    let input = &stage.last("turn/start")["params"]["input"];
    assert_eq!(input[0], json!({ "type": "localImage", "path": "/home/me/project/there.png" }));
    assert_eq!((&input[1]["type"], input.as_array().map(Vec::len)), (&json!("text"), Some(2)));
    stage.end_turn("completed");
    stage.types("and ~/there.png, \"a folder/there.png\"");
    stage.key(KeyCode::Enter);
    let input = stage.last("turn/start")["params"]["input"].clone();
    assert_eq!(input[0]["path"], "/home/me/there.png");
    assert_eq!(input[1]["path"], "/home/me/project/a folder/there.png");
}

#[test]
fn a_server_elsewhere_gets_the_images_themselves() {
    let mut stage = Stage::open(SMALL);
    stage.state.options.remote = Some("ws://elsewhere".to_owned());
    stage.state.options.folder = "/here".to_owned();
    stage.state.options.images = vec!["/first.png".into(), "/gone.png".into()];
    stage.state.options.image_url = |path| match path.ends_with("gone.png") {
        true => Err("it cannot be read".to_owned()),
        false => Ok(format!("data:image/png,{}", path.display())),
    };
    stage.types("see there.png");
    stage.key(KeyCode::Enter);
    let input = &stage.last("turn/start")["params"]["input"];
    assert_eq!(input[0], json!({ "type": "image", "url": "data:image/png,/first.png" }));
    assert_eq!(input[1], json!({ "type": "image", "url": "data:image/png,/here/there.png" }));
    assert_eq!(input[2]["text"], "see there.png");
    assert!(stage.printed().contains("/gone.png is not sent: it cannot be read"), "{}", stage.printed());
}

#[test]
fn models_and_approvals_are_chosen_for_the_next_turn() {
    let mut stage = Stage::open(SMALL);
    stage.types("/model");
    stage.key(KeyCode::Enter);
    stage.answer(
        "model/list",
        json!({ "data": [
        { "model": "offline", "description": "here" }, { "model": "big", "description": "there" },
    ] }),
    );
    assert_snapshot!("models_80x24", stage.screen());
    stage.types("2");
    stage.types("/approvals never");
    stage.key(KeyCode::Enter);
    stage.types("go");
    stage.key(KeyCode::Enter);
    let params = &stage.last("turn/start")["params"];
    assert_eq!((&params["model"], &params["approvalPolicy"]), (&json!("big"), &json!("never")));
    assert_eq!(params.get("sandboxPolicy"), None, "the sandbox stays as it was");
}

#[test]
fn choices_stay_until_a_turn_has_taken_them() {
    let start = |stage: &mut Stage, text: &str| {
        stage.types(text);
        stage.key(KeyCode::Enter);
    };
    // A review takes no choices.
    let mut stage = Stage::open(SMALL);
    start(&mut stage, "/approvals untrusted");
    start(&mut stage, "/review");
    stage.answer("review/start", json!({ "turn": { "id": "turn-1" } }));
    stage.tell("turn/started", json!({ "turn": { "id": "turn-1" } }));
    stage.end_turn("completed");
    start(&mut stage, "go");
    assert_eq!(stage.last("turn/start")["params"]["approvalPolicy"], "untrusted");
    // Chosen while the turn is on its way: it is for the next one.
    start(&mut stage, "/model big");
    stage.answer("turn/start", json!({ "turn": { "id": "turn-2" } }));
    stage.end_turn("completed");
    start(&mut stage, "go on");
    let params = stage.last("turn/start")["params"].clone();
    assert_eq!((&params["model"], params.get("approvalPolicy")), (&json!("big"), None));
    // A turn that is refused has taken nothing.
    start(&mut stage, "/approvals never");
    stage.refuse("turn/start", "not now");
    stage.key(KeyCode::Enter);
    let params = &stage.last("turn/start")["params"];
    assert_eq!((&params["model"], &params["approvalPolicy"]), (&json!("big"), &json!("never")));
}

#[test]
fn choices_made_while_the_thread_is_opened_are_for_its_first_turn() {
    let mut stage = Stage::new(SMALL);
    stage.answer("initialize", json!({}));
    stage.types("/approvals untrusted");
    stage.key(KeyCode::Enter);
    stage.answer("thread/start", opened(json!([])));
    stage.types("go");
    stage.key(KeyCode::Enter);
    assert_eq!(stage.last("turn/start")["params"]["approvalPolicy"], "untrusted");
}

#[test]
fn an_earlier_thread_is_shown_again_and_gone_on_with() {
    let start = SessionStart::Named("01a1e1a1".to_owned(), ThreadChoices::default());
    let mut stage = Stage::with(SMALL, start, Some("and now in French"));
    stage.answer("initialize", json!({}));
    stage.answer("thread/list", json!({ "data": [{ "id": "02", "name": null }], "nextCursor": "more" }));
    assert_eq!(stage.last("thread/list")["params"]["cursor"], "more", "an old one is on a later page");
    stage.answer("thread/list", json!({ "data": [{ "id": THREAD, "name": null }], "nextCursor": null }));
    assert_eq!(stage.last("thread/turns/list")["params"]["threadId"], THREAD);
    let turns = json!([{ "id": "t", "status": "completed", "items": [
        { "type": "userMessage", "id": "u", "content": [{ "type": "text", "text": "say hello" }] },
        { "type": "agentMessage", "id": "m", "text": "Hello." },
    ] }]);
    stage.resume(opened(turns));
    assert_snapshot!("resumed_80x24", stage.screen());
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "and now in French");
}

#[test]
fn how_an_earlier_turn_ended_is_shown() {
    let start = SessionStart::Named(THREAD.to_owned(), ThreadChoices::default());
    let mut stage = Stage::with(SMALL, start, None);
    stage.answer("initialize", json!({}));
    stage.resume(opened(json!([
        { "id": "1", "status": "interrupted", "items": [] },
        { "id": "2", "status": "failed", "items": [], "error": { "message": "the sky fell" } },
    ])));
    assert!(stage.printed().ends_with("\nstopped\n\n✗ the sky fell\n"), "{}", stage.printed());
}

#[test]
fn of_a_long_thread_the_last_turns_are_read() {
    let start = || SessionStart::Named(THREAD.to_owned(), ThreadChoices::default());
    let turn = |text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "id": text, "status": "inProgress", "items": [{ "type": "userMessage", "id": text, "content": content }] })
    };
    let mut stage = Stage::with(SMALL, start(), None);
    stage.answer("initialize", json!({}));
    assert_eq!(stage.last("thread/turns/list")["params"]["limit"], 5);
    stage.answer(
        "thread/turns/list",
        json!({ "data": [turn("second"), turn("first")], "nextCursor": "more" }),
    );
    let mut answer = opened(json!([]));
    answer["thread"]["status"] = json!({ "type": "idle" });
    stage.answer("thread/resume", answer);
    assert!(stage.printed().contains("… earlier turns\n\n› first\n\n› second\n"), "{}", stage.printed());
    assert!(!stage.screen().contains("working"), "the turn ended in the meantime");
    // A server without pages gives all turns.
    let mut stage = Stage::with(SMALL, start(), None);
    stage.answer("initialize", json!({}));
    stage.refuse("thread/turns/list", "unknown method");
    assert_eq!(stage.last("thread/resume")["params"]["excludeTurns"], false);
    let turns: Vec<Value> = ["1", "2", "3", "4", "5", "6"].map(turn).into();
    stage.answer("thread/resume", opened(json!(turns)));
    assert!(stage.printed().contains("… earlier turns\n\n› 2\n"), "{}", stage.printed());
    assert!(stage.screen().contains("working"));
}

#[test]
fn a_patch_that_is_told_after_its_question_is_shown_then() {
    let mut stage = Stage::running(SMALL);
    stage.ask("item/fileChange/requestApproval", json!({ "itemId": "f1", "turnId": "turn-1" }));
    stage.item("started", new_file());
    assert!(stage.printed().ends_with("add /home/me/project/a.txt\n    +hello\n"), "{}", stage.printed());
    stage.types("y");
    assert!(stage.sent.iter().all(|message| message["id"] != 7), "it was not looked at yet");
    stage.wait(2);
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
}

#[test]
fn a_thread_that_is_not_there_is_an_error() {
    let start = SessionStart::Named("zz".to_owned(), ThreadChoices::default());
    let mut stage = Stage::with(SMALL, start, None);
    stage.answer("initialize", json!({}));
    stage.answer("thread/list", json!({ "data": [] }));
    assert_eq!(stage.left, Some(false));
    assert!(stage.printed().contains("no thread is named `zz`"));
}

#[test]
fn a_thread_goes_by_an_id_without_dashes_and_a_miss_names_what_is_near() {
    let mut stage = Stage::open(SMALL);
    let threads = json!({ "data": [{ "id": THREAD, "name": "parser" }], "nextCursor": null });
    stage.types("/resume 01A1e1a1feec");
    stage.key(KeyCode::Enter);
    stage.answer("thread/list", threads.clone());
    assert_eq!(stage.last("thread/turns/list")["params"]["threadId"], THREAD);
    stage.resume(opened(json!([])));
    stage.types("/resume parsre");
    stage.key(KeyCode::Enter);
    stage.answer("thread/list", threads);
    assert!(stage.printed().contains("did you mean `parser`?"), "{}", stage.printed());
    assert_eq!(stage.left, None, "the open thread goes on");
}

#[test]
fn a_model_that_is_not_listed_is_taken_and_said() {
    let mut stage = Stage::open(SMALL);
    let models = json!({ "data": [{ "model": "mock-model", "description": "" }] });
    for (name, told) in [("mock-modle", true), ("mock-model", false)] {
        stage.printed.clear();
        stage.types(&format!("/model {name}"));
        stage.key(KeyCode::Enter);
        stage.answer("model/list", models.clone());
        let printed = stage.printed();
        assert_eq!(
            printed.contains("no model mock-modle is listed; did you mean mock-model?"),
            told,
            "{printed}"
        );
        assert!(stage.screen().contains(name), "{}", stage.screen());
    }
}

#[test]
fn an_answer_that_is_too_long_is_no_wait_for_ever() {
    let too_long =
        || TerminalEvent::Message(json!({ "id": null, "error": { "message": "longer than 64 MiB" } }));
    let start = SessionStart::Named(THREAD.to_owned(), ThreadChoices::default());
    let mut stage = Stage::with(SMALL, start, None);
    stage.answer("initialize", json!({}));
    // First the page of turns, then all of them.
    stage.on(too_long());
    stage.on(too_long());
    assert_eq!(stage.left, Some(false));
    assert!(stage.printed().contains("✗ longer than 64 MiB"), "{}", stage.printed());
    // Of an open thread only that message is missing.
    let mut stage = Stage::running(SMALL);
    stage.on(too_long());
    assert!(stage.left.is_none() && stage.printed().ends_with("longer than 64 MiB\n"), "{}", stage.printed());
}

#[test]
fn a_thread_that_goes_on_keeps_its_sandbox_and_its_approvals() {
    let resumed = |remote: Option<&str>| {
        let chosen = ThreadChoices { approvals: Some("never".to_owned()), ..ThreadChoices::default() };
        let mut stage = Stage::with(SMALL, SessionStart::Named(THREAD.to_owned(), chosen), None);
        stage.state.options.remote = remote.map(str::to_owned);
        stage.state.options.earlier = |thread| ThreadChoices {
            sandbox: (thread == THREAD).then(|| "workspace-write".to_owned()),
            approvals: Some("untrusted".to_owned()),
            ..ThreadChoices::default()
        };
        stage.answer("initialize", json!({}));
        stage.answer("thread/turns/list", json!({ "data": [], "nextCursor": null }));
        let params = &stage.last("thread/resume")["params"];
        (params["sandbox"].clone(), params["approvalPolicy"].clone())
    };
    assert_eq!(resumed(None), (json!("workspace-write"), json!("never")), "what was chosen now counts");
    assert_eq!(
        resumed(Some("ws://x")),
        (Value::Null, json!("never")),
        "a server elsewhere has threads of its own"
    );
}

#[test]
fn a_review_is_shown_once_and_without_what_the_reviewer_was_told() {
    let mut stage = Stage::running(SMALL);
    stage.item("completed", json!({ "type": "enteredReviewMode", "id": "r1", "review": "current changes" }));
    let told = json!([{ "type": "text", "text": "Provide prioritized findings." }]);
    stage.item("completed", json!({ "type": "userMessage", "id": "u2", "content": told }));
    stage.item("completed", json!({ "type": "exitedReviewMode", "id": "r1", "review": "Two findings." }));
    stage.item("completed", json!({ "type": "agentMessage", "id": "m1", "text": "Two findings." }));
    stage.item(
        "completed",
        json!({ "type": "userMessage", "id": "u3", "content": [{ "type": "text", "text": "mend them" }] }),
    );
    let printed = stage.printed();
    assert_eq!(printed.matches("Two findings.").count(), 1, "{printed}");
    assert!(!printed.contains("prioritized") && printed.contains("› mend them"), "{printed}");
}

#[test]
fn what_is_typed_before_the_thread_is_open_is_sent_then() {
    let mut stage = Stage::new(SMALL);
    stage.types("hello");
    stage.key(KeyCode::Enter);
    stage.answer("initialize", json!({}));
    stage.answer("thread/start", opened(json!([])));
    assert_eq!(stage.last("turn/start")["params"]["input"][0]["text"], "hello");
}

#[test]
fn a_turn_that_is_refused_gives_the_words_back() {
    let mut stage = Stage::open(SMALL);
    stage.types("hello");
    stage.key(KeyCode::Enter);
    stage.refuse("turn/start", "the key is missing");
    assert!(stage.printed().contains("✗ the key is missing"));
    assert_eq!(stage.state.editor.text(), "hello");
}

#[test]
fn failures_and_retries_are_one_line_each() {
    let mut stage = Stage::running(SMALL);
    let retry = json!({ "message": "Reconnecting... 1/5", "additionalDetails": "429: slow down" });
    stage.tell("error", json!({ "error": retry, "willRetry": true }));
    assert!(stage.printed().ends_with("\n! 429: slow down; trying again\n"));
    let again = json!({ "message": "Reconnecting... 2/5", "additionalDetails": "429: slow down" });
    stage.tell("error", json!({ "error": again, "willRetry": true }));
    assert_eq!(stage.printed().matches("trying again").count(), 1, "the same reason is told once");
    let error = json!({ "message": "429 Too Many Requests", "additionalDetails": null });
    stage.tell("error", json!({ "error": error, "willRetry": false }));
    let turn = json!({ "id": "turn-1", "status": "failed", "error": error });
    stage.tell("turn/completed", json!({ "turn": turn }));
    assert_eq!(stage.printed().matches("429").count(), 2, "{}", stage.printed());
}

#[test]
fn hostile_text_never_commands_the_terminal() {
    let loud = "a\u{1b}[2Jb\u{1b}]52;c;eA==\u{7}c\u{9b}31md\u{202e}e\r\u{8}f\u{7f}";
    let mut stage = Stage::running(SMALL);
    stage.tell(
        "item/agentMessage/delta",
        json!({ "itemId": "m1", "delta": format!("# {loud}\n```{loud}\n{loud}\n```\n{loud}") }),
    );
    stage.tell("item/reasoning/summaryTextDelta", json!({ "itemId": "r1", "delta": loud }));
    let mut running = command("inProgress");
    running["command"] = loud.into();
    stage.item("started", running.clone());
    stage.tell("item/commandExecution/outputDelta", json!({ "itemId": "c1", "delta": loud }));
    stage.tell(
        "turn/plan/updated",
        json!({ "explanation": loud, "plan": [{ "step": loud, "status": "pending" }] }),
    );
    stage.tell("error", json!({ "error": { "message": loud }, "willRetry": true }));
    stage.tell("thread/name/updated", json!({ "threadName": loud }));
    stage.on(TerminalEvent::Message(
        json!({ "method": "configWarning", "params": { "summary": loud, "details": loud } }),
    ));
    let mut question = command_question();
    (question["reason"], question["cwd"]) = (loud.into(), loud.into());
    stage.ask("item/commandExecution/requestApproval", question);
    let shown = stage.screen();
    running["status"] = "failed".into();
    running["aggregatedOutput"] = loud.into();
    stage.item("completed", running);
    stage.tell(
        "turn/completed",
        json!({ "turn": { "status": "failed", "error": { "message": loud, "additionalDetails": loud } } }),
    );
    let all = format!("{shown}{}{}", stage.printed(), stage.screen());
    let bad: Vec<char> = all.chars().filter(|c| *c != '\n' && crate::safe::is_obeyed(*c)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

/// A turn of the thread that has started an agent.
fn with_agent() -> Stage {
    let mut stage = Stage::running(SMALL);
    let states = json!({ AGENT: { "status": "running", "message": null } });
    stage.item(
        "completed",
        json!({
            "type": "collabAgentToolCall", "id": "a1", "tool": "spawnAgent", "status": "completed",
            "prompt": "look for the cause", "receiverThreadIds": [AGENT], "agentsStates": states,
        }),
    );
    stage.tell_of_agent("turn/started", json!({ "turn": { "id": "turn-9" } }));
    stage
}

/// Looks at the agent, whose turn has said this so far.
fn looking_at_agent(said: &str) -> Stage {
    let mut stage = with_agent();
    stage.types("/agents");
    stage.key(KeyCode::Enter);
    stage.types("1");
    let message = json!({ "type": "agentMessage", "id": "g1", "text": said });
    let turn = json!({ "id": "turn-9", "status": "inProgress", "items": [message] });
    stage.answer("thread/turns/list", json!({ "data": [turn], "nextCursor": null }));
    stage
}

#[test]
fn agents_are_seen_at_work_and_listed() {
    let mut stage = with_agent();
    assert!(stage.printed().contains("✓ start an agent: look for the cause"), "{}", stage.printed());
    stage.tell_of_agent("item/started", json!({ "item": command("inProgress") }));
    assert!(stage.screen().contains("• agent 02b2f2b2-0000 run sh test.sh"), "{}", stage.screen());
    assert!(!stage.printed().contains("sh test.sh"), "a child's work is not in the transcript");
    stage.end_turn("completed");
    assert!(stage.screen().contains("• agent"), "agents work on");
    stage.types("/agents");
    stage.key(KeyCode::Enter);
    assert_snapshot!("agents_80x24", stage.screen());
    stage.key(KeyCode::Esc);
    stage.tell_of_agent("turn/completed", json!({ "turn": { "id": "turn-9", "status": "completed" } }));
    assert!(!stage.screen().contains("• agent"));
}

#[test]
fn an_agent_is_looked_at_and_the_thread_is_gone_back_to() {
    let mut stage = looking_at_agent("I begin with the tests.");
    assert_eq!(stage.last("thread/turns/list")["params"]["threadId"], AGENT);
    stage.tell_of_agent("item/started", json!({ "item": command("inProgress") }));
    let delta = json!({ "itemId": "c1", "delta": "one test failed\n" });
    stage.tell_of_agent("item/commandExecution/outputDelta", delta);
    assert_snapshot!("agent_80x24", stage.screen());
    let before = stage.printed();
    stage.item("completed", json!({ "type": "agentMessage", "id": "m1", "text": "The thread goes on." }));
    stage.end_turn("completed");
    assert_eq!(stage.printed(), before, "what the thread does is kept for later");
    stage.tell_of_agent("item/completed", json!({ "item": command("completed") }));
    stage.tell_of_agent("turn/completed", json!({ "turn": { "id": "turn-9", "status": "completed" } }));
    let after = stage.printed();
    assert!(after.contains("✓ run sh test.sh") && after.contains("the agent has ended its turn"), "{after}");
    stage.key(KeyCode::Esc);
    let back = stage.printed().split("back in the thread\n").nth(1).expect("the thread").to_owned();
    assert!(back.contains("The thread goes on.") && back.contains("took"), "{back}");
    let stopped = stage.sent.iter().any(|message| message["method"] == "turn/interrupt");
    let status = stage.screen().lines().last().unwrap_or_default().to_owned();
    assert!(!stopped && status.starts_with("offline"), "{status}");
}

#[test]
fn what_is_typed_is_for_the_agent_that_is_looked_at() {
    let mut stage = looking_at_agent("I begin.");
    stage.types("leave the tests alone");
    stage.key(KeyCode::Enter);
    let steer = &stage.last("turn/steer")["params"];
    assert_eq!((&steer["threadId"], &steer["expectedTurnId"]), (&json!(AGENT), &json!("turn-9")));
    assert!(stage.screen().contains("sent: leave the tests alone"), "{}", stage.screen());
    stage.refuse("turn/steer", "the turn is over");
    assert_eq!(stage.state.editor.text(), "leave the tests alone", "it is given back");
    stage.tell_of_agent("turn/completed", json!({ "turn": { "id": "turn-9", "status": "completed" } }));
    stage.key(KeyCode::Enter);
    assert!(stage.printed().contains("this agent does nothing right now"), "{}", stage.printed());
    assert_eq!(stage.state.editor.text(), "leave the tests alone");
}

#[test]
fn an_agent_that_waits_is_marked_and_its_question_is_asked_wherever_one_looks() {
    let mut stage = with_agent();
    stage.tell_of_agent("item/started", json!({ "item": command("inProgress") }));
    let asked = command_question();
    stage.ask_in(AGENT, "item/commandExecution/requestApproval", asked.clone());
    assert!(
        stage.screen().contains("? agent 02b2f2b2-0000 waits for you: run sh test.sh"),
        "{}",
        stage.screen()
    );
    assert!(
        stage.printed().contains("asked by the agent 02b2f2b2-0000: look for the cause"),
        "{}",
        stage.printed()
    );

    stage.types("/agents");
    stage.key(KeyCode::Enter);
    stage.types("1");
    stage.answer("thread/turns/list", json!({ "data": [], "nextCursor": null }));
    assert_eq!(stage.printed().matches("May this command run?").count(), 2, "it is shown again");
    assert!(stage.screen().contains("· /agents goes back · waits for you"), "{}", stage.screen());

    // The question of the thread itself is not kept for later.
    let mut stage = looking_at_agent("I begin.");
    stage.ask("item/commandExecution/requestApproval", asked);
    assert!(stage.printed().contains("May this command run?"), "{}", stage.printed());
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
}

#[test]
fn a_command_of_ours_is_no_answer() {
    let mut stage = with_agent();
    stage.ask("item/commandExecution/requestApproval", command_question());
    stage.types("/agents");
    assert!(stage.sent.iter().all(|message| message["id"] != 7), "a and s are letters here");
    assert!(stage.screen().contains("/agents  look at an agent"), "{}", stage.screen());
    stage.key(KeyCode::Enter);
    assert!(stage.screen().contains("Look at which agent?"), "{}", stage.screen());
    stage.key(KeyCode::Esc);
    stage.types("/agnts");
    stage.key(KeyCode::Enter);
    assert!(stage.printed().contains("there is no command /agnts"), "{}", stage.printed());
    stage.types("/");
    stage.key(KeyCode::Esc);
    stage.key(KeyCode::Esc);
    assert!(stage.screen().contains("y yes"), "{}", stage.screen());
    stage.types("y");
    assert_eq!(stage.reply(), &json!({ "decision": "accept" }));
}

#[test]
fn of_a_long_absence_the_last_rows_are_kept() {
    let mut stage = looking_at_agent("I begin.");
    for number in 0..1_500 {
        let said =
            json!({ "type": "agentMessage", "id": format!("m{number}"), "text": format!("line {number}") });
        stage.item("completed", said);
    }
    stage.key(KeyCode::Esc);
    let back = stage.printed().split("back in the thread\n").nth(1).expect("the thread").to_owned();
    assert!(back.starts_with("… earlier rows\n") && back.contains("line 1499"), "{}", &back[..200]);
    assert!(back.lines().count() <= 2_000 && !back.contains("line 100\n"));
}

#[test]
fn a_terminal_without_a_region_is_told_in_lines() {
    let mut stage = Stage::running(SMALL);
    stage.state.options.style.can_redraw = false;
    stage.ask("item/commandExecution/requestApproval", command_question());
    assert!(stage.printed().contains("y yes"), "{}", stage.printed());
    stage.on(TerminalEvent::Typed("/status".to_owned()));
    assert!(stage.printed().contains("context left"), "{}", stage.printed());
    stage.on(TerminalEvent::Typed("please not".to_owned()));
    assert_eq!(stage.reply()["decision"]["respond"]["success"], false);
    stage.end_turn("completed");
    stage.on(TerminalEvent::Typed("/approvals".to_owned()));
    assert!(stage.printed().contains("4 never, workspace-write"), "{}", stage.printed());
    stage.on(TerminalEvent::Typed("4".to_owned()));
    stage.on(TerminalEvent::Typed("go".to_owned()));
    let params = &stage.last("turn/start")["params"];
    assert_eq!(
        (&params["approvalPolicy"], &params["sandboxPolicy"]["type"]),
        (&json!("never"), &json!("workspaceWrite"))
    );
}

#[test]
fn every_size_of_terminal_is_drawn() {
    for (columns, rows) in [(1, 1), (8, 3), (20, 6), (41, 10), (200, 50)] {
        let mut stage = whole_turn(SMALL);
        stage.ask("item/commandExecution/requestApproval", command_question());
        stage.size = ScreenSize { columns, rows };
        stage.on(TerminalEvent::Resized(stage.size));
        let region = stage.state.region();
        assert!(region.rows.len() <= rows.max(6), "{columns}x{rows}: {region:?}");
        assert!(region.rows.iter().all(|row| row.width() <= columns.max(8)), "{columns}x{rows}: {region:?}");
        assert!(region.cursor.0 < region.rows.len());
    }
}
