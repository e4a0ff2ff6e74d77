//! The few things every measure of delegation does with a server, each checked.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::command::ServerCommand;
use crate::home::Home;
use crate::host::{Carried, Host};
use crate::session::{Bench, Session, TurnTimes};
use crate::sse::Reply;

/// Where the record of a delegated thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// With the server, as in a direct thread.
    Server,
    Host,
    Nowhere,
}

/// The capabilities of a host that carries model requests and keeps records.
pub(crate) fn capabilities() -> Value {
    let features = ["modelTransport", "clientRollout", "operations"];
    json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": features}})
}

impl Bench<'_> {
    /// Starts a server and is the host of it.
    pub(crate) fn start_hosting(&self, command: &ServerCommand, home: &Home) -> Result<Session> {
        let mut session = self.start_with(command, home, &capabilities())?;
        ensure!(session.delegates, "the server does not delegate");
        session.client.attach(Host::new());
        Ok(session)
    }
}

impl Session {
    /// Starts a thread whose model requests the host carries.
    pub(crate) fn start_delegated(&mut self, record: Record) -> Result<String> {
        let provider = json!({"id": "bench", "capabilities": {"wire": "responses", "freeformTools": true}});
        let terms = json!({"mode": "full", "version": 1, "hostEpoch": 1, "provider": provider});
        let mut params = json!({"delegation": terms});
        match record {
            Record::Server => {}
            Record::Host => params["rolloutOwnership"] = "client".into(),
            Record::Nowhere => params["ephemeral"] = true.into(),
        }
        Ok(self.start_thread_with(params)?.0)
    }

    /// A turn for which the host carries one model request for each of these replies, and that ends with the last
    /// one's text. Also gives how many barriers there were.
    pub(crate) fn hosted_turn(
        &mut self,
        thread: &str,
        text: &str,
        replies: &[Arc<Reply>],
    ) -> Result<(TurnTimes, usize)> {
        let last = replies.last().context("a turn without replies")?;
        let host = self.client.host()?;
        host.serve_in_turn(replies);
        let before = host.carried;
        let begun = Instant::now();
        let request = self.begin_turn(thread, text)?;
        let end = self.end_turn(thread, request, last)?;
        let Carried { requests, inside, barriers } = self.client.host()?.carried;
        let (asked, expected) = (requests - before.requests, replies.len());
        ensure!(asked == expected, "the host was asked {asked} times instead of {expected}");
        let times = TurnTimes { wall: end - begun, inside_the_model: inside - before.inside };
        Ok((times, barriers - before.barriers))
    }
}
