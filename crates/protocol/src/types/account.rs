//! Accounts: logging in and out, who is logged in, and tokens a client keeps itself.

use super::prelude::*;

/// Starts a login in one of these ways. `account/login/completed` reports the result.
#[wire(tag = "type")]
pub enum LoginAccountParams {
    /// With an API key, which is stored. Takes effect at once.
    ApiKey { api_key: String },
    /// In the browser, at the page the answer names. Times out after ten minutes.
    Chatgpt,
    /// On any device, with a code the answer holds.
    ChatgptDeviceCode,
    /// With tokens the client obtains and refreshes itself. Kept in memory only.
    #[experimental("account/login/start.chatgptAuthTokens", listed)]
    ChatgptAuthTokens {
        /// The bearer token, a JWT.
        access_token: String,
        /// The workspace the token is for. Must be the forced one where config forces one.
        chatgpt_account_id: String,
        /// The plan to report for the account.
        #[omit]
        chatgpt_plan_type: Option<String>,
    },
}

/// Gives up a login that still waits for the user.
#[wire]
pub struct CancelLoginAccountParams {
    /// A UUID from the answer to `account/login/start`.
    pub login_id: String,
}

/// Reads who is logged in.
#[wire]
pub struct GetAccountParams {
    /// Refresh the stored tokens first. No effect on tokens the client keeps.
    #[serde(default)]
    pub refresh_token: bool,
}

/// Data for the client to continue the login. `type` is the requested one.
#[wire(tag = "type")]
pub enum LoginAccountResponse {
    ApiKey,
    /// The user opens `authUrl` in a browser on the server's machine.
    Chatgpt {
        /// Repeated in `account/login/completed`, and used to cancel.
        login_id: String,
        auth_url: String,
    },
    /// The user opens `verificationUrl` on any device and enters `userCode`.
    ChatgptDeviceCode {
        /// Repeated in `account/login/completed`, and used to cancel.
        login_id: String,
        verification_url: String,
        user_code: String,
    },
    ChatgptAuthTokens,
}

/// The outcome of cancelling a login.
#[wire]
pub enum CancelLoginAccountStatus {
    Canceled,
    /// No login with this id waits any more.
    NotFound,
}

#[wire]
pub struct CancelLoginAccountResponse {
    pub status: CancelLoginAccountStatus,
}

#[wire]
pub struct LogoutAccountResponse {}

/// The ChatGPT plan of an account.
#[wire]
pub enum PlanType {
    Free,
    Go,
    Plus,
    Pro,
    Team,
    Business,
    Enterprise,
    Edu,
    /// The token names no plan, or one this release does not know.
    Unknown,
}

/// Who is logged in.
#[wire(tag = "type")]
pub enum Account {
    /// An API key, which is not shown.
    ApiKey,
    Chatgpt {
        email: String,
        plan_type: PlanType,
    },
}

#[wire]
pub struct GetAccountResponse {
    /// Null when nobody is logged in, and always when the provider needs no OpenAI login.
    pub account: Option<Account>,
    /// Whether the configured provider needs an OpenAI login.
    pub requires_openai_auth: bool,
}

/// How requests to the provider are authenticated.
#[wire]
pub enum AuthMode {
    Apikey,
    /// With tokens the server keeps and refreshes.
    Chatgpt,
    /// With tokens the client keeps and refreshes.
    ChatgptAuthTokens,
}

/// Sent to all connections after a login or logout took effect.
#[wire]
pub struct AccountUpdatedNotification {
    /// Null after a logout.
    pub auth_mode: Option<AuthMode>,
    /// Null without a ChatGPT account.
    pub plan_type: Option<PlanType>,
}

/// Sent to all connections when a login has succeeded, failed, timed out or been cancelled.
#[wire]
pub struct AccountLoginCompletedNotification {
    /// Null for a login that had nothing to wait for, as with an API key.
    pub login_id: Option<String>,
    pub success: bool,
    /// Set when `success` is false.
    pub error: Option<String>,
}

/// Asks a client that keeps its own tokens for fresh ones. Without an answer in 10 seconds the model call
/// fails.
#[wire(omit_null)]
pub struct ChatgptAuthTokensRefreshParams {
    pub reason: ChatgptAuthTokensRefreshReason,
    /// The workspace of the tokens that stopped working.
    pub previous_account_id: Option<String>,
}

/// Why the tokens are no longer good.
#[wire]
pub enum ChatgptAuthTokensRefreshReason {
    /// The provider answered 401.
    Unauthorized,
}

/// Fresh tokens; the model call is tried again with them.
#[wire]
pub struct ChatgptAuthTokensRefreshResponse {
    /// The bearer token, a JWT.
    pub access_token: String,
    /// The workspace the token is for. Must be the forced one where config forces one.
    pub chatgpt_account_id: String,
    pub chatgpt_plan_type: Option<String>,
}
