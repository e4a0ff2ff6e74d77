//! Foreign text does nothing to a terminal, and our files are readable by their owner alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use testkit::RunInTime;

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

struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
