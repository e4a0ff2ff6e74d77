//! The interactive session in a real terminal: tmux runs the binary, types into it and reads its screen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use model_http::{OfflineReply, OfflineRequest, OfflineResponder, Wire};
use serde_json::{Value, json};
use testkit::{LinesInTime, RunInTime, VendorServer, call_event, completed_event, text_event};

use crate::support::{Place, Scripted};
use crate::wire_scenarios::Named;

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(60);
/// Commands of the model run in a plain shell.
const QUIET: &str = "-c allow_login_shell=false";

/// A terminal of its own with a shell in it, ended with the test.
struct Pane {
    socket: PathBuf,
    place: Place,
}

impl Pane {
    /// None, with a sentence, where there is no tmux.
    fn open(place: Place, columns: u16, rows: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: tmux is not installed");
            return None;
        }
        let socket = place.root().join("tmux");
        let pane = Self { socket, place };
        let mut shell = pane.place.command(&[]);
        let size = [columns.to_string(), rows.to_string()];
        let mut tmux =
            pane.command(&["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1], "sh"]);
        for (name, value) in shell
            .env("PS1", "$ ")
            .env("LC_ALL", "C.UTF-8")
            .env("PATH_OF_BINARY", env!("CARGO_BIN_EXE_oarlock"))
            .get_envs()
        {
            match value {
                Some(value) => tmux.env(name, value),
                None => tmux.env_remove(name),
            };
        }
        let started = tmux.current_dir(pane.place.folder()).output_in_time();
        assert!(started.status.success(), "{started:?}");
        pane.wait_until("a prompt", |screen| !screen.is_empty());
        Some(pane)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-S").arg(&self.socket).args(arguments);
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output_in_time();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Types a text as it is.
    fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Keys by their names.
    fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    /// Answers a question: what is typed just when it appears would not count.
    fn decide(&self, name: &str) {
        sleep(Duration::from_millis(1_600));
        self.key(name);
    }

    fn line(&self, text: &str) {
        self.text(text);
        self.key("Enter");
    }

    /// Leaves nothing on the screen but the shell's prompt.
    fn clear(&self) {
        self.line("clear");
        self.wait_until("a clear screen", |screen| screen.lines().count() == 1 && !screen.contains("clear"));
    }

    /// Starts the session. What an earlier one left on the screen must be gone before, or it would be taken for what this
    /// one shows, and keys would come before anybody reads them.
    fn oarlock(&self, arguments: &str) {
        self.clear();
        self.line(&format!("clear; \"$PATH_OF_BINARY\" {arguments}; echo \"ended $?\""));
    }

    fn screen(&self) -> String {
        let text = self.tmux(&["capture-pane", "-p"]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// The screen and what has left it at the top.
    fn transcript(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-500"])
    }

    #[track_caller]
    fn wait(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "waited for {what}:\n{screen}");
            sleep(Duration::from_millis(30));
        }
    }

    /// The session with the model inside the binary, ready for input.
    fn offline(&self, arguments: &str) {
        self.oarlock(&format!("--provider offline {QUIET} {arguments}"));
        self.wait("/help");
    }

    /// Leaves, and the terminal is as it was.
    fn leave(&self) {
        // The first Ctrl-C counts for two seconds; on a busy machine the second may come later.
        while !self.screen().contains("ended 0") {
            self.key("C-c");
            let shown = |screen: &str| screen.contains("Ctrl-C again leaves") || screen.contains("ended 0");
            self.wait_until("the first Ctrl-C", shown);
            self.key("C-c");
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(3) && !self.screen().contains("ended 0") {
                sleep(Duration::from_millis(30));
            }
        }
        self.is_restored();
    }

    /// The shell shows what is typed, on a line of its own.
    fn is_restored(&self) {
        self.line("echo back; stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo | tr '\\n' ' '");
        self.wait("icanon echo");
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

fn pane(columns: u16, rows: u16) -> Option<Pane> {
    Pane::open(Place::new(), columns, rows)
}

/// Flags for a model that follows a script.
fn scripted(place: &Place, script: &Value) -> (Scripted, String) {
    let model = Scripted::start(place, script);
    let flags: Vec<String> = model.flags().iter().map(|flag| format!("'{flag}'")).collect();
    (model, flags.join(" "))
}

#[test]
fn a_server_of_this_machine_is_found_where_nothing_is_configured() {
    let server = VendorServer::start(Wire::Chat, Arc::new(Named));
    let Some(pane) = Pane::open(Place::new(), 100, 30) else { return };
    let url = server.base_url();
    pane.line(&format!(
        "clear; CODEX_OSS_BASE_URL={url} \"$PATH_OF_BINARY\" {QUIET} 'hello there'; echo \"ended $?\""
    ));
    pane.wait("hello from mock-model");
    pane.leave();
}

#[test]
fn a_prompt_is_typed_answered_and_gone_on_with() {
    let Some(pane) = pane(80, 24) else { return };
    pane.offline("");
    pane.line("say hello there");
    pane.wait("Offline model: hello there");
    pane.wait("took");
    pane.leave();
    let screen = pane.transcript();
    let id = screen
        .split("oarlock resume ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("an id");
    let history = pane.place.home().join("terminal-history.jsonl");
    assert_eq!(fs::metadata(&history).expect("kept").permissions().mode() & 0o777, 0o600);

    pane.oarlock(&format!("resume {id} {QUIET}"));
    pane.wait("going on with");
    assert!(pane.screen().contains("Offline model: hello there"), "{}", pane.screen());
    pane.key("Up");
    pane.wait("› say hello there");
    pane.key("C-u");
    pane.line("say more");
    pane.wait("Offline model: more");
    pane.leave();
    pane.oarlock(&format!("resume --last {QUIET}"));
    pane.wait("Offline model: more");
    pane.leave();
}

#[test]
fn what_is_typed_while_the_program_starts_is_sent() {
    let Some(pane) = pane(80, 24) else { return };
    pane.clear();
    // One write: the second line is there before the program is.
    pane.text(&format!(
        "sleep 1; \"$PATH_OF_BINARY\" --provider offline {QUIET}; echo \"ended $?\"\nsay early\nsay hlf"
    ));
    // Arrows are keys, too.
    pane.key("Left");
    pane.key("Left");
    pane.text("a");
    pane.wait("Offline model: early");
    pane.wait("› say half");
    pane.leave();
}

#[test]
fn what_is_not_committed_is_shown_also_before_the_first_commit() {
    let place = Place::new();
    fs::remove_dir(place.folder().join(".git")).expect("removed");
    let git = |arguments: &[&str]| {
        let ran = Command::new("git").args(arguments).current_dir(place.folder()).output_in_time();
        assert!(ran.status.success(), "{ran:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(place.folder().join("staged.txt"), "a line\n").expect("written");
    fs::write(place.folder().join("new.txt"), "another\n").expect("written");
    git(&["add", "staged.txt"]);
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.offline("");
    pane.line("/diff");
    pane.wait("untracked: new.txt");
    pane.wait("+a line");
    pane.leave();
}

#[test]
fn a_command_is_approved_and_another_one_is_not() {
    let place = Place::new();
    let run = |command: &str| {
        let arguments =
            json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "to see" });
        json!({ "calls": [{ "name": "exec_command", "arguments": arguments }] })
    };
    let script = json!([run("touch one; echo made one"), run("touch two"), run("touch three"), { "text": "All done." }]);
    let (_model, flags) = scripted(&place, &script);
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.oarlock(&format!("{QUIET} {flags}"));
    pane.wait("/help");
    pane.line("make files");
    let asked = pane.wait("y yes");
    assert!(asked.contains("touch one; echo made one") && asked.contains("May this command run?"), "{asked}");
    pane.decide("y");
    pane.wait("made one");
    pane.wait_until("the second question", |screen| screen.contains("touch two") && screen.contains("y yes"));
    pane.decide("n");
    pane.wait_until("the third question", |screen| {
        screen.contains("touch three") && screen.contains("y yes")
    });
    pane.decide("e");
    pane.wait("Enter runs this command instead");
    pane.line(" four");
    pane.wait("All done.");
    let made = |name: &str| pane.place.folder().join(name).exists();
    assert_eq!(
        [made("one"), made("two"), made("three"), made("four")],
        [true, false, true, true],
        "{}",
        pane.transcript()
    );
    pane.leave();
}

#[test]
fn a_turn_is_steered_and_stopped() {
    let Some(pane) = pane(80, 24) else { return };
    pane.offline("--sandbox danger-full-access --approvals never");
    pane.line("run for i in 1 2 3 4 5 6 7 8 9; do echo tick $i; sleep 1; done");
    pane.wait("tick 1");
    pane.line("and be quick");
    pane.text("say afterwards");
    pane.key("Tab");
    let screen = pane.wait("next: say afterwards");
    assert!(screen.contains("working"), "{screen}");
    pane.key("Escape");
    pane.wait("stopped");
    // What waited is in the input again, and goes when the user says so.
    pane.wait("› say afterwards");
    pane.key("Enter");
    pane.wait("Offline model: afterwards");
    pane.leave();
}

#[test]
fn files_are_found_while_typing() {
    let place = Place::new();
    fs::create_dir_all(place.folder().join("deep/down")).expect("made");
    fs::write(place.folder().join("deep/down/needle.txt"), "x").expect("written");
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.offline("");
    pane.text("say @need");
    pane.wait("deep/down/needle.txt");
    pane.key("Tab");
    pane.wait("› say deep/down/needle.txt");
    pane.leave();
}

#[test]
fn a_prompt_of_the_user_is_sent_by_its_name() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("prompts")).expect("made");
    let text = "---\ndescription: Say a word\nargument-hint: WORD\n---\nsay $1 twice\n";
    fs::write(place.home().join("prompts/word.md"), text).expect("written");
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.offline("");
    pane.text("/prom");
    pane.wait("/prompts:word  WORD  Say a word");
    pane.key("Tab");
    pane.line("hello");
    pane.wait("Offline model: hello twice");
    pane.leave();
}

#[test]
fn a_terminal_that_changes_its_size_is_drawn_anew() {
    let Some(pane) = pane(200, 50) else { return };
    pane.offline("");
    pane.line("say a sentence that is quite a bit longer than forty columns, so that it has to be broken");
    pane.wait("took");
    pane.text("half a thought");
    pane.tmux(&["resize-window", "-x", "44", "-y", "20"]);
    let narrow = pane.wait_until("a narrow screen", |screen| {
        screen.contains("› half a thought")
            && screen.lines().last().is_some_and(|line| line.starts_with("offline"))
    });
    assert_eq!(narrow.matches("half a thought").count(), 1, "{narrow}");
    assert!(narrow.lines().all(|line| line.chars().count() <= 44), "{narrow}");
    pane.tmux(&["resize-window", "-x", "120", "-y", "30"]);
    let wide = pane.wait_until("a wide screen", |screen| screen.contains("› half a thought"));
    assert_eq!(wide.matches("half a thought").count(), 1, "{wide}");
    pane.leave();
}

#[test]
fn a_server_that_is_killed_leaves_the_terminal_as_it_was() {
    let Some(pane) = pane(80, 24) else { return };
    pane.offline("");
    pane.line("say something first");
    pane.wait("took");
    let home = pane.place.home();
    let servers = children_named(&home, "app-server");
    assert_eq!(servers.len(), 1, "{servers:?}");
    let killed = Command::new("kill").args(["-9", &servers[0]]).status().expect("kill runs");
    assert!(killed.success());
    let screen = pane.wait("ended 1");
    assert!(screen.contains("the server is gone") && screen.contains("oarlock resume "), "{screen}");
    pane.is_restored();
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was_and_no_server_behind() {
    let Some(pane) = pane(80, 24) else { return };
    pane.offline("");
    let home = pane.place.home();
    let server = children_named(&home, "app-server");
    let client: Vec<String> = children_named(&home, "--provider");
    assert_eq!((server.len(), client.len()), (1, 1), "{server:?} {client:?}");
    assert!(Command::new("kill").args(["-TERM", &client[0]]).status().expect("kill runs").success());
    pane.wait("ended 0");
    pane.is_restored();
    let began = Instant::now();
    while !children_named(&home, "app-server").is_empty() {
        assert!(began.elapsed() < PATIENCE, "the server is still there");
        sleep(Duration::from_millis(30));
    }
}

/// Processes of this binary with this home and this argument.
fn children_named(home: &std::path::Path, argument: &str) -> Vec<String> {
    let mark = format!("OARLOCK_HOME={}", home.display());
    let read = |path: PathBuf| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("processes").flatten() {
        let line = read(entry.path().join("cmdline"));
        let is_ours = line.split('\0').next() == Some(env!("CARGO_BIN_EXE_oarlock"));
        if is_ours && line.split('\0').any(|word| word == argument) && sees(&entry.path(), &mark) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// The environment of a sealed process cannot be read, so its folder has to do.
fn sees(process: &std::path::Path, mark: &str) -> bool {
    match fs::read(process.join("environ")) {
        Ok(environment) => String::from_utf8_lossy(&environment).split('\0').any(|entry| entry == mark),
        Err(_) => fs::read_link(process.join("cwd")).is_ok_and(|folder| {
            mark.strip_prefix("OARLOCK_HOME=")
                .is_some_and(|home| folder.parent() == std::path::Path::new(home).parent())
        }),
    }
}

/// A server that runs beside the session, ended with the test.
struct Elsewhere {
    child: Child,
    address: String,
    /// Whoever writes more must not find a closed pipe.
    _errors: LinesInTime,
}

impl Elsewhere {
    /// The address is the first word of its standard error that begins with this scheme.
    fn start(place: &Place, scheme: &str, arguments: &[&str]) -> Self {
        let mut command = place.command(arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it runs");
        let mut lines = LinesInTime::new(child.stderr.take().expect("piped"));
        let found = lines.find_map(|line| {
            line.split_whitespace().find(|word| word.starts_with(scheme)).map(str::to_owned)
        });
        Self { child, address: found.expect("an address"), _errors: lines }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_elsewhere_is_driven_the_same_way() {
    let Some(pane) = pane(120, 24) else { return };
    let token = pane.place.file("token", "a token that nobody guesses, and long enough");
    let flags = ["-c", "model_provider=offline", "--ws-auth", "capability-token", "--ws-token-file", &token];
    let arguments = [&["app-server", "--listen", "ws://127.0.0.1:0"], flags.as_slice()].concat();
    let server = Elsewhere::start(&pane.place, "ws://", &arguments);
    pane.oarlock(&format!("--remote {}", server.address));
    pane.wait("ended 1");
    pane.oarlock(&format!("--remote {} --ws-token-file {token} --cd .", server.address));
    pane.wait("/help");
    pane.line("say over there");
    pane.wait("Offline model: over there");
    pane.leave();
    assert!(pane.transcript().contains("oarlock resume --remote ws://"), "{}", pane.transcript());
}

#[test]
fn a_question_of_a_host_waits_for_whoever_comes_back() {
    let Some(pane) = pane(120, 24) else { return };
    let flags = ["-c", "model_provider=offline", "-c", "allow_login_shell=false"];
    let host = Elsewhere::start(&pane.place, "unix://", &[&["host"], flags.as_slice()].concat());
    pane.oarlock(&format!(
        "--remote {} --cd . --approvals untrusted --sandbox workspace-write",
        host.address
    ));
    pane.wait("/help");
    pane.line("run touch made");
    pane.wait("y yes");
    pane.key("C-c");
    pane.wait("the turn goes on without you");
    pane.key("C-c");
    pane.wait("ended 0");
    pane.oarlock(&format!("resume --remote {} --last", host.address));
    pane.wait("y yes");
    assert!(!pane.place.folder().join("made").exists());
    pane.decide("y");
    pane.wait("took");
    assert!(pane.place.folder().join("made").exists(), "{}", pane.transcript());
    pane.leave();
}

#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let Some(pane) = pane(80, 24) else { return };
    pane.line(&format!("TERM=dumb \"$PATH_OF_BINARY\" --provider offline {QUIET}; echo \"ended $?\""));
    pane.wait("/help");
    pane.line("say hello");
    pane.wait("Offline model: hello");
    pane.line("/quit");
    let screen = pane.wait("ended 0");
    assert!(screen.is_ascii(), "{screen}");
}

#[test]
fn without_a_terminal_help_is_printed() {
    let place = Place::new();
    let ran = place.run(&[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("Usage: oarlock") && ran.out.is_empty(), "{ran:?}");
    let ran = place.run(&["say hello"]).bad();
    assert!(ran.err.contains("needs a terminal"), "{ran:?}");
    let ran = place.run(&["exce"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no command `exce`; did you mean `exec`?"), "{ran:?}");
    let ran = place.run(&["exce", "say hello"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no command `exce`; did you mean `exec`?"), "{ran:?}");
    let ran = place.run(&["exec", "say", "hello"]);
    assert!(ran.code == Some(2) && ran.err.contains("unexpected argument 'hello'"), "{ran:?}");
    assert!(!place.home().exists(), "nothing was made");
}

/// As long as the folder of a test, so that every line breaks where it would.
const SHOWN_FOLDER: &str = "/home/me/the-project";

const SHOWN_THREAD: &str = "01a1e1a1-feec-7000-80ad-c975e4b244a3";

/// A screen with times and folders as they are in every run.
fn steady(screen: &str, folder: &str) -> String {
    assert_eq!(folder.len(), SHOWN_FOLDER.len(), "{folder}");
    let mut steady = screen.replace(folder, SHOWN_FOLDER);
    let is_id = |word: &&str| {
        word.len() >= 13 && word.starts_with('0') && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    for id in screen.split([' ', '\n', ',']).filter(is_id) {
        steady = steady.replace(id, &SHOWN_THREAD[..id.len()]);
    }
    steady
}

/// With every number the same.
fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        let is_number = c.is_ascii_digit() || (c == '.' && plain.ends_with('0'));
        match is_number {
            true if plain.ends_with('0') => {}
            true => plain.push('0'),
            false => plain.push(c),
        }
    }
    plain.replace("0 ms", "0 s")
}

/// The screen is in docs/command-line.md under this name. `UPDATE_SCREENS=1` writes it there.
#[track_caller]
fn is_in_the_document(name: &str, screen: &str) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md");
    let document = fs::read_to_string(path).expect("the document");
    let (open, close) = (format!("<!-- screen: {name} -->\n"), "<!-- end of screen -->\n");
    let (before, rest) = document.split_once(&open).unwrap_or_else(|| panic!("{path} has no {open}"));
    let (block, after) = rest.split_once(close).expect("the end of a screen");
    let fresh = format!("```text\n{screen}\n```\n");
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        fs::write(path, format!("{before}{open}{fresh}{close}{after}")).expect("written");
        return;
    }
    assert_eq!(
        without_numbers(block),
        without_numbers(&fresh),
        "{name}: UPDATE_SCREENS=1 writes {path} anew"
    );
}

/// A small program with a mistake, and its test.
fn greeting() -> Place {
    let place = Place::new();
    fs::write(place.folder().join("greet.sh"), "# Greets whoever is named.\necho \"Helo, ${1:-world}!\"\n")
        .expect("written");
    let test = "greeting=$(sh greet.sh Ada)\n[ \"$greeting\" = \"Hello, Ada!\" ] && echo \"ok: $greeting\"\n";
    fs::write(place.folder().join("test.sh"), test).expect("written");
    place
}

#[test]
fn the_screens_of_exec_are_what_is_seen() {
    let place = greeting();
    let folder = place.folder().to_string_lossy().into_owned();
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    let slow = "for name in first_line last_line; do echo \"test parser::$name ... ok\"; done; sleep 6";
    pane.oarlock(&format!("exec --provider offline {QUIET} 'run {slow}'"));
    let running = pane.wait_until("a tail", |screen| {
        screen.contains("│ test parser::last_line ... ok") && screen.contains("working")
    });
    is_in_the_document("exec-running", &steady(&running, &folder));
    pane.key("C-c");
    pane.wait("ended 130");
    pane.oarlock(&format!(
        "exec --provider offline {QUIET} -s workspace-write 'run sh test.sh, then replace Helo with Hello in greet.sh, then run sh test.sh'"
    ));
    let over = pane.wait("ended 0");
    is_in_the_document(
        "exec-over",
        &steady(over.split("ended 0").next().unwrap_or_default().trim_end(), &folder),
    );
}

#[test]
fn a_thread_keeps_its_sandbox_and_its_approvals() {
    let Some(pane) = pane(100, 30) else { return };
    pane.offline("--approvals untrusted --sandbox workspace-write");
    pane.line("say one");
    pane.wait("took");
    pane.leave();
    pane.oarlock(&format!("resume --last {QUIET}"));
    let resumed = pane.wait("going on with");
    assert!(resumed.contains("sandbox workspace-write, approvals untrusted"), "{resumed}");
    pane.leave();
    pane.oarlock(&format!("exec {QUIET} resume --last 'say two'"));
    let went_on = pane.wait("ended 0");
    assert!(went_on.contains("sandbox  may write to the folder"), "{went_on}");
    assert!(
        went_on.contains("warning: this thread asks (untrusted), and nobody can be asked here"),
        "{went_on}"
    );
}

/// A parent that starts an agent, and the agent, which waits for a file.
#[derive(Debug)]
struct Delegating;

impl OfflineResponder for Delegating {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = serde_json::to_value(request.body).expect("JSON");
        let input = body["input"].to_string();
        let says = |text: &str| OfflineReply::events(vec![text_event(text), completed_event(100, 10)]);
        let calls = |name: &str, arguments: &Value| {
            OfflineReply::events(vec![call_event("call_1", name, arguments), completed_event(100, 10)])
        };
        let is_answered = input.contains("function_call_output");
        match (input.contains("find out why"), is_answered) {
            (true, false) => calls("spawn_agent", &json!({ "message": "look for the cause" })),
            (true, true) => says("An agent looks for it."),
            (false, false) => {
                let script =
                    "echo test one ... ok; until [ -e go ]; do sleep 0.1; done; echo test two ... failed";
                calls("exec_command", &json!({ "cmd": script, "yield_time_ms": 30_000 }))
            }
            (false, true) => says("The second test fails."),
        }
    }
}

#[test]
fn an_agent_is_looked_at_while_it_works() {
    let server = VendorServer::start(Wire::Responses, Arc::new(Delegating));
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    let config =
        format!("model_provider = \"mine\"\nmodel = \"mock-model\"\n{}", server.provider_table("mine"));
    fs::write(place.home().join("config.toml"), config).expect("written");
    let folder = place.folder().to_string_lossy().into_owned();
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.oarlock(&format!("{QUIET} --approvals never --sandbox workspace-write"));
    pane.wait("/help");
    pane.line("find out why");
    pane.wait("An agent looks for it.");
    pane.wait("• agent ");
    pane.line("/agents");
    pane.wait("Look at which agent?");
    pane.key("1");
    let looking = pane.wait_until("the agent's command", |screen| {
        screen.contains("│ test one ... ok") && screen.contains("Esc goes back")
    });
    is_in_the_document("agent", &steady(&looking, &folder));
    fs::write(pane.place.folder().join("go"), "").expect("written");
    pane.wait("The second test fails.");
    pane.wait("the agent has ended its turn");
    pane.key("Escape");
    pane.wait("back in the thread");
    pane.leave();
}

#[test]
fn the_screens_of_the_document_are_what_is_seen() {
    let place = greeting();
    let folder = place.folder().to_string_lossy().into_owned();
    let Some(pane) = Pane::open(place, 80, 24) else { return };
    pane.offline("--approvals untrusted --sandbox workspace-write");
    pane.line(
        "plan: correct it; test it\nreplace Helo with Hello in greet.sh, then run sh test.sh, then sum up",
    );
    let patch =
        pane.wait_until("a patch", |screen| screen.contains("May these files") && screen.contains("y yes"));
    is_in_the_document("patch", &steady(&patch, &folder));
    pane.decide("y");
    let command = pane
        .wait_until("a command", |screen| screen.contains("May this command") && screen.contains("y yes"));
    is_in_the_document("command", &steady(&command, &folder));
    pane.decide("y");
    let over = pane.wait_until("the end", |screen| screen.contains("took") && !screen.contains("working"));
    is_in_the_document("over", &steady(&over, &folder));
    pane.text("/");
    pane.wait("/model");
    is_in_the_document("commands", &steady(&pane.screen(), &folder));
    pane.leave();
}
