//! `oarlock exec review`: what is to be reviewed.

use anyhow::{Result, bail};
use clap::Args;
use protocol::ReviewTarget;

use super::args::ExecOptions;
use super::prompt;

/// The parts of the command line as they stood.
#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    /// Review what is not committed: staged, unstaged and untracked files.
    #[arg(long, conflicts_with_all = ["base", "commit", "prompt"])]
    uncommitted: bool,
    /// Review what this branch adds to another one.
    #[arg(long, value_name = "BRANCH", conflicts_with_all = ["commit", "prompt"])]
    base: Option<String>,
    /// Review one commit.
    #[arg(long, value_name = "SHA", conflicts_with = "prompt")]
    commit: Option<String>,
    /// The subject of the commit, for display.
    #[arg(long, value_name = "TITLE", requires = "commit")]
    title: Option<String>,
    /// Instructions of your own for the reviewer. `-` reads them from standard input.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    #[command(flatten)]
    options: ExecOptions,
}

/// The subject of a review, before standard input is read.
#[derive(Debug, PartialEq)]
pub(crate) enum ReviewSubject {
    Target(ReviewTarget),
    /// Instructions, or `-` for standard input.
    Instructions(String),
}

impl ReviewArgs {
    /// The subject, and the options that stood after `review`. `before` is a prompt that stood in front of it.
    pub(super) fn subject(self, before: Option<&str>) -> Result<(ReviewSubject, ExecOptions)> {
        let Self { uncommitted, base, commit, title, prompt, options } = self;
        if before.is_some() {
            bail!("instructions for a review go behind it: `exec review PROMPT`");
        }
        let target = match (uncommitted, base, commit, prompt) {
            (true, ..) => ReviewTarget::UncommittedChanges,
            (_, Some(branch), ..) => ReviewTarget::BaseBranch { branch },
            (_, _, Some(sha), _) => ReviewTarget::Commit { sha, title },
            (_, _, _, Some(prompt)) => return Ok((ReviewSubject::Instructions(prompt), options)),
            (false, None, None, None) => {
                bail!(
                    "say what to review: --uncommitted, --base BRANCH, --commit SHA, or instructions of your own"
                )
            }
        };
        Ok((ReviewSubject::Target(target), options))
    }
}

impl ReviewSubject {
    /// Reads standard input where the instructions are there.
    pub(super) fn target(self) -> Result<ReviewTarget> {
        match self {
            Self::Target(target) => Ok(target),
            Self::Instructions(said) => Ok(ReviewTarget::Custom { instructions: prompt::read(Some(said))? }),
        }
    }
}

/// The words above the turn.
pub(super) fn shown(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => "review of what is not committed".to_owned(),
        ReviewTarget::BaseBranch { branch } => format!("review of what this branch adds to {branch}"),
        ReviewTarget::Commit { sha, title: None } => format!("review of commit {sha}"),
        ReviewTarget::Commit { sha, title: Some(title) } => format!("review of commit {sha}: {title}"),
        ReviewTarget::Custom { instructions } => format!("review: {instructions}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        review: ReviewArgs,
    }

    fn subject(line: &[&str]) -> Result<ReviewSubject, String> {
        let parsed = Line::try_parse_from([&["review"], line].concat()).map_err(|error| error.to_string())?;
        parsed.review.subject(None).map(|(subject, _)| subject).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(line: &[&str], target: &ReviewTarget, words: &str) {
        assert_eq!(subject(line), Ok(ReviewSubject::Target(target.clone())), "{line:?}");
        assert_eq!(shown(target), words);
    }

    #[test]
    fn every_target_can_be_said() {
        check(&["--uncommitted"], &ReviewTarget::UncommittedChanges, "review of what is not committed");
        let branch = ReviewTarget::BaseBranch { branch: "main".to_owned() };
        check(&["--base", "main"], &branch, "review of what this branch adds to main");
        let commit = |title: Option<&str>| ReviewTarget::Commit {
            sha: "12ab".to_owned(),
            title: title.map(str::to_owned),
        };
        check(&["--commit", "12ab"], &commit(None), "review of commit 12ab");
        check(&["--commit", "12ab", "--title", "Tidy"], &commit(Some("Tidy")), "review of commit 12ab: Tidy");
        assert_eq!(subject(&["look"]), Ok(ReviewSubject::Instructions("look".to_owned())));
    }

    #[test]
    fn one_target_at_a_time() {
        for line in [
            &["--uncommitted", "--base", "main"][..],
            &["--base", "main", "--commit", "12ab"],
            &["--uncommitted", "look"],
            &["--commit", "12ab", "look"],
            &["--title", "Tidy"],
        ] {
            assert!(subject(line).is_err(), "{line:?}");
        }
        assert!(subject(&[]).is_err_and(|error| error.contains("--uncommitted")));
    }
}
