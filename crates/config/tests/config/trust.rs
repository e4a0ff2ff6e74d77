use crate::support::{Machine, json};

fn decided(path: &str, level: &str) -> String {
    format!("[projects.\"{path}\"]\ntrust_level = \"{level}\"\n")
}

fn reviewed(settings: &str, digest: &str) -> String {
    format!("{}[projects.\"$/repo\".reviewed]\n\"{settings}\" = \"{digest}\"\n", decided("$/repo", "trusted"))
}

#[test]
fn only_a_trusted_project_has_a_say() {
    let cases = [
        ("", "", "not decided"),
        ("$/repo", "trusted", "the project root"),
        ("$/repo/a", "trusted", "the folder itself"),
        ("$/repo", "untrusted", "decided against"),
        ("$/elsewhere", "trusted", "another project"),
    ];
    for (path, level, why) in cases {
        let config = if path.is_empty() { String::new() } else { decided(path, level) };
        let machine = Machine::with(&config)
            .dir("repo/.git")
            .dir("repo/a/b")
            .file("repo/a/.codex/config.toml", "model = \"project\"")
            .cwd("repo/a/b");
        let is_trusted = level == "trusted" && path.starts_with("$/repo");
        assert_eq!(machine.model() == "project", is_trusted, "{why}");
        let config = machine.load();
        let layer = config.layers.last().expect("a project layer");
        assert_eq!(layer.is_enabled(), is_trusted, "{why}");
        let startup = machine.loader().startup(machine.cwd_path().as_deref());
        assert_eq!(startup.warnings.len(), usize::from(!is_trusted), "{why}");
        if let Some(warning) = startup.warnings.first() {
            let details = machine.plain(warning.details.as_deref().expect("details"));
            assert!(details.contains("$/repo/a is not a trusted project"), "{details}");
            assert!(details.contains("$/base/config.toml"), "{details}");
            assert!(details.contains("[projects.\"$/repo\"]"), "{details}");
        }
    }
}

#[test]
fn rules_of_a_project_are_read_only_when_trusted_and_allow_only_when_reviewed() {
    for (path, level) in [("$/repo", "trusted"), ("$/repo", "untrusted"), ("$/elsewhere", "trusted")] {
        let is_trusted = (path, level) == ("$/repo", "trusted");
        let machine = Machine::with(&decided(path, level))
            .dir("repo/.git")
            .file("repo/.codex/rules/own.rules", "prefix_rule(pattern=[\"make\"])\n")
            .cwd("repo");
        let config = machine.load();
        let folders = config.rule_folders();
        assert!(!folders.iter().any(|folder| folder.ends_with("repo/.codex")), "{folders:?}");
        assert!(folders.contains(&config.home.state().to_owned()), "{folders:?}");
        assert_eq!(config.project_rules.len(), usize::from(is_trusted));
        if let Some(rule) = config.project_rules.first() {
            assert!(rule.text.is_ok() && rule.accept.is_some(), "{rule:?}");
            let reviewed =
                machine.file("base/config.toml", &reviewed("$/repo/.codex", &config.reviews[0].digest));
            assert_eq!(reviewed.load().project_rules[0].accept, None);
            // Another rule is another content.
            let machine = reviewed.file("repo/.codex/rules/more.rules", "prefix_rule(pattern=[\"rm\"])\n");
            assert!(machine.load().project_rules.iter().all(|rule| rule.accept.is_some()));
        }
    }
}

#[test]
fn a_project_cannot_trust_itself() {
    let machine = Machine::new()
        .dir("repo/.git")
        .file("repo/.codex/config.toml", &format!("model = \"x\"\n{}", decided("$/repo", "trusted")))
        .cwd("repo");
    assert_eq!(machine.model(), "");
}

#[test]
fn defaults_depend_on_trust() {
    let cases = [
        ("trusted", "workspace-write", "on-request"),
        ("untrusted", "workspace-write", "untrusted"),
        ("", "read-only", "on-request"),
    ];
    for (level, sandbox, approval) in cases {
        let config = if level.is_empty() { String::new() } else { decided("$/repo", level) };
        let machine = Machine::with(&config).dir("repo/.git").dir("repo/a").cwd("repo/a");
        let permissions = machine.load().permissions;
        assert_eq!(json(permissions.sandbox_mode), sandbox, "{level}");
        assert_eq!(json(&permissions.approval_policy), approval, "{level}");
        // An explicit value stays.
        let permissions =
            machine.flag("sandbox_mode=danger-full-access").flag("approval_policy=never").load().permissions;
        assert_eq!(json(permissions.sandbox_mode), "danger-full-access");
        assert_eq!(json(&permissions.approval_policy), "never");
    }
}

#[test]
fn a_worktree_is_trusted_with_its_repository() {
    let worktree = || {
        Machine::with(&decided("$/main", "trusted"))
            .file("main/.git/worktrees/w/commondir", "../..\n")
            .file("tree/.git", "gitdir: $/main/.git/worktrees/w\n")
            .file("tree/.codex/config.toml", "model = \"worktree\"")
            .cwd("tree")
    };
    let machine = worktree().file("main/.git/worktrees/w/gitdir", "$/tree/.git\n");
    assert_eq!(machine.model(), "worktree");
    assert_eq!(json(machine.load().permissions.sandbox_mode), "workspace-write");
    // A folder that only claims to be a worktree gets nothing.
    let machine = worktree().file("main/.git/worktrees/w/gitdir", "$/other/.git\n");
    assert_eq!(machine.model(), "");
}

#[test]
fn markers_find_the_project_root() {
    let project = |markers: &str| {
        Machine::with(&format!("{markers}\n{}", decided("$/repo", "trusted")))
            .dir("repo/.git")
            .file("repo/.codex/config.toml", "model = \"root\"\nproject_root_markers = []")
            .file("repo/a/.mark", "")
            .file("repo/a/.codex/config.toml", "review_model = \"a\"")
            .dir("repo/a/b")
            .cwd("repo/a/b")
    };
    let layers = |markers: &str| {
        let config = project(markers).load();
        (config.layers.len() - 2, config.project_docs.root_markers)
    };
    assert_eq!(layers(""), (2, vec![".git".to_owned()]));
    assert_eq!(layers("project_root_markers = [\".mark\"]"), (1, vec![".mark".to_owned()]));
    assert_eq!(layers("project_root_markers = []"), (0, vec![]));
    assert_eq!(layers("project_root_markers = [\"nowhere\"]").0, 0);
}

#[test]
fn a_folder_without_settings_is_never_disabled_and_the_home_is_no_project() {
    let machine = Machine::new().dir("repo/.git").dir("repo/.codex/skills").cwd("repo");
    let config = machine.load();
    assert_eq!(config.layers.len(), 3);
    assert!(config.layers.iter().all(oarlock_config::SettingsLayer::is_enabled));
    assert_eq!(config.layers[2].folder, Some(machine.path("repo/.codex")));

    let machine = Machine::new().dir("u/.git").file("u/.codex/config.toml", "model = \"user\"");
    let home = oarlock_config::Home::at(machine.path("u/.codex"));
    let loader = oarlock_config::Loader::new(
        home,
        Vec::new(),
        oarlock_config::LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            environment: machine.env(),
        },
    );
    let request = oarlock_config::LoadRequest { cwd: Some(machine.path("u")), ..Default::default() };
    assert_eq!(loader.load(&request).expect("a configuration").layers.len(), 1);
}

#[test]
fn a_broken_project_file_counts_only_when_trusted() {
    let broken = |level: &str| {
        Machine::with(&decided("$/repo", level)).file("repo/.codex/config.toml", "model = ").cwd("repo")
    };
    assert!(broken("trusted").error().starts_with("$/repo/.codex/config.toml:1:9: "));
    let config = broken("untrusted").load();
    assert!(config.layers[2].table.is_empty() && !config.layers[2].is_enabled());
}
