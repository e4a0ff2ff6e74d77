//! The helper process: this executable, started under another name. It builds the sandbox around one command, starts
//! it, and ends all its processes afterwards.
//!
//! It is entered before `main`, so that any program that links this crate can start commands, including tests.

mod bpf;
pub(crate) mod cgroup;
mod command;
mod failure;
mod files;
mod hierarchies;
mod inside;
pub(crate) mod landlock;
mod landlock_alone;
pub(crate) mod launch;
pub(crate) mod layers;
mod limits;
mod memory;
mod outside;
mod pair;
mod privileges;
pub(crate) mod probe;
mod report;
mod seccomp;
mod supervise;
mod sweep;
pub(crate) mod sys;
mod wait;
mod watch;
pub(crate) mod wire;

#[cfg(target_env = "gnu")]
use std::ffi::CStr;
use std::ffi::{c_char, c_int};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use failure::At;
pub(crate) use files::own_files::shared_mapping;
use files::{devices, masks, mount, own_files, placeholder, plan, roots};
use layers::HelperRequest;
use wire::{HelperStatus, StartFailure, StartStage};

type EnterFn = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

#[used]
#[expect(unsafe_code, reason = "the helper must begin before any program's main")]
// SAFETY: the loader calls every function in this section with these three arguments before `main`.
#[unsafe(link_section = ".init_array")]
static ENTER: EnterFn = enter;

/// The program to execute as a helper; its first argument must be [`wire::NAME`].
///
/// Calling this also links the helper into the program.
pub(crate) fn program() -> &'static str {
    std::hint::black_box(&raw const ENTER);
    "/proc/self/exe"
}

extern "C" fn enter(argc: c_int, argv: *const *const c_char, _env: *const *const c_char) {
    if is_called(&[wire::NAME], argc, argv) {
        run();
    }
    if is_called(&[probe::SELF, probe::NAME], argc, argv) {
        probe::run();
    }
    if is_called(&[probe::SELF, probe::SEPARATION], argc, argv) {
        probe::separation::run();
    }
}

/// Whether these are all the arguments.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the arguments come as a C array")]
fn is_called(words: &[&str], argc: c_int, argv: *const *const c_char) -> bool {
    usize::try_from(argc) == Ok(words.len())
        && words.iter().enumerate().all(|(i, word)| {
            // SAFETY: the loader passes an array of `argc` C strings, and `i` is less than that.
            let given = unsafe { CStr::from_ptr(*argv.add(i)) };
            given.to_bytes() == word.as_bytes()
        })
}

/// Other C libraries pass no arguments to such functions.
#[cfg(not(target_env = "gnu"))]
fn is_called(words: &[&str], _argc: c_int, _argv: *const *const c_char) -> bool {
    let line = words.iter().flat_map(|word| [word.as_bytes(), b"\0"]).collect::<Vec<_>>().concat();
    std::fs::read("/proc/self/cmdline").is_ok_and(|given| given == line)
}

fn run() -> ! {
    sys::default_signals();
    sys::ignore_signal(libc::SIGPIPE);
    // The status channel; without it there is no one to report to.
    let Ok(status) = sys::inherited(wire::STATUS_FD) else { sys::exit(1) };
    let mut status = StatusPipe(File::from(status));
    match prepare().and_then(|(request, inherited)| watch_over(&request, inherited, &mut status)) {
        Ok(Some(end)) => status.tell(&end),
        // The watching process has reported it.
        Ok(None) => {}
        Err(failure) => status.tell(&HelperStatus::Failed(failure)),
    }
    sys::exit(0)
}

/// The descriptors that the server passed by number.
struct Inherited {
    control: OwnedFd,
    /// See `own_files`. Only from a server that runs as root.
    mapping: Option<OwnedFd>,
}

fn prepare() -> Result<(HelperRequest, Inherited), StartFailure> {
    let control =
        sys::inherited(wire::CONTROL_FD).at(StartStage::Order, "take over the control descriptor")?;
    let order = sys::inherited(wire::ORDER_FD).at(StartStage::Order, "take over the order")?;
    let mut text = String::new();
    File::from(order).read_to_string(&mut text).at(StartStage::Order, "read the order")?;
    let request = HelperRequest::parse(&text)?;
    let after_pinned = wire::PINNED_FD + request.pinned.cast_signed();
    let mapping = request.mapping.then(|| sys::inherited(after_pinned)).transpose();
    let mapping = mapping.at(StartStage::Order, "take over the mapping of users")?;
    let first_unknown = after_pinned.unsigned_abs() + u32::from(request.mapping);
    sys::close_range(first_unknown, u32::MAX).at(StartStage::Order, "close inherited descriptors")?;
    if let Some(limit) = request.open_files {
        crate::open_files::set(limit).at(StartStage::Limits, "limit open files")?;
    }
    // When memory runs out, commands are killed before the server. A failure to set this is ignored.
    let _ = std::fs::write("/proc/self/oom_score_adj", "800");
    // The server's terminal must not be able to signal the helper. Fails only for a session leader, which is fine too.
    let _ = rustix::process::setsid();
    Ok((request, Inherited { control, mapping }))
}

fn watch_over(
    request: &HelperRequest,
    Inherited { control, mapping }: Inherited,
    status: &mut StatusPipe,
) -> Result<Option<HelperStatus>, StartFailure> {
    match &request.order.confinement {
        Some(confinement) if confinement.strength == crate::Strength::Full => {
            outside::run(request, confinement, &control, mapping, status).map(Some)
        }
        _ => pair::run(request, &control, status),
    }
}

/// Reports the command's state to the server.
struct StatusPipe(File);

impl StatusPipe {
    fn tell(&mut self, status: &HelperStatus) {
        if let Ok(mut line) = serde_json::to_vec(status) {
            line.push(b'\n');
            // The server may have ended.
            let _ = self.0.write_all(&line);
        }
    }
}
