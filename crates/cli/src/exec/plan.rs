//! From options to what the runtime is asked: everything that can be wrong is found before a thread exists.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use protocol::{AskForApproval, ThreadId, ThreadStartParams, UserInput};
use runtime::config::{
    Home, LoadRequest, Loader, LoaderOptions, ProviderConfig, ProviderKind, ProviderReason, ResolvedConfig,
};
use runtime::{Catalogue, ModelDirectory};
use serde_json::{Value, json};

use super::answer_file::AnswerFile;
use super::args::ExecOptions;
use super::checks;
use crate::config_parts;
use crate::earlier_rules::EarlierRules;
use crate::local_servers::offered;
use crate::wording::warning_text;

/// Keys that choose a model. Given on the line, they count for a stored thread as well.
const MODEL_KEYS: &[&str] = &["model", "model_provider", "model_reasoning_effort"];

/// All that a run needs.
#[derive(Debug)]
pub(crate) struct ExecPlan {
    pub(crate) loader: Loader,
    pub(crate) catalogue: Catalogue,
    pub(crate) folder: PathBuf,
    pub(super) hides_reasoning: bool,
    /// The weaker sandbox is asked for.
    pub(super) landlock_only: bool,
    pub(super) output_schema: Option<Value>,
    /// Where the final message goes beside standard output.
    pub(super) answer: Option<AnswerFile>,
    pub(super) images: Vec<UserInput>,
    pub(super) warnings: Vec<String>,
    choices: Choices,
    offer: ProviderOffer,
}

/// The configured provider, for a line that leaves the model open.
#[derive(Debug)]
struct ProviderOffer {
    provider: ProviderConfig,
    reason: ProviderReason,
    /// Every provider by id.
    known: BTreeMap<String, ProviderConfig>,
}

/// The settings that the thread is opened with.
#[derive(Debug)]
struct Choices {
    model: Option<String>,
    provider: Option<String>,
    sandbox: Option<protocol::SandboxMode>,
    /// The line says where commands may write, so that a stored thread does not keep its own rules.
    has_sandbox: bool,
    ephemeral: bool,
    thread_source: Option<String>,
    /// Flags that choose a model.
    model_flags: Vec<(String, String)>,
}

impl ExecPlan {
    pub(crate) fn make(options: &ExecOptions) -> Result<Self> {
        Self::make_at(Home::from_env()?, options)
    }

    /// With the settings of this home.
    pub(crate) fn make_at(home: Home, options: &ExecOptions) -> Result<Self> {
        let folder = folder(options.cd.as_deref())?;
        let is_elsewhere = options.placement.as_deref().is_some_and(|name| name != "local");
        if !is_elsewhere && !options.skip_git_repo_check && !options.yolo && !is_in_repository(&folder) {
            bail!(
                "{} is not inside a git repository, so changes there could not be undone; add \
                 --skip-git-repo-check to work there all the same",
                folder.display()
            );
        }
        let output_schema = options.output_schema.as_deref().map(checks::schema).transpose()?;
        let images = options.images.iter().map(|path| image(path)).collect::<Result<Vec<_>>>()?;
        let answer = options.output_last_message.as_deref().map(AnswerFile::prepare).transpose()?;
        let mut flags = options.flags.pairs()?;
        flags.extend(options.profile.iter().map(|name| ("profile".to_owned(), quoted(name))));
        let loader = Loader::new(home, flags.clone(), LoaderOptions::default());
        let mut request = LoadRequest { cwd: Some(folder.clone()), ..LoadRequest::default() };
        request.overrides.model_provider.clone_from(&options.provider);
        let config = loader.load(&request)?;
        let loader = match writable_roots(options, &config)? {
            None => loader,
            Some(roots) => {
                let mut flags = flags.clone();
                flags.push(("sandbox_workspace_write.writable_roots".to_owned(), roots));
                Loader::new(loader.home().clone(), flags, LoaderOptions::default())
            }
        };
        let catalogue = match &config.model.catalog_json {
            Some(path) => Catalogue::from_file(path)?,
            None => Catalogue::bundled(),
        };
        // It has tools of its own, which only its entry names.
        let catalogue = match config.provider.kind {
            ProviderKind::Offline => catalogue.with_offline(),
            ProviderKind::OpenAi | ProviderKind::Compatible => catalogue,
        };
        let warnings = loader.startup(Some(&folder)).warnings;
        let more_warnings: Vec<String> = config.unfinished_features_warning().into_iter().collect();
        let more_warnings =
            [more_warnings, config_parts::rules(&config).1, config_parts::hooks(&config).1].concat();
        let (provider, model) = model_choice(options, &config)?;
        let choices = Choices {
            model,
            provider,
            sandbox: options.sandbox_mode(),
            has_sandbox: chooses_sandbox(options, &flags),
            ephemeral: options.ephemeral,
            thread_source: options.thread_source.clone(),
            model_flags: flags.into_iter().filter(|(key, _)| MODEL_KEYS.contains(&key.as_str())).collect(),
        };
        let offer = ProviderOffer {
            provider: config.provider.clone(),
            reason: config.provider_reason.clone(),
            known: config.providers.clone(),
        };
        Ok(Self {
            offer,
            loader,
            catalogue,
            folder,
            hides_reasoning: config.hide_agent_reasoning,
            landlock_only: config.features.enabled("use_legacy_landlock"),
            output_schema,
            answer,
            images,
            warnings: warnings.iter().map(warning_text).chain(more_warnings).collect(),
            choices,
        })
    }

    /// Images come before the text.
    pub(super) fn input(&self, prompt: &str) -> Vec<UserInput> {
        let text = UserInput::Text { text: prompt.to_owned(), text_elements: Vec::new() };
        self.images.iter().cloned().chain([text]).collect()
    }

    /// A stored thread goes on with the sandbox it had.
    pub(crate) fn keeps_sandbox(&self) -> bool {
        !self.choices.has_sandbox
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.choices.ephemeral
    }

    /// Nobody is there to be asked, so nothing may ask.
    pub(crate) fn start_params(&self) -> ThreadStartParams {
        ThreadStartParams {
            model: self.choices.model.clone(),
            model_provider: self.choices.provider.clone(),
            cwd: Some(self.folder.to_string_lossy().into_owned()),
            approval_policy: Some(AskForApproval::Never),
            sandbox: self.choices.sandbox,
            thread_source: self.choices.thread_source.clone(),
            ephemeral: Some(self.choices.ephemeral),
            ..ThreadStartParams::default()
        }
    }

    /// With a server that answers on this machine, where nobody chose a provider.
    pub(super) async fn with_offered_provider(
        &self,
        mut params: ThreadStartParams,
        directory: &ModelDirectory,
    ) -> ThreadStartParams {
        let ProviderOffer { provider, reason, known } = &self.offer;
        let is_other = params.model_provider.as_ref().is_some_and(|id| *id != provider.id);
        if *reason == ProviderReason::Nothing
            && !is_other
            && let Some((found, _)) = directory.local_server(|id| offered(known, id)).await
        {
            params.model_provider = Some(found.id.clone());
        }
        params
    }

    /// The same choices for a stored thread, as `thread/resume` and `thread/fork` take them. `earlier` are the rules that
    /// it had.
    pub(crate) fn reopen_params<T: serde::de::DeserializeOwned>(
        &self,
        thread_id: &ThreadId,
        earlier: &EarlierRules,
    ) -> Result<T> {
        let choices = &self.choices;
        let kept = earlier.mode().filter(|_| self.keeps_sandbox());
        let flags = choices.model_flags.iter();
        let config: serde_json::Map<String, Value> =
            flags.map(|(key, value)| (key.clone(), value.trim_matches(['"', '\'']).into())).collect();
        let mut params = json!({
            "threadId": thread_id,
            "model": choices.model,
            "modelProvider": choices.provider,
            "cwd": self.folder.to_string_lossy(),
            "approvalPolicy": AskForApproval::Never,
            "sandbox": choices.sandbox.or(kept),
            "excludeTurns": true,
        });
        if !config.is_empty() {
            params["config"] = config.into();
        }
        if choices.ephemeral {
            params["ephemeral"] = true.into();
        }
        Ok(protocol::from_value(&params)?)
    }
}

/// Where to work: the folder that `--cd` names, else the current one.
pub(crate) fn folder(cd: Option<&Path>) -> Result<PathBuf> {
    let Some(cd) = cd else { return std::env::current_dir().context("the current folder cannot be used") };
    let folder = fs::canonicalize(cd).with_context(|| format!("--cd {}", cd.display()))?;
    if !folder.is_dir() {
        bail!("--cd {} is not a folder", cd.display());
    }
    Ok(folder)
}

pub(crate) fn is_in_repository(folder: &Path) -> bool {
    folder.ancestors().map(|folder| folder.join(".git")).any(|git| git.exists() && !holds_a_name(&git))
}

/// While a command runs, the sandbox keeps the name of a repository free by an empty folder with the sticky bit.
fn holds_a_name(git: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let is_marked = fs::metadata(git).is_ok_and(|found| found.is_dir() && found.mode() & STICKY != 0);
    is_marked && fs::read_dir(git).is_ok_and(|mut entries| entries.next().is_none())
}

fn image(path: &Path) -> Result<UserInput> {
    let path = checks::image(path)?;
    Ok(UserInput::LocalImage { path: path.to_string_lossy().into_owned() })
}

/// The folders of `--add-dir` after those of the configuration, as a value of the configuration.
fn writable_roots(options: &ExecOptions, config: &ResolvedConfig) -> Result<Option<String>> {
    if options.add_dir.is_empty() {
        return Ok(None);
    }
    let configured = config.merged.get("sandbox_workspace_write");
    let configured = configured.and_then(|table| table.get("writable_roots")?.as_array());
    let configured = configured.into_iter().flatten().filter_map(|root| root.as_str()).map(str::to_owned);
    let added = options.add_dir.iter().map(|path| {
        let absolute = std::path::absolute(path).with_context(|| format!("--add-dir {}", path.display()))?;
        if !absolute.is_dir() {
            bail!("--add-dir {} is not a folder", path.display());
        }
        Ok(absolute.to_string_lossy().into_owned())
    });
    let roots = configured.map(Ok).chain(added).collect::<Result<Vec<String>>>()?;
    let roots: Vec<String> = roots.iter().map(|root| quoted(root)).collect();
    Ok(Some(format!("[{}]", roots.join(", "))))
}

/// A text as TOML, whose quotes are those of JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Keys that say where commands may write.
const SANDBOX_KEYS: &[&str] = &["sandbox_mode", "sandbox_workspace_write", "default_permissions"];

fn chooses_sandbox(options: &ExecOptions, flags: &[(String, String)]) -> bool {
    let is_about_it = |key: &str| SANDBOX_KEYS.iter().any(|known| key.split('.').next() == Some(*known));
    options.sandbox_mode().is_some()
        || !options.add_dir.is_empty()
        || options.profile.is_some()
        || flags.iter().any(|(key, _)| is_about_it(key))
}

/// Provider and model where the line chooses them.
fn model_choice(options: &ExecOptions, config: &ResolvedConfig) -> Result<(Option<String>, Option<String>)> {
    if !options.oss && options.local_provider.is_none() {
        // A profile named on the line is a choice as well, and a stored thread is to follow it.
        let profile = options.profile.as_ref().map(|_| config);
        let provider = options.provider.clone().or_else(|| profile.map(|config| config.provider.id.clone()));
        let model = options.model.clone().or_else(|| profile.and_then(|config| config.model.name.clone()));
        return Ok((provider, model));
    }
    let configured = config.merged.get("oss_provider").and_then(|value| value.as_str());
    let Some(provider) = options.local_provider.as_deref().or(configured) else {
        bail!(
            "--oss needs to know which server to ask; add --local-provider lmstudio or --local-provider ollama"
        );
    };
    let model = options.model.clone().unwrap_or_else(|| match provider {
        "lmstudio" => "openai/gpt-oss-20b".to_owned(),
        _ => "gpt-oss:20b".to_owned(),
    });
    Ok((Some(provider.to_owned()), Some(model)))
}
