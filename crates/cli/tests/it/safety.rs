//! Foreign text does nothing to a terminal, and our files are readable by their owner alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use testkit::RunInTime;

use crate::host::{HostClient, RunningHost};
use crate::support::{Place, Scripted, exec};

/// Clears the screen, sets the clipboard, makes a link, turns the direction, and does the same with C1 controls.
const LOUD: &str = "a\u{1b}[2Jb\u{1b}]52;c;eA==\u{7}c\u{1b}]8;;http://x\u{1b}\\d\u{202e}e\u{2066}f\u{9b}31mg\u{9d}0;t\u{7}h\ri\u{e0041}j";

#[track_caller]
fn assert_quiet(what: &str, text: &str) {
    let loud = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            || ('\u{e0000}'..='\u{e0fff}').contains(&c)
    };
    assert!(!text.contains(loud), "{what}: {text:?}");
}

#[test]
fn nothing_from_outside_reaches_the_terminal_as_it_is() {
    let place = Place::new();
    let plan = json!({"explanation": LOUD, "plan": [{"step": LOUD, "status": "pending"}]});
    let script = json!([
        {"calls": [{"name": "update_plan", "arguments": plan}]},
        {"calls": [{"name": "exec_command", "arguments": {"cmd": format!("printf '%s' '{LOUD}'")}}]},
        {"text": LOUD},
        {"text": LOUD},
        {"fail": {"status": 400, "body": {"error": {"message": LOUD}}}},
    ]);
    let scripted = Scripted::start(&place, &script);
    let flags = scripted.flags();
    let prompt = format!("say {LOUD}");
    for more in [&["-m", LOUD][..], &["--json", "-m", LOUD], &["-m", LOUD]] {
        let ran = place.run(&exec(&flags, &[more, &[&prompt]].concat()));
        assert_quiet("standard error of exec", &ran.err);
        if more.contains(&"--json") {
            assert_quiet("events", &ran.out);
        }
    }
    for arguments in [
        &["threads"][..],
        &["threads", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["policy", "check", "--", LOUD],
        &["policy", "check", "--json", "--", LOUD],
        &["debug", "prompt", "-m", LOUD],
        &["debug", "prompt", "--json", "-m", LOUD],
        &["-c", &format!("model={LOUD:?}x"), "doctor"],
        &["exec", "-c", &format!("model_provider={LOUD}"), "hello"],
        &["sandbox", "--", LOUD],
    ] {
        let ran = place.run(arguments);
        assert_quiet(&format!("{arguments:?}"), &ran.out);
        assert_quiet(&format!("{arguments:?}"), &ran.err);
    }
    let listed = place.run(&["threads", "--json"]).good().document();
    assert_eq!(listed["data"][0]["model"], LOUD, "programs get what it is");
}

#[test]
fn everything_of_ours_is_private_whatever_the_umask() {
    let place = Place::new();
    let binary = env!("CARGO_BIN_EXE_oarlock");
    for prompt in ["say hello", "run seq 1 200000"] {
        let script = format!("umask 000; exec {binary} exec --provider offline '{prompt}'");
        let command = place.command(&[]);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]).current_dir(place.folder()).stdin(std::process::Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let output = shell.output_in_time();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut found = Vec::new();
    walk(&place.home(), &mut found);
    assert!(found.len() > 6, "{found:?}");
    for path in found {
        let mode = fs::symlink_metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
    }
}

/// Whoever reads the store of a host reads every task, and whoever writes it can decide in it.
#[test]
fn everything_of_a_host_is_private_whatever_the_umask() {
    let place = Place::new();
    let binary = env!("CARGO_BIN_EXE_oarlock");
    let script = format!("umask 000; exec {binary} host --provider offline --store sqlite:tasks.sqlite");
    let command = place.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(place.root()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let _host = RunningHost::of(&place, &mut shell);
    let mut client = HostClient::connect(&place);
    let params = json!({
        "placement": {"backend": "local", "manifest": {"env": {"A": "b"}}}, "approvalPolicy": "never",
        "sandbox": "danger-full-access",
    });
    let started = client.ask("thread/start", &params);
    client.turn(started["thread"]["id"].as_str().expect("an id"), "run seq 1 200000", "i1");
    client.wait_for("turn/completed");
    let placement = client.ask("placement/list", &json!({}))["data"][0]["id"].clone();
    client.ask("placement/snapshot", &json!({"placementId": placement}));
    let mut found = Vec::new();
    for entry in fs::read_dir(place.root()).expect("readable").flatten() {
        let is_of_host = entry.file_name().to_string_lossy().starts_with("tasks.sqlite");
        match entry.path() {
            path if path == place.home() || (is_of_host && path.is_dir()) => walk(&path, &mut found),
            path if is_of_host => found.push(path),
            _ => {}
        }
    }
    assert!(found.iter().any(|path| path.extension().is_some_and(|end| end == "tar")), "{found:?}");
    assert!(found.len() > 6, "{found:?}");
    for path in found {
        let mode = fs::symlink_metadata(&path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    found.push(folder.to_owned());
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        match entry.file_type().expect("a kind").is_dir() {
            true => walk(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

#[test]
fn doctor_says_what_commands_cannot_read_and_no_secret() {
    let place = Place::new();
    fs::create_dir_all(place.root().join(".ssh")).expect("made");
    fs::create_dir_all(place.home()).expect("made");
    let config = r#"
        model_provider = "p"
        [model_providers.p]
        name = "p"
        base_url = "https://user:planted@127.0.0.1:1/v1?key=planted"
        http_headers = { "X-Key" = "planted" }
        query_params = { key = "planted" }
        [sandbox]
        deny_read = ["~/mine"]
        unix_sockets = ["/run/shown.sock"]
    "#;
    fs::write(place.home().join("config.toml"), config).expect("written");
    let told = place.run(&["doctor"]).out;
    let ssh = place.root().join(".ssh").display().to_string();
    for part in [ssh.as_str(), &place.home().display().to_string(), "/run/shown.sock", "***@127.0.0.1"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let document = place.run(&["doctor", "--json"]).document();
    let mine = place.root().join("mine").display().to_string();
    let listed = document["hidden"]["credentials"].as_array().expect("a list");
    assert!(listed.contains(&json!(mine)) && listed.contains(&json!(ssh)), "{document}");
    assert!(!format!("{told}{document}").contains("planted"), "{told}");
}

#[test]
fn a_misspelt_address_is_a_problem_for_doctor() {
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    let config =
        "model_provider = \"corp\"\n[model_providers.corp]\nname = \"Corp\"\nbase_ur = \"http://corp/v1\"\n";
    fs::write(place.home().join("config.toml"), config).expect("written");
    let told = place.run(&["doctor"]).bad().out;
    assert!(told.contains("did you mean `base_url`?"), "{told}");
    let ran = place.run(&["exec", "hello"]);
    assert!(ran.code == Some(1) && ran.err.contains("did you mean `base_url`?"), "{ran:?}");
}

/// Without a token, the user is all that tells one client of a local port from another.
#[test]
fn other_users_of_this_machine_are_not_let_in_without_a_token() {
    let place = Place::new();
    let open = |more: &[&str]| {
        let arguments = [&["app-server", "--listen", "ws://127.0.0.1:0"], more].concat();
        let mut child = place.command(&arguments).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("listening on: ws://")?.1.to_owned()));
        (KilledAtEnd(child), address.expect("it says where it listens"))
    };
    let connect = |address: &str, uid: Option<u32>| {
        let (host, port) = address.rsplit_once(':').expect("an address");
        let script = format!(
            "exec 3<>/dev/tcp/{host}/{port}; printf 'GET / HTTP/1.1\\r\\nHost: {address}\\r\\nConnection: Upgrade\\r\\n\
             Upgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\n\\r\\n' >&3; \
             head -n 1 <&3"
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).current_dir("/");
        if let Some(uid) = uid {
            command.uid(uid);
        }
        let output = command.output_in_time();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let (_server, address) = open(&[]);
    assert_eq!(connect(&address, None), "HTTP/1.1 101 Switching Protocols", "its own user is");
    // Only root can be somebody else.
    if fs::metadata("/proc/self").expect("there").uid() == 0 {
        assert_eq!(connect(&address, Some(65534)), "HTTP/1.1 403 Forbidden");
        let (_server, address) = open(&["--allow-unauthenticated"]);
        assert_eq!(connect(&address, Some(65534)), "HTTP/1.1 101 Switching Protocols");
    }
}

/// The servers of one user know nothing of each other's ports.
#[test]
fn a_command_of_one_server_is_no_client_of_another_one_of_the_same_user() {
    const ATTACK: &str = r#"
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
s = socket.create_connection((host, int(port)))
s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
open(sys.argv[2], "wb").write(s.recv(12))
"#;
    let place = Place::new();
    fs::write(place.folder().join("attack.py"), ATTACK).expect("written");
    let as_user = user_of(&place);
    let arguments = ["app-server", "--listen", "ws://127.0.0.1:0"];
    let mut other = as_user(place.command(&arguments));
    other.env("OARLOCK_HOME", place.root().join("other-home"));
    let mut server = other.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.split_once("listening on: ws://")?.1.to_owned()));
    let (_server, address) = (KilledAtEnd(server), address.expect("it says where it listens"));
    let mut plain = Command::new("python3");
    plain.args(["attack.py", &address, "of-user"]).current_dir(place.folder());
    assert!(as_user(plain).output_in_time().status.success());
    let prompt = format!("Run `python3 attack.py {address} of-command`");
    let network = "sandbox_workspace_write.network_access=true";
    let arguments =
        ["exec", "--provider", "offline", "-s", "workspace-write", "-c", network, prompt.as_str()];
    let ran = as_user(place.command(&arguments)).output_in_time();
    let heard = |name: &str| fs::read_to_string(place.folder().join(name)).unwrap_or_default();
    assert_eq!(heard("of-user"), "HTTP/1.1 101", "a client outside any sandbox is let in");
    assert_eq!(heard("of-command"), "HTTP/1.1 403", "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Commands of root's servers run as somebody else, who is refused for that. So root's place is given to another user, as
/// whom commands then run.
fn user_of(place: &Place) -> impl Fn(Command) -> Command {
    let is_root = fs::metadata("/proc/self").expect("there").uid() == 0;
    let mut folders = Vec::new();
    walk(&place.root(), &mut folders);
    for path in folders.iter().chain([&place.root()]).filter(|_| is_root) {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("given away");
    }
    move |mut command: Command| {
        if is_root {
            command.uid(65534).gid(65534);
        }
        command
    }
}

/// A bridge without a token lends its key to whoever it takes for the runtime.
#[test]
fn no_command_and_no_other_user_spends_the_key_of_a_bridge() {
    const ATTACK: &str = r#"
import socket, sys
host, port = sys.argv[1].rsplit(":", 1)
s = socket.create_connection((host, int(port)))
s.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
open(sys.argv[2], "wb").write(s.recv(12)) if sys.argv[2:] else print(s.recv(12).decode(), end="")
"#;
    let place = Place::new();
    fs::write(place.folder().join("attack.py"), ATTACK).expect("written");
    let as_user = user_of(&place);
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let closed = format!("http://{}/v1", upstream.local_addr().expect("an address"));
    drop(upstream);
    let mut bridge = as_user(place.command(&["responses-bridge", "--upstream", &closed, "--key-env", "KEY"]));
    let mut bridge = bridge.env("KEY", "sk-planted").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(bridge.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned()));
    let (_bridge, address) = (KilledAtEnd(bridge), address.expect("it says where it listens"));
    let attack = |output: &str| {
        let mut plain = Command::new("python3");
        plain.args(["attack.py", &address, output]).current_dir(place.folder());
        as_user(plain).output_in_time()
    };
    assert!(attack("of-user").status.success());
    let prompt = format!("Run `python3 attack.py {address} of-command`");
    let network = "sandbox_workspace_write.network_access=true";
    let arguments =
        ["exec", "--provider", "offline", "-s", "workspace-write", "-c", network, prompt.as_str()];
    let ran = as_user(place.command(&arguments)).output_in_time();
    let heard = |name: &str| fs::read_to_string(place.folder().join(name)).unwrap_or_default();
    assert_eq!(heard("of-user"), "HTTP/1.1 502", "a process outside any sandbox is let through");
    assert_eq!(heard("of-command"), "HTTP/1.1 403", "{}", String::from_utf8_lossy(&ran.stderr));
    if fs::metadata("/proc/self").expect("there").uid() == 0 {
        let mut other = Command::new("python3");
        other.args(["-c", ATTACK, &address]).uid(65533).gid(65533).current_dir("/").stdout(Stdio::piped());
        let other = other.output_in_time();
        assert_eq!(other.stdout, b"HTTP/1.1 403", "{}", String::from_utf8_lossy(&other.stderr));
    }
}

struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
