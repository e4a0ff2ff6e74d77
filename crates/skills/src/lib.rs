//! Owns skills: instructions in folders, one `SKILL.md` each. They are found on disk, listed for the model, and added
//! to its input when the user mentions one. Also reads the user's custom prompts. Must not know turns of threads or the
//! server.

mod bound;
mod cache;
mod front_matter;
mod invoke;
mod list;
mod mentions;
mod of_plugins;
mod openai_yaml;
mod prompts;
mod roots;
mod scan;
mod watch;
mod watches;
mod yaml;

pub use cache::{NotifySkillsChanged, SkillChoices, Skills};
pub use invoke::Invoked;
pub use mentions::may_mention;
pub use prompts::{CustomPrompt, custom_prompts};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use protocol::{SkillDependencies, SkillErrorInfo, SkillInterface, SkillScope};

/// A skill is a folder with this file in it.
const FILE: &str = "SKILL.md";

/// Limit of the file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// One skill, as its files describe it.
#[derive(Debug, Clone, PartialEq)]
struct Skill {
    name: String,
    description: String,
    short_description: Option<String>,
    interface: Option<SkillInterface>,
    dependencies: Option<SkillDependencies>,
    /// The resolved path of its `SKILL.md`.
    path: PathBuf,
    scope: SkillScope,
    /// The model may use it without a mention by the user.
    is_implicit: bool,
    stamp: FileStamp,
    /// Its project, if it belongs to one.
    project: Option<Arc<roots::SkillProject>>,
}

/// Detects a changed file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// The result of a scan.
#[derive(Debug, Default)]
struct ScanResult {
    skills: Vec<Skill>,
    errors: Vec<SkillErrorInfo>,
    /// The folders that were read.
    folders: Vec<PathBuf>,
}

impl ScanResult {
    fn fail(&mut self, path: &Path, message: String) {
        let path = path.to_string_lossy().into_owned();
        self.errors.push(SkillErrorInfo { path, message });
    }

    /// Whether clients would see another list, or the model another text.
    fn differs(&self, other: &Self) -> bool {
        self.skills != other.skills || self.errors != other.errors
    }
}

/// The text on one line: each run of white space and control characters becomes one space.
fn one_line(text: &str) -> String {
    let is_gap = |letter: char| letter.is_whitespace() || letter.is_control();
    text.split(is_gap).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
