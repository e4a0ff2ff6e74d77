//! Threads that go on.

use std::fs;

use journal::{Store, StoreOptions};
use protocol::{ThreadId, ThreadMetadataChange, TriState};

use crate::recorder::Recorder;
use crate::support::{Place, exec, records};

#[test]
fn the_last_thread_or_one_by_its_id() {
    let place = Place::new();
    let first = place.offline(&["--json", "say one"]).good().thread_id();
    let second = place.offline(&["--json", "say two"]).good().thread_id();
    assert_ne!(first, second);
    let last = place.run(&["exec", "resume", "--last", "--json", "say three"]).good();
    assert_eq!(last.thread_id(), second);
    assert!(last.out.contains("Offline model: three"), "the provider is the thread's own: {}", last.out);
    let by_id = place.run_piped(&["exec", "--json", "resume", &first], b"say four").good();
    assert_eq!(by_id.thread_id(), first);
    assert_eq!(by_id.types(), ["thread.started", "turn.started", "item.completed", "turn.completed"]);
    assert_eq!(records(&place.home()).len(), 2);
    let last = place.run(&["exec", "resume", "--last", "--json", "say five"]).good();
    assert_eq!(last.thread_id(), first, "the one used last, not the one made last");
}

#[test]
fn the_last_one_of_this_folder_unless_all_are_meant() {
    let place = Place::new();
    let here = place.offline(&["--json", "say one"]).good().thread_id();
    let other = place.root().join("other");
    fs::create_dir_all(other.join(".git")).expect("made");
    let other = other.to_str().expect("plain");
    let arguments = ["exec", "--provider", "offline", "-C", other, "resume", "--last", "say two"];
    let ran = place.run(&arguments).good();
    assert!(ran.err.contains("no earlier thread of this folder"), "{}", ran.err);
    assert_eq!(records(&place.home()).len(), 2);
    place.run(&["exec", "resume", &here, "say three"]).good();
    let ran = place.run(&["exec", "-C", other, "resume", "--last", "--all", "--json", "say four"]).good();
    assert_eq!(ran.thread_id(), here);
}

#[test]
fn a_name_stands_for_a_thread() {
    let place = Place::new();
    let id = place.offline(&["--json", "say one"]).good().thread_id();
    place.offline(&["say two"]).good();
    let store = Store::open(&place.home(), StoreOptions::default()).expect("a store");
    let change = ThreadMetadataChange { name: TriState::Set("the boat".to_owned()), ..Default::default() };
    store.edit(&ThreadId::new(id.as_str()), change, 0).expect("named");
    drop(store);
    let ran = place.run(&["exec", "resume", "the boat", "--json", "say three"]).good();
    assert_eq!(ran.thread_id(), id);
    let table = place.run(&["threads"]).good().out;
    assert!(table.lines().any(|line| line.starts_with(&id) && line.contains("the boat")), "{table}");
    let ran = place.run(&["exec", "resume", &id[..23], "--json", "say four"]).good();
    assert_eq!(ran.thread_id(), id, "by the beginning of its id");
    let ran = place.run(&["exec", "resume", "the baot", "--provider", "offline", "say five"]).bad();
    assert_eq!(ran.err, "oarlock: there is no thread `the baot`; did you mean `the boat`?\n");
    let ran = place.run(&["exec", "resume", "nobody's", "--provider", "offline", "say six"]).bad();
    assert!(ran.err.starts_with("oarlock: there is no thread `nobody's`; used last were:\n"), "{}", ran.err);
}

#[test]
fn a_thread_keeps_its_model_until_another_is_chosen() {
    let place = Place::new();
    let model = Recorder::start();
    let flags = model.flags();
    let rows: &[(&[&str], &str)] = &[
        (&["-m", "first", "x"], "first"),
        (&["resume", "--last", "x"], "first"),
        (&["resume", "--last", "-m", "second", "x"], "second"),
        (&["-c", "model=third", "resume", "--last", "x"], "third"),
    ];
    // The provider is part of the configuration here, so that choosing it chooses no model.
    fs::create_dir(place.home()).expect("made");
    let config = flags.iter().filter(|flag| *flag != "-c");
    let config = config.map(|flag| flag.replace("=test", "=\"test\"")).collect::<Vec<_>>().join("\n");
    fs::write(place.home().join("config.toml"), config).expect("written");
    for (arguments, expected) in rows {
        place.run(&exec(&[], arguments)).good();
        let request = model.request();
        assert_eq!(request["model"], *expected, "{arguments:?}");
    }
}

#[test]
fn a_thread_keeps_its_sandbox_and_tells_what_does_not_hold_any_more() {
    let place = Place::new();
    let other = place.root().join("other");
    fs::create_dir(&other).expect("made");
    let other = other.to_str().expect("plain");
    place.offline(&["-s", "workspace-write", "run touch one"]).good();
    let ran = place.run(&["exec", "resume", "--last", "run touch two"]).good();
    assert!(ran.err.contains("sandbox  may write to the folder\n"), "{}", ran.err);
    assert!(!ran.err.contains("warning:"), "{}", ran.err);
    let ran = place.run(&["exec", "resume", "--last", "-s", "read-only", "run touch three"]).good();
    assert!(ran.err.contains("sandbox  read-only\n") && !ran.err.contains("warning:"), "{}", ran.err);
    let made = |name: &str| place.folder().join(name).exists();
    assert_eq!([made("one"), made("two"), made("three")], [true, true, false]);
    place.run(&["exec", "resume", "--last", "-s", "workspace-write", "--add-dir", other, "say four"]).good();
    let ran = place.run(&["exec", "resume", "--last", "say five"]).good();
    let told = format!(
        "warning: the sandbox of this thread was: may write to the folder and {other}; from now on it is: may write to \
         the folder\n"
    );
    assert!(ran.err.contains(&told), "{}", ran.err);
}

#[test]
fn the_model_hears_what_was_said_before() {
    let place = Place::new();
    let model = Recorder::start();
    let flags = model.flags();
    place.run(&exec(&flags, &["my cat is called Mia"])).good();
    model.request();
    place.run(&exec(&flags, &["resume", "--last", "what is she called?"])).good();
    let request = model.request().to_string();
    assert!(request.contains("my cat is called Mia") && request.contains("noted"), "{request}");
}

#[test]
fn an_ephemeral_run_leaves_the_thread_as_it_was() {
    let place = Place::new();
    let id = place.offline(&["--json", "say one"]).good().thread_id();
    let before = fs::read(&records(&place.home())[0]).expect("a record");
    let ran = place.run(&["exec", "--ephemeral", "resume", &id, "--json", "say two"]).good();
    assert_ne!(ran.thread_id(), id, "a copy goes on");
    assert_eq!(records(&place.home()).len(), 1);
    assert_eq!(fs::read(&records(&place.home())[0]).expect("a record"), before);
}
