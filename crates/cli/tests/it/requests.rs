//! The requests that reach the model.

use std::fs;

use serde_json::{Value, json};

use crate::recorder::Recorder;
use crate::support::{Place, exec};

/// A picture of one pixel.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63,
    0xf8, 0xff, 0xff, 0x3f, 0, 5, 0xfe, 2, 0xfe, 0xa7, 0x35, 0x81, 0x84, 0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44,
    0xae, 0x42, 0x60, 0x82,
];

/// The parts of the last message of the user.
fn user_parts(request: &Value) -> Vec<Value> {
    let input = request["input"].as_array().expect("input");
    let last = input.iter().rfind(|item| item["role"] == "user").expect("a message of the user");
    last["content"].as_array().expect("content").clone()
}

#[test]
fn everything_a_client_library_passes_is_understood() {
    let place = Place::new();
    let model = Recorder::start();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"],
        "additionalProperties": false });
    let schema_file = place.file("schema.json", schema.to_string());
    let image = place.file("one.png", PIXEL);
    let second = place.file("two.png", PIXEL);
    let extra = place.root().join("extra");
    fs::create_dir(&extra).expect("made");
    let folder = place.folder();
    let flags = model.flags();
    let arguments = [
        "--experimental-json",
        "--cd",
        folder.to_str().expect("plain"),
        "--add-dir",
        extra.to_str().expect("plain"),
        "--sandbox",
        "workspace-write",
        "--model",
        "some-model",
        "--image",
        &image,
        "--image",
        &second,
        "--output-schema",
        &schema_file,
        "--skip-git-repo-check",
        "--thread-source",
        "sdk",
        "--cyber-access-program",
        "x",
        "--config",
        "model_reasoning_effort=\"high\"",
    ];
    let ran = place.run_piped(&exec(&flags, &arguments), b"what is this?").good();
    assert_eq!(ran.types(), ["thread.started", "turn.started", "item.completed", "turn.completed"]);
    let usage = &ran.events()[3]["usage"];
    let expected = json!({ "input_tokens": 7, "cached_input_tokens": 3, "output_tokens": 2, "reasoning_output_tokens": 1 });
    assert_eq!(*usage, expected);

    let request = model.request();
    assert_eq!(request["model"], "some-model");
    assert_eq!(request["text"]["format"]["schema"], schema);
    let parts = user_parts(&request);
    let images: Vec<usize> = (0..parts.len()).filter(|at| parts[*at]["type"] == "input_image").collect();
    let text = parts.iter().position(|part| part["text"] == "what is this?").expect("the prompt");
    assert!(images.len() == 2 && images.iter().all(|image| *image < text), "images come first: {parts:?}");
    assert!(
        parts[images[0]]["image_url"].as_str().is_some_and(|url| url.starts_with("data:image/png;base64,"))
    );

    let thread = place.run(&["threads", "--json"]).good().document()["data"][0].clone();
    assert_eq!((&thread["threadSource"], &thread["source"]), (&json!("sdk"), &json!("exec")));
}

#[test]
fn every_effort_is_taken() {
    let place = Place::new();
    let model = Recorder::start();
    let flags = model.flags();
    for effort in ["none", "low", "xhigh", "max", "ultra", "persistent"] {
        let flag = format!("model_reasoning_effort={effort}");
        place.run(&exec(&flags, &["--ephemeral", "-c", &flag, "x"])).good();
        model.request();
    }
}

#[test]
fn folders_are_added_to_those_of_the_configuration() {
    let place = Place::new();
    fs::create_dir(place.home()).expect("made");
    let config = "[sandbox_workspace_write]\nwritable_roots = [\"/from-config\"]\n";
    fs::write(place.home().join("config.toml"), config).expect("written");
    let [first, second] = ["first", "second with space"].map(|name| {
        let folder = place.root().join(name);
        fs::create_dir(&folder).expect("made");
        folder.to_str().expect("plain").to_owned()
    });
    let arguments = ["--full-auto", "--add-dir", &first, "--add-dir", &second, "say hi"];
    let ran = place.offline(&arguments).good();
    for root in ["/from-config", &first, &second] {
        assert!(ran.err.contains(root), "{root}: {}", ran.err);
    }
    let missing = place.offline(&["--full-auto", "--add-dir", "/nowhere", "say hi"]).bad();
    assert_eq!(missing.err, "oarlock: --add-dir /nowhere is not a folder\n");
}

#[test]
fn nobody_is_asked_whatever_the_configuration_says() {
    let place = Place::new();
    let model = Recorder::start();
    let flags = model.flags();
    place.run(&exec(&flags, &["-c", "approval_policy=untrusted", "x"])).good();
    let request = model.request().to_string();
    assert!(request.contains("never"), "the model is told the policy: {request}");
    assert!(!request.contains("untrusted"), "{request}");
}

#[test]
fn a_schema_shapes_the_answer() {
    let place = Place::new();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let schema = place.file("schema.json", schema.to_string());
    let ran = place.offline(&["--output-schema", &schema, "count"]).good();
    assert!(ran.document()["n"].is_i64(), "{}", ran.out);
}

#[test]
fn flags_before_the_command_count_and_later_ones_win() {
    let place = Place::new();
    let model = Recorder::start();
    let flags = model.flags();
    let arguments = [&["-c", "model=first"], exec(&flags, &["x"]).as_slice()].concat();
    place.run(&arguments).good();
    assert_eq!(model.request()["model"], "first");
    let arguments = [&["-c", "model=first"], exec(&flags, &["-c", "model=second", "x"]).as_slice()].concat();
    place.run(&arguments).good();
    assert_eq!(model.request()["model"], "second");
}
