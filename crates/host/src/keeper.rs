//! Renews the lease of this host, adopts tasks without an owner, and stops everything when the lease is over.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use store::{StoreError, StoreNews, TaskStore};
use support::kill_point;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::TaskError;
use crate::lease::LeaseState;
use crate::messages::TaskCommand;
use crate::shared::HostShared;
use crate::task_host::TaskHost;

/// Tasks taken over at once; more follow with the next look.
const ADOPT_AT_ONCE: u32 = 16;
/// The pause after a renewal that failed.
const SOON: Duration = Duration::from_millis(200);

/// Keeps the lease of one host.
struct LeaseKeeper {
    host: TaskHost,
    /// By a connection of its own: a renewal waits behind nothing.
    store: TaskStore,
    ends: Instant,
}

impl TaskHost {
    /// Does so for as long as the process lives. `renewed` is the moment before the host was entered into the store.
    pub(crate) fn keep_lease(&self, renewed: Instant) {
        let shared = &self.shared;
        let ends = renewed + shared.options.replica.ttl;
        shared.lease.send_replace(LeaseState::Until { term: shared.replica().incarnation, ends });
        let keeper = LeaseKeeper { host: self.clone(), store: shared.store.beside(), ends };
        tokio::spawn(keeper.run());
        tokio::spawn(look_after(self.clone(), shared.store.news()));
    }

    /// Takes over tasks that go on by themselves and have no living owner.
    pub(crate) async fn adopt(&self) -> Result<usize, StoreError> {
        self.settle_doubts().await;
        let mut count = 0;
        while self.shared.options.replica.adopts && !self.shared.is_stopping.load(Ordering::Acquire) {
            let replica = self.shared.replica();
            let adopted = self.shared.store.adopt_tasks(&replica, ADOPT_AT_ONCE).await?;
            if adopted.is_empty() {
                break;
            }
            kill_point!("host.adopted");
            for lease in adopted {
                count += 1;
                tracing::info!(task = %lease.task, epoch = lease.epoch, "a task is taken over");
                if let Err(error) = self.living(&lease.task).await {
                    tracing::error!(%error, task = %lease.task, "a task could not be taken up");
                }
            }
        }
        Ok(count)
    }

    /// Takes up again what this host let go, unless another one has it by now.
    async fn settle_doubts(&self) {
        let doubted = std::mem::take(&mut *self.shared.doubted.lock());
        for task in doubted {
            match self.living(&task).await {
                Ok(_) | Err(TaskError::OwnedElsewhere { .. } | TaskError::UnknownThread(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, %task, "whose task this is shows later");
                    self.shared.doubted.lock().insert(task);
                }
            }
        }
    }
}

impl LeaseKeeper {
    async fn run(mut self) {
        let every = self.shared().options.replica.ttl / 3;
        loop {
            tokio::time::sleep(every).await;
            while !self.renew().await {
                tokio::time::sleep(SOON).await;
            }
        }
    }

    fn shared(&self) -> &Arc<HostShared> {
        &self.host.shared
    }

    /// False when it has to be tried again soon.
    async fn renew(&mut self) -> bool {
        let options = &self.shared().options.replica;
        let (ttl, replica) = (options.ttl, self.shared().replica());
        let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let is_over = *self.shared().lease.borrow() == LeaseState::Over;
        // The lease counts from before the request: whatever the way there takes is lost time.
        let before = Instant::now();
        kill_point!("host.lease.before");
        let renewed = match is_over {
            true => self.store.register_replica(&replica, ttl_ms).await.map(Some),
            false => {
                let renewal = self.store.renew_replica(&replica, ttl_ms);
                match tokio::time::timeout_at(self.ends, renewal).await {
                    Ok(renewed) => renewed.map(|_| None),
                    Err(_) => Err(StoreError::Unavailable("the renewal took too long".to_owned())),
                }
            }
        };
        kill_point!("host.lease.after");
        // A process that was stopped meanwhile wakes up here.
        if !is_over && Instant::now() >= self.ends {
            self.shared().fence("its lease was not renewed in time");
            return false;
        }
        match renewed {
            Ok(again) => {
                if let Some(replica) = again {
                    tracing::warn!(incarnation = replica.incarnation, "the host has a lease again");
                    *self.shared().replica.lock() = replica;
                }
                self.ends = before + ttl;
                let term = self.shared().replica().incarnation;
                self.shared().lease.send_replace(LeaseState::Until { term, ends: self.ends });
                true
            }
            Err(StoreError::ReplicaReplaced(id)) => {
                self.shared().fence("another host was started under its name");
                self.shared().replaced.send_replace(Some(id));
                std::future::pending().await
            }
            Err(error) => {
                tracing::warn!(%error, "the lease of this host could not be renewed");
                false
            }
        }
    }
}

impl HostShared {
    /// The lease is over: runtimes are killed, and tasks are let go of as they are.
    pub(crate) fn fence(&self, why: &str) {
        let living = std::mem::take(&mut *self.living.lock());
        tracing::error!(tasks = living.len(), "fenced: {why}; its runtimes are ended");
        // Whoever holds a runtime or drives a task hears of it.
        self.lease.send_replace(LeaseState::Over);
    }
}

/// Looks for tasks to take over, and for what other hosts have stored for tasks that live here. News make it sooner.
async fn look_after(host: TaskHost, mut news: Option<mpsc::Receiver<StoreNews>>) {
    let every = host.shared.options.replica.ttl / 3;
    loop {
        let heard = match &mut news {
            Some(news) => tokio::select! {
                heard = news.recv() => heard,
                () = tokio::time::sleep(every) => None,
            },
            None => {
                tokio::time::sleep(every).await;
                None
            }
        };
        if *host.shared.lease.borrow() == LeaseState::Over {
            continue;
        }
        let living: Vec<_> = {
            let living = host.shared.living.lock();
            match &heard {
                Some(StoreNews::Task(task)) => living.get(task).cloned().into_iter().collect(),
                Some(StoreNews::Unknown) | None => living.values().cloned().collect(),
            }
        };
        let is_here = !living.is_empty();
        for task in living {
            // One that has much to do looks later.
            let _ = task.mailbox.try_send(TaskCommand::LookAgain);
        }
        if matches!(heard, Some(StoreNews::Task(_))) && is_here {
            continue;
        }
        if let Err(error) = host.adopt().await {
            tracing::warn!(%error, "tasks could not be taken over");
        }
    }
}
