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

use super::args::ExecOptions;
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
    has_model: bool,
}

/// The settings that the thread is opened with.
#[derive(Debug)]
struct Choices {
    model: Option<String>,
    provider: Option<String>,
    sandbox: Option<protocol::SandboxMode>,
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
        let output_schema = options.output_schema.as_deref().map(read_schema).transpose()?;
        let images = options.images.iter().map(|path| image(path)).collect::<Result<Vec<_>>>()?;
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
        let (provider, model) = model_choice(options, &config)?;
        let choices = Choices {
            model,
            provider,
            sandbox: options.sandbox_mode(),
            ephemeral: options.ephemeral,
            thread_source: options.thread_source.clone(),
            model_flags: flags.into_iter().filter(|(key, _)| MODEL_KEYS.contains(&key.as_str())).collect(),
        };
        let offer = ProviderOffer {
            has_model: config.model.name.is_some() || config.provider.default_model.is_some(),
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
            images,
            warnings: warnings.iter().map(warning_text).chain(config.unfinished_features_warning()).collect(),
            choices,
        })
    }

    /// Images come before the text.
    pub(super) fn input(&self, prompt: &str) -> Vec<UserInput> {
        let text = UserInput::Text { text: prompt.to_owned(), text_elements: Vec::new() };
        self.images.iter().cloned().chain([text]).collect()
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

    /// Completes what nobody chose: a server that answers on this machine, and the model of a server that has its own.
    pub(super) async fn with_offered_model(&self, mut params: ThreadStartParams) -> ThreadStartParams {
        let ProviderOffer { provider, reason, known, has_model } = &self.offer;
        let is_other = params.model_provider.as_ref().is_some_and(|id| *id != provider.id);
        let directory = ModelDirectory::new(self.loader.clone());
        if *reason == ProviderReason::Nothing && !is_other {
            if let Some((found, models)) = directory.local_server(|id| known.get(id)).await {
                params.model_provider = Some(found.id.clone());
                params.model = params.model.or_else(|| models.first().map(|model| model.id.clone()));
            }
        } else if params.model.is_none() && !has_model && !is_other && ModelDirectory::can_tell(provider) {
            let models = directory.models(provider).await.ok();
            params.model = models.and_then(|models| models.first().map(|model| model.id.clone()));
        }
        params
    }

    /// The same choices for a stored thread, as `thread/resume` and `thread/fork` take them.
    pub(crate) fn reopen_params<T: serde::de::DeserializeOwned>(&self, thread_id: &ThreadId) -> Result<T> {
        let choices = &self.choices;
        let flags = choices.model_flags.iter();
        let config: serde_json::Map<String, Value> =
            flags.map(|(key, value)| (key.clone(), value.trim_matches(['"', '\'']).into())).collect();
        let mut params = json!({
            "threadId": thread_id,
            "model": choices.model,
            "modelProvider": choices.provider,
            "cwd": self.folder.to_string_lossy(),
            "approvalPolicy": AskForApproval::Never,
            "sandbox": choices.sandbox,
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

fn read_schema(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("--output-schema {} cannot be read", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("--output-schema {} is not JSON", path.display()))
}

fn image(path: &Path) -> Result<UserInput> {
    let problem = || format!("--image {} cannot be read", path.display());
    let path = fs::canonicalize(path).with_context(problem)?;
    fs::File::open(&path).with_context(problem)?;
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
