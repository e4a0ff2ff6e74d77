//! `thread/list`.

use protocol::{SessionSource, SubAgentSource, ThreadId};
use serde_json::{Value, json};
use testkit::{Stage, TestClient, endless, text};

const SECOND: i64 = 1_000;
const BEGIN: i64 = 1_700_000_000_000;

/// Enough steps for so many turns.
fn steps(count: usize) -> Value {
    Value::Array(vec![json!({"text": "hello"}); count])
}

/// A thread started with these params at so many seconds after the beginning; it says when that was.
async fn at(stage: &Stage, client: &mut TestClient, seconds: i64, params: Value) -> String {
    stage.clock.set(BEGIN + seconds * SECOND);
    let id = client.start_thread(params).await;
    client.turn(&id, &format!("said at {seconds}")).await;
    id
}

async fn listed(client: &mut TestClient, params: Value) -> Vec<String> {
    ids(&client.ask("thread/list", params).await)
}

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().expect("threads").iter().map(|thread| text(&thread["id"])).collect()
}

#[tokio::test]
async fn nothing_is_listed_where_nothing_is() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    assert_eq!(client.ask("thread/list", json!({})).await, json!({"data": [], "nextCursor": null}));
    // A thread in which nothing was said is not a thread yet.
    client.start_thread(json!({})).await;
    assert_eq!(listed(&mut client, json!({})).await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_follow_each_other_until_there_is_no_cursor() {
    let stage = Stage::new(steps(5)).await;
    let (_server, mut client) = stage.open().await;
    let mut made = Vec::new();
    for seconds in 0..5 {
        made.insert(0, at(&stage, &mut client, seconds, json!({})).await);
    }
    for sort_key in ["created_at", "updated_at"] {
        let (mut seen, mut cursor) = (Vec::new(), Value::Null);
        for expected in [2, 2, 1] {
            let params = json!({"limit": 2, "cursor": cursor, "sortKey": sort_key});
            let page = client.ask("thread/list", params).await;
            assert_eq!(ids(&page).len(), expected);
            seen.extend(ids(&page));
            cursor = page["nextCursor"].clone();
            assert_eq!(cursor.is_null(), expected == 1, "{page}");
        }
        assert_eq!(seen, made, "{sort_key}");
    }
    // A page that ends with the last thread has no cursor either.
    assert_eq!(client.ask("thread/list", json!({"limit": 5})).await["nextCursor"], Value::Null);
    assert_eq!(
        client.refused("thread/list", json!({"cursor": "nonsense"})).await,
        "invalid cursor: nonsense"
    );
}

#[tokio::test]
async fn at_most_a_hundred_come_at_once() {
    let stage = Stage::new(steps(1)).await;
    let (_server, mut client) = stage.open().await;
    let source = client.spoken_thread("hi").await;
    for _ in 0..101 {
        client.ask("thread/fork", json!({"threadId": source, "excludeTurns": true})).await;
    }
    let page = client.ask("thread/list", json!({"limit": 500})).await;
    assert_eq!(ids(&page).len(), 100);
    let rest = client.ask("thread/list", json!({"limit": 500, "cursor": page["nextCursor"]})).await;
    assert_eq!((ids(&rest).len(), &rest["nextCursor"]), (2, &Value::Null));
    assert_eq!(ids(&client.ask("thread/list", json!({})).await).len(), 25);
    assert_eq!(ids(&client.ask("thread/list", json!({"limit": 0})).await).len(), 1);
}

#[tokio::test]
async fn providers_folders_and_words_filter() {
    let stage = Stage::new(steps(3)).await;
    let (_server, mut client) = stage.open().await;
    let mine = at(&stage, &mut client, 1, json!({"cwd": stage.cwd()})).await;
    let other = at(&stage, &mut client, 2, json!({"modelProvider": "other"})).await;
    let elsewhere = at(&stage, &mut client, 33, json!({"cwd": stage.home()})).await;
    let all = vec![elsewhere.clone(), other.clone(), mine.clone()];
    let cases = [
        (json!({}), vec![elsewhere.clone(), mine.clone()]),
        (json!({"modelProviders": []}), all),
        (json!({"modelProviders": ["other"]}), vec![other]),
        (json!({"modelProviders": ["nobody"]}), vec![]),
        (json!({"cwd": stage.cwd()}), vec![mine.clone()]),
        (json!({"cwd": "/nowhere"}), vec![]),
        (json!({"searchTerm": "at 33"}), vec![elsewhere]),
        (json!({"searchTerm": "AT 33"}), vec![]),
        (json!({"searchTerm": "said", "cwd": stage.cwd(), "limit": 1}), vec![mine]),
    ];
    for (params, expected) in cases {
        assert_eq!(listed(&mut client, params.clone()).await, expected, "{params}");
    }
}

#[tokio::test]
async fn a_filtered_page_is_filled_as_long_as_there_is_more() {
    let stage = Stage::new(steps(9)).await;
    let (_server, mut client) = stage.open().await;
    let mut wanted = Vec::new();
    for seconds in 0..9 {
        let provider = if seconds % 3 == 0 { "other" } else { "mock" };
        let id = at(&stage, &mut client, seconds, json!({"modelProvider": provider})).await;
        if provider == "other" {
            wanted.insert(0, id);
        }
    }
    let first = client.ask("thread/list", json!({"modelProviders": ["other"], "limit": 2})).await;
    assert_eq!(ids(&first), wanted[..2]);
    let next = json!({"modelProviders": ["other"], "limit": 2, "cursor": first["nextCursor"]});
    let next = client.ask("thread/list", next).await;
    assert_eq!((ids(&next), &next["nextCursor"]), (wanted[2..].to_vec(), &Value::Null));
    let all = client.ask("thread/list", json!({"modelProviders": ["other"], "limit": 8})).await;
    assert_eq!((ids(&all), &all["nextCursor"]), (wanted, &Value::Null));
}

#[tokio::test]
async fn kinds_of_sources_tell_threads_apart() {
    let parent = ThreadId::new("019a8b3c-0000-7000-8000-000000000001");
    let spawn = SubAgentSource::ThreadSpawn {
        parent_thread_id: parent,
        depth: 1,
        agent_path: None,
        agent_nickname: None,
        agent_role: None,
    };
    let sources = [
        ("vscode", SessionSource::Vscode),
        ("cli", SessionSource::Cli),
        ("exec", SessionSource::Exec),
        ("appServer", SessionSource::AppServer),
        ("unknown", SessionSource::Unknown),
        ("subAgentReview", SessionSource::SubAgent(SubAgentSource::Review)),
        ("subAgentCompact", SessionSource::SubAgent(SubAgentSource::Compact)),
        ("subAgentThreadSpawn", SessionSource::SubAgent(spawn)),
        ("subAgentOther", SessionSource::SubAgent(SubAgentSource::Other("x".to_owned()))),
    ];
    let stage = Stage::new(steps(sources.len())).await;
    let mut made = Vec::new();
    for (seconds, (kind, source)) in (0..).zip(sources) {
        stage.set_source(source);
        let (server, mut client) = stage.open().await;
        made.push((kind, at(&stage, &mut client, seconds, json!({})).await));
        server.stop().await;
    }
    let (_server, mut client) = stage.open().await;
    for (kind, id) in &made {
        let found = listed(&mut client, json!({"sourceKinds": [kind]})).await;
        assert_eq!(found, [id.as_str()], "{kind}");
    }
    let newest_first = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        made.iter().rev().filter(|(kind, _)| wanted(kind)).map(|(_, id)| id.clone()).collect()
    };
    let interactive = newest_first(&|kind| ["vscode", "cli"].contains(&kind));
    assert_eq!(listed(&mut client, json!({})).await, interactive);
    assert_eq!(listed(&mut client, json!({"sourceKinds": []})).await, interactive);
    let children = newest_first(&|kind| kind.starts_with("subAgent"));
    assert_eq!(listed(&mut client, json!({"sourceKinds": ["subAgent"]})).await, children);
}

#[tokio::test]
async fn the_keys_sort_by_making_and_by_changing() {
    let stage = Stage::new(steps(3)).await;
    let (server, mut client) = stage.open().await;
    let old = at(&stage, &mut client, 1, json!({})).await;
    let new = at(&stage, &mut client, 2, json!({})).await;
    stage.clock.set(BEGIN + 9 * SECOND);
    client.turn(&old, "once more").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let by_default = client.ask("thread/list", json!({})).await;
    assert_eq!(ids(&by_default), [new.as_str(), old.as_str()]);
    let times = |thread: &Value| (thread["createdAt"].as_i64(), thread["updatedAt"].as_i64());
    let begin = BEGIN / SECOND;
    assert_eq!(times(&by_default["data"][0]), (Some(begin + 2), Some(begin + 2)));
    assert_eq!(times(&by_default["data"][1]), (Some(begin + 1), Some(begin + 9)));
    assert_eq!(listed(&mut client, json!({"sortKey": "created_at"})).await, [new.as_str(), old.as_str()]);
    assert_eq!(listed(&mut client, json!({"sortKey": "updated_at"})).await, [old.as_str(), new.as_str()]);
}

#[tokio::test]
async fn threads_of_one_moment_are_ordered_by_id() {
    let stage = Stage::new(steps(4)).await;
    let (_server, mut client) = stage.open().await;
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(at(&stage, &mut client, 5, json!({})).await);
    }
    made.sort();
    made.reverse();
    for sort_key in ["created_at", "updated_at"] {
        let first = client.ask("thread/list", json!({"sortKey": sort_key, "limit": 3})).await;
        let cursor = &first["nextCursor"];
        let second = client.ask("thread/list", json!({"sortKey": sort_key, "cursor": cursor})).await;
        assert_eq!([ids(&first), ids(&second)].concat(), made, "{sort_key}");
    }
}

#[tokio::test]
async fn archived_threads_are_listed_when_asked_for() {
    let stage = Stage::new(steps(2)).await;
    let (_server, mut client) = stage.open().await;
    let kept = at(&stage, &mut client, 1, json!({})).await;
    let gone = at(&stage, &mut client, 2, json!({})).await;
    client.ask("thread/archive", json!({"threadId": gone})).await;
    assert_eq!(listed(&mut client, json!({})).await, [kept.as_str()]);
    assert_eq!(listed(&mut client, json!({"archived": false})).await, [kept.as_str()]);
    assert_eq!(listed(&mut client, json!({"archived": true})).await, [gone.as_str()]);
}

#[tokio::test]
async fn a_list_shows_git_and_live_status() {
    let stage = Stage::new(json!([{"text": "hello"}, endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(stage.cwd()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    };
    git(&["init", "--initial-branch=trunk"]);
    git(&["remote", "add", "origin", "https://example.com/repository.git"]);
    let names = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    git(&[&names[..], &["commit", "--allow-empty", "--message=first"]].concat());
    let sha = git(&["rev-parse", "HEAD"]);
    let id = at(&stage, &mut client, 1, json!({"cwd": stage.cwd()})).await;
    let shown = client.ask("thread/list", json!({})).await["data"][0].clone();
    let expected = json!({"sha": sha, "branch": "trunk", "originUrl": "https://example.com/repository.git"});
    assert_eq!(shown["gitInfo"], expected);
    assert_eq!((&shown["status"], &shown["turns"]), (&json!({"type": "idle"}), &json!([])));
    client.start_turn(&id, "work").await;
    let shown = client.ask("thread/list", json!({})).await["data"][0]["status"].clone();
    assert_eq!(shown, json!({"type": "active", "activeFlags": []}));
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    let shown = client.ask("thread/list", json!({})).await["data"][0]["status"].clone();
    assert_eq!(shown, json!({"type": "notLoaded"}));
}
