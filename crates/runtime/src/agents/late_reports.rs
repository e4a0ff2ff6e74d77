//! Ends of children that their parent was not notified of, because one of the two was not loaded: reported when both
//! are.

use delegation::{
    AgentRecord, ChildFinding, ChildLife, ChildTurnEnd, RecordedChild, ReportedEnd, find_children,
};
use engine::{ChildEnd, subagent_notification};
use journal::JournalEntry;
use protocol::{ResponseItem, ThreadId, Turn};
use serde_json::json;

use super::AgentControl;

impl AgentControl {
    /// The reports about its children for a thread that is being opened, and marks them as known. The thread is not in
    /// memory yet, so nothing else notifies it meanwhile.
    pub(crate) async fn late_reports(
        &self,
        thread: &ThreadId,
        imported: Option<&[JournalEntry]>,
        children: &mut [RecordedChild],
    ) -> Vec<ResponseItem> {
        let here: Vec<&mut RecordedChild> = children.iter_mut().filter(|child| !child.is_away()).collect();
        if here.is_empty() {
            return Vec::new();
        }
        let asked: Vec<(String, bool)> = here.iter().map(|child| (child.id.clone(), child.is_open)).collect();
        let (page, id) = (imported.map(|entries| AgentRecord::imported(thread, entries)), thread.clone());
        let found = self.state.on_disk(move |store| {
            let own = match page {
                Some(page) => page,
                None => AgentRecord::read(store, &id)?,
            };
            Ok(find_children(store, &own, asked))
        });
        let found = match found.await.and_then(|found| Ok(found?)) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, %thread, "the reports of a thread about its agents could not be read");
                return Vec::new();
            }
        };
        let mut late = Vec::new();
        for (child, ChildFinding { is_open, account, life }) in here.into_iter().zip(found) {
            child.is_open = is_open;
            if !is_open {
                continue;
            }
            let life = match life {
                Some(life) => Some(life),
                None => self.life_in_memory(&child.id).await,
            };
            let known = self.state.agents.find(&child.id);
            let Some(life) = life else {
                if let Some(known) = known {
                    known.owe(account.clone());
                }
                child.account = Some(account);
                continue;
            };
            let (known_end, ends) = account.settle(&life);
            if let Some(known) = known {
                known.settle(&known_end);
            }
            let report =
                |(turn, status): &ChildTurnEnd| subagent_notification(&child.id, Some(turn), &json!(status));
            late.extend(ends.iter().map(report));
            child.heard = Some(known_end);
        }
        late
    }

    /// The life of a child whose record a host keeps and has sent.
    async fn life_in_memory(&self, id: &str) -> Option<ChildLife> {
        let loaded = self.state.loaded(&ThreadId::new(id))?;
        Some(ChildLife::of(&loaded.handle.snapshot(true).await.ok()?.turns))
    }

    /// The reports for the parent of an agent that is opened again, from the agent's own record.
    pub(crate) fn pending_reports(&self, thread: &ThreadId, turns: &[Turn]) -> Option<PendingReports> {
        let account = self.state.agents.find(thread.as_str())?.account()?;
        let (known_end, ends) = account.settle(&ChildLife::of(turns));
        Some(PendingReports { known: known_end, ends })
    }

    /// Sends the reports to the parent. A parent that was unloaded meanwhile reads them when it is opened.
    pub(crate) fn deliver_reports(&self, thread: &ThreadId, reports: PendingReports) {
        let Some(agent) = self.state.agents.find(thread.as_str()) else { return };
        let Some(parent) = self.state.loaded(&agent.family.parent) else { return };
        agent.settle(&reports.known);
        tokio::spawn(async move {
            for (turn, status) in reports.ends {
                let (id, turn_id, status) = (agent.id.clone(), Some(turn), Some(json!(status)));
                let end = ChildEnd { id, turn_id, status, operation: None };
                if let Err(error) = parent.handle.child_ended(end).await {
                    tracing::warn!(%error, agent = %agent.id, "a parent could not be notified of its child's end");
                }
            }
        });
    }
}

/// The reports about a child for its parent.
#[derive(Debug)]
pub(crate) struct PendingReports {
    known: ReportedEnd,
    ends: Vec<ChildTurnEnd>,
}
