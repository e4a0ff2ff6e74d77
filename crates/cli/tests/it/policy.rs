//! `policy check` explains commands without running them.

use std::fs;

use serde_json::json;

use crate::support::{Place, Ran};

const RULES: &str = r#"prefix_rule(pattern=["git","push"], decision="prompt", justification="pushes are looked at")
prefix_rule(pattern=["npm","publish"], decision="forbidden", justification="releases come from CI")
prefix_rule(pattern=["cargo",["test","check"]])
"#;

fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.home().join("rules")).expect("made");
    fs::write(place.home().join("rules/mine.rules"), RULES).expect("written");
    place
}

fn check(place: &Place, arguments: &[&str]) -> Ran {
    place.run(&[&["policy", "check"], arguments].concat())
}

#[test]
fn a_verdict_names_its_rule() {
    let place = place();
    let at = |line: usize| format!("{}:{line}", place.home().join("rules/mine.rules").display());
    let cases: [(&[&str], i32, &str, String); 6] = [
        (
            &["--", "git", "push", "origin"],
            3,
            "ask; after a yes it runs in the sandbox (read-only)\n  git push origin\n",
            format!("the rule at {} says prompt (pushes are looked at)", at(1)),
        ),
        (&["npm", "publish"], 4, "refuse: `npm publish` was rejected: releases come from CI\n", at(2)),
        (&["cargo", "check", "--all"], 0, "run, without a sandbox\n", format!("{} says allow", at(3))),
        (&["ls", "-l"], 0, "run, in the sandbox (read-only)\n", "known to be safe".to_owned()),
        (
            &["ls && git push"],
            3,
            "ask;",
            "  ls\n    nothing is held against it\n  git push\n    the rule at".to_owned(),
        ),
        (
            &["--approval-policy", "never", "-s", "workspace-write", "--", "rm", "-rf", "x"],
            4,
            "refuse:",
            "destroys files without asking".to_owned(),
        ),
    ];
    for (arguments, code, beginning, part) in cases {
        let ran = check(&place, arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?} {ran:?}");
        assert!(ran.out.starts_with(beginning) && ran.out.contains(&part), "{arguments:?}: {}", ran.out);
    }
}

#[test]
fn programs_get_the_known_shape_and_the_verdict() {
    let place = place();
    let document = check(&place, &["--json", "--", "git", "push"]).document();
    let source = format!("{}:1", place.home().join("rules/mine.rules").display());
    let rule = json!({ "matchedPrefix": ["git", "push"], "decision": "prompt",
        "justification": "pushes are looked at", "source": source });
    assert_eq!(document["matchedRules"], json!([{ "prefixRuleMatch": rule }]));
    assert_eq!((&document["decision"], &document["verdict"]), (&json!("prompt"), &json!("ask")));
    assert_eq!(document["effectiveSandbox"], "policy");
    assert_eq!(document["commands"][0]["grounds"][0]["rule"], source.as_str());

    let document = check(&place, &["--json", "--approval-policy", "untrusted", "--", "make"]).document();
    assert_eq!((&document["matchedRules"], document.get("decision")), (&json!([]), None));
    assert_eq!((&document["verdict"], &document["approvalPolicy"]), (&json!("ask"), &json!("untrusted")));
    assert_eq!(document["commands"][0]["grounds"][0]["because"], "unmatched");
}

#[test]
fn more_rules_and_those_of_a_trusted_project() {
    let place = place();
    let more = place.file("more.rules", "prefix_rule(pattern=[\"make\"], decision=\"forbidden\")\n");
    let ran = check(&place, &["--rules", &more, "--", "make"]);
    assert!(ran.code == Some(4) && ran.out.contains(&format!("{more}:1")), "{ran:?}");
    let rules = place.folder().join(".codex/rules");
    fs::create_dir_all(&rules).expect("made");
    fs::write(rules.join("p.rules"), "prefix_rule(pattern=[\"make\"])\n").expect("written");
    let strange = check(&place, &["--", "make"]);
    assert!(strange.out.starts_with("run, in the sandbox"), "a strange project allows nothing: {strange:?}");
    let trust = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", place.folder().display());
    fs::write(place.home().join("config.toml"), trust).expect("written");
    let trusted = check(&place, &["--", "make"]);
    assert!(
        trusted.out.starts_with("run, in the sandbox"),
        "what nobody reviewed allows nothing: {trusted:?}"
    );
    assert!(
        trusted.out.contains("p.rules allows commands") && trusted.out.contains("oarlock trust"),
        "{trusted:?}"
    );
    let unasked = place.run(&["trust"]).bad();
    assert!(
        unasked.out.contains("prefix_rule(pattern=[\"make\"])") && unasked.err.contains("--yes"),
        "{unasked:?}"
    );
    place.run(&["trust", "--yes"]).good();
    let trusted = check(&place, &["--", "make"]);
    assert!(
        trusted.out.starts_with("run, without a sandbox") && trusted.out.contains("p.rules:1"),
        "{trusted:?}"
    );
}

#[test]
fn what_cannot_be_read_is_said() {
    let place = place();
    let bad = place.file("bad.rules", "prefix_rule(\n");
    let ran = check(&place, &["--rules", &bad, "--", "ls"]).bad();
    assert!(ran.err.contains("bad.rules:"), "{}", ran.err);
    let ran = check(&place, &["--rules", "none.rules", "--", "ls"]).bad();
    assert!(ran.err.contains("--rules none.rules cannot be read"), "{}", ran.err);
    fs::write(place.home().join("rules/x.rules"), "what\n").expect("written");
    let ran = check(&place, &["--", "cargo", "test"]);
    assert!(ran.out.contains("warning: rules are not used to allow anything:"), "{ran:?}");
    assert!(ran.out.starts_with("run, in the sandbox"), "{ran:?}");
    assert_eq!(check(&place, &[]).code, Some(2));
}
