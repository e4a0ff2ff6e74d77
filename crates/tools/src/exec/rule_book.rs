//! The rules of a thread: read from files on first use, and extended by approvals.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use policy::{PrefixRule, RuleFile, RuleWarning, Rules};
use protocol::{ConfigWarningNotification, ServerNotification};

use crate::Sink;

#[derive(Debug)]
pub(crate) struct RuleBook {
    folders: Vec<PathBuf>,
    projects: Vec<RuleFile>,
    /// The administrator's rules.
    required: Vec<PrefixRule>,
    /// The file for rules that a client adds.
    file: PathBuf,
    /// Unset until first use.
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    rules: Arc<Rules>,
    /// Problems of the files, until a client is notified.
    warnings: Vec<RuleWarning>,
}

impl RuleBook {
    pub(crate) fn new(folders: &[PathBuf], file: &Path) -> Self {
        let (folders, file) = (folders.to_owned(), file.to_owned());
        Self { folders, projects: Vec::new(), required: Vec::new(), file, read: Mutex::new(None) }
    }

    /// Adds the rules of projects and of the administrator, as they were when the thread was opened.
    pub(crate) fn with(self, projects: &[RuleFile], required: &[PrefixRule]) -> Self {
        Self { projects: projects.to_owned(), required: required.to_owned(), ..self }
    }

    /// The current rules. Notifies the first caller's client of problems in the files.
    pub(crate) async fn current(self: &Arc<Self>, sink: &Arc<dyn Sink>) -> Arc<Rules> {
        if self.lock().is_none() {
            let book = self.clone();
            // A panic would be repeated and reported below.
            let _ = tokio::task::spawn_blocking(move || book.rules()).await;
        }
        let rules = self.rules();
        let warnings = self.lock().as_mut().map(|read| std::mem::take(&mut read.warnings));
        for warning in warnings.unwrap_or_default() {
            let path = Some(warning.file.display().to_string());
            notify_warning(sink, warning.to_string(), path).await;
        }
        rules
    }

    /// Reads the files on first use.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let mut read = self.lock();
        let read = read.get_or_insert_with(|| {
            let (rules, warnings) = Rules::load_all(&self.folders, &self.projects, &self.required);
            Read { rules: Arc::new(rules), warnings }
        });
        read.rules.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Read>> {
        self.read.lock()
    }

    /// Allows commands with this prefix from now on, in this thread.
    pub(crate) fn allow(&self, prefix: &[String]) {
        self.rules();
        let path = self.file.display().to_string();
        if let Some(read) = &mut *self.lock() {
            Arc::make_mut(&mut read.rules).add_prefix(prefix, &path);
        }
    }

    /// Allows commands with this prefix from now on and, if the file is writable, permanently. Blocking.
    pub(crate) fn save(&self, prefix: &[String]) -> Result<(), ConfigWarningNotification> {
        self.allow(prefix);
        let path = self.file.display().to_string();
        policy::append_allow_prefix(&self.file, prefix).map(drop).map_err(|problem| {
            let summary = format!("a rule could not be saved and holds for this session only: {problem}");
            tracing::warn!(path, "{summary}");
            ConfigWarningNotification { summary, details: None, path: Some(path), range: None }
        })
    }
}

async fn notify_warning(sink: &Arc<dyn Sink>, summary: String, path: Option<String>) {
    tracing::warn!(path = path.as_deref(), "{summary}");
    let warning = ConfigWarningNotification { summary, details: None, path, range: None };
    sink.notify_later(ServerNotification::ConfigWarning(warning)).await;
}
