//! The rules of a thread: read from files when first needed, and added to by approvals.

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
    /// Of an administrator.
    required: Vec<PrefixRule>,
    /// Where rules go that a client adds.
    file: PathBuf,
    /// Unset until somebody asks.
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    rules: Arc<Rules>,
    /// Problems of the files, until a client can be notified.
    warnings: Vec<RuleWarning>,
}

impl RuleBook {
    pub(crate) fn new(folders: &[PathBuf], file: &Path) -> Self {
        let (folders, file) = (folders.to_owned(), file.to_owned());
        Self { folders, projects: Vec::new(), required: Vec::new(), file, read: Mutex::new(None) }
    }

    /// With the rules of projects and of an administrator, as they were when the thread was opened.
    pub(crate) fn with(self, projects: &[RuleFile], required: &[PrefixRule]) -> Self {
        Self { projects: projects.to_owned(), required: required.to_owned(), ..self }
    }

    /// The first caller's client is notified of problems of the files.
    pub(crate) async fn current(self: &Arc<Self>, sink: &Arc<dyn Sink>) -> Arc<Rules> {
        if self.lock().is_none() {
            let book = self.clone();
            // The work can only fail by a panic, and then the same happens below.
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

    /// Reads the files, unless that was done before.
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

    /// Commands that begin with these words are allowed from now on, in this thread.
    pub(crate) fn allow(&self, prefix: &[String]) {
        self.rules();
        let path = self.file.display().to_string();
        if let Some(read) = &mut *self.lock() {
            Arc::make_mut(&mut read.rules).add_prefix(prefix, &path);
        }
    }

    /// Commands that begin with these words are allowed from now on, and, if the file can be written, for good. Waits for
    /// the disk.
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
    sink.tell_later(ServerNotification::ConfigWarning(warning)).await;
}
