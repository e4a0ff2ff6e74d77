use super::super::testing::Story;
use super::*;

fn is_away_in(story: &Story) -> bool {
    let history = story.history();
    let [operation] = history.operations.as_slice() else { panic!("{:?}", history.operations) };
    assert_eq!(runs_at_host(operation, &history.model), still_away(&history, &operation.operation_id));
    runs_at_host(operation, &history.model)
}

#[test]
fn a_child_runs_at_the_host_from_its_output_to_its_end() {
    let begun = Story::new().begins("c1");
    assert!(!is_away_in(&begun), "where it is was never said");
    assert!(is_away_in(&Story::new().spawns("c1", "host:x")));
    assert!(is_away_in(&Story::new().spawns("c1", "host:x").end().turn("u2").end()));
    assert!(!is_away_in(&Story::new().spawns("c1", "host:x").finishes("c1", true, None)));
    assert!(!still_away(&begun.history(), &OperationId::new("another")));
}

/// The late reports, after checking that reading the record again gives the same.
fn late(story: &Story) -> Vec<Value> {
    let mut history = story.history();
    let before = history.model.len();
    let records = report_late(&mut history);
    let written = records.into_iter().fold(story.clone(), Story::with);
    assert_eq!(written.history().model, history.model);
    assert!(report_late(&mut written.history()).is_empty(), "told once");
    let told = history.model[before..].iter().map(|item| {
        let fragments = fragments_of(item);
        let body = fragments[0].text.lines().nth(1).expect("a body");
        serde_json::from_str(body).expect("JSON")
    });
    told.collect()
}

fn told(status: &Value) -> Vec<Value> {
    vec![json!({"agent_path": "host:x", "status": status})]
}

#[test]
fn a_recorded_end_without_a_report_is_reported_late() {
    let story = Story::new().spawns("c1", "host:x");
    assert!(late(&story).is_empty());
    let ended = |success, output| story.clone().finishes("c1", success, output);
    assert_eq!(late(&ended(true, Some("found it"))), told(&json!({"completed": "found it"})));
    assert_eq!(late(&ended(true, None)), told(&json!({"completed": null})));
    assert_eq!(late(&ended(false, Some("bad"))), told(&json!({"errored": "bad"})));
    assert_eq!(late(&ended(false, None)), told(&json!({"errored": "the agent failed"})));
}

#[test]
fn a_child_of_an_earlier_turn_is_reported_at_the_end() {
    let operation = Story::new().operation("c1");
    let story = Story::new().spawns("c1", "host:x").end().turn("u2").spawns("c2", "host:y");
    let story = story.finishes_as(operation, true, Some("found it"));
    assert_eq!(late(&story), told(&json!({"completed": "found it"})));
}

#[test]
fn a_reported_end_is_not_reported_again() {
    let story = Story::new().spawns("c1", "host:x").end();
    let ended = story.finishes("c1", false, None).tells("host:x", &json!({"errored": "out of time"}));
    assert!(late(&ended).is_empty());
}

#[test]
fn a_report_of_an_earlier_child_with_the_same_id_does_not_count() {
    let story = Story::new().tells("host:x", &json!("shutdown")).spawns("c1", "host:x");
    let story = story.tells("host:y", &json!({"completed": "found it"}));
    let ended = story.finishes("c1", true, Some("found it"));
    assert_eq!(late(&ended), told(&json!({"completed": "found it"})));
}

#[test]
fn the_end_of_a_closed_child_is_not_reported() {
    let story = Story::new().spawns("c1", "host:x").finishes("c1", false, Some("closed"));
    assert!(late(&story.clone().uses("closeAgent", "c2", "host:x", ("completed", "running"))).is_empty());
    assert_eq!(late(&story).len(), 1, "the call that closed it was cut off");
}

#[test]
fn children_in_this_process_are_ignored() {
    assert!(late(&Story::new().spawns("c1", "a")).is_empty());
    let unanswered = Story::new().begins("c1").finishes("c1", true, Some("found it"));
    assert!(late(&unanswered).is_empty(), "the output of the call says it");
}

#[test]
fn long_messages_are_cut() {
    let fits = "x".repeat(MOST_WORDS);
    assert_eq!(shortened(fits.clone()), fits);
    let long = shortened(format!("{}ä{}", "x".repeat(MOST_WORDS - 1), "y".repeat(10)));
    let expected = format!("{}… (12 more bytes were left out)", "x".repeat(MOST_WORDS - 1));
    assert!(long == expected, "a character is never cut: {}", &long[MOST_WORDS - 2..]);
}

fn result(status: &str, output: &[&str], last: Option<&str>) -> AgentStatus {
    let output: Vec<_> = output.iter().map(|text| json!({"type": "inputText", "text": text})).collect();
    let params = json!({"delegationId": "d", "status": status, "output": output, "finalMessage": last});
    result_status(&serde_json::from_value(params).expect("a result"))
}

#[test]
fn a_result_becomes_a_status_with_the_best_available_message() {
    let completed = |words: &str| AgentStatus::Completed(Some(words.to_owned()));
    let errored = |words: &str| AgentStatus::Errored(words.to_owned());
    for (given, expected) in [
        (result("completed", &[], Some("done")), completed("done")),
        (result("completed", &["all", "of it"], Some("done")), completed("done")),
        (result("completed", &["all", "of it"], None), completed("all\nof it")),
        (result("completed", &[], None), AgentStatus::Completed(None)),
        (result("failed", &["bad"], None), errored("bad")),
        (result("failed", &[], None), errored("the agent failed")),
        (result("canceled", &[], None), errored("the agent was canceled")),
        (result("timedOut", &[], None), errored("the agent ran out of time")),
        (result("timedOut", &[], Some("half of it")), errored("half of it")),
    ] {
        assert_eq!(given, expected);
    }
}
