//! Golden streams: `streams/WIRE/NAME.sse` as vendors send them, `NAME.events` as the engine reads them. The first line
//! names the provider. Written from the vendors' documentation, in the order real servers send.

use std::fs;
use std::path::Path;

use oarlock_wires::Wire;

use crate::support::*;

/// `OARLOCK_UPDATE_GOLDEN=1` writes what is missing or differs; read the difference before you commit it.
fn check(wire: Wire, least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/streams").join(wire.name());
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        seen += 1;
        let text = fs::read_to_string(&path).unwrap();
        let provider = text.lines().next().unwrap().strip_prefix(": provider=").expect("the provider first");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let found = lines(&decode(decoder(wire, provider), data));
        let golden = path.with_extension("events");
        if std::env::var_os("OARLOCK_UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(found, expected, "{}", path.display());
    }
    assert!(seen >= least, "only {seen} streams");
}

#[test]
fn chat_streams() {
    check(Wire::Chat, 14);
}

#[test]
fn messages_streams() {
    check(Wire::Messages, 10);
}
