//! Histories that arrive in parts, stored until a thread is opened with them. Limited: the oldest are dropped.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};

use engine::digest_of;
use protocol::{InitialItemsRef, RolloutItem, RolloutLoadParams, RolloutLoadResponse, ThreadId};
use serde_json::json;

use crate::{DelegationError, HostId};

/// Limit of incomplete histories.
const MOST_THREADS: usize = 32;
const MOST_PARTS: u32 = 4_096;
const MOST_ITEMS: usize = 2_000_000;

/// By thread, oldest first.
#[derive(Debug, Default)]
pub struct Uploads(Mutex<VecDeque<Upload>>);

#[derive(Debug)]
struct Upload {
    host: HostId,
    thread: ThreadId,
    parts: BTreeMap<u32, Vec<RolloutItem>>,
}

fn invalid(code: &'static str, field: &str, problem: String) -> DelegationError {
    DelegationError::Invalid { code, field: field.to_owned(), problem }
}

impl Uploads {
    /// A repeated part replaces the first: a host may send it again if unsure.
    pub fn add(
        &self,
        host: HostId,
        params: RolloutLoadParams,
    ) -> Result<RolloutLoadResponse, DelegationError> {
        let RolloutLoadParams { thread_id, part, items } = params;
        if part >= MOST_PARTS {
            return Err(invalid("invalidHistory", "part", format!("must be less than {MOST_PARTS}")));
        }
        let mut uploads = self.0.lock();
        let known = uploads.iter().position(|upload| upload.thread == thread_id && upload.host == host);
        let mut upload = match known.and_then(|at| uploads.remove(at)) {
            Some(upload) => upload,
            None => Upload { host, thread: thread_id, parts: BTreeMap::new() },
        };
        let held: usize = upload.parts.values().map(Vec::len).sum();
        if held + items.len() > MOST_ITEMS {
            uploads.push_back(upload);
            return Err(invalid("invalidHistory", "items", format!("must be at most {MOST_ITEMS} in all")));
        }
        upload.parts.insert(part, items);
        let received = u32::try_from(upload.parts.len()).unwrap_or(u32::MAX);
        uploads.push_back(upload);
        if uploads.len() > MOST_THREADS {
            uploads.pop_front();
        }
        Ok(RolloutLoadResponse { received })
    }

    /// All parts of a thread's history, in order and complete.
    pub fn take(
        &self,
        thread: &ThreadId,
        wanted: &InitialItemsRef,
    ) -> Result<Vec<RolloutItem>, DelegationError> {
        let mut uploads = self.0.lock();
        let at = uploads.iter().position(|upload| upload.thread == *thread);
        let parts = at.map(|at| &uploads[at].parts);
        let missing = (0..wanted.parts).find(|part| parts.is_none_or(|parts| !parts.contains_key(part)));
        if let Some(missing) = missing {
            let problem = format!(
                "announces {} parts, and part {missing} has not come; send it by rollout/load first",
                wanted.parts
            );
            return Err(invalid("missingPart", "initialItemsRef.parts", problem));
        }
        let upload = at.and_then(|at| uploads.remove(at));
        drop(uploads);
        let items: Vec<RolloutItem> =
            upload.into_iter().flat_map(|upload| upload.parts.into_values().flatten()).collect();
        if digest_of(&json!(items)) != wanted.digest {
            let problem = "is not that of the items that came".to_owned();
            return Err(invalid("digestMismatch", "initialItemsRef.digest", problem));
        }
        Ok(items)
    }

    /// The host disconnected, so its uploads are dropped.
    pub fn forget(&self, host: HostId) {
        self.0.lock().retain(|upload| upload.host != host);
    }
}
