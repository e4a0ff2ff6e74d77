use protocol::{AskForApproval, SandboxPolicy, WebSearchMode};
use serde_json::json;

use crate::support::{Machine, json};

const RULES: &str = r#"
    allowed_approval_policies = ["untrusted", "on-request"]
    allowed_sandbox_modes = ["read-only", "workspace-write", "external-sandbox"]
    allowed_web_search_modes = ["live"]
    enforce_residency = "us"
    [features]
    apps = false
    memory_tool = true
    [experimental_network]
    enabled = true
    allowed_domains = ["example.org"]
"#;

fn managed(config: &str) -> Machine {
    Machine::with(config).file("etc/requirements.toml", RULES)
}

#[test]
fn a_forbidden_value_gives_way_and_is_told() {
    let machine = managed(
        "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nweb_search = \"cached\"\n[features]\nconnectors = true",
    );
    let config = machine.load();
    assert_eq!(json(&config.permissions.approval_policy), "untrusted");
    assert_eq!(json(config.permissions.sandbox_mode), "read-only");
    assert_eq!(json(&config.permissions.sandbox_policy)["type"], "readOnly");
    assert_eq!(json(config.tools.web_search), "live");
    assert!(!config.features.enabled("apps") && config.features.enabled("memories"));
    assert_eq!(config.warnings.len(), 4);
    let details: Vec<_> = config.warnings.iter().filter_map(|warning| warning.details.as_deref()).collect();
    let details = machine.plain(details.join("\n"));
    assert!(
        details.contains(
            "approval_policy may not be `never`: $/etc/requirements.toml allows only `untrusted`, `on-request`"
        ),
        "{details}"
    );
}

#[test]
fn allowed_values_stay_and_forbidden_defaults_go_silently() {
    let config = managed(
        "approval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\nweb_search = \"disabled\"",
    )
    .load();
    assert_eq!(json(&config.permissions.approval_policy), "on-request");
    assert_eq!(json(config.permissions.sandbox_mode), "workspace-write");
    assert_eq!(json(config.tools.web_search), "disabled");
    assert!(config.warnings.is_empty());

    let config =
        Machine::new().file("etc/requirements.toml", "allowed_approval_policies = [\"never\"]").load();
    assert_eq!(json(&config.permissions.approval_policy), "never");
    assert!(config.warnings.is_empty());
}

#[test]
fn changes_of_a_running_thread_are_checked() {
    let requirements = managed("").load().requirements;
    assert!(requirements.allow_approval_policy(&AskForApproval::Untrusted).is_ok());
    assert!(requirements.allow_approval_policy(&AskForApproval::Never).is_err());
    assert!(requirements.allow_sandbox(&SandboxPolicy::DangerFullAccess).is_err());
    let external = SandboxPolicy::ExternalSandbox { network_access: Default::default() };
    assert!(requirements.allow_sandbox(&external).is_ok());
    assert!(requirements.allow_web_search(WebSearchMode::Disabled).is_ok());
    assert!(requirements.allow_web_search(WebSearchMode::Cached).is_err());
    let free = Machine::new().load().requirements;
    assert!(free.allow_sandbox(&SandboxPolicy::DangerFullAccess).is_ok());
}

#[test]
fn clients_can_read_them() {
    assert_eq!(Machine::new().load().requirements.to_wire(), None);
    let wire = json(managed("").load().requirements.to_wire());
    assert_eq!(wire["allowedApprovalPolicies"], json!(["untrusted", "on-request"]));
    assert_eq!(wire["allowedSandboxModes"], json!(["read-only", "workspace-write"]));
    assert_eq!(wire["allowedWebSearchModes"], json!(["live", "disabled"]));
    assert_eq!(wire["featureRequirements"], json!({"apps": false, "memories": true}));
    assert_eq!(wire["enforceResidency"], "us");
    assert_eq!(wire["network"]["allowedDomains"], json!(["example.org"]));
}

#[test]
fn an_older_managed_file_requires_what_it_sets() {
    let machine = Machine::new().file(
        "etc/managed_config.toml",
        "approval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"",
    );
    let wire = json(machine.load().requirements.to_wire());
    assert_eq!(wire["allowedApprovalPolicies"], json!(["untrusted"]));
    assert_eq!(wire["allowedSandboxModes"], json!(["read-only", "workspace-write"]));
    // The newer file has the first word.
    let machine = machine.file("etc/requirements.toml", "allowed_approval_policies = [\"never\"]");
    let config = machine.load();
    assert_eq!(json(&config.permissions.approval_policy), "never");
    assert_eq!(json(config.permissions.sandbox_mode), "workspace-write");
}

#[test]
fn bad_requirements_are_errors() {
    let cases = [
        ("allowed_approval_policies = []", "$/etc/requirements.toml: allowed_approval_policies must name"),
        (
            "allowed_sandbox_modes = [\"workspace-write\"]",
            "$/etc/requirements.toml: allowed_sandbox_modes must contain",
        ),
        ("[features]\nnot_a_flag = true", "$/etc/requirements.toml: unknown feature `not_a_flag`"),
        (
            "[feature_requirements]\nnot_a_flag = true",
            "$/etc/requirements.toml: unknown feature `not_a_flag`",
        ),
        ("allowed_sandbox_modes = [\"open\"]", "$/etc/requirements.toml:1:26: unknown variant `open`"),
    ];
    for (text, expected) in cases {
        let error = Machine::new().file("etc/requirements.toml", text).error();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
