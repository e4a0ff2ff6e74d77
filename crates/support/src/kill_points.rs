//! Named points at which a test ends the process, like a power failure or a defect. Only in builds with debug assertions.

#[cfg(debug_assertions)]
use std::{
    fmt,
    fs::File,
    path::PathBuf,
    sync::OnceLock,
    sync::atomic::{AtomicU64, Ordering},
};

/// A kill point with this name, formatted like `format!`. Removed in release builds.
#[macro_export]
macro_rules! kill_point {
    ($($name:tt)+) => {
        #[cfg(debug_assertions)]
        $crate::reach_kill_point(format_args!($($name)+));
    };
}

/// A requested kill.
#[cfg(debug_assertions)]
struct WantedEnd {
    name: String,
    /// How often the point was passed.
    passes: AtomicU64,
    /// Whether it ends by a panic instead of SIGKILL.
    is_panic: bool,
    /// Created when it kills: each request kills one process.
    mark: PathBuf,
}

/// Ends the process if `OARLOCK_KILL_AT` requests it: `FOLDER:NAME,NAME#2,…`, where `#2` means the second time that a
/// process reaches the point, and `!` behind it an end by a panic. The folder gets an empty file for each kill.
#[cfg(debug_assertions)]
pub fn reach_kill_point(name: fmt::Arguments<'_>) {
    static WANTED: OnceLock<Vec<WantedEnd>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| read(&std::env::var("OARLOCK_KILL_AT").unwrap_or_default()));
    if wanted.is_empty() {
        return;
    }
    let name = name.to_string();
    let Some(end) = wanted.iter().filter(|wanted| wanted.name == name).find(|wanted| wanted.is_now()) else {
        return;
    };
    assert!(!end.is_panic, "a test wants a panic at a kill point");
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
}

#[cfg(debug_assertions)]
fn read(text: &str) -> Vec<WantedEnd> {
    let Some((folder, names)) = text.split_once(':') else { return Vec::new() };
    let wanted = names.split(',').map(|given| {
        let plain = given.trim_end_matches('!');
        let (name, times) = plain.split_once('#').unwrap_or((plain, "1"));
        WantedEnd {
            name: name.to_owned(),
            passes: AtomicU64::new(times.parse::<u64>().unwrap_or(1).saturating_sub(1)),
            is_panic: plain != given,
            mark: PathBuf::from(folder).join(given),
        }
    });
    wanted.collect()
}

#[cfg(debug_assertions)]
impl WantedEnd {
    fn is_now(&self) -> bool {
        let is_passed =
            self.passes.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        is_passed.is_err() && File::create_new(&self.mark).is_ok()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(debug_assertions)]
    fn a_point_kills_once_and_when_its_time_has_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let wanted = super::read(&format!("{}:host.a,host.b#3!", folder.path().display()));
        let [first, third] = &wanted[..] else { panic!("two points") };
        assert_eq!((first.is_panic, third.is_panic), (false, true));
        assert_eq!((first.name.as_str(), third.name.as_str()), ("host.a", "host.b"));
        assert_eq!([first.is_now(), first.is_now()], [true, false]);
        assert_eq!(
            [third.is_now(), third.is_now(), third.is_now(), third.is_now()],
            [false, false, true, false]
        );
        assert!(folder.path().join("host.b#3!").exists());
        assert!(super::read("").is_empty() && super::read("host.a").is_empty());
    }
}
