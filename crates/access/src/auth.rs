//! Who may open a websocket: the bearer token that an upgrade must carry.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::ClientRole;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use support::Clock;

use crate::jwt::{JwtError, JwtRules};
use crate::tokens::{LiveTokens, TokenHolder};

/// A shorter secret could be guessed.
const SHORTEST_SECRET: usize = 32;
const LONGEST_SECRET: u64 = 64 << 10;
const DEFAULT_CLOCK_SKEW_SECONDS: u64 = 30;

/// The kinds of `--ws-auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WsAuthMode {
    CapabilityToken,
    SignedBearerToken,
}

/// The flags as they came.
#[derive(Debug, Clone, Default)]
pub struct AuthFlags {
    /// `--ws-auth`
    pub mode: Option<WsAuthMode>,
    /// `--ws-token-file`
    pub token_file: Option<PathBuf>,
    /// `--ws-shared-secret-file`
    pub shared_secret_file: Option<PathBuf>,
    /// `--ws-issuer`
    pub issuer: Option<String>,
    /// `--ws-audience`
    pub audience: Option<String>,
    /// `--ws-max-clock-skew-seconds`
    pub max_clock_skew_seconds: Option<u64>,
}

/// Why the flags cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error("{0} needs --ws-auth")]
    NoMode(&'static str),
    #[error("{flag} does not go with --ws-auth {mode}")]
    Mixed { flag: &'static str, mode: &'static str },
    #[error("--ws-auth {mode} needs {flag}")]
    Missing { flag: &'static str, mode: &'static str },
    #[error("{flag} must be an absolute path, not {}", .path.display())]
    RelativePath { flag: &'static str, path: PathBuf },
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} can be written by others, who could add a token; use `chmod go-w` on it", .0.display())]
    WritableByOthers(PathBuf),
    #[error("{} belongs to another user, who could change it; make a copy of your own", .0.display())]
    ForeignFile(PathBuf),
    #[error("{} holds no token", .0.display())]
    EmptyToken(PathBuf),
    #[error("{} must hold a secret of at least {SHORTEST_SECRET} bytes", .0.display())]
    ShortSecret(PathBuf),
    #[error("{}: line {line}: {problem}", .path.display())]
    BadToken { path: PathBuf, line: usize, problem: String },
    #[error("the system gives no random numbers")]
    NoRandomness,
}

const TOKEN_FILE: &str = "--ws-token-file";
const SECRET_FILE: &str = "--ws-shared-secret-file";

impl AuthFlags {
    /// Checks that the flags go together and reads the files they name.
    pub fn load(&self, clock: Arc<dyn Clock>) -> Result<WsAuth, AuthError> {
        let set: [(&'static str, bool); 5] = [
            (TOKEN_FILE, self.token_file.is_some()),
            (SECRET_FILE, self.shared_secret_file.is_some()),
            ("--ws-issuer", self.issuer.is_some()),
            ("--ws-audience", self.audience.is_some()),
            ("--ws-max-clock-skew-seconds", self.max_clock_skew_seconds.is_some()),
        ];
        let mut set = set.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag);
        match self.mode {
            None => set.next().map_or(Ok(WsAuth::default()), |flag| Err(AuthError::NoMode(flag))),
            Some(WsAuthMode::CapabilityToken) => {
                let mode = "capability-token";
                if let Some(flag) = set.find(|flag| *flag != TOKEN_FILE) {
                    return Err(AuthError::Mixed { flag, mode });
                }
                let path = required(self.token_file.as_deref(), TOKEN_FILE, mode)?;
                WsAuth::capability_token(read_trimmed(path)?.as_slice(), path)
            }
            Some(WsAuthMode::SignedBearerToken) => {
                let mode = "signed-bearer-token";
                if let Some(flag) = set.find(|flag| *flag == TOKEN_FILE) {
                    return Err(AuthError::Mixed { flag, mode });
                }
                let path = required(self.shared_secret_file.as_deref(), SECRET_FILE, mode)?;
                let secret = read_trimmed(path)?;
                if secret.len() < SHORTEST_SECRET {
                    return Err(AuthError::ShortSecret(path.to_owned()));
                }
                let rules = JwtRules {
                    key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
                    issuer: self.issuer.clone(),
                    audience: self.audience.clone(),
                    max_clock_skew_seconds: self.max_clock_skew_seconds.unwrap_or(DEFAULT_CLOCK_SKEW_SECONDS),
                };
                let rule = Rule::SignedBearer { rules, clock };
                Ok(WsAuth { rule, file: Some(path.to_owned()) })
            }
        }
    }
}

fn required<'a>(
    path: Option<&'a Path>,
    flag: &'static str,
    mode: &'static str,
) -> Result<&'a Path, AuthError> {
    let path = path.ok_or(AuthError::Missing { flag, mode })?;
    if path.is_absolute() { Ok(path) } else { Err(AuthError::RelativePath { flag, path: path.to_owned() }) }
}

/// Whoever can write the file decides who is let in.
pub(crate) fn check_owner(path: &Path) -> Result<(), AuthError> {
    // A file without metadata cannot be read either: the reader reports it. A pipe of a shell has no other writers.
    let Some(metadata) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Ok(()) };
    let own = rustix::process::geteuid().as_raw();
    match metadata.uid() == own || metadata.uid() == 0 {
        false => Err(AuthError::ForeignFile(path.to_owned())),
        true if metadata.mode() & 0o022 != 0 => Err(AuthError::WritableByOthers(path.to_owned())),
        true => Ok(()),
    }
}

fn read_trimmed(path: &Path) -> Result<Vec<u8>, AuthError> {
    check_owner(path)?;
    let unreadable = |source| AuthError::Unreadable { path: path.to_owned(), source };
    // It may be a pipe of a shell, `<(command)`.
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(LONGEST_SECRET + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.len() as u64 <= LONGEST_SECRET {
        true => Ok(bytes.trim_ascii().to_vec()),
        false => Err(unreadable(io::Error::other(format!("it has more than {LONGEST_SECRET} bytes")))),
    }
}

/// Who may open a websocket; by default anybody who reaches the port. Secrets are kept as keys only.
#[derive(Debug, Default)]
pub struct WsAuth {
    rule: Rule,
    /// Where the token or the secret was read from.
    file: Option<PathBuf>,
}

#[derive(Debug, Default)]
enum Rule {
    #[default]
    Anybody,
    /// Everybody who knows the token. Compared as tags under a key of this process, in constant time.
    CapabilityToken { key: hmac::Key, tag: hmac::Tag },
    /// Everybody who holds a token that was signed with the shared secret.
    SignedBearer { rules: JwtRules, clock: Arc<dyn Clock> },
    /// Everybody who knows one of the tokens of a host.
    Tokens(LiveTokens),
}

impl WsAuth {
    fn capability_token(token: &[u8], path: &Path) -> Result<Self, AuthError> {
        if token.is_empty() {
            return Err(AuthError::EmptyToken(path.to_owned()));
        }
        let mut secret = [0; 32];
        SystemRandom::new().fill(&mut secret).map_err(|_| AuthError::NoRandomness)?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let tag = hmac::sign(&key, token);
        Ok(Self { rule: Rule::CapabilityToken { key, tag }, file: Some(path.to_owned()) })
    }

    /// Those who know this token, for fuzzing: it is in no file, and its key is no secret.
    pub fn of_token(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[0; 32]);
        let tag = hmac::sign(&key, token.as_bytes());
        Self { rule: Rule::CapabilityToken { key, tag }, file: None }
    }

    /// Those whose token is in the file, each with a role.
    pub fn tokens(path: &Path) -> Result<Self, AuthError> {
        Ok(Self { rule: Rule::Tokens(LiveTokens::open(path)?), file: Some(path.to_owned()) })
    }

    /// Whether clients are told apart by the tokens of a host, which may change while it runs.
    pub fn has_tokens(&self) -> bool {
        matches!(self.rule, Rule::Tokens(_))
    }

    /// Reads the tokens of a host anew, and names those who lose what they had.
    pub fn refresh(&self) -> Result<Vec<String>, AuthError> {
        match &self.rule {
            Rule::Tokens(tokens) => tokens.refresh(),
            Rule::Anybody | Rule::CapabilityToken { .. } | Rule::SignedBearer { .. } => Ok(Vec::new()),
        }
    }

    /// Whether somebody who was let in still would be.
    pub fn still_has(&self, name: Option<&str>, role: ClientRole) -> bool {
        match (&self.rule, name) {
            (Rule::Tokens(tokens), Some(name)) => tokens.has(name, role),
            _ => true,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.rule, Rule::Anybody)
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Checks the `Authorization` header of an upgrade, and says whose token it is where that is known. `Err` is the text
    /// of the refusal.
    pub fn check(&self, authorization: Option<&[u8]>) -> Result<Option<TokenHolder>, &'static str> {
        if self.is_open() {
            return Ok(None);
        }
        let header = authorization.ok_or("missing websocket bearer token")?;
        let token = bearer(header).ok_or("invalid authorization header")?;
        match &self.rule {
            Rule::Anybody => Ok(None),
            Rule::CapabilityToken { key, tag } => hmac::verify(key, token.as_bytes(), tag.as_ref())
                .map(|()| None)
                .map_err(|_| "invalid websocket bearer token"),
            Rule::Tokens(table) => table.holder(token).map(Some).ok_or("invalid websocket bearer token"),
            Rule::SignedBearer { rules, clock } => {
                let now = u64::try_from(clock.now_ms() / 1_000).unwrap_or(0);
                rules.check(token, now).map(|()| None).map_err(JwtError::text)
            }
        }
    }
}

fn bearer(header: &[u8]) -> Option<&str> {
    let header = str::from_utf8(header).ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use support::SystemClock;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        fs::write(&path, text).expect("a file");
        (folder, path)
    }

    #[test]
    fn a_file_that_others_can_write_lets_nobody_in() {
        use std::os::unix::fs::PermissionsExt;

        let (_folder, path) = file("open sesame");
        let flags = AuthFlags {
            mode: Some(WsAuthMode::CapabilityToken),
            token_file: Some(path.clone()),
            ..AuthFlags::default()
        };
        for (mode, is_closed) in [(0o600, true), (0o644, true), (0o660, false), (0o606, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            let refused = flags.load(Arc::new(SystemClock)).err().map(|error| error.to_string());
            assert_eq!(refused.is_none(), is_closed, "{mode:o}: {refused:?}");
            assert!(
                is_closed || WsAuth::tokens(&path).is_err_and(|error| error.to_string().contains("chmod"))
            );
        }
    }

    #[test]
    fn a_token_opens_and_nothing_else_does() {
        let (_folder, path) = file("  open sesame\n");
        let flags = AuthFlags {
            mode: Some(WsAuthMode::CapabilityToken),
            token_file: Some(path),
            ..AuthFlags::default()
        };
        let auth = flags.load(Arc::new(SystemClock)).expect("rules");
        let check = |header: Option<&str>| auth.check(header.map(str::as_bytes));
        assert_eq!(check(Some("Bearer open sesame")), Ok(None));
        assert_eq!(check(Some("bEARER  open sesame ")), Ok(None));
        assert_eq!(check(None), Err("missing websocket bearer token"));
        assert_eq!(check(Some("Basic open sesame")), Err("invalid authorization header"));
        assert_eq!(check(Some("Bearer ")), Err("invalid authorization header"));
        assert_eq!(check(Some("Bearer open")), Err("invalid websocket bearer token"));
        assert_eq!(auth.check(Some(b"Bearer \xff")), Err("invalid authorization header"));
        assert!(!format!("{auth:?}").contains("sesame"));
    }

    #[test]
    fn flags_must_go_together() {
        let (_folder, path) = file("0123456789012345678901234567890");
        let (_other, empty) = file(" \n");
        let endless = Path::new("/dev/zero");
        let set = |mode: Option<WsAuthMode>, token: Option<&Path>, secret: Option<&Path>| AuthFlags {
            mode,
            token_file: token.map(Path::to_owned),
            shared_secret_file: secret.map(Path::to_owned),
            ..AuthFlags::default()
        };
        let (token, signed) = (Some(WsAuthMode::CapabilityToken), Some(WsAuthMode::SignedBearerToken));
        for (flags, expected) in [
            (set(None, Some(&path), None), "--ws-token-file needs --ws-auth"),
            (set(token, None, None), "--ws-auth capability-token needs --ws-token-file"),
            (
                set(token, Some(&path), Some(&path)),
                "--ws-shared-secret-file does not go with --ws-auth capability-token",
            ),
            (
                set(signed, Some(&path), Some(&path)),
                "--ws-token-file does not go with --ws-auth signed-bearer-token",
            ),
            (set(signed, None, None), "--ws-auth signed-bearer-token needs --ws-shared-secret-file"),
            (set(token, Some(Path::new("a")), None), "--ws-token-file must be an absolute path, not a"),
            (set(token, Some(&empty), None), "holds no token"),
            (set(token, Some(endless), None), "/dev/zero cannot be read: it has more than 65536 bytes"),
            (set(signed, None, Some(&path)), "must hold a secret of at least 32 bytes"),
        ] {
            let said = flags.load(Arc::new(SystemClock)).map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.ends_with(expected)), "{said:?}");
        }
        assert!(AuthFlags::default().load(Arc::new(SystemClock)).is_ok_and(|auth| auth.is_open()));
    }
}
