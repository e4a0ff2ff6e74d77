//! The kernel's word that something in a folder changed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// Some hundred events at a time.
const BUFFER_BYTES: usize = 16 << 10;

/// Something in a watched folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// The watch it belongs to.
    pub(super) watch: i32,
    pub(super) what: ReadFlags,
    /// Of the entry in the folder; none for the folder itself.
    pub(super) name: Option<OsString>,
}

/// Adds and removes watches. Clones are the same queue of events.
#[derive(Debug, Clone)]
pub(super) struct Inotify(Arc<OwnedFd>);

impl Inotify {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?)))
    }

    /// A folder that is watched already keeps its watch.
    pub(super) fn add(&self, folder: &Path) -> io::Result<i32> {
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        Ok(inotify::add_watch(&self.0, folder, what)?)
    }

    /// One that the kernel removed by itself is no error.
    pub(super) fn remove(&self, watch: i32) {
        let _ = inotify::remove_watch(&self.0, watch);
    }

    /// Taken once. Must be called where tasks run.
    pub(super) fn events(&self) -> io::Result<Events> {
        let queue = File::from(self.0.try_clone()?);
        // Whatever can be polled will do: it is only waited for and read.
        Ok(Events { queue: Receiver::from_file_unchecked(queue)?, buffer: vec![0; BUFFER_BYTES] })
    }
}

/// The queue of events.
#[derive(Debug)]
pub(super) struct Events {
    queue: Receiver,
    buffer: Vec<u8>,
}

impl Events {
    /// Waits for events and takes those that are there, a buffer's worth at most.
    pub(super) async fn next(&mut self) -> io::Result<Vec<Event>> {
        loop {
            self.queue.readable().await?;
            match self.queue.try_read(&mut self.buffer) {
                Ok(bytes) => return Ok(parse(&self.buffer[..bytes])),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Events one after the other: four numbers of four bytes, the last of which is the length of the name, and the name
/// with zeros after it.
fn parse(mut bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let number = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = usize::try_from(number(12)).unwrap_or(usize::MAX);
        let Some((name, after)) = rest.split_at_checked(length) else { break };
        let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
        events.push(Event {
            watch: number(0).cast_signed(),
            what: ReadFlags::from_bits_retain(number(4)),
            name: name.map(|name| OsStr::from_bytes(name).to_owned()),
        });
        bytes = after;
    }
    events
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn changes_are_heard_with_their_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let inotify = Inotify::new().expect("inotify");
        let watch = inotify.add(dir.path()).expect("watched");
        let mut events = inotify.events().expect("a queue");
        fs::create_dir(dir.path().join("folder")).expect("made");
        fs::write(dir.path().join("a file"), "x").expect("written");
        fs::rename(dir.path().join("a file"), dir.path().join("b")).expect("moved");
        let mut heard = Vec::new();
        while heard.len() < 5 {
            heard.extend(events.next().await.expect("readable"));
        }
        let event = |what, name: &str| Event { watch, what, name: Some(name.into()) };
        assert_eq!(
            heard,
            [
                event(ReadFlags::CREATE | ReadFlags::ISDIR, "folder"),
                event(ReadFlags::CREATE, "a file"),
                event(ReadFlags::CLOSE_WRITE, "a file"),
                event(ReadFlags::MOVED_FROM, "a file"),
                event(ReadFlags::MOVED_TO, "b"),
            ]
        );
        fs::remove_dir_all(dir.path()).expect("removed");
        while !heard.iter().any(|event| event.what.contains(ReadFlags::IGNORED)) {
            heard.extend(events.next().await.expect("readable"));
        }
    }

    #[test]
    fn a_cut_event_is_left_out() {
        assert_eq!(parse(&[0; 15]), []);
        assert_eq!(parse(&[1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, b'a']), []);
    }
}
