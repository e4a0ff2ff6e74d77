//! The example of docs/hooks.md does what the page says.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{asked, ended, stage, thread};

#[tokio::test]
async fn the_example_of_the_page_works() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks.md");
    let page = fs::read_to_string(page).expect("the page");
    let example =
        page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let example: Value = serde_json::from_str(example).expect("JSON");
    let call = |id: &str, cmd: &str| json!({"call": {"name": "exec_command", "callId": id, "arguments": {"cmd": cmd}}});
    let steps = json!([call("one", "git push origin"), call("two", "touch made"), {"text": "done"}]);
    let stage = stage(steps, example["hooks"].clone()).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "ship it").await;
    assert_eq!(ended(&mut client).await["eventName"], "sessionStart");
    assert_eq!(ended(&mut client).await["status"], "blocked");
    assert_eq!(ended(&mut client).await["status"], "completed");
    client.next_of("turn/completed").await;
    let told = asked(&stage);
    let (_, said) = page.split_once("reads `").expect("the sentence");
    let sentence = said.split('`').next().expect("the sentence");
    assert!(told.contains(sentence) && told.contains("The branch is "), "{told}");
    assert!(stage.cwd().join("made").exists());
}
