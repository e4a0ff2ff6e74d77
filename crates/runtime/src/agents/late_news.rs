//! Ends that a parent was not told of, because one of the two was not in memory: told when both are.

use engine::{ChildEnd, subagent_notification};
use journal::{Entry, History};
use protocol::{ResponseItem, RolloutRecord, ThreadId, Turn};
use serde_json::json;

use super::adopted::Adopted;
use super::ledger::{End, Finding, Heard, Life, Page, find};
use crate::runtime::Runtime;

impl Runtime {
    /// What a thread that comes back has to be told of its children; they learn what it knows of them. It is not in memory
    /// yet, so that nobody tells it meanwhile.
    pub(crate) async fn late_news(
        &self,
        thread: &ThreadId,
        brought: Option<&[Entry]>,
        children: &mut [Adopted],
    ) -> Vec<ResponseItem> {
        let here: Vec<&mut Adopted> = children.iter_mut().filter(|child| !child.is_away()).collect();
        if here.is_empty() {
            return Vec::new();
        }
        let asked: Vec<(String, bool)> = here.iter().map(|child| (child.id.clone(), child.is_open)).collect();
        let (page, id) = (brought.map(|entries| Page::brought(thread, entries)), thread.clone());
        let found = self.on_disk(move |store| {
            let own = match page {
                Some(page) => page,
                None => Page::read(store, &id)?,
            };
            Ok(find(store, &own, asked))
        });
        let found = match found.await.and_then(|found| Ok(found?)) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, %thread, "what a thread was told of its agents could not be read");
                return Vec::new();
            }
        };
        let mut late = Vec::new();
        for (child, Finding { is_open, account, life }) in here.into_iter().zip(found) {
            child.is_open = is_open;
            if !is_open {
                continue;
            }
            let life = match life {
                Some(life) => Some(life),
                None => self.life_in_memory(&child.id).await,
            };
            let known = self.inner.agents.find(&child.id);
            let Some(life) = life else {
                if let Some(known) = known {
                    known.owe(account.clone());
                }
                child.account = Some(account);
                continue;
            };
            let (heard, untold) = account.settle(&life);
            if let Some(known) = known {
                known.settle(&heard);
            }
            let tell = |(turn, status): &End| subagent_notification(&child.id, Some(turn), &json!(status));
            late.extend(untold.iter().map(tell));
            child.heard = Some(heard);
        }
        late
    }

    /// Of one whose record a host keeps, and has brought.
    async fn life_in_memory(&self, id: &str) -> Option<Life> {
        let loaded = self.loaded(&ThreadId::new(id))?;
        Some(Life::of(&loaded.handle.look(true).await.ok()?.turns))
    }

    /// What the parent of an agent that somebody brings back could not be told without the agent's own record.
    pub(crate) fn owed(&self, thread: &ThreadId, turns: &[Turn]) -> Option<Owed> {
        let account = self.inner.agents.find(thread.as_str())?.account()?;
        let (heard, untold) = account.settle(&Life::of(turns));
        Some(Owed { heard, untold })
    }

    /// The agent is there. A parent that has left again meanwhile finds out when it is back.
    pub(crate) fn pay(&self, thread: &ThreadId, owed: Owed) {
        let Some(agent) = self.inner.agents.find(thread.as_str()) else { return };
        let Some(parent) = self.loaded(&agent.family.parent) else { return };
        agent.settle(&owed.heard);
        tokio::spawn(async move {
            for (turn, status) in owed.untold {
                let (id, turn_id, status) = (agent.id.clone(), Some(turn), Some(json!(status)));
                let end = ChildEnd { id, turn_id, status, operation: None };
                if let Err(error) = parent.handle.child_ended(end).await {
                    tracing::warn!(%error, agent = %agent.id, "a parent could not be told of its child");
                }
            }
        });
    }
}

/// What a parent has to be told of a child, and what it knows then.
#[derive(Debug)]
pub(crate) struct Owed {
    heard: Heard,
    untold: Vec<End>,
}

/// Puts what a thread has to be told into what it knows, and says what has to be written down for it.
pub(crate) fn told_now(history: &mut History, news: Vec<ResponseItem>) -> Vec<RolloutRecord> {
    let record = |item: &ResponseItem| RolloutRecord::ResponseItem { turn_id: None, item: item.clone() };
    let records = news.iter().map(record).collect();
    history.model.extend(news);
    records
}
