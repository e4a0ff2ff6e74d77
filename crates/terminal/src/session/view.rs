//! The region at the bottom: what runs, what waits, the input, and the status line.

use super::TerminalState;
use super::facts::clock;
use crate::editor::InputLayout;
use crate::rows::{Ink, ScreenRow, width};
use crate::safe::one_line;
use crate::screen::LiveRegion;

/// Rows of the input that are shown.
const INPUT_ROWS: usize = 10;

impl TerminalState {
    pub(crate) fn region(&self) -> LiveRegion {
        let (columns, height) = (self.options.size.columns.max(8), self.options.size.rows.max(4));
        let cut = self.glyphs.cut;
        let fits = |row: ScreenRow| row.cut(columns.saturating_sub(1), cut);
        // The input and the status line always fit.
        let input = InputLayout::new(&self.editor, &self.input_mark(), columns, INPUT_ROWS.min(height / 2));
        let status = fits(self.status());
        let mut below =
            self.question_rows().into_iter().flat_map(|row| row.wrapped(columns - 1)).collect::<Vec<_>>();
        below.extend(self.popup_rows().into_iter().map(fits));
        let mut above: Vec<ScreenRow> =
            self.live_rows().into_iter().flat_map(|row| wrap_live(&row, columns - 1)).collect();
        above.extend(self.waiting_rows().into_iter().map(fits));
        // One row stays free, so that the terminal does not scroll while it is drawn.
        let room = height.saturating_sub(input.rows.len() + 3);
        below.truncate(room);
        let surplus = above.len().saturating_sub(room.saturating_sub(below.len()));
        above.drain(..surplus);
        let mut region = LiveRegion::default();
        region.rows.push(ScreenRow::default());
        region.rows.extend(above);
        region.rows.extend(below);
        region.cursor = (region.rows.len() + input.cursor.0, input.cursor.1);
        region.rows.extend(input.rows);
        region.rows.push(status);
        region
    }

    fn input_mark(&self) -> ScreenRow {
        if let Some(words) = self.editor.search() {
            return ScreenRow::new(Ink::Careful, format!("search `{words}`: "));
        }
        let ink = if self.questions.is_empty() { Ink::Busy } else { Ink::Careful };
        ScreenRow::new(ink, format!("{} ", self.glyphs.prompt))
    }

    /// Inputs that are on their way, and those that wait for the end of the turn.
    fn waiting_rows(&self) -> Vec<ScreenRow> {
        let row =
            |word: &str, text: &String| ScreenRow::new(Ink::Faint, format!("{word}: {}", one_line(text)));
        let sent = self.items_in_view().sent.iter().map(|text| row("sent", text));
        sent.chain(self.queue.iter().map(|text| row("next", text))).collect()
    }

    fn status(&self) -> ScreenRow {
        if self.wants_to_leave.is_some() {
            let turn = match (&self.turn, &self.options.remote) {
                (Some(_), None) => " and stops the turn",
                (Some(_), Some(_)) => "; the turn goes on without you",
                (None, _) => "",
            };
            return ScreenRow::new(Ink::Careful, format!("Ctrl-C again leaves{turn}"));
        }
        let between = self.glyphs.between;
        if let Some(agent) = self.agent_status() {
            return agent;
        }
        let mut parts = Vec::new();
        match &self.thread {
            Some(thread) => {
                parts.push(thread.model.clone());
                parts.push(short_folder(&thread.folder, self.options.size.columns / 3, self.glyphs.cut));
            }
            None => parts.push("connecting".to_owned()),
        }
        parts.extend(self.options.remote.clone());
        parts.extend(self.spent.context_left().map(|left| format!("{left}% context left")));
        parts.extend(self.spent.money());
        let mut row = ScreenRow::default();
        if let Some(turn) = &self.turn {
            let time = clock(self.now.saturating_sub(turn.began));
            let (word, hint) = match (turn.is_stopping, self.questions.is_empty()) {
                (true, _) => ("stopping", ""),
                (false, true) => ("working", ", Esc stops"),
                (false, false) => ("waiting for you", ""),
            };
            row.push(Ink::Busy, &format!("{word} {time}"));
            row.push(Ink::Faint, &format!("{hint}{between}"));
        }
        row.with(Ink::Faint, one_line(&parts.join(between)))
    }
}

/// Prose is shown whole; rows of output are cut.
fn wrap_live(row: &ScreenRow, columns: usize) -> Vec<ScreenRow> {
    let is_output = row.parts.first().is_some_and(|part| part.ink != Ink::Plain);
    if is_output { vec![row.cut(columns, "")] } else { row.wrapped(columns) }
}

/// The end of a path says most.
fn short_folder(folder: &str, most: usize, cut: &str) -> String {
    let most = most.max(12);
    if width(folder) <= most {
        return folder.to_owned();
    }
    let mut short = String::new();
    for part in folder.rsplit('/') {
        if !short.is_empty() && width(&short) + width(part) + 1 + width(cut) > most {
            break;
        }
        short = format!("/{part}{short}");
    }
    format!("{cut}{short}")
}

#[cfg(test)]
mod tests {
    use super::short_folder;

    #[test]
    fn of_a_long_path_the_end_is_shown() {
        assert_eq!(short_folder("/a/b", 20, "…"), "/a/b");
        assert_eq!(short_folder("/srv/somebody/projects/thing", 20, "…"), "…/projects/thing");
    }
}
