//! Usage: tokens a thread has used, and the limits of the account.

use super::prelude::*;

/// The account's prepaid credits.
#[wire]
pub struct CreditsSnapshot {
    pub has_credits: bool,
    pub unlimited: bool,
    /// For display.
    pub balance: Option<String>,
}

/// How much of one limit is used up.
#[wire]
pub struct RateLimitSnapshot {
    pub limit_id: Option<String>,
    pub limit_name: Option<String>,
    /// The shorter window. Null where unknown.
    pub primary: Option<RateLimitWindow>,
    /// The longer window. Null where unknown.
    pub secondary: Option<RateLimitWindow>,
    pub credits: Option<CreditsSnapshot>,
    pub plan_type: Option<PlanType>,
}

/// A stretch of time with a limit of its own.
#[wire]
pub struct RateLimitWindow {
    /// From 0 to 100.
    pub used_percent: i32,
    pub window_duration_mins: Option<i64>,
    /// Unix seconds.
    pub resets_at: Option<i64>,
}

#[wire]
pub struct GetAccountRateLimitsResponse {
    /// The limit that counts for the agent.
    pub rate_limits: RateLimitSnapshot,
    /// All limits of the account.
    pub rate_limits_by_limit_id: Option<BTreeMap<String, RateLimitSnapshot>>,
}

/// Tokens a thread has used.
#[wire]
pub struct ThreadTokenUsage {
    /// Since the thread began.
    pub total: TokenUsageBreakdown,
    /// By the latest model response.
    pub last: TokenUsageBreakdown,
    /// In tokens; null when unknown.
    pub model_context_window: Option<i64>,
}

/// Tokens by kind.
#[wire]
pub struct TokenUsageBreakdown {
    pub total_tokens: i64,
    pub input_tokens: i64,
    /// The part of `inputTokens` the provider had cached.
    pub cached_input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `outputTokens` that is reasoning.
    pub reasoning_output_tokens: i64,
    /// The part of `inputTokens` the provider wrote into its cache. Only from providers that count it.
    #[omit]
    pub cache_write_input_tokens: Option<i64>,
    /// The provider gave no count, for some of it at least: about four bytes are taken for a token.
    #[omit]
    pub is_estimated: bool,
}

/// Sent after each model response, and after a rollback.
#[wire]
pub struct ThreadTokenUsageUpdatedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub token_usage: ThreadTokenUsage,
}

/// Sent when a response stream opens and after each model response.
#[wire]
pub struct AccountRateLimitsUpdatedNotification {
    pub rate_limits: RateLimitSnapshot,
}
