//! Ways to the provider, one for each client that tasks were started by.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::host::ClientTransports;
use anyhow::Result;
use model::ModelTransport;
use parking_lot::Mutex;
use runtime::{ClientIdentity, Runtime};

/// More clients than these share the host's own way.
const MOST: usize = 64;

#[derive(Debug)]
pub(super) struct TransportsByClient {
    runtime: Runtime,
    own: Arc<dyn ModelTransport>,
    known: Mutex<BTreeMap<String, Arc<dyn ModelTransport>>>,
}

impl TransportsByClient {
    pub(super) fn new(runtime: Runtime) -> Result<Self> {
        let own = runtime.model_transport(&ClientIdentity::default())?;
        Ok(Self { runtime, own, known: Mutex::default() })
    }
}

impl ClientTransports for TransportsByClient {
    fn transport(&self, user_agent: &str) -> Arc<dyn ModelTransport> {
        let mut known = self.known.lock();
        if let Some(transport) = known.get(user_agent) {
            return transport.clone();
        }
        if user_agent.is_empty() || known.len() >= MOST {
            return self.own.clone();
        }
        let originator = user_agent.split('/').next().unwrap_or(user_agent).to_owned();
        let client = ClientIdentity { originator, user_agent: user_agent.to_owned() };
        match self.runtime.model_transport(&client) {
            Ok(transport) => {
                known.insert(user_agent.to_owned(), transport.clone());
                transport
            }
            Err(error) => {
                tracing::warn!(%error, "a client's requests are sent under the host's own name");
                self.own.clone()
            }
        }
    }
}
