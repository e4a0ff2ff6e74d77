use std::fs;

use engine::Truncation;
use protocol::{InputModality, Model, Personality, ReasoningEffort, ReasoningSummary, Verbosity};
use serde_json::{Value, json};

use super::*;

fn list(include_hidden: bool) -> Vec<Model> {
    let page = Catalogue::bundled().page(None, None, include_hidden).expect("the first page");
    assert_eq!(page.next_cursor, None);
    page.data
}

fn ids(models: &[Model]) -> Vec<&str> {
    models.iter().map(|model| model.id.as_str()).collect()
}

fn wire_name(effort: ReasoningEffort) -> String {
    serde_json::to_value(effort).expect("plain").as_str().expect("a name").to_owned()
}

/// Slug, efforts, images, personality, hidden, upgrade.
type Recorded = (&'static str, &'static str, bool, bool, bool, Option<&'static str>);

/// As recorded from the reference.
const RECORDED: &[Recorded] = &[
    ("gpt-5.3-codex", "low medium high xhigh", true, true, false, Some("gpt-5.4")),
    ("gpt-5.4", "low medium high xhigh", true, true, false, None),
    ("gpt-5.2-codex", "low medium high xhigh", true, true, false, Some("gpt-5.4")),
    ("gpt-5.1-codex-max", "low medium high xhigh", true, false, false, Some("gpt-5.4")),
    ("gpt-5.1-codex", "low medium high", true, false, true, Some("gpt-5.3-codex")),
    ("gpt-5.2", "low medium high xhigh", true, false, false, Some("gpt-5.4")),
    ("gpt-5.1", "low medium high", true, false, true, Some("gpt-5.3-codex")),
    ("gpt-5-codex", "low medium high", true, false, true, Some("gpt-5.3-codex")),
    ("gpt-5", "minimal low medium high", true, false, true, Some("gpt-5.3-codex")),
    ("gpt-oss-120b", "low medium high", false, false, true, None),
    ("gpt-oss-20b", "low medium high", false, false, true, None),
    ("gpt-5.1-codex-mini", "medium high", true, false, false, Some("gpt-5.4")),
    ("gpt-5-codex-mini", "medium high", true, false, true, Some("gpt-5.3-codex")),
];

#[test]
fn the_newest_models_are_asked_for_no_summary() {
    let summary = |slug: &str| Catalogue::bundled().lookup(slug).default_summary;
    assert_eq!([summary("gpt-5.3-codex"), summary("gpt-5.4")], [ReasoningSummary::None; 2]);
    assert_eq!([summary("gpt-5.2"), summary("gpt-5.1-codex-max")], [ReasoningSummary::Auto; 2]);
}

#[test]
fn the_bundled_list_is_the_recorded_one() {
    let models = list(true);
    assert_eq!(models.len(), RECORDED.len());
    for (model, (slug, efforts, images, personality, hidden, upgrade)) in models.iter().zip(RECORDED) {
        assert_eq!((model.id.as_str(), model.model.as_str()), (*slug, *slug));
        let offered: Vec<_> = model
            .supported_reasoning_efforts
            .iter()
            .map(|option| wire_name(option.reasoning_effort))
            .collect();
        assert_eq!(offered.join(" "), *efforts, "{slug}");
        assert_eq!(model.input_modalities.contains(&InputModality::Image), *images, "{slug}");
        assert_eq!(model.supports_personality, *personality, "{slug}");
        assert_eq!(model.hidden, *hidden, "{slug}");
        assert_eq!(model.upgrade.as_deref(), *upgrade, "{slug}");
        assert_eq!(model.upgrade_info.as_ref().map(|info| info.model.as_str()), *upgrade, "{slug}");
        assert_eq!(model.default_reasoning_effort, ReasoningEffort::Medium, "{slug}");
        assert_eq!(model.is_default, *slug == "gpt-5.3-codex", "{slug}");
        assert!(!model.description.is_empty());
    }
    let visible: Vec<_> = RECORDED.iter().filter(|row| !row.4).map(|row| row.0).collect();
    assert_eq!(ids(&list(false)), visible);
}

#[test]
fn the_bundled_facts_are_the_specified_ones() {
    use ShellType::{Default as Shell, ShellCommand as Command};
    let (tokens, bytes) = (Truncation::Tokens(10_000), Truncation::Bytes(10_000));
    let low = Some(Verbosity::Low);
    let patch = Some(ApplyPatchType::Freeform);
    // Window in thousands, truncation, parallel calls, verbosity taken and its default, patch, shell.
    let cases = [
        ("gpt-5.3-codex", 272, tokens, true, (true, low), patch, Command),
        ("gpt-5.4", 272, tokens, true, (true, low), patch, Command),
        ("gpt-5.2-codex", 272, tokens, true, (false, None), patch, Command),
        ("gpt-5.1-codex-max", 272, tokens, false, (false, None), patch, Command),
        ("gpt-5.1-codex", 272, tokens, false, (false, None), patch, Command),
        ("gpt-5.2", 272, bytes, true, (true, low), patch, Command),
        ("gpt-5.1", 272, bytes, true, (true, low), patch, Command),
        ("gpt-5-codex", 272, tokens, false, (false, None), patch, Command),
        ("gpt-5", 272, bytes, false, (true, None), None, Shell),
        ("gpt-oss-120b", 128, bytes, false, (true, None), patch, Shell),
        ("gpt-oss-20b", 128, bytes, false, (true, None), patch, Shell),
        ("gpt-5.1-codex-mini", 272, tokens, false, (false, None), patch, Command),
        ("gpt-5-codex-mini", 272, tokens, false, (false, None), patch, Command),
    ];
    let catalogue = Catalogue::bundled();
    assert_eq!(catalogue.entries.len(), cases.len());
    for (slug, window, truncation, parallel, verbosity, patch, shell) in cases {
        let entry = catalogue.lookup(slug);
        assert_eq!(entry.context_window, Some(window * 1_000), "{slug}");
        assert_eq!(entry.truncation, truncation, "{slug}");
        assert_eq!(entry.supports_parallel_tool_calls, parallel, "{slug}");
        assert_eq!((entry.supports_verbosity, entry.default_verbosity), verbosity, "{slug}");
        assert_eq!(entry.apply_patch, patch, "{slug}");
        assert_eq!(entry.shell_type, shell, "{slug}");
        assert!(entry.supports_reasoning_summaries && !entry.is_fallback, "{slug}");
    }
    assert!(catalogue.entries.is_sorted_by_key(|entry| entry.priority));
}

#[test]
fn names_are_looked_up_by_their_beginning() {
    // The given name, and the known one it matches.
    let cases = [
        ("gpt-5.4", Some("gpt-5.4")),
        ("gpt-5.1-codex-mini-2026-01-01", Some("gpt-5.1-codex-mini")),
        ("gpt-5.1-codex-maximal", Some("gpt-5.1-codex-max")),
        ("gpt-5.9", Some("gpt-5")),
        ("openai/gpt-5.2-codex", Some("gpt-5.2-codex")),
        ("my_host1/gpt-oss-20b:q4", Some("gpt-oss-20b")),
        ("a/b/gpt-5", None),
        ("a-b/gpt-5", None),
        ("/gpt-5", None),
        ("mock-model", None),
        ("offline", Some("offline")),
        ("", None),
    ];
    let catalogue = Catalogue::bundled();
    for (name, known) in cases {
        let entry = catalogue.lookup(name);
        assert_eq!(entry.slug, name);
        assert_eq!(entry.is_fallback, known.is_none(), "{name}");
        assert_eq!(entry.display_name, known.unwrap_or(name), "{name}");
    }
}

#[test]
fn little_is_asked_of_an_unknown_model() {
    let entry = Catalogue::bundled().lookup("mock-model");
    let info = entry.info(&Overrides::default());
    assert_eq!(info.usable_window(), Some(258_400));
    assert_eq!(info.truncation, Truncation::Bytes(10_000));
    assert!(!info.supports_reasoning_summaries && !info.supports_parallel_tool_calls);
    assert_eq!(info.stream_max_retries, 5);
    assert!(entry.efforts.is_empty() && entry.default_effort.is_none());
    assert!(!entry.supports_verbosity && entry.apply_patch.is_none());
    assert_eq!((entry.shell_type, entry.web_search), (ShellType::Default, WebSearchContent::Text));
    assert!(entry.takes_images() && !entry.supports_personality);
}

#[test]
fn configuration_wins_over_the_catalogue() {
    let catalogue = Catalogue::bundled();
    let overrides = Overrides {
        context_window: Some(100_000),
        auto_compact_token_limit: Some(95_000),
        tool_output_token_limit: Some(50),
        supports_reasoning_summaries: Some(true),
        stream_max_retries: Some(0),
    };
    let info = catalogue.lookup("mock-model").info(&overrides);
    assert_eq!(info.usable_window(), Some(95_000));
    assert_eq!(info.compaction_limit(), Some(90_000));
    assert_eq!(info.truncation, Truncation::Bytes(200));
    assert!(info.supports_reasoning_summaries);
    assert_eq!(info.stream_max_retries, 0);
    let info = catalogue.lookup("gpt-5.4").info(&overrides);
    assert_eq!(info.truncation, Truncation::Tokens(50));
    let off = Overrides { supports_reasoning_summaries: Some(false), ..Overrides::default() };
    assert!(catalogue.lookup("gpt-5.4").info(&off).supports_reasoning_summaries);
}

#[test]
fn pages_follow_each_other_to_the_end() {
    let catalogue = Catalogue::bundled();
    for limit in [0, 1, 4, 6, 7, u32::MAX] {
        let (mut cursor, mut seen) = (None::<String>, Vec::new());
        loop {
            let page = catalogue.page(cursor.as_deref(), Some(limit), false).expect("a page");
            assert!(!page.data.is_empty());
            seen.extend(page.data);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, list(false), "by {limit}");
    }
    assert_eq!(catalogue.page(None, Some(1), false).expect("a page").next_cursor.as_deref(), Some("1"));
}

#[test]
fn wrong_cursors_are_named() {
    let cases = [
        ("bad", false, Err("invalid cursor: bad")),
        ("-1", false, Err("invalid cursor: -1")),
        ("", false, Err("invalid cursor: ")),
        ("7", false, Err("cursor 7 exceeds total models 6")),
        ("14", true, Err("cursor 14 exceeds total models 13")),
        ("6", false, Ok(0)),
        ("12", true, Ok(1)),
    ];
    for (cursor, include_hidden, expected) in cases {
        let page = Catalogue::bundled().page(Some(cursor), None, include_hidden);
        let got = page.map(|page| page.data.len()).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{cursor}");
    }
}

#[test]
fn the_offline_model_is_there_when_asked_for() {
    assert_eq!(Catalogue::bundled().default_model(), "gpt-5.3-codex");
    let offline = Catalogue::bundled().with_offline().with_offline();
    assert_eq!(offline.default_model(), "offline");
    let listed = offline.page(None, None, false).expect("a page").data;
    assert_eq!(listed.len(), 7);
    assert_eq!(listed.iter().filter(|model| model.is_default).count(), 1);
    assert_eq!(listed[0].id, "offline");
    assert_eq!(listed[0].default_reasoning_effort, ReasoningEffort::None);
    assert!(!offline.lookup("offline").is_fallback);
}

fn from_text(text: &str) -> Result<Catalogue, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("models.json");
    fs::write(&path, text).expect("written");
    Catalogue::from_file(&path).map_err(|error| error.to_string())
}

fn from_json(models: &Value) -> Catalogue {
    from_text(&json!({ "models": models }).to_string()).expect("valid")
}

#[test]
fn a_file_replaces_the_bundled_models() {
    let catalogue = from_json(&json!([
        {"slug": "plain", "priority": 9},
        {
            "slug": "full", "display_name": "Full", "description": "d", "priority": 2, "visibility": "hide",
            "supported_in_api": true, "default_reasoning_level": "ultra",
            "supported_reasoning_levels": [{"effort": "low", "description": "l"}, {"effort": "max"}],
            "supports_reasoning_summaries": true, "default_reasoning_summary": "detailed",
            "support_verbosity": true, "default_verbosity": "high", "shell_type": "unified_exec",
            "apply_patch_tool_type": "function", "web_search_tool_type": "text_and_image",
            "truncation_policy": {"mode": "tokens", "limit": 7}, "supports_parallel_tool_calls": true,
            "context_window": 1000, "effective_context_window_percent": 50, "auto_compact_token_limit": 100,
            "input_modalities": ["text"], "upgrade": {"model": "plain", "migration_markdown": "Move."},
            "a_newer_field": {},
        },
        {"slug": "chat-only", "priority": 1, "supported_in_api": false},
    ]));
    assert_eq!(catalogue.default_model(), "plain");
    let listed = catalogue.page(None, None, true).expect("a page").data;
    assert_eq!(ids(&listed), ["full", "plain"]);
    let full = &listed[0];
    assert_eq!((full.hidden, full.display_name.as_str()), (true, "Full"));
    assert_eq!(full.supported_reasoning_efforts.len(), 1, "older clients cannot read `max`");
    assert_eq!(full.default_reasoning_effort, ReasoningEffort::Xhigh);
    let upgrade = full.upgrade_info.clone().expect("given");
    assert_eq!(upgrade.migration_markdown.as_deref(), Some("Move."));

    let entry = catalogue.lookup("full-2");
    assert_eq!(entry.default_effort, Some(ReasoningEffort::Ultra));
    assert_eq!(entry.efforts.len(), 2);
    assert_eq!(entry.default_summary, ReasoningSummary::Detailed);
    assert_eq!((entry.supports_verbosity, entry.default_verbosity), (true, Some(Verbosity::High)));
    assert_eq!(
        (entry.shell_type, entry.apply_patch),
        (ShellType::UnifiedExec, Some(ApplyPatchType::Function))
    );
    assert_eq!(entry.web_search, WebSearchContent::TextAndImage);
    assert!(!entry.takes_images());
    let info = entry.info(&Overrides::default());
    assert_eq!((info.usable_window(), info.compaction_limit()), (Some(500), Some(100)));
    assert_eq!(info.truncation, Truncation::Tokens(7));

    let plain = catalogue.lookup("plain");
    let unknown = catalogue.lookup("other");
    assert!(unknown.is_fallback && !plain.is_fallback);
    assert_eq!(plain.info(&Overrides::default()).usable_window(), Some(258_400));
    assert_eq!(plain.truncation, unknown.truncation);
    assert_eq!(catalogue.with_offline().default_model(), "offline");
}

#[test]
fn instructions_of_a_file_take_the_tone() {
    let variables =
        json!({"personality_default": "D", "personality_friendly": "F", "personality_pragmatic": "P"});
    let cases = [
        (json!({"slug": "m"}), false, None),
        (json!({"slug": "m", "base_instructions": " "}), false, None),
        (json!({"slug": "m", "base_instructions": "Base."}), false, Some(["Base."; 4])),
        (
            json!({"slug": "m", "base_instructions": "Base.", "model_messages": {
                "instructions_template": "Be {{ personality }}.", "instructions_variables": variables}}),
            true,
            Some(["Be D.", "Be .", "Be F.", "Be P."]),
        ),
        (
            json!({"slug": "m", "model_messages": {
                "instructions_template": "Be {{ personality }}.",
                "instructions_variables": {"personality_default": "D"}}}),
            false,
            Some(["Be D.", "Be .", "Be .", "Be ."]),
        ),
        (
            json!({"slug": "m", "base_instructions": "Base.", "model_messages": {"instructions_variables": null}}),
            false,
            Some(["Base."; 4]),
        ),
    ];
    let choices = [None, Some(Personality::None), Some(Personality::Friendly), Some(Personality::Pragmatic)];
    for (model, personality, expected) in cases {
        let entry = from_json(&json!([model])).lookup("m");
        assert_eq!(entry.supports_personality, personality, "{model}");
        let rendered = entry.instructions.map(|own| choices.map(|choice| own.render(choice)));
        assert_eq!(rendered, expected.map(|texts| texts.map(str::to_owned)), "{model}");
    }
}

#[test]
fn a_bad_file_is_refused_with_its_reason() {
    let cases = [
        ("", "EOF"),
        ("[]", "invalid"),
        (r#"{"models": []}"#, "names no models"),
        (r#"{"models": [{}]}"#, "missing field `slug`"),
        (r#"{"models": [{"slug": " "}]}"#, "no `slug`"),
        (r#"{"models": [{"slug": "a"}, {"slug": "a"}]}"#, "`a` is there twice"),
        (r#"{"models": [{"slug": "a", "context_window": 0}]}"#, "`context_window` of `a`"),
        (
            r#"{"models": [{"slug": "a", "auto_compact_token_limit": -1}]}"#,
            "`auto_compact_token_limit` of `a`",
        ),
        (r#"{"models": [{"slug": "a", "effective_context_window_percent": 101}]}"#, "from 1 to 100"),
        (r#"{"models": [{"slug": "a", "shell_type": "fish"}]}"#, "unknown variant `fish`"),
    ];
    for (text, expected) in cases {
        let error = from_text(text).expect_err(text);
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("models.json"), "{error}");
    }
    let missing = Catalogue::from_file(Path::new("/nonexistent/models.json")).expect_err("not there");
    assert!(missing.to_string().starts_with("cannot read the model catalogue /nonexistent/models.json"));
}
