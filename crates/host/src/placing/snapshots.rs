//! Snapshots of workspaces: taken, noted in the row of their placement, and removed when no row names them any more.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

use placements::{Placement, SnapshotFile};
use protocol::RemovedPlacement;
use serde_json::json;
use store::StoreError;
use support::kill_point;

use crate::error::TaskError;
use crate::placing::{PlaceRow, PlaceStage};
use crate::shared::HostShared;

/// Beginning of the names of snapshots that are being written.
const UNFINISHED: &str = ".new-";

impl HostShared {
    pub(super) fn snapshot_of(&self, row: &PlaceRow) -> Option<SnapshotFile> {
        let digest = row.snapshot.clone()?;
        let path = self.snapshot_path(&digest);
        let bytes = row.record.snapshot_bytes.unwrap_or(0);
        path.is_file().then_some(SnapshotFile { path, digest, bytes })
    }

    fn snapshot_path(&self, digest: &str) -> PathBuf {
        self.places.options.blobs.join(format!("{digest}.tar"))
    }

    /// Keeps the workspace as it is now, instead of as it was.
    pub(crate) async fn take_snapshot(
        &self,
        placement: &Placement,
        row: &mut PlaceRow,
        by: &str,
    ) -> Result<(), TaskError> {
        let taking = self.places.snapshots.read().await;
        kill_point!("host.snapshot.before");
        let snapshot = placement.snapshot(&self.places.options.blobs).await?;
        kill_point!("host.snapshot.taken");
        let before = self.note_snapshot(row, snapshot);
        self.save_place_as(row, self.audited_part(by, "placement/snapshot", (&row.id, None), json!({})))
            .await?;
        kill_point!("host.snapshot.after");
        drop(taking);
        self.drop_snapshot(before).await;
        Ok(())
    }

    /// Suspends the place, with a snapshot where that ends its workspace. Whoever calls it says how the row stands then.
    pub(crate) async fn suspend_place(
        &self,
        placement: &Placement,
        row: &mut PlaceRow,
        by: &str,
    ) -> Result<(), TaskError> {
        let taking = self.places.snapshots.read().await;
        let snapshot = placement.suspend(&self.places.options.blobs).await?;
        row.record.wants_snapshot = snapshot.is_some();
        let before = snapshot.and_then(|snapshot| self.note_snapshot(row, snapshot));
        row.stage = PlaceStage::Suspended;
        self.save_place_as(row, self.audited_part(by, "placement/suspend", (&row.id, None), json!({})))
            .await?;
        drop(taking);
        self.drop_snapshot(before).await;
        Ok(())
    }

    /// Returns the digest of the one before.
    fn note_snapshot(&self, row: &mut PlaceRow, snapshot: SnapshotFile) -> Option<String> {
        row.record.snapshot_at_ms = Some(self.now_ms());
        row.record.snapshot_bytes = Some(snapshot.bytes);
        row.snapshot.replace(snapshot.digest)
    }

    async fn named_snapshots(&self) -> Result<BTreeSet<String>, StoreError> {
        let rows = self.store.list_placements().await?;
        Ok(rows.into_iter().filter_map(|row| row.snapshot).collect())
    }

    /// Removes the file unless a placement still has it, which may be another one with the same files.
    pub(crate) async fn drop_snapshot(&self, digest: Option<String>) {
        let Some(digest) = digest else { return };
        // One that is just written is in no row yet.
        let _alone = self.places.snapshots.write().await;
        let removed = match self.named_snapshots().await {
            Ok(named) if named.contains(&digest) => return,
            Ok(_) => tokio::fs::remove_file(self.snapshot_path(&digest)).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, digest, "a snapshot that no placement has is still there");
        }
    }

    /// Removes files that no placement has: a host that was killed has left them. Of a folder that others may use as well,
    /// nobody here knows all placements.
    pub(super) async fn remove_snapshots(
        &self,
        before_ms: i64,
        is_dry: bool,
    ) -> Result<Vec<RemovedPlacement>, TaskError> {
        let options = &self.places.options;
        let mut removed = Vec::new();
        if !options.owns_blobs {
            return Ok(removed);
        }
        let _alone = self.places.snapshots.write().await;
        let named = self.named_snapshots().await?;
        let Ok(mut files) = tokio::fs::read_dir(&options.blobs).await else { return Ok(removed) };
        while let Ok(Some(file)) = files.next_entry().await {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_left = match name.strip_suffix(".tar") {
                Some(digest) => !named.contains(digest),
                None => name.starts_with(UNFINISHED),
            };
            let changed = file.metadata().await.and_then(|file| file.modified());
            if !is_left || changed.map_or(i64::MAX, milliseconds) >= before_ms {
                continue;
            }
            let outcome = if is_dry { Ok(()) } else { tokio::fs::remove_file(file.path()).await };
            let problem = outcome.err().map(|error| error.to_string());
            removed.push(RemovedPlacement { id: name, backend: "snapshot".to_owned(), problem });
        }
        Ok(removed)
    }
}

fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
