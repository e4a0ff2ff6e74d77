//! Reviews as data: the reviewer's prompt, and its parsed answer.

use protocol::ReviewTarget;
use serde::Deserialize;

/// Shown when the reviewer gave no result.
pub(crate) const NO_RESULT: &str = "Reviewer failed to output a response.";

/// Characters of a commit id in a hint.
const SHORT_SHA: usize = 7;

/// The review that a turn carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewOrder {
    /// The subject in a few words, for clients.
    pub hint: String,
    /// The prompt of the reviewer.
    pub prompt: String,
}

impl ReviewOrder {
    /// The caller has checked that no field of the target is empty.
    pub fn of(target: &ReviewTarget) -> Self {
        let (hint, prompt) = match target {
            ReviewTarget::UncommittedChanges => (
                "current changes".to_owned(),
                "Review what is not committed yet: staged, unstaged and untracked files (`git status --porcelain`, `git \
                 diff HEAD`, and the untracked files themselves). Provide prioritized, actionable findings."
                    .to_owned(),
            ),
            ReviewTarget::BaseBranch { branch } => (
                format!("changes against '{branch}'"),
                format!(
                    "Review the code changes that this branch adds to '{branch}'. Find where the two parted with `git \
                     merge-base HEAD {quoted}`, using the upstream of '{branch}' instead where that is ahead of it, and \
                     look at `git diff` from that commit on. Provide prioritized, actionable findings.",
                    quoted = quoted(branch)
                ),
            ),
            ReviewTarget::Commit { sha, title } => {
                let title = title.as_deref().map(str::trim).filter(|title| !title.is_empty());
                let short: String = sha.chars().take(SHORT_SHA).collect();
                let named = title.map(|title| format!(" (\"{title}\")")).unwrap_or_default();
                (
                    title.map_or_else(|| format!("commit {short}"), |title| format!("commit {short}: {title}")),
                    format!(
                        "Review the code changes introduced by commit {sha}{named}. Provide prioritized, actionable \
                         findings."
                    ),
                )
            }
            ReviewTarget::Custom { instructions } => {
                (instructions.trim().to_owned(), instructions.trim().to_owned())
            }
        };
        Self { hint, prompt }
    }
}

/// One word, quoted for a shell command.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./@+".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The reviewer's answer in the requested form.
#[derive(Debug, Default, Deserialize)]
struct ReviewAnswer {
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    overall_explanation: String,
}

#[derive(Debug, Deserialize)]
struct Finding {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    code_location: Option<CodeLocation>,
}

#[derive(Debug, Deserialize)]
struct CodeLocation {
    absolute_file_path: String,
    line_range: LineRange,
}

#[derive(Debug, Deserialize)]
struct LineRange {
    start: u64,
    end: u64,
}

/// The review as text for people. An answer that is not JSON is used unchanged.
pub(crate) fn review_text(answer: &str) -> String {
    let parsed = read(answer).unwrap_or_else(|| ReviewAnswer {
        overall_explanation: answer.to_owned(),
        ..ReviewAnswer::default()
    });
    let mut parts = Vec::new();
    let explanation = parsed.overall_explanation.trim();
    if !explanation.is_empty() {
        parts.push(explanation.to_owned());
    }
    if !parsed.findings.is_empty() {
        let heading = if parsed.findings.len() == 1 { "Review comment:" } else { "Full review comments:" };
        parts.push(heading.to_owned());
        parts.extend(parsed.findings.iter().map(finding_text));
    }
    match parts.is_empty() {
        true => NO_RESULT.to_owned(),
        false => parts.join("\n\n"),
    }
}

/// Parses the whole text, or the JSON object inside it: models like to add words around it.
fn read(answer: &str) -> Option<ReviewAnswer> {
    let answer = answer.trim();
    let inner = || answer.get(answer.find('{')?..=answer.rfind('}')?);
    serde_json::from_str(answer).ok().or_else(|| serde_json::from_str(inner()?).ok())
}

fn finding_text(finding: &Finding) -> String {
    let mut text = format!("- {}", finding.title.trim());
    if let Some(CodeLocation { absolute_file_path, line_range: LineRange { start, end } }) =
        &finding.code_location
    {
        text.push_str(&format!(" — {absolute_file_path}:{start}-{end}"));
    }
    for line in finding.body.trim_end().lines() {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_a_hint_and_a_prompt() {
        let commit = |title: Option<&str>| ReviewTarget::Commit {
            sha: "1234567deadbeef".to_owned(),
            title: title.map(str::to_owned),
        };
        let cases = [
            (ReviewTarget::UncommittedChanges, "current changes", "untracked files"),
            (ReviewTarget::BaseBranch { branch: "main".into() }, "changes against 'main'", "HEAD main`"),
            (
                ReviewTarget::BaseBranch { branch: "a; rm -rf b".into() },
                "changes against 'a; rm -rf b'",
                "HEAD 'a; rm -rf b'`",
            ),
            (commit(None), "commit 1234567", "commit 1234567deadbeef. "),
            (commit(Some("Tidy UI")), "commit 1234567: Tidy UI", "1234567deadbeef (\"Tidy UI\"). "),
            (ReviewTarget::Custom { instructions: " look \n".into() }, "look", "look"),
        ];
        for (target, hint, prompt) in cases {
            let order = ReviewOrder::of(&target);
            assert_eq!(order.hint, hint);
            assert!(order.prompt.contains(prompt), "{}", order.prompt);
        }
    }

    #[test]
    fn answers_become_text() {
        let finding = |title: &str| {
            format!(
                r#"{{"title":"{title}","body":"Because.\nTruly.","confidence_score":1,"priority":1,
                "code_location":{{"absolute_file_path":"/a.rs","line_range":{{"start":1,"end":2}}}}}}"#
            )
        };
        let answer = |findings: &str| {
            format!(r#"{{"findings":[{findings}],"overall_correctness":"x","overall_explanation":"Fine."}}"#)
        };
        let one = "Fine.\n\nReview comment:\n\n- A — /a.rs:1-2\n  Because.\n  Truly.";
        let two = "Fine.\n\nFull review comments:\n\n- A — /a.rs:1-2\n  Because.\n  Truly.\n\n- B — \
                   /a.rs:1-2\n  Because.\n  Truly.";
        let cases = [
            (answer(""), "Fine."),
            (answer(&finding("A")), one),
            (format!("Here it is:\n```json\n{}\n```", answer(&finding("A"))), one),
            (answer(&format!("{},{}", finding("A"), finding("B"))), two),
            (r#"{"findings":[{"title":"Bare"}]}"#.to_owned(), "Review comment:\n\n- Bare"),
            ("plain words".to_owned(), "plain words"),
            ("{}".to_owned(), NO_RESULT),
            ("  ".to_owned(), NO_RESULT),
            ("a } b { c".to_owned(), "a } b { c"),
        ];
        for (answer, expected) in cases {
            assert_eq!(review_text(&answer), expected, "{answer}");
        }
    }
}
