//! `mcpServer/oauth/login`: from a refused connection to a stored token, and servers that mean harm.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};
use testkit::{Stage, TestClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{call, ended, offered};

/// A server with its authorization server. Ends with the test.
struct OAuthServer {
    child: Child,
    port: String,
}

impl Drop for OAuthServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OAuthServer {
    async fn start(stage: &Stage, mode: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/methods/mcp/oauth_server.py");
        let file = stage.cwd().join(format!("port-{mode}"));
        let _ = std::fs::remove_file(&file);
        let child = Command::new("python3").arg(script).arg(&file).arg(mode).spawn().expect("python3 runs");
        let mut server = Self { child, port: String::new() };
        testkit::until("it listens", || file.exists()).await;
        server.port = std::fs::read_to_string(file).expect("a port");
        server
    }

    fn configured(&self, name: &str) -> String {
        format!("[mcp_servers.{name}]\nurl = \"http://127.0.0.1:{}/mcp\"\n", self.port)
    }

    async fn log(&self) -> String {
        get(&format!("http://127.0.0.1:{}/log", self.port)).await.1
    }
}

/// The head and the body of the answer to a GET.
async fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (host, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).await.expect("connected");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("read");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_owned(), body.to_owned())
}

/// Where the authorization server sends the browser.
async fn authorize(url: &str) -> String {
    let (head, _) = get(url).await;
    let line = head.lines().find_map(|line| line.strip_prefix("Location: "));
    line.unwrap_or_else(|| panic!("no redirect: {head}")).to_owned()
}

async fn begin(client: &mut TestClient, name: &str) -> String {
    let begun = client.ask("mcpServer/oauth/login", json!({"name": name})).await;
    begun["authorizationUrl"].as_str().expect("an address").to_owned()
}

/// Opens the address as a browser would, and follows it back.
async fn log_in(client: &mut TestClient, name: &str) -> Value {
    let url = begin(client, name).await;
    get(&authorize(&url).await).await;
    client.wait_for("mcpServer/oauthLogin/completed", |told| told["name"] == name).await
}

fn login_files(stage: &Stage) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(stage.home().join("mcp-logins"));
    let files = folder.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
}

async fn auth_status(client: &mut TestClient) -> Value {
    client.ask("mcpServerStatus/list", json!({})).await["data"][0]["authStatus"].clone()
}

#[tokio::test]
async fn a_login_opens_the_server_to_threads_that_wait_for_it() {
    let steps = json!([{"text": "not yet"}, call("call-1", "mcp__o__echo", &json!({})), {"text": "done"}]);
    let stage = Stage::new(steps).await;
    let server = OAuthServer::start(&stage, "good").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    assert_eq!(auth_status(&mut client).await, "notLoggedIn");
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let failed = client.wait_for("mcpServer/startupStatus/updated", |told| told["status"] == "failed").await;
    assert!(failed["error"].as_str().expect("a reason").contains("oarlock mcp login o"), "{failed}");
    client.turn(&id, "go").await;

    let url = begin(&mut client, "o").await;
    for part in ["response_type=code", "code_challenge_method=S256", "resource=http", "scope=tools", "state="]
    {
        assert!(url.contains(part), "{part}: {url}");
    }
    get(&authorize(&url).await).await;
    let completed = client.next_of("mcpServer/oauthLogin/completed").await;
    assert_eq!(completed, json!({"name": "o", "success": true}));

    assert_eq!(auth_status(&mut client).await, "oAuth");
    let files = login_files(&stage);
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(files[0].parent().expect("a folder"))), (0o600, 0o700));
    client.start_turn(&id, "now").await;
    assert_eq!(ended(&mut client, "call-1").await["result"]["content"][0]["text"], "in");
    client.next_of("turn/completed").await;
    assert!(offered(&stage.asked()[1]).contains(&"mcp__o__echo".to_owned()));
    for heard in client.transcript() {
        assert!(!heard.contains("access-1") && !heard.contains("refresh-1"), "{heard}");
    }
}

#[tokio::test]
async fn servers_of_2025_03_26_are_their_own_authorization_server() {
    let stage = Stage::new(json!([])).await;
    let server = OAuthServer::start(&stage, "older").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    assert_eq!(log_in(&mut client, "o").await["success"], true);
    assert_eq!(auth_status(&mut client).await, "oAuth");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_and_once_when_it_is_refused() {
    for mode in ["short", "revokes"] {
        let stage = Stage::new(json!([call("call-1", "mcp__o__echo", &json!({})), {"text": "done"}])).await;
        let server = OAuthServer::start(&stage, mode).await;
        stage.configure(&server.configured("o"));
        let (_server, mut client) = stage.open().await;
        assert_eq!(log_in(&mut client, "o").await["success"], true, "{mode}");
        let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
        client.start_turn(&id, "go").await;
        assert_eq!(ended(&mut client, "call-1").await["status"], "completed", "{mode}");
        let log = server.log().await;
        assert_eq!(log.matches("POST /token refresh_token").count(), 1, "{mode}: {log}");
        assert!(log.contains("200 tools/call access-2"), "{mode}: {log}");
        let stored = std::fs::read_to_string(&login_files(&stage)[0]).expect("readable");
        assert!(stored.contains("access-2") && stored.contains("refresh-2"), "{mode}: {stored}");
    }
}

#[tokio::test]
async fn a_login_that_has_ended_is_forgotten_and_said_to_be() {
    let stage = Stage::new(json!([{"text": "done"}])).await;
    let mut server = OAuthServer::start(&stage, "good").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    log_in(&mut client, "o").await;
    // The same address, as it is after its tokens were all withdrawn.
    let _ = server.child.kill();
    let _ = server.child.wait();
    let again = OAuthServer::start(&stage, "ended").await;
    let file = login_files(&stage).remove(0);
    let moved = std::fs::read_to_string(&file).expect("readable").replace(&server.port, &again.port);
    server.port.clone_from(&again.port);
    stage.configure(&again.configured("o"));
    std::fs::remove_file(&file).expect("removed");
    log_in(&mut client, "o").await;
    let file = login_files(&stage).remove(0);
    std::fs::write(&file, moved.replace("access-1", "access-0")).expect("written");
    client.start_thread(json!({"cwd": stage.cwd()})).await;
    let failed = client.wait_for("mcpServer/startupStatus/updated", |told| told["status"] == "failed").await;
    assert!(failed["error"].as_str().expect("a reason").contains("wants a login"), "{failed}");
    assert_eq!(login_files(&stage), [] as [PathBuf; 0]);
    assert_eq!(auth_status(&mut client).await, "notLoggedIn");
}

#[tokio::test]
async fn more_rights_are_asked_for_by_name() {
    let stage = Stage::new(json!([call("call-1", "mcp__o__echo", &json!({})), {"text": "done"}])).await;
    let server = OAuthServer::start(&stage, "wants-more").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    log_in(&mut client, "o").await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let failed = ended(&mut client, "call-1").await;
    let message = failed["error"]["message"].as_str().expect("a reason");
    assert!(message.contains("oarlock mcp login o --scopes tools,admin"), "{message}");
}

#[tokio::test]
async fn hostile_metadata_is_refused_by_name() {
    for (mode, reason) in [
        ("plain-issuer", "http://192.0.2.1, which is not encrypted"),
        ("other-issuer", "it is the metadata of `https://other.example`"),
        ("other-resource", "it describes `https://other.example/mcp`, which is another server"),
        ("elsewhere", "https://192.0.2.1/metadata, which is not its own address"),
        ("no-pkce", "PKCE with S256"),
        ("script-page", "javascript:alert(1)"),
        ("plain-token", "http://192.0.2.1/token, which is not encrypted"),
        ("disguised", "hides its host behind a user name"),
        ("no-registration", "registers no programs"),
        ("broken-registration", "did not register this program: it answered 500"),
        ("huge", "is too large"),
    ] {
        let stage = Stage::new(json!([])).await;
        let server = OAuthServer::start(&stage, mode).await;
        stage.configure(&server.configured("o"));
        let (_server, mut client) = stage.open().await;
        let refused = client.refused("mcpServer/oauth/login", json!({"name": "o"})).await;
        assert!(refused.contains(reason), "{mode}: {refused}");
        assert_eq!(login_files(&stage), [] as [PathBuf; 0]);
    }
}

#[tokio::test]
async fn nothing_is_asked_where_clouds_keep_their_keys_and_no_redirect_is_followed() {
    let stage = Stage::new(json!([])).await;
    let server = OAuthServer::start(&stage, "cloud-token").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    let completed = log_in(&mut client, "o").await;
    let error = completed["error"].as_str().expect("a reason");
    assert!(
        error.contains("169.254.169.254") && error.contains("inside this machine or its network"),
        "{error}"
    );

    let stage = Stage::new(json!([])).await;
    let server = OAuthServer::start(&stage, "redirect").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    // Without the metadata it is taken for an older server; where the redirect led, nothing was asked.
    assert_eq!(log_in(&mut client, "o").await["success"], true);
}

#[tokio::test]
async fn the_way_back_counts_once_and_only_with_its_state() {
    let stage = Stage::new(json!([])).await;
    let server = OAuthServer::start(&stage, "good").await;
    stage.configure(&server.configured("o"));
    let (_server, mut client) = stage.open().await;
    let back = authorize(&begin(&mut client, "o").await).await;
    let (address, _) = back.split_once('?').expect("a query");
    for stranger in ["", "?code=evil", "?code=evil&state=guess", "?error=access_denied&state="] {
        assert!(get(&format!("{address}{stranger}")).await.0.starts_with("HTTP/1.1 404"), "{stranger}");
    }
    get(&back).await;
    assert_eq!(client.next_of("mcpServer/oauthLogin/completed").await["success"], true);
    assert!(
        TcpStream::connect(address.trim_start_matches("http://").trim_end_matches("/callback"))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_refusal_comes_as_one_plain_line() {
    for (mode, expected) in [
        ("refuses", "the authorization server refused: access_denied: <b>no</b> <script>alert(1)</script>"),
        ("mixed-up", "the page that the browser came back with is of another authorization server"),
    ] {
        let stage = Stage::new(json!([])).await;
        let server = OAuthServer::start(&stage, mode).await;
        stage.configure(&server.configured("o"));
        let (_server, mut client) = stage.open().await;
        let back = authorize(&begin(&mut client, "o").await).await;
        let (_, page) = get(&back).await;
        assert!(!page.contains("script") && !page.contains("alert"), "{page}");
        let completed = client.next_of("mcpServer/oauthLogin/completed").await;
        assert_eq!(completed, json!({"name": "o", "success": false, "error": expected}), "{mode}");
    }
}

#[tokio::test]
async fn logins_end_by_time_and_by_newer_ones_and_do_not_mix() {
    let stage = Stage::new(json!([])).await;
    let (one, two) = (OAuthServer::start(&stage, "good").await, OAuthServer::start(&stage, "older").await);
    stage.configure(&format!("{}{}", one.configured("one"), two.configured("two")));
    let (_server, mut client) = stage.open().await;
    let first = begin(&mut client, "one").await;
    let second = begin(&mut client, "two").await;
    let newer = begin(&mut client, "one").await;
    let completed = client.next_of("mcpServer/oauthLogin/completed").await;
    let replaced =
        json!({"name": "one", "success": false, "error": "another login to this server was started"});
    assert_eq!(completed, replaced);
    assert_ne!(first, newer);
    for (name, url) in [("two", second), ("one", newer)] {
        get(&authorize(&url).await).await;
        let completed = client.next_of("mcpServer/oauthLogin/completed").await;
        assert_eq!(completed, json!({"name": name, "success": true}));
    }
    assert_eq!(login_files(&stage).len(), 2);
    client.ask("mcpServer/oauth/login", json!({"name": "one", "timeoutSecs": 1})).await;
    let completed = client.next_of("mcpServer/oauthLogin/completed").await;
    assert_eq!(completed["error"], "nobody logged in within 1 s");
    assert_eq!(login_files(&stage).len(), 2, "a login that fails leaves the older one as it is");
}

#[tokio::test]
async fn a_login_that_cannot_be_is_refused() {
    let stage = Stage::new(json!([])).await;
    stage.configure(
        "[mcp_servers.program]\ncommand = \"x\"\n[mcp_servers.token]\nurl = \"https://h/mcp\"\n\
         bearer_token_env_var = \"T\"\n[mcp_servers.plain]\nurl = \"http://192.0.2.1/mcp\"\n\
         [mcp_servers.nobody]\nurl = \"http://127.0.0.1:1/mcp\"\n",
    );
    let (_server, mut client) = stage.open().await;
    for (name, reason) in [
        ("missing", "No MCP server named 'missing' found."),
        ("program", "OAuth login is only supported for streamable HTTP servers."),
        ("token", "has a token"),
        ("plain", "a login needs https"),
        ("nobody", "connection refused"),
    ] {
        let refused = client.refused("mcpServer/oauth/login", json!({"name": name})).await;
        assert!(refused.contains(reason), "{name}: {refused}");
    }
    let refused = client.refused("mcpServer/oauth/login", json!({"name": "nobody", "timeoutSecs": 0})).await;
    assert_eq!(refused, "timeoutSecs must be at least 1");
}
