//! The rules of a thread: read from files when first needed, and added to by approvals.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use policy::Rules;
use protocol::{ConfigWarningNotification, ServerNotification};
use tokio::sync::Mutex;

use crate::Sink;

#[derive(Debug)]
pub(crate) struct RuleBook {
    folders: Vec<PathBuf>,
    /// Where rules go that a client adds.
    file: PathBuf,
    /// Unset until somebody asks.
    rules: Mutex<Option<Arc<Rules>>>,
}

impl RuleBook {
    pub(crate) fn new(folders: &[PathBuf], file: &Path) -> Self {
        Self { folders: folders.to_owned(), file: file.to_owned(), rules: Mutex::new(None) }
    }

    /// What is wrong with the files is told whoever comes first.
    pub(crate) async fn current(&self, sink: &Arc<dyn Sink>) -> Arc<Rules> {
        let mut rules = self.rules.lock().await;
        if let Some(rules) = &*rules {
            return rules.clone();
        }
        let folders = self.folders.clone();
        // The work can only fail by a panic, and then no rule allows anything.
        let (found, warnings) =
            tokio::task::spawn_blocking(move || Rules::load(&folders)).await.unwrap_or_default();
        let found = Arc::new(found);
        *rules = Some(found.clone());
        drop(rules);
        for warning in warnings {
            let path = Some(warning.file.display().to_string());
            tell(sink, warning.to_string(), path).await;
        }
        found
    }

    /// Commands that begin with these words are allowed from now on, and, if the file can be written, for good.
    pub(crate) async fn allow(&self, prefix: Vec<String>, sink: &Arc<dyn Sink>) {
        let known = self.current(sink).await;
        {
            let mut rules = self.rules.lock().await;
            let rules = rules.get_or_insert(known);
            Arc::make_mut(rules).add_prefix(&prefix, &self.file.display().to_string());
        }
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || policy::append_allow_prefix(&file, &prefix)).await;
        let problem = match written {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let summary = format!("a rule could not be saved and holds for this session only: {problem}");
        tell(sink, summary, Some(self.file.display().to_string())).await;
    }
}

async fn tell(sink: &Arc<dyn Sink>, summary: String, path: Option<String>) {
    tracing::warn!(path = path.as_deref(), "{summary}");
    let warning = ConfigWarningNotification { summary, details: None, path, range: None };
    sink.tell_later(ServerNotification::ConfigWarning(warning)).await;
}
