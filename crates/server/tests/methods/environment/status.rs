//! `environment/status`: environments that are not there yet.

use serde_json::json;

use super::{Door, attaches, becomes, has_tools, open_sandbox, paced, shell, status};

#[tokio::test]
async fn a_starting_environment_is_told_but_offers_no_tools_until_it_attaches() {
    let (stage, mut model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let door = Door::new(&stage);
    door.add(&mut client).await;
    let tool = json!({"name": "wait_for_it", "description": "d", "inputSchema": {"type": "object"}});
    let mut params = open_sandbox(&json!([{"environmentId": "box", "cwd": "/"}]));
    params["dynamicTools"] = json!([tool]);
    let thread = client.start_thread(params).await;
    client.start_turn(&thread, "look around").await;

    let first = model.next().await;
    let told = first.context().concat();
    assert!(told.contains("<environment id=\"box\" status=\"starting\">/</environment>"), "{told}");
    assert!(told.contains("<cwd>/</cwd>") && told.contains("<shell>sh</shell>"), "{told}");
    assert!(!has_tools(&first), "{:?}", first.tools());
    assert!(first.tools().contains(&"wait_for_it".to_owned()), "what needs no place is there");
    let reason = json!("the probe ended with code 1: still booting");
    becomes(&mut client, "box", (json!("starting"), reason)).await;
    let seen = first.context();
    first.call("c1", "wait_for_it", &json!({})).await;
    let question = client.next_of("item/tool/call").await;
    door.open();
    let told = client.next_of("thread/environment/connected").await;
    assert_eq!(told, json!({"threadId": thread, "environmentId": "box"}));
    client
        .answer(&question, json!({"contentItems": [{"type": "inputText", "text": "ok"}], "success": true}))
        .await;

    // Within the same turn.
    let second = model.next().await;
    let told = second.told_after(&seen);
    assert!(told.contains("<environment id=\"box\" status=\"attached\">/</environment>"), "{told}");
    assert!(has_tools(&second));
    let seen = second.context();
    second.call("c2", "exec_command", &shell("echo from $INSIDE")).await;
    let third = model.next().await;
    assert!(third.last_output().contains("from the-box"), "{}", third.last_output());

    // The call that cannot be made finds out that the place is gone; the next request knows.
    door.remove();
    third.call("c3", "exec_command", &shell("echo again")).await;
    let fourth = model.next().await;
    assert!(fourth.last_output().contains("`box` cannot be reached"), "{}", fourth.last_output());
    let told = fourth.told_after(&seen);
    assert!(told.contains("<environment id=\"box\" status=\"disconnected\">/</environment>"), "{told}");
    assert!(!has_tools(&fourth));
    fourth.say("it is gone").await;
    let told = client.next_of("thread/environment/disconnected").await;
    assert_eq!((&told["threadId"], &told["environmentId"]), (&json!(thread), &json!("box")));
    assert!(told["reason"].as_str().is_some_and(|reason| reason.ends_with("no such program")), "{told}");
    let (state, reason) = status(&mut client, "box").await;
    assert_eq!((state, &reason), (json!("disconnected"), &told["reason"]));
    client.next_of("turn/completed").await;

    door.open();
    attaches(&mut client, "box").await;
    client.next_of("thread/environment/connected").await;
}
