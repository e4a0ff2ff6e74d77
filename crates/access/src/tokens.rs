//! The tokens of a host: a file with one line each, a name, roles and a hash. The tokens themselves are in no file.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use parking_lot::RwLock;
use protocol::ClientRole;
use ring::digest::{SHA256, digest};
use support::read_plain;

use crate::auth::{AuthError, check_owner};

/// The longest file of tokens that is read: some ten thousand lines.
const MAX_BYTES: u64 = 1 << 20;

/// The person or program behind a connection, by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    pub name: String,
    pub role: ClientRole,
}

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
struct KnownToken {
    holder: TokenHolder,
    hash: Vec<u8>,
}

/// All tokens that open a websocket.
#[derive(Debug)]
struct TokenTable(Vec<KnownToken>);

impl TokenTable {
    /// Lines are `NAME ROLE[,ROLE] sha256:HEX`; empty ones and those that begin with `#` are passed over.
    fn read(path: &Path) -> Result<Self, AuthError> {
        check_owner(path)?;
        let text = read_plain(path, MAX_BYTES)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text")))
            .map_err(|source| AuthError::Unreadable { path: path.to_owned(), source })?;
        let mut known = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let token = token(line).map_err(|problem| AuthError::BadToken {
                path: path.to_owned(),
                line: number,
                problem,
            })?;
            if known.iter().any(|other: &KnownToken| other.holder.name == token.holder.name) {
                let problem = format!("the name {} is there twice", token.holder.name);
                return Err(AuthError::BadToken { path: PathBuf::from(path), line: number, problem });
            }
            if known.iter().any(|other: &KnownToken| other.hash == token.hash) {
                let problem = "another line has the same token; give each name its own".to_owned();
                return Err(AuthError::BadToken { path: PathBuf::from(path), line: number, problem });
            }
            known.push(token);
        }
        match known.is_empty() {
            true => Err(AuthError::EmptyToken(path.to_owned())),
            false => Ok(Self(known)),
        }
    }

    /// The holder of this token. The hash of a guess says nothing about the hashes that are known, so comparing them may take
    /// as long as it takes.
    fn holder(&self, token: &str) -> Option<TokenHolder> {
        let hash = digest(&SHA256, token.as_bytes());
        self.0.iter().find(|known| known.hash == hash.as_ref()).map(|known| known.holder.clone())
    }
}

/// The tokens of a file, as the file says now.
#[derive(Debug)]
pub(crate) struct LiveTokens {
    path: PathBuf,
    /// With what the file looked like when they were read.
    read: RwLock<(TokenTable, Option<TokenFileStamp>)>,
}

/// By which a changed file is told from an unchanged one: its number, length and times.
type TokenFileStamp = (u64, u64, (i64, i64), (i64, i64));

fn stamp(path: &Path) -> Option<TokenFileStamp> {
    let found = path.metadata().ok()?;
    let (modified, changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
    Some((found.ino(), found.len(), modified, changed))
}

impl LiveTokens {
    pub(crate) fn open(path: &Path) -> Result<Self, AuthError> {
        // Before it is read: a change in between is seen the next time.
        let stamp = stamp(path);
        let read = RwLock::new((TokenTable::read(path)?, stamp));
        Ok(Self { path: path.to_owned(), read })
    }

    pub(crate) fn holder(&self, token: &str) -> Option<TokenHolder> {
        self.read.read().0.holder(token)
    }

    pub(crate) fn has(&self, name: &str, role: ClientRole) -> bool {
        self.read.read().0.0.iter().any(|known| known.holder.name == name && known.holder.role == role)
    }

    /// Reads the file anew if it has changed, and names those whose token or role is another now, or none. A file that
    /// cannot be used changes nothing.
    pub(crate) fn refresh(&self) -> Result<Vec<String>, AuthError> {
        let now = stamp(&self.path);
        if now == self.read.read().1 {
            return Ok(Vec::new());
        }
        // Also when it cannot be used: it is reported once.
        self.read.write().1 = now;
        let table = TokenTable::read(&self.path)?;
        let mut read = self.read.write();
        let gone = read.0.0.iter().filter(|known| !table.0.contains(known));
        let gone = gone.map(|known| known.holder.name.clone()).collect();
        read.0 = table;
        Ok(gone)
    }
}

fn token(line: &str) -> Result<KnownToken, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(roles), Some(hash), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected NAME ROLES sha256:HEX".to_owned());
    };
    if name.contains(':') {
        return Err(format!("{name}: a name has no colon"));
    }
    let mut role = None;
    for word in roles.split(',') {
        let given = ClientRole::parse(word)
            .ok_or_else(|| format!("{word} is no role; there are viewer, approver, operator and admin"))?;
        role = role.max(Some(given));
    }
    let hex = hash.strip_prefix("sha256:").ok_or("the hash begins with sha256:")?;
    let hash = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).map_err(|error| format!("the hash: {error}"))?;
    if hash.len() != 32 {
        return Err("the hash has 64 hexadecimal digits".to_owned());
    }
    let holder = TokenHolder { name: name.to_owned(), role: role.unwrap_or(ClientRole::Viewer) };
    Ok(KnownToken { holder, hash })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn table(text: &str) -> Result<TokenTable, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        fs::write(&path, text).expect("a file");
        TokenTable::read(&path)
            .map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn a_token_is_known_by_its_hash_and_has_the_highest_of_its_roles() {
        // sha256 of `open sesame`.
        let hash = HEXLOWER_PERMISSIVE.encode(digest(&SHA256, b"open sesame").as_ref());
        let table = table(&format!("# people\n\nana viewer,approver sha256:{hash}\n")).expect("a table");
        let ana = TokenHolder { name: "ana".to_owned(), role: ClientRole::Approver };
        assert_eq!(table.holder("open sesame"), Some(ana));
        assert_eq!(table.holder("open"), None);
    }

    #[test]
    fn a_changed_file_counts_at_once_and_a_broken_one_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        let line = |name: &str, role: &str, token: &str| {
            let hash = HEXLOWER_PERMISSIVE.encode(digest(&SHA256, token.as_bytes()).as_ref());
            format!("{name} {role} sha256:{hash}\n")
        };
        let both = line("ana", "viewer", "a") + &line("bo", "operator", "b");
        fs::write(&path, both + &line("cy", "viewer", "c")).expect("written");
        let tokens = LiveTokens::open(&path).expect("tokens");
        let refresh = || tokens.refresh().map_err(|error| error.to_string());
        assert_eq!(refresh(), Ok(vec![]));
        // One is gone, one has another role, one another token.
        fs::write(&path, line("ana", "admin", "a") + &line("bo", "operator", "new")).expect("written");
        assert_eq!(refresh(), Ok(["ana", "bo", "cy"].map(str::to_owned).to_vec()));
        let roles = ["a", "b", "new", "c"].map(|token| tokens.holder(token).map(|holder| holder.role));
        assert_eq!(roles, [Some(ClientRole::Admin), None, Some(ClientRole::Operator), None]);
        fs::write(&path, "no line\n").expect("written");
        assert!(refresh().is_err());
        assert_eq!(refresh(), Ok(vec![]), "it is reported once");
        assert!(tokens.holder("new").is_some());
        fs::remove_file(&path).expect("removed");
        assert!(refresh().is_err());
        fs::write(&path, line("bo", "operator", "new")).expect("written");
        assert_eq!(refresh(), Ok(vec!["ana".to_owned()]));
    }

    #[test]
    fn a_bad_line_is_named() {
        let hash = "ab".repeat(32);
        for (text, expected) in [
            ("ana".to_owned(), "FILE: line 1: expected NAME ROLES sha256:HEX"),
            (format!("ana boss sha256:{hash}"), "FILE: line 1: boss is no role"),
            (format!("a:b viewer sha256:{hash}"), "FILE: line 1: a:b: a name has no colon"),
            ("ana viewer sha256:abcd".to_owned(), "FILE: line 1: the hash has 64"),
            (
                format!("a viewer sha256:{hash}\na viewer sha256:{hash}"),
                "FILE: line 2: the name a is there twice",
            ),
            (
                format!("a viewer sha256:{hash}\nb admin sha256:{hash}"),
                "FILE: line 2: another line has the same token",
            ),
            (String::new(), "FILE holds no token"),
        ] {
            let problem = table(&text).err().unwrap_or_default();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
    #[test]
    fn what_is_no_short_regular_file_is_refused_at_once_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, mode, 0).expect("made");
        fs::write(at("long"), vec![b'#'; 10_000_000]).expect("written");
        fs::write(at("bytes"), [0xff, 0xfe]).expect("written");
        std::os::unix::fs::symlink("/dev/zero", at("link")).expect("linked");
        let no_file = "it is not a regular file";
        for (path, problem) in [
            (at("pipe"), no_file),
            (PathBuf::from("/dev/zero"), no_file),
            (at("link"), no_file),
            (at("long"), "it has more than the 1048576 bytes that are read"),
            (at("bytes"), "it is not text"),
        ] {
            let said = TokenTable::read(&path).map_err(|error| error.to_string());
            let expected = format!("{} cannot be read: {problem}", path.display());
            assert_eq!(said.err(), Some(expected));
        }
    }
}
