//! Log lines on standard error.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};
use turn_view::SafeStderr;

use crate::crash;

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    /// One object per line.
    Json,
}

/// Starts logging as `RUST_LOG` says, or else from `level` up. `LOG_FORMAT=json` writes one object per line. A second
/// call changes nothing.
pub fn init_logging(level: LevelFilter) {
    init_logging_as(level, None);
}

/// The same in this format, whatever the environment says.
pub fn init_logging_as(level: LevelFilter, format: Option<LogFormat>) {
    let filter = filter(&std::env::var("RUST_LOG").unwrap_or_default(), level);
    let lines = fmt::layer().with_writer(SafeStderr::default);
    let is_json = logs_json(format);
    crash::write_as_json(is_json);
    let lines = match is_json {
        true => lines.json().with_filter(filter).boxed(),
        false => lines.with_ansi(false).with_filter(filter).boxed(),
    };
    // An error means that somebody logs already.
    let _ = registry().with(lines).try_init();
}

/// Whether each log line is an object: as the format says, or else the environment.
pub fn logs_json(format: Option<LogFormat>) -> bool {
    let chosen = || is_json(&std::env::var("LOG_FORMAT").unwrap_or_default());
    format.map_or_else(chosen, |format| format == LogFormat::Json)
}

/// The target of the address at which a server is open, for programs that read no other text.
pub const OPEN_TARGET: &str = "oarlock::open";

/// The target of what a person should see of the records of threads, whatever else is logged.
pub const STORE_TARGET: &str = "oarlock::store";

/// Directives like `warn` or `oarlock_server=debug,hyper=off`. One that cannot be read is left out; with none, `level`.
fn filter(directives: &str, level: LevelFilter) -> Targets {
    let readable: Vec<&str> = directives
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.starts_with('=') && directive.parse::<Targets>().is_ok())
        .filter(|directive| !directive.is_empty())
        .collect();
    let has_default = readable.iter().any(|directive| directive.parse::<LevelFilter>().is_ok());
    let targets: Targets = readable.join(",").parse().unwrap_or_default();
    if has_default {
        targets
    } else {
        let targets = targets.with_default(level).with_target(STORE_TARGET, LevelFilter::WARN);
        targets.with_target(OPEN_TARGET, LevelFilter::INFO)
    }
}

fn is_json(format: &str) -> bool {
    format.trim().eq_ignore_ascii_case("json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_choose_levels_by_target() {
        use tracing_subscriber::filter::LevelFilter as L;
        let cases = [
            ("", "any", L::WARN, true),
            ("", "any", L::INFO, false),
            ("", OPEN_TARGET, L::INFO, true),
            ("off", OPEN_TARGET, L::INFO, false),
            ("debug", "any", L::DEBUG, true),
            ("oarlock_server=debug", "oarlock_server::hub", L::DEBUG, true),
            ("oarlock_server=debug", "other", L::INFO, false),
            ("off,oarlock_rpc=error", "other", L::ERROR, false),
            ("=,oarlock_rpc=nonsense, debug", "any", L::DEBUG, true),
        ];
        for (directives, target, level, expected) in cases {
            let level = level.into_level().expect("a level");
            let found = filter(directives, L::WARN).would_enable(target, &level);
            assert_eq!(found, expected, "{directives} {target} {level}");
        }
    }

    #[test]
    fn the_format_is_read_kindly() {
        assert!([" JSON ", "json", "Json\n"].iter().all(|format| is_json(format)));
        assert!(["", "text", "jsonl"].iter().all(|format| !is_json(format)));
    }
}
