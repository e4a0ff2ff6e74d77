//! A tool's section of the instructions is present exactly if the tool is offered, whatever the options.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use engine::{ToolKind, ToolSpec};
use oarlock_tools::{
    ApplyPatch, BuiltinTool, CloseAgent, ExecCommand, GrepFiles, ImageGeneration, JsRepl, JsReplReset,
    ListDir, Offer, PatchForm, ReadFile, Registry, ReportAgentJobResult, RequestPermissions,
    RequestUserInput, ResumeAgent, ScriptExec, ScriptWait, SearchToolBm25, SendInput, Shell, ShellCommand,
    ShellForm, SpawnAgent, SpawnAgentsOnCsv, TestSyncTool, ToolSearch, ToolSuggest, UpdateGoal, UpdatePlan,
    UserShell, ViewImage, WaitAgent, WebSearch, WriteStdin,
};
use protocol::{ModeKind, WebSearchMode};

/// Every tool with its section, taken from the tools themselves.
fn sections() -> Vec<(&'static str, Option<&'static str>)> {
    fn row<T: BuiltinTool>() -> (&'static str, Option<&'static str>) {
        (T::NAME, T::PROMPT)
    }
    vec![
        row::<ScriptExec>(),
        row::<ScriptWait>(),
        row::<ExecCommand>(),
        row::<WriteStdin>(),
        row::<Shell>(),
        row::<ShellCommand>(),
        row::<UpdatePlan>(),
        row::<JsRepl>(),
        row::<JsReplReset>(),
        row::<RequestUserInput>(),
        row::<RequestPermissions>(),
        row::<SearchToolBm25>(),
        row::<ToolSearch>(),
        row::<ToolSuggest>(),
        row::<ApplyPatch>(),
        row::<ListDir>(),
        row::<ReadFile>(),
        row::<GrepFiles>(),
        row::<TestSyncTool>(),
        row::<WebSearch>(),
        row::<ImageGeneration>(),
        row::<ViewImage>(),
        row::<SpawnAgent>(),
        row::<SendInput>(),
        row::<ResumeAgent>(),
        row::<WaitAgent>(),
        row::<CloseAgent>(),
        row::<SpawnAgentsOnCsv>(),
        row::<ReportAgentJobResult>(),
        row::<UserShell>(),
        row::<UpdateGoal>(),
    ]
}

/// Every combination of options, except lists of names.
fn offers() -> Vec<Offer> {
    let shells =
        [ShellForm::Terminals, ShellForm::Words, ShellForm::Script, ShellForm::Local, ShellForm::Disabled];
    let patches = [None, Some(PatchForm::Freeform), Some(PatchForm::Function)];
    let searches = [WebSearchMode::Disabled, WebSearchMode::Live];
    let features: [&[&str]; 2] = [
        &[],
        &[
            "request_permissions_tool",
            "exec_permission_approvals",
            "image_detail_original",
            "multi_agent",
            "js_repl",
            "code_mode",
        ],
    ];
    let mut offers = Vec::new();
    for shell in shells {
        for patch in patches {
            for web_search in searches {
                for features in features {
                    for bits in 0..64_u32 {
                        let is_on = |bit: u32| bits & (1 << bit) != 0;
                        offers.push(Offer {
                            shell,
                            patch,
                            web_search,
                            features: features.iter().map(ToString::to_string).collect(),
                            images: is_on(0),
                            mode: if is_on(1) { ModeKind::Plan } else { ModeKind::Default },
                            is_child: is_on(2),
                            may_spawn: !is_on(2),
                            has_deferred: is_on(3),
                            node: is_on(3),
                            has_environment: is_on(4),
                            experimental: if is_on(5) { names(&["read_file", "list_dir"]) } else { vec![] },
                            ..Offer::default()
                        });
                    }
                }
            }
        }
    }
    offers
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Checks one offer; returns the tools whose sections are present.
fn check(
    registry: &Registry,
    sections: &[(&'static str, Option<&'static str>)],
    offer: &Offer,
) -> Vec<&'static str> {
    let specs = registry.specs(offer);
    let is_advertised = |name: &str| specs.iter().any(|spec| spec.name == name && spec.json.is_some());
    let offered = sections.iter().filter(|(name, _)| is_advertised(name));
    let (tools, expected): (Vec<_>, Vec<_>) =
        offered.filter_map(|(name, section)| section.map(|section| (*name, section))).unzip();
    assert_eq!(registry.prompts(&specs), expected, "{offer:?}");
    tools
}

#[test]
fn whatever_is_offered() {
    let registry = Registry::builtin();
    let sections = sections();
    let listed: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(registry.names().collect::<Vec<_>>(), listed, "a new tool belongs into the table above");
    let mut seen = BTreeSet::new();
    for offer in offers() {
        seen.extend(check(&registry, &sections, &offer));
    }
    // None of them is always present, and each of them sometimes.
    let with_section: BTreeSet<&str> =
        sections.iter().filter(|(_, section)| section.is_some()).map(|(name, _)| *name).collect();
    assert_eq!(seen, with_section);
}

#[test]
fn whatever_is_allowed_or_denied() {
    let registry = Registry::builtin();
    let sections = sections();
    let all: Vec<String> = registry.names().map(str::to_owned).collect();
    let mut lists: Vec<(Option<Vec<String>>, Vec<String>)> = vec![
        (Some(vec![]), vec![]),
        (Some(all.clone()), vec![]),
        (None, all.clone()),
        (Some(names(&["no_such_tool"])), vec![]),
    ];
    for name in &all {
        let others: Vec<String> = all.iter().filter(|other| *other != name).cloned().collect();
        lists.push((Some(vec![name.clone()]), vec![]));
        lists.push((Some(others), vec![]));
        lists.push((None, vec![name.clone()]));
        lists.push((Some(vec![name.clone()]), vec![name.clone()]));
    }
    // The step size shares no factor with any range, so that every value occurs.
    for offer in offers().into_iter().step_by(61) {
        for (allow, deny) in &lists {
            let offer = Offer { allow: allow.clone(), deny: deny.clone(), ..offer.clone() };
            let there = check(&registry, &sections, &offer);
            let is_named = |name: &str| {
                let is_allowed = allow.as_ref().is_none_or(|names| names.iter().any(|other| other == name));
                is_allowed && !deny.iter().any(|other| other == name)
            };
            assert!(there.iter().all(|name| is_named(name)), "{offer:?}");
        }
    }
}

#[test]
fn a_tool_of_a_client_brings_no_section_even_under_the_same_name() {
    let registry = Registry::builtin();
    for (name, _) in sections() {
        let mut specs = registry.specs(&Offer { allow: Some(names(&[name])), ..Offer::default() });
        for spec in &mut specs {
            *spec = ToolSpec { kind: ToolKind::Dynamic, ..spec.clone() };
        }
        assert!(registry.prompts(&specs).is_empty(), "{name}");
    }
}
