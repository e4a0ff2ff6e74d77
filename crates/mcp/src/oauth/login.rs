//! One login: prepared, given to the user as an address, and ended by the browser's redirect, a timeout or another
//! login.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use config::{Home, McpServer, McpTransport};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Client, HeaderValue, HttpRequest, Method, StatusCode, Uri};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use support::{Clock, blocking};
use tokio::sync::oneshot;
use tools::BoxFuture;

use super::LoginError;
use super::address::AddressRule;
use super::challenge::Challenge;
use super::discovery::{Discovered, discover, offers_login};
use super::fetch::Fetcher;
use super::redirect::{Expected, Redirect};
use super::store::{LoginPlace, StoredLogin};
use super::tokens::{OAuthClient, register, request_tokens};
use super::url::with_query;
use crate::server::initialize;

/// Time limit of the discovery.
const PREPARING: Duration = Duration::from_secs(60);
const PROBING: Duration = Duration::from_secs(10);
/// Time limit of finding out whether a server offers a login.
const LOOKING: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);
const MOST_AT_ONCE: usize = 16;
const RANDOM_BYTES: usize = 32;

/// The logins of this process to MCP servers: pending and stored ones.
#[derive(Debug)]
pub struct McpLogins {
    pub(super) home: Home,
    pub(super) http: Client,
    pub(super) clock: Arc<dyn Clock>,
    open_logins: Arc<OpenLogins>,
    /// Locked while the tokens of a file are renewed.
    pub(super) renewing: Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>>,
}

/// By the file of the tokens. Dropping a sender ends its login.
#[derive(Debug, Default)]
struct OpenLogins(Mutex<HashMap<PathBuf, oneshot::Sender<()>>>);

/// How to log in.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// Unset: from the configuration, else those that the server requires.
    pub scopes: Option<Vec<String>>,
    /// How long to wait for the browser.
    pub limit: Duration,
    /// The port of the redirect. Unset: any free one.
    pub port: Option<u16>,
}

/// A login that waits for the user to open its address.
pub struct BegunLogin {
    /// For the user's browser. Not opened here.
    pub url: String,
    /// Completes the login. Dropping it cancels the login.
    pub ended: BoxFuture<'static, Result<(), LoginError>>,
}

impl std::fmt::Debug for BegunLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BegunLogin").finish_non_exhaustive()
    }
}

/// Everything known before the redirect.
struct PreparedLogin {
    place: LoginPlace,
    fetcher: Fetcher,
    redirect: Redirect,
    found: Discovered,
    client: OAuthClient,
    scope: Option<String>,
    state: String,
    verifier: String,
    clock: Arc<dyn Clock>,
}

impl McpLogins {
    pub(crate) fn new(home: &Home, http: Client, clock: Arc<dyn Clock>) -> Self {
        Self { home: home.clone(), http, clock, open_logins: Arc::default(), renewing: Mutex::default() }
    }

    /// Prepares a login. Cancels an older one to the same server.
    pub async fn begin(&self, server: &McpServer, options: LoginOptions) -> Result<BegunLogin, LoginError> {
        if options.limit.is_zero() {
            return Err(LoginError::NoTime);
        }
        let place = self.place(server)?;
        let (slot, replaced) = self.open_logins.enter(&place)?;
        let preparing = tokio::time::timeout(PREPARING, self.prepare(server, place, &options));
        let prepared = preparing.await.unwrap_or(Err(LoginError::Timeout(PREPARING)))?;
        let url = prepared.authorization_url();
        let limit = options.limit.min(LONGEST);
        let ended = Box::pin(async move {
            let _slot = slot;
            tokio::select! {
                _ = replaced => Err(LoginError::Replaced),
                ended = prepared.finish(limit) => ended,
            }
        });
        Ok(BegunLogin { url, ended })
    }

    /// Removes the tokens. Returns whether there were any.
    pub async fn log_out(&self, server: &McpServer) -> Result<bool, LoginError> {
        let place = self.place_of(server).ok_or(LoginError::NotHttp)?;
        let removed = blocking(move || place.remove()).await;
        removed
            .map_err(|error| LoginError::Store(error.to_string()))?
            .map_err(|error| LoginError::Store(error.to_string()))
    }

    pub(crate) async fn is_logged_in(&self, server: &McpServer) -> bool {
        let Some(place) = self.place_of(server) else { return false };
        blocking(move || place.load()).await.is_ok_and(|login| login.is_some())
    }

    /// Whether the server offers a login.
    pub(crate) async fn is_offered(&self, server: &McpServer) -> bool {
        let McpTransport::Http { url, .. } = &server.transport else { return false };
        let looking = async {
            let url: Uri = url.parse().ok()?;
            let rule = AddressRule::of_server(&url).await.ok()?;
            let fetcher = Fetcher { client: self.http.clone(), rule };
            Some(offers_login(&fetcher, &url).await)
        };
        tokio::time::timeout(LOOKING, looking).await.ok().flatten().unwrap_or(false)
    }

    fn place(&self, server: &McpServer) -> Result<LoginPlace, LoginError> {
        match has_token(server) {
            true => Err(LoginError::HasToken),
            false => self.place_of(server).ok_or(LoginError::NotHttp),
        }
    }

    pub(super) fn place_of(&self, server: &McpServer) -> Option<LoginPlace> {
        match &server.transport {
            McpTransport::Http { url, .. } => Some(LoginPlace::new(&self.home, &server.name, url)),
            McpTransport::Stdio { .. } => None,
        }
    }

    async fn prepare(
        &self,
        server: &McpServer,
        place: LoginPlace,
        options: &LoginOptions,
    ) -> Result<PreparedLogin, LoginError> {
        let McpTransport::Http { url, http_headers, oauth_resource, .. } = &server.transport else {
            return Err(LoginError::NotHttp);
        };
        let no_url = |_| LoginError::NotOffered("its url cannot be read".to_owned());
        let url: Uri = url.parse().map_err(no_url)?;
        let rule = AddressRule::of_server(&url).await?;
        let fetcher = Fetcher { client: self.http.clone(), rule };
        let challenge = self.probe(&url, http_headers).await?;
        let mut found = discover(&fetcher, &url, &challenge).await?;
        if let Some(resource) = oauth_resource {
            found.resource = resource.clone();
        }
        let chosen = options.scopes.as_ref().or(server.scopes.as_ref());
        let scope = chosen.map(|scopes| scopes.join(" ")).or_else(|| found.scopes.clone());
        let scope = scope.filter(|scope| !scope.trim().is_empty());
        let redirect = Redirect::open(options.port).await?;
        let client = register(&fetcher, &found.server, &redirect.uri, scope.as_deref()).await?;
        let (state, verifier) = (random()?, random()?);
        let clock = Arc::clone(&self.clock);
        Ok(PreparedLogin { place, fetcher, redirect, found, client, scope, state, verifier, clock })
    }

    /// The server's response to a request without a token.
    async fn probe(
        &self,
        url: &Uri,
        fixed: &std::collections::BTreeMap<String, String>,
    ) -> Result<Challenge, LoginError> {
        let message =
            serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize()});
        let endpoint = crate::http_wire::McpEndpoint::new(&url.to_string(), fixed.clone(), None);
        let mut headers = endpoint.map_err(LoginError::NotOffered)?.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let body = Bytes::from(message.to_string());
        let request = HttpRequest { method: Method::POST, url: url.clone(), headers, body: body.into() };
        let answer = self.http.send(request, PROBING).await;
        let answer = answer.map_err(|error| LoginError::NotOffered(error.to_string()))?;
        match answer.status {
            StatusCode::UNAUTHORIZED => Ok(Challenge::read(&answer.headers)),
            _ => Ok(Challenge::default()),
        }
    }
}

/// A token or an Authorization header in the configuration, which takes precedence over a login.
pub(crate) fn has_token(server: &McpServer) -> bool {
    match &server.transport {
        McpTransport::Stdio { .. } => false,
        McpTransport::Http { bearer_token_env_var, http_headers, env_http_headers, .. } => {
            let is_authorization = |name: &String| name.eq_ignore_ascii_case("authorization");
            bearer_token_env_var.is_some()
                || http_headers.keys().chain(env_http_headers.keys()).any(is_authorization)
        }
    }
}

/// Takes the login off the list when it ends, unless another has its place by then.
struct LoginSlot {
    open_logins: Arc<OpenLogins>,
    file: PathBuf,
}

impl OpenLogins {
    fn enter(self: &Arc<Self>, place: &LoginPlace) -> Result<(LoginSlot, oneshot::Receiver<()>), LoginError> {
        let (sender, replaced) = oneshot::channel();
        let (mut open, file) = (self.0.lock(), place.file());
        open.retain(|_, login| !login.is_closed());
        if open.len() >= MOST_AT_ONCE && !open.contains_key(&file) {
            return Err(LoginError::TooMany);
        }
        // Dropping the older sender cancels its login.
        open.insert(file.clone(), sender);
        Ok((LoginSlot { open_logins: self.clone(), file }, replaced))
    }
}

impl Drop for LoginSlot {
    fn drop(&mut self) {
        let mut open = self.open_logins.0.lock();
        // The receiver goes with its login, so a sender with a receiver belongs to a newer one.
        if open.get(&self.file).is_some_and(oneshot::Sender::is_closed) {
            open.remove(&self.file);
        }
    }
}

impl PreparedLogin {
    fn authorization_url(&self) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()));
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect.uri),
            ("state", &self.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &self.found.resource),
        ];
        pairs.extend(self.scope.as_deref().map(|scope| ("scope", scope)));
        with_query(&self.found.server.authorization_endpoint, &pairs)
    }

    async fn finish(self, limit: Duration) -> Result<(), LoginError> {
        let Self { place, fetcher, redirect, found, client, scope, state, verifier, clock } = self;
        let Discovered { server, resource, .. } = found;
        let uri = redirect.uri.clone();
        let expected = Expected { state, issuer: server.issuer, names_itself: server.names_itself };
        let waiting = tokio::time::timeout(limit, redirect.wait(expected));
        let code = waiting.await.unwrap_or(Err(LoginError::Timeout(limit)))?;
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &uri),
            ("code_verifier", &verifier),
            ("resource", &resource),
        ];
        let mut tokens = request_tokens(&fetcher, &server.token_endpoint, &client, &grant, &*clock).await?;
        // An answer without scopes means: as asked for.
        tokens.scope = tokens.scope.or(scope);
        let login = StoredLogin { resource, token_endpoint: server.token_endpoint, client, tokens };
        let saved = blocking(move || place.save(&login)).await;
        saved.map_err(|error| LoginError::Store(error.to_string()))?.map_err(LoginError::Store)
    }
}

fn random() -> Result<String, LoginError> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| LoginError::Store("this system gives no random numbers".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
