//! `plugin/*` end to end: a marketplace in a project, its plugin in a thread.

mod install;
mod list;
mod read;
mod uninstall;

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::Stage;

/// The file of a marketplace `m` in the project, with the plugins `p` (skills, a server, an app) and `closed`.
pub(crate) fn marketplace(stage: &Stage) -> PathBuf {
    let write = |path: &str, text: &str| {
        let path = stage.cwd().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, text).expect("written");
        path
    };
    let server = format!("{}/tests/methods/mcp/server.py", env!("CARGO_MANIFEST_DIR"));
    let servers =
        json!({"mcpServers": {"t": {"type": "stdio", "command": "python3", "args": [server, "plain"]}}});
    let manifest = json!({"name": "p", "description": "first", "interface": {
        "displayName": "P", "logo": "./assets/l.png", "defaultPrompt": "try it", "websiteURL": "https://p.example",
    }});
    write("plugins/p/.codex-plugin/plugin.json", &manifest.to_string());
    write("plugins/p/skills/one/SKILL.md", "---\nname: one\ndescription: does one\n---\nThe body of one.\n");
    write("plugins/p/.mcp.json", &servers.to_string());
    write("plugins/p/.app.json", r#"{"apps": {"calendar": {"id": "connector_1"}}}"#);
    let local = |name: &str, policy: Value| {
        json!({"name": name, "source": {"source": "local", "path": format!("./plugins/{name}")}, "policy": policy,
               "category": "Work"})
    };
    let file = json!({"name": "m", "interface": {"displayName": "Market"}, "plugins": [
        local("p", json!({"installation": "AVAILABLE", "authentication": "ON_USE"})),
        local("closed", json!({"installation": "NOT_AVAILABLE"})),
        local("elsewhere", json!({"products": ["ANOTHER"]})),
        local("empty", json!({})),
    ]});
    write(".agents/plugins/marketplace.json", &file.to_string())
}
