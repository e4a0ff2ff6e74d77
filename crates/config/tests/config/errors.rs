use crate::support::Machine;
use serde_json::json;

#[test]
fn a_bad_file_is_named_with_the_place() {
    let cases = [
        ("model = ", "$/base/config.toml:1:9: "),
        ("\nmodel = 5\n", "$/base/config.toml:2:9: invalid type: integer `5`, expected a string"),
        ("sandbox_mode = \"bogus\"", "$/base/config.toml:1:16: unknown variant `bogus`, expected one of"),
        ("# \u{e9}\nx = 1\nmodel = \"a\"\nmodel = \"b\"", "$/base/config.toml:4:1: duplicate key"),
        ("[features]\nundo = \"yes\"", "$/base/config.toml:2:8: invalid type: string"),
        ("[projects.\"/x\"]\ntrust_level = \"maybe\"", "$/base/config.toml:2:15: unknown variant `maybe`"),
        (
            "[model_providers.p]\nname = \"p\"\nwire_api = \"grpc\"",
            "$/base/config.toml:3:12: unknown variant `grpc`, expected one of `responses`, `chat`, `messages`",
        ),
        ("approval_policy = { granular = { rules = true } }", "$/base/config.toml:1:"),
        ("[agents]\nmax_threads = 0", "agents.max_threads must be at least 1"),
        ("profile = \"none\"", "config profile `none` not found"),
        ("model_provider = \"none\"", "model provider `none` not found"),
        ("model_provider = \"ollama-chat\"", "model provider `ollama-chat` is no longer supported"),
        ("[model_providers.openai]\nname = \"mine\"", "model_providers.openai takes the name of a built-in"),
        (
            "[model_providers.offline]\nname = \"mine\"",
            "model_providers.offline takes the name of a built-in",
        ),
        ("model_instructions_file = \"none.md\"", "cannot read $/base/none.md: "),
        ("[permissions.p]\nx = 1", "[permissions] needs default_permissions"),
    ];
    for (text, expected) in cases {
        let error = Machine::with(text).error();
        assert!(error.starts_with(expected), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_bad_flag_is_named_by_its_key() {
    for machine in
        [Machine::new().flag("tools.view_image=5"), Machine::new().request("tools", json!({"view_image": 5}))]
    {
        let error = machine.error();
        assert!(error.contains("invalid type: integer `5`") && error.contains("tools.view_image"), "{error}");
    }
}

#[test]
fn the_layer_with_the_fault_is_blamed() {
    // The machine's table is incomplete by itself and fine once merged; the flag is what is wrong.
    let machine =
        Machine::with("[projects.\"$/repo\"]\ntrust_level = \"trusted\"\n[model_providers.p]\nname = \"p\"")
            .file("etc/config.toml", "[model_providers.p]\nbase_url = \"u\"")
            .cwd("repo");
    assert_eq!(machine.load().providers["p"].base_url.as_deref(), Some("u"));
    let error = machine.flag("model=5").error();
    assert!(error.contains("invalid type: integer `5`"), "{error}");
    // A value that a higher layer replaces is never used, so it may be anything.
    assert_eq!(Machine::with("model = 5").flag("model=x").model(), "x");
}

#[test]
fn unknown_keys_are_left_out() {
    let config =
        Machine::with("surprise = 1\n[tui]\nx = 1\n[features]\nnot_a_flag = true\n[profiles.p]\ny = 2")
            .load();
    assert_eq!(config.merged["surprise"].as_integer(), Some(1));
    assert!(!config.features.enabled("not_a_flag"));
    assert_eq!(config.warnings.len(), 4, "{:?}", config.warnings);
}

#[test]
fn older_ways_to_say_something_are_told() {
    let text = "experimental_instructions_file = \"x.md\"\nexperimental_use_unified_exec_tool = true\n[features]\n\
                collab = true\nweb_search_request = true\nmulti_agent = true";
    let config = Machine::with(text).load();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let told: Vec<&str> = config.deprecations.iter().map(|told| told.summary.as_str()).collect();
    assert_eq!(
        told,
        [
            "`[features].collab` is deprecated: the flag is called `[features].multi_agent` now.",
            "`[features].experimental_use_unified_exec_tool` is deprecated: the flag is called `[features].unified_exec` \
             now.",
            "`[features].web_search_request` is deprecated: web search needs no flag any more.",
            "`experimental_instructions_file` is deprecated and has no effect.",
        ]
    );
    assert!(Machine::with("[features]\nmulti_agent = false").load().deprecations.is_empty());
}

#[test]
fn a_start_survives_bad_files() {
    let machine = Machine::with("model = \"user\"\nsandbox_mode = 77").flag("model=flag");
    let startup = machine.loader().startup(None);
    assert_eq!(startup.config.model.name.as_deref(), Some("flag"));
    let notification = protocol::ConfigWarningNotification::from(startup.warnings[0].clone());
    assert_eq!(notification.path.map(|path| machine.plain(path)).as_deref(), Some("$/base/config.toml"));
    let range = notification.range.expect("a range");
    assert_eq!((range.start.line, range.start.column, range.end.line, range.end.column), (2, 16, 2, 17));
    assert!(notification.details.expect("details").contains(":2:16: "));

    let startup = Machine::with("model = ").flag("sandbox_mode=bogus").loader().startup(None);
    assert_eq!(startup.warnings.len(), 2);
    assert_eq!(startup.config.provider.id, "openai");
    assert!(startup.config.read_response(true).is_ok());

    let startup = Machine::with("model = \"user\"").loader().startup(None);
    assert_eq!((startup.config.model.name.as_deref(), startup.warnings.len()), (Some("user"), 0));
}

#[test]
fn a_blank_instructions_file_is_an_error() {
    let machine = Machine::with("model_instructions_file = \"base.md\"").file("base/base.md", " \n");
    assert_eq!(machine.error(), "model_instructions_file names $/base/base.md, which is empty");
    let machine = machine.file("base/base.md", "\nBe brief.\n");
    assert_eq!(machine.load().instructions.base.as_deref(), Some("Be brief."));
}
