//! `usage/list`: sums over what model requests used.

use protocol::{UsageGrouping, UsageListParams, UsageListResponse, UsageSum};
use store::{UsageFilter, UsageGroup, UsageTotal};

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::task_host::TaskHost;

impl TaskHost {
    pub async fn list_usage(&self, params: UsageListParams) -> Result<UsageListResponse, TaskError> {
        let root = match &params.thread_id {
            // The usage of a task outlives the task.
            Some(thread) => {
                let thread = check_thread_id(thread)?;
                let row = self.shared.store.task(&thread).await?;
                Some(row.map_or(thread, |row| row.root))
            }
            None => None,
        };
        let group = match params.group_by {
            None => UsageGroup::All,
            Some(UsageGrouping::Task) => UsageGroup::Task,
            Some(UsageGrouping::Model) => UsageGroup::Model,
            Some(UsageGrouping::Provider) => UsageGroup::Provider,
            Some(UsageGrouping::Day) => UsageGroup::Day,
            Some(UsageGrouping::Minute) => UsageGroup::Minute,
        };
        let filter = UsageFilter { root, since_ms: params.since_ms, group };
        let totals = self.shared.store.usage_totals(filter).await?;
        Ok(UsageListResponse { data: totals.into_iter().map(|total| sum_of(total, group)).collect() })
    }
}

fn sum_of(total: UsageTotal, group: UsageGroup) -> UsageSum {
    let key = match group {
        UsageGroup::Day => date_of(&total.key),
        UsageGroup::Minute => time_of(&total.key),
        _ => total.key,
    };
    UsageSum {
        key,
        requests: total.requests,
        input_tokens: total.input_tokens,
        cached_input_tokens: total.cached_tokens,
        output_tokens: total.output_tokens,
        cost_micros: total.cost_micros,
    }
}

/// The date of a day by the milliseconds at which it begins.
fn date_of(milliseconds: &str) -> String {
    timestamp(milliseconds).map_or_else(
        || milliseconds.to_owned(),
        |begins| begins.to_zoned(jiff::tz::TimeZone::UTC).date().to_string(),
    )
}

fn time_of(milliseconds: &str) -> String {
    timestamp(milliseconds).map_or_else(|| milliseconds.to_owned(), |begins| begins.to_string())
}

fn timestamp(milliseconds: &str) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(milliseconds.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date_of("1759622400000"), "2025-10-05");
        assert_eq!(date_of("x"), "x");
        assert_eq!(time_of("1759622460000"), "2025-10-05T00:01:00Z");
    }
}
