//! Login in a browser on this machine, with a redirect to a local port.

use std::collections::VecDeque;
use std::time::Duration;

use config::ChatgptTokens;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::AccountLoginError;
use crate::issuer::{CLIENT_ID, Issuer, Pkce, decoded, form, random};

/// The redirect ports that the default issuer allows.
const PORTS: [u16; 2] = [1455, 1457];
/// Time limit of the user.
const LIMIT: Duration = Duration::from_secs(600);
/// Time limit of the redirect request, which is short.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
const MAX_REQUEST: usize = 16 * 1024;
/// Limit of concurrent connections.
const AT_ONCE: usize = 32;
const CALLBACK: &str = "/auth/callback";
const SCOPE: &str = "openid profile email offline_access";

/// A pending login.
#[derive(Debug)]
pub struct BrowserLogin {
    issuer: Issuer,
    listener: TcpListener,
    redirect_uri: String,
    verifier: String,
    state: String,
    auth_url: String,
}

impl BrowserLogin {
    /// Opens the port, on this machine only. `workspace` is the required one, if any.
    pub async fn begin(
        issuer: Issuer,
        originator: &str,
        workspace: Option<&str>,
    ) -> Result<Self, AccountLoginError> {
        let listener = bind(&issuer).await?;
        let port =
            listener.local_addr().map_err(|error| AccountLoginError::NoPort(error.to_string()))?.port();
        let redirect_uri = format!("http://localhost:{port}{CALLBACK}");
        let (Pkce { verifier, challenge }, state) = (Pkce::new()?, random()?);
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", CLIENT_ID),
            ("redirect_uri", redirect_uri.as_str()),
            ("scope", SCOPE),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("id_token_add_organizations", "true"),
            ("codex_cli_simplified_flow", "true"),
            ("state", state.as_str()),
            ("originator", originator),
        ];
        pairs.extend(workspace.map(|workspace| ("allowed_workspace_id", workspace)));
        let auth_url = format!("{}/oauth/authorize?{}", issuer.base(), form(&pairs));
        Ok(Self { issuer, listener, redirect_uri, verifier, state, auth_url })
    }

    /// The page for the user to open.
    pub fn auth_url(&self) -> &str {
        &self.auth_url
    }

    /// Waits for the browser and returns the tokens, or the error.
    pub async fn finish(self) -> Result<ChatgptTokens, AccountLoginError> {
        tokio::time::timeout(LIMIT, self.wait()).await.unwrap_or(Err(AccountLoginError::TimedOut))
    }

    async fn wait(&self) -> Result<ChatgptTokens, AccountLoginError> {
        let (mut stream, returned) = self.browser().await?;
        let result = match returned {
            Returned::Code(code) => self.issuer.exchange(&code, &self.redirect_uri, &self.verifier).await,
            Returned::Refused(reason) => Err(AccountLoginError::Refused(reason)),
        };
        match &result {
            Ok(_) => respond(&mut stream, "200 OK", "You are logged in. You can close this page.").await,
            Err(_) => {
                respond(&mut stream, "400 Bad Request", "The login failed. Go back and try again.").await;
            }
        }
        result
    }

    /// The redirected browser. Other connections are rejected without effect; silent ones are dropped for new ones.
    async fn browser(&self) -> Result<(TcpStream, Returned), AccountLoginError> {
        let (mut connections, mut oldest) = (JoinSet::new(), VecDeque::new());
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let accepted = accepted.map_err(|error| AccountLoginError::NoPort(error.to_string()))?;
                    if connections.len() >= AT_ONCE
                        && let Some(connection) = oldest.pop_front()
                    {
                        AbortHandle::abort(&connection);
                    }
                    oldest.push_back(connections.spawn(listen(accepted.0, self.state.clone())));
                }
                Some(ended) = connections.join_next() => {
                    oldest.retain(|connection: &AbortHandle| !connection.is_finished());
                    if let Ok(Some(found)) = ended {
                        return Ok(found);
                    }
                }
            }
        }
    }
}

/// The redirect in a connection's request, if it is one.
async fn listen(mut stream: TcpStream, state: String) -> Option<(TcpStream, Returned)> {
    let request = tokio::time::timeout(REQUEST_LIMIT, read_target(&mut stream)).await.ok().flatten();
    match request.as_deref().and_then(|target| Returned::of(target, &state)) {
        Some(returned) => Some((stream, returned)),
        None => {
            respond(&mut stream, "404 Not Found", "There is nothing here.").await;
            None
        }
    }
}

async fn bind(issuer: &Issuer) -> Result<TcpListener, AccountLoginError> {
    if !issuer.is_default() {
        return TcpListener::bind(("127.0.0.1", 0))
            .await
            .map_err(|error| AccountLoginError::NoPort(error.to_string()));
    }
    let mut problem = String::new();
    for port in PORTS {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = format!("{port}: {error}"),
        }
    }
    Err(AccountLoginError::NoPort(problem))
}

/// The result in the redirect.
enum Returned {
    Code(String),
    Refused(String),
}

impl Returned {
    /// None for a request that is not about this login.
    fn of(target: &str, state: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        let value = |wanted: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == wanted).map(|(_, value)| decoded(value))
        };
        if path != CALLBACK || value("state")? != state {
            return None;
        }
        match (value("code"), value("error")) {
            (Some(code), _) if !code.is_empty() => Some(Self::Code(code)),
            (_, error) => {
                let words = error.unwrap_or_else(|| "no code came back".to_owned());
                let plain = |letter: &char| letter.is_ascii_alphanumeric() || " _-.".contains(*letter);
                Some(Self::Refused(words.chars().filter(plain).take(200).collect()))
            }
        }
    }
}

/// The target of a `GET` request.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 2048];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || request.len() + read > MAX_REQUEST {
            return None;
        }
        request.extend_from_slice(buffer.get(..read)?);
    }
    let text = String::from_utf8(request).ok()?;
    let mut words = text.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

async fn respond(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Oarlock</title><p>{text}</p>");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        page.len()
    );
    // The browser may have gone.
    let _ = stream.write_all(format!("{head}{page}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silent_connections_do_not_keep_out_the_browser() {
        let issuer = Issuer::new("http://127.0.0.1:9", None, http::Client::new(None));
        let login = BrowserLogin::begin(issuer, "test", None).await.expect("a port");
        let address = login.listener.local_addr().expect("an address");
        let request = format!("GET {CALLBACK}?state={}&error=access_denied HTTP/1.1\r\n\r\n", login.state);
        let waiting = tokio::spawn(login.finish());
        let mut silent = Vec::new();
        for _ in 0..4 * AT_ONCE {
            silent.push(TcpStream::connect(address).await.expect("connected"));
        }
        let mut browser = TcpStream::connect(address).await.expect("connected");
        browser.write_all(request.as_bytes()).await.expect("written");
        let ended = tokio::time::timeout(REQUEST_LIMIT / 2, waiting).await.expect("nobody is waited for");
        let refused = ended.expect("it ends").expect_err("access was denied");
        assert!(refused.to_string().contains("access_denied"), "{refused}");
    }
}
