//! ChatGPT logins: pending ones, stored tokens, and tokens that a client manages itself.

use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use support::Clock;

use accounts::{AccountClaims, AccountLoginError, BrowserLogin, DeviceLogin, Issuer};
use config::{ChatgptTokens, ConfigError, Credentials, Loader, SecretText};
use protocol::{
    AuthMode, ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshReason,
    ChatgptAuthTokensRefreshResponse, PlanType,
};
use tokio::task::JoinHandle;

use crate::error::RuntimeError;
use driver::{Audience, BoxFuture};

/// Overrides the issuer's URL, for tests and private issuers.
const ISSUER_VARIABLE: &str = "OARLOCK_LOGIN_ISSUER";
/// The reference's variable for the token refresh URL.
const REFRESH_VARIABLE: &str = "CODEX_REFRESH_TOKEN_URL_OVERRIDE";
/// Limit of pending logins.
const MOST_PENDING: usize = 4;
/// How long a client may take to send fresh tokens.
const CLIENT_PATIENCE: Duration = Duration::from_secs(10);
/// Tokens without an expiry time are renewed after this.
const REFRESH_AGE_MS: i64 = 8 * 24 * 60 * 60 * 1_000;

/// Called when a pending login ends.
pub type LoginDone = Box<dyn FnOnce(Result<(), String>) -> BoxFuture<'static, ()> + Send>;

/// Tokens that a client manages and renews. In memory only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExternalTokens {
    pub(crate) access_token: SecretText,
    pub(crate) account_id: String,
    pub(crate) plan: Option<String>,
}

/// The ChatGPT account for requests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CurrentLogin {
    Stored(ChatgptTokens),
    External(ExternalTokens),
}

pub(crate) struct Logins {
    loader: Loader,
    pub(super) clock: Arc<dyn Clock>,
    audience: Arc<dyn Audience>,
    http: http::Client,
    external: Mutex<Option<ExternalTokens>>,
    pending: Mutex<Vec<(String, JoinHandle<()>)>>,
    /// One renewal at a time: a refresh token can be used once.
    renewing: tokio::sync::Mutex<()>,
    /// A refresh token that the issuer rejected for good.
    dead: Mutex<Option<SecretText>>,
}

impl Logins {
    pub(crate) fn new(
        loader: Loader,
        clock: Arc<dyn Clock>,
        audience: Arc<dyn Audience>,
        http: http::Client,
    ) -> Self {
        let (external, pending, dead) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self {
            loader,
            clock,
            audience,
            http,
            external,
            pending,
            renewing: tokio::sync::Mutex::default(),
            dead,
        }
    }

    fn issuer(&self) -> Issuer {
        let env = self.loader.environment();
        let base = env.text(ISSUER_VARIABLE).unwrap_or_else(|| Issuer::DEFAULT.to_owned());
        Issuer::new(&base, env.text(REFRESH_VARIABLE).as_deref(), self.http.clone())
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(self.loader.home())
    }

    /// The account in use. A client's tokens come before stored ones.
    pub(crate) fn current(&self) -> Result<Option<CurrentLogin>, ConfigError> {
        if let Some(external) = self.external.lock().clone() {
            return Ok(Some(CurrentLogin::External(external)));
        }
        Ok(self.credentials().load_tokens()?.map(CurrentLogin::Stored))
    }

    pub(crate) fn is_external(&self) -> bool {
        self.external.lock().is_some()
    }

    pub(crate) fn set_external(&self, tokens: ExternalTokens) {
        *self.external.lock() = Some(tokens);
    }

    pub(crate) fn forget_external(&self) {
        *self.external.lock() = None;
    }

    /// Waits for the browser in the background. Returns the page for the user.
    pub(crate) async fn begin_browser(
        self: &Arc<Self>,
        id: String,
        originator: &str,
        done: LoginDone,
    ) -> Result<String, AccountLoginError> {
        let workspace = self.forced_workspace();
        let login = BrowserLogin::begin(self.issuer(), originator, workspace.as_deref()).await?;
        let url = login.auth_url().to_owned();
        self.wait(id, async move { login.finish().await }, done);
        Ok(url)
    }

    /// Waits for the user's code in the background. Returns the page and the code.
    pub(crate) async fn begin_device(
        self: &Arc<Self>,
        id: String,
        done: LoginDone,
    ) -> Result<(String, String), AccountLoginError> {
        let login = DeviceLogin::begin(self.issuer()).await?;
        let shown = (login.verification_url(), login.user_code().to_owned());
        self.wait(id, async move { login.finish().await }, done);
        Ok(shown)
    }

    /// Adds a pending login. Beyond the limit it replaces the oldest.
    fn wait(
        self: &Arc<Self>,
        id: String,
        login: impl Future<Output = Result<ChatgptTokens, AccountLoginError>> + Send + 'static,
        done: LoginDone,
    ) {
        let (this, own_id) = (Arc::downgrade(self), id.clone());
        let task = tokio::spawn(async move {
            let tokens = login.await;
            let Some(this) = this.upgrade() else { return };
            let stored = tokens.map_err(|error| error.to_string()).and_then(|tokens| this.store(tokens));
            this.pending.lock().retain(|(id, _)| *id != own_id);
            done(stored).await;
        });
        let mut pending = self.pending.lock();
        if pending.len() >= MOST_PENDING {
            let (_, oldest) = pending.remove(0);
            oldest.abort();
        }
        pending.push((id, task));
    }

    fn store(&self, tokens: ChatgptTokens) -> Result<(), String> {
        let account = AccountClaims::of(&tokens.id_token).account_id;
        if let Some(forced) = self.forced_workspace()
            && account.as_deref() != Some(forced.as_str())
        {
            return Err(format!("Login is restricted to workspace id {forced}."));
        }
        let tokens = ChatgptTokens { refreshed_at_ms: self.clock.now_ms(), ..tokens };
        self.credentials().save_tokens(&tokens).map_err(|error| error.to_string())
    }

    pub(crate) fn forced_workspace(&self) -> Option<String> {
        self.loader.startup(None).config.login.forced_chatgpt_workspace_id
    }

    /// Cancels a pending login. Returns whether there was one.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let mut pending = self.pending.lock();
        let found = pending.iter().position(|(known, _)| known == id);
        let Some(at) = found else { return false };
        pending.remove(at).1.abort();
        true
    }

    /// Cancels all pending logins: the process ends, or another login succeeded.
    pub(crate) fn cancel_all(&self) {
        self.pending.lock().drain(..).for_each(|(_, task)| task.abort());
    }

    /// The account with an unexpired token, as far as known.
    pub(crate) async fn fresh(&self) -> Result<Option<CurrentLogin>, RuntimeError> {
        let unreadable = |error: ConfigError| RuntimeError::Credentials(error.to_string());
        match self.current().map_err(unreadable)? {
            Some(CurrentLogin::Stored(tokens)) if self.is_stale(&tokens) => {
                self.renew(&tokens.access_token).await.map(Some)
            }
            login => Ok(login),
        }
    }

    fn is_stale(&self, tokens: &ChatgptTokens) -> bool {
        let now_ms = self.clock.now_ms();
        match AccountClaims::of(&tokens.access_token).expires_at {
            Some(expires_at) => expires_at.saturating_mul(1_000) <= now_ms,
            None => now_ms.saturating_sub(tokens.refreshed_at_ms) > REFRESH_AGE_MS,
        }
    }

    /// Replaces this rejected token. Concurrent callers get the same new one.
    pub(crate) async fn renew(&self, stale: &SecretText) -> Result<CurrentLogin, RuntimeError> {
        let _turn = self.renewing.lock().await;
        let unreadable = |error: ConfigError| RuntimeError::Credentials(error.to_string());
        let login = self.current().map_err(unreadable)?.ok_or(RuntimeError::Login("nobody is logged in"))?;
        match login {
            login if login.token() != stale => Ok(login),
            CurrentLogin::External(tokens) => self.ask_client(tokens).await.map(CurrentLogin::External),
            CurrentLogin::Stored(tokens) => {
                if self.dead.lock().as_ref() == Some(&tokens.refresh_token) {
                    return Err(RuntimeError::LoginFailed(AccountLoginError::Expired.to_string()));
                }
                let renewed = self.issuer().refresh(&tokens).await.map_err(|error| {
                    if error.is_final() {
                        *self.dead.lock() = Some(tokens.refresh_token.clone());
                    }
                    RuntimeError::LoginFailed(error.to_string())
                })?;
                let renewed = ChatgptTokens { refreshed_at_ms: self.clock.now_ms(), ..renewed };
                self.credentials().save_tokens(&renewed).map_err(unreadable)?;
                Ok(CurrentLogin::Stored(renewed))
            }
        }
    }

    async fn ask_client(&self, before: ExternalTokens) -> Result<ExternalTokens, RuntimeError> {
        let params = ChatgptAuthTokensRefreshParams {
            reason: ChatgptAuthTokensRefreshReason::Unauthorized,
            previous_account_id: Some(before.account_id),
        };
        let asked = tokio::time::timeout(CLIENT_PATIENCE, self.audience.refresh_tokens(params)).await;
        let failed =
            |why: String| RuntimeError::LoginFailed(format!("the client brought no fresh tokens: {why}"));
        let answer = asked.map_err(|_| failed("it did not answer in time".to_owned()))?.map_err(failed)?;
        let ChatgptAuthTokensRefreshResponse { access_token, chatgpt_account_id, chatgpt_plan_type } = answer;
        let tokens = ExternalTokens {
            access_token: SecretText::new(access_token),
            account_id: chatgpt_account_id,
            plan: chatgpt_plan_type,
        };
        self.check_workspace(&tokens.account_id)?;
        self.set_external(tokens.clone());
        Ok(tokens)
    }

    /// Refuses tokens of another workspace than the required one.
    pub(crate) fn check_workspace(&self, account_id: &str) -> Result<(), RuntimeError> {
        match self.forced_workspace() {
            Some(forced) if forced != account_id => Err(RuntimeError::LoginFailed(format!(
                "External auth must use workspace {forced}, but received {account_id:?}."
            ))),
            _ => Ok(()),
        }
    }
}

impl CurrentLogin {
    pub(crate) fn token(&self) -> &SecretText {
        match self {
            Self::Stored(tokens) => &tokens.access_token,
            Self::External(tokens) => &tokens.access_token,
        }
    }

    pub(crate) fn account_id(&self) -> Option<String> {
        match self {
            Self::Stored(tokens) => AccountClaims::of(&tokens.id_token).account_id,
            Self::External(tokens) => Some(tokens.account_id.clone()),
        }
    }

    pub(crate) fn mode(&self) -> AuthMode {
        match self {
            Self::Stored(_) => AuthMode::Chatgpt,
            Self::External(_) => AuthMode::ChatgptAuthTokens,
        }
    }

    pub(crate) fn email(&self) -> Option<String> {
        match self {
            Self::Stored(tokens) => AccountClaims::of(&tokens.id_token).email,
            Self::External(tokens) => AccountClaims::of(&tokens.access_token).email,
        }
    }

    pub(crate) fn plan_type(&self) -> PlanType {
        let plan = match self {
            Self::Stored(tokens) => AccountClaims::of(&tokens.id_token).plan,
            Self::External(tokens) => {
                tokens.plan.clone().or_else(|| AccountClaims::of(&tokens.access_token).plan)
            }
        };
        AccountClaims::plan_type(plan.as_deref())
    }
}

impl Drop for Logins {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl fmt::Debug for Logins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logins").field("pending", &self.pending.lock().len()).finish_non_exhaustive()
    }
}
