//! A fixed number of the inputs that the fuzz targets make at random: known streams, cut, spliced and overwritten.

use std::path::Path;

use broken_input::Random;
use oarlock_wires::{Decoder, Wire};

use crate::support::*;

/// For each stream.
const MUTATIONS: u64 = 150;

/// Every known stream, and the seeds of the fuzz target, of a wire.
fn streams(wire: Wire) -> Vec<Vec<u8>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [
        here.join("tests/it/streams").join(wire.name()),
        here.join("../../fuzz/seeds").join(format!("wire-{}", wire.name())),
    ];
    let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut paths = Vec::from_iter(files.map(|file| file.expect("an entry").path()));
    paths.retain(|path| path.extension().is_none_or(|kind| kind == "sse"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a stream")).collect()
}

fn mutated(stream: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = stream.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let end = (at + random.below(200)).min(bytes.len());
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let twice = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, twice));
            }
            3 => {
                let from = random.below(other.len());
                let to = (from + random.below(400)).min(other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
            _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.byte()),
        }
    }
    bytes
}

#[track_caller]
fn check(decoder: Decoder, text: &str) {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = decode(decoder, data);
    let ends = events.iter().filter(|event| event.is_terminal()).count();
    assert!(ends == 1 && events.last().is_some_and(|event| event.is_terminal()), "{text}");
}

#[test]
fn whatever_a_server_sends_there_is_one_end() {
    let mut random = Random::new(17);
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let streams = streams(wire);
        assert!(!streams.is_empty(), "{wire:?}");
        for stream in &streams {
            for _ in 0..MUTATIONS {
                let other = random.of(&streams);
                let bytes = mutated(stream, other, &mut random);
                let text = String::from_utf8_lossy(&bytes);
                for provider in ["gemini", "mistral", "anthropic"] {
                    check(decoder(wire, provider), &text);
                }
            }
        }
    }
}
