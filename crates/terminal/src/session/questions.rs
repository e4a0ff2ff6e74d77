//! Questions of the server, one after the other.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use protocol::{
    CommandExecutionRequestApproval, FileChangeRequestApproval, McpServerElicitationAsk,
    PermissionsRequestApproval, RequestMethod, ToolRequestApproval, ToolRequestUserInput,
};
use serde_json::Value;

use super::TerminalState;
use super::approval::{ApprovalMode, AskedApproval};
use super::form::Form;
use crate::rows::{Ink, ScreenRow};

/// Keys that were on their way when a question appeared are not for it.
const HOLD_KEYS: Duration = Duration::from_millis(700);

#[derive(Debug)]
pub(super) struct ShownQuestion {
    pub(super) id: Value,
    pub(super) kind: QuestionKind,
    /// The thread it belongs to, and the turn: ours, or those of an agent.
    pub(super) thread: String,
    turn: Option<String>,
    /// What is asked about a patch whose changes were not told yet.
    unseen_patch: Option<Value>,
    /// The unsent input, restored after the question.
    stash: String,
    /// From when on keys count. None until the question is shown.
    counts_from: Option<Duration>,
}

#[derive(Debug)]
pub(super) enum QuestionKind {
    Approval(AskedApproval),
    Form(Form),
}

impl TerminalState {
    pub(super) fn asked(&mut self, id: Value, method: &str, params: &Value) {
        let kind = match method {
            CommandExecutionRequestApproval::METHOD => QuestionKind::Approval(self.command_approval(params)),
            FileChangeRequestApproval::METHOD => QuestionKind::Approval(self.patch_approval(params)),
            ToolRequestApproval::METHOD => QuestionKind::Approval(self.tool_approval(params)),
            PermissionsRequestApproval::METHOD => QuestionKind::Approval(self.permissions_approval(params)),
            McpServerElicitationAsk::METHOD if params["mode"].as_str() == Some("url") => {
                QuestionKind::Approval(self.address_approval(params))
            }
            McpServerElicitationAsk::METHOD => QuestionKind::Form(Form::of_elicitation(params)),
            ToolRequestUserInput::METHOD => QuestionKind::Form(Form::of_user_input(params)),
            _ => {
                self.refuse(&id, method);
                return;
            }
        };
        let mut kind = kind;
        if let QuestionKind::Approval(approval) = &mut kind {
            approval.shown.extend(self.asker_row(params));
        }
        let unseen_patch = (method == FileChangeRequestApproval::METHOD && !self.knows_patch(params))
            .then(|| params.clone());
        self.asked_items.extend(params["itemId"].as_str().map(str::to_owned));
        // After a reconnect the same question comes again.
        self.questions.retain(|open| open.id != id);
        let thread = params["threadId"].as_str().map_or_else(|| self.own_id(), str::to_owned);
        let turn = params["turnId"].as_str().map(str::to_owned);
        let (stash, counts_from) = (String::new(), None);
        self.questions.push_back(ShownQuestion { id, kind, thread, turn, unseen_patch, stash, counts_from });
        self.show_question();
    }

    /// Says which agent asks, where it is not the thread itself.
    fn asker_row(&self, params: &Value) -> Option<ScreenRow> {
        let thread = params["threadId"].as_str().filter(|_| !self.is_ours(&params["threadId"]))?;
        let who = format!("  asked by the agent {}", self.agent_name(thread));
        Some(ScreenRow::new(Ink::Faint, who).hanging(2))
    }

    /// Whoever opens a thread is asked before the items are told that are open: then the question is shown again, whole.
    pub(super) fn show_late_patch(&mut self, thread: &str, item: &Value) {
        let is_about_it = |open: &ShownQuestion| {
            open.thread == thread && open.unseen_patch.as_ref().is_some_and(|asked| asked["itemId"] == *item)
        };
        let Some(at) = self.questions.iter().position(is_about_it) else { return };
        let Some(params) = self.questions[at].unseen_patch.take() else { return };
        let mut approval = self.patch_approval(&params);
        approval.shown.extend(self.asker_row(&params));
        let open = &mut self.questions[at];
        if open.counts_from.is_some() {
            // Keys that were meant for what was shown before are not for this.
            open.counts_from = Some(self.now + HOLD_KEYS);
            let shown = approval.shown.clone();
            open.kind = QuestionKind::Approval(approval);
            self.print_now(|state| {
                state.say(shown);
                state.print_for_dumb(Self::question_rows);
            });
        } else {
            open.kind = QuestionKind::Approval(approval);
        }
    }

    /// Shows the first question, unless it is shown already.
    fn show_question(&mut self) {
        let (now, last_key) = (self.now, self.last_key);
        let Some(open) = self.questions.front_mut().filter(|open| open.counts_from.is_none()) else { return };
        let is_typing = last_key.is_some_and(|last| now.saturating_sub(last) < HOLD_KEYS);
        open.counts_from = Some(if is_typing { now + HOLD_KEYS } else { now });
        open.stash = self.editor.take();
        let shown = match &mut open.kind {
            QuestionKind::Approval(approval) => approval.shown.clone(),
            QuestionKind::Form(form) => form.begin(),
        };
        self.popup = None;
        self.set_secret();
        self.print_now(|state| {
            state.say(shown);
            state.print_for_dumb(Self::question_rows);
        });
    }

    /// Shows the open question of an agent again, for whoever looks at the agent.
    pub(super) fn repeat_question(&mut self, thread: &str) {
        let open = self.questions.front().filter(|open| open.thread == thread);
        if let Some(ShownQuestion { kind: QuestionKind::Approval(approval), .. }) = open {
            let shown = approval.shown.clone();
            self.say(shown);
        }
    }

    /// Where there is no region, what would be in it.
    pub(super) fn print_for_dumb(&mut self, shown: fn(&Self) -> Vec<ScreenRow>) {
        if !self.options.style.can_redraw {
            self.print(shown(self));
        }
    }

    fn set_secret(&mut self) {
        let form = self.questions.front().and_then(|open| match &open.kind {
            QuestionKind::Form(form) => Some(form),
            QuestionKind::Approval(_) => None,
        });
        self.editor.is_secret = form.is_some_and(Form::is_secret);
    }

    /// Answers the first question and goes on to the next.
    fn answer(&mut self, reply: &Value, told: ScreenRow) {
        let Some(open) = self.questions.pop_front() else { return };
        self.reply(&open.id, reply);
        self.print(vec![told]);
        self.after_question(&open);
    }

    /// Puts text before what is typed and not sent. While a question is shown, the line belongs to its answer.
    pub(super) fn put_before_input(&mut self, text: &str) {
        let joined = |typed: &str| match typed.is_empty() {
            true => text.to_owned(),
            false => format!("{text}\n{typed}"),
        };
        match self.questions.front_mut().filter(|open| open.counts_from.is_some()) {
            Some(open) => open.stash = joined(&open.stash),
            None => {
                let typed = joined(self.editor.text());
                self.editor.set(&typed);
            }
        }
    }

    fn after_question(&mut self, open: &ShownQuestion) {
        self.editor.is_secret = false;
        self.editor.take();
        self.editor.set(&open.stash);
        self.show_question();
    }

    /// Answered elsewhere, or no longer of interest.
    pub(super) fn withdrawn(&mut self, id: &Value) {
        let Some(at) = self.questions.iter().position(|open| open.id == *id) else { return };
        let Some(open) = self.questions.remove(at) else { return };
        if at == 0 && open.counts_from.is_some() {
            let told = ScreenRow::new(Ink::Faint, "  answered elsewhere, or no longer needed");
            self.print_now(|state| state.print(vec![told]));
            self.after_question(&open);
        }
    }

    /// The turn of this thread is over. Questions of other threads stay.
    pub(super) fn withdraw_all(&mut self, thread: &str) {
        let over = self.questions.iter().rev().filter(|open| open.thread == thread);
        let ids: Vec<Value> = over.map(|open| open.id.clone()).collect();
        ids.iter().for_each(|id| self.withdrawn(id));
    }

    /// Whether the key was for the question.
    pub(super) fn question_key(&mut self, key: KeyEvent) -> bool {
        let now = self.now;
        // Leaving is always possible.
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return false;
        }
        let Some(open) = self.questions.front_mut() else { return false };
        if open.counts_from.is_none_or(|from| now < from) {
            if let (KeyCode::Char(c), false) = (key.code, key.modifiers.contains(KeyModifiers::CONTROL)) {
                open.stash.push(c);
            }
            return true;
        }
        match &mut open.kind {
            QuestionKind::Approval(approval) => match approval.mode {
                ApprovalMode::Keys => self.approval_key(key),
                ApprovalMode::Editing | ApprovalMode::Telling | ApprovalMode::Command => {
                    self.approval_text_key(key)
                }
            },
            QuestionKind::Form(_) => self.form_key(key),
        }
    }

    fn approval(&mut self) -> Option<&mut AskedApproval> {
        match self.questions.front_mut().map(|open| &mut open.kind) {
            Some(QuestionKind::Approval(approval)) => Some(approval),
            _ => None,
        }
    }

    fn approval_key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(approval) = self.approval() else { return false };
        match key.code {
            KeyCode::Char(c) if !control => self.approval_letter(c),
            KeyCode::Esc => {
                let (cancel, decline) = (approval.cancel.clone(), approval.decline.clone());
                self.stop_by_question(cancel, decline);
            }
            _ => {}
        }
        true
    }

    /// No, and the end of the turn: in one answer where there is one that says both.
    fn stop_by_question(&mut self, cancel: Option<Value>, decline: Option<Value>) {
        let told = ScreenRow::new(Ink::Bad, "  no, and stop");
        if let Some(reply) = cancel {
            self.answer(&reply, told);
            return;
        }
        let Some((reply, open)) = decline.zip(self.questions.front()) else { return };
        let (thread, turn) = (open.thread.clone(), open.turn.clone());
        self.answer(&reply, told);
        match turn {
            Some(turn) if thread != self.own_id() => self.tell_interrupt(&thread, &turn),
            _ => self.interrupt(),
        }
    }

    fn approval_letter(&mut self, letter: char) {
        let Some(approval) = self.approval() else { return };
        let offer = approval.offers.iter().find(|offer| offer.key == letter.to_ascii_lowercase()).cloned();
        let (edit, can_tell) = (approval.edit.clone(), approval.can_tell());
        match (offer, letter) {
            (Some(offer), _) => {
                let ink = if offer.is_yes { Ink::Good } else { Ink::Bad };
                self.answer(&offer.reply, ScreenRow::new(ink, format!("  {}", offer.told)));
            }
            (None, 'e' | 'E') if edit.is_some() => {
                approval.mode = ApprovalMode::Editing;
                self.editor.set(&edit.unwrap_or_default().script);
            }
            // Else the letters of a command would be answers.
            (None, '/') => {
                approval.mode = ApprovalMode::Command;
                self.editor.set("/");
                self.refresh_popup();
            }
            (None, 'w' | 'W') if can_tell => approval.mode = ApprovalMode::Telling,
            // Whoever begins to write means a word to the model.
            (None, letter) if can_tell && letter.is_alphanumeric() => {
                approval.mode = ApprovalMode::Telling;
                self.editor.insert(letter.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
    }

    fn approval_text_key(&mut self, key: KeyEvent) -> bool {
        let is_line_break = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Esc => {
                self.editor.take();
                if let Some(approval) = self.approval() {
                    approval.mode = ApprovalMode::Keys;
                }
                true
            }
            KeyCode::Enter if !is_line_break => {
                self.approval_text();
                true
            }
            // Nothing here is for after the turn.
            KeyCode::Tab => true,
            _ => false,
        }
    }

    fn approval_text(&mut self) {
        let text = self.editor.text().trim().to_owned();
        let Some(approval) = self.approval() else { return };
        if text.is_empty() {
            approval.mode = ApprovalMode::Keys;
            return;
        }
        match approval.mode {
            ApprovalMode::Editing => {
                let Some(reply) = approval.with_command(&text) else { return };
                let told = crate::safe::escaped(&text).replace('\n', "\\n");
                self.answer(
                    &reply,
                    ScreenRow::new(Ink::Good, format!("  yes, but run: {told}")).hanging(4).literal(),
                );
            }
            ApprovalMode::Telling => self.tell_instead(&text),
            ApprovalMode::Command => self.command_meanwhile(&text),
            ApprovalMode::Keys => {}
        }
    }

    /// A command of ours, while the question stays.
    fn command_meanwhile(&mut self, line: &str) {
        if let Some(approval) = self.approval() {
            approval.mode = ApprovalMode::Keys;
        }
        self.editor.take();
        self.popup = None;
        if !self.slash(line) {
            self.note("only a command of /help can be given while a question waits");
        }
    }

    pub(super) fn is_typing_command(&self) -> bool {
        let open = self.questions.front().map(|open| &open.kind);
        matches!(open, Some(QuestionKind::Approval(approval)) if approval.mode == ApprovalMode::Command)
    }

    fn tell_instead(&mut self, text: &str) {
        let Some(approval) = self.approval() else { return };
        let reply = approval.with_words(text);
        let told =
            ScreenRow::new(Ink::Bad, "  no: ").with(Ink::Plain, crate::safe::one_line(text)).hanging(4);
        match (reply, approval.decline.clone(), self.running()) {
            (Some(reply), _, _) => self.answer(&reply, told),
            (None, Some(reply), Some((thread, turn))) => {
                self.answer(&reply, told);
                self.items.sent.push_back(text.to_owned());
                self.ask_steer(&thread, &turn, text);
            }
            _ => {}
        }
    }

    fn form_key(&mut self, key: KeyEvent) -> bool {
        let is_line_break = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Esc => self.form_declined(),
            KeyCode::Enter if !is_line_break => self.form_enter(),
            _ => return false,
        }
        true
    }

    fn form_declined(&mut self) {
        let Some(QuestionKind::Form(form)) = self.questions.front().map(|open| &open.kind) else { return };
        let reply = form.declined();
        self.answer(&reply, ScreenRow::new(Ink::Bad, "  not answered"));
    }

    fn form_enter(&mut self) {
        let text = self.editor.take();
        let Some(QuestionKind::Form(form)) = self.questions.front_mut().map(|open| &mut open.kind) else {
            return;
        };
        match form.enter(text.trim()) {
            Ok((echo, next)) => {
                let reply = next.is_empty().then(|| form.reply());
                let echo = ScreenRow::new(Ink::Good, format!("  {echo}")).hanging(2);
                match reply {
                    Some(reply) => self.answer(&reply, echo),
                    None => {
                        self.print(vec![echo]);
                        self.say(next);
                        self.set_secret();
                        self.print_for_dumb(Self::question_rows);
                    }
                }
            }
            Err(why) => self.print(vec![ScreenRow::new(Ink::Careful, format!("  {why}"))]),
        }
    }

    /// A whole line, where keys cannot be read one by one.
    pub(super) fn question_line(&mut self, line: &str) {
        let line = line.trim();
        let Some(open) = self.questions.front_mut() else { return };
        open.counts_from = Some(Duration::ZERO);
        match &mut open.kind {
            QuestionKind::Form(_) => {
                self.editor.set(line);
                self.form_enter();
            }
            QuestionKind::Approval(approval)
                if line.starts_with('/') && approval.mode == ApprovalMode::Keys =>
            {
                self.command_meanwhile(line);
            }
            QuestionKind::Approval(approval) => {
                let mut letters = line.chars();
                match (letters.next(), letters.next(), approval.mode) {
                    (Some(letter), None, ApprovalMode::Keys) => self.approval_letter(letter),
                    (Some(_), _, ApprovalMode::Keys) => self.tell_instead(line),
                    _ => {
                        self.editor.set(line);
                        self.approval_text();
                    }
                }
            }
        }
    }

    /// For the region: how the first question is answered.
    pub(super) fn question_rows(&self) -> Vec<ScreenRow> {
        let Some(open) = self.questions.front() else { return Vec::new() };
        let mut rows = match &open.kind {
            QuestionKind::Approval(approval) => {
                approval.keys(self.glyphs.between, self.options.size.columns.saturating_sub(1))
            }
            QuestionKind::Form(form) => vec![ScreenRow::new(Ink::Faint, form.hint())],
        };
        if let (Some(row), true) = (rows.last_mut(), self.questions.len() > 1) {
            row.push(Ink::Faint, &format!("{}{} more wait", self.glyphs.between, self.questions.len() - 1));
        }
        rows
    }
}
