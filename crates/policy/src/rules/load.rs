//! Rule files on disk.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::{RuleDecision, Rules};

/// Nobody writes rules by the megabyte.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where approvals leave rules behind, in the folder of rules.
const OF_APPROVALS: &str = "default.rules";

/// A rule file, or a folder of them, that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub file: PathBuf,
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rules are not used to allow anything: {}", self.message)
    }
}

impl Rules {
    /// Reads `rules/*.rules` of each folder, sorted by name, lowest precedence first. If one of them cannot be used,
    /// no rule allows anything: what its author meant to forbid is unknown. Rules that ask or forbid stay.
    pub fn load(folders: &[PathBuf]) -> (Self, Vec<Warning>) {
        let mut rules = Self::default();
        let mut warnings = Vec::new();
        for folder in folders {
            match rule_files(&folder.join("rules")) {
                Ok(files) => {
                    for file in files {
                        match read(&file) {
                            Ok(found) => rules.merge(found),
                            Err(message) => warnings.push(Warning { file, message }),
                        }
                    }
                }
                Err(warning) => warnings.push(warning),
            }
        }
        if !warnings.is_empty() {
            rules.prefixes.retain(|rule| rule.decision > RuleDecision::Allow);
            rules.networks.retain(|rule| rule.decision > RuleDecision::Allow);
        }
        (rules, warnings)
    }
}

fn rule_files(folder: &Path) -> Result<Vec<PathBuf>, Warning> {
    let failed = |error: &std::io::Error| Warning {
        file: folder.to_owned(),
        message: format!("{}: {error}", folder.display()),
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_some_and(|extension| extension == "rules") && !path.is_dir() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<Rules, String> {
    let name = file.display().to_string();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let metadata = fs::metadata(file).map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return Err(format!("{name}: not a file of at most {MAX_FILE_BYTES} bytes"));
    }
    let text = fs::read_to_string(file).map_err(failed)?;
    let mut rules = Rules::parse(&name, &text).map_err(|error| error.to_string())?;
    let by_approval = file.file_name().is_some_and(|name| name == OF_APPROVALS);
    rules.prefixes.iter_mut().for_each(|rule| rule.by_approval = by_approval);
    Ok(rules)
}
