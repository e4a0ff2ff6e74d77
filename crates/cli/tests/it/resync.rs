//! A client stays at one `oarlock host` of several, and the one that has its thread is killed in the middle of a turn: it hears
//! how the thread stands at the next owner, then the rest of the turn, and nothing twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::host::{APPROVAL, HostClient, until};
use crate::relay::{completed, configure, resume};
use crate::replicas::{Replica, job, let_go, postgres, runs};
use crate::support::Place;

const RESYNCED: &str = "thread/resynced";

fn is_command(message: &Value, method: &str) -> bool {
    message["method"] == method && message["params"]["item"]["type"] == "commandExecution"
}

fn item_id(message: &Value) -> String {
    message["params"]["item"]["id"].as_str().expect("an item").to_owned()
}

/// The next `item/started` of a command.
fn command_begun(client: &mut HostClient) -> String {
    loop {
        let message = client.wait_for("item/started");
        if is_command(&message, "item/started") {
            return item_id(&message);
        }
    }
}

/// Each item and each turn has ended once, as far as the client was told.
fn assert_nothing_twice(client: &mut HostClient) {
    client.ask("thread/loaded/list", &json!({}));
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for message in &client.log {
        match message["method"].as_str() {
            Some("item/completed") => *ends.entry(item_id(message)).or_default() += 1,
            Some("turn/completed") => {
                *ends.entry(message["params"]["turn"]["id"].to_string()).or_default() += 1;
            }
            _ => {}
        }
    }
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
}

/// The place of the first message of this method, after `from`.
fn at(client: &HostClient, from: usize, method: &str) -> usize {
    let found = client.log[from..].iter().position(|message| message["method"] == method);
    from + found.unwrap_or_else(|| panic!("{method} did not come: {:?}", client.log))
}

#[test]
fn a_follower_hears_how_its_thread_stands_at_the_next_owner_and_then_the_rest_of_the_turn() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    for name in ["first", "second"] {
        job(&place, name);
    }
    configure(&place);
    // The host of the clients takes nothing over.
    let here = Replica::start_with(&place, &server, "a", &["--no-adopt"]);
    let owner = Replica::start(&place, &server, "b");
    let thread = owner.client().start_thread(&place, "never");
    let next = Replica::start(&place, &server, "c");
    let (mut client, mut stock) = (here.client(), here.stock_client());
    resume(&mut client, &thread);
    resume(&mut stock, &thread);
    client.turn(&thread, "run sh first.sh then run sh second.sh then say done", "i1");
    let begun = command_begun(&mut client);
    assert_eq!(command_begun(&mut stock), begun);
    until("the first command", || (runs(&place, "first") == 1).then_some(()));
    owner.kill();
    // A client there keeps the task with the next owner.
    let mut other = next.client();
    resume(&mut other, &thread);

    let resynced = client.wait_for(RESYNCED);
    assert_eq!(resynced["params"]["threadId"], *thread, "{resynced}");
    assert!(resynced["params"]["ordinal"].as_u64().is_some_and(|ordinal| ordinal > 0), "{resynced}");
    let open = resynced["params"]["openItems"].as_array().expect("a list");
    assert_eq!((open.len(), &open[0]["item"]["id"]), (1, &json!(begun)), "{resynced}");
    assert_eq!(command_begun(&mut stock), begun, "it is open still");

    let lost = until("the loss", || next.pending(&place, &thread));
    assert_eq!(lost["state"], "unknown", "{lost}");
    next.decide(&place, "respond", &lost, &["it had been done"]);
    until("the second command", || (runs(&place, "second") == 1).then_some(()));
    let_go(&place, "second");
    for client in [&mut client, &mut stock] {
        completed(client);
        assert_nothing_twice(client);
        let second = client.log.iter().rfind(|message| is_command(message, "item/completed"));
        assert_eq!(second.expect("the second command")["params"]["item"]["exitCode"], 0);
    }
    let heard = at(&client, 0, RESYNCED);
    assert!(at(&client, 0, "turn/completed") > heard && at(&client, heard, "turn/started") > heard);
    assert_eq!(client.log.iter().filter(|message| message["method"] == RESYNCED).count(), 1);
    assert!(stock.log.iter().all(|message| message["method"] != RESYNCED), "it knows nothing of hosts");
    assert_eq!((runs(&place, "first"), runs(&place, "second")), (1, 1));
    // It follows the next owner from now on.
    client.turn(&thread, "say hello", "i2");
    completed(&mut client);
    completed(&mut stock);
}

#[test]
fn a_host_that_takes_the_task_of_its_clients_over_tells_them_before_it_goes_on() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let_go(&place, "job");
    configure(&place);
    let [here, owner] = ["a", "b"].map(|name| Replica::start(&place, &server, name));
    let thread = owner.client().start_thread(&place, "untrusted");
    let (mut client, mut stock) = (here.client(), here.stock_client());
    resume(&mut client, &thread);
    resume(&mut stock, &thread);
    client.turn(&thread, "run sh job.sh then say done", "i1");
    let asked = client.wait_for(APPROVAL);
    stock.wait_for(APPROVAL);
    let before = client.log.len();
    owner.kill();

    client.wait_for(RESYNCED);
    let again = client.wait_for(APPROVAL);
    assert_eq!(again["params"]["operationId"], asked["params"]["operationId"], "the same question");
    let heard = at(&client, before, RESYNCED);
    for later in ["turn/started", "item/started", APPROVAL] {
        assert!(at(&client, before, later) > heard, "{later}: {:?}", client.log);
    }
    client.write(&json!({"id": again["id"], "result": {"decision": "accept"}}));
    for client in [&mut client, &mut stock] {
        completed(client);
        assert_nothing_twice(client);
    }
    assert_eq!(runs(&place, "job"), 1);
}

/// The end of a turn comes while the host of the client is stopped: it is in the record, and nobody says it again.
fn end_while_nobody_listens(idle_after: &str) {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let_go(&place, "job");
    configure(&place);
    let here = Replica::start(&place, &server, "a");
    let owner = Replica::start(&place, &server, "b");
    let thread = owner.client().start_thread(&place, "untrusted");
    let (mut client, mut stock) = (here.client(), here.stock_client());
    resume(&mut client, &thread);
    resume(&mut stock, &thread);
    client.turn(&thread, "run sh job.sh then say done", "i1");
    client.wait_for(APPROVAL);
    stock.wait_for(APPROVAL);
    here.signal("-STOP");
    owner.kill();
    let next = Replica::start_with(&place, &server, "c", &["--idle-after", idle_after]);
    let waiting = until("the question", || next.pending(&place, &thread));
    next.decide(&place, "approve", &waiting, &[]);
    until("the end of the turn", || (next.state(&place, &thread) == "idle").then_some(()));
    if idle_after == "0" {
        until("no owner", || {
            let refused = next.client().ask("thread/loaded/list", &json!({}))["data"].to_string();
            (!refused.contains(&thread)).then_some(())
        });
    }
    here.signal("-CONT");
    for client in [&mut client, &mut stock] {
        completed(client);
        assert_nothing_twice(client);
        let ended = client.log.iter().find(|message| is_command(message, "item/completed"));
        assert_eq!(ended.expect("the command ended")["params"]["item"]["exitCode"], 0);
    }
    client.wait_for(RESYNCED);
    assert_eq!(runs(&place, "job"), 1);
}

#[test]
fn the_end_of_a_turn_that_nobody_passed_on_is_told_by_the_record_while_another_host_has_the_task() {
    end_while_nobody_listens("60");
}

#[test]
fn the_end_of_a_turn_that_nobody_passed_on_is_told_by_the_record_when_no_host_has_the_task() {
    end_while_nobody_listens("0");
}
