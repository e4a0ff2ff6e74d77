//! Commands that begin with a slash.

use serde_json::json;

use super::TerminalState;
use super::calls::Asked;
use super::facts::{RunningTurn, thousands};
use super::popup::{PickAction, PickEntry};
use crate::rows::{Ink, ScreenRow};
use crate::safe::one_line;

#[derive(Debug)]
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    run: fn(&mut TerminalState, &str),
}

pub(super) const COMMANDS: &[SlashCommand] = &[
    SlashCommand { name: "/model", about: "choose the model, or name one", run: TerminalState::slash_model },
    SlashCommand {
        name: "/approvals",
        about: "choose what is asked about and what the sandbox allows",
        run: TerminalState::slash_approvals,
    },
    SlashCommand {
        name: "/review",
        about: "have the uncommitted changes reviewed, or what you say",
        run: TerminalState::slash_review,
    },
    SlashCommand { name: "/diff", about: "show the uncommitted changes", run: TerminalState::slash_diff },
    SlashCommand {
        name: "/compact",
        about: "shorten the history to a summary",
        run: TerminalState::slash_compact,
    },
    SlashCommand { name: "/resume", about: "go on with another thread", run: TerminalState::slash_resume },
    SlashCommand {
        name: "/agents",
        about: "look at an agent of this thread, and back",
        run: TerminalState::slash_agents,
    },
    SlashCommand { name: "/status", about: "show what is in use", run: TerminalState::slash_status },
    SlashCommand { name: "/new", about: "begin a new thread", run: TerminalState::slash_new },
    SlashCommand { name: "/help", about: "show keys and commands", run: TerminalState::slash_help },
    SlashCommand { name: "/quit", about: "leave", run: TerminalState::slash_quit },
];

const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while a turn runs, tell it to the agent at once"),
    ("Tab", "while a turn runs, keep it for afterwards"),
    ("Alt-Enter, Ctrl-J", "another line"),
    ("Esc", "stop the turn"),
    ("Up, Down, Ctrl-R", "earlier input, and a search in it"),
    ("@", "find a file"),
    ("Ctrl-C twice, Ctrl-D", "leave"),
];

impl TerminalState {
    /// Whether the line is a command.
    pub(super) fn slash(&mut self, line: &str) -> bool {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if let Some(command) = COMMANDS.iter().find(|command| command.name == name) {
            (command.run)(self, rest.trim());
            return true;
        }
        // A path is no command.
        let is_word = name.len() > 1 && name[1..].chars().all(|c| c.is_ascii_lowercase());
        if !is_word {
            return false;
        }
        let near = COMMANDS.iter().find(|command| command.name.starts_with(&name[..2]));
        let near = near.map(|command| format!("; did you mean {}?", command.name)).unwrap_or_default();
        self.trouble(&format!("there is no command {name}{near}"));
        true
    }

    fn slash_model(&mut self, name: &str) {
        match name {
            "" => self.ask_models(Asked::Models),
            name => {
                self.set_model(name);
                self.ask_models(Asked::ModelNamed(name.to_owned()));
            }
        }
    }

    pub(super) fn set_model(&mut self, name: &str) {
        self.choices.model = Some(name.to_owned());
        if let Some(thread) = &mut self.thread {
            name.clone_into(&mut thread.model);
        }
        self.note(&format!("model {} from the next turn on", one_line(name)));
    }

    fn slash_approvals(&mut self, policy: &str) {
        const CHOICES: &[(&str, &str, &str)] = &[
            ("untrusted", "read-only", "nothing is written; asks about commands"),
            ("on-request", "read-only", "nothing is written unless you agree"),
            ("on-request", "workspace-write", "writes here; asks about what goes beyond"),
            ("never", "workspace-write", "writes here; what goes beyond is refused"),
            ("never", "danger-full-access", "no sandbox and no questions"),
        ];
        if let Some((policy, _, _)) = CHOICES.iter().find(|(known, _, _)| *known == policy) {
            self.set_approvals(policy, "");
            return;
        }
        let entry = |(policy, sandbox, about): &(&'static str, &'static str, &str)| PickEntry {
            label: format!("{policy}, {sandbox}"),
            detail: (*about).to_owned(),
            action: PickAction::Approvals { policy, sandbox },
        };
        let now = self.thread.as_ref().map(|thread| (thread.approvals.as_str(), thread.sandbox.as_str()));
        let at = CHOICES.iter().position(|(policy, sandbox, _)| now == Some((policy, sandbox)));
        self.pick("What may the agent do?", CHOICES.iter().map(entry).collect());
        if let (Some(popup), Some(at)) = (&mut self.popup, at) {
            popup.at = at;
        }
    }

    pub(super) fn set_approvals(&mut self, policy: &str, sandbox: &str) {
        self.choices.approvals = Some(policy.to_owned());
        if !sandbox.is_empty() {
            self.choices.sandbox = Some(sandbox.to_owned());
        }
        let mut told = format!("approvals {policy}");
        if let Some(thread) = &mut self.thread {
            policy.clone_into(&mut thread.approvals);
            if !sandbox.is_empty() {
                sandbox.clone_into(&mut thread.sandbox);
                told = format!("{told}, sandbox {sandbox}");
            }
        }
        self.note(&format!("{told} from the next turn on"));
    }

    fn slash_review(&mut self, what: &str) {
        let Some(thread) = self.idle_thread("/review") else { return };
        let target = match what {
            "" => json!({ "type": "uncommittedChanges" }),
            what => match what.strip_prefix("--base ") {
                Some(branch) => json!({ "type": "baseBranch", "branch": branch.trim() }),
                None => json!({ "type": "custom", "instructions": what }),
            },
        };
        self.turn = Some(RunningTurn { id: None, began: self.now, is_stopping: false });
        self.ask_review(&thread, &target);
    }

    fn slash_diff(&mut self, _rest: &str) {
        self.ask_diff();
    }

    fn slash_compact(&mut self, _rest: &str) {
        let Some(thread) = self.idle_thread("/compact") else { return };
        self.ask_compact(&thread);
    }

    fn slash_resume(&mut self, id: &str) {
        if self.idle_thread("/resume").is_none() {
            return;
        }
        match id {
            "" => self.ask_threads(Asked::Threads, 20, self.options.remote.is_none()),
            id if id.len() == 36 => self.ask_resume(id),
            id => self.ask_for_named(id.to_owned()),
        }
    }

    fn slash_new(&mut self, _rest: &str) {
        if self.thread.is_some() && self.idle_thread("/new").is_none() {
            return;
        }
        self.choices = self.options.start.choices().clone();
        self.ask_start();
    }

    fn slash_status(&mut self, _rest: &str) {
        let Some(thread) = &self.thread else {
            self.note("no thread is open yet");
            return;
        };
        let left = self.spent.context_left().map_or_else(|| "unknown".to_owned(), |left| format!("{left}%"));
        let tokens = format!("{} in, {} out", thousands(self.spent.input), thousands(self.spent.output));
        let facts = [
            ("thread", thread.id.clone()),
            ("name", thread.name.clone().unwrap_or_default()),
            ("folder", thread.folder.clone()),
            ("model", format!("{} ({})", thread.model, thread.provider)),
            ("approvals", thread.approvals.clone()),
            ("sandbox", thread.sandbox.clone()),
            ("server", self.options.remote.clone().unwrap_or_else(|| "of this session".to_owned())),
            ("context left", left),
            ("tokens", tokens),
            ("cost", self.spent.money().unwrap_or_default()),
        ];
        let row = |(name, value): &(&str, String)| {
            ScreenRow::new(Ink::Faint, format!("{name:<13}")).with(Ink::Plain, one_line(value)).hanging(13)
        };
        let shown: Vec<ScreenRow> = facts.iter().filter(|(_, value)| !value.is_empty()).map(row).collect();
        self.say(shown);
    }

    fn slash_help(&mut self, _rest: &str) {
        let commands = COMMANDS.iter().map(|command| (command.name, command.about));
        let row = |(name, about): (&str, &str)| {
            ScreenRow::plain(format!("{name:<21}")).with(Ink::Faint, about).hanging(21)
        };
        let mut shown: Vec<ScreenRow> = KEYS.iter().copied().map(row).collect();
        shown.push(ScreenRow::default());
        shown.extend(commands.map(row));
        self.say(shown);
    }

    fn slash_quit(&mut self, _rest: &str) {
        self.leave();
    }

    /// The thread, if no turn runs in it.
    fn idle_thread(&mut self, command: &str) -> Option<String> {
        if self.turn.is_some() {
            self.trouble(&format!("{command} has to wait until the turn has ended; Esc stops it"));
            return None;
        }
        self.thread.as_ref().map(|thread| thread.id.clone())
    }
}
