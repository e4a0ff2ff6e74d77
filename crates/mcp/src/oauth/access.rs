//! The token of a connection: read from the store, renewed shortly before it expires or when the server refuses it.

use std::sync::Arc;
use std::time::Duration;

use config::{McpServer, McpTransport, SecretText};
use parking_lot::Mutex;
use support::blocking;

use super::LoginError;
use super::address::AddressRule;
use super::fetch::Fetcher;
use super::login::{McpLogins, has_token};
use super::store::{LoginPlace, StoredLogin};
use super::tokens::{expires_within, request_tokens};

/// A token that expires sooner is renewed first.
const MARGIN: Duration = Duration::from_secs(30);
/// Time limit of one renewal.
const RENEWING: Duration = Duration::from_secs(40);

/// The login that belongs to one server's connections.
#[derive(Debug)]
pub(crate) struct ServerAccess {
    logins: Arc<McpLogins>,
    place: LoginPlace,
    url: String,
    known: Mutex<Option<StoredLogin>>,
}

impl ServerAccess {
    /// `None` for servers without OAuth: programs, and those with a configured token.
    pub(crate) fn new(logins: &Arc<McpLogins>, server: &McpServer) -> Option<Arc<Self>> {
        let McpTransport::Http { url, .. } = &server.transport else { return None };
        let place = logins.place_of(server).filter(|_| !has_token(server))?;
        Some(Arc::new(Self { logins: logins.clone(), place, url: url.clone(), known: Mutex::default() }))
    }

    /// The token to send, if logged in.
    pub(crate) async fn token(&self) -> Option<SecretText> {
        let known = self.known.lock().clone();
        let login = match known {
            Some(login) => login,
            None => self.load().await?,
        };
        let is_ending = expires_within(&login.tokens, MARGIN, self.logins.clock.now_ms());
        match is_ending && login.tokens.refresh.is_some() {
            // If it cannot be renewed, the old one is tried.
            true => Some(self.renew(&login.tokens.access).await.unwrap_or(login.tokens.access)),
            false => Some(login.tokens.access),
        }
    }

    /// The scopes of the login plus these: fewer would remove access.
    pub(crate) fn scopes_with(&self, wanted: &str) -> Vec<String> {
        let known =
            self.known.lock().as_ref().and_then(|login| login.tokens.scope.clone()).unwrap_or_default();
        let mut scopes: Vec<String> = Vec::new();
        for scope in known.split_whitespace().chain(wanted.split_whitespace()) {
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        scopes
    }

    /// Replaces this token, which was refused or is about to expire. Concurrent callers get the same new one.
    pub(crate) async fn renew(&self, old: &SecretText) -> Option<SecretText> {
        let lane = self.logins.renewing.lock().entry(self.place.file()).or_default().clone();
        let _lane = lane.lock().await;
        let place = self.place.clone();
        // Held until the new token is stored: other processes renew the same file.
        let _lock = blocking(move || place.lock()).await.ok().flatten();
        let login = self.load().await?;
        if login.tokens.access != *old {
            return Some(login.tokens.access);
        }
        match tokio::time::timeout(RENEWING, self.ask(&login)).await {
            Ok(Ok(renewed)) => {
                let token = renewed.tokens.access.clone();
                self.save(renewed).await;
                Some(token)
            }
            Ok(Err(LoginError::Refused(why))) => {
                tracing::warn!(why, "a login to an MCP server has ended; log in again");
                // A refused token stays refused; the server is then shown as not logged in.
                let place = self.place.clone();
                let _ = blocking(move || place.remove()).await;
                *self.known.lock() = None;
                None
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a login to an MCP server could not be renewed");
                None
            }
            Err(_) => {
                tracing::warn!("a login to an MCP server was not renewed in time");
                None
            }
        }
    }

    async fn ask(&self, login: &StoredLogin) -> Result<StoredLogin, LoginError> {
        let Some(refresh) = &login.tokens.refresh else {
            return Err(LoginError::NotOffered("there is no token to renew it with".to_owned()));
        };
        let url = self.url.parse().map_err(|_| LoginError::NotHttp)?;
        let fetcher = Fetcher { client: self.logins.http.clone(), rule: AddressRule::of_server(&url).await? };
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", login.resource.as_str()),
        ];
        let mut tokens =
            request_tokens(&fetcher, &login.token_endpoint, &login.client, &grant, &*self.logins.clock)
                .await?;
        // Fields missing in the response are kept.
        tokens.refresh = tokens.refresh.or_else(|| login.tokens.refresh.clone());
        tokens.scope = tokens.scope.or_else(|| login.tokens.scope.clone());
        Ok(StoredLogin { tokens, ..login.clone() })
    }

    async fn load(&self) -> Option<StoredLogin> {
        let place = self.place.clone();
        let login = blocking(move || place.load()).await.ok().flatten();
        self.known.lock().clone_from(&login);
        login
    }

    async fn save(&self, login: StoredLogin) {
        let (place, stored) = (self.place.clone(), login.clone());
        if let Ok(Err(error)) = blocking(move || place.save(&stored)).await {
            tracing::warn!(error, "a renewed token could not be stored");
        }
        *self.known.lock() = Some(login);
    }
}
