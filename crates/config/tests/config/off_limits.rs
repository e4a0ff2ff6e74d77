use std::path::Path;

use oarlock_config::ResolvedConfig;

use crate::support::Machine;

/// A person with a few credentials.
fn machine(config: &str) -> Machine {
    Machine::with(config).dir("u/.ssh").dir("u/.config/gh").dir("w").variable("HOME", "$/u").cwd("w")
}

fn load(mut machine: Machine) -> (Machine, ResolvedConfig) {
    let home = machine.text("$/u");
    machine.variables.insert("HOME".to_owned(), home);
    let config = machine.load();
    (machine, config)
}

fn hides(machine: &Machine, config: &ResolvedConfig, path: &str) -> bool {
    let (limits, path) = (config.off_limits(), machine.path(path));
    let holds = |list: &[std::path::PathBuf]| list.iter().any(|place| path.starts_with(place));
    holds(&limits.hidden()) && !holds(&limits.shown)
}

#[test]
fn our_homes_and_credentials_are_off_limits() {
    let (machine, config) = load(machine(""));
    for path in [
        "base/config.toml",
        "base/rules/default.rules",
        "base/threads/x",
        "base/anything-new",
        "u/.codex/auth.json",
        "u/.oarlock/credentials.json",
        "u/.ssh/id_ed25519",
        "u/.config/gh/hosts.yml",
        "u/.npmrc",
        "u/.bash_history",
        "u/.local/state/bash/history",
        "u/.local/share/atuin/history.db",
        "u/.zsh_sessions/x.history",
        "u/.cloudflared/cert.pem",
        "u/.config/ngrok/ngrok.yml",
        "u/.tsh/keys",
        "u/.config/argocd/config",
        "u/.minikube/ca.key",
        "u/.step/secrets/root_ca_key",
        "u/.config/remmina/x.remmina",
        "u/.local/share/evolution/mail",
        "u/.config/solana/id.json",
        "u/.electrum/wallets/default_wallet",
        "u/.ollama/id_ed25519",
        "u/.config/io.datasette.llm/keys.json",
        "u/.config/opencode/opencode.json",
        "u/.cursor/mcp.json",
        "u/.config/zed/settings.json",
        "u/.zen/x/logins.json",
        "u/.var/app/app.zen_browser.zen/x",
    ] {
        assert!(hides(&machine, &config, path), "{path}");
    }
    for path in [
        "base/skills/s/run.sh",
        "base/AGENTS.md",
        "u/.gitconfig",
        "u/.cargo/config.toml",
        "u/.ollama/models/x",
        "u/.cursor/rules",
        "u/.local/share/x",
        "w/x",
    ] {
        assert!(!hides(&machine, &config, path), "{path}");
    }
}

#[test]
fn variables_that_move_credentials_are_followed() {
    let moved = machine("").variable("GNUPGHOME", "/keys/gpg").variable("XDG_CONFIG_HOME", "/settings");
    let moved = moved.variable("KUBECONFIG", "/k/one:/k/two:relative").variable("CODEX_HOME", "/their/home");
    let limits = load(moved).1.off_limits();
    for path in ["/keys/gpg", "/settings/gh", "/k/one", "/k/two"] {
        assert!(limits.credentials.iter().any(|place| place == Path::new(path)), "{path}");
    }
    assert!(limits.sealed.iter().any(|place| place == Path::new("/their/home")));
    assert!(!limits.credentials.iter().any(|place| place.is_relative() || place == Path::new("/")));
}

#[test]
fn the_user_adds_and_takes_away() {
    let text = r#"
        [sandbox]
        deny_read = ["~/secrets", "notes/private.txt"]
        allow_read = ["~/.config", "~/.ssh/known_hosts", "~/.oarlock", "base"]
        unix_sockets = ["/run/docker.sock"]
    "#;
    let (machine, config) = load(machine(text));
    for path in ["u/secrets/x", "base/notes/private.txt", "u/.ssh/id", "u/.oarlock/x", "base/config.toml"] {
        assert!(hides(&machine, &config, path), "{path}");
    }
    for path in ["u/.config/gh", "u/.ssh/known_hosts"] {
        assert!(!hides(&machine, &config, path), "{path}");
    }
    assert_eq!(config.off_limits().unix_sockets, [Path::new("/run/docker.sock")]);
}

#[test]
fn the_layer_on_top_has_the_last_word() {
    let managed = machine("[sandbox]\nallow_read = [\"~/.ssh\"]")
        .file("etc/managed_config.toml", "[sandbox]\ndeny_read = [\"~/.ssh\"]");
    let (machine, config) = load(managed);
    assert!(hides(&machine, &config, "u/.ssh/id"));
    let (machine, config) = load(self::machine("").flag("sandbox.allow_read=[\"~/.ssh\"]"));
    assert!(!hides(&machine, &config, "u/.ssh/id"));
}

#[test]
fn a_project_opens_nothing() {
    let text = "[projects.\"$/w\"]\ntrust_level = \"trusted\"";
    let project = "[sandbox]\nallow_read = [\"~/.ssh\"]\nunix_sockets = [\"/run/docker.sock\"]";
    let (machine, config) = load(machine(text).dir("w/.git").file("w/.codex/config.toml", project));
    assert!(hides(&machine, &config, "u/.ssh/id"));
    assert!(config.off_limits().unix_sockets.is_empty());
    let details = config.warnings.iter().filter_map(|warning| warning.details.as_deref());
    let warned = details.clone().any(|text| text.contains("sandbox.allow_read"));
    assert!(warned, "{:?}", config.warnings);
}

#[test]
fn a_misspelt_key_is_refused() {
    let error = machine("[sandbox]\ndeny_raed = []").try_load().expect_err("unknown").to_string();
    assert!(error.contains("deny_raed"), "{error}");
}

#[test]
fn what_links_of_our_home_lead_to_is_ours_as_well() {
    let machine = machine("").dir("w/rules").file("w/plugins/p/.mcp.json", "{}").file("w/mine.toml", "");
    for (name, target) in [
        ("hooks.json", "../w/later.json"),
        ("rules", "../w/rules"),
        ("credentials.json", "chain"),
        ("chain", "../w/mine.toml"),
        ("plugins", "../w/plugins"),
        ("auth.json", "../w/none/yet/auth.json"),
        ("AGENTS.md", "../w/none/AGENTS.md"),
    ] {
        std::os::unix::fs::symlink(target, machine.path("base").join(name)).expect("a link");
    }
    let (machine, config) = load(machine);
    let hidden = config.off_limits().hidden();
    for path in ["w/later.json", "w/rules", "w/mine.toml", "w/none/yet/auth.json"] {
        let real = machine.path("w").canonicalize().expect("there").join(path.trim_start_matches("w/"));
        assert!(hidden.contains(&real), "{path}: whoever writes it decides what runs");
    }
    assert!(!hides(&machine, &config, "w/plugins") && !hides(&machine, &config, "w/other"));
    let plugins = machine.path("w/plugins").canonicalize().expect("there");
    let instructions = plugins.with_file_name("none").join("AGENTS.md");
    let protected = config.off_limits().protected;
    assert_eq!(protected, [instructions, plugins], "commands may read it and neither write nor make it");
}
