//! Model providers: built-in and configured ones, and the credentials and headers of their requests.

mod known_providers;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toml::Table;

use crate::keys::{AuthKeys, Keys, ProviderKeys, ThinkingMode, WireApi};
use crate::known_keys::is_known;
use crate::typed::nearest;
use crate::{ConfigError, Env, SecretText, SettingWarning};
use known_providers::{IN_ORDER_OF_CHOICE, address_of_wire, known_providers, no_address};

/// The kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI itself.
    OpenAi,
    /// Any other provider over HTTP.
    Compatible,
    /// The built-in offline model, which needs no network.
    Offline,
}

/// The caller that needs a credential. A server takes none from its environment, because its clients may be strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialCaller {
    Server,
    /// A command that a user or a script runs in its own environment.
    Exec,
}

/// One provider, with its defaults filled in.
#[derive(Clone, PartialEq)]
pub struct ProviderConfig {
    pub id: String,
    /// The display name.
    pub name: String,
    pub kind: ProviderKind,
    pub wire: WireApi,
    /// The base of its requests' URLs. None for the offline model only.
    pub base_url: Option<String>,
    /// The variable of the key.
    pub env_key: Option<String>,
    /// Shown to the user if that variable is unset.
    pub env_key_instructions: Option<String>,
    /// A token in the file itself.
    pub bearer_token: Option<SecretText>,
    pub http_headers: BTreeMap<String, SecretText>,
    /// Header names, and the variables with their values.
    pub env_http_headers: BTreeMap<String, String>,
    pub query_params: BTreeMap<String, SecretText>,
    pub request_max_retries: u32,
    pub stream_max_retries: u32,
    pub stream_idle_timeout_ms: u64,
    pub websocket_connect_timeout_ms: u64,
    /// Whether it uses the stored login.
    pub requires_openai_auth: bool,
    pub supports_websockets: bool,
    /// The default model. None: from the server or the catalogue.
    pub default_model: Option<String>,
    /// Parses calls in the text as `<tool_call>`, for models without native calls.
    pub text_tool_calls: bool,
    /// Limit of one answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Unset: by the model's name.
    pub thinking: Option<ThinkingMode>,
    /// Whether system messages may come after others. Unset: by the provider.
    pub system_messages: Option<bool>,
    /// A known provider other than OpenAI: failures have the same texts on each of its wires.
    pub is_known: bool,
    /// Prints the token of requests.
    pub auth: Option<AuthCommand>,
}

/// A command of the user that prints a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Unset: the home folder of the configuration.
    pub cwd: Option<PathBuf>,
    pub timeout: Duration,
    /// Assumed lifetime of a token without an expiry. None: until it is refused.
    pub refresh: Option<Duration>,
    /// The search path of its program and those it starts, because it runs without a sandbox. Unset without a `PATH`.
    pub search: Option<String>,
}

impl AuthCommand {
    const TIMEOUT_MS: u64 = 5_000;
    const LONGEST_TIMEOUT_MS: u64 = 300_000;
    const REFRESH_MS: u64 = 300_000;

    fn new(keys: &AuthKeys) -> Self {
        let timeout = keys.timeout_ms.unwrap_or(Self::TIMEOUT_MS).clamp(1, Self::LONGEST_TIMEOUT_MS);
        let refresh = keys.refresh_interval_ms.unwrap_or(Self::REFRESH_MS);
        Self {
            argv: std::iter::once(&keys.command).chain(&keys.args).cloned().collect(),
            cwd: keys.cwd.clone(),
            timeout: Duration::from_millis(timeout),
            refresh: (refresh > 0).then(|| Duration::from_millis(refresh)),
            search: None,
        }
    }
}

/// Why a provider was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderReason {
    /// The request or the command line names it.
    Requested,
    /// A configuration file names it.
    Configured,
    /// There is a login.
    Login,
    /// Its key is in this environment variable.
    Key(String),
    /// The default without a key.
    Nothing,
}

const OPENAI: &str = "openai";
const OLLAMA: &str = "ollama";
const LMSTUDIO: &str = "lmstudio";
const OFFLINE: &str = "offline";
const RESERVED: &[&str] = &[OPENAI, OLLAMA, LMSTUDIO, OFFLINE];
/// The name that marks a provider as OpenAI, whatever its id.
const OPENAI_NAME: &str = "OpenAI";
const MOST_RETRIES: u64 = 100;

impl ProviderConfig {
    /// OpenAI's URL for platform keys.
    pub const OPENAI_URL: &'static str = "https://api.openai.com/v1";

    pub const DEFAULT_ID: &'static str = OPENAI;

    /// Whether the name is a built-in provider's.
    pub fn is_built_in(id: &str) -> bool {
        RESERVED.contains(&id)
    }

    pub(crate) fn new(id: &str, keys: &ProviderKeys) -> Self {
        let secrets = |map: &Option<BTreeMap<String, String>>| {
            let entries = map.iter().flatten();
            entries.map(|(name, value)| (name.clone(), SecretText::new(value))).collect()
        };
        let retries = |set: Option<u64>, default: u64| {
            u32::try_from(set.unwrap_or(default).min(MOST_RETRIES)).unwrap_or(u32::MAX)
        };
        let kind = if keys.name == OPENAI_NAME { ProviderKind::OpenAi } else { ProviderKind::Compatible };
        Self {
            id: id.to_owned(),
            name: if keys.name.is_empty() { id.to_owned() } else { keys.name.clone() },
            kind,
            wire: keys.wire_api.unwrap_or_default(),
            base_url: keys.base_url.clone(),
            env_key: keys.env_key.clone(),
            env_key_instructions: keys.env_key_instructions.clone(),
            bearer_token: keys.experimental_bearer_token.as_ref().map(SecretText::new),
            http_headers: secrets(&keys.http_headers),
            env_http_headers: keys.env_http_headers.clone().unwrap_or_default(),
            query_params: secrets(&keys.query_params),
            request_max_retries: retries(keys.request_max_retries, 4),
            stream_max_retries: retries(keys.stream_max_retries, 5),
            stream_idle_timeout_ms: keys.stream_idle_timeout_ms.unwrap_or(300_000),
            websocket_connect_timeout_ms: keys.websocket_connect_timeout_ms.unwrap_or(15_000),
            requires_openai_auth: keys.requires_openai_auth,
            supports_websockets: keys.supports_websockets,
            default_model: None,
            text_tool_calls: keys.text_tool_calls,
            max_output_tokens: keys.max_output_tokens,
            thinking: keys.thinking,
            system_messages: keys.system_messages,
            is_known: false,
            auth: keys.auth.as_ref().map(AuthCommand::new),
        }
    }

    /// Applies a user's keys to this provider. Its key is sent only to its own URL: another URL needs its own key.
    fn with(self, keys: &ProviderKeys) -> Self {
        let wire = keys.wire_api.unwrap_or(self.wire);
        let same = |url: &str| Some(url.trim().trim_end_matches('/')) == self.base_url.as_deref();
        let is_elsewhere = keys.base_url.as_deref().is_some_and(|url| !same(url));
        let has_credential = [&keys.env_key, &keys.experimental_bearer_token].iter().any(|key| key.is_some())
            || keys.auth.is_some()
            || keys.requires_openai_auth;
        let keeps_key = !is_elsewhere && !has_credential;
        let set = Self::new(&self.id, keys);
        let of_wire = || address_of_wire(&self.id, wire).map(str::to_owned);
        Self {
            name: if keys.name.is_empty() { self.name } else { set.name },
            wire,
            base_url: keys.base_url.clone().or_else(of_wire).or(self.base_url),
            env_key: if keeps_key { self.env_key } else { set.env_key },
            bearer_token: if keeps_key { self.bearer_token } else { set.bearer_token },
            default_model: self.default_model,
            is_known: self.is_known,
            ..set
        }
    }

    /// The provider's own key: from its variable, else the token in the file. None if it has neither.
    pub fn resolve_key(&self, env: &Env) -> Result<Option<SecretText>, ConfigError> {
        let Some(variable) = &self.env_key else { return Ok(self.bearer_token.clone()) };
        match env.text(variable) {
            Some(key) => Ok(Some(SecretText::new(key))),
            None => Err(ConfigError::MissingEnv {
                variable: variable.clone(),
                provider: self.id.clone(),
                instructions: self.env_key_instructions.clone(),
            }),
        }
    }

    /// The credential of a request: the provider's own key, or else the login, which only a provider with
    /// `requires_openai_auth` gets. Under `Exec`, `CODEX_API_KEY` precedes the stored key and `OPENAI_API_KEY` follows
    /// it.
    pub fn credential(
        &self,
        env: &Env,
        stored: Option<&SecretText>,
        caller: CredentialCaller,
    ) -> Result<Option<SecretText>, ConfigError> {
        let own = self.resolve_key(env)?;
        if own.is_some() || !self.requires_openai_auth {
            return Ok(own);
        }
        let from_env =
            |name: &str| (caller == CredentialCaller::Exec).then(|| env.text(name).map(SecretText::new))?;
        Ok(from_env("CODEX_API_KEY").or_else(|| stored.cloned()).or_else(|| from_env("OPENAI_API_KEY")))
    }

    /// The headers of every request. Leaves out those with an unset or blank variable, and invalid ones.
    pub fn resolve_headers(&self, env: &Env) -> BTreeMap<String, SecretText> {
        let from_env = self.env_http_headers.iter();
        let from_env = from_env
            .filter_map(|(name, variable)| Some((name.clone(), SecretText::new(env.text(variable)?))));
        let fixed = self.http_headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        fixed.chain(from_env).filter(|(name, value)| is_header(name, value)).collect()
    }
}

fn is_header(name: &str, value: &SecretText) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    !name.is_empty() && name.bytes().all(is_token) && value.reveal().bytes().all(is_text)
}

impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("wire", &self.wire)
            .field("env_key", &self.env_key)
            .field("bearer_token", &self.bearer_token)
            .field("http_headers", &self.http_headers)
            .field("env_http_headers", &self.env_http_headers)
            .field("query_params", &self.query_params)
            .field("requires_openai_auth", &self.requires_openai_auth)
            .finish_non_exhaustive()
    }
}

/// The keys that determine the receiver of prompts and keys. A misspelt one would choose the default.
const CHOOSING: &[&str] = &[
    "chatgpt_base_url",
    "model_provider",
    "model_providers",
    "openai_base_url",
    "oss_provider",
    "profile",
    "profiles",
];

/// Unknown keys are ignored, because other releases may have them, except those similar to one of [`CHOOSING`].
pub(crate) fn refuse_misspelt(merged: &Table) -> Result<(), ConfigError> {
    let profiles = merged.get("profiles").and_then(toml::Value::as_table);
    let profiles = profiles.into_iter().flatten();
    let profiles = profiles.filter_map(|(name, keys)| Some((format!("profiles.{name}."), keys.as_table()?)));
    for (place, table) in [(String::new(), merged)].into_iter().chain(profiles) {
        let unknown = table.keys().filter(|key| !is_known(key));
        let mut near = unknown.filter_map(|key| Some((key, nearest(key, CHOOSING.iter().copied())?)));
        if let Some((key, near)) = near.next() {
            let message = format!("unknown key `{place}{key}`; did you mean `{near}`?");
            return Err(ConfigError::value(message));
        }
    }
    Ok(())
}

/// All providers by id, including built-in ones.
pub(crate) fn providers(
    keys: &Keys,
    env: &Env,
    warnings: &mut Vec<SettingWarning>,
) -> Result<BTreeMap<String, ProviderConfig>, ConfigError> {
    let mut providers =
        BTreeMap::from(built_in(keys, env, warnings).map(|provider| (provider.id.clone(), provider)));
    providers.extend(known_providers(env).map(|provider| (provider.id.clone(), provider)));
    for (id, keys) in &keys.model_providers {
        if [OPENAI, OFFLINE].contains(&id.as_str()) {
            return Err(ConfigError::ReservedProvider(id.clone()));
        }
        check_auth(id, keys)?;
        let is_blank = |url: &String| url.trim().is_empty();
        let known = providers.remove(id);
        let provider = match known {
            Some(known) if !keys.base_url.as_ref().is_some_and(is_blank) => known.with(keys),
            // There is no default address: prompts and the key would go to its owner.
            None if !keys.base_url.as_ref().is_none_or(is_blank) => ProviderConfig::new(id, keys),
            _ => return Err(ConfigError::NoAddress(id.clone())),
        };
        providers.insert(id.clone(), provider);
    }
    Ok(providers)
}

/// A token has one source: with two, one would be ignored silently.
fn check_auth(id: &str, keys: &ProviderKeys) -> Result<(), ConfigError> {
    let Some(auth) = &keys.auth else { return Ok(()) };
    if auth.command.trim().is_empty() {
        return Err(ConfigError::value(format!(
            "model_providers.{id}.auth.command is empty; name the program that prints the token"
        )));
    }
    let others = [
        ("env_key", keys.env_key.is_some()),
        ("experimental_bearer_token", keys.experimental_bearer_token.is_some()),
        ("requires_openai_auth", keys.requires_openai_auth),
    ];
    match others.iter().find(|(_, is_set)| *is_set) {
        Some((other, _)) => Err(ConfigError::value(format!(
            "model_providers.{id} has both `auth` and `{other}`; keep one of them"
        ))),
        None => Ok(()),
    }
}

/// OpenAI comes first.
pub(crate) fn built_in(keys: &Keys, env: &Env, warnings: &mut Vec<SettingWarning>) -> [ProviderConfig; 4] {
    let local = |id: &str, name: &str, port: u16| {
        let port = env.text("CODEX_OSS_PORT").and_then(|port| port.parse().ok()).unwrap_or(port);
        let url = env.text("CODEX_OSS_BASE_URL").unwrap_or_else(|| format!("http://localhost:{port}/v1"));
        let keys = ProviderKeys {
            name: name.to_owned(),
            base_url: Some(url),
            wire_api: Some(WireApi::Chat),
            ..ProviderKeys::default()
        };
        ProviderConfig { is_known: true, ..ProviderConfig::new(id, &keys) }
    };
    let offline = ProviderKeys { name: "Offline".to_owned(), ..ProviderKeys::default() };
    // LM Studio can be configured to require a token.
    let lmstudio = ProviderConfig {
        bearer_token: env.text("LM_API_TOKEN").map(SecretText::new),
        ..local(LMSTUDIO, "LM Studio", 1234)
    };
    [
        openai(keys, env, warnings),
        local(OLLAMA, "Ollama", 11_434),
        lmstudio,
        ProviderConfig { kind: ProviderKind::Offline, ..ProviderConfig::new(OFFLINE, &offline) },
    ]
}

fn openai(keys: &Keys, env: &Env, warnings: &mut Vec<SettingWarning>) -> ProviderConfig {
    let from_env = || {
        let url = env.text("OPENAI_BASE_URL")?;
        warnings.push(SettingWarning::new(
            "The environment variable OPENAI_BASE_URL is deprecated. Set openai_base_url in config.toml instead.",
        ));
        Some(url)
    };
    let set = keys.openai_base_url.clone().filter(|url| !url.trim().is_empty());
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let keys = ProviderKeys {
        name: OPENAI_NAME.to_owned(),
        base_url: set.or_else(from_env).or_else(|| Some(ProviderConfig::OPENAI_URL.to_owned())),
        http_headers: Some(BTreeMap::from([header("version", env!("CARGO_PKG_VERSION"))])),
        env_http_headers: Some(BTreeMap::from([
            header("OpenAI-Organization", "OPENAI_ORGANIZATION"),
            header("OpenAI-Project", "OPENAI_PROJECT"),
        ])),
        requires_openai_auth: true,
        supports_websockets: true,
        ..ProviderKeys::default()
    };
    ProviderConfig::new(OPENAI, &keys)
}

/// The provider that the environment suggests if none is named: the login's, or the first one with a key.
pub(crate) fn offered(
    providers: &BTreeMap<String, ProviderConfig>,
    env: &Env,
    is_logged_in: bool,
) -> (String, ProviderReason) {
    let default = |reason| (OPENAI.to_owned(), reason);
    if is_logged_in {
        return default(ProviderReason::Login);
    }
    let of_openai = ["CODEX_API_KEY", "OPENAI_API_KEY"].into_iter().find(|name| env.text(name).is_some());
    if let Some(variable) = of_openai {
        return default(ProviderReason::Key(variable.to_owned()));
    }
    let has_key = |id: &&str| {
        let variable = providers.get(*id)?.env_key.as_deref()?;
        env.text(variable).map(|_| ((*id).to_owned(), ProviderReason::Key(variable.to_owned())))
    };
    IN_ORDER_OF_CHOICE.iter().find_map(has_key).unwrap_or_else(|| default(ProviderReason::Nothing))
}

/// Finds the chosen provider.
pub(crate) fn choose(
    providers: &BTreeMap<String, ProviderConfig>,
    id: &str,
) -> Result<ProviderConfig, ConfigError> {
    match providers.get(id) {
        Some(provider) if provider.base_url.as_deref() == Some("") => Err(ConfigError::value(no_address(id))),
        Some(provider) => Ok(provider.clone()),
        None if id == "ollama-chat" => Err(ConfigError::RemovedProvider),
        None => Err(ConfigError::UnknownProvider {
            id: id.to_owned(),
            near: nearest(id, providers.keys().map(String::as_str)).map(str::to_owned),
        }),
    }
}
