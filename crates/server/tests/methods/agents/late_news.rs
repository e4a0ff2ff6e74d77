//! Ends that the process did not live to tell: the record of the agent has them, that of its parent does not.

use serde_json::{Value, json};
use testkit::{ReceivedRequest, text, turn};

use super::{NEWS, Play, output};

/// Takes the last of what a thread was told of its agents out of its record, with all that came after it.
fn forget_last_news(path: &str) {
    let record = std::fs::read_to_string(path).expect("a record");
    let lines: Vec<&str> = record.lines().collect();
    let at = lines.iter().rposition(|line| line.contains(NEWS)).expect("news");
    let kept: String = lines[..at].iter().flat_map(|line| [line, "\n"]).collect();
    std::fs::write(path, kept).expect("written");
}

impl Play {
    /// The process ends in the moment between the end of an agent and the news of it.
    async fn kill_before_news(&mut self) {
        let path = text(&self.read(&self.root.clone()).await["path"]);
        self.kill().await;
        forget_last_news(&path);
    }

    /// An agent that has come to its first end, and its idle parent that was told.
    async fn with_one_that_ended(keys: &str) -> (Self, String) {
        let mut play = Self::new(keys).await;
        let asked = play.begin("go").await;
        let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
        play.end(asked, "later, then").await;
        play.end(child, "seen").await;
        play.told(1).await;
        (play, agent)
    }

    async fn restart_without(&mut self) {
        let (server, client) = self.stage.open().await;
        (self.server, self.client) = (Some(server), client);
    }
}

/// The report of an agent, by its last words.
fn told(asked: &ReceivedRequest, agent: &str) -> Vec<String> {
    let is_news = |text: &&String| text.contains(NEWS) && text.contains(agent);
    let words = |text: &String| {
        let news: Value = serde_json::from_str(text.lines().nth(1).expect("a line")).expect("JSON");
        text_of(&news["status"])
    };
    asked.texts().iter().filter(is_news).map(words).collect()
}

fn text_of(status: &Value) -> String {
    let words = status["completed"].as_str().or(status["errored"].as_str());
    words.map_or_else(|| status.to_string(), str::to_owned)
}

#[tokio::test]
async fn an_end_that_nobody_told_is_told_once_by_the_next_process() {
    let (mut play, agent) = Play::with_one_that_ended("").await;
    play.kill_before_news().await;
    for said in ["and?", "and now?", "still?"] {
        play.reopen().await;
        let asked = play.begin(said).await;
        assert_eq!(told(&asked, &agent), ["seen"], "{said}: {:?}", asked.texts());
        let texts = asked.texts();
        let at = |wanted: &str| texts.iter().position(|text| text.contains(wanted)).expect("there");
        assert!(at("later, then") < at(NEWS) && at(NEWS) < at("user: and?"), "{texts:?}");
        play.end(asked, "so").await;
        play.kill().await;
    }
}

#[tokio::test]
async fn a_parent_that_an_agent_left_in_the_middle_of_a_turn_is_told_too() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    play.end(child, "seen").await;
    // The turn of the parent hears of it with its next request, which never comes.
    play.kill().await;
    drop(asked);
    play.reopen().await;
    let asked = play.begin("and?").await;
    assert_eq!(told(&asked, &agent), ["seen"], "{:?}", asked.texts());
    let asked = play.call(asked, "c2", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(output(&asked, "c2")["status"][&agent], json!({"completed": "seen"}));
    assert_eq!(told(&asked, &agent), ["seen"], "{:?}", asked.texts());
}

/// Only the last of several is missing, though all of them were said in the same words.
#[tokio::test]
async fn every_end_counts_for_itself() {
    let (mut play, agent) = Play::with_one_that_ended("").await;
    let asked = play.begin("more").await;
    asked.call("c2", "send_input", &json!({"target": agent, "message": "look again"})).await;
    let child = play.model.of(&agent).await;
    let asked = play.model.of(&play.root.clone()).await;
    play.end(asked, "later").await;
    play.end(child, "seen").await;
    play.told(2).await;
    play.kill_before_news().await;
    play.reopen().await;
    let asked = play.begin("and?").await;
    assert_eq!(told(&asked, &agent), ["seen", "seen"], "{:?}", asked.texts());
    play.end(asked, "so").await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("and now?").await;
    assert_eq!(told(&asked, &agent), ["seen", "seen"], "{:?}", asked.texts());
}

/// A report that is no longer visible is not sent again.
#[tokio::test]
async fn news_that_was_summed_up_is_no_news() {
    let (mut play, agent) = Play::with_one_that_ended("").await;
    play.client.ask("thread/compact/start", json!({"threadId": play.root})).await;
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(told(&asked, &agent), ["seen"]);
    asked.say("an agent has seen it").await;
    play.over(&play.root.clone()).await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("and?").await;
    assert_eq!(told(&asked, &agent), Vec::<String>::new(), "{:?}", asked.texts());
}

#[tokio::test]
async fn whoever_opens_the_agent_first_its_parent_is_told_once() {
    let (mut play, agent) = Play::with_one_that_ended("").await;
    play.kill_before_news().await;
    play.restart_without().await;
    play.client.ask("thread/resume", json!({"threadId": agent})).await;
    // A turn that a client begins is no business of the parent's.
    play.client.ask("turn/start", turn(&agent, "and for me?")).await;
    let child = play.model.of(&agent).await;
    play.end(child, "for you").await;
    play.client.ask("thread/resume", json!({"threadId": play.root})).await;
    let asked = play.begin("and?").await;
    assert_eq!(told(&asked, &agent), ["seen"], "{:?}", asked.texts());
    asked.call("c2", "send_input", &json!({"target": agent, "message": "look again"})).await;
    let child = play.model.of(&agent).await;
    let asked = play.model.of(&play.root.clone()).await;
    asked.call("c3", "wait_agent", &json!({"targets": [agent]})).await;
    child.say("seen more").await;
    let asked = play.model.of(&play.root.clone()).await;
    let asked = play.call(asked, "c4", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(told(&asked, &agent), ["seen", "seen more"], "{:?}", asked.texts());
    play.end(asked, "so").await;
}

/// An agent that fails, and one that is cut off with its parent.
#[tokio::test]
async fn a_failure_is_told_and_what_was_cut_off_is_not() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (fails, dark, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let (cut_off, _at_work, asked) = play.spawn(asked, "c2", json!({"message": "look longer"})).await;
    play.end(asked, "later").await;
    dark.fail("it is too dark").await;
    play.over(&fails).await;
    play.told(1).await;
    play.kill_before_news().await;
    play.reopen().await;
    let asked = play.begin("and?").await;
    let news = told(&asked, &fails);
    assert!(news.len() == 1 && news[0].contains("it is too dark"), "{news:?}");
    assert_eq!(told(&asked, &cut_off), Vec::<String>::new(), "{:?}", asked.texts());
}

/// An agent of an agent, which its own parent is told of when that one is back.
#[tokio::test]
async fn an_agent_is_told_of_its_own_agents() {
    let mut play = Play::new("[agents]\nmax_depth = 2").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let (below, deepest, child) = play.spawn(child, "d1", json!({"message": "deeper"})).await;
    play.end(child, "sent one down").await;
    play.end(asked, "later").await;
    // An input from above its parent is reported to its parent all the same.
    play.end(deepest, "deep").await;
    play.told(1).await;
    let asked = play.begin("more").await;
    asked.call("c2", "send_input", &json!({"target": below, "message": "deeper still"})).await;
    let deepest = play.model.of(&below).await;
    let asked = play.model.of(&play.root.clone()).await;
    play.end(asked, "later").await;
    play.end(deepest, "deeper").await;
    let path = text(&play.read(&agent).await["path"]);
    play.recorded(&path, 2).await;
    play.kill().await;
    forget_last_news(&path);
    for words in ["and?", "and now?"] {
        play.reopen().await;
        let asked = play.begin(words).await;
        let id = format!("c3 {words}");
        asked.call(&id, "send_input", &json!({"target": agent, "message": words})).await;
        let child = play.model.of(&agent).await;
        assert_eq!(told(&child, &below), ["deep", "deeper"], "{:?}", child.texts());
        play.end(child, "so").await;
        let asked = play.model.of(&play.root.clone()).await;
        play.end(asked, "done").await;
        play.kill().await;
    }
}
