//! Errors, worded to follow `failed to load configuration: `.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{TextPosition, TextRange};
use workspace::ReadError;

use crate::SettingWarning;

/// Cheap to clone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConfigError {
    /// A file that is not TOML, or has a value of the wrong kind.
    #[error("{}:{}:{}: {message}", path.display(), range.start.line, range.start.column)]
    Invalid { path: PathBuf, range: TextRange, message: String },
    /// A value of the command line or of a request.
    #[error("{message}")]
    InvalidFlag { message: String },
    /// Values that are valid individually, but not together.
    #[error("{message}")]
    InvalidValue { message: String },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: Arc<io::Error> },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: Arc<io::Error> },
    #[error("{key} names {}, which is empty", path.display())]
    BlankFile { key: &'static str, path: PathBuf },
    #[error(
        "config profile `{name}` not found; {}add a [profiles.{name}] table or choose another profile",
        meant(near)
    )]
    UnknownProfile { name: String, near: Option<String> },
    #[error(
        "model provider `{id}` not found; {}add a [model_providers.{id}] table or choose another provider",
        meant(near)
    )]
    UnknownProvider { id: String, near: Option<String> },
    #[error("model provider `ollama-chat` is no longer supported; set model_provider = \"ollama\"")]
    RemovedProvider,
    #[error("model_providers.{0} takes the name of a built-in provider; give yours another id")]
    ReservedProvider(String),
    #[error("model_providers.{0} has no base_url; say to which address its prompts and its key go")]
    NoAddress(String),
    #[error(
        "environment variable `{variable}` is not set; provider `{provider}` needs it.{}",
        instructions.as_deref().map(|text| format!(" {text}")).unwrap_or_default()
    )]
    MissingEnv { variable: String, provider: String, instructions: Option<String> },
    /// A value that the administrator's requirements forbid.
    #[error("{field} may not be `{candidate}`: {} allows only {allowed}", file.display())]
    NotAllowed { field: &'static str, candidate: String, allowed: String, file: PathBuf },
    #[error("{variable} names {}, which {problem}", path.display())]
    Home { variable: &'static str, path: PathBuf, problem: String },
    #[error("no home folder is known; set HOME or OARLOCK_HOME")]
    NoHome,
}

/// The start of a sentence that continues with other advice.
fn meant(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!("did you mean `{near}`? Otherwise ")).unwrap_or_default()
}

impl ConfigError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source: Arc::new(source) }
    }

    /// A bounded read that failed.
    pub(crate) fn unreadable(error: ReadError) -> Self {
        let path = error.path.clone();
        Self::read(&path, error.into_io())
    }

    pub fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::InvalidValue { message: message.into() }
    }

    /// A parser error with its position.
    pub(crate) fn in_file(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        Self::invalid(path, text, error.span().unwrap_or(0..0), one_line(error.message()))
    }

    /// A value at `span` of its file's text.
    pub(crate) fn invalid(path: &Path, text: &str, span: Range<usize>, message: String) -> Self {
        // A range ends with its last character.
        let inside = text.get(span.clone()).and_then(|part| part.char_indices().next_back());
        let last = inside.map_or(span.end, |(at, _)| span.start + at);
        let range = TextRange { start: position(text, span.start), end: position(text, last) };
        Self::Invalid { path: path.to_owned(), range, message }
    }

    /// The error as a warning, if the work continues without the file.
    pub fn to_warning(&self, summary: impl Into<String>) -> SettingWarning {
        let (path, range) = match self {
            Self::Invalid { path, range, .. } => (Some(path.clone()), Some(range.clone())),
            Self::Read { path, .. } | Self::BlankFile { path, .. } => (Some(path.clone()), None),
            _ => (None, None),
        };
        SettingWarning { summary: summary.into(), details: Some(self.to_string()), path, range }
    }
}

fn position(text: &str, offset: usize) -> TextPosition {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    TextPosition {
        line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u64,
        column: 1 + before[line_start..].chars().count() as u64,
    }
}

pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
