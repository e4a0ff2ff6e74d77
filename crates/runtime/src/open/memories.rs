//! Memories when a thread is opened: the folder of its notes, and the pipeline run that starts.

use std::sync::Arc;

use config::ResolvedConfig;
use delegation::HostChoices;
use journal::{Store, ThreadHistory};
use memories::{MemoryFolder, MemoryRun};
use model::{Metadata, ModelTransport};
use protocol::{SessionMeta, ThreadId};

use crate::state::RuntimeState;
use driver::ThreadSettings;

const FEATURE: &str = "memories";

/// `disabled` in the record of a thread that leaves no notes, even while the feature is off.
pub(crate) fn memory_mode(config: &ResolvedConfig) -> Option<String> {
    (!config.memories.generate).then(|| "disabled".to_owned())
}

/// The folder of the notes for threads like this one. Notes go only to the provider, and with a host only to the host,
/// that the original messages went to. `None` while the feature is off.
pub(crate) fn folder_of(
    config: &ResolvedConfig,
    settings: &ThreadSettings,
    originator: &str,
) -> Option<MemoryFolder> {
    if !config.features.enabled(FEATURE) {
        return None;
    }
    let provider = &settings.model_provider;
    Some(match is_hosted(&settings.host) {
        true => MemoryFolder::of(&config.home, &format!("{originator}\n{provider}")),
        false => MemoryFolder::of(&config.home, provider),
    })
}

/// Records that a thread leaves no notes, if it is configured so. Blocking.
pub(crate) fn opt_out(config: &ResolvedConfig, settings: &ThreadSettings, originator: &str, id: &ThreadId) {
    let folder = folder_of(config, settings, originator).filter(|_| !config.memories.generate);
    if let Some(Err(error)) = folder.map(|folder| folder.opt_out(id)) {
        tracing::warn!(%error, "the choice of a thread to leave no notes could not be stored");
    }
}

/// The requesting thread, as far as a run needs it.
pub(crate) struct MemoryAsker<'a> {
    pub(crate) config: &'a ResolvedConfig,
    pub(crate) settings: &'a ThreadSettings,
    pub(crate) meta: &'a SessionMeta,
    pub(crate) store: &'a Arc<Store>,
    pub(crate) transport: &'a Arc<dyn ModelTransport>,
}

/// Starts making memories in the background, for a root thread with a record while the feature is on.
pub(crate) fn begin(state: &RuntimeState, asker: &MemoryAsker<'_>) {
    let MemoryAsker { config, settings, meta, store, transport } = asker;
    let Some(folder) = folder_of(config, settings, &meta.originator).filter(|_| config.memories.generate)
    else {
        return;
    };
    let (hosted, originator) = (is_hosted(&settings.host), meta.originator.clone());
    let may_read = move |history: &ThreadHistory| {
        let theirs = history.meta.as_ref().map(|meta| &meta.originator);
        is_hosted(&HostChoices::of(history)) == hosted && (!hosted || theirs == Some(&originator))
    };
    state.memories.begin(MemoryRun {
        folder,
        store: (*store).clone(),
        transport: (*transport).clone(),
        metadata: Metadata::first(meta.thread_id.clone(), state.new_turn_id()),
        options: config.memories.clone(),
        provider: settings.model_provider.clone(),
        model: settings.model.clone(),
        takes_schema: settings.host.capabilities().is_none_or(|capabilities| capabilities.json_schema_output),
        may_read: Box::new(may_read),
        now_ms: state.now_ms(),
    });
}

/// A host carries the requests, or runs the provider.
fn is_hosted(choices: &HostChoices) -> bool {
    choices.is_delegated || choices.is_bridged
}
