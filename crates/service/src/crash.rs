//! The end of the program at a panic: one line that says where, and no unwinding.

use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use turn_view::clean_line;

const WHAT_TO_DO: &str = "What was acknowledged is in the record: start the program again and go on (a server takes up its \
    threads and tasks, `oarlock resume` and `oarlock exec resume --last` a session). Please report this line";

/// Whether the line is an object, like the others of the log.
static IS_JSON: AtomicBool = AtomicBool::new(false);

pub(crate) fn write_as_json(is_json: bool) {
    IS_JSON.store(is_json, Ordering::Relaxed);
}

/// From now on a panic in any thread ends the process by SIGABRT, after one line on standard error. For the beginning of
/// `main`.
///
/// Release builds cannot unwind: the tables and the code for it would be a fifth of the program, and nobody can rely on
/// work that goes on after a defect. What can be relied on is the record, and whoever starts the program again. Debug
/// builds end in the same way, so that tests of the program see what its users get. A program that embeds the runtime
/// does not call this; if it is built to unwind, a panic ends the work of one thread there.
pub fn abort_on_panic() {
    let with_backtrace = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_unread_output(panic) {
            std::process::exit(1);
        }
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let thread = std::thread::current();
        let report = DefectReport { place: &place, thread: thread.name(), message: literal(panic) };
        let line = match IS_JSON.load(Ordering::Relaxed) {
            true => report.json_line(),
            false => report.text_line(),
        };
        // Not through the log, which may be what panicked. An error means that nobody reads.
        let _ = io::stderr().write_all(line.as_bytes());
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|wanted| wanted != "0") {
            with_backtrace(panic);
        }
        std::process::abort();
    }));
}

/// `println!` panics when nobody reads any more, as in `oarlock threads | head -1`. That is no defect.
fn is_unread_output(panic: &PanicHookInfo<'_>) -> bool {
    panic.payload_as_str().is_some_and(|message| message.starts_with("failed printing to std"))
}

/// The message, if the source has it word for word. One that was put together may hold a key or what somebody wrote.
fn literal<'a>(panic: &'a PanicHookInfo<'_>) -> Option<&'a str> {
    panic.payload().downcast_ref::<&str>().copied()
}

struct DefectReport<'a> {
    place: &'a str,
    thread: Option<&'a str>,
    message: Option<&'a str>,
}

impl DefectReport<'_> {
    fn sentences(&self) -> String {
        let thread = self.thread.map(|name| format!(" in thread {name}")).unwrap_or_default();
        let message = match self.message {
            Some(message) => format!("({message})"),
            None => "(RUST_BACKTRACE=1 would show the message, which may hold private text)".to_owned(),
        };
        let place = self.place;
        clean_line(&format!("a defect ended this program at {place}{thread} {message}. {WHAT_TO_DO}."))
    }

    fn text_line(&self) -> String {
        format!("oarlock: {}\n", self.sentences())
    }

    fn json_line(&self) -> String {
        let mut timestamp = String::new();
        // Fails where the text cannot be written to, which a `String` always can.
        let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
        let fields = json!({"message": self.sentences(), "place": self.place, "thread": self.thread});
        let line = json!({
            "timestamp": timestamp, "level": "ERROR", "fields": fields, "target": "oarlock::defect",
        });
        format!("{line}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_one_line_with_the_place_and_what_to_do() {
        let report =
            DefectReport { place: "crates/a.rs:1:2", thread: Some("main"), message: Some("no\nstep") };
        let text = report.text_line();
        let begins =
            "oarlock: a defect ended this program at crates/a.rs:1:2 in thread main (no step). What was";
        assert!(text.starts_with(begins), "{text}");
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line = report.json_line();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let object: serde_json::Value = serde_json::from_str(&line).expect("an object");
        assert_eq!(object["fields"]["place"], "crates/a.rs:1:2");
        assert_eq!(object["level"], "ERROR");
        assert!(object["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        let without = DefectReport { place: "x", thread: None, message: None }.text_line();
        assert!(without.contains("program at x (RUST_BACKTRACE=1 would show"), "{without}");
    }
}
