//! From a configured provider to whoever carries model requests to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use config::{Caller, Config, ConfigError, Credentials, Env, ProviderConfig, ProviderKind, Secret};
use model::ModelTransport;
use model_http::{ClientOptions, HttpTransport, OfflineModel, Provider, UnavailableTransport};
use protocol::SessionSource;

use crate::error::RuntimeError;
use crate::runtime::{Runtime, lock};

/// Where a key for OpenAI is looked for when nobody has logged in.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// Transports beyond these are kept only while a thread uses them.
const MOST_KEPT: usize = 16;

/// Who asks, as providers are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub originator: String,
    pub user_agent: String,
}

impl Default for Identity {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { originator: "oarlock".to_owned(), user_agent: format!("oarlock/{version}") }
    }
}

/// Transports made so far. Threads of one provider share one, and with it their connections.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    made: Mutex<Vec<(Wanted, Arc<dyn ModelTransport>)>>,
}

/// Everything a transport depends on.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    provider: ProviderConfig,
    key: Option<Secret>,
    headers: BTreeMap<String, Secret>,
    identity: Identity,
}

impl Runtime {
    /// Whoever carries the requests of a thread with this configuration. A missing key is no error here: everything
    /// that needs no model still works, and a turn says what to do.
    pub(crate) fn transport(&self, config: &Config) -> Result<Arc<dyn ModelTransport>, RuntimeError> {
        let provider = &config.provider;
        if provider.kind == ProviderKind::Offline {
            return Ok(Arc::new(OfflineModel));
        }
        let env = self.inner.loader.environment();
        let key = match self.credential(provider, env) {
            Ok(key) => key,
            Err(ConfigError::MissingEnv { variable, .. }) => {
                let instructions = provider.env_key_instructions.as_deref();
                return Ok(Arc::new(UnavailableTransport::new(&provider.id, &variable, instructions)));
            }
            Err(error) => return Err(RuntimeError::Provider(error.to_string())),
        };
        if key.is_none() && provider.requires_openai_auth {
            return Ok(Arc::new(UnavailableTransport::new(&provider.id, KEY_VARIABLE, None)));
        }
        let wanted = Wanted {
            provider: provider.clone(),
            key,
            headers: provider.resolve_headers(env),
            identity: lock(&self.inner.identity).clone(),
        };
        let mut made = lock(&self.inner.providers.made);
        if let Some((_, transport)) = made.iter().find(|(other, _)| *other == wanted) {
            return Ok(transport.clone());
        }
        let transport: Arc<dyn ModelTransport> = Arc::new(wanted.connect(env)?);
        if made.len() >= MOST_KEPT {
            // Every bridge has an address of its own: those of threads that are gone will not be asked for again.
            made.retain(|(_, transport)| Arc::strong_count(transport) > 1);
        }
        made.push((wanted, transport.clone()));
        Ok(transport)
    }

    pub(crate) fn credential(
        &self,
        provider: &ProviderConfig,
        env: &Env,
    ) -> Result<Option<Secret>, ConfigError> {
        let stored = Credentials::new(self.inner.loader.home()).load()?;
        let caller = match self.inner.source {
            SessionSource::Exec | SessionSource::Cli => Caller::Exec,
            _ => Caller::Server,
        };
        let key = provider.credential(env, stored.as_ref(), caller)?;
        let from_env = || env.text(KEY_VARIABLE).map(Secret::new).filter(|_| provider.requires_openai_auth);
        Ok(key.or_else(from_env))
    }
}

impl Wanted {
    fn connect(&self, env: &Env) -> Result<HttpTransport, RuntimeError> {
        let Self { provider, key, headers, identity } = self;
        let secrets = |map: &BTreeMap<String, Secret>| {
            map.iter().map(|(name, value)| (name.clone(), hidden(value))).collect::<BTreeMap<_, _>>()
        };
        let wanted = Provider {
            name: provider.name.clone(),
            api_key: key.as_ref().map(hidden),
            bearer_token: None,
            http_headers: secrets(headers),
            query_params: secrets(&provider.query_params),
            request_max_retries: provider.request_max_retries,
            stream_idle_timeout: Duration::from_millis(provider.stream_idle_timeout_ms),
            ..Provider::new(&provider.id, provider.base_url.clone().unwrap_or_default())
        };
        let mut options = ClientOptions::new(&identity.originator, &identity.user_agent);
        let proxy = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        options.proxy = proxy.iter().find_map(|name| env.text(name)).map(model_http::Secret::new);
        options.no_proxy = env.text("NO_PROXY").or_else(|| env.text("no_proxy")).unwrap_or_default();
        options.jitter_seed = u64::from(std::process::id());
        HttpTransport::new(&wanted, &options).map_err(|error| RuntimeError::Provider(error.to_string()))
    }
}

fn hidden(secret: &Secret) -> model_http::Secret {
    model_http::Secret::new(secret.reveal())
}
