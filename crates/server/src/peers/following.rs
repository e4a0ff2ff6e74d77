//! Clients of this replica follow a thread wherever it goes: when its owner changes, they are subscribed at the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use host::{TaskError, TaskOwner};
use protocol::ThreadId;

use super::{PEER_SCHEME, PeerTable};
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
        for (thread, client) in self.came_home(&followed, &owners) {
            self.forget_lost(client.id, &thread);
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
                link.follow(thread, &provides, client.is_experimental());
                self.forget_lost(client.id, thread);
            }
            Err(error) => {
                tracing::debug!(%error, replica = owner.replica, "another host cannot be reached yet");
            }
        }
    }

    /// Followers whose link is lost, and whose thread this replica has now.
    fn came_home(
        &self,
        followed: &BTreeMap<ThreadId, Vec<Arc<ClientConnection>>>,
        owners: &BTreeMap<ThreadId, TaskOwner>,
    ) -> Vec<(ThreadId, Arc<ClientConnection>)> {
        let lost = self.lost.lock();
        let waits =
            |id: ConnectionId, thread: &ThreadId| lost.get(&id).is_some_and(|lost| lost.contains(thread));
        let here =
            followed.iter().filter(|(thread, _)| !owners.contains_key(*thread) && self.host.drives(thread));
        let home = here.flat_map(|(thread, clients)| {
            clients
                .iter()
                .filter(|client| waits(client.id, thread))
                .map(|client| (thread.clone(), client.clone()))
        });
        home.collect()
    }
}
