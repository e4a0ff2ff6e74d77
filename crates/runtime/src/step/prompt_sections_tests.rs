//! The base instructions contain a tool's section exactly if the tool is advertised, with every model, feature, mode
//! and list of tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::{Env, FEATURES, Home, LoadRequest, Loader, LoaderOptions};
use protocol::{CollaborationMode, DynamicToolSpec, ModeKind, SessionSource, ThreadId};
use serde_json::json;
use support::SystemClock;
use tools::{
    ApplyPatch, BuiltinTool, ExecCommand, Registry, RequestPermissions, SearchToolBm25, Shell, ShellCommand,
    UpdatePlan,
};

use crate::open::config_request::settings_of;
use crate::runtime::{Runtime, RuntimeOptions};
use crate::testing::NotifyAudience;
use catalogue::Catalogue;
use delegation::HostChoices;
use driver::{StepMaker, ThreadSettings, ToolSettings};

fn runtime(home: &std::path::Path) -> Runtime {
    let environment = Env::fixed([("HOME", home.as_os_str())]);
    let options =
        LoaderOptions { system_file: None, managed_file: None, requirements_file: None, environment };
    Runtime::new(RuntimeOptions {
        loader: Loader::new(Home::at(home), Vec::new(), options),
        audience: Arc::new(NotifyAudience(|_: &ThreadId, _| ())),
        clock: Arc::new(SystemClock),
        catalogue: Catalogue::bundled(),
        source: SessionSource::Exec,
        version: String::new(),
        store: journal::StoreOptions::default(),
        traces: None,
    })
}

/// The tools that have a section.
fn sections() -> Vec<(&'static str, &'static str)> {
    fn row<T: BuiltinTool>() -> (&'static str, &'static str) {
        (T::NAME, T::PROMPT.expect("a section").trim())
    }
    vec![
        row::<ExecCommand>(),
        row::<Shell>(),
        row::<ShellCommand>(),
        row::<UpdatePlan>(),
        row::<RequestPermissions>(),
        row::<SearchToolBm25>(),
        row::<ApplyPatch>(),
    ]
}

/// Checks one combination; returns the tools whose sections are present.
fn check(runtime: &Runtime, settings: &ThreadSettings) -> Vec<&'static str> {
    let step = runtime.state.steps.capture(settings, &[]);
    let mut there = Vec::new();
    for (name, section) in sections() {
        let is_offered = step.tools.iter().any(|tool| tool.name == name && tool.json.is_some());
        let count = step.base_instructions.matches(section).count();
        let expected = usize::from(is_offered && settings.base_instructions.is_none());
        assert_eq!(count, expected, "{name} with {settings:?}");
        there.extend((count > 0).then_some(name));
    }
    there
}

fn plan_mode(model: &str) -> Option<CollaborationMode> {
    let mode = json!({"mode": "plan", "settings": {"model": model}});
    let mode: CollaborationMode = serde_json::from_value(mode).expect("a mode");
    assert_eq!(mode.mode, ModeKind::Plan);
    Some(mode)
}

#[test]
fn a_section_is_there_exactly_when_its_tool_is() {
    let home = tempfile::tempdir().expect("a folder");
    let runtime = runtime(home.path());
    let request = LoadRequest { cwd: Some(home.path().to_owned()), ..LoadRequest::default() };
    let config = runtime.loader().load(&request).expect("a configuration");
    let usual = settings_of(&config, &runtime.state.catalogue);
    let models = ["unknown", "gpt-5.2-codex", "gpt-5.2", "gpt-5", "gpt-oss-20b"];
    let mut features: Vec<BTreeSet<String>> = vec![usual.tools.features.clone(), BTreeSet::new()];
    for feature in FEATURES {
        let mut toggled = usual.tools.features.clone();
        if !toggled.remove(feature.key) {
            toggled.insert(feature.key.to_owned());
        }
        features.push(toggled);
    }
    let registry = Registry::builtin();
    let mut lists: Vec<Option<Vec<String>>> = vec![None, Some(vec![])];
    lists.extend(registry.names().map(|name| Some(vec![name.to_owned()])));
    let hidden: DynamicToolSpec = serde_json::from_value(json!({
        "name": "hidden", "description": "d", "inputSchema": {"type": "object"}, "deferLoading": true,
    }))
    .expect("a tool");
    let mut seen = BTreeSet::new();
    // Tests every pair of model, features and list; all triples if `PROMPT_SECTIONS` is `all`, as in `scripts/figures`.
    let all = std::env::var("PROMPT_SECTIONS").is_ok_and(|which| which == "all");
    for (model_number, model) in models.into_iter().enumerate() {
        for (features_number, features) in features.iter().enumerate() {
            let tools = Arc::new(ToolSettings { features: features.clone(), ..(*usual.tools).clone() });
            for (number, list) in lists.iter().enumerate() {
                let is_usual = features_number == 0 || number == 0;
                if !all && !is_usual && (features_number + number) % models.len() != model_number {
                    continue;
                }
                let host = HostChoices { builtin_tools: list.clone(), ..HostChoices::default() };
                let settings = ThreadSettings {
                    model: model.to_owned(),
                    tools: tools.clone(),
                    host: Arc::new(host),
                    collaboration_mode: if number % 2 == 0 { plan_mode(model) } else { None },
                    dynamic_tools: if number % 3 == 0 { Arc::new([hidden.clone()]) } else { Arc::new([]) },
                    environments: (number % 5 == 4).then(|| Arc::new([]) as Arc<[_]>),
                    ..usual.clone()
                };
                seen.extend(check(&runtime, &settings));
            }
        }
        let mine = ThreadSettings { base_instructions: Some(Arc::from("Mine.")), ..usual.clone() };
        assert!(check(&runtime, &mine).is_empty());
    }
    let expected: BTreeSet<_> = sections().into_iter().map(|(name, _)| name).collect();
    assert_eq!(seen, expected, "each of them is there with some choice");
}
