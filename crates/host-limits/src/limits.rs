//! How much tasks may use, and how fast their runtimes, which are not trusted, may go.

use std::collections::{BTreeSet, VecDeque};

use config::Prices;
use protocol::{CodexErrorInfo, ModelError, OperationId, TaskBudget, ThreadId};
use store::{StoreError, TaskStore, UsageFilter, UsageGroup, UsageTotal};
use tokio::time::{Duration, Instant};

use task::{OperationStage, RecordFact};

/// Appends of one task within a second. More wait.
const APPENDS_PER_SECOND: usize = 200;
/// Operations of one task that are not over.
pub const MAX_OPEN_OPERATIONS: usize = 100;
/// The longest body of a model request.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
const DAY_MS: i64 = 86_400_000;

/// The limits of a host. What is unset is without limit.
#[derive(Debug, Clone, Default)]
pub struct HostLimits {
    /// Of each task.
    pub task: Option<TaskBudget>,
    /// Of all tasks together, by the day of UTC.
    pub day: Option<TaskBudget>,
    /// Models that tasks may use, by name; a `*` at the end stands for any rest.
    pub models: Option<Vec<String>>,
    /// Model requests of one task within a minute.
    pub requests_per_minute: Option<u32>,
    /// Runtimes at once. More tasks wait.
    pub max_running: Option<usize>,
    pub prices: Prices,
}

impl HostLimits {
    /// In millionths of the currency of the prices, which are for a million tokens each.
    pub fn cost_micros(&self, model: &str, (input, cached, output): (i64, i64, i64)) -> i64 {
        let Some(price) = self.prices.of(model) else { return 0 };
        let cost = |tokens: i64, price: f64| tokens.max(0) as f64 * price;
        let cached_price = price.cached_input.unwrap_or(price.input);
        let total = cost(input.saturating_sub(cached), price.input)
            + cost(cached, cached_price)
            + cost(output, price.output);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a sum of money, rounded; too large ones saturate"
        )]
        let micros = total.round() as i64;
        micros
    }

    /// Whether the task may send this request now.
    pub fn check_request(&self, model: &str, bytes: usize) -> Result<(), ModelError> {
        let fits = |allowed: &String| match allowed.strip_suffix('*') {
            Some(start) => model.starts_with(start),
            None => allowed == model,
        };
        if self.models.as_ref().is_some_and(|models| !models.iter().any(fits)) {
            return Err(ModelError::new(
                "modelNotAllowed",
                format!("this host does not allow the model {model}"),
            ));
        }
        if bytes > MAX_BODY_BYTES {
            return Err(ModelError::new(
                "bodyTooLarge",
                format!("a request may have {MAX_BODY_BYTES} bytes"),
            ));
        }
        Ok(())
    }

    /// Whether there is anything left of the budgets. `own` is the task's.
    pub async fn check_budgets(
        &self,
        store: &TaskStore,
        root: &ThreadId,
        own: Option<&TaskBudget>,
        now_ms: i64,
    ) -> Result<Result<(), ModelError>, StoreError> {
        if own.is_some() || self.task.is_some() {
            let used = used(store, Some(root), None).await?;
            for budget in [own, self.task.as_ref()].into_iter().flatten() {
                if let Some(problem) = exceeded(budget, &used) {
                    return Ok(Err(over_budget(&format!("the task has used {problem}"))));
                }
            }
        }
        if let Some(budget) = &self.day {
            let used = used(store, None, Some(now_ms - now_ms.rem_euclid(DAY_MS))).await?;
            if let Some(problem) = exceeded(budget, &used) {
                return Ok(Err(over_budget(&format!("the tasks of today have used {problem}"))));
            }
        }
        Ok(Ok(()))
    }
}

async fn used(
    store: &TaskStore,
    root: Option<&ThreadId>,
    since_ms: Option<i64>,
) -> Result<UsageTotal, StoreError> {
    let filter = UsageFilter { root: root.cloned(), since_ms, group: UsageGroup::All };
    let none = UsageTotal {
        key: String::new(),
        requests: 0,
        input_tokens: 0,
        cached_tokens: 0,
        output_tokens: 0,
        cost_micros: 0,
    };
    Ok(store.usage_totals(filter).await?.into_iter().next().unwrap_or(none))
}

/// Says how much of the budget was used when nothing of it is left.
fn exceeded(budget: &TaskBudget, used: &UsageTotal) -> Option<String> {
    let tokens = used.input_tokens.saturating_add(used.output_tokens);
    if let Some(limit) = budget.tokens.filter(|limit| tokens >= *limit) {
        return Some(format!("{tokens} tokens of {limit}"));
    }
    let usd = used.cost_micros as f64 / 1e6;
    budget.usd.filter(|limit| usd >= *limit).map(|limit| format!("{usd:.2} of {limit:.2} USD"))
}

fn over_budget(message: &str) -> ModelError {
    ModelError {
        codex_error_info: Some(CodexErrorInfo::SessionBudgetExceeded),
        ..ModelError::new("budgetExceeded", message.to_owned())
    }
}

/// Times of one kind of thing within a span.
#[derive(Debug)]
pub struct RateWindow {
    times: VecDeque<Instant>,
    most: usize,
    span: Duration,
}

impl RateWindow {
    pub fn per_minute(most: u32) -> Self {
        Self { times: VecDeque::new(), most: most.max(1) as usize, span: Duration::from_secs(60) }
    }

    /// How long to wait before the next one. Nothing counts it as done now.
    pub fn take(&mut self, now: Instant) -> Option<Duration> {
        while self.times.front().is_some_and(|first| now.duration_since(*first) >= self.span) {
            self.times.pop_front();
        }
        if self.times.len() < self.most {
            self.times.push_back(now);
            return None;
        }
        self.times.front().map(|first| self.span.saturating_sub(now.duration_since(*first)))
    }
}

/// Limits how much one runtime appends to the record.
#[derive(Debug)]
pub struct AppendLimiter {
    appends: RateWindow,
    open: BTreeSet<OperationId>,
}

impl Default for AppendLimiter {
    fn default() -> Self {
        let (most, span) = (APPENDS_PER_SECOND, Duration::from_secs(1));
        Self { appends: RateWindow { times: VecDeque::new(), most, span }, open: BTreeSet::new() }
    }
}

impl AppendLimiter {
    /// Makes a runtime that appends too fast wait.
    pub async fn pace(&mut self) {
        while let Some(pause) = self.appends.take(Instant::now()) {
            tokio::time::sleep(pause).await;
        }
    }

    /// Keeps count of the operations that are open. False when there are too many.
    pub fn take(&mut self, facts: &[RecordFact]) -> bool {
        for fact in facts {
            match fact {
                RecordFact::Operation { operation, stage: Some(OperationStage::Proposed) } => {
                    self.open.insert(operation.clone());
                }
                RecordFact::Operation { operation, stage: None } => drop(self.open.remove(operation)),
                RecordFact::TurnEnded { thread, turn } => {
                    let of_turn = format!("{thread}:{turn}:");
                    self.open.retain(|operation| !operation.as_str().starts_with(&of_turn));
                }
                _ => {}
            }
        }
        self.open.len() <= MAX_OPEN_OPERATIONS
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_are_allowed_by_name_or_by_their_beginning() {
        let models = Some(vec!["small".to_owned(), "gpt-5*".to_owned()]);
        let limits = HostLimits { models, ..HostLimits::default() };
        for model in ["small", "gpt-5", "gpt-5.4-codex"] {
            assert!(limits.check_request(model, 10).is_ok(), "{model}");
        }
        let refused = limits.check_request("small-2", 10).expect_err("not listed");
        assert_eq!(refused.code, "modelNotAllowed");
        assert!(HostLimits::default().check_request("any", 10).is_ok());
        assert!(HostLimits::default().check_request("any", MAX_BODY_BYTES + 1).is_err());
    }

    #[test]
    fn cost_is_by_the_longest_name_that_fits() {
        let table = json!({"gpt": {"input": 2.0, "output": 10.0, "cached_input": 0.5}});
        let prices = serde_json::from_value(table).expect("prices");
        let limits = HostLimits { prices, ..HostLimits::default() };
        assert_eq!(limits.cost_micros("gpt-5", (1_000, 400, 100)), 1_200 + 200 + 1_000);
        assert_eq!(limits.cost_micros("other", (1_000, 0, 100)), 0);
    }

    #[test]
    fn a_budget_is_over_when_it_is_reached() {
        let used = UsageTotal {
            key: String::new(),
            requests: 1,
            input_tokens: 900,
            cached_tokens: 0,
            output_tokens: 100,
            cost_micros: 500_000,
        };
        let budget = |usd, tokens| TaskBudget { usd, tokens };
        assert_eq!(exceeded(&budget(None, Some(1_000)), &used).as_deref(), Some("1000 tokens of 1000"));
        assert_eq!(exceeded(&budget(Some(0.5), None), &used).as_deref(), Some("0.50 of 0.50 USD"));
        assert_eq!(exceeded(&budget(Some(0.51), Some(1_001)), &used), None);
    }

    #[test]
    fn too_many_open_operations_are_noticed_and_those_that_are_over_do_not_count() {
        let mut limiter = AppendLimiter::default();
        let fact = |number: usize, stage| RecordFact::Operation {
            operation: OperationId::new(format!("t:u:{number}")),
            stage,
        };
        let proposed: Vec<_> =
            (0..MAX_OPEN_OPERATIONS).map(|number| fact(number, Some(OperationStage::Proposed))).collect();
        assert!(limiter.take(&proposed));
        assert!(!limiter.take(&[fact(1_000, Some(OperationStage::Proposed))]));
        assert!(limiter.take(&[fact(0, None)]));
        let (thread, turn) = (ThreadId::new("t"), protocol::TurnId::new("u"));
        assert!(limiter.take(&[RecordFact::TurnEnded { thread, turn }]) && limiter.open.is_empty());
    }

    #[test]
    fn a_window_lets_so_many_through() {
        let now = Instant::now();
        let mut window = RateWindow::per_minute(2);
        assert_eq!((window.take(now), window.take(now)), (None, None));
        assert_eq!(window.take(now + Duration::from_secs(20)), Some(Duration::from_secs(40)));
        assert_eq!(window.take(now + Duration::from_secs(60)), None);
    }
}
