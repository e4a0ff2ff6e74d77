//! Lists above the input: commands, files, and choices.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::TerminalState;
use super::facts::text;
use super::prompts::PREFIX as PROMPT_PREFIX;
use super::slash::COMMANDS;
use crate::rows::{Ink, ScreenRow};
use crate::safe::one_line;

/// Entries shown at once.
const SHOWN: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Popup {
    pub(super) kind: PopupKind,
    pub(super) entries: Vec<PickEntry>,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PopupKind {
    /// Completes the command being typed.
    Commands,
    /// Completes the file being typed: from `@` on.
    Files { start: usize },
    /// Takes all keys until something is chosen.
    Choice { title: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PickEntry {
    pub(super) label: String,
    pub(super) detail: String,
    pub(super) action: PickAction,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PickAction {
    Command(&'static str),
    /// By its name.
    Prompt(String),
    File(String),
    Resume(String),
    /// By its thread.
    Agent(String),
    /// The thread itself, after an agent.
    Thread,
    Model(String),
    Approvals {
        policy: &'static str,
        sandbox: &'static str,
    },
}

impl TerminalState {
    pub(super) fn pick(&mut self, title: &str, entries: Vec<PickEntry>) {
        self.popup = Some(Popup { kind: PopupKind::Choice { title: title.to_owned() }, entries, at: 0 });
        self.print_for_dumb(Self::popup_rows);
    }

    /// Whether the key was for the list.
    pub(super) fn popup_key(&mut self, key: KeyEvent) -> bool {
        let Some(popup) = &mut self.popup else { return false };
        let is_choice = matches!(popup.kind, PopupKind::Choice { .. });
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = popup.entries.len().saturating_sub(1);
        match key.code {
            KeyCode::Up => popup.at = popup.at.checked_sub(1).unwrap_or(last),
            KeyCode::Down => popup.at = if popup.at == last { 0 } else { popup.at + 1 },
            KeyCode::Char('p') if control => popup.at = popup.at.checked_sub(1).unwrap_or(last),
            KeyCode::Char('n') if control => popup.at = if popup.at == last { 0 } else { popup.at + 1 },
            KeyCode::Char(digit @ '1'..='9') if is_choice => {
                let number = usize::from(digit as u8 - b'1');
                if number <= last {
                    popup.at = number;
                    self.choose();
                }
            }
            KeyCode::Esc => self.close_popup(),
            KeyCode::Enter | KeyCode::Tab if !popup.entries.is_empty() => {
                // A command that is typed whole runs at once.
                let is_whole = matches!(popup.kind, PopupKind::Commands)
                    && popup.entries.get(popup.at).is_some_and(|entry| entry.label == self.editor.text());
                if is_whole && key.code == KeyCode::Enter {
                    self.popup = None;
                    return false;
                }
                self.choose();
            }
            KeyCode::Char('c') if control => return false,
            _ => return is_choice,
        }
        true
    }

    pub(super) fn close_popup(&mut self) {
        let popup = self.popup.take();
        if popup.is_some_and(|popup| matches!(popup.kind, PopupKind::Choice { .. })) && self.thread.is_none()
        {
            self.ask_start();
        }
        self.close_files();
    }

    fn choose(&mut self) {
        let Some(popup) = self.popup.take() else { return };
        let Some(entry) = popup.entries.into_iter().nth(popup.at) else { return };
        match entry.action {
            PickAction::Command(name) => self.editor.set(&format!("{name} ")),
            PickAction::Prompt(name) => self.editor.set(&format!("{PROMPT_PREFIX}{name} ")),
            PickAction::File(path) => {
                if let PopupKind::Files { start } = popup.kind {
                    let quoted = if path.contains(' ') { format!("\"{path}\" ") } else { format!("{path} ") };
                    self.editor.replace(start..self.editor.cursor(), &quoted);
                }
                self.close_files();
            }
            PickAction::Resume(id) => self.ask_resume(&id),
            PickAction::Agent(thread) => self.show_agent(&thread),
            PickAction::Thread => self.show_thread(),
            PickAction::Model(name) => self.set_model(&name),
            PickAction::Approvals { policy, sandbox } => self.set_approvals(policy, sandbox),
        }
    }

    /// After the text has changed: which list belongs to it now.
    pub(super) fn refresh_popup(&mut self) {
        if matches!(&self.popup, Some(Popup { kind: PopupKind::Choice { .. }, .. })) {
            return;
        }
        if !self.questions.is_empty() && !self.is_typing_command() {
            self.popup = None;
            return;
        }
        let typed = self.editor.text();
        if typed.starts_with('/') && !typed.contains(char::is_whitespace) {
            let matching = COMMANDS.iter().filter(|command| command.name.starts_with(typed));
            let entry = |command: &super::slash::SlashCommand| PickEntry {
                label: command.name.to_owned(),
                detail: command.about.to_owned(),
                action: PickAction::Command(command.name),
            };
            let entries: Vec<PickEntry> = matching.map(entry).chain(self.prompts_for(typed)).collect();
            self.popup = (!entries.is_empty()).then_some(Popup { kind: PopupKind::Commands, entries, at: 0 });
            return;
        }
        let word = file_word(typed, self.editor.cursor()).map(|(start, query)| (start, query.to_owned()));
        match word {
            Some((start, query)) => self.look_for_files(start, &query),
            None => {
                self.popup = None;
                self.close_files();
            }
        }
    }

    fn look_for_files(&mut self, start: usize, query: &str) {
        if !self.is_searching_files {
            self.is_searching_files = true;
            self.ask_files_open();
        }
        self.ask_files(query);
        let earlier = match self.popup.take() {
            Some(Popup { kind: PopupKind::Files { .. }, entries, .. }) => entries,
            _ => Vec::new(),
        };
        self.popup = Some(Popup { kind: PopupKind::Files { start }, entries: earlier, at: 0 });
    }

    pub(super) fn close_files(&mut self) {
        if std::mem::take(&mut self.is_searching_files) {
            self.tell_files_closed();
        }
    }

    pub(super) fn files_found(&mut self, params: &Value) {
        let query = file_word(self.editor.text(), self.editor.cursor()).map(|(_, query)| query.to_owned());
        let Some(popup) = &mut self.popup else { return };
        if !matches!(popup.kind, PopupKind::Files { .. }) || params["query"].as_str() != query.as_deref() {
            return;
        }
        let files = params["files"].as_array().into_iter().flatten().take(50);
        let entry = |file: &Value| {
            let path = text(&file["path"]);
            PickEntry { label: path.clone(), detail: String::new(), action: PickAction::File(path) }
        };
        popup.entries = files.map(entry).collect();
        popup.at = popup.at.min(popup.entries.len().saturating_sub(1));
    }

    pub(super) fn popup_rows(&self) -> Vec<ScreenRow> {
        let Some(popup) = &self.popup else { return Vec::new() };
        let mut shown = Vec::new();
        let is_choice = matches!(popup.kind, PopupKind::Choice { .. });
        match &popup.kind {
            PopupKind::Choice { title } => {
                let help = "  (arrows and Enter, or a number; Esc leaves it)";
                shown.push(ScreenRow::new(Ink::Strong, title).with(Ink::Faint, help));
            }
            PopupKind::Files { .. } if popup.entries.is_empty() => {
                shown.push(ScreenRow::new(Ink::Faint, "  no file yet"));
            }
            PopupKind::Files { .. } | PopupKind::Commands => {}
        }
        let from = popup.at.saturating_sub(SHOWN - 1);
        let widest =
            popup.entries.iter().map(|entry| crate::rows::width(&entry.label)).max().unwrap_or(0).min(40);
        for (number, entry) in popup.entries.iter().enumerate().skip(from).take(SHOWN) {
            let is_chosen = number == popup.at;
            let mark = if is_chosen { self.glyphs.chosen } else { " " };
            let ink = if is_chosen { Ink::Strong } else { Ink::Plain };
            let digit = if is_choice && number < 9 { format!("{} ", number + 1) } else { String::new() };
            let label = one_line(&entry.label);
            let pad = " ".repeat(widest.saturating_sub(crate::rows::width(&label)));
            let row = ScreenRow::new(Ink::Busy, format!("{mark} ")).with(ink, format!("{digit}{label}"));
            shown.push(match entry.detail.is_empty() {
                true => row,
                false => row.with(Ink::Faint, format!("{pad}  {}", entry.detail)),
            });
        }
        shown
    }
}

/// The word with `@` that ends at the cursor: where it begins, and what follows the sign.
fn file_word(text: &str, cursor: usize) -> Option<(usize, &str)> {
    let before = text.get(..cursor)?;
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let query = before[start..].strip_prefix('@')?;
    Some((start, query))
}

#[cfg(test)]
mod tests {
    use super::file_word;

    #[test]
    fn a_file_is_named_by_the_word_at_the_cursor() {
        assert_eq!(file_word("look at @src/ma", 15), Some((8, "src/ma")));
        assert_eq!(file_word("@", 1), Some((0, "")));
        assert_eq!(file_word("a@b", 3), None);
        assert_eq!(file_word("@a b", 4), None);
        assert_eq!(file_word("@a b", 2), Some((0, "a")));
    }
}
