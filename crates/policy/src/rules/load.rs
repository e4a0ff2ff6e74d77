//! Rule files on disk.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use support::read_plain;

use super::{PrefixRule, RuleDecision, Rules};

/// Far more than any real rule file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The file for rules from approvals, in the folder of rules.
const OF_APPROVALS: &str = "default.rules";

/// A rule file or folder that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleWarning {
    pub file: PathBuf,
    pub message: String,
    pub cause: WarningCause,
}

/// Why something in a rule file has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningCause {
    /// The file cannot be used, and then no rule allows anything.
    Unusable,
    /// Only the allowing rules of this file are ignored, since the user has not reviewed it.
    Unreviewed,
    /// Rules about hosts are not enforced.
    Network,
}

impl fmt::Display for RuleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            WarningCause::Unreviewed | WarningCause::Network => f.write_str(&self.message),
            WarningCause::Unusable => write!(f, "rules are not used to allow anything: {}", self.message),
        }
    }
}

/// A rule file of a trusted project, read by the caller that knows whether it was reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    pub path: PathBuf,
    /// Its text, or why it cannot be read.
    pub text: Result<String, String>,
    /// Set while the user has not reviewed the file: how to do so. Until then its rules allow nothing.
    pub accept: Option<String>,
}

impl Rules {
    /// Reads `rules/*.rules` of each folder, sorted by name, lowest precedence first. If one of them cannot be used, no
    /// rule allows anything: what it forbids is unknown. Rules that ask or forbid stay.
    pub fn load(folders: &[PathBuf]) -> (Self, Vec<RuleWarning>) {
        let mut rules = Self::default();
        let mut warnings = Vec::new();
        for folder in folders {
            match rule_files(&folder.join("rules")) {
                Ok(files) => {
                    for file in files {
                        match read(&file) {
                            Ok(found) => {
                                warnings.extend(found.network_warning(&file));
                                rules.merge(found);
                            }
                            Err(message) => {
                                warnings.push(RuleWarning { file, message, cause: WarningCause::Unusable });
                            }
                        }
                    }
                }
                Err(warning) => warnings.push(warning),
            }
        }
        if warnings.iter().any(|warning| warning.cause == WarningCause::Unusable) {
            rules.allow_nothing();
        }
        (rules, warnings)
    }

    /// Like [`Rules::load`], with the rules of projects and of an administrator, which cannot be removed. Allowing
    /// rules in unreviewed files are ignored, because they remove the sandbox.
    pub fn load_all(
        folders: &[PathBuf],
        projects: &[RuleFile],
        required: &[PrefixRule],
    ) -> (Self, Vec<RuleWarning>) {
        let (mut rules, mut warnings) = Self::load(folders);
        for RuleFile { path, text, accept } in projects {
            let name = path.display().to_string();
            let parsed =
                text.clone().and_then(|text| Self::parse(&name, &text).map_err(|error| error.to_string()));
            warnings.extend(parsed.iter().filter_map(|found| found.network_warning(path)));
            let (message, cause) = match (parsed, accept) {
                (Ok(found), None) => {
                    rules.merge(found);
                    continue;
                }
                (Ok(mut found), Some(accept)) => {
                    let is_strict = !found.allow_nothing();
                    rules.merge(found);
                    if is_strict {
                        continue;
                    }
                    let what = "allows commands to run without the sandbox; these rules are not used.";
                    (format!("{name} {what} {accept}"), WarningCause::Unreviewed)
                }
                (Err(message), _) => (message, WarningCause::Unusable),
            };
            warnings.push(RuleWarning { file: path.clone(), message, cause });
        }
        if warnings.iter().any(|warning| warning.cause == WarningCause::Unusable) {
            rules.allow_nothing();
        }
        rules.prefixes.extend_from_slice(required);
        (rules, warnings)
    }

    /// Removes allowing rules. Returns whether there were any.
    fn allow_nothing(&mut self) -> bool {
        let before = self.prefixes.len();
        self.prefixes.retain(|rule| rule.decision > RuleDecision::Allow);
        self.prefixes.len() < before
    }

    /// Warns that such a rule protects nothing.
    fn network_warning(&self, file: &Path) -> Option<RuleWarning> {
        let first = self.networks.first()?;
        let message = format!(
            "{first}: network_rule has no effect, since there is no managed network here; what commands reach is for \
             sandbox_mode and sandbox_workspace_write.network_access to say"
        );
        Some(RuleWarning { file: file.to_owned(), message, cause: WarningCause::Network })
    }
}

fn rule_files(folder: &Path) -> Result<Vec<PathBuf>, RuleWarning> {
    let failed = |error: &std::io::Error| RuleWarning {
        file: folder.to_owned(),
        message: format!("{}: {error}", folder.display()),
        cause: WarningCause::Unusable,
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
    let text = match read_plain(file, MAX_FILE_BYTES) {
        Err(error) if matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::FileTooLarge) => {
            return Err(format!("{name}: not a file of at most {MAX_FILE_BYTES} bytes"));
        }
        read => read.map_err(|error| format!("{name}: {error}"))?,
    };
    let text = String::from_utf8(text).map_err(|error| format!("{name}: {error}"))?;
    let mut rules = Rules::parse(&name, &text).map_err(|error| error.to_string())?;
    let by_approval = file.file_name().is_some_and(|name| name == OF_APPROVALS);
    rules.prefixes.iter_mut().for_each(|rule| rule.by_approval = by_approval);
    Ok(rules)
}
