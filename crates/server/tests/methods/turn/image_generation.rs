//! Pictures that the provider makes.

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, text};

/// A response with one picture.
fn picture(id: &str, result: &str) -> Value {
    let item = |status: &str, result: &str| json!({"type": "image_generation_call", "id": id, "status": status, "revised_prompt": "a cat", "result": result});
    json!({"events": [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item("in_progress", "")},
        {"type": "response.output_item.done", "output_index": 0, "item": item("completed", result)},
        {"type": "response.completed", "response": {"id": "r1"}},
    ]})
}

#[tokio::test]
async fn a_picture_is_saved_and_the_model_is_told_where() {
    let stage = Stage::configured(json!([picture("ig_1", "aGVsbG8="), {"text": "done"}]), "").await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "draw a cat").await;
    let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let items = read["thread"]["turns"][0]["items"].as_array().expect("items").clone();
    let item = items.iter().find(|item| item["type"] == "imageGeneration").expect("a picture");
    let path = text(&item["savedPath"]);
    assert!(path.ends_with(&format!("generated_images/{thread}/ig_1.png")), "{path}");
    assert_eq!(fs::read(&path).expect("saved"), b"hello");
    client.turn(&thread, "and now?").await;
    let asked = stage.asked();
    let second = asked.last().expect("two requests").to_string();
    assert!(second.contains("The image was saved to"), "{second}");
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert!(read.to_string().contains("ig_1.png"), "it is in the record");
}

#[tokio::test]
async fn what_is_no_picture_is_not_saved() {
    let stage = Stage::configured(json!([picture("../../evil", "***")]), "").await;
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    let turn = client.turn(&thread, "draw a cat").await;
    assert_eq!(turn["status"], "completed");
    let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let items = read["thread"]["turns"][0]["items"].as_array().expect("items").clone();
    let item = items.iter().find(|item| item["type"] == "imageGeneration").expect("a picture");
    assert_eq!(item.get("savedPath"), None);
}
