//! The tokens of logins: one file each in the state folder, for its owner alone. Commands cannot read that folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use config::{Home, SecretText, write_secret_file};
use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::tokens::{ClientAuth, OAuthClient, TokenSet};

const FOLDER: &str = "mcp-logins";
const DIGEST_BYTES: usize = 8;

/// A login to one server at one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredLogin {
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    pub(super) client: OAuthClient,
    pub(super) tokens: TokenSet,
}

/// As it is written down.
#[derive(Serialize, Deserialize)]
struct LoginFile {
    server: String,
    url: String,
    resource: String,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    client_auth: ClientAuth,
    access_token: String,
    refresh_token: Option<String>,
    expires_at_ms: Option<u64>,
    scope: Option<String>,
}

/// Where the login to one server is kept. Another address under the same name has another file.
#[derive(Debug, Clone)]
pub(super) struct LoginPlace {
    home: Home,
    server: String,
    url: String,
}

impl LoginPlace {
    pub(super) fn new(home: &Home, server: &str, url: &str) -> Self {
        Self { home: home.clone(), server: server.to_owned(), url: url.to_owned() }
    }

    pub(super) fn file(&self) -> PathBuf {
        let hash = digest(&SHA256, self.url.as_bytes());
        let hex = HEXLOWER.encode(&hash.as_ref()[..DIGEST_BYTES]);
        self.home.state().join(FOLDER).join(format!("{}-{hex}.json", self.server))
    }

    /// A file that is missing, damaged or of another server means: not logged in.
    pub(super) fn load(&self) -> Option<StoredLogin> {
        let stored: LoginFile = serde_json::from_slice(&fs::read(self.file()).ok()?).ok()?;
        if stored.server != self.server || stored.url != self.url {
            return None;
        }
        let secret = |text: Option<String>| text.map(SecretText::new);
        Some(StoredLogin {
            resource: stored.resource,
            token_endpoint: stored.token_endpoint,
            client: OAuthClient {
                id: stored.client_id,
                secret: secret(stored.client_secret),
                method: stored.client_auth,
            },
            tokens: TokenSet {
                access: SecretText::new(stored.access_token),
                refresh: secret(stored.refresh_token),
                expires_at: stored.expires_at_ms,
                scope: stored.scope,
            },
        })
    }

    pub(super) fn save(&self, login: &StoredLogin) -> Result<(), String> {
        let revealed = |text: &Option<SecretText>| text.as_ref().map(|text| text.reveal().to_owned());
        let stored = LoginFile {
            server: self.server.clone(),
            url: self.url.clone(),
            resource: login.resource.clone(),
            token_endpoint: login.token_endpoint.clone(),
            client_id: login.client.id.clone(),
            client_secret: revealed(&login.client.secret),
            client_auth: login.client.method,
            access_token: login.tokens.access.reveal().to_owned(),
            refresh_token: revealed(&login.tokens.refresh),
            expires_at_ms: login.tokens.expires_at,
            scope: login.tokens.scope.clone(),
        };
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| error.to_string())?;
        write_secret_file(&self.home, &self.file(), &text).map_err(|error| error.to_string())
    }

    /// Returns whether there was a login.
    pub(super) fn remove(&self) -> io::Result<bool> {
        match fs::remove_file(self.file()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Held by one process at a time while tokens are renewed: many servers take a refresh token only once. `None`
    /// where locks are not supported.
    pub(super) fn lock(&self) -> Option<File> {
        let path = self.file().with_extension("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
        file.lock().ok()?;
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_login_is_kept_for_its_owner_and_its_address() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::at(dir.path().join("home"));
        let place = LoginPlace::new(&home, "s", "https://h/mcp");
        let login = StoredLogin {
            resource: "https://h/mcp".to_owned(),
            token_endpoint: "https://h/token".to_owned(),
            client: OAuthClient {
                id: "c".to_owned(),
                secret: Some(SecretText::new("s3cret")),
                method: ClientAuth::ClientSecretBasic,
            },
            tokens: TokenSet {
                access: SecretText::new("s3cret-access"),
                refresh: Some(SecretText::new("s3cret-refresh")),
                expires_at: Some(5),
                scope: None,
            },
        };
        assert_eq!(place.load(), None);
        place.save(&login).expect("saved");
        assert_eq!(place.load(), Some(login.clone()));
        assert!(!format!("{login:?}").contains("s3cret"));
        let mode = |path: PathBuf| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(place.file()), 0o600);
        assert_eq!(mode(home.state().join(FOLDER)), 0o700);
        for other in
            [LoginPlace::new(&home, "s", "https://other/mcp"), LoginPlace::new(&home, "t", "https://h/mcp")]
        {
            assert_eq!(other.load(), None);
            fs::copy(place.file(), other.file()).expect("copied");
            assert_eq!(other.load(), None, "a file under another name is not taken");
        }
        assert!(place.remove().expect("removed"));
        assert!(!place.remove().expect("nothing to remove"));
    }
}
