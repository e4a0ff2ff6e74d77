use oarlock_config::{FEATURES, Inherit, MemoryOptions};
use protocol::{ExperimentalFeatureStage, SandboxPolicy, WebSearchMode};
use serde_json::json;

use crate::support::{Machine, json};

#[test]
fn nothing_set_means_the_defaults() {
    let machine = Machine::new();
    let config = machine.load();
    assert_eq!(config.model.name, None);
    assert_eq!(json(config.model.personality), "pragmatic");
    assert_eq!(config.provider.id, "openai");
    assert_eq!(config.project_docs.max_bytes, 32_768);
    assert_eq!(config.tools.background_terminal_max_timeout_ms, 300_000);
    assert_eq!((config.agents.max_threads, config.agents.max_depth), (6, 1));
    assert_eq!(config.permissions.shell_environment.inherit, Inherit::All);
    assert!(!config.permissions.shell_environment.ignore_default_excludes);
    assert!(config.permissions.allow_login_shell && config.feedback_enabled);
    assert_eq!(config.login.chatgpt_base_url, "https://chatgpt.com/backend-api/");
    assert!(config.warnings.is_empty());
    assert!(!machine.path("base/memories").exists());
}

#[test]
fn keys_become_values() {
    let machine = Machine::with(
        r#"
        review_model = "r"
        model_auto_compact_token_limit = 9
        tool_output_token_limit = 8
        plan_mode_reasoning_effort = "xhigh"
        model_reasoning_summary = "none"
        model_verbosity = "low"
        model_supports_reasoning_summaries = true
        model_catalog_json = "models.json"
        personality = "friendly"
        approvals_reviewer = "guardian_subagent"
        developer_instructions = "d"
        compact_prompt = " c "
        project_doc_fallback_filenames = ["A.md", " "]
        background_terminal_max_timeout = 1
        hide_agent_reasoning = true
        forced_login_method = "api"
        forced_chatgpt_workspace_id = " "
        notify = []
        [agents]
        max_threads = 2
        [agents.helper]
        description = "a role"
        [shell_environment_policy]
        inherit = "core"
        set = { A = "b" }
        [tools.web_search]
        context_size = "high"
        allowed_domains = ["example.org"]
        [feedback]
        enabled = false
    "#,
    );
    let config = machine.load();
    assert_eq!(config.model.review.as_deref(), Some("r"));
    assert_eq!(
        (config.model.auto_compact_token_limit, config.model.tool_output_token_limit),
        (Some(9), Some(8))
    );
    assert_eq!(
        json((config.model.plan_mode_effort, config.model.summary, config.model.verbosity)),
        json!(["xhigh", "none", "low"])
    );
    assert_eq!(config.model.supports_reasoning_summaries, Some(true));
    assert_eq!(config.model.catalog_json, Some(machine.path("base/models.json")));
    assert_eq!(
        json((config.model.personality, config.permissions.approvals_reviewer)),
        json!(["friendly", "guardian_subagent"])
    );
    assert_eq!(config.instructions.developer.as_deref(), Some("d"));
    assert_eq!(config.instructions.compact_prompt.as_deref(), Some("c"));
    assert_eq!(config.project_docs.fallback_filenames, ["A.md"]);
    assert_eq!(config.tools.background_terminal_max_timeout_ms, 5_000);
    assert!(config.hide_agent_reasoning && !config.feedback_enabled);
    assert_eq!(json(config.login.forced_method), "api");
    assert_eq!(config.login.forced_chatgpt_workspace_id, None);
    assert_eq!(config.notify, None);
    assert_eq!(config.agents.max_threads, 2);
    assert_eq!(config.permissions.shell_environment.inherit, Inherit::Core);
    assert_eq!(json(&config.tools.web_search_options)["allowed_domains"], json!(["example.org"]));
}

#[test]
fn web_search_is_live_without_a_sandbox() {
    let cases = [
        ("", "read-only", "cached"),
        ("", "danger-full-access", "live"),
        ("web_search = \"cached\"", "danger-full-access", "live"),
        ("web_search = \"disabled\"", "danger-full-access", "disabled"),
        ("web_search = \"live\"", "read-only", "live"),
        ("[features]\nweb_search_request = true", "read-only", "live"),
        ("[features]\nweb_search = true", "read-only", "live"),
        ("web_search = \"cached\"\n[features]\nweb_search_request = true", "read-only", "cached"),
        ("[tools]\nweb_search = true", "read-only", "cached"),
    ];
    for (text, sandbox, expected) in cases {
        let config = Machine::with(text).flag(&format!("sandbox_mode={sandbox}")).load();
        assert_eq!(json(config.tools.web_search), expected, "{text} {sandbox}");
    }
    let config = Machine::new().load();
    assert_eq!(config.web_search_under(&SandboxPolicy::DangerFullAccess), WebSearchMode::Live);
}

#[test]
fn features_follow_aliases_and_dependencies() {
    let cases = [
        ("", "multi_agent", true),
        ("", "undo", false),
        ("undo = true", "undo", true),
        ("connectors = false", "apps", false),
        ("collab = false", "multi_agent", false),
        ("collab = false\nenable_fanout = true", "multi_agent", true),
        ("code_mode_only = true", "code_mode", true),
        ("js_repl_tools_only = true", "js_repl_tools_only", false),
        ("js_repl_tools_only = true\njs_repl = true", "js_repl_tools_only", true),
        ("memory_tool = true", "memories", true),
    ];
    for (text, feature, expected) in cases {
        let config = Machine::with(&format!("[features]\n{text}")).load();
        assert_eq!(config.features.enabled(feature), expected, "{text}");
    }
    let machine = Machine::with(
        "experimental_use_unified_exec_tool = false\n[profiles.p]\ninclude_apply_patch_tool = true",
    );
    assert!(!machine.load().features.enabled("unified_exec"));
    assert!(machine.profile("p").load().features.enabled("apply_patch_freeform"));

    // A client's switch counts only where no layer says otherwise.
    let mut machine = Machine::with("[features]\napps = true");
    machine.runtime_features =
        [("apps", false), ("plugins", false)].map(|(key, on)| (key.to_owned(), on)).into();
    let features = machine.load().features;
    assert_eq!(["apps", "plugins"].map(|key| features.enabled(key)), [true, false]);
    for (key, expected) in [
        ("undo", "unsupported feature enablement `undo`: currently supported features are apps, plugins, "),
        ("connectors", "invalid feature enablement `connectors`: use canonical feature key `apps`"),
        ("none", "invalid feature enablement `none`"),
    ] {
        let flags = [(key.to_owned(), true), ("tool_search".to_owned(), true)].into();
        let loader = machine.loader();
        let refused = loader.set_runtime_features(&flags).expect_err("refused");
        assert!(refused.starts_with(expected), "{refused}");
        let loaded = loader.load(&Default::default()).expect("a configuration");
        assert!(!loaded.features.enabled("tool_search"), "nothing was switched");
    }
}

#[test]
fn numbers_of_memories_stay_in_range() {
    let memories = |text: &str| Machine::with(&format!("[memories]\n{text}")).load().memories;
    assert_eq!(Machine::new().load().memories, MemoryOptions::default());
    let few = memories(
        "max_rollouts_per_startup = -1\nmax_rollout_age_days = -1\nmin_rollout_idle_hours = 0\n\
         max_raw_memories_for_consolidation = -5\nmax_unused_days = -1\nextract_model = \"\"",
    );
    assert_eq!((few.max_threads_per_start, few.max_raw_memories), (0, 0));
    assert_eq!((few.max_age_days, few.min_idle_hours, few.max_unused_days), (0, 1, 0));
    assert_eq!(few.extract_model, None);
    let many = memories(
        "max_rollouts_per_startup = 9999\nmax_rollout_age_days = 9999\nmin_rollout_idle_hours = 9999\n\
         max_raw_memories_for_consolidation = 9999\nmax_unused_days = 9999\nconsolidation_model = \"m\"\n\
         generate_memories = false\nuse_memories = false\nno_memories_if_mcp_or_web_search = true",
    );
    let expected = MemoryOptions {
        generate: false,
        is_used: false,
        none_with_foreign_results: true,
        max_threads_per_start: 128,
        max_age_days: 90,
        min_idle_hours: 48,
        max_raw_memories: 4_096,
        max_unused_days: 365,
        extract_model: None,
        consolidation_model: Some("m".to_owned()),
    };
    assert_eq!(many, expected);
}

#[test]
fn the_feature_table_is_complete() {
    assert_eq!(FEATURES.len(), 53);
    let mut keys: Vec<_> = FEATURES.iter().map(|feature| feature.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 53);
    for feature in FEATURES {
        let is_beta = feature.stage == ExperimentalFeatureStage::Beta;
        assert_eq!(feature.description.is_some(), is_beta, "{}", feature.key);
        assert_eq!(
            feature.display_name.is_some() && feature.announcement.is_some(),
            is_beta,
            "{}",
            feature.key
        );
    }
    let listed = Machine::new().load().features.list();
    assert_eq!(listed.iter().filter(|feature| feature.enabled).count(), 16);
    assert_eq!(listed[0].name, "undo");
}

#[test]
fn unfinished_features_are_warned_of() {
    let text = "[features]\nmemories = true\nundo = true";
    let warning = Machine::with(text).load().unfinished_features_warning().expect("a warning");
    assert!(warning.contains("not finished: memories."), "{warning}");
    let config = Machine::with(&format!("suppress_unstable_features_warning = true\n{text}")).load();
    assert_eq!(config.unfinished_features_warning(), None);
    assert_eq!(Machine::new().load().unfinished_features_warning(), None);
}

#[test]
fn the_highest_layer_chooses_between_modes_and_permission_profiles() {
    let profiles = "default_permissions = \"p\"\n[permissions.p.filesystem]\n\"/\" = \"read\"";
    let mode = |machine: &Machine| json(machine.load().permissions.sandbox_mode);
    let machine = Machine::with(profiles).file("etc/config.toml", "sandbox_mode = \"danger-full-access\"");
    assert_eq!(mode(&machine), "read-only");
    assert_eq!(machine.warnings(), ["Permission profiles are not supported; the sandbox is read-only."]);
    let machine = Machine::with("sandbox_mode = \"danger-full-access\"").file("etc/config.toml", profiles);
    assert_eq!(mode(&machine), "danger-full-access");
    assert!(machine.warnings().is_empty());
}

#[test]
fn hooks_are_found_in_every_layer_once_their_feature_is_on() {
    let hooks = "{\"hooks\": {\"Stop\": []}}";
    let tables = "notify = [\"x\"]\n[hooks]\nStop = []\n[features]\ncodex_hooks = ";
    let machine = |on: bool| {
        Machine::with(&format!("{tables}{on}"))
            .file("etc/config.toml", "")
            .file("etc/hooks.json", hooks)
            .file("base/hooks.json", hooks)
    };
    assert!(machine(false).load().hooks.is_empty());
    let machine = machine(true);
    let config = machine.load();
    let paths: Vec<String> = config.hooks.iter().map(|file| machine.plain(file.path.display())).collect();
    assert_eq!(paths, ["$/etc/hooks.json", "$/base/hooks.json", "$/base/config.toml"]);
    assert!(config.hooks.iter().all(|file| file.is_accepted && file.events.is_ok()));
    assert_eq!(config.notify.as_deref(), Some(&["x".to_owned()][..]));
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
}
