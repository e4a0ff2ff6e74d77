//! The port on this machine that a browser comes back to. Only the request with the right `state` counts.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::LoginError;
use super::url::{pairs, shown};

const PATH: &str = "/callback";
const MAX_HEAD: usize = 16 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);
const WRITING: Duration = Duration::from_secs(1);
/// Connections that are read at a time. The oldest makes room for another one: a browser asks at once.
const AT_ONCE: usize = 32;

#[derive(Debug)]
pub(super) struct Redirect {
    listener: TcpListener,
    pub(super) uri: String,
}

/// The request that is accepted.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) state: String,
    pub(super) issuer: Option<String>,
    /// The authorization server said that it names itself when a browser comes back.
    pub(super) names_itself: bool,
}

impl Redirect {
    pub(super) async fn open(port: Option<u16>) -> Result<Self, LoginError> {
        let failed = |error: std::io::Error| LoginError::Listener(error.to_string());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, uri: format!("http://127.0.0.1:{port}{PATH}") })
    }

    /// The code that the browser brings. Requests that are not the right one are answered and change nothing.
    pub(super) async fn wait(self, expected: Expected) -> Result<String, LoginError> {
        let (found, mut outcome) = mpsc::channel(1);
        let (mut connections, mut oldest) = (JoinSet::new(), VecDeque::new());
        loop {
            tokio::select! {
                Some(outcome) = outcome.recv() => return outcome,
                Some(_) = connections.join_next() => {
                    oldest.retain(|connection: &AbortHandle| !connection.is_finished());
                }
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else { continue };
                    if connections.len() >= AT_ONCE
                        && let Some(connection) = oldest.pop_front()
                    {
                        AbortHandle::abort(&connection);
                    }
                    let (expected, found) = (expected.clone(), found.clone());
                    let answering = async move {
                        let _ = tokio::time::timeout(PATIENCE, answer(stream, &expected, &found)).await;
                    };
                    oldest.push_back(connections.spawn(answering));
                }
            }
        }
    }
}

async fn answer(
    mut stream: TcpStream,
    expected: &Expected,
    found: &mpsc::Sender<Result<String, LoginError>>,
) {
    let Some(target) = read_target(&mut stream).await else {
        return write_page(&mut stream, "400 Bad Request", "This is not a request that can be read.").await;
    };
    match outcome_of(&target, expected) {
        None => write_page(&mut stream, "404 Not Found", "There is no login that this belongs to.").await,
        Some(outcome) => {
            let text = match &outcome {
                Ok(_) => "The answer has arrived. You can close this page.",
                Err(_) => "The login did not succeed. Your client shows why; you can close this page.",
            };
            // Written before the outcome is known, because the port then closes for all connections.
            let _ = tokio::time::timeout(WRITING, write_page(&mut stream, "200 OK", text)).await;
            let _ = found.send(outcome).await;
        }
    }
}

/// The target of a GET request: path and query.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(&piece[..count]);
        if head.len() > MAX_HEAD {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let target = (words.next() == Some("GET")).then(|| words.next())??;
    Some(target.to_owned())
}

/// `None` for what is not an answer to this login.
fn outcome_of(target: &str, expected: &Expected) -> Option<Result<String, LoginError>> {
    let (path, query) = target.split_once('?')?;
    let query = pairs(query);
    // A value that comes twice is none: who reads the first and who reads the last must not differ.
    let value = |key: &str| {
        let mut all = query.iter().filter(|(name, _)| name == key).map(|(_, value)| value.as_str());
        all.next().filter(|_| all.next().is_none())
    };
    let same = |one: &str, other: &str| {
        digest(&SHA256, one.as_bytes()).as_ref() == digest(&SHA256, other.as_bytes()).as_ref()
    };
    if path != PATH || !value("state").is_some_and(|state| same(state, &expected.state)) {
        return None;
    }
    let is_named = query.iter().any(|(name, _)| name == "iss");
    if (is_named || expected.names_itself) && value("iss") != expected.issuer.as_deref() {
        return Some(Err(LoginError::OtherIssuer));
    }
    if let Some(error) = value("error") {
        let why = value("error_description").map(shown).filter(|why| !why.is_empty());
        let error = shown(error);
        return Some(Err(LoginError::Refused(
            why.map_or_else(|| error.clone(), |why| format!("{error}: {why}")),
        )));
    }
    match value("code").filter(|code| !code.is_empty()) {
        Some(code) => Some(Ok(code.to_owned())),
        None => Some(Err(LoginError::Refused("it sent the browser back without a code".to_owned()))),
    }
}

/// The page never repeats what a request said.
async fn write_page(stream: &mut TcpStream, status: &str, text: &str) {
    let body = format!("<!doctype html><meta charset=utf-8><title>Oarlock</title><p>{text}</p>\n");
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(names_itself: bool) -> Expected {
        Expected { state: "S".to_owned(), issuer: Some("https://as".to_owned()), names_itself }
    }

    #[test]
    fn only_the_right_request_is_an_answer() {
        for target in [
            "/callback",
            "/callback?code=x",
            "/callback?code=x&state=wrong",
            "/callback?code=x&state=S&state=S",
            "/other?code=x&state=S",
            "/?state=S",
        ] {
            assert_eq!(outcome_of(target, &expected(false)), None, "{target}");
        }
        assert_eq!(outcome_of("/callback?state=S&code=a%2Bb", &expected(false)), Some(Ok("a+b".to_owned())));
    }

    #[test]
    fn an_answer_of_another_issuer_is_refused() {
        let mixed = Some(Err(LoginError::OtherIssuer));
        assert_eq!(outcome_of("/callback?state=S&code=x&iss=https://evil", &expected(false)), mixed);
        assert_eq!(outcome_of("/callback?state=S&code=x", &expected(true)), mixed);
        let right = "/callback?state=S&code=x&iss=https%3A%2F%2Fas";
        assert_eq!(outcome_of(right, &expected(true)), Some(Ok("x".to_owned())));
    }

    #[test]
    fn errors_are_one_plain_line() {
        let target = "/callback?state=S&error=access_denied&error_description=%3Cscript%3E%0d%0aX";
        let said = LoginError::Refused("access_denied: <script> X".to_owned());
        assert_eq!(outcome_of(target, &expected(false)), Some(Err(said)));
        assert!(matches!(
            outcome_of("/callback?state=S", &expected(false)),
            Some(Err(LoginError::Refused(_)))
        ));
    }

    #[tokio::test]
    async fn strangers_are_answered_and_the_login_goes_on() {
        let redirect = Redirect::open(None).await.expect("a port");
        let address = redirect.uri.trim_start_matches("http://").trim_end_matches(PATH).to_owned();
        let waiting = tokio::spawn(redirect.wait(expected(false)));
        let say = |text: String| {
            let address = address.clone();
            async move {
                let mut stream = TcpStream::connect(address).await.expect("connected");
                stream.write_all(text.as_bytes()).await.expect("written");
                let mut page = String::new();
                let _ = stream.read_to_string(&mut page).await;
                page
            }
        };
        let _silent = TcpStream::connect(&address).await.expect("connected");
        assert!(say("garbage\r\n\r\n".to_owned()).await.starts_with("HTTP/1.1 400"));
        assert!(
            say("GET /callback?code=evil&state=no HTTP/1.1\r\n\r\n".to_owned())
                .await
                .starts_with("HTTP/1.1 404")
        );
        say(format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000))).await;
        let page = say("GET /callback?state=S&error=%3Cscript%3E HTTP/1.1\r\n\r\n".to_owned()).await;
        assert!(page.starts_with("HTTP/1.1 200") && !page.contains("script"), "{page}");
        let outcome = waiting.await.expect("it ends");
        assert_eq!(outcome, Err(LoginError::Refused("<script>".to_owned())));
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_out_the_browser() {
        let redirect = Redirect::open(None).await.expect("a port");
        let address = redirect.uri.trim_start_matches("http://").trim_end_matches(PATH).to_owned();
        let waiting = tokio::spawn(redirect.wait(expected(false)));
        let mut silent = Vec::new();
        for _ in 0..4 * AT_ONCE {
            silent.push(TcpStream::connect(&address).await.expect("connected"));
        }
        let mut browser = TcpStream::connect(&address).await.expect("connected");
        browser.write_all(b"GET /callback?state=S&code=x HTTP/1.1\r\n\r\n").await.expect("written");
        let outcome = tokio::time::timeout(PATIENCE / 2, waiting).await.expect("nobody is waited for");
        assert_eq!(outcome.expect("it ends"), Ok("x".to_owned()));
    }
}
