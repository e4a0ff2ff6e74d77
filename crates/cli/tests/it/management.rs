//! Commands that look after threads, models, logins and settings, as a person reads them.

use std::fs;

use testkit::RunInTime;

use crate::support::{Place, records};

#[test]
fn threads_are_shown_named_put_away_and_deleted() {
    let place = Place::new();
    let ids: Vec<String> = ["one", "two"]
        .map(|word| place.offline(&["--json", &format!("say {word}")]).good().thread_id())
        .into();
    let short = &ids[0][..23];
    let named = place.run(&["threads", "rename", short, "the first"]).good().out;
    assert_eq!(named, format!("named: {}  say one\n", &ids[0][..13]));
    let shown = place.run(&["threads", "show", "the first"]).good().out;
    for line in [
        format!("thread  {}\n", ids[0]),
        "name    the first\n".to_owned(),
        "model   offline (provider offline)\n".to_owned(),
        "you: say one\n".to_owned(),
        format!("Go on with it: oarlock resume {}\n", &ids[0][..13]),
    ] {
        assert!(shown.contains(&line), "{line}: {shown}");
    }
    let document = place.run(&["threads", "show", short, "--json"]).good().document();
    assert_eq!((&document["id"], &document["name"]), (&ids[0].as_str().into(), &"the first".into()));
    assert!(document["bytes"].as_u64().is_some_and(|bytes| bytes > 100), "{document}");
    assert_eq!(document["turns"].as_array().map(Vec::len), Some(1));

    let found = place.run(&["threads", "search", "SAY TWO"]).good().out;
    assert_eq!(found, format!("{}  say two\n", &ids[1][..13]));
    assert_eq!(place.run(&["threads", "search", "zebra"]).bad().out, "");

    place.run(&["threads", "archive", short]).good();
    assert_eq!(place.run(&["threads", "--json"]).good().document()["data"].as_array().map(Vec::len), Some(1));
    let back = place.run(&["threads", "unarchive", "the first"]).good().out;
    assert_eq!(back, format!("back from the archive: {}  the first\n", &ids[0][..13]));

    let asked = place.run(&["threads", "delete", short]).bad();
    assert!(
        asked.err.starts_with("oarlock: nobody can be asked here; add --yes to delete 1 thread ("),
        "{asked:?}"
    );
    let missed = place.run(&["threads", "delete", "--yes", "the frist", &ids[1]]).bad();
    assert_eq!(missed.err, "oarlock: there is no thread `the frist`; did you mean `the first`?\n");
    assert_eq!(records(&place.home()).len(), 2, "nothing goes before all are found");
    let gone = place.run(&["threads", "delete", "--yes", short]).good().out;
    assert_eq!(gone, format!("deleted: {}  the first\n", &ids[0][..13]));
    assert_eq!(records(&place.home()).len(), 1);
    let left = place.run(&["threads", "--json"]).good().document();
    assert_eq!(left["data"].as_array().map(Vec::len), Some(1), "{left}");
}

#[test]
fn a_thread_is_exported_as_a_rollout_and_imported_again() {
    let place = Place::new();
    let id = place.offline(&["--json", "say one"]).good().thread_id();
    place.run(&["exec", "--provider", "offline", "resume", &id, "say two"]).good();
    let nowhere = place.run(&["threads", "export", &id, "--to", "missing"]).bad();
    assert_eq!(
        nowhere.err,
        "oarlock: --to: missing is no folder; name the home of Codex, such as ~/.codex\n"
    );
    let theirs = place.root().join("theirs");
    fs::create_dir(&theirs).expect("made");
    let to = theirs.to_str().expect("a plain path");
    let exported = place.run(&["threads", "export", &id[..13], "--to", to]).good().out;
    let path = exported.trim();
    assert!(path.starts_with(&format!("{to}/sessions/")) && path.ends_with(&format!("{id}.jsonl")), "{path}");
    let rollout = fs::read_to_string(path).expect("written");
    assert_eq!(place.run(&["threads", "export", &id]).good().out, rollout);
    let again = place.run(&["threads", "export", &id, "--to", to]).bad();
    assert!(again.err.contains("File exists"), "what is there may have gone on: {again:?}");
    assert_eq!(fs::read_to_string(path).expect("there"), rollout);

    let other = Place::new();
    let imported = other.run(&["threads", "import", path, "missing"]).bad();
    assert_eq!(imported.out, format!("{id}  say one\n"), "the others are imported all the same");
    assert!(imported.err.starts_with("oarlock: missing: no such file"), "{imported:?}");
    let twice = other.run(&["threads", "import", path]).bad();
    assert!(twice.err.contains("there is a record of this thread already"), "{twice:?}");
    let said = |place: &Place| {
        let shown = place.run(&["threads", "show", &id]).good().out;
        shown.lines().filter(|line| line.contains("say ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(said(&other), said(&place));
    let turns = |place: &Place| {
        let shown = place.run(&["threads", "show", &id, "--json"]).good().document();
        let turns = shown["turns"].as_array().expect("turns").iter();
        turns.map(|turn| (turn["id"].clone(), turn["status"].clone())).collect::<Vec<_>>()
    };
    assert_eq!((turns(&other).len(), turns(&other)), (2, turns(&place)));
    let going_on = other.run(&["exec", "--provider", "offline", "resume", &id, "say three"]).good();
    assert_eq!(going_on.out, "Offline model: three\n", "{going_on:?}");
    assert_eq!(turns(&other).len(), 3);
    assert_eq!(fs::read_to_string(path).expect("there"), rollout, "an imported file stays as it was");
}

#[test]
fn old_threads_are_pruned_when_asked() {
    let place = Place::new();
    place.offline(&["say one"]).good();
    let young = place.run(&["threads", "prune", "--older-than", "1d"]).good().out;
    assert_eq!(young, "No thread is that old.\n");
    let wrong = place.run(&["threads", "prune", "--older-than", "soon"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("such as 90d"), "{wrong:?}");
    assert!(place.run(&["threads", "prune"]).code == Some(2), "an age has to be said");
    assert_eq!(records(&place.home()).len(), 1);
}

#[test]
fn settings_are_read_and_written_with_their_comments() {
    let place = Place::new();
    let path = place.run(&["config", "path"]).good().out;
    let file = place.home().join("config.toml");
    assert_eq!(path.trim(), file.to_str().expect("plain"));
    place.run(&["config", "set", "model", "gpt-x"]).good();
    let text = fs::read_to_string(&file).expect("written");
    fs::write(&file, format!("# mine\n{text}\n[tools]\nview_image = true # yes\n")).expect("written");
    place.run(&["config", "set", "model_context_window", "4096"]).good();
    place.run(&["config", "set", "profiles.quick.model", "small"]).good();
    let text = fs::read_to_string(&file).expect("there");
    assert!(text.starts_with("# mine\n") && text.contains("view_image = true # yes"), "{text}");
    assert_eq!(place.run(&["config", "get", "model"]).good().out, "gpt-x\n");
    assert_eq!(place.run(&["config", "get", "model_context_window"]).good().out, "4096\n");
    assert_eq!(place.run(&["-c", "model=other", "config", "get", "model"]).good().out, "other\n");
    assert_eq!(place.run(&["config", "get"]).good().document()["profiles"]["quick"]["model"], "small");
    place.run(&["config", "set", "model", "--unset"]).good();
    assert_eq!(place.run(&["config", "get", "model"]).bad().err, "oarlock: `model` is not set\n");
    for (arguments, told) in [
        (&["get", "modl"][..], "oarlock: `modl` is not a known key; did you mean `model`?\n"),
        (
            &["set", "sandbox_mod", "read-only"],
            "oarlock: nothing was written: `sandbox_mod` is not a known key; did you mean `sandbox_mode`?\n",
        ),
    ] {
        assert_eq!(place.run(&[&["config"], arguments].concat()).bad().err, told);
    }
    let refused = place.run(&["config", "set", "sandbox_mode", "sideways"]).bad().err;
    assert!(refused.contains("Invalid configuration") && refused.contains("sideways"), "{refused}");
}

#[test]
fn an_editor_gets_the_file_and_its_mistakes_are_told() {
    let place = Place::new();
    let editor = place.file("editor", "#!/bin/sh\necho 'sandbox_mod = 1' > \"$1\"\n");
    let mut edit = place.command(&["config", "edit"]);
    edit.env("VISUAL", format!("sh {editor}"));
    let output = edit.output_in_time();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(
        told.starts_with("warning: `sandbox_mod` is not a known key; did you mean `sandbox_mode`? ("),
        "{told}"
    );
    let mut none = place.command(&["config", "edit"]);
    let output = none.env_remove("VISUAL").env_remove("EDITOR").output_in_time();
    assert!(String::from_utf8_lossy(&output.stderr).contains("set VISUAL or EDITOR"));
}

#[test]
fn a_key_is_stored_for_its_owner_and_forgotten() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    assert_eq!(place.run(&["login", "status"]).bad().out, "Not logged in.\n");
    let empty = place.run_piped(&["login", "--api-key"], b"\n").bad();
    assert!(empty.err.contains("no key came on standard input"), "{empty:?}");
    let stored = place.run_piped(&["login", "--api-key"], b"sk-secret-of-mine\n").good();
    let file = place.home().join("credentials.json");
    assert_eq!(stored.out, format!("Logged in. What was given is in {}, for you alone.\n", file.display()));
    assert!(!stored.err.contains("sk-secret"), "{stored:?}");
    assert!(fs::read_to_string(&file).expect("stored").contains("sk-secret-of-mine"));
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(place.run(&["login", "status"]).good().out, "Logged in with an API key.\n");
    assert_eq!(place.run(&["logout"]).good().out, "Logged out.\n");
    assert!(!file.exists());
    assert_eq!(place.run(&["logout"]).good().out, "Nobody was logged in.\n");
}

#[test]
fn models_are_listed() {
    let place = Place::new();
    let text = place.run(&["models", "--provider", "offline"]).good().out;
    assert_eq!(
        text,
        "Models of offline; * is what is asked without --model.\n* offline           the test model inside this program\n"
    );
    let mut with_key = place.command(&["models", "--json"]);
    let output = with_key.env("OPENAI_API_KEY", "sk-x").output_in_time();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let models = document["data"].as_array().expect("a list");
    assert!(
        document["provider"] == "openai" && models.iter().any(|model| model["isDefault"] == true),
        "{document}"
    );
    let unknown = place.run(&["models", "--provider", "offlin"]).bad().err;
    assert!(unknown.contains("`offlin` not found; did you mean `offline`?"), "{unknown}");
}

#[test]
fn settings_that_do_nothing_are_told_before_a_turn_and_refused_when_asked() {
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    fs::write(place.home().join("config.toml"), "sandbox_mod = 'read-only'\n").expect("written");
    let config = place.home().join("config.toml");
    let told =
        format!("`sandbox_mod` is not a known key; did you mean `sandbox_mode`? ({}:1:1)", config.display());
    let ran = place.offline(&["say hello"]).good();
    assert!(ran.err.contains(&format!("warning: {told}\n")), "{}", ran.err);
    let ran = place.run(&["doctor", "--provider", "offline"]).good();
    assert!(ran.out.contains(&told), "{}", ran.out);
    let ran = place.run(&["--strict-config", "exec", "--provider", "offline", "say hello"]).bad();
    assert_eq!(ran.err, format!("oarlock: {told}; strict_config is set\n"));
    let ran = place.run(&["doctor", "--strict-config", "--provider", "offline"]).bad();
    assert!(ran.out.contains("problem  config") && ran.out.contains(&told), "{}", ran.out);
}
