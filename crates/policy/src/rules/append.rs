//! Rules that approvals leave behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::RuleDecision;
use super::network::{NetworkRuleProtocol, host_name};

/// Writes a rule that allows commands that begin with these words. False when the file has it already.
pub fn append_allow_prefix(file: &Path, prefix: &[String]) -> io::Result<bool> {
    if prefix.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a rule without words would allow every command",
        ));
    }
    let words: Vec<_> = prefix.iter().map(|word| literal(word)).collect();
    append_line(file, &format!("prefix_rule(pattern=[{}], decision=\"allow\")", words.join(", ")))
}

/// Writes a rule about one host. False when the file has it already.
pub fn append_network_rule(
    file: &Path,
    host: &str,
    protocol: NetworkRuleProtocol,
    decision: RuleDecision,
) -> io::Result<bool> {
    let host = host_name(host).map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))?;
    let decision = if decision == RuleDecision::Forbidden { "deny".to_owned() } else { decision.to_string() };
    let host = literal(&host);
    append_line(file, &format!("network_rule(host={host}, protocol=\"{protocol}\", decision=\"{decision}\")"))
}

/// Under a lock, so that two processes neither write one line twice nor mix two.
fn append_line(file: &Path, line: &str) -> io::Result<bool> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut rules = OpenOptions::new().read(true).append(true).create(true).open(file)?;
    rules.lock()?;
    let mut text = String::new();
    rules.rewind()?;
    rules.read_to_string(&mut text)?;
    let known = text.lines().any(|known| known == line);
    if !known {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        write_whole(&mut rules, &format!("{gap}{line}\n"))?;
    }
    rules.unlock()?;
    Ok(!known)
}

/// A line that is cut off would make the whole file useless, so the old length is restored.
fn write_whole(rules: &mut File, addition: &str) -> io::Result<()> {
    let length = rules.metadata()?.len();
    let written = rules.write_all(addition.as_bytes()).and_then(|()| rules.sync_data());
    written.inspect_err(|_| {
        // The first error is the one to tell.
        let _ = rules.set_len(length);
    })
}

/// A string that rule files read back as the same text.
fn literal(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
