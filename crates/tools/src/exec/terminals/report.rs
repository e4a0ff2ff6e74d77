//! The model's text about a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use engine::ToolOutcome;

use super::session::Collected;

/// The state of a terminal for one call.
#[derive(Debug)]
pub(crate) struct TerminalReport<'a> {
    /// One shell-quoted line.
    pub(crate) command: &'a str,
    pub(crate) session_id: u32,
    pub(crate) wall_time: Duration,
    pub(crate) collected: &'a Collected,
    pub(crate) max_tokens: usize,
    /// A further remark for the model.
    pub(crate) remark: Option<String>,
}

impl TerminalReport<'_> {
    /// A call fails if the environment was lost, whatever output there is.
    pub(crate) fn outcome(&self, chunk_id: &str) -> ToolOutcome {
        match &self.collected.lost {
            Some(lost) => ToolOutcome::failure(format!("{lost}\n{}", self.text(chunk_id))),
            None => ToolOutcome::text(self.text(chunk_id)),
        }
    }

    fn text(&self, chunk_id: &str) -> String {
        let Self { command, session_id, wall_time, collected, max_tokens, remark } = self;
        let mut text = format!("Command: {command}\nChunk ID: {chunk_id}\n");
        // Writing to a string does not fail.
        let _ = writeln!(text, "Wall time: {:.4} seconds", wall_time.as_secs_f64());
        let _ = match collected.exit {
            Some(_) if collected.lost.is_some() => Ok(()),
            Some(code) => writeln!(text, "Process exited with code {code}"),
            None => writeln!(text, "Process running with session ID {session_id}"),
        };
        let _ = remark.iter().try_for_each(|remark| writeln!(text, "{remark}"));
        let _ = writeln!(text, "Original token count: {}", collected.unread.tokens());
        let whole = collected.whole.as_ref().filter(|_| !collected.unread.fits(*max_tokens));
        let _ = whole.iter().try_for_each(|whole| writeln!(text, "{}", whole.line()));
        text + "Output:\n" + &collected.unread.text(*max_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::terminals::unread::Unread;

    #[test]
    fn the_report_has_the_layout_that_models_expect() {
        let mut unread = Unread::default();
        unread.push(b"hi\n");
        let mut collected = Collected { unread, exit: Some(3), lost: None, whole: None };
        let text = |collected: &Collected| {
            let wall_time = Duration::from_micros(1_234_567);
            TerminalReport {
                command: "/bin/bash -lc 'echo hi; exit 3'",
                session_id: 4711,
                wall_time,
                collected,
                max_tokens: 9,
                remark: None,
            }
            .text("0a1b2c")
        };
        assert_eq!(
            text(&collected),
            "Command: /bin/bash -lc 'echo hi; exit 3'\nChunk ID: 0a1b2c\nWall time: 1.2346 seconds\n\
             Process exited with code 3\nOriginal token count: 1\nOutput:\nhi\n"
        );
        collected.exit = None;
        assert!(text(&collected).contains("\nProcess running with session ID 4711\n"));
    }
}
