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

/// Sums up what model requests of a host's tasks used.
#[wire(omit_null)]
#[derive(Default)]
pub struct UsageListParams {
    /// Of the task that this thread belongs to, with its children.
    pub thread_id: Option<ThreadId>,
    /// Unix milliseconds.
    pub since_ms: Option<i64>,
    /// One sum of all when unset.
    pub group_by: Option<UsageGrouping>,
}

/// By what usage is summed up.
#[wire]
pub enum UsageGrouping {
    Task,
    Model,
    Provider,
    /// Days of UTC; the key is the date.
    Day,
    /// Minutes; the key is the time at which one begins, in UTC.
    Minute,
}

#[wire]
pub struct UsageListResponse {
    pub data: Vec<UsageSum>,
}

/// The usage of a group of model requests.
#[wire]
pub struct UsageSum {
    /// The task, model, provider or date; empty for the sum of all.
    pub key: String,
    pub requests: i64,
    pub input_tokens: i64,
    /// The part of `inputTokens` the provider had cached.
    pub cached_input_tokens: i64,
    pub output_tokens: i64,
    /// By the host's table of prices, in millionths of its currency; 0 where a model has no price.
    pub cost_micros: i64,
}

/// How much a task may use. Beyond it, its model requests are refused.
#[wire(omit_null)]
pub struct TaskBudget {
    /// By the host's table of prices, in US dollars or whatever it counts in.
    pub usd: Option<f64>,
    /// Input and output together.
    pub tokens: Option<i64>,
}

/// Sent when a response stream opens and after each model response.
#[wire]
pub struct AccountRateLimitsUpdatedNotification {
    pub rate_limits: RateLimitSnapshot,
}
