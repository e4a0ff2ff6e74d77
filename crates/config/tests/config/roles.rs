use std::collections::BTreeMap;

use oarlock_config::AgentRole;
use serde_json::json;

use crate::support::Machine;

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn every_other_table_of_agents_is_a_role() {
    let machine = Machine::with(
        r#"
        [agents]
        max_threads = 2
        max_depth = 3
        job_max_runtime_seconds = 60
        [agents.tester]
        description = "to test."
        config_file = "roles/tester.toml"
        nickname_candidates = ["Ann", " Bob "]
        [agents.plain]
        [agents."with space"]
        config_file = "/etc/role.toml"
        color = "unknown keys are left alone"
    "#,
    );
    let agents = machine.load().agents;
    assert_eq!((agents.max_threads, agents.max_depth, agents.job_max_runtime_seconds), (2, 3, Some(60)));
    let tester = AgentRole {
        description: Some("to test.".to_owned()),
        config_file: Some(machine.path("base/roles/tester.toml")),
        nicknames: owned(&["Ann", "Bob"]),
        project: None,
    };
    let spaced = AgentRole { config_file: Some("/etc/role.toml".into()), ..AgentRole::default() };
    let expected = [("tester", tester), ("plain", AgentRole::default()), ("with space", spaced)];
    assert_eq!(agents.roles, BTreeMap::from(expected.map(|(name, role)| (name.to_owned(), role))));
    assert!(Machine::new().load().agents.roles.is_empty());
}

#[test]
fn a_file_is_looked_for_beside_the_one_that_names_it() {
    let machine = Machine::with(
        "[projects.\"$/repo\"]\ntrust_level = \"trusted\"\n\
         [agents.a]\nconfig_file = \"a.toml\"\ndescription = \"the user's\"",
    )
    .file(
        "repo/.codex/config.toml",
        "[agents.a]\nconfig_file = \"../a.toml\"\n[agents.b]\nconfig_file = \"b.toml\"",
    )
    .cwd("repo");
    let roles = machine.load().agents.roles;
    assert_eq!(roles["a"].config_file, Some(machine.path("repo/a.toml")));
    assert_eq!(roles["a"].description.as_deref(), Some("the user's"));
    assert_eq!(roles["b"].config_file, Some(machine.path("repo/.codex/b.toml")));
    let home = Machine::with("[agents.a]\nconfig_file = \"~/a.toml\"").variable("HOME", "/users/u");
    assert_eq!(home.load().agents.roles["a"].config_file, Some("/users/u/a.toml".into()));
}

#[test]
fn what_is_wrong_with_a_role_is_said_with_its_name() {
    for (text, expected) in [
        ("[agents]\ntester = 5", "agents.tester: invalid type: integer `5`, expected a table"),
        (
            "[agents.tester]\ndescription = 5",
            "agents.tester: invalid type: integer `5`, expected a string in `description`",
        ),
        ("[agents.tester]\nconfig_file = []", "agents.tester: invalid type: sequence"),
        (
            "[agents.tester]\nconfig_file = \"\"",
            "agents.tester: config_file is empty: name the file of the role, or leave config_file out",
        ),
        ("[agents.tester]\nnickname_candidates = \"Ann\"", "agents.tester: invalid type: string"),
        (
            "[agents.tester]\nnickname_candidates = [\"Ann\", \" \"]",
            "agents.tester: nickname_candidates has ` `, which is empty or there twice",
        ),
        (
            "[agents.tester]\nnickname_candidates = [\"Ann\", \"Bob\", \" Ann\"]",
            "agents.tester: nickname_candidates has ` Ann`, which is empty or there twice",
        ),
        ("[agents]\nmax_depth = 0", "agents.max_depth must be at least 1"),
        ("[agents]\njob_max_runtime_seconds = -1", "agents.job_max_runtime_seconds must be at least 1"),
    ] {
        let error = Machine::with(text).error();
        assert!(error.starts_with(expected), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn the_keys_of_a_roles_file_are_read_as_those_of_any_other() {
    let machine = Machine::new().file(
        "roles/tester.toml",
        "model = \"small\"\nmodel_instructions_file = \"tester.md\"\n[tools]\nview_image = false",
    );
    let keys = machine.loader().keys_of_role(&role(machine.path("roles/tester.toml"))).expect("keys");
    let expected = [
        ("model", json!("small")),
        ("model_instructions_file", json!(machine.path("roles/tester.md"))),
        ("tools", json!({"view_image": false})),
    ];
    assert_eq!(keys, BTreeMap::from(expected.map(|(key, value)| (key.to_owned(), value))));
}

#[test]
fn a_role_of_a_project_names_no_file_outside_of_it() {
    let text = r#"
        model = "small"
        model_instructions_file = "tester.md"
        experimental_compact_prompt_file = "$/secret"
        profile = "p"
        model_provider = "theirs"
        [profiles.p]
        model_instructions_file = "$/secret"
        [mcp_servers.x]
        command = "planted"
    "#;
    let machine = Machine::new().file("secret", "key").file("w/roles/tester.toml", text);
    let mut role = role(machine.path("w/roles/tester.toml"));
    role.project = Some(machine.path("w"));
    let keys = machine.loader().keys_of_role(&role).expect("keys");
    let expected =
        [("model", json!("small")), ("model_instructions_file", json!(machine.path("w/roles/tester.md")))];
    assert_eq!(keys, BTreeMap::from(expected.map(|(key, value)| (key.to_owned(), value))));
}

#[test]
fn a_roles_file_that_cannot_be_read_is_named() {
    let machine = Machine::new().file("bad.toml", "model = ").file("number.toml", "model = 5");
    for (file, expected) in
        [("none.toml", "there is no file $/none.toml"), ("bad.toml", "$/bad.toml:1:9: "), ("number.toml", "")]
    {
        let keys = machine.loader().keys_of_role(&role(machine.path(file)));
        match expected {
            // Whether a value fits is seen when it is used.
            "" => assert_eq!(keys.expect("a table")["model"], 5),
            expected => {
                let error = machine.plain(keys.expect_err("an error"));
                assert!(error.starts_with(expected), "{file}: {error}");
            }
        }
    }
}

fn role(file: std::path::PathBuf) -> oarlock_config::AgentRole {
    oarlock_config::AgentRole { config_file: Some(file), ..oarlock_config::AgentRole::default() }
}
