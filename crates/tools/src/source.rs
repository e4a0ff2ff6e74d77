//! Tools from outside this crate, such as those of MCP servers: which of them a step offers, and which source runs a
//! call.

use std::collections::HashSet;
use std::sync::Arc;

use engine::{Step, ToolCall, ToolSpec};

use crate::offer::Offer;
use crate::tool::ToolSource;

/// The offered tools of all sources, in order. A duplicate name belongs to the first: built-in tools, then earlier
/// sources.
pub(crate) fn source_specs(
    sources: &[Arc<dyn ToolSource>],
    offer: &Offer,
    is_builtin: impl Fn(&str) -> bool,
) -> Vec<ToolSpec> {
    let mut taken = HashSet::new();
    let mut specs = Vec::new();
    for spec in sources.iter().flat_map(|source| source.specs(offer)) {
        if !offer.includes(&spec.name) {
            continue;
        }
        if is_builtin(&spec.name) || !taken.insert(spec.name.clone()) {
            tracing::warn!(tool = spec.name, "the name is taken by another tool, so this one is not offered");
            continue;
        }
        specs.push(spec);
    }
    specs
}

/// The source that runs a call. Only tools that the call's step offered can run.
pub(crate) fn source_of<'a>(
    sources: &'a [Arc<dyn ToolSource>],
    call: &ToolCall,
    step: &Step,
) -> Option<&'a Arc<dyn ToolSource>> {
    step.tool(&call.name)?;
    sources.iter().find(|source| source.has(&call.name))
}

#[cfg(test)]
mod tests {
    use engine::{Gate, Proposal, ProposalDecision, ToolKind, ToolOutcome};
    use futures_util::FutureExt;
    use parking_lot::Mutex;
    use protocol::{FunctionCallOutputBody, OperationType, ToolEffects};
    use serde_json::json;

    use super::*;
    use crate::scene::Scene;
    use crate::testing::{call, step};
    use crate::{Bench, BoxFuture, Registry, ToolCx, ToolError};

    /// A source with scripted tools.
    #[derive(Debug, Default)]
    struct Scripted {
        listed: Mutex<Vec<&'static str>>,
        ran: Mutex<Vec<String>>,
    }

    impl Scripted {
        fn listing(names: &[&'static str]) -> Arc<Self> {
            Arc::new(Self { listed: Mutex::new(names.to_vec()), ran: Mutex::default() })
        }
    }

    impl ToolSource for Scripted {
        fn specs(&self, _: &Offer) -> Vec<ToolSpec> {
            self.listed.lock().iter().map(|name| spec(name)).collect()
        }

        fn has(&self, name: &str) -> bool {
            self.listed.lock().contains(&name)
        }

        fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, Result<ToolOutcome, ToolError>> {
            self.ran.lock().push(call.name.clone());
            Box::pin(async move {
                if call.name == "waits" {
                    std::future::pending::<()>().await;
                }
                let proposal = Proposal {
                    number: 0,
                    kind: OperationType::Other("scripted".to_owned()),
                    effects: ToolEffects::Once,
                    item: None,
                    outlives: false,
                    arguments: json!({}),
                    digest: "digest".to_owned(),
                    question: None,
                    session_keys: Vec::new(),
                };
                match cx.propose(proposal).await.is_approved() {
                    true => Ok(ToolOutcome::text(format!("{} ran", cx.name()))),
                    false => Err(ToolError::Refused("declined".to_owned())),
                }
            })
        }
    }

    fn spec(name: &str) -> ToolSpec {
        ToolSpec {
            namespace: None,
            name: name.to_owned(),
            kind: ToolKind::Builtin,
            json: Some(Arc::new(json!({"type": "function", "name": name}))),
            parallel: false,
            gate: Gate::Open,
            effects: ToolEffects::Once,
        }
    }

    fn names(sources: &[Arc<dyn ToolSource>], offer: &Offer) -> Vec<String> {
        Registry::builtin().specs_with(offer, sources).into_iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn sources_come_after_the_built_in_tools_in_a_fixed_order() {
        let builtin: Vec<_> =
            Registry::builtin().specs(&Offer::default()).into_iter().map(|spec| spec.name).collect();
        let sources: [Arc<dyn ToolSource>; 2] =
            [Scripted::listing(&["mcp__b__x", "mcp__b__y"]), Scripted::listing(&["mcp__a__z"])];
        let expected: Vec<_> = builtin
            .iter()
            .map(String::as_str)
            .chain(["mcp__b__x", "mcp__b__y", "mcp__a__z"])
            .map(str::to_owned)
            .collect();
        for _ in 0..3 {
            assert_eq!(names(&sources, &Offer::default()), expected);
        }
        assert_eq!(names(&[], &Offer::default()), builtin);
    }

    #[test]
    fn a_duplicate_name_belongs_to_the_first_source() {
        let sources: [Arc<dyn ToolSource>; 2] = [
            Scripted::listing(&["exec_command", "local_shell", "user_shell", "mcp__a__x"]),
            Scripted::listing(&["mcp__a__x", "mcp__b__x"]),
        ];
        let offer = Offer { allow: None, deny: vec!["exec_command".to_owned()], ..Offer::default() };
        let names = names(&sources, &offer);
        assert!(!names.contains(&"exec_command".to_owned()), "{names:?}");
        assert_eq!(names.iter().filter(|name| *name == "local_shell").count(), 1, "{names:?}");
        assert!(names.ends_with(&["mcp__a__x".to_owned(), "mcp__b__x".to_owned()]), "{names:?}");
    }

    #[test]
    fn a_list_of_allowed_tools_applies_to_sources_too() {
        let sources: [Arc<dyn ToolSource>; 1] = [Scripted::listing(&["mcp__a__x", "mcp__a__y"])];
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (allow, deny, expected) in [
            (Some(list(&["update_plan"])), vec![], list(&["update_plan"])),
            (Some(list(&["mcp__a__y"])), vec![], list(&["mcp__a__y"])),
            (Some(list(&["mcp__a__x", "mcp__a__y"])), list(&["mcp__a__x"]), list(&["mcp__a__y"])),
        ] {
            let offer = Offer { allow, deny, ..Offer::default() };
            assert_eq!(names(&sources, &offer), expected, "{offer:?}");
        }
    }

    fn run(scene: &Scene, name: &str, offered: &[&str]) -> BoxFuture<'static, ToolOutcome> {
        let tools = offered.iter().map(|name| spec(name)).collect();
        Registry::builtin().run(call(name, "{}"), Arc::new(Step { tools, ..step() }), scene.caller())
    }

    fn text(outcome: ToolOutcome) -> String {
        let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
        text
    }

    fn scene_with(source: &Arc<Scripted>) -> Scene {
        let mut scene = Scene::deciding(ProposalDecision::approved(false));
        let options = scene.bench.options().clone();
        scene.bench = Arc::new(Bench::new(options).with_sources(vec![source.clone()]));
        scene
    }

    #[tokio::test]
    async fn a_call_proposes_and_runs() {
        let source = Scripted::listing(&["mcp__a__x"]);
        let outcome = run(&scene_with(&source), "mcp__a__x", &["mcp__a__x"]).await;
        assert_eq!(text(outcome), "mcp__a__x ran");
    }

    #[tokio::test]
    async fn only_what_the_step_offered_runs() {
        let source = Scripted::listing(&["mcp__a__x"]);
        let scene = scene_with(&source);
        for (name, offered) in [("mcp__a__x", &["mcp__a__y"][..]), ("mcp__a__y", &["mcp__a__y"])] {
            assert_eq!(text(run(&scene, name, offered).await), format!("unsupported call: {name}"));
        }
        assert!(source.ran.lock().is_empty());
    }

    #[test]
    fn dropping_the_future_cancels_the_call() {
        let source = Scripted::listing(&["waits"]);
        let scene = scene_with(&source);
        let mut running = run(&scene, "waits", &["waits"]);
        assert!((&mut running).now_or_never().is_none());
        assert_eq!(Arc::strong_count(&scene.bench), 2, "the call holds what it needs");
        drop(running);
        assert_eq!(Arc::strong_count(&scene.bench), 1);
    }
}
