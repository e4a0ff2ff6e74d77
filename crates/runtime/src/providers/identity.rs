//! From a configured provider to the transport for its model requests.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::Clock;

use config::{
    ConfigError, CredentialCaller, Credentials, Env, Loader, ProviderConfig, ProviderKind, ProviderReason,
    ResolvedConfig, SecretText, ThinkingMode, WireApi,
};
use delegation::Host;
use model::ModelTransport;
use model_http::{
    ClientOptions, HttpTransport, OfflineModel, Provider, Thinking, UnavailableTransport, Wire,
};
use protocol::SessionSource;

use crate::error::RuntimeError;
use crate::providers::account_transport::AccountTransport;
use crate::providers::logins::{CurrentLogin, Logins};
use crate::providers::token_command::{CommandTransport, TokenCommand};

/// The variable with an OpenAI key, used when no key is stored.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Beyond this number, transports are kept only while a thread uses them.
const MOST_KEPT: usize = 16;

/// The client that opens a thread, for its record and its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    pub originator: String,
    pub user_agent: String,
}

/// The opener of a thread: the client, and its connection if it is a host.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    pub client: ClientIdentity,
    pub host: Option<Arc<dyn Host>>,
}

impl Default for ClientIdentity {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { originator: "oarlock".to_owned(), user_agent: format!("oarlock/{version}") }
    }
}

/// The transports to model providers. Threads of one provider share one, and with it their connections.
#[derive(Debug)]
pub(crate) struct Providers {
    loader: Loader,
    caller: CredentialCaller,
    logins: Arc<Logins>,
    made: Mutex<Vec<(TransportKey, Arc<dyn ModelTransport>)>>,
}

/// Everything that determines a transport: threads with equal keys share one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TransportKey {
    pub(super) provider: ProviderConfig,
    pub(super) key: Option<SecretText>,
    /// The variable from which the key is read.
    pub(super) key_variable: Option<String>,
    pub(super) headers: BTreeMap<String, SecretText>,
    pub(super) client: ClientIdentity,
    /// Set for requests with a ChatGPT account: the URL they go to.
    pub(super) account_url: Option<String>,
}

impl Providers {
    pub(crate) fn new(loader: Loader, source: &SessionSource, logins: Arc<Logins>) -> Self {
        let caller = match source {
            SessionSource::Exec | SessionSource::Cli => CredentialCaller::Exec,
            _ => CredentialCaller::Server,
        };
        Self { loader, caller, logins, made: Mutex::default() }
    }

    /// The transport for a thread with this configuration. Reads the stored key. A missing key is no error here:
    /// everything that needs no model still works, and a turn fails with instructions.
    pub(crate) fn transport(
        &self,
        config: &ResolvedConfig,
        client: &ClientIdentity,
    ) -> Result<Arc<dyn ModelTransport>, RuntimeError> {
        let provider = &config.provider;
        if provider.kind == ProviderKind::Offline {
            return Ok(Arc::new(OfflineModel));
        }
        let env = self.loader.environment();
        if self.uses_account(provider)? {
            return self.kept(TransportKey::of_account(config, client, env), |wanted| {
                Ok(Arc::new(wanted.with_account(self.logins.clone(), env.clone())))
            });
        }
        if let Some(command) = token_command(&self.loader, &self.logins.clock, provider) {
            let wanted = TransportKey::new(provider, None, client, env);
            return self
                .kept(wanted, |wanted| Ok(Arc::new(wanted.clone().with_command(command, env.clone()))));
        }
        let key = match self.credential(provider) {
            Ok(key) => key,
            Err(ConfigError::MissingEnv { variable, .. }) => {
                let instructions = provider.env_key_instructions.as_deref();
                return Ok(Arc::new(UnavailableTransport::new(&provider.id, &variable, instructions)));
            }
            Err(error) => return Err(RuntimeError::Provider(error.to_string())),
        };
        if key.is_none() && config.provider_reason == ProviderReason::Nothing {
            return Ok(Arc::new(UnavailableTransport::nothing_chosen()));
        }
        if key.is_none() && provider.requires_openai_auth {
            return Ok(Arc::new(UnavailableTransport::new(&provider.id, KEY_VARIABLE, None)));
        }
        let wanted = TransportKey::new(provider, key, client, env);
        self.kept(wanted, |wanted| Ok(Arc::new(wanted.connect(env, None)?)))
    }

    /// The existing transport for this key, or a new one.
    fn kept(
        &self,
        wanted: TransportKey,
        make: impl FnOnce(&TransportKey) -> Result<Arc<dyn ModelTransport>, RuntimeError>,
    ) -> Result<Arc<dyn ModelTransport>, RuntimeError> {
        let mut made = self.made.lock();
        if let Some((_, transport)) = made.iter().find(|(other, _)| *other == wanted) {
            return Ok(transport.clone());
        }
        let transport = make(&wanted)?;
        if made.len() >= MOST_KEPT {
            // Every bridge has its own URL: those of closed threads are not used again.
            made.retain(|(_, transport)| Arc::strong_count(transport) > 1);
        }
        made.push((wanted, transport.clone()));
        Ok(transport)
    }

    /// Whether requests to this provider use a ChatGPT account: one is logged in, and no key is given for this provider
    /// or this run.
    fn uses_account(&self, provider: &ProviderConfig) -> Result<bool, RuntimeError> {
        if !provider.requires_openai_auth {
            return Ok(false);
        }
        let own = provider.credential(self.loader.environment(), None, self.caller);
        let unreadable = |error: ConfigError| RuntimeError::Provider(error.to_string());
        Ok(matches!(own, Ok(None)) && self.logins.current().map_err(unreadable)?.is_some())
    }

    /// The provider's key: the stored one, or from the environment.
    pub(crate) fn credential(&self, provider: &ProviderConfig) -> Result<Option<SecretText>, ConfigError> {
        credential(&self.loader, self.caller, provider)
    }
}

/// The provider's key: the stored one, or from the environment.
pub(super) fn credential(
    loader: &Loader,
    caller: CredentialCaller,
    provider: &ProviderConfig,
) -> Result<Option<SecretText>, ConfigError> {
    let env = loader.environment();
    let stored = Credentials::new(loader.home()).load()?;
    let key = provider.credential(env, stored.as_ref(), caller)?;
    let from_env = || env.text(KEY_VARIABLE).map(SecretText::new).filter(|_| provider.requires_openai_auth);
    Ok(key.or_else(from_env))
}

/// The command that prints the provider's tokens, if it has one.
pub(super) fn token_command(
    loader: &Loader,
    clock: &Arc<dyn Clock>,
    provider: &ProviderConfig,
) -> Option<TokenCommand> {
    let folder = loader.home().reading().to_owned();
    Some(TokenCommand::new(&provider.id, provider.auth.clone()?, folder, clock.clone()))
}

impl TransportKey {
    pub(super) fn new(
        provider: &ProviderConfig,
        key: Option<SecretText>,
        client: &ClientIdentity,
        env: &Env,
    ) -> Self {
        let (provider, headers) = (provider.clone(), provider.resolve_headers(env));
        let shared = provider.requires_openai_auth.then(|| KEY_VARIABLE.to_owned());
        let key_variable = provider.env_key.clone().or(shared).filter(|variable| match &key {
            // A stored key comes from no variable.
            Some(key) => env.text(variable).is_some_and(|text| text == key.reveal()),
            None => true,
        });
        Self { provider, key, key_variable, headers, client: client.clone(), account_url: None }
    }

    fn of_account(config: &ResolvedConfig, client: &ClientIdentity, env: &Env) -> Self {
        let provider = &config.provider;
        let configured = provider.base_url.clone().unwrap_or_default();
        // An account's token is not valid at the platform's API URL.
        let account_url = match configured.trim_end_matches('/') == ProviderConfig::OPENAI_URL {
            true => format!("{}/codex", config.login.chatgpt_base_url.trim_end_matches('/')),
            false => configured,
        };
        Self { account_url: Some(account_url), ..Self::new(provider, None, client, env) }
    }

    fn with_command(self, command: TokenCommand, env: Env) -> CommandTransport {
        let connect = move |token: &SecretText| {
            let key = Self { key: Some(token.clone()), ..self.clone() };
            let transport: Arc<dyn ModelTransport> = Arc::new(key.connect(&env, None)?);
            Ok(transport)
        };
        CommandTransport::new(command, Box::new(connect))
    }

    fn with_account(&self, logins: Arc<Logins>, env: Env) -> AccountTransport {
        let key = self.clone();
        let connect = move |login: &CurrentLogin| {
            let transport: Arc<dyn ModelTransport> = Arc::new(key.connect(&env, Some(login))?);
            Ok(transport)
        };
        AccountTransport::new(logins, Box::new(connect))
    }

    fn connect(&self, env: &Env, login: Option<&CurrentLogin>) -> Result<HttpTransport, RuntimeError> {
        let options = client_options(&self.client, env);
        HttpTransport::new(&self.provider(login), &options)
            .map_err(|error| RuntimeError::Provider(error.to_string()))
    }

    pub(super) fn provider(&self, login: Option<&CurrentLogin>) -> Provider {
        let Self { provider, key, headers, account_url, .. } = self;
        let mut headers = headers.clone();
        if let Some(account_id) = login.and_then(CurrentLogin::account_id) {
            headers.insert("chatgpt-account-id".to_owned(), SecretText::new(account_id));
        }
        let base_url = account_url.clone().or_else(|| provider.base_url.clone()).unwrap_or_default();
        let secrets = |map: &BTreeMap<String, SecretText>| {
            map.iter().map(|(name, value)| (name.clone(), hidden(value))).collect::<BTreeMap<_, _>>()
        };
        Provider {
            name: provider.name.clone(),
            wire: wire_of(provider.wire),
            text_tool_calls: provider.text_tool_calls,
            max_output_tokens: provider.max_output_tokens,
            thinking: provider.thinking.map(|mode| match mode {
                ThinkingMode::Never => Thinking::Never,
                ThinkingMode::Budget => Thinking::Budget,
                ThinkingMode::Adaptive => Thinking::Adaptive,
            }),
            system_messages: provider.system_messages,
            is_known: provider.is_known,
            api_key: key.as_ref().map(hidden),
            key_variable: self.key_variable.clone(),
            bearer_token: login.map(|login| hidden(login.token())),
            http_headers: secrets(&headers),
            query_params: secrets(&provider.query_params),
            request_max_retries: provider.request_max_retries,
            stream_idle_timeout: Duration::from_millis(provider.stream_idle_timeout_ms),
            ..Provider::new(&provider.id, base_url)
        }
    }
}

pub(crate) fn wire_of(wire: WireApi) -> Wire {
    match wire {
        WireApi::Responses => Wire::Responses,
        WireApi::Chat => Wire::Chat,
        WireApi::Messages => Wire::Messages,
    }
}

pub(super) fn client_options(client: &ClientIdentity, env: &Env) -> ClientOptions {
    let mut options = ClientOptions::new(&client.originator, &client.user_agent);
    let proxy = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    options.proxy = proxy.iter().find_map(|name| env.text(name)).map(model_http::Secret::new);
    options.no_proxy = env.text("NO_PROXY").or_else(|| env.text("no_proxy")).unwrap_or_default();
    options.jitter_seed = u64::from(std::process::id());
    options
}

fn hidden(secret: &SecretText) -> model_http::Secret {
    model_http::Secret::new(secret.reveal())
}
