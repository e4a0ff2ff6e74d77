//! The arguments of `oarlock exec`. The same options may stand before and after a subcommand.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use protocol::SandboxMode;

use super::review::{ReviewArgs, ReviewSubject};
use crate::flags::Flags;
use crate::terminal::Color;

/// The parts of the command line as they stood.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct ExecArgs {
    /// The task. `-`, or no prompt while input is piped, reads it from standard input.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    #[command(flatten)]
    options: ExecOptions,
    #[command(subcommand)]
    command: Option<ExecSubcommand>,
}

#[derive(Debug, Subcommand)]
enum ExecSubcommand {
    /// Go on with an earlier thread.
    Resume(ResumeArgs),
    /// Have changes reviewed in a new thread.
    Review(ReviewArgs),
}

#[derive(Debug, Args)]
struct ResumeArgs {
    /// The thread, by its id, the beginning of it, or its name.
    #[arg(value_name = "ID|NAME")]
    thread: Option<String>,
    /// The next task. `-`, or no prompt while input is piped, reads it from standard input.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// The thread of this folder that was used last.
    #[arg(long)]
    last: bool,
    /// Look for threads of every folder.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: ExecOptions,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ExecOptions {
    /// Write events as JSON, one per line, to standard output.
    #[arg(long, visible_alias = "experimental-json", help_heading = "Output")]
    pub(crate) json: bool,
    /// Ask for an answer that follows the JSON Schema in this file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the final message to this file, if the turn completes.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output_last_message: Option<PathBuf>,
    /// When to use colours: `auto` on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", help_heading = "Output")]
    pub(crate) color: Option<Color>,
    /// Show the details of failures: the address that was asked, and the provider's id of its answer.
    #[arg(short = 'v', long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Work in this folder.
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Workspace")]
    pub(crate) cd: Option<PathBuf>,
    /// One more folder that may be written to under workspace-write. Repeat for more.
    #[arg(long, value_name = "DIR", help_heading = "Workspace")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Work outside of a git repository, too.
    #[arg(long, help_heading = "Workspace")]
    pub(crate) skip_git_repo_check: bool,
    /// Work elsewhere, in an empty workspace: a name of `[placements]`, `docker:IMAGE`, `podman:IMAGE`, `ssh:HOST` or
    /// `kubernetes:IMAGE`. The place is removed afterwards.
    #[arg(long, value_name = "NAME", help_heading = "Workspace", conflicts_with = "cd")]
    pub(crate) placement: Option<String>,
    /// The build of the runtime for the placement.
    #[arg(long, value_name = "FILE", help_heading = "Workspace", requires = "placement")]
    pub(crate) runtime: Option<PathBuf>,
    /// Where commands may write.
    #[arg(short = 's', long, value_enum, value_name = "MODE", help_heading = "Workspace")]
    pub(crate) sandbox: Option<Sandbox>,
    /// Short for `--sandbox workspace-write`.
    #[arg(long, help_heading = "Workspace", conflicts_with = "yolo")]
    pub(crate) full_auto: bool,
    /// No sandbox and no git check. Only for machines that are a sandbox themselves.
    #[arg(
        long = "dangerously-bypass-approvals-and-sandbox",
        visible_alias = "yolo",
        id = "yolo",
        help_heading = "Workspace"
    )]
    pub(crate) yolo: bool,
    /// Keep no record of the thread.
    #[arg(long, help_heading = "Workspace")]
    pub(crate) ephemeral: bool,
    /// The model to ask.
    #[arg(short = 'm', long, value_name = "NAME", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// The provider to ask; `offline` needs no key and no network. Wins over the configuration and its profiles.
    #[arg(long, value_name = "ID", help_heading = "Model")]
    pub(crate) provider: Option<String>,
    /// Ask a model on this machine.
    #[arg(long, help_heading = "Model")]
    pub(crate) oss: bool,
    /// Which server on this machine to ask: lmstudio or ollama.
    #[arg(long, value_name = "ID", help_heading = "Model", value_parser = ["lmstudio", "ollama"])]
    pub(crate) local_provider: Option<String>,
    /// Show the model these image files, before the prompt. Repeat, or separate by commas.
    #[arg(short = 'i', long = "image", value_name = "FILE", value_delimiter = ',', help_heading = "Model")]
    pub(crate) images: Vec<PathBuf>,
    /// Use this `[profiles.NAME]` of the configuration.
    #[arg(short = 'p', long, value_name = "NAME", help_heading = "Configuration")]
    pub(crate) profile: Option<String>,
    /// A word for where the thread came from, kept with its record.
    #[arg(long, value_name = "WORD", help_heading = "Workspace")]
    pub(crate) thread_source: Option<String>,
    /// Means nothing here; clients pass it.
    #[arg(long, value_name = "NAME", hide = true, num_args = 0..=1)]
    pub(crate) cyber_access_program: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

/// Which thread the turn belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExecTarget {
    New,
    /// The last one, of this folder alone or of any.
    Last {
        of_any_folder: bool,
    },
    /// An id or a name.
    Named(String),
}

/// The parsed command line, whether an option stood before or after a subcommand.
#[derive(Debug)]
pub(crate) struct ExecJob {
    pub(crate) target: ExecTarget,
    pub(crate) prompt: Option<String>,
    /// Set for a review, which takes the place of a prompt.
    pub(crate) review: Option<ReviewSubject>,
    pub(crate) options: ExecOptions,
}

impl ExecArgs {
    pub(crate) fn job(self, root: Flags) -> anyhow::Result<ExecJob> {
        let mut options = self.options;
        options.flags = root.then(options.flags);
        let resume = match self.command {
            Some(ExecSubcommand::Resume(resume)) => resume,
            Some(ExecSubcommand::Review(review)) => {
                let (review, later) = review.subject(self.prompt.as_deref())?;
                let options = options.then(later);
                if options.output_schema.is_some() || !options.images.is_empty() {
                    anyhow::bail!("a review has a form of its own; leave out --output-schema and --image");
                }
                return Ok(ExecJob { target: ExecTarget::New, prompt: None, review: Some(review), options });
            }
            None => {
                return Ok(ExecJob { target: ExecTarget::New, prompt: self.prompt, review: None, options });
            }
        };
        let ResumeArgs { thread, prompt, last, all, options: later } = resume;
        let (target, prompt) = match (last, thread) {
            // With --last there is no thread to name, so what comes first is the prompt.
            (true, said) => (ExecTarget::Last { of_any_folder: all }, said.or(prompt)),
            (false, Some(thread)) => (ExecTarget::Named(thread), prompt),
            (false, None) => anyhow::bail!("say which thread: `resume ID`, `resume NAME` or `resume --last`"),
        };
        let options = options.then(later);
        Ok(ExecJob { target, prompt: prompt.or(self.prompt), review: None, options })
    }
}

impl ExecOptions {
    /// These, and where both speak those that stood further right.
    fn then(self, later: Self) -> Self {
        let together = |mut first: Vec<PathBuf>, second| {
            first.extend(second);
            first
        };
        Self {
            json: self.json || later.json,
            output_schema: later.output_schema.or(self.output_schema),
            output_last_message: later.output_last_message.or(self.output_last_message),
            color: later.color.or(self.color),
            verbose: self.verbose || later.verbose,
            cd: later.cd.or(self.cd),
            add_dir: together(self.add_dir, later.add_dir),
            skip_git_repo_check: self.skip_git_repo_check || later.skip_git_repo_check,
            sandbox: later.sandbox.or(self.sandbox),
            full_auto: self.full_auto || later.full_auto,
            yolo: self.yolo || later.yolo,
            ephemeral: self.ephemeral || later.ephemeral,
            model: later.model.or(self.model),
            provider: later.provider.or(self.provider),
            oss: self.oss || later.oss,
            local_provider: later.local_provider.or(self.local_provider),
            images: together(self.images, later.images),
            profile: later.profile.or(self.profile),
            thread_source: later.thread_source.or(self.thread_source),
            cyber_access_program: None,
            placement: later.placement.or(self.placement),
            runtime: later.runtime.or(self.runtime),
            flags: self.flags.then(later.flags),
        }
    }

    pub(crate) fn sandbox_mode(&self) -> Option<SandboxMode> {
        if self.yolo {
            return Some(SandboxMode::DangerFullAccess);
        }
        if self.full_auto {
            return Some(SandboxMode::WorkspaceWrite);
        }
        self.sandbox.map(SandboxMode::from)
    }
}

impl From<Sandbox> for SandboxMode {
    fn from(sandbox: Sandbox) -> Self {
        match sandbox {
            Sandbox::ReadOnly => Self::ReadOnly,
            Sandbox::WorkspaceWrite => Self::WorkspaceWrite,
            Sandbox::DangerFullAccess => Self::DangerFullAccess,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        exec: ExecArgs,
    }

    fn job(line: &[&str]) -> Result<ExecJob, String> {
        let parsed = Line::try_parse_from([&["exec"], line].concat()).map_err(|error| error.to_string())?;
        parsed.exec.job(Flags::default()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(line: &[&str], target: &ExecTarget, prompt: Option<&str>) -> ExecOptions {
        match job(line) {
            Ok(job) => {
                assert_eq!((&job.target, job.prompt.as_deref()), (target, prompt), "{line:?}");
                job.options
            }
            Err(error) => panic!("{line:?}: {error}"),
        }
    }

    #[test]
    fn the_thread_and_the_prompt() {
        let last = |of_any_folder| ExecTarget::Last { of_any_folder };
        let named = |name: &str| ExecTarget::Named(name.to_owned());
        check(&["hello"], &ExecTarget::New, Some("hello"));
        check(&[], &ExecTarget::New, None);
        check(&["-"], &ExecTarget::New, Some("-"));
        check(&["resume", "--last"], &last(false), None);
        check(&["resume", "--last", "--all", "go on"], &last(true), Some("go on"));
        check(&["resume", "go on", "--last"], &last(false), Some("go on"));
        check(&["resume", "abc"], &named("abc"), None);
        check(&["--json", "resume", "abc", "go on"], &named("abc"), Some("go on"));
        check(&["resume", "abc", "-"], &named("abc"), Some("-"));
        assert!(job(&["resume"]).is_err_and(|error| error.contains("--last")));
    }

    #[test]
    fn options_count_on_both_sides_of_resume() {
        let line = "--experimental-json --config a=1 --cd /x --add-dir /p --sandbox workspace-write -m m1 \
            --image a.png,b.png --output-schema s.json --skip-git-repo-check --thread-source sdk \
            --cyber-access-program x resume T --image c.png --add-dir /q -c b=2 --model m2";
        let line: Vec<&str> = line.split_whitespace().collect();
        let options = check(&line, &ExecTarget::Named("T".to_owned()), None);
        assert!(options.json && options.skip_git_repo_check);
        assert_eq!(options.flags.config, ["a=1", "b=2"]);
        assert_eq!(options.add_dir, [PathBuf::from("/p"), PathBuf::from("/q")]);
        assert_eq!(options.images, ["a.png", "b.png", "c.png"].map(PathBuf::from));
        assert_eq!(options.model.as_deref(), Some("m2"));
        assert_eq!(options.sandbox_mode(), Some(SandboxMode::WorkspaceWrite));
        assert_eq!(options.thread_source.as_deref(), Some("sdk"));
    }

    #[test]
    fn shorthands_for_the_sandbox() {
        let mode = |line: &[&str]| check(line, &ExecTarget::New, None).sandbox_mode();
        assert_eq!(mode(&[]), None);
        assert_eq!(mode(&["-s", "read-only"]), Some(SandboxMode::ReadOnly));
        assert_eq!(mode(&["--full-auto"]), Some(SandboxMode::WorkspaceWrite));
        assert_eq!(mode(&["--yolo"]), Some(SandboxMode::DangerFullAccess));
        assert_eq!(
            mode(&["--dangerously-bypass-approvals-and-sandbox"]),
            Some(SandboxMode::DangerFullAccess)
        );
        assert!(job(&["--yolo", "--full-auto"]).is_err());
    }
}
