//! Which crate may use which. The code map and the picture in ARCHITECTURE.md are made from this table and from the
//! `description` in each crate's Cargo.toml, one sentence that says what the crate owns.
//!
//! A new crate is a new row `("name", &["every", "crate", "it", "may", "use"])`, a line in `ANYTHING`, and
//! `cargo xtask generate`. A row may stand here before its crate exists.

use anyhow::Result;

use crate::Problems;
use crate::workspace::{Kind, Metadata, Package};

/// Folder names. Whatever a row does not name, that crate must not depend on.
pub(crate) const MAY_USE: &[(&str, &[&str])] = &[
    ("protocol-macros", &[]),
    ("protocol", &["protocol-macros"]),
    ("protocol-export", &["protocol"]),
    ("broken-input", &[]),
    ("support", &[]),
    ("rpc", &[]),
    ("names", &[]),
    ("patch", &["names"]),
    ("workspace", &["protocol"]),
    ("policy", &["support", "protocol", "names"]),
    ("sandbox", &["protocol", "names"]),
    ("model", &["protocol"]),
    ("http", &[]),
    ("traces", &["support", "http"]),
    ("wires", &["model"]),
    ("model-http", &["model", "wires", "http"]),
    ("journal", &["protocol", "model"]),
    ("engine", &["protocol", "model", "policy"]),
    ("store", &["support", "protocol"]),
    ("task", &["protocol", "store"]),
    ("placements", &["support", "protocol"]),
    ("catalogue", &["protocol", "engine", "workspace"]),
    ("environments", &["protocol", "engine", "sandbox"]),
    ("tools", &["support", "protocol", "workspace", "engine", "patch", "policy", "sandbox"]),
    ("config", &["protocol", "workspace", "policy", "sandbox"]),
    ("plugins", &["support", "protocol", "config", "workspace"]),
    ("skills", &["support", "protocol", "config", "plugins", "engine", "workspace"]),
    ("command-exec", &["support", "protocol", "workspace", "config", "sandbox"]),
    ("hooks", &["support", "protocol", "config", "engine", "sandbox"]),
    ("delegation", &["support", "protocol", "model", "engine", "journal", "config", "tools", "catalogue"]),
    ("realtime", &["protocol", "http"]),
    ("accounts", &["protocol", "http", "config"]),
    ("memories", &["support", "protocol", "model", "journal", "config"]),
    ("mcp", &["support", "protocol", "http", "sandbox", "engine", "config", "tools"]),
    (
        "driver",
        &[
            "support",
            "protocol",
            "workspace",
            "sandbox",
            "model",
            "journal",
            "engine",
            "catalogue",
            "environments",
            "tools",
            "config",
            "skills",
            "hooks",
            "delegation",
            "memories",
            "traces",
        ],
    ),
    (
        "runtime",
        &[
            "support",
            "protocol",
            "workspace",
            "patch",
            "policy",
            "sandbox",
            "model",
            "http",
            "model-http",
            "journal",
            "engine",
            "catalogue",
            "environments",
            "tools",
            "config",
            "plugins",
            "skills",
            "command-exec",
            "hooks",
            "delegation",
            "accounts",
            "realtime",
            "mcp",
            "memories",
            "traces",
            "driver",
        ],
    ),
    ("core-api", &["runtime"]),
    ("thread-manager-sample", &["core-api"]),
    ("runtime-link", &["protocol", "rpc", "traces", "placements"]),
    ("host-limits", &["protocol", "store", "task", "config"]),
    (
        "host",
        &[
            "support",
            "protocol",
            "rpc",
            "runtime-link",
            "host-limits",
            "store",
            "task",
            "placements",
            "model",
            "model-http",
            "journal",
            "traces",
        ],
    ),
    ("console", &[]),
    ("access", &["support", "protocol"]),
    ("transport", &["console", "access"]),
    ("server", &["protocol", "rpc", "runtime", "host", "access", "traces", "transport"]),
    ("responses-bridge", &["model-http", "http", "access", "server"]),
    ("mcp-server", &["core-api", "runtime"]),
    ("terminal", &["protocol", "rpc", "names"]),
    ("turn-view", &["protocol", "policy", "terminal"]),
    ("service", &["turn-view"]),
    ("testkit", ANYTHING),
    ("cli", ANYTHING),
    ("bench", &["protocol", "engine"]),
    ("xtask", &["protocol", "protocol-export"]),
];

/// The crates that a program or a test kit may build on. The macros stay behind `protocol`, `xtask` behind nobody.
pub(crate) const ANYTHING: &[&str] = &[
    "protocol",
    "protocol-export",
    "support",
    "workspace",
    "rpc",
    "names",
    "patch",
    "policy",
    "sandbox",
    "model",
    "wires",
    "http",
    "traces",
    "model-http",
    "journal",
    "engine",
    "catalogue",
    "environments",
    "tools",
    "config",
    "placements",
    "plugins",
    "skills",
    "command-exec",
    "hooks",
    "delegation",
    "accounts",
    "realtime",
    "mcp",
    "memories",
    "driver",
    "runtime",
    "core-api",
    "store",
    "task",
    "runtime-link",
    "host-limits",
    "host",
    "console",
    "access",
    "transport",
    "server",
    "responses-bridge",
    "mcp-server",
    "terminal",
    "turn-view",
    "service",
    "testkit",
    "cli",
];

/// Tests of any crate may use these: the kit, broken inputs, and the crate with the scripted model.
const FOR_TESTS: &[&str] = &["testkit", "broken-input", "model-http"];

/// Packages are named after their folder, with this in front.
const PREFIX: &str = "oarlock-";

/// A crate of the workspace and the crates of the workspace it depends on.
#[derive(Debug)]
struct Crate {
    name: String,
    folder: String,
    uses: Vec<Use>,
}

#[derive(Debug)]
struct Use {
    name: String,
    in_tests: bool,
}

pub(crate) fn check() -> Result<Problems> {
    Ok(violations(&graph(&Metadata::members_only()?), MAY_USE))
}

fn graph(metadata: &Metadata) -> Vec<Crate> {
    let members: Vec<&Package> = metadata.members().collect();
    let is_member = |name: &str| members.iter().any(|member| member.name == name);
    let to_crate = |package: &&Package| Crate {
        name: short(&package.name),
        folder: folder(package),
        uses: package
            .dependencies
            .iter()
            .filter(|dependency| is_member(&dependency.name))
            .map(|dependency| Use {
                name: short(&dependency.name),
                in_tests: dependency.kind == Some(Kind::Dev),
            })
            .collect(),
    };
    members.iter().map(to_crate).collect()
}

pub(crate) fn short(package: &str) -> String {
    package.strip_prefix(PREFIX).unwrap_or(package).to_owned()
}

fn folder(package: &Package) -> String {
    let folder = package.manifest_path.parent().and_then(|folder| folder.file_name());
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The rule: every crate has a row and is named after its folder, and every arrow is in its row.
fn violations(graph: &[Crate], table: &[(&str, &[&str])]) -> Problems {
    let mut problems = Vec::new();
    for Crate { name, folder, uses } in graph {
        if name != folder {
            problems.push(format!("crate `{name}` lies in a folder named `{folder}`: give both one name"));
        }
        let Some((_, allowed)) = table.iter().find(|(row, _)| row == name) else {
            problems.push(format!("crate `{name}` has no row in MAY_USE of xtask/src/layers.rs"));
            continue;
        };
        for used in uses {
            let used_name = used.name.as_str();
            // A crate may ask for a feature of its own in its tests.
            let in_tests = used.in_tests && (FOR_TESTS.contains(&used_name) || used_name == name);
            let is_allowed = allowed.contains(&used_name) || in_tests;
            if !is_allowed {
                let place = if used.in_tests { " in its tests" } else { "" };
                problems.push(format!(
                    "crate `{name}` uses `{}`{place}: its row in MAY_USE of xtask/src/layers.rs does not allow that",
                    used.name
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        assert_eq!(check().unwrap(), Problems::new());
    }

    #[test]
    fn every_name_in_a_row_has_a_row() {
        let rows: Vec<&str> = MAY_USE.iter().map(|(row, _)| *row).collect();
        for (row, allowed) in MAY_USE {
            for name in *allowed {
                assert!(rows.contains(name), "the row of {row} names {name}, which has no row");
            }
        }
    }

    /// One line per crate, `name: used, ~used in tests`, against a table of three rows.
    fn check_rule(crates: &[&str]) -> Problems {
        let graph: Vec<Crate> = crates.iter().map(|line| parse(line)).collect();
        violations(
            &graph,
            &[("protocol", &[]), ("engine", &["protocol"]), ("testkit", &["protocol", "engine"])],
        )
    }

    fn parse(line: &str) -> Crate {
        let (name, uses) = line.split_once(':').unwrap();
        let uses = uses.split(',').map(str::trim).filter(|name| !name.is_empty());
        let to_use = |name: &str| Use {
            name: name.trim_start_matches('~').to_owned(),
            in_tests: name.starts_with('~'),
        };
        Crate { name: name.to_owned(), folder: name.to_owned(), uses: uses.map(to_use).collect() }
    }

    #[test]
    fn allowed_arrows_pass() {
        assert_eq!(
            check_rule(&["protocol:", "engine: protocol, ~protocol, ~testkit", "testkit: engine"]),
            Problems::new()
        );
    }

    #[test]
    fn an_arrow_outside_the_row_fails() {
        assert_eq!(
            check_rule(&["protocol: engine"]),
            ["crate `protocol` uses `engine`: its row in MAY_USE of xtask/src/layers.rs does not allow that"]
        );
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        assert_eq!(check_rule(&["engine: testkit"]).len(), 1);
    }

    #[test]
    fn tests_may_not_use_what_the_row_forbids() {
        assert_eq!(
            check_rule(&["protocol: ~engine"]),
            [
                "crate `protocol` uses `engine` in its tests: its row in MAY_USE of xtask/src/layers.rs does not allow that"
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_fails() {
        assert_eq!(
            check_rule(&["surprise: protocol"]),
            ["crate `surprise` has no row in MAY_USE of xtask/src/layers.rs"]
        );
    }

    #[test]
    fn a_crate_in_a_folder_of_another_name_fails() {
        let stray = Crate { folder: "elsewhere".to_owned(), ..parse("engine:") };
        assert_eq!(
            violations(&[stray], &[("engine", &[])]),
            ["crate `engine` lies in a folder named `elsewhere`: give both one name"]
        );
    }

    #[test]
    fn build_and_normal_dependencies_are_arrows_and_third_parties_are_not() {
        let metadata: Metadata = serde_json::from_value(serde_json::json!({
            "packages": [
                {"id": "1", "name": "oarlock-engine", "version": "0.1.0", "license": null,
                 "manifest_path": "crates/engine/Cargo.toml",
                 "dependencies": [
                     {"name": "serde", "kind": null},
                     {"name": "oarlock-protocol", "kind": null},
                     {"name": "oarlock-protocol", "kind": "build"},
                     {"name": "oarlock-protocol", "kind": "dev"}]},
                {"id": "2", "name": "oarlock-protocol", "version": "0.1.0", "license": null,
                 "manifest_path": "crates/protocol/Cargo.toml", "dependencies": []}
            ],
            "workspace_members": ["1", "2"]
        }))
        .unwrap();
        let graph = graph(&metadata);
        let in_tests: Vec<bool> = graph[0].uses.iter().map(|used| used.in_tests).collect();
        assert_eq!((graph[0].name.as_str(), graph[0].folder.as_str()), ("engine", "engine"));
        assert_eq!(in_tests, [false, false, true]);
    }
}
