//! Properties over generated conversations and streams.

use std::sync::Arc;

use model::StreamEvent;
use model::protocol::ResponseItem;
use oarlock_wires::{Capabilities, Encoder, Wire};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;
use crate::vendor::{chat_problems, messages_problems};

const WIRES: [(Wire, &str); 5] = [
    (Wire::Chat, "openai"),
    (Wire::Chat, "mistral"),
    (Wire::Chat, "local"),
    (Wire::Messages, "anthropic"),
    (Wire::Messages, "ollama"),
];

/// One step of a conversation that an engine records.
#[derive(Debug, Clone)]
enum Step {
    User,
    Image,
    Developer,
    Answer,
    Reasoning,
    /// That many calls at once, each with its output; freeform ones, too.
    Calls(u8, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::User),
        1 => Just(Step::Image),
        1 => Just(Step::Developer),
        3 => Just(Step::Answer),
        1 => Just(Step::Reasoning),
        3 => (1_u8..4, any::<bool>()).prop_map(|(count, is_freeform)| Step::Calls(count, is_freeform)),
    ]
}

/// Items whose every text is a word of its own, numbered from the beginning.
fn history(steps: &[Step]) -> Vec<Arc<ResponseItem>> {
    let mut number = 0;
    let mut word = || {
        number += 1;
        format!("w{number}w")
    };
    let mut items = Vec::new();
    for step in steps {
        match step {
            Step::User => items.push(user(&word())),
            Step::Image => {
                let url = format!("https://host/{}", word());
                items.push(item(json!({"type": "message", "role": "user",
                    "content": [{"type": "input_image", "image_url": url}]})));
            }
            Step::Developer => items.push(message("developer", &word())),
            Step::Answer => items.push(message("assistant", &word())),
            Step::Reasoning => {
                items.push(item(json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})));
            }
            Step::Calls(count, is_freeform) => {
                let calls = Vec::from_iter((0..*count).map(|_| (format!("call_{}", word()), word())));
                for (id, text) in &calls {
                    items.push(item(match is_freeform {
                        true => json!({"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": text}),
                        false => json!({"type": "function_call", "call_id": id, "name": "read",
                                        "arguments": json!({ "path": text }).to_string()}),
                    }));
                }
                for (id, _) in &calls {
                    let kind = if *is_freeform { "custom_tool_call_output" } else { "function_call_output" };
                    items.push(item(json!({"type": kind, "call_id": id, "output": word()})));
                }
            }
        }
    }
    items
}

fn words(text: &str) -> Vec<u32> {
    let parts = text.split('w').filter_map(|part| part.parse().ok());
    parts.collect()
}

fn body_of(wire: Wire, provider: &str, input: &[Arc<ResponseItem>]) -> Vec<u8> {
    let able = Capabilities::of(provider, wire);
    Encoder::new(wire).encode(&request("m", input.to_vec()), &able).unwrap().body.concat()
}

fn problems(wire: Wire, body: &[u8]) -> Vec<String> {
    let body: Value = serde_json::from_slice(body).unwrap();
    if wire == Wire::Chat { chat_problems(&body) } else { messages_problems(&body) }
}

/// Any items in any order: calls without outputs, outputs without calls, twice the same id.
fn disorder() -> impl Strategy<Value = Vec<Arc<ResponseItem>>> {
    let one = (0_u8..6, 0_u8..4).prop_map(|(kind, n)| match kind {
        0 => user(&format!("u{n}")),
        1 => message("assistant", if n == 0 { " " } else { "a" }),
        2 => message("developer", "d"),
        3 => call(&format!("c{n}"), "{}"),
        _ => output(&format!("c{n}"), "o"),
    });
    prop::collection::vec(one, 0..14).prop_map(|mut items| {
        // The engine runs a call id once; the same call twice is not recorded.
        let mut seen = Vec::new();
        items.retain(|item| match &**item {
            ResponseItem::FunctionCall { call_id, .. } => {
                let is_new = !seen.contains(call_id);
                seen.push(call_id.clone());
                is_new
            }
            _ => true,
        });
        items
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_text_call_output_and_image_goes_once_and_in_order(steps in prop::collection::vec(step(), 0..12)) {
        let input = history(&steps);
        let whole = serde_json::to_string(&input).unwrap();
        for (wire, provider) in WIRES {
            let body = body_of(wire, provider, &input);
            prop_assert_eq!(problems(wire, &body), Vec::<String>::new());
            let sent: Value = serde_json::from_slice(&body).unwrap();
            let mut found = words(&sent.to_string());
            let mut expected = words(&whole);
            // The vendor's rules already say where ids belong.
            let ids = words(&call_ids(&input));
            found.retain(|word| !ids.contains(word));
            expected.retain(|word| !ids.contains(word));
            let leading = steps.iter().take_while(|step| matches!(step, Step::Developer)).count() as u32;
            // Leading messages go into the system message, which comes first or last in a body, but once.
            found.retain(|word| *word > leading);
            expected.retain(|word| *word > leading);
            prop_assert_eq!(found, expected, "{:?} {}", wire, sent);
        }
    }

    #[test]
    fn whatever_is_recorded_can_be_sent(input in disorder()) {
        for (wire, provider) in WIRES {
            prop_assert_eq!(problems(wire, &body_of(wire, provider, &input)), Vec::<String>::new());
        }
    }

    #[test]
    fn going_on_is_the_same_as_writing_anew(input in disorder(), cut in 0_usize..14) {
        for (wire, provider) in WIRES.into_iter().chain([(Wire::Responses, "openai")]) {
            let able = Capabilities::of(provider, wire);
            let mut encoder = Encoder::new(wire);
            for end in (0..=input.len()).chain([cut.min(input.len())]) {
                let request = request("m", input[..end].to_vec());
                let body = encoder.encode(&request, &able).unwrap().body.concat();
                prop_assert_eq!(body, body_of(wire, provider, &input[..end]));
            }
        }
    }

    #[test]
    fn responses_are_written_as_they_always_were(steps in prop::collection::vec(step(), 0..12)) {
        let request = request("m", history(&steps));
        let body = body_of(Wire::Responses, "openai", &request.input);
        prop_assert_eq!(String::from_utf8(body).unwrap(), serde_json::to_string(&*request).unwrap());
    }

    #[test]
    fn a_stream_ends_once_however_it_is_cut_or_changed(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), change in any::<u8>(),
    ) {
        let streams = streams();
        let (wire, text) = &streams[which.index(streams.len())];
        let at = at.index(text.len());
        let cut = String::from_utf8_lossy(&text.as_bytes()[..at]).into_owned();
        let mut mutated = text.clone().into_bytes();
        mutated[at] = change;
        for text in [cut, String::from_utf8_lossy(&mutated).into_owned()] {
            let data = Vec::from_iter(text.lines().filter_map(|line| line.strip_prefix("data: ")));
            for provider in ["openai", "gemini", "anthropic"] {
                let events = decode(decoder(*wire, provider), data.iter().copied());
                let ends = events.iter().filter(|event| event.is_terminal()).count();
                prop_assert!(ends == 1 && events.last().unwrap().is_terminal(), "{text}");
            }
        }
    }
}

/// Every known stream of both wires, cut at every byte: one failure that can be retried, until the event that finishes
/// the answer is there; from then on the same items and the same kind of end.
#[test]
fn an_answer_that_was_cut_anywhere_can_be_asked_for_again() {
    for (wire, name, text) in all_streams() {
        let provider = text.lines().next().unwrap().strip_prefix(": provider=").unwrap();
        let read = |text: &str| {
            // An event that was cut off is no event: it ends with an empty line.
            let whole = text.rfind("\n\n").map_or("", |at| &text[..at]);
            let data = whole.lines().filter_map(|line| line.strip_prefix("data: "));
            decode(decoder(wire, provider), data)
        };
        let done = |events: &[StreamEvent]| {
            let items = events.iter().filter(|event| matches!(event, StreamEvent::ItemDone(_)));
            lines(&Vec::from_iter(items.cloned()))
        };
        let ends = |events: &[StreamEvent]| match events.last() {
            Some(StreamEvent::Failed(failure)) => Some(failure.class),
            _ => None,
        };
        let whole = read(&format!("{text}\n\n"));
        for (at, _) in text.char_indices() {
            // In between, the same events are there.
            if !text[..at].ends_with("\n\n") && at != 0 {
                continue;
            }
            let cut = read(&text[..at]);
            assert_eq!(cut.iter().filter(|event| event.is_terminal()).count(), 1, "{name} at {at}");
            match cut.last() {
                Some(StreamEvent::Failed(failure)) if failure.is_retryable() => {}
                _ => assert_eq!((ends(&cut), done(&cut)), (ends(&whole), done(&whole)), "{name} at {at}"),
            }
        }
    }
}

fn all_streams() -> Vec<(Wire, String, String)> {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/streams");
    let mut found = Vec::new();
    for wire in [Wire::Chat, Wire::Messages] {
        for entry in std::fs::read_dir(here.join(wire.name())).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "sse") {
                found.push((wire, path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 20, "only {} streams", found.len());
    found
}

fn call_ids(input: &[Arc<ResponseItem>]) -> String {
    let ids = input.iter().filter_map(|item| match &**item {
        ResponseItem::FunctionCall { call_id, .. } | ResponseItem::CustomToolCall { call_id, .. } => {
            Some(call_id.as_str())
        }
        _ => None,
    });
    ids.collect()
}

fn stream(wire: Wire, name: &str) -> String {
    let path = format!("{}/tests/it/streams/{}/{name}.sse", env!("CARGO_MANIFEST_DIR"), wire.name());
    std::fs::read_to_string(path).unwrap()
}

fn streams() -> Vec<(Wire, String)> {
    let names = [
        (Wire::Chat, "openai_parallel_calls"),
        (Wire::Chat, "gemini_index_zero_and_signature"),
        (Wire::Chat, "mistral_thinking_chunks"),
        (Wire::Chat, "openrouter_details_and_comments"),
        (Wire::Messages, "thinking_and_calls"),
        (Wire::Messages, "unknown_blocks_are_skipped"),
    ];
    names.map(|(wire, name)| (wire, stream(wire, name))).into()
}
