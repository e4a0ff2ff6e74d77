//! Requests of ours, and what their answers are for.

use protocol::{
    CommandExec, FuzzyFileSearchSessionStart, FuzzyFileSearchSessionStop, FuzzyFileSearchSessionUpdate,
    Initialize, Initialized, ModelList, NotificationMethod, RequestMethod, ReviewStart, ThreadCompactStart,
    ThreadList, ThreadResume, ThreadStart, ThreadTurnsList, ThreadUnsubscribe, TurnInterrupt, TurnStart,
    TurnSteer,
};
use serde_json::{Value, json};

use super::{TerminalEffect, TerminalState, ThreadChoices};

/// The request that a response belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Initialize,
    Open {
        /// Set for a thread that goes on: with the page of its last turns, where there is one.
        resumed: Option<Option<Value>>,
        choices: ThreadChoices,
    },
    /// The last turns of a thread that is to be opened.
    EarlierTurns {
        thread: String,
    },
    /// The last turns of an agent that the user looks at.
    AgentTurns {
        thread: String,
    },
    /// The last thread of this folder.
    FindLast,
    /// A thread by the beginning of its id, or by its name.
    Find {
        wanted: String,
        /// The ids that fit among the pages that came.
        fitting: Vec<String>,
        /// The names among them, for a miss.
        names: Vec<String>,
    },
    Threads,
    Models,
    /// The models, to see whether there is one of this name.
    ModelNamed(String),
    Turn {
        text: String,
        /// What the user chose for it, given back where the server does not take it.
        choices: ThreadChoices,
    },
    Steer {
        text: String,
    },
    /// Words for an agent.
    TellAgent {
        thread: String,
        text: String,
    },
    Interrupt,
    Review,
    Compact,
    Diff,
    Files,
    Unheard,
}

impl TerminalState {
    pub(super) fn ask<M: RequestMethod>(&mut self, asked: Asked, params: &Value) {
        let id = self.next_id;
        self.next_id += 1;
        self.calls.insert(id, asked);
        self.effects.push(TerminalEffect::Send(json!({ "id": id, "method": M::METHOD, "params": params })));
    }

    pub(super) fn reply(&mut self, id: &Value, result: &Value) {
        self.effects.push(TerminalEffect::Send(json!({ "id": id, "result": result })));
    }

    pub(super) fn refuse(&mut self, id: &Value, method: &str) {
        let message = format!("this client does not answer {method}");
        let error = json!({ "code": -32601, "message": message });
        self.effects.push(TerminalEffect::Send(json!({ "id": id, "error": error })));
    }

    /// `operations` lets approvals be answered with another command, or with words for the model.
    pub(super) fn introduce(&mut self) {
        let client =
            json!({ "name": "oarlock_terminal", "title": "Oarlock", "version": self.options.version });
        let delegation = json!({ "versions": [1], "features": ["operations"] });
        let capabilities = json!({ "experimentalApi": true, "hostDelegation": delegation });
        self.ask::<Initialize>(
            Asked::Initialize,
            &json!({ "clientInfo": client, "capabilities": capabilities }),
        );
    }

    pub(super) fn tell_initialized(&mut self) {
        self.effects.push(TerminalEffect::Send(json!({ "method": Initialized::METHOD })));
    }

    pub(super) fn ask_start(&mut self) {
        let choices = std::mem::take(&mut self.choices);
        let params = choices.start_params(&self.options.folder, self.options.remote.is_some());
        self.ask::<ThreadStart>(Asked::Open { resumed: None, choices }, &params);
    }

    /// Asks for the last turns first: the answer to `thread/resume` would have all of them, and they may be very many.
    pub(super) fn ask_resume(&mut self, thread: &str) {
        let params = json!({ "threadId": thread, "limit": EARLIER_TURNS, "itemsView": "full" });
        self.ask::<ThreadTurnsList>(Asked::EarlierTurns { thread: thread.to_owned() }, &params);
    }

    pub(super) fn ask_agent_turns(&mut self, thread: &str) {
        let params = json!({ "threadId": thread, "limit": EARLIER_TURNS, "itemsView": "full" });
        self.ask::<ThreadTurnsList>(Asked::AgentTurns { thread: thread.to_owned() }, &params);
    }

    /// Opens the thread. Without a page of turns, because a server knows no such pages, the answer has them all.
    pub(super) fn ask_open(&mut self, thread: &str, earlier: Option<Value>) {
        let choices = std::mem::take(&mut self.choices);
        let mut rules = choices.clone();
        if self.options.remote.is_none() {
            rules.keep_rules((self.options.earlier)(thread));
        }
        let mut params = rules.resume_params();
        params["threadId"] = thread.into();
        params["excludeTurns"] = earlier.is_some().into();
        // What is being done right now, with the patches that may be asked about.
        params["includeOpenItems"] = true.into();
        self.ask::<ThreadResume>(Asked::Open { resumed: Some(earlier), choices }, &params);
    }

    pub(super) fn ask_threads(&mut self, asked: Asked, limit: u32, of_folder: bool) {
        let mut params = json!({
            "limit": limit, "sortKey": "updated_at", "modelProviders": [], "sourceKinds": STARTED_BY_USERS,
        });
        if of_folder {
            params["cwd"] = self.folder().into();
        }
        self.ask::<ThreadList>(asked, &params);
    }

    /// One page of the threads that a name or the beginning of an id is looked for in.
    pub(super) fn ask_for_named(&mut self, wanted: String) {
        self.ask_for_more_named(Asked::Find { wanted, fitting: Vec::new(), names: Vec::new() }, None);
    }

    pub(super) fn ask_for_more_named(&mut self, asked: Asked, cursor: Option<&str>) {
        let params = json!({
            "limit": 100, "sortKey": "updated_at", "modelProviders": [], "sourceKinds": STARTED_BY_USERS, "cursor": cursor,
        });
        self.ask::<ThreadList>(asked, &params);
    }

    pub(super) fn ask_models(&mut self, asked: Asked) {
        self.ask::<ModelList>(asked, &json!({ "limit": 100 }));
    }

    pub(super) fn ask_turn(&mut self, thread: &str, text: &str) {
        // What is chosen from now on is for the turn after this one.
        let choices = std::mem::take(&mut self.choices);
        let mut params = choices.turn_params();
        params["threadId"] = thread.into();
        params["input"] = self.input_of(text);
        self.ask::<TurnStart>(Asked::Turn { text: text.to_owned(), choices }, &params);
    }

    pub(super) fn ask_steer(&mut self, thread: &str, turn: &str, text: &str) {
        let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": self.input_of(text) });
        self.ask::<TurnSteer>(Asked::Steer { text: text.to_owned() }, &params);
    }

    pub(super) fn ask_steer_agent(&mut self, thread: &str, turn: &str, text: &str) {
        let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": self.input_of(text) });
        self.ask::<TurnSteer>(Asked::TellAgent { thread: thread.to_owned(), text: text.to_owned() }, &params);
    }

    pub(super) fn tell_interrupt(&mut self, thread: &str, turn: &str) {
        self.ask::<TurnInterrupt>(Asked::Interrupt, &json!({ "threadId": thread, "turnId": turn }));
    }

    pub(super) fn ask_review(&mut self, thread: &str, target: &Value) {
        self.ask::<ReviewStart>(
            Asked::Review,
            &json!({ "threadId": thread, "target": target, "delivery": "inline" }),
        );
    }

    pub(super) fn ask_compact(&mut self, thread: &str) {
        self.ask::<ThreadCompactStart>(Asked::Compact, &json!({ "threadId": thread }));
    }

    pub(super) fn tell_unsubscribe(&mut self, thread: &str) {
        self.ask::<ThreadUnsubscribe>(Asked::Unheard, &json!({ "threadId": thread }));
    }

    /// By git itself, in a sandbox that writes nothing, and without the programs that a repository may name.
    pub(super) fn ask_diff(&mut self) {
        let sandbox = json!({ "type": "readOnly" });
        let params = json!({ "command": ["sh", "-c", DIFF], "cwd": self.folder(), "sandboxPolicy": sandbox });
        self.ask::<CommandExec>(Asked::Diff, &params);
    }

    pub(super) fn ask_files_open(&mut self) {
        let params = json!({ "sessionId": FILE_SEARCH, "roots": [self.folder()] });
        self.ask::<FuzzyFileSearchSessionStart>(Asked::Files, &params);
    }

    pub(super) fn ask_files(&mut self, query: &str) {
        let params = json!({ "sessionId": FILE_SEARCH, "query": query });
        self.ask::<FuzzyFileSearchSessionUpdate>(Asked::Files, &params);
    }

    pub(super) fn tell_files_closed(&mut self) {
        self.ask::<FuzzyFileSearchSessionStop>(Asked::Unheard, &json!({ "sessionId": FILE_SEARCH }));
    }
}

/// Uncommitted changes: against the empty tree where there is no commit yet, and untracked files by name.
const DIFF: &str = r#"
git="git -c core.fsmonitor=false --no-pager"
base=$($git rev-parse -q --verify HEAD) || base=$($git hash-object -t tree /dev/null)
$git diff --no-ext-diff --no-textconv "$base" -- || exit
$git ls-files --others --exclude-standard | sed 's/^/untracked: /'
"#;

/// Turns of a resumed thread that are shown again.
pub(super) const EARLIER_TURNS: usize = 5;

/// Everything but children of other threads.
const STARTED_BY_USERS: [&str; 5] = ["cli", "vscode", "exec", "appServer", "unknown"];

/// One search at a time.
pub(super) const FILE_SEARCH: &str = "oarlock-terminal";
