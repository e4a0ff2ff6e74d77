//! The provider's limits and the tokens of a thread, as clients are told of them. The runtime knows the tokens; only the
//! host sees the limits, and tells of both where an app-server does.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use protocol::{
    AccountRateLimitsUpdatedNotification, RateLimitSnapshot, RolloutItem, RolloutRecord, ServerNotification,
    ThreadId, TurnId,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use store::StoredRecord;

use crate::clients::HostClients;

/// The notification of the runtime after each response.
pub(crate) const USAGE: &str = "thread/tokenUsage/updated";

#[derive(Debug, Default)]
struct ThreadLimits {
    usage: Option<Value>,
    limits: Option<Box<RateLimitSnapshot>>,
}

/// Of the threads of one runtime.
#[derive(Debug)]
pub(crate) struct SeenLimits(Mutex<BTreeMap<ThreadId, ThreadLimits>>);

impl SeenLimits {
    /// The tokens of the thread as its record has them.
    pub(crate) fn of_record(thread: &ThreadId, records: &[StoredRecord]) -> Self {
        let counted = |record: &StoredRecord| {
            if !record.payload.contains(r#""tokenUsage""#) {
                return None;
            }
            match serde_json::from_str::<RolloutItem>(&record.payload).ok()?.record {
                RolloutRecord::TokenUsage { turn_id, usage } => Some((turn_id, usage)),
                _ => None,
            }
        };
        let mut seen = BTreeMap::new();
        if let Some((turn, usage)) = records.iter().rev().find_map(counted) {
            let usage = json!({ "threadId": thread, "turnId": turn, "tokenUsage": usage });
            seen.insert(thread.clone(), ThreadLimits { usage: Some(usage), limits: None });
        }
        Self(Mutex::new(seen))
    }

    /// A stream of this turn has begun: clients hear of the tokens so far and of the limits.
    pub(crate) async fn opened(
        &self,
        clients: &dyn HostClients,
        (thread, turn): (&ThreadId, &TurnId),
        limits: Box<RateLimitSnapshot>,
    ) {
        self.learned(thread, limits);
        let usage = self.0.lock().get(thread).and_then(|seen| seen.usage.clone());
        if let Some(mut usage) = usage {
            usage["turnId"] = json!(turn);
            if let Ok(usage) = to_raw_value(&usage) {
                clients.relay(thread, USAGE, &usage, None).await;
            }
        }
        self.tell(clients, thread).await;
    }

    /// Of a reviewer, clients are told when it is done.
    pub(crate) fn learned(&self, thread: &ThreadId, limits: Box<RateLimitSnapshot>) {
        self.0.lock().entry(thread.clone()).or_default().limits = Some(limits);
    }

    /// The runtime has told of the tokens of a response: the limits follow.
    pub(crate) async fn counted(&self, clients: &dyn HostClients, thread: &ThreadId, usage: &RawValue) {
        self.0.lock().entry(thread.clone()).or_default().usage = serde_json::from_str(usage.get()).ok();
        self.tell(clients, thread).await;
    }

    async fn tell(&self, clients: &dyn HostClients, thread: &ThreadId) {
        let limits = self.0.lock().get(thread).and_then(|seen| seen.limits.clone());
        if let Some(limits) = limits {
            let told = AccountRateLimitsUpdatedNotification { rate_limits: *limits };
            clients.notify(thread, ServerNotification::AccountRateLimitsUpdated(told)).await;
        }
    }
}
