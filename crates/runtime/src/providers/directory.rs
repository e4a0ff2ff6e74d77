//! Which models providers have, as they say themselves. Asked when a client or a person wants to know, never at start
//! and never on the way of a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{CredentialCaller, Loader, ProviderConfig, ProviderKind, WireApi};
use model_http::{ListedModel, ModelLister};
use parking_lot::Mutex;

use crate::providers::identity::{ClientIdentity, TransportKey, client_options, credential, token_command};

/// How long a person waits for a list.
const PATIENCE: Duration = Duration::from_secs(5);
/// A server on this machine answers at once, or there is none.
const LOCAL_PATIENCE: Duration = Duration::from_secs(1);
/// How long a list is taken to be still true.
const KEPT_FOR: Duration = Duration::from_secs(300);
const MOST_KEPT: usize = 16;

/// The servers that are looked for on this machine, in this order.
const LOCAL_SERVERS: &[&str] = &["ollama", "lmstudio", "llamacpp", "vllm"];

/// Asks providers for their models.
#[derive(Debug)]
pub struct ModelDirectory {
    loader: Loader,
    kept: Mutex<Vec<KeptList>>,
}

#[derive(Debug)]
struct KeptList {
    provider: String,
    base_url: Option<String>,
    asked: Instant,
    models: Arc<[ListedModel]>,
}

impl ModelDirectory {
    pub fn new(loader: Loader) -> Self {
        Self { loader, kept: Mutex::default() }
    }

    /// Whether the provider can tell better than our catalogue, which knows OpenAI's models.
    pub fn can_tell(provider: &ProviderConfig) -> bool {
        provider.kind == ProviderKind::Compatible
            && (provider.wire != WireApi::Responses || provider.default_model.is_some())
    }

    /// The provider's models. The error is a sentence for a person.
    pub async fn models(&self, provider: &ProviderConfig) -> Result<Arc<[ListedModel]>, String> {
        if let Some(kept) = self.kept(provider) {
            return Ok(kept);
        }
        let models = self.ask(provider, PATIENCE).await?;
        self.keep(provider, models.clone());
        Ok(models)
    }

    /// The first server that answers on this machine with models it has.
    pub async fn local_server<'a>(
        &self,
        known: impl Fn(&str) -> Option<&'a ProviderConfig>,
    ) -> Option<(&'a ProviderConfig, Arc<[ListedModel]>)> {
        let candidates = LOCAL_SERVERS.iter().filter_map(|id| known(id));
        let asked = candidates.map(|provider| async move {
            let models = self.ask(provider, LOCAL_PATIENCE).await.ok()?;
            (!models.is_empty()).then_some((provider, models))
        });
        let found = futures_util::future::join_all(asked).await;
        found.into_iter().flatten().next()
    }

    /// The size of a model's window, where its server has told it to somebody.
    pub(crate) fn window_of(&self, provider: &str, model: &str) -> Option<i64> {
        let kept = self.kept.lock();
        let list = kept.iter().rev().find(|list| list.provider == provider)?;
        list.models.iter().find(|listed| listed.id == model)?.context_window
    }

    async fn ask(&self, provider: &ProviderConfig, patience: Duration) -> Result<Arc<[ListedModel]>, String> {
        let key = match token_command(&self.loader, provider) {
            Some(command) => Some(command.token(None).await?),
            None => credential(&self.loader, CredentialCaller::Exec, provider)
                .map_err(|error| error.to_string())?,
        };
        let env = self.loader.environment();
        let target = TransportKey::new(provider, key, &ClientIdentity::default(), env);
        let lister = ModelLister::new(&target.provider(None), &client_options(&target.client, env));
        let lister = lister.map_err(|error| error.to_string())?;
        let models = lister.list(patience).await.map_err(|failure| failure.message)?;
        Ok(models.into())
    }

    fn kept(&self, provider: &ProviderConfig) -> Option<Arc<[ListedModel]>> {
        let kept = self.kept.lock();
        let is_it = |list: &&KeptList| {
            list.provider == provider.id
                && list.base_url == provider.base_url
                && list.asked.elapsed() < KEPT_FOR
        };
        kept.iter().find(is_it).map(|list| list.models.clone())
    }

    fn keep(&self, provider: &ProviderConfig, models: Arc<[ListedModel]>) {
        let mut kept = self.kept.lock();
        kept.retain(|list| list.provider != provider.id);
        if kept.len() >= MOST_KEPT {
            kept.remove(0);
        }
        let (id, base_url) = (provider.id.clone(), provider.base_url.clone());
        kept.push(KeptList { provider: id, base_url, asked: Instant::now(), models });
    }
}
