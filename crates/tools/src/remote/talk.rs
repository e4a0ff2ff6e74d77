//! A dialogue with a script in another environment: it says when it is ready, and then gets the next part.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use memchr::memmem;
use sandbox::{HeadTail, Io, Output, OutputStream, Process};

use super::{DIAGNOSIS_BYTES, Elsewhere, START_LIMIT, ScriptMarker};
use crate::exec::why;

/// How long a started script may be silent.
const SILENCE: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Talk {
    place: Elsewhere,
    process: Process,
    output: Output,
    /// The prefix of every message.
    start: Vec<u8>,
    buffer: Vec<u8>,
    messages: VecDeque<String>,
    complaint: HeadTail,
}

impl Talk {
    /// The script's first message must be `begin`. The error is a sentence that names the environment.
    pub(crate) async fn open(
        place: &Elsewhere,
        env: &BTreeMap<String, String>,
        marker: &ScriptMarker,
        script: &str,
    ) -> Result<Self, String> {
        let spawned = Process::spawn(place.order(env)?, Io::Pipe).await;
        let (process, output) = spawned.map_err(|error| place.unreachable(why(&error)))?;
        let mut talk = Self {
            place: place.clone(),
            process: process.clone(),
            output,
            start: format!("{}:", marker.word()).into_bytes(),
            buffer: Vec::new(),
            messages: VecDeque::new(),
            complaint: HeadTail::new(DIAGNOSIS_BYTES),
        };
        let begin = async { tokio::join!(process.write(script.as_bytes()), talk.message()).1 };
        match tokio::time::timeout(START_LIMIT, begin).await {
            Ok(Some(message)) if message == "begin" => Ok(talk),
            Ok(Some(message)) => Err(place.unreachable(format_args!("it answered `{message}`"))),
            Ok(None) => {
                let code = process.wait().await.code;
                let said = talk.complaint.excerpt().head;
                Err(place.unreachable(format_args!("its client ended with code {code}: {}", said.trim())))
            }
            Err(_) => {
                let seconds = START_LIMIT.as_secs();
                Err(place.unreachable(format_args!("it did not answer within {seconds} seconds")))
            }
        }
    }

    /// The script's next message. The error is a sentence that names the environment.
    pub(crate) async fn hear(&mut self) -> Result<String, String> {
        match tokio::time::timeout(SILENCE, self.message()).await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => {
                let code = self.process.wait().await.code;
                Err(self.place.lost(format_args!("its client ended with code {code}")))
            }
            Err(_) => {
                let seconds = SILENCE.as_secs();
                Err(self.place.lost(format_args!("it said nothing for {seconds} seconds")))
            }
        }
    }

    /// Sends the next part, and returns the script's answer.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<String, String> {
        let process = self.process.clone();
        // A script that ended does not read; `hear` reports its end.
        tokio::join!(process.write(bytes), self.hear()).1
    }

    /// `None` when it has ended.
    async fn message(&mut self) -> Option<String> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            let chunk = self.output.next().await?;
            if chunk.stream == OutputStream::Stderr {
                self.complaint.push(&chunk.bytes);
                continue;
            }
            self.buffer.extend_from_slice(&chunk.bytes);
            while let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let line = &line[..end];
                // A login's output may precede the message.
                let message = memmem::find(line, &self.start).map(|at| &line[at + self.start.len()..]);
                self.messages.extend(message.map(|message| String::from_utf8_lossy(message).into_owned()));
            }
            let surplus = self.buffer.len().saturating_sub(DIAGNOSIS_BYTES);
            self.buffer.drain(..surplus);
        }
    }
}
