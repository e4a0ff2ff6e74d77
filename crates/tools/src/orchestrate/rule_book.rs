//! The rules of a thread: read from files when first needed, and added to by approvals.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policy::{RuleFile, Rules, Warning};
use protocol::{ConfigWarningNotification, ServerNotification};

use crate::Sink;

#[derive(Debug)]
pub(crate) struct RuleBook {
    folders: Vec<PathBuf>,
    projects: Vec<RuleFile>,
    /// Where rules go that a client adds.
    file: PathBuf,
    /// Unset until somebody asks.
    read: Mutex<Option<Read>>,
}

#[derive(Debug)]
struct Read {
    rules: Arc<Rules>,
    /// What is wrong with the files, until somebody can be told.
    warnings: Vec<Warning>,
}

impl RuleBook {
    pub(crate) fn new(folders: &[PathBuf], file: &Path) -> Self {
        let (folders, file) = (folders.to_owned(), file.to_owned());
        Self { folders, projects: Vec::new(), file, read: Mutex::new(None) }
    }

    /// With the rules of projects, as they were when the thread was opened.
    pub(crate) fn with_projects(self, projects: &[RuleFile]) -> Self {
        Self { projects: projects.to_owned(), ..self }
    }

    /// What is wrong with the files is told whoever comes first.
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
            tell(sink, warning.to_string(), path).await;
        }
        rules
    }

    /// Reads the files, unless that was done before.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let mut read = self.lock();
        let read = read.get_or_insert_with(|| {
            let (rules, warnings) = Rules::load_all(&self.folders, &self.projects);
            Read { rules: Arc::new(rules), warnings }
        });
        read.rules.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Read>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands that begin with these words are allowed from now on, and, if the file can be written, for good.
    pub(crate) async fn allow(self: &Arc<Self>, prefix: Vec<String>, sink: &Arc<dyn Sink>) {
        self.current(sink).await;
        if let Some(read) = &mut *self.lock() {
            Arc::make_mut(&mut read.rules).add_prefix(&prefix, &self.file.display().to_string());
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
