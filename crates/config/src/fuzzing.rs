//! Entry point for fuzzing: any bytes as the settings of a project.

use std::fs;
use std::path::Path;

use crate::{Env, Home, LoadRequest, Loader, LoaderOptions, ResolvedConfig};

/// The user's own settings; a project must not loosen them.
const OWN: &str = "sandbox_mode = \"read-only\"\napproval_policy = \"untrusted\"\n";

/// Takes any bytes as `.codex/config.toml`, and what follows a byte 1 as a rule file, of a project in `folder`, which must
/// be empty. Panics when the project gets beyond what the user's own settings say, trusted or not.
pub fn project(bytes: &[u8], folder: &Path) {
    let mut parts = bytes.splitn(2, |byte| *byte == 1);
    let (settings, rules) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let (home, project) = (folder.join("home"), folder.join("project"));
    let made = fs::create_dir_all(project.join(".codex/rules"))
        .and_then(|()| fs::create_dir_all(&home))
        .and_then(|()| fs::write(project.join(".codex/config.toml"), settings))
        .and_then(|()| fs::write(project.join(".codex/rules/a.rules"), rules));
    if made.is_err() {
        return;
    }
    for decision in ["", "trusted", "untrusted"] {
        let trust = match decision {
            "" => String::new(),
            decision => format!("[projects.{:?}]\ntrust_level = {decision:?}\n", project.to_string_lossy()),
        };
        if fs::write(home.join("config.toml"), format!("{OWN}{trust}")).is_err() {
            return;
        }
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            environment: Env::fixed([("HOME", "/nonexistent")]),
        };
        let loader = Loader::new(Home::at(home.clone()), Vec::new(), options);
        let request = LoadRequest { cwd: Some(project.clone()), ..LoadRequest::default() };
        let Ok(config) = loader.load(&request) else { continue };
        check(&config, decision == "trusted");
    }
}

fn check(config: &ResolvedConfig, is_trusted: bool) {
    use protocol::{AskForApproval, SandboxMode};
    let permissions = &config.permissions;
    assert_eq!(permissions.sandbox_mode, SandboxMode::ReadOnly, "{:?}", config.warnings);
    assert_eq!(permissions.approval_policy, AskForApproval::Untrusted, "{:?}", config.warnings);
    assert_eq!(permissions.shell_environment, Default::default(), "the environment is the user's");
    assert_eq!(
        (&config.notify, config.provider.id.as_str()),
        (&None, "openai"),
        "programs and places are the user's"
    );
    assert!(!config.features.enabled("use_legacy_landlock"), "the sandbox stays whole");
    assert!(!config.merged.contains_key("mcp_servers"), "no programs are started for a project");
    assert!(config.project_rules.iter().all(|rule| rule.accept.is_some()), "no rule allows anything");
    assert!(
        is_trusted || config.project_rules.is_empty() && config.reviews.is_empty(),
        "nothing is read of it"
    );
}
