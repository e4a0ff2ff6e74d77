//! A server of the Chat wire may send anything: no panic, one end, the same events however the stream is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wires::Wire;

mod wire_stream;

fuzz_target!(|data: &[u8]| wire_stream::read(Wire::Chat, data));
