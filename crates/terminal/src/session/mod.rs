//! The session: what the user does and what the server says come in, and what is to be sent and shown comes out. It
//! has no clock, no terminal and no connection.

mod agents;
mod answers;
mod approval;
mod calls;
mod facts;
mod form;
mod images;
mod input;
mod items;
mod live;
mod notifications;
mod popup;
mod prompts;
mod questions;
mod slash;
mod start;
mod view;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::KeyEvent;
use serde_json::Value;

pub use self::prompts::PromptTemplate;
pub use self::start::{SessionStart, ThreadChoices};

use self::agents::{ChildAgent, ShownAgent};
use self::calls::Asked;
use self::facts::{OpenThread, RunningTurn, Spending};
use self::items::AskedPatch;
use self::live::ShownItems;
use self::popup::Popup;
use self::questions::ShownQuestion;
use crate::editor::{InputEditor, InputHistory};
use crate::glyphs::Glyphs;
use crate::rows::{Ink, ScreenRow, rows};
use crate::screen::{ScreenSize, ScreenStyle};

/// The state that a session starts from.
#[derive(Debug)]
pub struct SessionOptions {
    pub version: String,
    /// Where the user is. A remote server may know nothing of it.
    pub folder: String,
    pub start: SessionStart,
    /// Sent as soon as the thread is open.
    pub prompt: Option<String>,
    pub images: Vec<PathBuf>,
    /// The address, for a server that was not started for this session.
    pub remote: Option<String>,
    /// The command line that resumes a thread, without its id.
    pub resume_command: String,
    pub style: ScreenStyle,
    pub size: ScreenSize,
    /// Inputs of earlier sessions, the oldest first.
    pub history: Vec<String>,
    /// Texts of the user, sent with `/prompts:NAME`.
    pub prompts: Vec<PromptTemplate>,
    /// Whether the path is a file on this machine.
    pub is_file: fn(&std::path::Path) -> bool,
    /// The image at the path as a `data:` address, or why there is none.
    pub image_url: fn(&std::path::Path) -> Result<String, String>,
    /// The folder that `~` stands for.
    pub home: Option<PathBuf>,
    /// The word among those known that is most like the one that was typed.
    pub nearest: fn(&str, &[String]) -> Option<String>,
    /// The sandbox and the approvals that a stored thread of this machine last had.
    pub earlier: fn(&str) -> ThreadChoices,
}

#[derive(Debug, Clone)]
pub(crate) enum TerminalEvent {
    Key(KeyEvent),
    Paste(String),
    /// A whole line, from a terminal that knows nothing else.
    Typed(String),
    Resized(ScreenSize),
    /// Time has passed.
    Tick,
    Message(Value),
    /// The server is gone, and why.
    Lost(String),
    /// A signal asks the process to end.
    Stop,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TerminalEffect {
    Send(Value),
    Print(Vec<ScreenRow>),
    /// To be kept for later sessions.
    Remember(String),
    /// The process is to be put to sleep, as the shell's users expect of Ctrl-Z.
    Sleep,
    Leave {
        is_good: bool,
    },
}

#[derive(Debug)]
pub(crate) struct TerminalState {
    options: SessionOptions,
    glyphs: Glyphs,
    now: Duration,
    effects: Vec<TerminalEffect>,
    calls: BTreeMap<i64, Asked>,
    next_id: i64,
    thread: Option<OpenThread>,
    /// Settings that the user chose for the next turns.
    choices: ThreadChoices,
    turn: Option<RunningTurn>,
    /// Why the last request was sent again.
    retry_reason: Option<String>,
    items: ShownItems,
    spent: Spending,
    editor: InputEditor,
    popup: Option<Popup>,
    is_searching_files: bool,
    questions: VecDeque<ShownQuestion>,
    /// To be sent when the turn has ended.
    queue: VecDeque<String>,
    /// All changes of the turn.
    diff: String,
    /// The changes of patches that may be asked about, by their threads and items.
    asked_patches: BTreeMap<(String, String), AskedPatch>,
    /// Items that the user was asked about in this turn: what is refused then needs no way out.
    asked_items: BTreeSet<String>,
    /// Child agents by their thread ids.
    agents: BTreeMap<String, ChildAgent>,
    /// The agent that the user looks at, in place of the thread.
    shown_agent: Option<ShownAgent>,
    /// Rows of the thread that came meanwhile, the oldest first.
    aside: VecDeque<ScreenRow>,
    /// Rows are printed later, when the user looks at the thread again.
    is_aside: bool,
    last_key: Option<Duration>,
    /// When leaving was asked for the first time.
    wants_to_leave: Option<Duration>,
    is_over: bool,
}

/// How long the first Ctrl-C counts.
const LEAVE_TWICE: Duration = Duration::from_secs(2);

impl TerminalState {
    pub(crate) fn new(mut options: SessionOptions) -> Self {
        let history = InputHistory::new(std::mem::take(&mut options.history));
        let choices = options.start.choices().clone();
        let mut state = Self {
            glyphs: Glyphs::new(options.style.is_ascii),
            options,
            now: Duration::ZERO,
            effects: Vec::new(),
            calls: BTreeMap::new(),
            next_id: 0,
            thread: None,
            choices,
            turn: None,
            retry_reason: None,
            items: ShownItems::default(),
            spent: Spending::default(),
            editor: InputEditor::default(),
            popup: None,
            is_searching_files: false,
            questions: VecDeque::new(),
            queue: VecDeque::new(),
            diff: String::new(),
            asked_patches: BTreeMap::new(),
            asked_items: BTreeSet::new(),
            agents: BTreeMap::new(),
            shown_agent: None,
            aside: VecDeque::new(),
            is_aside: false,
            last_key: None,
            wants_to_leave: None,
            is_over: false,
        };
        state.editor.history = history;
        state
    }

    /// The first effects.
    pub(crate) fn begin(&mut self) -> Vec<TerminalEffect> {
        self.introduce();
        std::mem::take(&mut self.effects)
    }

    pub(crate) fn on(&mut self, now: Duration, event: TerminalEvent) -> Vec<TerminalEffect> {
        self.now = now;
        if self.wants_to_leave.is_some_and(|first| now.saturating_sub(first) > LEAVE_TWICE) {
            self.wants_to_leave = None;
        }
        match event {
            TerminalEvent::Key(key) => self.key(key),
            TerminalEvent::Paste(text) => self.paste(&text),
            TerminalEvent::Typed(line) => self.typed(&line),
            TerminalEvent::Resized(size) => self.options.size = size,
            TerminalEvent::Tick => {}
            TerminalEvent::Message(message) => self.message(message),
            TerminalEvent::Lost(why) => self.lost(&why),
            TerminalEvent::Stop => self.leave(),
        }
        std::mem::take(&mut self.effects)
    }

    /// Rows that stay, as one piece: an empty line comes before them.
    fn say(&mut self, rows: Vec<ScreenRow>) {
        let mut spaced = vec![ScreenRow::default()];
        spaced.extend(rows);
        self.print(spaced);
    }

    fn print(&mut self, rows: Vec<ScreenRow>) {
        if self.is_aside {
            self.keep_for_later(rows);
        } else if let Some(TerminalEffect::Print(earlier)) = self.effects.last_mut() {
            earlier.extend(rows);
        } else if !rows.is_empty() {
            self.effects.push(TerminalEffect::Print(rows));
        }
    }

    fn note(&mut self, text: &str) {
        self.say(rows(Ink::Faint, &crate::safe::readable(text)));
    }

    fn trouble(&mut self, text: &str) {
        let text = crate::safe::readable(text);
        let mark = self.glyphs.bad;
        let mut told = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let head = if number == 0 { format!("{mark} ") } else { "  ".to_owned() };
            told.push(ScreenRow::new(Ink::Bad, format!("{head}{line}")).hanging(2));
        }
        self.say(told);
    }

    /// The server is gone: nothing more can be done here.
    fn lost(&mut self, why: &str) {
        if self.is_over {
            return;
        }
        self.show_thread();
        self.flush_live();
        self.trouble(&format!("the server is gone: {why}"));
        self.goodbye();
        self.is_over = true;
        self.effects.push(TerminalEffect::Leave { is_good: false });
    }

    fn leave(&mut self) {
        if self.is_over {
            return;
        }
        self.show_thread();
        self.flush_live();
        // A turn of a server elsewhere goes on without us.
        if let (None, Some((thread, turn))) = (&self.options.remote, self.running()) {
            self.tell_interrupt(&thread, &turn);
        }
        self.goodbye();
        self.is_over = true;
        self.effects.push(TerminalEffect::Leave { is_good: true });
    }

    /// How to go on.
    fn goodbye(&mut self) {
        let Some(thread) = &self.thread else { return };
        if !thread.has_turns {
            return;
        }
        let short = thread.short_id().to_owned();
        let row = ScreenRow::new(Ink::Faint, format!("thread {short}; go on with: "))
            .with(Ink::Plain, format!("{} {short}", self.options.resume_command));
        self.say(vec![row]);
    }
}
