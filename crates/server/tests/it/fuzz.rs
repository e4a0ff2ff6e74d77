//! Requests to the websocket port by the thousand, the same ones in each run: nobody is let in who must not be.

use broken_input::Random;
use oarlock_server::fuzzing;

const ROUNDS: usize = 4_000;

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

const LINES: &[&str] = &[
    "Authorization: Bearer open-sesame\r\n",
    "Authorization: bearer  open-sesame \r\n",
    "Authorization: Bearer \r\n",
    "Authorization: Basic open-sesam\r\n",
    "Origin: http://localhost\r\n",
    "Origin: http://evil.example\r\n",
    "Origin: null\r\n",
    "Host: evil.example\r\n",
    "Host: 127.0.0.1:9\r\n",
    "Sec-WebSocket-Protocol: oarlock, oarlock.bearer.b3Blbi1zZXNhbWU\r\n",
    "Sec-WebSocket-Protocol: oarlock, oarlock.bearer.\r\n",
    "Connection: close\r\n",
    "Upgrade: h2c\r\n",
    "Sec-WebSocket-Version: 8\r\n",
];

const PIECES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "[::1]",
    "http://",
    ":",
    ",",
    " ",
    "\t",
    "\r\n",
    "/readyz",
    "/metrics",
    "open-sesame",
    "é",
    "@",
];

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() + 1);
    match random.below(6) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => drop(text.drain(at..(at + random.below(8)).min(text.len()))),
        2 => drop(text.splice(at..at, random.of(PIECES).bytes())),
        // A line where lines begin.
        _ => {
            let line = random.of(LINES).bytes();
            let begin = text.windows(2).skip(random.below(text.len())).position(|end| end == b"\r\n");
            let at = begin.map_or(text.len(), |begin| (begin + 2).min(text.len()));
            drop(text.splice(at..at, line));
        }
    }
}

#[test]
fn broken_and_hostile_upgrades() {
    let mut random = Random::default();
    fuzzing::upgrade(UPGRADE.as_bytes());
    for line in LINES {
        fuzzing::upgrade(format!("{UPGRADE}{line}").as_bytes());
    }
    for _ in 0..ROUNDS {
        let mut text = UPGRADE.as_bytes().to_vec();
        for _ in 0..=random.below(4) {
            mutate(&mut text, &mut random);
        }
        fuzzing::upgrade(&text);
    }
}
