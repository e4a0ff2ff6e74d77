//! Model requests with a token that a command of the user prints.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::{AuthCommand, SecretText};
use futures_util::StreamExt;
use futures_util::stream;
use model::{EventStream, FailureClass, ModelFailure, ModelTransport, PreparedRequest};
use parking_lot::Mutex;
use sandbox::{Limits, Order, RunOptions};
use serde_json::Value;
use support::Clock;

use crate::error::RuntimeError;
use crate::step::tool_settings::variables;

const UNAUTHORIZED: u16 = 401;
/// Tokens are short; longer output is an error.
const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// Renewed this long before it expires, so that it stays valid for its request.
const MARGIN: Duration = Duration::from_secs(30);

/// Runs a provider's command, and caches its token while it is valid.
#[derive(Debug)]
pub(crate) struct TokenCommand {
    provider: String,
    command: AuthCommand,
    /// The command's default folder.
    folder: PathBuf,
    /// For tokens that expire at a time of day.
    clock: Arc<dyn Clock>,
    /// Locked while the command runs: concurrent callers wait for its result.
    kept: tokio::sync::Mutex<Option<KeptToken>>,
}

#[derive(Debug, Clone)]
struct KeptToken {
    token: SecretText,
    /// Unset: until it is refused.
    until: Option<Instant>,
}

impl TokenCommand {
    pub(crate) fn new(provider: &str, command: AuthCommand, folder: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { provider: provider.to_owned(), command, folder, clock, kept: tokio::sync::Mutex::default() }
    }

    /// A token that is valid as far as known; never the refused one. The error contains no output of the command.
    pub(crate) async fn token(&self, refused: Option<&SecretText>) -> Result<SecretText, String> {
        let mut kept = self.kept.lock().await;
        let is_good = |kept: &&KeptToken| {
            refused != Some(&kept.token) && kept.until.is_none_or(|until| Instant::now() < until)
        };
        if let Some(kept) = kept.as_ref().filter(is_good) {
            return Ok(kept.token.clone());
        }
        *kept = None;
        let output = self.run().await?;
        let printed =
            PrintedToken::read(&output, self.clock.now_ms()).map_err(|problem| self.failed(problem))?;
        let lifetime = printed.lifetime.map(|left| left - MARGIN.min(left / 2)).or(self.command.refresh);
        // A lifetime beyond the clock's range means no expiry.
        let until = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        *kept = Some(KeptToken { token: printed.token.clone(), until });
        Ok(printed.token)
    }

    fn failed(&self, problem: &str) -> String {
        let (provider, program) = (&self.provider, self.command.argv.first().map_or("", String::as_str));
        format!(
            "model_providers.{provider}.auth.command (`{program}`) {problem}; run it by hand to see what it prints"
        )
    }

    /// The command is the user's choice: it runs without a sandbox and with the whole environment, which may hold its
    /// credentials. But programs are not searched for in folders that commands could write.
    async fn run(&self) -> Result<Vec<u8>, String> {
        let search = self.command.search.clone().map(|search| ("PATH".to_owned(), search));
        let order = Order {
            argv: self.command.argv.clone(),
            cwd: self.command.cwd.clone().unwrap_or_else(|| self.folder.clone()),
            env: variables().chain(search).collect(),
            confinement: None,
            limits: Limits::default(),
            terminal: false,
        };
        let timeout = self.command.timeout;
        let options =
            RunOptions { timeout: Some(timeout), cap_bytes: MAX_OUTPUT_BYTES, ..RunOptions::default() };
        let finished = sandbox::run(order, options)
            .await
            .map_err(|error| self.failed(&format!("cannot be started: {error}")))?;
        if finished.timed_out {
            return Err(self.failed(&format!("took longer than {} ms", timeout.as_millis())));
        }
        if finished.exit.code != 0 {
            return Err(self.failed(&format!("ended with code {}", finished.exit.code)));
        }
        if finished.stdout.omitted_bytes() > 0 {
            return Err(self.failed(&format!("printed more than {MAX_OUTPUT_BYTES} bytes")));
        }
        let (mut output, tail) = finished.stdout.parts();
        output.extend(tail);
        Ok(output)
    }
}

/// The command's output: a line with the token, or an object with `token` and its expiry.
struct PrintedToken {
    token: SecretText,
    lifetime: Option<Duration>,
}

impl PrintedToken {
    fn read(output: &[u8], now_ms: i64) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(output).map_err(|_| "printed something that is no text")?.trim();
        let Some(object) = serde_json::from_str::<Value>(text).ok().filter(Value::is_object) else {
            return Ok(Self { token: one_line(text)?, lifetime: None });
        };
        let token = ["token", "access_token"].into_iter().find_map(|name| object[name].as_str());
        let token = one_line(token.ok_or("printed an object without `token`")?)?;
        let seconds = |name: &str| object[name].as_f64().filter(|seconds| seconds.is_finite());
        let now = now_ms as f64 / 1_000.0;
        let left = seconds("expires_in").or_else(|| Some(seconds("expires_at")? - now));
        let lifetime = left.map(|left| Duration::try_from_secs_f64(left.max(0.0)).unwrap_or(Duration::MAX));
        Ok(Self { token, lifetime })
    }
}

fn one_line(text: &str) -> Result<SecretText, &'static str> {
    match text.trim() {
        "" => Err("printed no token"),
        text if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(SecretText::new(text)),
        _ => Err("printed more than a token"),
    }
}

/// Creates the transport for a token.
type ConnectWith = dyn Fn(&SecretText) -> Result<Arc<dyn ModelTransport>, RuntimeError> + Send + Sync;

/// Sends requests with the command's token; a refused token is replaced once.
#[derive(Clone)]
pub(crate) struct CommandTransport {
    shared: Arc<CommandConnections>,
}

struct CommandConnections {
    command: TokenCommand,
    connect: Box<ConnectWith>,
    /// The last transport, with its token.
    made: Mutex<Option<(SecretText, Arc<dyn ModelTransport>)>>,
}

impl CommandTransport {
    pub(crate) fn new(command: TokenCommand, connect: Box<ConnectWith>) -> Self {
        Self { shared: Arc::new(CommandConnections { command, connect, made: Mutex::default() }) }
    }
}

impl ModelTransport for CommandTransport {
    fn open(&self, request: PreparedRequest) -> EventStream {
        let shared = self.shared.clone();
        let opening = async move { shared.open(request).await };
        Box::pin(stream::once(opening).flatten())
    }
}

impl CommandConnections {
    async fn open(&self, request: PreparedRequest) -> EventStream {
        let token = match self.command.token(None).await {
            Ok(token) => token,
            Err(problem) => return failed(problem),
        };
        let mut events = self.carry(&token, request.clone());
        let first = events.next().await;
        let is_refused = matches!(&first, Some(Err(failure)) if failure.http_status == Some(UNAUTHORIZED));
        if is_refused
            && let Ok(other) = self.command.token(Some(&token)).await
            && other != token
        {
            return self.carry(&other, request);
        }
        Box::pin(stream::iter(first).chain(events))
    }

    fn carry(&self, token: &SecretText, request: PreparedRequest) -> EventStream {
        let known = self.made.lock().clone().filter(|(known, _)| known == token);
        let transport = match known {
            Some((_, transport)) => transport,
            None => match (self.connect)(token) {
                Ok(transport) => {
                    *self.made.lock() = Some((token.clone(), transport.clone()));
                    transport
                }
                Err(error) => return failed(error.to_string()),
            },
        };
        transport.open(request)
    }
}

fn failed(problem: String) -> EventStream {
    Box::pin(stream::iter([Err(ModelFailure::new(FailureClass::Unauthorized, problem))]))
}

impl std::fmt::Debug for CommandTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandTransport").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use support::SystemClock;

    use super::*;

    fn read(text: &str) -> Result<(String, Option<u64>), &'static str> {
        let printed = PrintedToken::read(text.as_bytes(), 2_000)?;
        Ok((printed.token.reveal().to_owned(), printed.lifetime.map(|lifetime| lifetime.as_secs())))
    }

    #[test]
    fn a_token_is_printed_with_or_without_its_expiry() {
        assert_eq!(read(" tok-1\n"), Ok(("tok-1".to_owned(), None)));
        assert_eq!(read(r#"{"token": "tok-1", "expires_in": 3600}"#), Ok(("tok-1".to_owned(), Some(3_600))));
        assert_eq!(read(r#"{"access_token": "t", "expires_at": 12}"#), Ok(("t".to_owned(), Some(10))));
        assert_eq!(read(r#"{"access_token": "t", "expires_at": 1}"#), Ok(("t".to_owned(), Some(0))));
        assert_eq!(
            read(r#"{"token": "t", "expires_in": 1e300}"#).map(|(token, _)| token),
            Ok("t".to_owned())
        );
        assert_eq!(read("\n"), Err("printed no token"));
        assert_eq!(read("Logging in...\ntok-1"), Err("printed more than a token"));
        assert_eq!(read("{}"), Err("printed an object without `token`"));
        assert!(PrintedToken::read(b"\xff", 0).is_err());
    }

    fn command(script: &str, timeout_ms: u64) -> TokenCommand {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let timeout = Duration::from_millis(timeout_ms);
        let refresh = Some(Duration::from_secs(3_600));
        TokenCommand::new(
            "p",
            AuthCommand { argv, cwd: None, timeout, refresh, search: None },
            PathBuf::from("/"),
            Arc::new(SystemClock),
        )
    }

    #[tokio::test]
    async fn its_program_is_looked_for_in_its_search_path_alone() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("token-printer");
        std::fs::write(&program, "#!/bin/sh\necho tok-1\n").expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("set");
        let mut named = command("", 20_000);
        named.command.argv = vec!["token-printer".to_owned()];
        named.command.search = Some(folder.path().to_string_lossy().into_owned());
        assert_eq!(named.token(None).await.expect("printed").reveal(), "tok-1");
        named.kept = tokio::sync::Mutex::default();
        named.command.search = Some("/usr/bin:/bin".to_owned());
        assert!(named.token(None).await.is_err());
    }

    #[tokio::test]
    async fn no_error_contains_output_of_the_command() {
        let end = "; run it by hand to see what it prints";
        for (script, timeout_ms, expected) in [
            ("echo planted-1; echo planted-2 >&2; exit 3", 20_000, "ended with code 3"),
            ("echo planted-1; echo planted-2", 20_000, "printed more than a token"),
            ("printf planted-1; exec sleep 60", 50, "took longer than 50 ms"),
            ("head -c 100000 /dev/zero | tr '\\0' p", 20_000, "printed more than 65536 bytes"),
        ] {
            let error = command(script, timeout_ms).token(None).await.expect_err(script);
            assert_eq!(error, format!("model_providers.p.auth.command (`/bin/sh`) {expected}{end}"));
        }
    }

    /// Accepts one token and refuses all others.
    #[derive(Debug)]
    struct OneTokenTransport {
        token: SecretText,
        takes: &'static str,
    }

    impl ModelTransport for OneTokenTransport {
        fn open(&self, _: PreparedRequest) -> EventStream {
            let mut refused = ModelFailure::new(FailureClass::Unauthorized, "refused");
            refused.http_status = Some(UNAUTHORIZED);
            let completed = model::StreamEvent::Completed { response_id: "r".to_owned(), usage: None };
            let is_taken = self.token.reveal() == self.takes;
            Box::pin(stream::iter([if is_taken { Ok(completed) } else { Err(refused) }]))
        }
    }

    #[tokio::test]
    async fn a_refused_token_is_replaced_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for (takes, expected, runs) in [("tok-2", "completed", 2), ("tok-9", "refused", 4)] {
            let counter = folder.path().join("n");
            let script = format!("echo x >> {0}; n=$(wc -l < {0}); echo tok-$n", counter.display());
            let connect = move |token: &SecretText| {
                let transport: Arc<dyn ModelTransport> =
                    Arc::new(OneTokenTransport { token: token.clone(), takes });
                Ok(transport)
            };
            let transport = CommandTransport::new(command(&script, 20_000), Box::new(connect));
            let request = PreparedRequest {
                body: Arc::new(model::RequestBody {
                    model: "m".to_owned(),
                    instructions: String::new(),
                    input: Vec::new(),
                    tools: Vec::new(),
                    tool_choice: model::ToolChoice::Auto,
                    parallel_tool_calls: false,
                    reasoning: None,
                    store: false,
                    stream: true,
                    include: Vec::new(),
                    service_tier: None,
                    prompt_cache_key: String::new(),
                    text: None,
                }),
                metadata: model::Metadata::first("thread".into(), "turn".into()),
            };
            let events = transport.open(request).collect::<Vec<_>>().await;
            let said = match &events[..] {
                [Ok(_)] => "completed",
                [Err(failure)] => failure.message.as_str(),
                other => panic!("{other:?}"),
            };
            let ran = std::fs::read_to_string(&counter).expect("it ran").lines().count();
            assert_eq!((said, ran), (expected, runs));
        }
    }

    #[tokio::test]
    async fn a_token_is_kept_until_it_expires_or_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let counter = folder.path().join("n");
        let counting = |rest: &str| format!("echo x >> {0}; n=$(wc -l < {0}); {rest}", counter.display());
        let kept = command(&counting("echo tok-$n"), 20_000);
        let first = kept.token(None).await.expect("a token");
        assert_eq!(first.reveal(), "tok-1");
        assert_eq!(kept.token(None).await, Ok(first.clone()), "it is kept");
        let second = kept.token(Some(&first)).await.expect("another");
        assert_eq!(second.reveal(), "tok-2");
        // The second refused caller gets the renewed token.
        assert_eq!(kept.token(Some(&first)).await, Ok(second));
        let expiring = command(&counting(r#"echo "{\"token\":\"tok-$n\",\"expires_in\":0}""#), 20_000);
        assert_eq!(expiring.token(None).await.expect("a token").reveal(), "tok-3");
        assert_eq!(expiring.token(None).await.expect("a token").reveal(), "tok-4");
    }
}
