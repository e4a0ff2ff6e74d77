//! Keys, and what is sent when Enter is pressed.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::facts::RunningTurn;
use super::prompts::PREFIX as PROMPT_PREFIX;
use super::{TerminalEffect, TerminalState};
use crate::editor::KeyEffect;

impl TerminalState {
    pub(super) fn key(&mut self, key: KeyEvent) {
        if self.is_over || key.kind == KeyEventKind::Release {
            return;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if !(control && key.code == KeyCode::Char('c')) {
            self.wants_to_leave = None;
        }
        if !self.editor_is_searching() && (self.popup_key(key) || self.question_key(key)) {
            self.last_key = Some(self.now);
            return;
        }
        self.last_key = Some(self.now);
        match key.code {
            KeyCode::Char('c') if control => self.control_c(),
            KeyCode::Char('d') if control && self.editor.is_empty() => self.leave(),
            KeyCode::Char('z') if control => self.effects.push(TerminalEffect::Sleep),
            KeyCode::Esc if !self.editor_is_searching() && self.shown_agent.is_some() => self.show_thread(),
            KeyCode::Esc if !self.editor_is_searching() => self.interrupt(),
            KeyCode::Enter if self.sends(key) => self.enter(false),
            KeyCode::Tab => self.enter(true),
            _ => {
                if self.editor.key(key) != KeyEffect::Ignored {
                    self.refresh_popup();
                }
            }
        }
    }

    fn editor_is_searching(&self) -> bool {
        self.editor.search().is_some()
    }

    fn sends(&self, key: KeyEvent) -> bool {
        !self.editor_is_searching() && !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT)
    }

    /// Pasted text is never a key.
    pub(super) fn paste(&mut self, text: &str) {
        if self.is_over {
            return;
        }
        self.wants_to_leave = None;
        if self.is_choosing_by_keys() {
            return;
        }
        self.editor.insert(text);
        self.refresh_popup();
    }

    fn is_choosing_by_keys(&self) -> bool {
        use super::approval::ApprovalMode;
        use super::questions::QuestionKind;
        self.questions.front().is_some_and(
            |open| matches!(&open.kind, QuestionKind::Approval(approval) if approval.mode == ApprovalMode::Keys),
        )
    }

    /// A line from a terminal that knows nothing else.
    pub(super) fn typed(&mut self, line: &str) {
        if self.is_over {
            return;
        }
        if self.popup.is_some() {
            let number = line.trim().chars().next().unwrap_or('0');
            self.popup_key(KeyEvent::from(if line.trim().is_empty() {
                KeyCode::Esc
            } else {
                KeyCode::Char(number)
            }));
            return;
        }
        if !self.questions.is_empty() {
            self.question_line(line);
            return;
        }
        self.editor.set(line);
        self.enter(false);
    }

    fn control_c(&mut self) {
        if self.wants_to_leave.is_some() {
            self.leave();
            return;
        }
        self.editor.take();
        self.popup = None;
        self.close_files();
        self.wants_to_leave = Some(self.now);
    }

    pub(super) fn interrupt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        // Before the server has named the turn, the interrupt waits for its name.
        let is_first = !std::mem::replace(&mut turn.is_stopping, true);
        if let (true, Some((thread, turn))) = (is_first, self.running()) {
            self.tell_interrupt(&thread, &turn);
        }
    }

    /// Sends what is typed. While a turn runs it is told to the agent at once, or kept for afterwards.
    fn enter(&mut self, is_for_later: bool) {
        if is_for_later && self.turn.is_none() {
            return;
        }
        let text = self.editor.take();
        self.popup = None;
        self.close_files();
        if text.trim().is_empty() {
            return;
        }
        if self.editor.history.add(&text) {
            self.effects.push(TerminalEffect::Remember(text.clone()));
        }
        let mut text = text.trim_end().to_owned();
        if text.starts_with(PROMPT_PREFIX) {
            let Some(filled) = self.prompt_of(&text) else { return };
            text = filled;
        } else if text.starts_with('/') && self.slash(&text) {
            return;
        }
        if self.shown_agent.is_some() {
            self.tell_agent(&text);
            return;
        }
        match (self.running(), is_for_later) {
            (Some((thread, turn)), false) => {
                self.items.sent.push_back(text.clone());
                self.ask_steer(&thread, &turn, &text);
            }
            _ => {
                self.queue.push_back(text);
                if self.turn.is_none() {
                    self.next_in_queue();
                }
            }
        }
    }

    /// Starts a turn with what waits.
    pub(super) fn next_in_queue(&mut self) {
        let Some(thread) = self.thread.as_ref().map(|thread| thread.id.clone()) else { return };
        let Some(text) = self.queue.pop_front() else { return };
        self.turn = Some(RunningTurn { id: None, began: self.now, is_stopping: false });
        self.items.sent.push_back(text.clone());
        self.ask_turn(&thread, &text);
    }
}
