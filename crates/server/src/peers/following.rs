//! Clients of this replica follow a thread wherever it goes: when its owner changes, they are subscribed at the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use host::{HeardTurn, TaskError, TaskOwner};
use protocol::ThreadId;

use super::{PEER_SCHEME, PeerTable};
use crate::host_face::resync;
use crate::hub::{ClientConnection, ConnectionId};

/// How often owners are looked for while somebody waits for one.
const SOON: Duration = Duration::from_secs(1);

impl PeerTable {
    /// Looks for changed owners for ever.
    pub(crate) async fn follow_owners(self: Arc<Self>) {
        let every = self.host.lease_time() / 3;
        loop {
            let pause = match self.lost.lock().is_empty() && self.open_links(|_| true).is_empty() {
                true => every,
                false => SOON.min(every),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.ended.notified() => {}
            }
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "it is not known which hosts have the threads that clients follow");
            }
        }
    }

    async fn look(self: &Arc<Self>) -> Result<(), TaskError> {
        self.end_stale_links().await?;
        let followed = self.hub.followed_here();
        let away = followed.keys().filter(|thread| !self.host.drives(thread)).cloned().collect();
        let mut owners = self.host.owners_elsewhere(away).await?;
        owners.retain(|_, owner| owner.address.starts_with(PEER_SCHEME));
        for (thread, owner) in &owners {
            for client in followed.get(thread).into_iter().flatten() {
                self.follow_at(client, thread, owner).await;
            }
        }
        let lost: BTreeSet<ThreadId> = self.lost.lock().values().flat_map(BTreeMap::keys).cloned().collect();
        for thread in lost.iter().filter(|thread| !owners.contains_key(*thread)) {
            let may_start = followed.get(thread).into_iter().flatten().any(|client| client.may_work());
            match self.host.take_up(thread, may_start).await {
                Ok(true) => self.taken_up(thread).await,
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, %thread, "a thread without an owner is not taken up"),
            }
        }
        Ok(())
    }

    /// A replica without a lease answers nothing that counts, even if its connection still stands.
    async fn end_stale_links(&self) -> Result<(), TaskError> {
        let links = self.open_links(|_| true);
        if links.is_empty() {
            return Ok(());
        }
        let alive: BTreeSet<String> = self.host.living_replicas().await?;
        for (_, link) in links.iter().filter(|(replica, _)| !alive.contains(replica)) {
            link.give_up();
        }
        Ok(())
    }

    async fn follow_at(
        self: &Arc<Self>,
        client: &Arc<ClientConnection>,
        thread: &ThreadId,
        owner: &TaskOwner,
    ) {
        match self.link(client, owner).await {
            Ok(link) if link.follows(thread) => {}
            Ok(link) => {
                tracing::info!(%thread, connection = %client.id, replica = owner.replica, "followed at another host");
                let provides = self.providers.declared_by(thread, client.id);
                let heard = self.take_lost(client.id, thread).unwrap_or_default();
                self.hub.forget_open_items(thread);
                let delegation = self.carriers.carried_by(thread, client.id);
                link.follow(thread, &provides, delegation, heard);
            }
            Err(error) => {
                tracing::debug!(%error, replica = owner.replica, "another host cannot be reached yet");
            }
        }
    }

    /// This replica has the task now: its clients that followed it elsewhere hear the rest from here.
    pub(crate) async fn taken_up(&self, root: &ThreadId) {
        let followers: Vec<ConnectionId> = self.hub.subscribers(root);
        let mut behind = Vec::new();
        for client in followers {
            let links = self.open_links(|(connection, _)| *connection == client);
            let heard = links.iter().filter_map(|(_, link)| link.leave(root)).next();
            behind.extend(self.take_lost(client, root).or(heard).map(|heard| (client, heard)));
        }
        if behind.is_empty() {
            return;
        }
        let _held = self.host.hold_messages(root).await;
        for (client, mut heard) in behind {
            self.catch_up(client, root, &mut heard).await;
            resync(&self.host, &self.hub, root, client).await;
        }
    }

    /// Tells a client the ends that the record has and that it has not heard of.
    pub(super) async fn catch_up(&self, client: ConnectionId, thread: &ThreadId, heard: &mut HeardTurn) {
        if !heard.is_running() {
            return;
        }
        match self.host.recorded_turns(thread).await {
            Ok(turns) => {
                for missed in heard.catch_up(thread, turns) {
                    self.hub.notify_these(&[client], thread, missed).await;
                }
            }
            Err(error) => tracing::warn!(%error, %thread, "a client may miss the end of a turn"),
        }
    }
}
