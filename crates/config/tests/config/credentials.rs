use std::fs;

use oarlock_config::{Credentials, Home, SecretText};

use crate::support::{Machine, mode};

fn store(machine: &Machine) -> Credentials {
    Credentials::new(&Home::at(machine.path("state")))
}

#[test]
fn a_key_is_saved_read_and_forgotten() {
    let machine = Machine::new();
    let store = store(&machine);
    assert_eq!(store.load().expect("readable"), None);
    assert!(!store.clear().expect("nothing to clear"));
    for key in ["sk-one", "sk-two"] {
        store.save_api_key(&SecretText::new(key)).expect("saved");
        assert_eq!(store.load().expect("readable").as_ref().map(SecretText::reveal), Some(key));
    }
    #[cfg(unix)]
    {
        assert_eq!(mode(store.file()), 0o600);
        assert_eq!(mode(&machine.path("state")), 0o700);
    }
    let names: Vec<_> = fs::read_dir(machine.path("state"))
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, ["credentials.json"], "no temporary file stays behind");
    assert!(store.clear().expect("cleared"));
    assert_eq!(store.load().expect("readable"), None);
}

#[test]
fn a_file_that_cannot_be_understood_is_no_login() {
    for text in ["", "{", "[]", "{}", "{\"api_key\": null}", "{\"api_key\": \" \"}", "{\"api_key\": 5}"] {
        let machine = Machine::new().file("state/credentials.json", text);
        assert_eq!(store(&machine).load().expect("readable"), None, "{text}");
    }
}

#[test]
fn errors_and_debug_output_do_not_show_the_key() {
    let machine = Machine::new().file("state", "in the way");
    let error = store(&machine).save_api_key(&SecretText::new("sk-planted")).expect_err("no folder");
    assert!(machine.plain(&error).starts_with("cannot write $/state: "), "{error}");
    assert!(!format!("{error:?} {:?}", SecretText::new("sk-planted")).contains("planted"));
}
