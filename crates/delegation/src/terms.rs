//! The terms of a host that opens a thread: requested and granted.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::{ProviderConfig, ProviderKind};
use engine::ThreadSeed;
use protocol::{
    DelegationFeature, DelegationMode, HostDelegationAgreed, RolloutOwnership, SubagentPlacement,
    ThreadDelegation, ThreadId,
};

use super::Delegation;
use super::error::DelegationError;
use super::host::Host;
use super::session::{HostSession, filled};

/// The version of the delegation protocol.
pub const DELEGATION_VERSION: u32 = 1;

/// The supported features.
pub const DELEGATION_FEATURES: &[DelegationFeature] = &[
    DelegationFeature::ModelTransport,
    DelegationFeature::ClientRollout,
    DelegationFeature::Operations,
    DelegationFeature::Subagents,
    DelegationFeature::Suspend,
    DelegationFeature::ToolSet,
    DelegationFeature::CommandUser,
];

/// Larger windows would let one stream use too much memory.
const MOST_WINDOW_EVENTS: u32 = 65_536;
const MOST_WINDOW_BYTES: u64 = 64 * 1024 * 1024;

/// The granted part of a request, before the thread is opened.
#[derive(Debug, Default)]
pub struct Terms {
    host: Option<Arc<dyn Host>>,
    /// With every default filled in. Unset when nothing was requested.
    delegation: Option<ThreadDelegation>,
    ownership: Option<RolloutOwnership>,
}

impl Terms {
    pub fn of(
        asked: Option<&ThreadDelegation>,
        ownership: Option<RolloutOwnership>,
        host: Option<Arc<dyn Host>>,
    ) -> Result<Self, DelegationError> {
        check_ownership(ownership, asked.is_some(), host.as_deref())?;
        let Some(asked) = asked else { return Ok(Self { host, delegation: None, ownership }) };
        let Some(host) = host else {
            return Err(unsupported("delegation", "was not agreed on: offer hostDelegation in initialize"));
        };
        let delegation = check(asked, host.agreed())?;
        Ok(Self { host: Some(host), delegation: Some(delegation), ownership })
    }

    /// A child gets the terms of its parent.
    pub fn of_child(parent: Option<&HostSession>, host_keeps_record: bool) -> Self {
        let Some(session) = parent else { return Self::default() };
        let ownership = host_keeps_record.then_some(RolloutOwnership::Client);
        Self { host: Some(session.host()), delegation: Some(session.effective()), ownership }
    }

    pub fn is_full(&self) -> bool {
        self.delegation.as_ref().is_some_and(|terms| terms.mode == DelegationMode::Full)
    }

    /// Only the host keeps the record.
    pub fn host_keeps_record(&self) -> bool {
        self.ownership == Some(RolloutOwnership::Client)
    }

    pub fn has_agreed(&self, feature: &DelegationFeature) -> bool {
        self.host.as_ref().is_some_and(|host| host.agreed().features.contains(feature))
    }

    /// The caller has a host capability, so its response lists the tools.
    pub fn has_host(&self) -> bool {
        self.host.is_some()
    }

    /// Pending operations are shown with their recorded ids.
    pub fn shows_operations(&self) -> bool {
        self.has_agreed(&DelegationFeature::Operations)
    }

    /// The seed of a thread under these terms.
    pub fn seed(&self, id: ThreadId) -> ThreadSeed {
        ThreadSeed {
            calls_wait: self.host_keeps_record(),
            shows_operations: self.shows_operations(),
            epoch: self.delegation.as_ref().and_then(|delegation| delegation.host_epoch),
            ..ThreadSeed::new(id)
        }
    }

    /// Who keeps the record, if requested.
    pub fn ownership(&self) -> Option<RolloutOwnership> {
        self.ownership
    }

    /// The host's provider, which replaces every configured one. It needs no URL and no key here.
    pub fn provider(&self) -> Option<ProviderConfig> {
        let provider = self.delegation.as_ref().filter(|_| self.is_full())?.provider.as_ref()?;
        Some(ProviderConfig {
            id: provider.id.clone(),
            name: "Host".to_owned(),
            kind: ProviderKind::Compatible,
            wire: config::WireApi::Responses,
            base_url: None,
            env_key: None,
            env_key_instructions: None,
            bearer_token: None,
            http_headers: BTreeMap::new(),
            env_http_headers: BTreeMap::new(),
            query_params: BTreeMap::new(),
            request_max_retries: 0,
            stream_max_retries: 5,
            stream_idle_timeout_ms: 300_000,
            websocket_connect_timeout_ms: 15_000,
            requires_openai_auth: false,
            supports_websockets: false,
            default_model: None,
            text_tool_calls: false,
            max_output_tokens: None,
            thinking: None,
            system_messages: None,
            is_known: false,
            auth: None,
        })
    }
}

impl Delegation {
    /// Opens the host's session with a thread that is about to be opened.
    pub fn open_session(
        &self,
        thread: &ThreadId,
        terms: &Terms,
    ) -> Result<Option<Arc<HostSession>>, DelegationError> {
        let (Some(host), Some(delegation)) = (&terms.host, &terms.delegation) else { return Ok(None) };
        self.fence(thread, delegation.host_epoch)?;
        let session = Arc::new(HostSession::new(thread.clone(), delegation.clone(), host.clone()));
        self.keep(&session);
        Ok(Some(session))
    }

    /// A host is about to attach to a loaded thread. If the previous host keeps the record, it is no longer awaited.
    pub fn expect(&self, thread: &ThreadId, terms: &Terms) -> Result<(), DelegationError> {
        let session = self.session_for(thread, terms)?;
        if let (Some(session), Some(host), true) = (session, &terms.host, terms.host_keeps_record()) {
            session.expect(host.id());
        }
        Ok(())
    }

    /// Attaches the host to a loaded thread, if it requests that. Other clients may subscribe without a session.
    pub fn attach(&self, thread: &ThreadId, terms: &Terms) -> Result<bool, DelegationError> {
        let (Some(host), Some(session)) = (&terms.host, self.session_for(thread, terms)?) else {
            return Ok(false);
        };
        session.attach(host.clone(), terms.delegation.as_ref().and_then(|asked| asked.host_epoch));
        Ok(true)
    }

    /// The session to attach to, if the host requests one that it may have.
    fn session_for(
        &self,
        thread: &ThreadId,
        terms: &Terms,
    ) -> Result<Option<Arc<HostSession>>, DelegationError> {
        let (Some(_), Some(asked)) = (&terms.host, &terms.delegation) else { return Ok(None) };
        let differs = |problem| unsupported("delegation", problem);
        let Some(session) = self.session(thread) else {
            return Err(differs("cannot begin while the thread is in memory without it"));
        };
        let now = session.effective();
        if now.mode != asked.mode || now.provider != asked.provider || now.stream != asked.stream {
            return Err(differs("differs from that of the thread, which is in memory"));
        }
        self.fence(thread, asked.host_epoch)?;
        Ok(Some(session))
    }
}

/// Refuses the first unsupported field: a partial grant would be worse than none.
fn check(
    asked: &ThreadDelegation,
    agreed: &HostDelegationAgreed,
) -> Result<ThreadDelegation, DelegationError> {
    if asked.version != agreed.version {
        let problem = format!("must be {}, which initialize agreed on", agreed.version);
        return Err(unsupported("delegation.version", problem));
    }
    if asked.subagents == Some(SubagentPlacement::Host)
        && !agreed.features.contains(&DelegationFeature::Subagents)
    {
        return Err(unsupported(
            "delegation.subagents",
            "was not agreed on: `subagents` is no agreed feature",
        ));
    }
    let mut effective = asked.clone();
    if asked.mode == DelegationMode::Direct {
        // They would have no effect, and the host is notified of that.
        (effective.provider, effective.stream) = (None, None);
        return Ok(effective);
    }
    if !agreed.features.contains(&DelegationFeature::ModelTransport) {
        return Err(unsupported(
            "delegation.mode",
            "was not agreed on: `modelTransport` is no agreed feature",
        ));
    }
    let Some(provider) = &asked.provider else {
        return Err(unsupported("delegation.provider", "is missing, and mode `full` needs it"));
    };
    let id = provider.id.as_str();
    if id.is_empty() || id.trim() != id {
        return Err(unsupported("delegation.provider.id", "must be a name without spaces around it"));
    }
    if ProviderConfig::is_built_in(id) {
        let problem = format!("must not be `{id}`, which is a built-in provider");
        return Err(unsupported("delegation.provider.id", problem));
    }
    if provider.capabilities.context_window == Some(0) {
        return Err(unsupported("delegation.provider.capabilities.contextWindow", "must be more than 0"));
    }
    let stream = filled(asked.stream.as_ref());
    if !(1..=MOST_WINDOW_EVENTS).contains(&stream.window_events.unwrap_or(0)) {
        let problem = format!("must be between 1 and {MOST_WINDOW_EVENTS}");
        return Err(unsupported("delegation.stream.windowEvents", problem));
    }
    if !(1..=MOST_WINDOW_BYTES).contains(&stream.window_bytes.unwrap_or(0)) {
        let problem = format!("must be between 1 and {MOST_WINDOW_BYTES}");
        return Err(unsupported("delegation.stream.windowBytes", problem));
    }
    for (field, limit) in [
        ("delegation.stream.firstEventTimeoutMs", stream.first_event_timeout_ms),
        ("delegation.stream.idleTimeoutMs", stream.idle_timeout_ms),
    ] {
        if limit == Some(0) {
            return Err(unsupported(field, "must be more than 0"));
        }
    }
    effective.stream = Some(stream);
    Ok(effective)
}

/// Who keeps the record.
fn check_ownership(
    ownership: Option<RolloutOwnership>,
    has_session: bool,
    host: Option<&dyn Host>,
) -> Result<(), DelegationError> {
    let is_agreed =
        || host.is_some_and(|host| host.agreed().features.contains(&DelegationFeature::ClientRollout));
    match ownership {
        Some(RolloutOwnership::Client) if !is_agreed() => {
            Err(unsupported("rolloutOwnership", "was not agreed on: `clientRollout` is no agreed feature"))
        }
        Some(RolloutOwnership::Client) if !has_session => {
            Err(unsupported("delegation", "is missing, and rolloutOwnership `client` needs it"))
        }
        Some(_) | None => Ok(()),
    }
}

fn unsupported(field: &'static str, problem: impl Into<String>) -> DelegationError {
    DelegationError::Unsupported { field, problem: problem.into() }
}
