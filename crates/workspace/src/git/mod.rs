//! Reads the state of a git repository from its files. Git itself is never run, because a repository's configuration
//! can make it start any program.

mod checkout;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use crate::marker::is_marker;
use crate::reader::Reader;
use protocol::GitInfo;

pub use checkout::GitCheckout;

/// Limit of files with one line.
const MAX_LINE_BYTES: u64 = 4 << 10;
const MAX_CONFIG_BYTES: u64 = 1 << 20;
const MAX_PACKED_REFS_BYTES: u64 = 32 << 20;
/// Limit of symbolic refs before a commit.
const MAX_REF_HOPS: usize = 5;

/// The nearest parent directory of `cwd`, or itself, with a repository or worktree. A `.git` in a folder that everyone
/// can write, or a sandbox's placeholder, does not count.
pub fn git_root(cwd: &Path) -> Option<PathBuf> {
    let cwd = fs::canonicalize(cwd).ok()?;
    cwd.ancestors().find(|dir| is_marker(&dir.join(".git"))).map(Path::to_owned)
}

/// The commit, branch and origin of the repository around `cwd`. None outside one. A worktree's files may be anywhere,
/// so the thread's read permissions decide.
pub fn git_info(cwd: &Path, reader: &Reader) -> Option<GitInfo> {
    let repository = Repository::at(&git_root(cwd)?, reader)?;
    let head = repository.head()?;
    let branch = match &head {
        Head::Name(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
        Head::Commit(_) => None,
    };
    Some(GitInfo { sha: repository.commit(head), branch, origin_url: repository.origin_url() })
}

struct Repository<'a> {
    reader: &'a Reader,
    /// This worktree's own folder.
    git_dir: PathBuf,
    /// The folder that all worktrees share: branches and configuration.
    common_dir: PathBuf,
}

/// What HEAD or a ref refers to: a commit or a branch.
enum Head {
    Commit(String),
    Name(String),
}

impl<'a> Repository<'a> {
    fn at(root: &Path, reader: &'a Reader) -> Option<Self> {
        let dot_git = root.join(".git");
        let git_dir = if dot_git.is_dir() {
            dot_git
        } else {
            root.join(line_of(&dot_git, reader)?.strip_prefix("gitdir:")?.trim_start())
        };
        let common_dir = match line_of(&git_dir.join("commondir"), reader) {
            Some(path) => git_dir.join(path),
            None => git_dir.clone(),
        };
        Some(Self { reader, git_dir, common_dir })
    }

    fn head(&self) -> Option<Head> {
        Head::parse(&line_of(&self.git_dir.join("HEAD"), self.reader)?)
    }

    fn commit(&self, mut head: Head) -> Option<String> {
        for _ in 0..MAX_REF_HOPS {
            match head {
                Head::Commit(sha) => return Some(sha),
                Head::Name(name) => head = self.resolve(&name)?,
            }
        }
        None
    }

    /// A loose ref takes precedence over a packed one.
    fn resolve(&self, name: &str) -> Option<Head> {
        let own = [&self.git_dir, &self.common_dir]
            .into_iter()
            .find_map(|dir| line_of(&dir.join(name), self.reader));
        match own {
            Some(line) => Head::parse(&line),
            None => self.packed(name).map(Head::Commit),
        }
    }

    fn packed(&self, name: &str) -> Option<String> {
        let file = self.reader.open(&self.common_dir.join("packed-refs")).ok()?.file;
        let mut packed = BufReader::new(file.take(MAX_PACKED_REFS_BYTES));
        let (mut line, mut goes_on) = (Vec::new(), false);
        loop {
            line.clear();
            if packed.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            // A line longer than any ref comes in parts, which are ignored.
            let is_part = std::mem::replace(&mut goes_on, !line.ends_with(b"\n"));
            let Ok(line) = std::str::from_utf8(&line) else { continue };
            if is_part {
                continue;
            }
            let line = line.trim_end_matches('\n');
            match line.split_once(' ') {
                Some((sha, found)) if found.trim_end() == name => return commit_id(sha),
                _ => {}
            }
        }
    }

    fn origin_url(&self) -> Option<String> {
        let bytes = self.reader.read_start(&self.common_dir.join("config"), MAX_CONFIG_BYTES).ok()?;
        let url = url_of_origin(&String::from_utf8_lossy(&bytes))?;
        let plain = url.len() as u64 <= MAX_LINE_BYTES && !url.chars().any(char::is_control);
        plain.then(|| without_credentials(&url)).filter(|url| !url.is_empty())
    }
}

impl Head {
    fn parse(line: &str) -> Option<Self> {
        match line.strip_prefix("ref:") {
            Some(name) => is_ref_name(name.trim()).then(|| Self::Name(name.trim().to_owned())),
            None => commit_id(line).map(Self::Commit),
        }
    }
}

/// The first line of a small file.
fn line_of(path: &Path, reader: &Reader) -> Option<String> {
    let bytes = reader.read_start(path, MAX_LINE_BYTES).ok()?;
    let line = String::from_utf8_lossy(&bytes).lines().next()?.trim_end().to_owned();
    (!line.is_empty()).then_some(line)
}

/// A ref becomes a path, so it must stay in `refs`. `.invalid` is a marker of newer ref storage for older programs.
fn is_ref_name(name: &str) -> bool {
    name.starts_with("refs/")
        && name != "refs/heads/.invalid"
        && !name.chars().any(|c| c.is_control() || c == '\\')
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// SHA-1 or SHA-256, in hexadecimal.
fn commit_id(text: &str) -> Option<String> {
    let valid = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| text.to_owned())
}

/// The first `url` of `[remote "origin"]` in git's configuration format. Includes are ignored.
fn url_of_origin(config: &str) -> Option<String> {
    let mut lines = config.lines();
    let mut in_origin = false;
    while let Some(line) = lines.next() {
        let mut line = line.trim_start();
        if let Some((is_origin, rest)) = section(line) {
            in_origin = is_origin;
            line = rest.trim_start();
        }
        if line.starts_with(['#', ';']) {
            continue;
        }
        let Some((key, first)) = line.split_once('=') else { continue };
        // Parsed for every key, because a value may continue on the next lines.
        let value = value(first, &mut lines);
        if in_origin && key.trim().eq_ignore_ascii_case("url") && !value.is_empty() {
            return Some(value);
        }
    }
    None
}

/// Whether a line starts the origin's section, and the text after the heading. None if it is no heading.
fn section(line: &str) -> Option<(bool, &str)> {
    let line = line.strip_prefix('[')?;
    let mut quoted = false;
    let mut escaped = false;
    let end = line.find(|c| {
        let ends = c == ']' && !quoted;
        if c == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = c == '\\' && !escaped;
        ends
    })?;
    let heading = &line[..end];
    let is_origin = match heading.split_once('"') {
        Some((name, sub)) => name.trim().eq_ignore_ascii_case("remote") && sub == "origin\"",
        None => heading.trim().eq_ignore_ascii_case("remote.origin"),
    };
    Some((is_origin, &line[end + 1..]))
}

/// A value without its quotes, escapes and comment. A backslash at the end joins the next line.
fn value<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> String {
    let mut value = String::new();
    let mut kept = 0;
    let mut quoted = false;
    let mut chars = first.trim_start().chars();
    loop {
        match chars.next() {
            None => break,
            Some('"') => quoted = !quoted,
            Some('#' | ';') if !quoted => break,
            Some('\\') => match chars.next() {
                None => match lines.next() {
                    Some(next) => chars = next.chars(),
                    None => break,
                },
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(other) => value.push(other),
            },
            Some(c) => value.push(c),
        }
        if quoted || !value.ends_with([' ', '\t']) {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

/// Removes possible secrets: passwords, user names in web addresses (often tokens), and queries.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `user@host:path` has no password; something with a colon before the `@` means to have one.
        return match url.rsplit_once('@') {
            Some((user, host)) if user.contains(':') && !user.contains('/') => {
                format!("{}@{host}", user.split(':').next().unwrap_or_default())
            }
            _ => url.to_owned(),
        };
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let host_end = rest.find('/').unwrap_or(rest.len());
    let at = match rest[..host_end].rfind('@') {
        Some(at) => Some(at),
        // A slash in an unescaped password.
        None if !has_plain_port(&rest[..host_end]) => rest.rfind('@'),
        None => None,
    };
    let Some(at) = at else { return format!("{scheme}://{rest}") };
    let (user, host) = (&rest[..at], &rest[at + 1..]);
    let named = ["ssh", "git+ssh", "ssh+git"].iter().any(|ssh| scheme.eq_ignore_ascii_case(ssh));
    match user.split(':').next() {
        Some(user) if named && !user.is_empty() => format!("{scheme}://{user}@{host}"),
        _ => format!("{scheme}://{host}"),
    }
}

/// Whether all that follows the host's colon, if there is one, is a port.
fn has_plain_port(host: &str) -> bool {
    let behind_address = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind_address.split_once(':').is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
