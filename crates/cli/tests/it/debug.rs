//! `oarlock debug prompt`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Place;

/// Every file and what is in it; folders without.
fn files(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("readable").map(|entry| entry.expect("an entry").path()) {
            let is_folder = entry.is_dir();
            found.insert(entry.clone(), (!is_folder).then(|| fs::read(&entry).expect("readable")));
            if is_folder {
                open.push(entry);
            }
        }
    }
    found
}

fn names(pieces: &Value) -> Vec<&str> {
    pieces.as_array().expect("pieces").iter().map(|piece| piece["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_new_thread_is_described_and_nothing_is_left_behind() {
    let place = Place::new();
    place.file("work/AGENTS.md", "Use tabs.");
    fs::create_dir(place.home()).expect("made");
    let before = files(&place.root());
    let document = place.run(&["debug", "prompt", "--json", "-m", "gpt-5.2"]).good().document();
    let ran = place.run(&["debug", "prompt", "--provider", "offline", "-s", "danger-full-access"]).good();
    assert_eq!(files(&place.root()), before);
    assert_eq!(document["thread"], Value::Null);
    assert_eq!(names(&document["instructions"])[0], "core");
    assert!(names(&document["tools"]).contains(&"update_plan"), "{document}");
    assert_eq!(document["history"], Value::Array(vec![]));
    let next = names(&document["next"]);
    assert!(next.starts_with(&["permissions"]) && next.ends_with(&["AGENTS.md", "environment"]), "{next:?}");
    assert!(document["next"].to_string().contains("Use tabs."));
    let parts: i64 = ["instructions", "tools", "history", "next"]
        .iter()
        .map(|key| document["tokens"][key].as_i64().expect("tokens"))
        .sum();
    assert_eq!(document["tokens"]["total"], parts);
    // For people only names and sizes, unless they ask for more.
    assert!(ran.out.contains("provider       offline") && ran.out.contains("AGENTS.md"), "{}", ran.out);
    assert!(!ran.out.contains("Use tabs."), "{}", ran.out);
    let full = place.run(&["debug", "prompt", "--full"]).good();
    assert!(full.out.contains("      Use tabs."), "{}", full.out);
}

#[test]
fn a_home_that_is_not_there_is_not_made() {
    let place = Place::new();
    let before = files(&place.root());
    let none = place.run(&["debug", "prompt", "--last"]).bad();
    assert!(none.err.contains("no stored thread of this folder"), "{none:?}");
    let document = place.run(&["debug", "prompt", "--json"]).good().document();
    assert_eq!(names(&document["next"])[0], "permissions");
    assert_eq!(files(&place.root()), before);
    fs::write(place.home(), "a file").expect("written");
    place.run(&["debug", "prompt"]).bad();
}

#[test]
fn what_rules_approve_is_told_where_the_model_may_ask() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("rules")).expect("made");
    let rules = "prefix_rule(pattern=['make', ['check', 'test']])\nprefix_rule(pattern=['rm'], decision='forbidden')\n";
    place.file("home/rules/default.rules", rules);
    let told = |policy: &str| {
        let document =
            place.run(&["debug", "prompt", "--json", "--approval-policy", policy]).good().document();
        document["next"][0]["text"].as_str().expect("a text").to_owned()
    };
    let asked = told("on-request");
    assert!(
        asked.contains("\n- [\"make\", [\"check\", \"test\"]]\n") && !asked.contains("\"rm\""),
        "{asked}"
    );
    assert!(!told("never").contains("make"));
}

#[test]
fn a_stored_thread_is_described_by_id_and_as_the_last_one() {
    let place = Place::new();
    let none = place.run(&["debug", "prompt", "--last"]).bad();
    assert!(none.err.contains("no stored thread of this folder"), "{none:?}");
    let id = place.offline(&["--json", "say hello"]).good().thread_id();
    place.file("work/AGENTS.md", "Use tabs.");
    let before = files(&place.root());
    for which in [&["--thread", &id] as &[&str], &["--last"], &["--last", "--all", "-C", "/"]] {
        let line = [&["debug", "prompt", "--json", "--approval-policy", "never"], which].concat();
        let document = place.run(&line).good().document();
        assert_eq!(document["thread"], id.as_str(), "{which:?}");
        assert_eq!(document["modelProvider"], "offline");
        let history = document["history"].as_array().expect("pieces");
        let said = history.iter().find(|piece| piece["name"] == "message").expect("a message");
        assert_eq!((&said["role"], &said["text"]), (&"user".into(), &"say hello".into()));
        assert!(names(&document["history"]).contains(&"permissions"), "{document}");
        // Told of what is new, and where another folder is asked for, of that.
        let expected: &[&str] = if which.len() == 4 { &["environment"] } else { &["AGENTS.md"] };
        assert_eq!(names(&document["next"]), expected, "{which:?}");
    }
    assert_eq!(files(&place.root()), before);
    let unknown = "019a8b3c-0000-7000-8000-000000000001";
    let refused = place.run(&["debug", "prompt", "--thread", unknown]).bad();
    assert!(refused.err.contains(unknown), "{refused:?}");
}
