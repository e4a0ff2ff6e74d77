//! Log lines on standard error.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging as `RUST_LOG` says, or else from `level` up. `LOG_FORMAT=json` writes one object per line. A second
/// call changes nothing.
pub(crate) fn init(level: LevelFilter) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let format = std::env::var("LOG_FORMAT").unwrap_or_default();
    // An error means that somebody logs already.
    let _ = match is_json(&format) {
        true => lines.json().try_init(),
        false => lines.with_ansi(false).try_init(),
    };
}

fn is_json(format: &str) -> bool {
    format.trim().eq_ignore_ascii_case("json")
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn the_format_is_read_kindly() {
        assert!([" JSON ", "json", "Json\n"].iter().all(|format| is_json(format)));
        assert!(["", "text", "jsonl"].iter().all(|format| !is_json(format)));
    }
}
