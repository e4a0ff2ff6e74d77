//! Models as their providers list them. Asked when a client requests the list, and when a thread is opened that needs
//! it: no model is named and the provider has its own, or the provider runs on this machine and only it knows its
//! model's window.

use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{CredentialCaller, Loader, ProviderConfig, ProviderKind, WireApi};
use model_http::{ListedModel, ModelLister};
use parking_lot::Mutex;
use support::Clock;

use crate::providers::identity::{ClientIdentity, TransportKey, client_options, credential, token_command};

/// Time limit of a list.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time limit for a server on this machine, which answers at once if it runs.
const LOCAL_PATIENCE: Duration = Duration::from_secs(1);
/// How long a list is cached.
const KEPT_FOR: Duration = Duration::from_secs(300);
const MOST_KEPT: usize = 16;

/// The local servers that are probed, in this order. Their models depend on the installation.
const LOCAL_SERVERS: &[&str] = &["ollama", "lmstudio", "llamacpp", "vllm"];

/// Asks providers for their models.
#[derive(Debug)]
pub struct ModelDirectory {
    loader: Loader,
    clock: Arc<dyn Clock>,
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
    pub fn new(loader: Loader, clock: Arc<dyn Clock>) -> Self {
        Self { loader, clock, kept: Mutex::default() }
    }

    /// Whether the provider's list is better than our catalogue, which knows OpenAI's models.
    pub fn can_tell(provider: &ProviderConfig) -> bool {
        let is_ours = || LOCAL_SERVERS.contains(&provider.id.as_str());
        provider.kind == ProviderKind::Compatible
            && (provider.wire != WireApi::Responses || provider.default_model.is_some() || is_ours())
    }

    /// The first model in the server's list: for threads that name none, with a provider without a default.
    pub async fn first_model(&self, provider: &ProviderConfig) -> Option<String> {
        if provider.default_model.is_some() || provider.base_url.is_none() || !Self::can_tell(provider) {
            return None;
        }
        let models = self.models(provider).await;
        let models = models.inspect_err(|error| {
            tracing::warn!(provider = provider.id, error, "no model is named, and the provider lists none");
        });
        models.ok()?.first().map(|model| model.id.clone())
    }

    /// Asks a local server for its model's window, unless known.
    pub(crate) async fn learn_window(&self, provider: &ProviderConfig, model: &str) {
        let is_near = LOCAL_SERVERS.contains(&provider.id.as_str());
        if !is_near || self.window_of(&provider.id, model).is_some() {
            return;
        }
        let Ok(lister) = self.lister(provider).await else { return };
        if !lister.is_local() {
            return;
        }
        let Ok(mut models) = lister.list(LOCAL_PATIENCE).await else { return };
        if let Some(listed) = models.iter_mut().find(|listed| listed.id == model)
            && listed.context_window.is_none()
        {
            listed.context_window = lister.window_of(model, LOCAL_PATIENCE).await;
        }
        self.keep(provider, models.into());
    }

    /// The provider's models. The error is a sentence for the user.
    pub async fn models(&self, provider: &ProviderConfig) -> Result<Arc<[ListedModel]>, String> {
        if let Some(kept) = self.kept(provider) {
            return Ok(kept);
        }
        let models = self.ask(provider, PATIENCE).await?;
        self.keep(provider, models.clone());
        Ok(models)
    }

    /// The first local server that answers and has models.
    pub async fn local_server<'a>(
        &self,
        known: impl Fn(&str) -> Option<&'a ProviderConfig>,
    ) -> Option<(&'a ProviderConfig, Arc<[ListedModel]>)> {
        let candidates = LOCAL_SERVERS.iter().filter_map(|id| known(id));
        let asked = candidates.map(|provider| async move {
            let models = self.ask(provider, LOCAL_PATIENCE).await.ok().filter(|models| !models.is_empty())?;
            self.keep(provider, models.clone());
            Some((provider, models))
        });
        let found = futures_util::future::join_all(asked).await;
        found.into_iter().flatten().next()
    }

    /// The model's window, if its server was asked.
    pub(crate) fn window_of(&self, provider: &str, model: &str) -> Option<i64> {
        let kept = self.kept.lock();
        let list = kept.iter().rev().find(|list| list.provider == provider)?;
        list.models.iter().find(|listed| listed.id == model)?.context_window
    }

    async fn ask(&self, provider: &ProviderConfig, patience: Duration) -> Result<Arc<[ListedModel]>, String> {
        let models = self.lister(provider).await?.list(patience).await;
        Ok(models.map_err(|failure| failure.message)?.into())
    }

    async fn lister(&self, provider: &ProviderConfig) -> Result<ModelLister, String> {
        let key = match token_command(&self.loader, &self.clock, provider) {
            Some(command) => Some(command.token(None).await?),
            None => credential(&self.loader, CredentialCaller::Exec, provider)
                .map_err(|error| error.to_string())?,
        };
        let env = self.loader.environment();
        let target = TransportKey::new(provider, key, &ClientIdentity::default(), env);
        let lister = ModelLister::new(&target.provider(None), &client_options(&target.client, env));
        lister.map_err(|error| error.to_string())
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
