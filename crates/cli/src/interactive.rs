//! `oarlock` alone in a terminal: an interactive session with a server of its own, or with one that runs elsewhere.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use ::terminal::{
    HistoryFile, PromptTemplate, ScreenSize, ScreenStyle, ServerAddress, SessionOptions, SessionStart,
    TerminalSession, ThreadChoices,
};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use protocol::{AskForApproval, ThreadId};
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions, ProviderReason, ResolvedConfig};
use runtime::{ModelDirectory, SystemClock};

use crate::earlier_rules::EarlierRules;
use crate::exec::Sandbox;
use crate::flags::Flags;
use crate::local_servers::offered;

/// Kept in the state folder.
const HISTORY: &str = "terminal-history.jsonl";

/// How a session begins, as far as the command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct InteractiveOptions {
    /// Work in this folder.
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Interactive session")]
    cd: Option<PathBuf>,
    /// The model to ask.
    #[arg(short = 'm', long, value_name = "NAME", help_heading = "Interactive session")]
    model: Option<String>,
    /// The provider to ask; `offline` needs no key and no network.
    #[arg(long, value_name = "ID", help_heading = "Interactive session")]
    provider: Option<String>,
    /// Where commands may write.
    #[arg(short = 's', long, value_enum, value_name = "MODE", help_heading = "Interactive session")]
    sandbox: Option<Sandbox>,
    /// What you are asked about.
    #[arg(short = 'a', long, value_enum, value_name = "POLICY", help_heading = "Interactive session")]
    approvals: Option<ApprovalsChoice>,
    /// Use this `[profiles.NAME]` of the configuration.
    #[arg(short = 'p', long, value_name = "NAME", help_heading = "Interactive session")]
    profile: Option<String>,
    /// Show the model these image files with the first prompt. Repeat, or separate by commas.
    #[arg(
        short = 'i',
        long = "image",
        value_name = "FILE",
        value_delimiter = ',',
        help_heading = "Interactive session"
    )]
    images: Vec<PathBuf>,
    /// Use this server instead of one of your own: `ws://HOST:PORT` or `unix://PATH`, of an app-server or a host.
    #[arg(long, value_name = "URL", help_heading = "Interactive session")]
    remote: Option<String>,
    /// The file with the token that the remote server asks for.
    #[arg(long, value_name = "FILE", requires = "remote", help_heading = "Interactive session")]
    ws_token_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ApprovalsChoice {
    Untrusted,
    OnFailure,
    OnRequest,
    Never,
}

/// `oarlock resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeOptions {
    /// The thread, by the beginning of its id or by its name. Without one you choose from a list.
    #[arg(value_name = "ID|NAME")]
    thread: Option<String>,
    /// What to say first.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// The thread of this folder that was used last.
    #[arg(long)]
    last: bool,
    #[command(flatten)]
    options: InteractiveOptions,
    #[command(flatten)]
    flags: Flags,
}

/// Which thread a session begins with.
#[derive(Debug)]
enum InteractiveTarget {
    New,
    Last,
    Named(String),
    Choose,
}

/// Whether somebody sits there.
pub(crate) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

pub(crate) fn start(options: &InteractiveOptions, prompt: Option<String>, flags: &Flags) -> Result<ExitCode> {
    run(options, &InteractiveTarget::New, prompt, flags)
}

pub(crate) fn resume(resume: ResumeOptions, root: Flags) -> Result<ExitCode> {
    let ResumeOptions { thread, prompt, last, options, flags } = resume;
    let (target, prompt) = match (last, thread) {
        // With --last there is no thread to name, so what comes first is the prompt.
        (true, said) => (InteractiveTarget::Last, said.or(prompt)),
        (false, Some(thread)) => (InteractiveTarget::Named(thread), prompt),
        (false, None) => (InteractiveTarget::Choose, prompt),
    };
    run(&options, &target, prompt, &root.then(flags))
}

fn run(
    options: &InteractiveOptions,
    target: &InteractiveTarget,
    prompt: Option<String>,
    flags: &Flags,
) -> Result<ExitCode> {
    if !has_terminal() {
        bail!("an interactive session needs a terminal; `oarlock exec` works without one");
    }
    let folder = crate::exec::folder(options.cd.as_deref())?;
    let home = Home::look_from_env()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut choices = options.choices(&folder);
    if options.remote.is_none() {
        // Settings that cannot be used are refused here: a session could only say the same, with more words.
        let (loader, config) = options.settings(&folder, flags)?;
        if matches!(target, InteractiveTarget::New) && choices.provider.is_none() {
            choices.provider = runtime.block_on(offered_provider(loader, &config));
        }
    }
    let start = match target {
        InteractiveTarget::New => SessionStart::New(choices),
        InteractiveTarget::Last => SessionStart::Last(choices),
        InteractiveTarget::Named(name) if options.remote.is_none() => {
            SessionStart::Named(crate::threads::named_thread(&home, name)?.to_string(), choices)
        }
        InteractiveTarget::Named(name) => SessionStart::Named(name.clone(), choices),
        InteractiveTarget::Choose => SessionStart::Choose(choices),
    };
    let session = TerminalSession {
        options: SessionOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            folder: folder.to_string_lossy().into_owned(),
            start,
            prompt,
            images: options.images.iter().map(|path| crate::exec::image(path)).collect::<Result<_>>()?,
            remote: options.remote.clone(),
            resume_command: options.resume_command(),
            style: style(),
            size: ScreenSize::of_terminal(),
            history: Vec::new(),
            prompts: prompts(&home),
            is_file: |path| path.is_file(),
            image_url: |path| crate::exec::image_url(path).map_err(|error| format!("{error:#}")),
            home: std::env::home_dir(),
            nearest: |typed, known| {
                runtime::config::nearest(typed, known.iter().map(String::as_str)).map(str::to_owned)
            },
            earlier,
        },
        server: options.server(flags)?,
        history: HistoryFile::new(Some(home.state().join(HISTORY))),
    };
    let is_good = runtime.block_on(session.run());
    // A read of the keyboard that nobody waits for any more must not keep the process.
    runtime.shutdown_background();
    Ok(if is_good? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings that a stored thread keeps. Not the approval policy `never`: `exec` sets it because nobody can be asked.
fn earlier(thread: &str) -> ThreadChoices {
    let Ok(home) = Home::look_from_env() else { return ThreadChoices::default() };
    let rules = EarlierRules::of(&home, &ThreadId::new(thread));
    let asked = rules.approvals.as_ref().filter(|policy| **policy != AskForApproval::Never);
    ThreadChoices {
        sandbox: rules.mode().as_ref().and_then(word),
        approvals: asked.and_then(word),
        ..ThreadChoices::default()
    }
}

/// As the wire has it. Nothing for a policy that is more than a word.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// A server that answers on this machine, where nothing chooses a provider and no key is there.
async fn offered_provider(loader: Loader, config: &ResolvedConfig) -> Option<String> {
    if config.provider_reason != ProviderReason::Nothing {
        return None;
    }
    let directory = ModelDirectory::new(loader, Arc::new(SystemClock));
    let found = directory.local_server(|id| offered(&config.providers, id)).await;
    found.map(|(provider, _)| provider.id.clone())
}

impl InteractiveOptions {
    /// Something was said that is for a session alone.
    pub(crate) fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// Those of a server of this session.
    fn settings(&self, folder: &Path, flags: &Flags) -> Result<(Loader, ResolvedConfig)> {
        let profile = self.profile.iter().map(|profile| ("profile".to_owned(), profile.clone()));
        let pairs = profile.chain(flags.pairs()?).collect();
        let loader = Loader::new(Home::look_from_env()?, pairs, LoaderOptions::default());
        let mut request = LoadRequest { cwd: Some(folder.to_owned()), ..LoadRequest::default() };
        request.overrides.model_provider.clone_from(&self.provider);
        let config = loader.load(&request)?;
        Ok((loader, config))
    }

    fn choices(&self, folder: &Path) -> ThreadChoices {
        let word = |value: Option<clap::builder::PossibleValue>| Some(value?.get_name().to_owned());
        ThreadChoices {
            model: self.model.clone(),
            provider: self.provider.clone(),
            approvals: self.approvals.and_then(|approvals| word(approvals.to_possible_value())),
            sandbox: self.sandbox.and_then(|sandbox| word(sandbox.to_possible_value())),
            folder: self.cd.as_ref().map(|_| folder.to_string_lossy().into_owned()),
        }
    }

    fn server(&self, flags: &Flags) -> Result<ServerAddress> {
        let Some(url) = &self.remote else {
            let program = std::env::current_exe().context("this program cannot be found")?;
            let mut arguments: Vec<OsString> = vec!["app-server".into()];
            let profile = self.profile.as_ref().map(|profile| ("profile".to_owned(), profile.clone()));
            for (key, value) in profile.into_iter().chain(flags.pairs()?) {
                arguments.extend(["-c".into(), format!("{key}={value}").into()]);
            }
            return Ok(ServerAddress::Child { program, arguments });
        };
        let token = self.ws_token_file.as_ref().map(|path| {
            let token =
                fs::read_to_string(path).with_context(|| format!("--ws-token-file {}", path.display()))?;
            anyhow::Ok(token.trim().to_owned())
        });
        Ok(ServerAddress::Remote { url: url.clone(), token: token.transpose()? })
    }

    /// The command line that resumes the thread, without its id.
    fn resume_command(&self) -> String {
        let remote = self.remote.as_ref().map(|url| format!(" --remote {url}"));
        let token = self.ws_token_file.as_ref().map(|path| format!(" --ws-token-file {}", path.display()));
        format!("oarlock resume{}{}", remote.unwrap_or_default(), token.unwrap_or_default())
    }
}

/// The user's own prompts. Also for a remote server: who types is here.
fn prompts(home: &Home) -> Vec<PromptTemplate> {
    let template = |prompt: skills::CustomPrompt| PromptTemplate {
        name: prompt.name,
        about: [prompt.argument_hint, prompt.description]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("  "),
        body: prompt.body,
    };
    skills::custom_prompts(home.reading()).into_iter().map(template).collect()
}

fn style() -> ScreenStyle {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    ScreenStyle {
        has_colours: !is_dumb && variable("NO_COLOR").is_none(),
        is_ascii: is_dumb || locale.is_some_and(|locale| locale == "C" || locale == "POSIX"),
        can_redraw: !is_dumb,
    }
}
