//! Reads what tools answer, and quotes it.

use serde_json::Value;

/// The answer of a tool that ran a command, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandOutput {
    pub(super) text: String,
    pub(super) exit_code: Option<i64>,
    /// Set while the command still runs.
    pub(super) session_id: Option<i64>,
}

impl CommandOutput {
    /// Shell tools answer in lines with a head, or in JSON; anything else is text as it is.
    pub(super) fn read(answer: &str) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::from_str(answer)
            && let Some(text) = fields.get("output").and_then(Value::as_str)
        {
            let exit_code = fields.get("metadata").and_then(|metadata| metadata.get("exit_code")?.as_i64());
            return Self { text: text.to_owned(), exit_code, session_id: None };
        }
        let Some((head, text)) = split_head(answer) else {
            return Self { text: answer.to_owned(), ..Self::default() };
        };
        let number =
            |label: &str| head.lines().find_map(|line| line.strip_prefix(label)?.trim().parse().ok());
        Self {
            text: text.to_owned(),
            exit_code: number("Process exited with code ").or_else(|| number("Exit code: ")),
            session_id: number("Process running with session ID "),
        }
    }
}

fn split_head(answer: &str) -> Option<(&str, &str)> {
    const LABEL: &str = "Output:";
    let is_label = |at: usize| {
        let rest = &answer[at + LABEL.len()..];
        (at == 0 || answer[..at].ends_with('\n')) && (rest.is_empty() || rest.starts_with('\n'))
    };
    let (at, _) = answer.match_indices(LABEL).find(|(at, _)| is_label(*at))?;
    Some((&answer[..at], answer[at + LABEL.len()..].trim_start_matches('\n')))
}

/// A file as a reading tool shows it, without the numbers in front of its lines.
pub(super) fn without_line_numbers(text: &str) -> String {
    let stripped = |line: &str| -> Option<String> {
        let digits = line.trim_start().trim_start_matches('L');
        let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == digits.len() {
            return None;
        }
        let rest = rest.strip_prefix(": ").or_else(|| rest.strip_prefix([' ', '\t', ':']));
        rest.or_else(|| digits.ends_with(|c: char| c.is_ascii_digit()).then_some("")).map(str::to_owned)
    };
    let lines: Option<Vec<String>> = text.lines().map(stripped).collect();
    lines.map_or_else(|| text.to_owned(), |lines| lines.join("\n"))
}

const QUOTED_LINES: usize = 12;
const QUOTED_CHARACTERS: usize = 800;

/// The beginning of an answer, indented, with a note of how much is left out.
pub(super) fn quoted(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        return "    (no output)".to_owned();
    }
    let mut left = QUOTED_CHARACTERS;
    let mut shown: Vec<String> = Vec::new();
    let mut is_cut = false;
    for line in text.lines().take(QUOTED_LINES) {
        let part: String = line.chars().take(left).collect();
        left -= part.chars().count();
        is_cut |= part.len() < line.len();
        shown.push(format!("    {part}"));
        if left == 0 {
            break;
        }
    }
    let more = text.lines().count() - shown.len();
    if more > 0 {
        shown.push(format!("    … {more} more lines"));
    } else if is_cut {
        shown.push("    … cut".to_owned());
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, text: &str, exit_code: Option<i64>, session_id: Option<i64>) {
        let expected = CommandOutput { text: text.to_owned(), exit_code, session_id };
        assert_eq!(CommandOutput::read(answer), expected);
    }

    #[test]
    fn shell_answers_are_taken_apart() {
        check(
            "Command: bash -lc ls\nWall time: 0.01 seconds\nProcess exited with code 0\nOutput:\na\nb\n",
            "a\nb\n",
            Some(0),
            None,
        );
        check(
            "Wall time: 10.0 seconds\nProcess running with session ID 1234\nOutput:\n",
            "",
            None,
            Some(1_234),
        );
        check(
            "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nNo Output: here",
            "No Output: here",
            Some(2),
            None,
        );
        check(r#"{"output":"x\n","metadata":{"exit_code":1,"duration_seconds":0.1}}"#, "x\n", Some(1), None);
        check("plain", "plain", None, None);
        check(r#"{"answer":42}"#, r#"{"answer":42}"#, None, None);
    }

    #[test]
    fn line_numbers_are_taken_off_only_if_every_line_has_one() {
        assert_eq!(without_line_numbers("L1: a\nL2:  b\nL3: "), "a\n b\n");
        assert_eq!(without_line_numbers("1 a\n2\n10 b"), "a\n\nb");
        assert_eq!(without_line_numbers("1 a\nplain"), "1 a\nplain");
    }

    #[test]
    fn quotes_are_short() {
        assert_eq!(quoted("a\nb\n"), "    a\n    b");
        assert_eq!(quoted(" \n"), "    (no output)");
        let long = quoted(&"line\n".repeat(100));
        assert!(long.ends_with("    … 88 more lines"), "{long}");
        assert!(quoted(&"é".repeat(5_000)).chars().count() < 900);
    }
}
