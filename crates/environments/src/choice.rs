//! The chosen environments of one thread: its clients are notified of changes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::EnvironmentState;
use protocol::{
    EnvironmentId, EnvironmentSelection, ServerNotification, ThreadEnvironmentConnectedNotification,
    ThreadEnvironmentDisconnectedNotification, ThreadId,
};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::table::{Seen, WatchTask};
use super::{Chosen, Environments};

/// Interval of checks without other reasons.
const INTERVAL: Duration = Duration::from_secs(30);

/// Lives as long as the selection is in use.
#[derive(Debug)]
pub(super) struct WatchedChoice {
    thread: ThreadId,
    chosen: Weak<[EnvironmentSelection]>,
    news: Arc<Notify>,
    _watch: WatchTask,
}

impl WatchedChoice {
    /// `told` is what the thread's clients know already.
    pub(super) fn follow(
        registry: &Arc<Environments>,
        thread: &ThreadId,
        chosen: &Chosen,
        told: Vec<Seen>,
    ) -> Self {
        let news = Arc::new(Notify::new());
        let follower = Follower {
            registry: Arc::downgrade(registry),
            thread: thread.clone(),
            chosen: Arc::downgrade(chosen),
            told,
        };
        let watch = tokio::spawn(follower.run(news.clone()));
        Self { thread: thread.clone(), chosen: Arc::downgrade(chosen), news, _watch: WatchTask(watch) }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.chosen.strong_count() > 0
    }

    /// The selection itself, if it is this thread's and equal.
    pub(super) fn same(&self, thread: &ThreadId, chosen: &[EnvironmentSelection]) -> Option<Chosen> {
        let own = self.chosen.upgrade().filter(|_| self.thread == *thread)?;
        (*own == *chosen).then_some(own)
    }

    pub(super) fn is_of(&self, chosen: &Chosen) -> bool {
        std::ptr::addr_eq(self.chosen.as_ptr(), Arc::as_ptr(chosen))
    }

    pub(super) fn includes(&self, id: &EnvironmentId) -> bool {
        let own = self.chosen.upgrade();
        own.is_some_and(|own| own.iter().any(|one| one.environment_id == *id))
    }

    pub(super) fn wake(&self) {
        self.news.notify_one();
    }
}

/// Notifies one thread's clients, so that a slow one delays no others.
struct Follower {
    registry: Weak<Environments>,
    thread: ThreadId,
    chosen: Weak<[EnvironmentSelection]>,
    told: Vec<Seen>,
}

impl Follower {
    async fn run(mut self, news: Arc<Notify>) {
        let mut tick = interval_at(Instant::now() + INTERVAL, INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = news.notified() => {}
                _ = tick.tick() => self.request_check(),
            }
            let Some((registry, changes)) = self.changes() else { return };
            let subscribers = registry.subscribers.clone();
            drop(registry);
            for change in changes {
                subscribers.notify(&self.thread, change).await;
            }
        }
    }

    fn request_check(&self) {
        if let (Some(registry), Some(chosen)) = (self.registry.upgrade(), self.chosen.upgrade()) {
            registry.request_check(&chosen);
        }
    }

    /// `None` when the selection is no longer in use. Does not keep it alive.
    fn changes(&mut self) -> Option<(Arc<Environments>, Vec<ServerNotification>)> {
        let (registry, chosen) = (self.registry.upgrade()?, self.chosen.upgrade()?);
        let now = registry.see_all(&chosen);
        let pairs = chosen.iter().zip(self.told.iter().zip(&now));
        let changed = pairs.filter(|(_, (before, now))| before.state != now.state);
        let told = changed.filter_map(|(one, (_, now))| self.notification(&one.environment_id, now));
        let told = told.collect();
        self.told = now;
        Some((registry, told))
    }

    fn notification(&self, id: &EnvironmentId, now: &Seen) -> Option<ServerNotification> {
        let (thread_id, environment_id) = (self.thread.clone(), id.clone());
        match now.state {
            EnvironmentState::Attached => {
                Some(ServerNotification::ThreadEnvironmentConnected(ThreadEnvironmentConnectedNotification {
                    thread_id,
                    environment_id,
                }))
            }
            EnvironmentState::Disconnected => {
                let reason = now.reason.clone();
                Some(ServerNotification::ThreadEnvironmentDisconnected(
                    ThreadEnvironmentDisconnectedNotification { thread_id, environment_id, reason },
                ))
            }
            EnvironmentState::Starting => None,
        }
    }
}
