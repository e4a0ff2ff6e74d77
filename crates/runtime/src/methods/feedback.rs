//! `feedback/upload`: there is no feedback service, so the feedback becomes a folder that the user can review and send.
//! Possible secrets are removed.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use config::CredentialFilter;
use protocol::{FeedbackUploadParams, FeedbackUploadResponse, ThreadId};
use serde_json::json;
use support::blocking;
use workspace::{READ_LIMIT, Reader, StepCount, within_steps};

use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::runtime::Runtime;
use driver::{ClockExt, IdMaker, check_thread_id};

/// Limit of what is copied from each file.
const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_EXTRA_FILES: usize = 16;

impl Runtime {
    pub async fn save_feedback(
        &self,
        params: FeedbackUploadParams,
    ) -> Result<FeedbackUploadResponse, RuntimeError> {
        let loader = self.loader().clone();
        let config = blocking(move || ConfigRequest::default().load(&loader)).await??;
        if !config.feedback_enabled {
            return Err(RuntimeError::NoFeedback);
        }
        let thread = params.thread_id.as_ref().map(check_thread_id).transpose()?;
        let extra = params.extra_log_files.clone().unwrap_or_default();
        if extra.len() > MAX_EXTRA_FILES {
            let problem = format!("must not name more than {MAX_EXTRA_FILES} files");
            return Err(RuntimeError::Field { field: "extraLogFiles", problem });
        }
        let mut files: Vec<PathBuf> = Vec::new();
        if params.include_logs {
            files.extend(self.record_of(thread.clone()).await?);
            files.extend(extra.into_iter().map(PathBuf::from));
        }
        let stamp = self.state.clock.stamp();
        let number = IdMaker::random(stamp);
        let bundle = Bundle { folder: self.loader().home().state().join("feedback").join(&number) };
        let about = json!({
            "classification": clean(&params.classification),
            "reason": params.reason.as_deref().map(clean),
            "threadId": thread,
            "version": self.state.version,
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "atMs": stamp.now_ms,
        });
        let path = bundle.folder.to_string_lossy().into_owned();
        let save = move || {
            let folder = bundle.folder.clone();
            let saved = within_steps(&folder, READ_LIMIT, move |steps| bundle.save(&about, &files, steps));
            saved.unwrap_or_else(|error| Err(error.into_io()))
        };
        let saved = blocking(save).await?;
        saved.map_err(|error| RuntimeError::FeedbackWrite(error.to_string()))?;
        let thread_id = thread.unwrap_or_else(|| ThreadId::new(format!("no-active-thread-{number}")));
        Ok(FeedbackUploadResponse { thread_id, path: Some(path) })
    }

    async fn record_of(&self, thread: Option<ThreadId>) -> Result<Option<PathBuf>, RuntimeError> {
        let Some(id) = thread else { return Ok(None) };
        let row = self.state.on_disk(move |store| store.summary(&id)).await?;
        // An empty thread has no record.
        Ok(row.ok().map(|row| row.path))
    }
}

/// A folder that only the user can read.
struct Bundle {
    folder: PathBuf,
}

impl Bundle {
    fn save(&self, about: &serde_json::Value, files: &[PathBuf], steps: &StepCount) -> io::Result<()> {
        DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        self.create("feedback.json")?.write_all(format!("{about:#}\n").as_bytes())?;
        for (at, path) in files.iter().enumerate() {
            let name =
                path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
            let target = self.create(&format!("{at}-{name}"))?;
            if let Err(error) = copy_clean(path, &mut BufWriter::new(&target), steps) {
                // An unreadable file must not lose the rest.
                writeln!(&target, "(not read: {error})")?;
            }
        }
        Ok(())
    }

    fn create(&self, name: &str) -> io::Result<std::fs::File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.folder.join(name))
    }
}

fn copy_clean(path: &Path, target: &mut impl Write, steps: &StepCount) -> io::Result<()> {
    let opened = Reader::default().open(path).map_err(workspace::ReadError::into_io)?;
    let mut lines = BufReader::new(opened.file.take(MAX_FILE_BYTES));
    let (mut line, mut filter) = (Vec::new(), CredentialFilter::default());
    loop {
        steps.step()?;
        line.clear();
        // A whole line of any length: a secret is only recognised as a whole.
        if lines.read_until(b'\n', &mut line)? == 0 {
            return target.flush();
        }
        target.write_all(filter.line(&String::from_utf8_lossy(&line)).as_bytes())?;
    }
}

/// The text without possible secrets.
fn clean(text: &str) -> String {
    let mut filter = CredentialFilter::default();
    text.split_inclusive('\n').map(|line| filter.line(line)).collect()
}
