use oarlock_config::ResolvedConfig;
use policy::RuleDecision;
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
    enabled = false
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
fn rules_for_commands_come_with_the_configuration() {
    let text = r#"
        [rules]
        prefix_rules = [
            { pattern = [{ token = "git" }, { any_of = ["push", "send-pack"] }], decision = "forbidden", justification = "by CI" },
            { pattern = [{ token = "curl" }], decision = "prompt" },
        ]
    "#;
    let machine = Machine::new().file("etc/requirements.toml", text);
    let requirements = machine.load().requirements;
    let found: Vec<_> = requirements.rules.iter().map(|rule| (&rule.pattern, rule.decision)).collect();
    let words = |list: &[&[&str]]| -> Vec<Vec<String>> {
        list.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
    };
    let (push, curl) = (words(&[&["git"], &["push", "send-pack"]]), words(&[&["curl"]]));
    assert_eq!(found, [(&push, RuleDecision::Forbidden), (&curl, RuleDecision::Prompt)]);
    assert_eq!(requirements.rules[0].justification.as_deref(), Some("by CI"));
    assert_eq!(machine.plain(requirements.rules[0].source.to_string()), "$/etc/requirements.toml");
    assert!(requirements.to_wire().is_some(), "something is required");
}

#[test]
fn requests_to_openai_say_the_region_that_is_required() {
    let region = |config: &ResolvedConfig| {
        let headers = &config.provider.http_headers;
        headers.get("x-openai-internal-codex-residency").map(|region| region.reveal().to_owned())
    };
    let config = managed("model_provider = \"openai\"").load();
    assert_eq!((region(&config).as_deref(), config.warnings.len()), (Some("us"), 0));
    let config = managed("model_provider = \"ollama\"").load();
    assert_eq!(region(&config), None);
    assert!(config.warnings[0].summary.contains("enforce_residency"), "{:?}", config.warnings);
    assert_eq!(region(&Machine::new().load()), None);
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
        (
            "allowed_sandbox_mode = [\"read-only\"]",
            "$/etc/requirements.toml:1:24: unknown key `allowed_sandbox_mode`; did you mean `allowed_sandbox_modes`?",
        ),
        (
            "[experimental_network]\nenabled = false\nallowed_domain = []",
            "$/etc/requirements.toml:3:18: unknown key `allowed_domain`; did you mean `allowed_domains`?",
        ),
        (
            "[experimental_network]\nenabled = true",
            "$/etc/requirements.toml: [experimental_network] cannot be enforced",
        ),
        (
            "[experimental_network]\nallowed_domains = [\"example.org\"]",
            "$/etc/requirements.toml: [experimental_network] cannot be enforced",
        ),
        (
            "[rules]\nprefix_rules = []",
            "$/etc/requirements.toml: rules.prefix_rules must have at least one rule",
        ),
        (
            "[rules]\nprefix_rules = [{ pattern = [], decision = \"prompt\" }]",
            "$/etc/requirements.toml: pattern of rules.prefix_rules must have",
        ),
        (
            "[rules]\nprefix_rules = [{ pattern = [{ token = \"a\" }], decision = \"allow\" }]",
            "$/etc/requirements.toml: decision of rules.prefix_rules may be",
        ),
        (
            "[rules]\nprefix_rules = [{ pattern = [{ token = \"a\", any_of = [\"b\"] }], decision = \"prompt\" }]",
            "$/etc/requirements.toml: each place in a pattern",
        ),
        (
            "[rules]\nprefix_rules = [{ pattern = [{ tokn = \"a\" }], decision = \"prompt\" }]",
            "$/etc/requirements.toml:2:",
        ),
    ];
    for (text, expected) in cases {
        let error = Machine::new().file("etc/requirements.toml", text).error();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
