//! The line that is being typed: several lines, Emacs keys, a history with search. It waits for nothing and draws
//! nothing, so that it can live beside everything else that happens.

mod history;
mod layout;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

pub(crate) use self::history::InputHistory;
pub(crate) use self::layout::InputLayout;
use crate::safe::is_obeyed;

/// The effect of a key on the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyEffect {
    Ignored,
    Moved,
    Changed,
}

#[derive(Debug, Default)]
pub(crate) struct InputEditor {
    text: String,
    /// A byte between two characters as people see them.
    cursor: usize,
    killed: String,
    pub(crate) history: InputHistory,
    /// The words looked for in the history.
    search: Option<String>,
    /// Typed characters are not shown.
    pub(crate) is_secret: bool,
}

impl InputEditor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn search(&self) -> Option<&str> {
        self.search.as_deref()
    }

    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Empties the line and gives what was in it.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        self.search = None;
        self.history.rest();
        std::mem::take(&mut self.text)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !is_obeyed(*c)).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        self.history.rest();
    }

    /// Puts a text in the place of a range, with the cursor behind it.
    pub(crate) fn replace(&mut self, range: std::ops::Range<usize>, text: &str) {
        self.text.replace_range(range.clone(), text);
        self.cursor = range.start + text.len();
    }

    pub(crate) fn key(&mut self, key: KeyEvent) -> KeyEffect {
        if self.search.is_some() {
            return self.search_key(key);
        }
        let (control, alt) =
            (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char(c) if control => self.control(c),
            KeyCode::Char(c) if alt => self.alt(c),
            KeyCode::Char(c) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
                KeyEffect::Changed
            }
            KeyCode::Enter => {
                self.insert("\n");
                KeyEffect::Changed
            }
            KeyCode::Backspace if control || alt => self.kill(self.word_before()..self.cursor),
            KeyCode::Backspace => self.remove(self.before()..self.cursor),
            KeyCode::Delete => self.remove(self.cursor..self.after()),
            KeyCode::Left if control || alt => self.go(self.word_before()),
            KeyCode::Right if control || alt => self.go(self.word_after()),
            KeyCode::Left => self.go(self.before()),
            KeyCode::Right => self.go(self.after()),
            KeyCode::Home => self.go(self.line().start),
            KeyCode::End => self.go(self.line().end),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            _ => KeyEffect::Ignored,
        }
    }

    fn control(&mut self, c: char) -> KeyEffect {
        match c {
            'a' => self.go(self.line().start),
            'e' => self.go(self.line().end),
            'b' => self.go(self.before()),
            'f' => self.go(self.after()),
            'p' => self.up(),
            'n' => self.down(),
            'h' => self.remove(self.before()..self.cursor),
            'd' => self.remove(self.cursor..self.after()),
            'w' => self.kill(self.word_before()..self.cursor),
            'u' => self.kill(self.line().start..self.cursor),
            'k' => {
                let end = self.line().end;
                // At the end of a line its break goes.
                self.kill(self.cursor..if end == self.cursor { self.after() } else { end })
            }
            'y' => {
                self.insert(&self.killed.clone());
                KeyEffect::Changed
            }
            't' => self.swap(),
            'j' => {
                self.insert("\n");
                KeyEffect::Changed
            }
            'r' => {
                self.search = Some(String::new());
                self.history.begin(&self.text);
                KeyEffect::Moved
            }
            _ => KeyEffect::Ignored,
        }
    }

    fn alt(&mut self, c: char) -> KeyEffect {
        match c {
            'b' => self.go(self.word_before()),
            'f' => self.go(self.word_after()),
            'd' => self.kill(self.cursor..self.word_after()),
            '<' => self.go(0),
            '>' => self.go(self.text.len()),
            _ => KeyEffect::Ignored,
        }
    }

    fn search_key(&mut self, key: KeyEvent) -> KeyEffect {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(mut words) = self.search.take() else { return KeyEffect::Ignored };
        match key.code {
            KeyCode::Esc => self.leave_search(),
            KeyCode::Char('g') if control => self.leave_search(),
            KeyCode::Char('r') if control => {
                if let Some(found) = self.history.find_earlier(&words) {
                    self.set(&found);
                }
                self.search = Some(words);
                KeyEffect::Changed
            }
            KeyCode::Backspace => {
                words.pop();
                self.look_for(words)
            }
            KeyCode::Char(c) if !control => {
                words.push(c);
                self.look_for(words)
            }
            // Everything else ends the search with what was found, and means what it means. Enter only takes it.
            KeyCode::Enter => KeyEffect::Changed,
            _ => self.key(key),
        }
    }

    fn look_for(&mut self, words: String) -> KeyEffect {
        self.history.restart();
        if let Some(found) = self.history.find_earlier(&words) {
            self.set(&found);
        }
        self.search = Some(words);
        KeyEffect::Changed
    }

    fn leave_search(&mut self) -> KeyEffect {
        let draft = self.history.draft();
        self.set(&draft);
        KeyEffect::Changed
    }

    fn go(&mut self, to: usize) -> KeyEffect {
        self.cursor = to;
        KeyEffect::Moved
    }

    fn remove(&mut self, range: std::ops::Range<usize>) -> KeyEffect {
        if range.is_empty() {
            return KeyEffect::Ignored;
        }
        self.replace(range, "");
        self.history.rest();
        KeyEffect::Changed
    }

    fn kill(&mut self, range: std::ops::Range<usize>) -> KeyEffect {
        if range.is_empty() {
            return KeyEffect::Ignored;
        }
        self.text[range.clone()].clone_into(&mut self.killed);
        self.remove(range)
    }

    /// The characters around the cursor change places.
    fn swap(&mut self) -> KeyEffect {
        let end = if self.cursor == self.text.len() { self.cursor } else { self.after() };
        let middle = before(&self.text, end);
        let start = before(&self.text, middle);
        if start == middle || middle == end {
            return KeyEffect::Ignored;
        }
        let swapped = format!("{}{}", &self.text[middle..end], &self.text[start..middle]);
        self.replace(start..end, &swapped);
        KeyEffect::Changed
    }

    fn up(&mut self) -> KeyEffect {
        let line = self.line();
        if line.start > 0 {
            return self.line_before(&line);
        }
        match self.history.earlier(&self.text) {
            Some(text) => {
                self.set(&text);
                KeyEffect::Changed
            }
            None => KeyEffect::Ignored,
        }
    }

    fn down(&mut self) -> KeyEffect {
        let line = self.line();
        if line.end < self.text.len() {
            let column = self.text[line.start..self.cursor].graphemes(true).count();
            let next = line_around(&self.text, line.end + 1);
            let start = next.start;
            return self.go(start + prefix(&self.text[next], column));
        }
        match self.history.later() {
            Some(text) => {
                self.set(&text);
                KeyEffect::Changed
            }
            None => KeyEffect::Ignored,
        }
    }

    fn line_before(&mut self, line: &std::ops::Range<usize>) -> KeyEffect {
        let column = self.text[line.start..self.cursor].graphemes(true).count();
        let earlier = line_around(&self.text, line.start - 1);
        self.go(earlier.start + prefix(&self.text[earlier], column))
    }

    /// The line the cursor is in, without its break.
    fn line(&self) -> std::ops::Range<usize> {
        line_around(&self.text, self.cursor)
    }

    fn before(&self) -> usize {
        before(&self.text, self.cursor)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let spaced = self.text[..self.cursor].trim_end();
        spaced
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + spaced[at..].chars().next().map_or(1, char::len_utf8))
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        self.cursor + rest[word..].find(char::is_whitespace).map_or(rest.len(), |end| word + end)
    }
}

fn before(text: &str, at: usize) -> usize {
    text[..at].grapheme_indices(true).next_back().map_or(0, |(start, _)| start)
}

fn line_around(text: &str, at: usize) -> std::ops::Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let end = text[at..].find('\n').map_or(text.len(), |found| at + found);
    start..end
}

/// The bytes of so many characters.
fn prefix(text: &str, count: usize) -> usize {
    text.graphemes(true).take(count).map(str::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn typed(editor: &mut InputEditor, keys: &str) {
        for word in keys.split(' ') {
            let (modifiers, name) = match word {
                word if word.starts_with("C-") => (KeyModifiers::CONTROL, &word[2..]),
                word if word.starts_with("M-") => (KeyModifiers::ALT, &word[2..]),
                word => (KeyModifiers::NONE, word),
            };
            let code = match name {
                "left" => KeyCode::Left,
                "right" => KeyCode::Right,
                "up" => KeyCode::Up,
                "down" => KeyCode::Down,
                "home" => KeyCode::Home,
                "end" => KeyCode::End,
                "back" => KeyCode::Backspace,
                "del" => KeyCode::Delete,
                "enter" => KeyCode::Enter,
                "esc" => KeyCode::Esc,
                "space" => KeyCode::Char(' '),
                name if modifiers.is_empty() => {
                    for c in name.chars() {
                        editor.key(KeyEvent::from(KeyCode::Char(c)));
                    }
                    continue;
                }
                name => KeyCode::Char(name.chars().next().unwrap()),
            };
            editor.key(KeyEvent::new(code, modifiers));
        }
    }

    /// `|` is the cursor.
    #[track_caller]
    fn check(keys: &str, expected: &str) {
        let history = InputHistory::new(vec!["first".to_owned(), "second line".to_owned()]);
        let mut editor = InputEditor { history, ..InputEditor::default() };
        typed(&mut editor, keys);
        let (before, after) = editor.text().split_at(editor.cursor());
        assert_eq!(format!("{before}|{after}"), expected, "{keys}");
    }

    #[test]
    fn keys_of_emacs() {
        check("abc left x", "abx|c");
        check("abc C-a x C-e y", "xabcy|");
        check("one space two C-w", "one |");
        check("one space two C-w C-y C-y", "one twotwo|");
        check("one space two M-b M-d", "one |");
        check("one C-a C-k C-y", "one|");
        check("one C-u C-y", "one|");
        check("ab C-t", "ba|");
        check("abc left C-t", "acb|");
        check("abc C-a C-d del", "|c");
        check("one space two M-back back", "one|");
        check("one space two C-left C-left C-right", "one| two");
    }

    #[test]
    fn several_lines() {
        check("abc C-j d up x", "ax|bc\nd");
        check("ab C-j cde home up end x down y", "abx\ncdey|");
        check("ab C-j cd C-a C-k", "ab\n|");
        check("ab C-j cd up end C-k", "ab|cd");
    }

    #[test]
    fn whole_characters() {
        check("👩\u{200d}🚀x left left y", "y|👩\u{200d}🚀x");
        check("漢字 back", "漢|");
        check("e\u{301} back", "|");
    }

    #[test]
    fn history_keeps_the_draft() {
        check("dra up", "second line|");
        check("dra up up", "first|");
        check("dra up up up down down", "dra|");
        check("up x up", "second line|");
    }

    #[test]
    fn history_is_searched() {
        check("C-r li", "second line|");
        check("C-r fi enter", "first|");
        check("dra C-r fi esc", "dra|");
        check("C-r r C-r", "first|");
        check("C-r zz", "|");
        check("C-r fi C-a x", "x|first");
    }

    #[test]
    fn pasted_text_cannot_command() {
        let mut editor = InputEditor::default();
        editor.insert("a\u{1b}[2Jb\r\nc\td\u{202e}");
        assert_eq!(editor.text(), "a[2Jb\nc\td");
    }
}
