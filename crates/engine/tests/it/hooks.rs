//! Turns that wait for hooks.

use oarlock_engine::{HookDecision, HookPoints, HookVerdict, Input};
use protocol::HookPromptFragment;

use crate::support::{Fixture, completed, done, message, said};

fn fixture(prompt: bool, stop: bool) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.step.hooks = HookPoints { prompt, stop };
    fixture
}

fn finished(id: &str, contexts: &[&str], decision: HookDecision) -> Input {
    let contexts = contexts.iter().map(|text| (*text).to_owned()).collect();
    Input::HooksFinished { id: id.to_owned(), verdict: HookVerdict { contexts, decision } }
}

fn block(text: &str) -> HookDecision {
    HookDecision::Block(vec![HookPromptFragment { text: text.to_owned(), hook_run_id: "run".to_owned() }])
}

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

#[test]
fn a_prompt_is_recorded_when_hooks_let_it_through() {
    let mut fixture = fixture(true, false);
    fixture.start("u1", "hi");
    check(
        &mut fixture,
        &[
            "record turnStarted",
            "thread/status/changed active",
            "turn/started",
            "hooks hooks:u1:1 prompt \"hi\"",
        ],
    );
    // A run of another turn changes nothing.
    fixture.put(finished("hooks:u0:1", &[], HookDecision::Stop));
    check(&mut fixture, &[]);
    fixture.put(finished("hooks:u1:1", &["know this"], HookDecision::Proceed));
    check(&mut fixture, &["record threadItem user \"hi\"", "capture"]);
    fixture.captured();
    let prompt = fixture.prompt();
    let at = |words: &str| prompt.iter().position(|line| line.contains(words)).expect("it is there");
    assert!(at("user: hi") < at("developer: know this"), "{prompt:?}");
}

#[test]
fn a_blocked_prompt_leaves_only_the_context_of_the_hooks() {
    for decision in [block("no"), HookDecision::Stop] {
        let mut fixture = fixture(true, false);
        fixture.start("u1", "hi");
        fixture.take();
        fixture.put(finished("hooks:u1:1", &["know this"], decision));
        check(
            &mut fixture,
            &[
                "record responseItem developer: know this",
                "record turnEnded Completed",
                "thread/status/changed idle",
                "turn/completed completed",
                "finish Completed",
            ],
        );
    }
}

#[test]
fn a_turn_that_is_stopped_stops_its_hooks_and_drops_the_prompt() {
    for input in
        [Input::Interrupt, Input::Close { waits_for_host: true }, Input::Suspend { when_pending: false }]
    {
        let mut fixture = fixture(true, false);
        fixture.start("u1", "hi");
        fixture.take();
        fixture.put(input);
        let effects = fixture.take();
        assert_eq!(effects[..2], ["cancel tool hooks:u1:1", "await stopped"], "{effects:?}");
        assert!(effects.contains(&"record turnEnded Interrupted".to_owned()), "{effects:?}");
        assert!(!effects.iter().any(|effect| effect.contains("hi")), "{effects:?}");
        // The hooks may have ended at the same moment.
        fixture.put(finished("hooks:u1:1", &[], HookDecision::Proceed));
        check(&mut fixture, &[]);
    }
}

#[test]
fn a_turn_ends_when_hooks_agree() {
    let mut fixture = fixture(false, true);
    fixture.start("u1", "hi");
    fixture.model(done(message("m", "done"))).model(completed(10));
    let effects = fixture.take();
    assert_eq!(effects.last().map(String::as_str), Some("hooks hooks:u1:1 stop false Some(\"done\")"));
    fixture.put(finished("hooks:u1:1", &[], block("go on")));
    let effects = fixture.take();
    assert!(effects.last().is_some_and(|effect| effect == "capture"), "{effects:?}");
    fixture.captured();
    assert!(fixture.prompt().iter().any(|line| line.contains("<hook_prompt hook_run_id=\"run\">go on")));
    fixture.take();
    fixture.model(done(message("m2", "really"))).model(completed(20));
    let effects = fixture.take();
    assert_eq!(effects.last().map(String::as_str), Some("hooks hooks:u1:2 stop true Some(\"really\")"));
    // The user sends a message while they run: the model gets it before the turn ends.
    fixture.step.hooks.stop = true;
    fixture.put(Input::Steer(said("wait")));
    fixture.put(finished("hooks:u1:2", &[], HookDecision::Proceed));
    let effects = fixture.take();
    assert!(effects.last().is_some_and(|effect| effect == "capture"), "{effects:?}");
    fixture.captured();
    fixture.model(done(message("m3", "yes"))).model(completed(30));
    assert!(fixture.take().last().is_some_and(|effect| effect.starts_with("hooks hooks:u1:3 stop true")));
    fixture.put(finished("hooks:u1:3", &[], HookDecision::Proceed));
    assert_eq!(fixture.take().last().map(String::as_str), Some("finish Completed"));
    fixture.assert_all_closed();
}

#[test]
fn a_steered_prompt_holds_the_next_request_until_its_hooks_have_ended() {
    let mut fixture = fixture(true, false);
    fixture.start("u1", "hi");
    fixture.put(finished("hooks:u1:1", &[], HookDecision::Proceed)).captured();
    fixture.take();
    fixture.put(Input::Steer(said("more")));
    check(&mut fixture, &["hooks hooks:u1:2 prompt \"more\""]);
    fixture.model(done(message("m", "done"))).model(completed(10));
    assert!(!fixture.take().iter().any(|effect| effect.starts_with("finish")));
    fixture.put(finished("hooks:u1:2", &[], HookDecision::Proceed));
    check(&mut fixture, &["record threadItem user \"more\"", "capture"]);
    fixture.captured();
    fixture.put(Input::Steer(said("evil")));
    fixture.model(done(message("m2", "done"))).model(completed(20));
    fixture.take();
    fixture.put(finished("hooks:u1:3", &["not that"], block("no")));
    let effects = fixture.take();
    assert!(!effects.iter().any(|effect| effect.contains("evil")), "{effects:?}");
    assert_eq!(effects.last().map(String::as_str), Some("finish Completed"));
}
