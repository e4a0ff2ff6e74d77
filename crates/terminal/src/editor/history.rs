//! The prompts that were typed before.

/// More is forgotten.
const MOST: usize = 1_000;

#[derive(Debug, Default)]
pub(crate) struct InputHistory {
    entries: Vec<String>,
    /// Where the user is: an entry, or behind the last one.
    at: Option<usize>,
    /// The unsent line, kept while the history is shown.
    draft: String,
}

impl InputHistory {
    pub(crate) fn new(mut entries: Vec<String>) -> Self {
        let surplus = entries.len().saturating_sub(MOST);
        entries.drain(..surplus);
        Self { entries, at: None, draft: String::new() }
    }

    /// Whether it was new.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        if text.trim().is_empty() || self.entries.last().is_some_and(|last| last == text) {
            return false;
        }
        self.entries.push(text.to_owned());
        true
    }

    pub(crate) fn rest(&mut self) {
        self.at = None;
    }

    pub(crate) fn begin(&mut self, text: &str) {
        text.clone_into(&mut self.draft);
        self.at = None;
    }

    pub(crate) fn restart(&mut self) {
        self.at = None;
    }

    pub(crate) fn draft(&self) -> String {
        self.draft.clone()
    }

    pub(crate) fn earlier(&mut self, text: &str) -> Option<String> {
        let at = match self.at {
            None => {
                self.begin(text);
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).cloned()
    }

    pub(crate) fn later(&mut self) -> Option<String> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return self.entries.get(at).cloned();
        }
        self.at = None;
        Some(self.draft.clone())
    }

    /// The nearest earlier entry that has these words in it, whatever their case.
    pub(crate) fn find_earlier(&mut self, words: &str) -> Option<String> {
        if words.is_empty() {
            return None;
        }
        let words = words.to_lowercase();
        let end = self.at.unwrap_or(self.entries.len());
        let at = self.entries[..end].iter().rposition(|entry| entry.to_lowercase().contains(&words))?;
        self.at = Some(at);
        self.entries.get(at).cloned()
    }
}
