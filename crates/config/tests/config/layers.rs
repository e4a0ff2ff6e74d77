use protocol::{SandboxMode, ServiceTier, TriState};
use serde_json::json;

use crate::support::{Machine, json};

const TRUST: &str = "[projects.\"$/repo\"]\ntrust_level = \"trusted\"\n";

/// Every layer sets the model, the lowest first; each one wins over those before it.
#[test]
fn a_higher_layer_wins() {
    let mut machine = Machine::new().dir("repo/.git").dir("repo/a/b").cwd("repo/a/b");
    assert_eq!(machine.model(), "");
    type Step = fn(Machine) -> Machine;
    let steps: &[(&str, Step)] = &[
        ("system", |m| m.file("etc/config.toml", "model = \"system\"")),
        ("user", |m| m.file("base/config.toml", &format!("model = \"user\"\n{TRUST}"))),
        ("root", |m| m.file("repo/.codex/config.toml", "model = \"root\"")),
        ("near", |m| m.file("repo/a/.codex/config.toml", "model = \"near\"")),
        ("flag", |m| m.flag("model=flag")),
        ("later flag", |m| m.flag("model=\"later flag\"")),
        ("request", |m| m.request("model", json!("request"))),
        ("managed", |m| m.file("etc/managed_config.toml", "model = \"managed\"")),
        ("profile", |m| {
            m.file("etc/config.toml", "model = \"system\"\n[profiles.p]\nmodel = \"profile\"").profile("p")
        }),
        ("override", |mut m| {
            m.overrides.model = Some("override".to_owned());
            m
        }),
    ];
    for (expected, step) in steps {
        machine = step(machine);
        assert_eq!(machine.model(), *expected);
    }
    let kinds: Vec<_> =
        machine.load().layers.iter().map(|layer| json(&layer.source)["type"].clone()).collect();
    assert_eq!(
        json!(kinds),
        json!(["system", "user", "project", "project", "sessionFlags", "legacyManagedConfigTomlFromFile"])
    );
}

#[test]
fn tables_merge_and_the_rest_is_replaced() {
    let machine = Machine::with(
        "notify = [\"a\", \"b\"]\n[sandbox_workspace_write]\nnetwork_access = true\n[x.y]\nz = 1",
    )
    .file(
        "etc/config.toml",
        "notify = [\"c\"]\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n[x]\ny = 2",
    )
    .flag("sandbox_mode=workspace-write");
    let config = machine.load();
    assert_eq!(config.notify, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(config.merged["x"]["y"]["z"].as_integer(), Some(1));
    assert_eq!(
        machine.plain(json(&config.permissions.sandbox_policy)),
        json!({
            "type": "workspaceWrite", "networkAccess": true, "writableRoots": ["$/base/memories"],
            "readOnlyAccess": {"type": "fullAccess"}, "excludeTmpdirEnvVar": false, "excludeSlashTmp": true,
        })
        .to_string()
    );
}

#[test]
fn files_are_read_anew_each_time() {
    let machine = Machine::with("model = \"one\"");
    let loader = machine.loader();
    let model = || loader.load(&Default::default()).expect("a configuration").model.name;
    assert_eq!(model().as_deref(), Some("one"));
    let machine = machine.file("base/config.toml", "model = \"two\"");
    assert_eq!(model().as_deref(), Some("two"));
    std::fs::remove_file(machine.path("base/config.toml")).expect("removed");
    assert_eq!(model(), None);
}

#[test]
fn paths_belong_to_the_layer_that_set_them() {
    let roots = |machine: Machine| {
        let policy = json(machine.flag("sandbox_mode=workspace-write").load().permissions.sandbox_policy);
        policy["writableRoots"].clone()
    };
    let base = || Machine::new().variable("HOME", "/base/u").dir("repo").cwd("repo");
    let key = "[sandbox_workspace_write]\nwritable_roots = [\"x\", \"~/y\", \"/z/../w\"]";
    let machine = base().file("etc/config.toml", key);
    let expected = |machine: &Machine, folder: &str| {
        json!([machine.path(folder), "/base/u/y", "/w", machine.path("base/memories")])
    };
    let wanted = expected(&machine, "etc/x");
    assert_eq!(roots(machine), wanted);
    let machine = base().file("base/config.toml", key);
    let wanted = expected(&machine, "base/x");
    assert_eq!(roots(machine), wanted);
    let machine = base().flag("sandbox_workspace_write.writable_roots=[\"x\", \"~/y\", \"/z/../w\"]");
    let wanted = expected(&machine, "repo/x");
    assert_eq!(roots(machine), wanted);
    let mut machine =
        base().request("sandbox_workspace_write", json!({"writable_roots": ["x", "~/y", "/z/../w"]}));
    machine.cwd = None;
    let wanted = expected(&machine, "base/x");
    assert_eq!(roots(machine), wanted);
}

#[test]
fn a_profile_wins_over_the_top_level_for_its_own_keys() {
    let text = r#"
        profile = "fast"
        model = "top"
        model_reasoning_effort = "low"
        model_context_window = 100
        sandbox_mode = "read-only"
        web_search = "live"
        [tools]
        view_image = false
        [features]
        undo = false
        [profiles.fast]
        model = "quick"
        model_context_window = 5
        sandbox_mode = "danger-full-access"
        approval_policy = "never"
        model_reasoning_effort = "high"
        web_search = "disabled"
        tools.view_image = true
        features.undo = true
        [profiles.slow]
        model = "careful"
    "#;
    let config = Machine::with(text).load();
    assert_eq!(config.profile.as_deref(), Some("fast"));
    assert_eq!(config.model.name.as_deref(), Some("quick"));
    assert_eq!(config.model.context_window, Some(100));
    assert_eq!(json(config.model.effort), "high");
    assert_eq!(config.permissions.sandbox_mode, SandboxMode::DangerFullAccess);
    assert_eq!(json(&config.permissions.approval_policy), "never");
    assert_eq!(json(config.tools.web_search), "disabled");
    assert_eq!(config.tools.view_image, Some(true));
    assert!(config.features.enabled("undo"));

    let config = Machine::with(text).profile("slow").load();
    assert_eq!(config.model.name.as_deref(), Some("careful"));
    assert_eq!(json(config.model.effort), "low");
    assert_eq!(config.permissions.sandbox_mode, SandboxMode::ReadOnly);
}

#[test]
fn a_sandbox_of_somebody_elses_is_known_from_the_environment_and_loosens_nothing() {
    let policy = |mode: &str, word: &str| {
        let mut machine = Machine::with(&format!("sandbox_mode = \"{mode}\""));
        machine.variables.insert("OARLOCK_EXTERNAL_SANDBOX".to_owned(), word.to_owned());
        json(&machine.load().permissions.sandbox_policy)
    };
    let outside = policy("danger-full-access", "restricted");
    assert_eq!(
        (&outside["type"], &outside["networkAccess"]),
        (&json!("externalSandbox"), &json!("restricted"))
    );
    assert_eq!(policy("danger-full-access", "else")["type"], "dangerFullAccess");
    assert_eq!(policy("read-only", "enabled")["type"], "readOnly");
}

#[test]
fn overrides_win_over_the_profile() {
    let mut machine = Machine::with(
        "profile = \"p\"\n[profiles.p]\nservice_tier = \"flex\"\nsandbox_mode = \"danger-full-access\"\npersonality = \"none\"",
    );
    let tier = |machine: &Machine| machine.load().model.service_tier;
    assert_eq!(tier(&machine), Some(ServiceTier::Flex));
    machine.overrides.service_tier = TriState::Clear;
    assert_eq!(tier(&machine), None);
    machine.overrides.service_tier = TriState::Set(ServiceTier::Fast);
    assert_eq!(tier(&machine), Some(ServiceTier::Fast));
    machine.overrides.sandbox_mode = Some(SandboxMode::ReadOnly);
    assert_eq!(machine.load().permissions.sandbox_mode, SandboxMode::ReadOnly);
    assert_eq!(json(machine.load().model.personality), "none");
    // The fast tier needs its feature.
    let machine = machine.flag("features.fast_mode=false");
    assert_eq!(tier(&machine), None);
}
