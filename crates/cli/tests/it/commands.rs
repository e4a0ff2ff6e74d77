//! The other commands.

use std::fs;

use testkit::RunInTime;

use crate::support::{Place, Scripted, records};

#[test]
fn threads_are_listed_for_people_and_programs() {
    let place = Place::new();
    let empty = place.run(&["threads"]).good();
    assert!(empty.out.contains("No threads"), "{}", empty.out);
    let mut shared = place.command(&["threads"]);
    let output = shared.env_remove("OARLOCK_HOME").env("CODEX_HOME", place.root()).output_in_time();
    assert!(output.status.success() && !place.root().join("oarlock").exists(), "looking makes nothing");
    let ids: Vec<String> = ["one", "two", "three"]
        .map(|word| place.offline(&["--json", &format!("say {word}")]).good().thread_id())
        .into();
    let table = place.run(&["threads"]).good().out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    let column = lines[0].find("ABOUT").expect("a column");
    for (line, (id, word)) in lines[1..].iter().zip(ids.iter().zip(["one", "two", "three"]).rev()) {
        assert!(line.starts_with(id) && line.contains("offline/offline"), "{table}");
        assert!(line[column..].starts_with(&format!("say {word}")), "aligned, and newest first: {table}");
    }
    let document = place.run(&["threads", "--json", "--limit", "2"]).good().document();
    let data = document["data"].as_array().expect("a list");
    assert_eq!(data.len(), 2);
    assert_eq!((&data[0]["id"], &data[0]["model"]), (&ids[2].as_str().into(), &"offline".into()));
    let found = place.run(&["threads", "--json", "--search", "one"]).good().document();
    assert_eq!(found["data"][0]["id"], ids[0].as_str());
    for none in [&["--provider", "openai"][..], &["--archived"]] {
        let arguments = [&["threads", "--json"], none].concat();
        assert_eq!(place.run(&arguments).good().document()["data"], serde_json::json!([]), "{none:?}");
    }
    assert_eq!(place.run(&["threads", "--all", "--here"]).good().out.lines().count(), 4);
}

#[test]
fn doctor_says_what_is_missing() {
    let place = Place::new();
    let ran = place.run(&["doctor", "--json"]).bad();
    let document = ran.document();
    assert_eq!(document["ok"], false);
    let check = |document: &serde_json::Value, name: &str| {
        let checks = document["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["name"] == name).expect("the check").clone()
    };
    assert_eq!(check(&document, "provider")["status"], "problem");
    let advice = check(&document, "provider")["advice"].to_string();
    assert!(advice.contains("OPENAI_API_KEY") && advice.contains("offline"), "{advice}");
    assert_eq!(check(&document, "sandbox")["status"], "ok");
    let sandbox = &document["sandbox"];
    assert_eq!((&sandbox["strength"], &sandbox["reason"]), (&"full".into(), &serde_json::Value::Null));
    let layers = sandbox["layers"].as_array().expect("layers");
    assert!(layers.len() > 5 && layers.iter().all(|layer| layer["ok"] == true), "{sandbox}");
    assert!(document["features"].as_object().is_some_and(|features| features.contains_key("shell_tool")));

    for arguments in [
        &["doctor", "--json", "--provider", "offline"][..],
        &["-c", "model_provider=offline", "doctor", "--json"],
    ] {
        let document = place.run(arguments).good().document();
        assert_eq!(document["ok"], true, "{document}");
        assert_eq!(check(&document, "home")["status"], "ok");
    }
    let mut with_key = place.command(&["doctor", "--json", "--no-request"]);
    let output = with_key.env("OPENAI_API_KEY", "sk-very-secret").output_in_time();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !told.contains("very-secret"), "{told}");
}

#[test]
fn doctor_online_asks_the_model() {
    let place = Place::new();
    let told = place.run(&["doctor", "--online", "--provider", "offline"]).good().out;
    let line = told.lines().find(|line| line.contains("online")).expect("the check");
    assert!(line.starts_with("ok       online") && line.contains("offline answered in"), "{told}");
    let script =
        serde_json::json!([{"fail": {"status": 401, "body": {"error": {"message": "no such key"}}}}]);
    let broken = Scripted::start(&place, &script);
    let mut arguments: Vec<String> = broken.flags();
    arguments.extend(["doctor", "--online", "--json"].map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let document = place.run(&arguments).bad().document();
    let checks = document["checks"].as_array().expect("checks");
    let online = checks.iter().find(|check| check["name"] == "online").expect("it was asked");
    assert_eq!(online["status"], "problem", "{document}");
    assert!(online["summary"].as_str().is_some_and(|told| told.contains("no such key")), "{document}");
}

#[test]
fn whoever_only_looks_makes_no_home() {
    let place = Place::new();
    let homes = [place.home(), place.root().join(".oarlock")];
    for (arguments, code) in [
        (&["doctor", "--provider", "offline"][..], 0),
        (&["doctor", "--provider", "offline", "--json"], 0),
        (&["threads"], 0),
        (&["threads", "--json"], 0),
        (&["sandbox", "--", "true"], 0),
        (&["policy", "check", "--", "ls"], 0),
        (&["debug", "prompt", "--json"], 0),
    ] {
        for own in [true, false] {
            let mut command = place.command(arguments);
            if !own {
                command.env_remove("OARLOCK_HOME");
            }
            let output = command.output_in_time();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
            assert!(homes.iter().all(|home| !home.exists()), "{arguments:?}, {own}");
        }
    }
    let told = place.run(&["doctor", "--provider", "offline"]).good().out;
    let line =
        format!("ok       home      {} (not there yet; the first run makes it)\n", place.home().display());
    assert!(told.contains(&line), "{told}");
    assert_eq!(place.run(&["threads", "--json"]).good().document(), serde_json::json!({"data": []}));
}

#[test]
fn doctor_says_when_the_home_cannot_be_made() {
    let place = Place::new();
    let file = place.file("file", "");
    std::os::unix::fs::symlink(place.root().join("nowhere"), place.root().join("link")).expect("made");
    for home in [file.as_str(), &format!("{file}/home"), place.root().join("link").to_str().expect("plain")] {
        let mut command = place.command(&["doctor", "--provider", "offline"]);
        let output = command.env("OARLOCK_HOME", home).output_in_time();
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{home}: {told}");
        assert!(told.starts_with("problem  home") && told.contains(home), "{home}: {told}");
    }
    assert!(!place.root().join("nowhere").exists());
}

#[test]
fn doctor_shows_a_missing_wall_and_what_to_do() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_oarlock");
    // Within the sandbox no other one can be built, and the home of the one outside is out of reach.
    let home = format!("OARLOCK_HOME={}", place.folder().join("inner").display());
    let doctor = ["env", &home, program, "doctor", "--provider", "offline"];
    let inside = [&["sandbox", "--mode", "workspace-write", "--"][..], &doctor].concat();
    let ran = place.run(&inside).bad();
    assert!(ran.out.contains("problem  sandbox   none: sandboxed commands are refused"), "{}", ran.out);
    assert!(ran.out.contains("-> allow user namespaces"), "{}", ran.out);
    let weaker = [&inside[..], &["--json", "--enable", "use_legacy_landlock"]].concat();
    let document = place.run(&weaker).good().document();
    assert_eq!(document["sandbox"]["strength"], "landlock-only");
    assert!(document["sandbox"]["reason"].as_str().is_some_and(|why| why.contains("namespaces")));
}

#[test]
fn doctor_finds_bad_files() {
    let place = Place::new();
    place.offline(&["say one"]).good();
    let path = &records(&place.home())[0];
    let text = fs::read_to_string(path).expect("a record");
    let (head, tail) = text.split_once('\n').expect("lines");
    fs::write(path, format!("{head}\nnot a record\n{tail}")).expect("written");
    let ran = place.run(&["doctor", "--provider", "offline"]).good();
    assert!(ran.out.contains("1 of them are damaged"), "{}", ran.out);
    fs::write(place.home().join("config.toml"), "model = 5\n").expect("written");
    let ran = place.run(&["doctor"]).bad();
    assert!(ran.out.contains("problem  config") && ran.out.contains("config.toml:1:"), "{}", ran.out);
    let mut elsewhere = place.command(&["doctor"]);
    let output = elsewhere.env_remove("OARLOCK_HOME").env("CODEX_HOME", "/nowhere").output_in_time();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("CODEX_HOME"));
}

#[test]
fn mistakes_beside_the_configuration_are_told_by_the_doctor_and_before_a_turn() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("rules")).expect("made");
    let write = |name: &str, text: &str| fs::write(place.home().join(name), text).expect("written");
    write("rules/default.rules", "prefix_rul(pattern=[\"x\"])\n");
    write("hooks.json", "{\"hooks\": {\"PreToolUs\": []}}");
    write("config.toml", "[mcp_servers.lost]\ncommand = \"/no/such/program\"\n");
    let off = place.run(&["doctor", "--provider", "offline"]).bad().out;
    for told in [
        "problem  rules",
        "default.rules:1",
        "problem  mcp       lost: there is no program `/no/such/program`",
    ] {
        assert!(off.contains(told), "{told}: {off}");
    }
    let on = place.run(&["doctor", "--provider", "offline", "--enable", "codex_hooks"]).bad().out;
    assert!(
        on.contains("problem  hooks") && on.contains("`PreToolUs` is no event that hooks run at"),
        "{on}"
    );
    let ran = place.offline(&["--enable", "codex_hooks", "say hi"]).good();
    for told in [
        "warning: rules are not used",
        "`PreToolUs` is no event",
        "warning: MCP server `lost` failed to start",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    let ran = place.offline(&["--json", "say hi"]).good();
    assert!(ran.out.contains("MCP server `lost` failed to start"), "{}", ran.out);

    write("rules/default.rules", "prefix_rule(pattern=[\"true\"], decision=\"allow\")\n");
    write(
        "hooks.json",
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"true\"}]}]}}",
    );
    write("config.toml", "[mcp_servers.lost]\ncommand = \"true\"\n");
    let good = place.run(&["doctor", "--provider", "offline", "--enable", "codex_hooks"]).good().out;
    for told in [
        "ok       rules     1 can be used",
        "ok       hooks     1 can be used",
        "ok       mcp       1 can be used",
    ] {
        assert!(good.contains(told), "{told}: {good}");
    }
}

#[test]
fn shells_learn_the_commands() {
    let place = Place::new();
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef oarlock"), ("fish", "complete -c oarlock")]
    {
        let ran = place.run(&["completions", shell]).good();
        assert!(ran.out.contains(mark) && ran.out.contains("doctor"), "{shell}");
    }
    assert_eq!(place.run(&["completions", "tcsh"]).code, Some(2));
}

#[test]
fn shells_complete_names_that_only_this_machine_knows() {
    let place = Place::new();
    let thread = place.offline(&["--json", "say one"]).good().thread_id();
    place.run(&["threads", "rename", &thread, "the parser"]).good();
    fs::write(place.home().join("config.toml"), "[profiles.quick]\nmodel = \"quick-model\"\n")
        .expect("written");
    let words = |line: &[&str]| place.run(&[&["complete", "--"], line].concat()).good().out;
    assert_eq!(words(&["exec", "--provider", "off"]), "offline\n");
    assert_eq!(words(&["exec", "-p", ""]), "quick\n");
    assert!(words(&["models", "--provider", ""]).lines().count() > 3);
    assert!(words(&["exec", "-m", ""]).contains("gpt"));
    assert_eq!(words(&["resume", ""]), format!("the parser\n{thread}\n"));
    assert_eq!(words(&["exec", "resume", &thread[..6]]), format!("{thread}\n"));
    assert_eq!(words(&["exec", ""]), "");

    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_oarlock")).parent().expect("a folder");
    let script = "source <(oarlock completions bash); try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                  COMPREPLY=(); _oarlock_names oarlock \"${@: -1}\" \"${@: -2:1}\"; printf '%s|' \"${COMPREPLY[@]}\"; }; \
                  try oarlock exec --provider off; try oarlock threads show the; try oarlock doct";
    let mut command = place.command(&[]);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a path"));
    let inner = command.env("PATH", path);
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).current_dir(place.folder());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => bash.env(name, value),
            None => bash.env_remove(name),
        };
    }
    let output = bash.output_in_time();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "offline|the\\ parser|doctor|", "{output:?}");
}

#[test]
fn help_helps() {
    let place = Place::new();
    let help = place.run(&["--help"]).good().out;
    for word in [
        "exec",
        "threads",
        "app-server",
        "demo",
        "sandbox",
        "policy",
        "doctor",
        "completions",
        "OARLOCK_HOME",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let help = place.run(&["exec", "--help"]).good().out;
    for word in ["--json", "--output-schema", "--add-dir", "--provider", "resume", "Examples:"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    assert!(!help.contains("cyber"), "{help}");
    let version = place.run(&["--version"]).good().out;
    assert_eq!(version, format!("oarlock {}\n", env!("CARGO_PKG_VERSION")));
    assert!(!place.home().exists(), "help makes nothing");
}

#[test]
fn log_lines_are_asked_for_by_the_environment() {
    let place = Place::new();
    place.offline(&["say one"]).good();
    let logged = |variables: &[(&str, &str)]| {
        let store = journal::Store::open(&place.home(), journal::StoreOptions::default()).expect("a store");
        store.delete_index().expect("deleted");
        drop(store);
        let mut command = place.command(&["threads"]);
        let output = command.envs(variables.iter().copied()).output_in_time();
        assert!(output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    assert_eq!(logged(&[]), "");
    let plain = logged(&[("RUST_LOG", "info")]);
    assert!(plain.contains("INFO") && !plain.starts_with('{'), "{plain}");
    let json = logged(&[("RUST_LOG", "info"), ("LOG_FORMAT", " Json ")]);
    let levels = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["level"].clone());
    assert!(!json.is_empty() && levels.into_iter().all(|level| level == "INFO"), "{json}");
}
