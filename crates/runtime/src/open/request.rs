//! One request for every way to open a thread, and the conversions into it.

use std::sync::Arc;

use delegation::{DelegationError, HostChoices, Terms, asked_tool_set, check_dynamic_tools, refuse_beside};
use environments::stored_choice;
use journal::{JournalEntry, Record, ReferenceRollout, ThreadHistory, ThreadJournal};
use model::ModelTransport;
use protocol::{
    DynamicToolSpec, EnvironmentSelection, HistoryFidelity, PendingOperation, ResponseItem, RolloutRecord,
    SessionSource, ThreadForkParams, ThreadId, ThreadResumeParams, ThreadStartParams, ToolSet, Turn,
};

use crate::error::RuntimeError;
use crate::open::checks::nothing_to_resume;
use crate::open::config_request::{ConfigRequest, StoredSettings};
use crate::open::copy::CopiedRecord;
use crate::open::import::ImportFields;
use crate::open::opened::HostAnswer;
use crate::providers::bridge::Bridge;
use crate::providers::identity::ClientIdentity;
use driver::{ThreadSettings, check_thread_id};

/// A thread to be opened, in any of the ways.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestedId,
    pub(crate) client: ClientIdentity,
    pub(crate) terms: Terms,
    pub(crate) config: ConfigRequest,
    pub(crate) choices: HostChoices,
    /// Tools of clients. Not used if the host's tool set lists them.
    pub(crate) dynamic_tools: Vec<DynamicToolSpec>,
    /// The environments of its tools. Unset: from the settings.
    pub(crate) environments: Option<EnvironmentChoice>,
    /// The model's history, with the metadata of its record.
    pub(crate) history: ThreadHistory,
    pub(crate) record: RecordSource,
    /// A history from the host, read when the thread exists.
    pub(crate) import: Option<ImportFields>,
    /// Written first: outcomes of what the thread's last process left undecided.
    pub(crate) recovered: Vec<RolloutRecord>,
    /// Rules that clients approved and that the thread's last process may not have saved.
    pub(crate) agreed_rules: Vec<Vec<String>>,
    /// For the response.
    pub(crate) turns: Vec<Turn>,
    /// For the response, if the caller has the `operations` capability.
    pub(crate) pending_operations: Option<Vec<PendingOperation>>,
    pub(crate) ephemeral: bool,
    pub(crate) raw_events: bool,
    pub(crate) thread_source: Option<String>,
    pub(crate) forked_from: Option<ThreadId>,
    /// Set for a child agent.
    pub(crate) child: Option<Box<ChildOptions>>,
}

/// The id of a thread to be opened.
#[derive(Debug)]
pub(crate) enum RequestedId {
    /// A new id, or this one if no other thread has it.
    New(Option<ThreadId>),
    /// A new thread with an id known to be free.
    Reserved(ThreadId),
    /// An existing thread, identified by its record.
    Existing(ThreadId),
}

/// The environments of a thread to be opened.
#[derive(Debug)]
pub(crate) enum EnvironmentChoice {
    /// All of them must be known.
    Requested(Vec<EnvironmentSelection>),
    /// From the thread's record. Unknown ones cannot be used.
    Stored(Vec<EnvironmentSelection>),
}

/// The source of a thread's first records.
#[derive(Debug)]
pub(crate) enum RecordSource {
    /// None: the record begins with the first turn.
    Nothing,
    /// The items of the history, which are in no record yet.
    Items,
    /// Another thread's record.
    Copy { records: Vec<(i64, Record)>, answer: Box<HostAnswer> },
    /// Sent by a host.
    Imported { entries: Vec<JournalEntry>, fidelity: HistoryFidelity, rebuilt: Vec<String>, digest: String },
    /// The thread's own record on this machine.
    Journal(Box<ThreadJournal>),
    /// A rollout of the reference.
    Reference(Box<ReferenceRollout>),
}

/// Options that a child agent gets from its parent.
#[derive(Debug)]
pub(crate) struct ChildOptions {
    pub(crate) settings: ThreadSettings,
    /// The parent's transport.
    pub(crate) transport: Arc<dyn ModelTransport>,
    pub(crate) session_id: String,
    pub(crate) source: SessionSource,
    pub(crate) nickname: Option<String>,
    pub(crate) role: Option<String>,
}

impl OpenRequest {
    /// A thread without a history.
    pub(crate) fn new(id: RequestedId, client: ClientIdentity, terms: Terms, config: ConfigRequest) -> Self {
        Self {
            id,
            client,
            config: config.with_provider(terms.provider()),
            terms,
            choices: HostChoices::default(),
            dynamic_tools: Vec::new(),
            environments: None,
            history: ThreadHistory::default(),
            record: RecordSource::Nothing,
            import: None,
            recovered: Vec::new(),
            agreed_rules: Vec::new(),
            turns: Vec::new(),
            pending_operations: None,
            ephemeral: false,
            raw_events: false,
            thread_source: None,
            forked_from: None,
            child: None,
        }
    }

    pub(crate) fn of_start(
        params: &ThreadStartParams,
        client: ClientIdentity,
        terms: Terms,
    ) -> Result<Self, RuntimeError> {
        nothing_to_resume(params.resolved_operations.as_deref(), params.resume_turn)?;
        if terms.is_full() && params.sdk_delegation.is_some() {
            let problem = "cannot be used together with delegation.mode `full`".to_owned();
            return Err(RuntimeError::Field { field: "sdkDelegation", problem });
        }
        let dynamic_tools = params.dynamic_tools.clone().unwrap_or_default();
        check_dynamic_tools(&dynamic_tools).map_err(RuntimeError::DynamicTool)?;
        let tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?;
        if tool_set.is_some() && params.builtin_tools.is_some() {
            return Err(refuse_beside("builtinTools").into());
        }
        if tool_set.is_some() && !dynamic_tools.is_empty() {
            return Err(refuse_beside("dynamicTools").into());
        }
        let choices = HostChoices::of_start(params).map_err(RuntimeError::BuiltinTool)?;
        let id = RequestedId::New(params.thread_id.as_ref().map(check_thread_id).transpose()?);
        let bridge = params.sdk_delegation.as_ref().map(Bridge::of).transpose()?;
        let config = ConfigRequest::of_start(params, bridge.as_ref());
        Ok(Self {
            choices: choices.with_tool_set(tool_set),
            dynamic_tools,
            environments: params.environments.clone().map(EnvironmentChoice::Requested),
            ephemeral: params.ephemeral.unwrap_or(false),
            raw_events: params.experimental_raw_events,
            thread_source: params.thread_source.clone(),
            ..Self::new(id, client, terms, config)
        })
    }

    /// A thread with its history, which the caller has read and recovered. The tool set is checked already.
    pub(crate) fn of_resume(
        params: &ThreadResumeParams,
        id: ThreadId,
        client: ClientIdentity,
        terms: Terms,
        history: ThreadHistory,
    ) -> Self {
        let config = ConfigRequest::of_resume(params, &StoredSettings::of(&history));
        let id = RequestedId::Existing(id);
        Self::new(id, client, terms, config).going_on(history, params.tool_set.clone())
    }

    /// A new thread whose history is the given items.
    pub(crate) fn of_items(
        params: &ThreadResumeParams,
        client: ClientIdentity,
        terms: Terms,
        items: Vec<ResponseItem>,
    ) -> Self {
        let config = ConfigRequest::of_resume(params, &StoredSettings::default());
        Self {
            choices: HostChoices::default().with_tool_set(params.tool_set.clone().map(Box::new)),
            history: ThreadHistory { model: items, ..ThreadHistory::default() },
            record: RecordSource::Items,
            ..Self::new(RequestedId::New(None), client, terms, config)
        }
    }

    /// A new thread that starts with a copy of another's record.
    pub(crate) fn of_fork(
        params: &ThreadForkParams,
        source: ThreadId,
        client: ClientIdentity,
        terms: Terms,
        copied: CopiedRecord,
    ) -> Self {
        let CopiedRecord { history, records, answer, configured_provider } = copied;
        let turns = if params.exclude_turns { Vec::new() } else { history.turns.clone() };
        let stored = StoredSettings::of(&history);
        let config = ConfigRequest::of_fork(params, &stored, &configured_provider);
        let request = Self::new(RequestedId::New(None), client, terms, config);
        Self {
            record: RecordSource::Copy { records, answer: Box::new(answer) },
            turns,
            ephemeral: params.ephemeral,
            thread_source: params.thread_source.clone(),
            forked_from: Some(source),
            ..request.going_on(history, params.tool_set.clone())
        }
    }

    /// Adds the record's host choices, tools and environments.
    fn going_on(mut self, history: ThreadHistory, tool_set: Option<ToolSet>) -> Self {
        self.choices = HostChoices::of(&history).with_tool_set(tool_set.map(Box::new));
        let dynamic_tools = history.meta.as_ref().and_then(|meta| meta.dynamic_tools.clone());
        self.dynamic_tools = dynamic_tools.unwrap_or_default();
        self.environments = stored_choice(history.turn_context.as_ref()).map(EnvironmentChoice::Stored);
        self.history = history;
        self
    }

    /// If a host carried the thread's requests, its content is for that host only, unless the caller chooses otherwise.
    pub(crate) fn check_carrier(&self) -> Result<(), RuntimeError> {
        if !self.choices.is_delegated || self.terms.is_full() || self.config.chooses_provider() {
            return Ok(());
        }
        let problem = "is missing: a host carried this thread's model requests; pass it again, or modelProvider to go \
                       on without the host";
        Err(DelegationError::Unsupported { field: "delegation", problem: problem.to_owned() }.into())
    }
}

impl EnvironmentChoice {
    pub(crate) fn selections(&self) -> &[EnvironmentSelection] {
        match self {
            Self::Requested(selections) | Self::Stored(selections) => selections,
        }
    }
}
