//! Protected names at depth, where there is no mount: nothing creates them, and everything else works as without a
//! supervisor.
#![expect(unsafe_code, reason = "raw system calls are what is tried")]

use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;

use oarlock_sandbox::testing::{HelperStatus, SandboxLayer};

use super::attempts::{ATTEMPTS, Way, Workspace};
use super::scene::{self, Scene};
use super::sockets_probe::while_swapping;

/// All ways to create or rename names, valid and invalid, each with its result.
const SCRIPT: &str = r#"
exec 2>&1
t() { echo "$ $*"; "$@"; echo "= $?"; }
t mkdir a; t mkdir a; t mkdir a/; t mkdir b/; t mkdir a/b//; t mkdir -p x/y/z; t mkdir -p x/y/z
t mkdir no/such; t mkdir ''; t mkdir .; t mkdir ..; t mkdir /; t mkdir a/..; t mkdir ./c; t mkdir ../ws/d
t mkdir "$PWD/e"; t mkdir -m 700 m700; t mkdir -m 1777 m1777
(umask 077; t mkdir u077; t mkfifo f077; t mknod -m 640 n640 p); (umask 000; t mkdir u000; t mkfifo f000)
(cd a && t mkdir ../from-a && t mkdir here && t mv here ../moved)
echo one > one; echo two > two
t mv one three; t mv -n three two; t mv three two; t mv two a/; t mv a/two no/such; t mv nothing x
t mv a b/a; t mv b/a b/a/here; t mv x/y/z x/w; t mv -T x/w b; t mv -T b/a b/aa; t mv b/aa/ a
echo f > f; t ln f g; t ln f g; t ln nothing h; t ln a h; t ln f no/such; t ln -s f s; t ln -s f s; t ln -s '' e2
t ln -s nowhere dangling; t mkdir dangling; t ln -s a link; t mkdir link/in; t mkdir link; t mv s t; t ln -P t tt
t ln -L t tl; t mv dangling d2; t mkdir f/x; t mv f f; t mv g f; t mv --exchange f a
t mkdir "$(printf 'n%.0s' $(seq 300))"; t mkdir .github; t mkdir x/.gitignored; t mknod dev c 1 3
t mkdir /usr/no; t mv f /usr/no; t ln f /usr/no; t ln -s f /usr/no; t ln /etc/passwd pw; t mv /etc/passwd pw
chmod 500 m700; t mkdir m700/in; t mv f m700/f; chmod 700 m700
loop() { ln -s l2 l1; ln -s l1 l2; }; loop; t mkdir l1/x
find . -mindepth 1 ! -name 'oarlock*' -printf '%P %y %m %n %l\n' | sort
"#;

fn listing(without: &[SandboxLayer]) -> String {
    let scene = Scene::new(Workspace::Bare);
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(scene.confinement()));
    order.argv[2] = SCRIPT.to_owned();
    order.env.insert("LC_ALL".to_owned(), "C".to_owned());
    let mut helper = scene::start(&order, without, Stdio::piped());
    let mut said = String::new();
    helper.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    helper.end().unwrap();
    said.replace(&scene.at("").display().to_string(), "PLACE/")
}

#[test]
fn everything_else_is_as_without_a_supervisor() {
    let (with, without) = (listing(&[]), listing(&[SandboxLayer::Names]));
    for (found, expected) in with.lines().zip(without.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(with, without);
    assert!(with.lines().count() > 200, "{with}");
}

#[test]
fn everything_else_is_the_same_for_a_normal_user() {
    super::as_normal_user("names_at_depth::everything_else_is_as_without_a_supervisor");
}

#[test]
fn what_happens_at_depth_needs_the_supervisor() {
    let at_depth: Vec<_> = ATTEMPTS.iter().filter(|(name, _)| name.ends_with("at depth")).copied().collect();
    assert!(at_depth.len() > 10);
    let escaped = super::escaped(&at_depth, &[SandboxLayer::Names]);
    assert_eq!(escaped.len(), at_depth.len(), "{escaped:?}");
}

#[test]
fn names_can_be_made_by_descriptors() {
    let scene = Scene::new(Workspace::Bare);
    let (end, said) = scene::run(&scene.order(Way::Call("names_work"), Some(scene.confinement())), &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
    assert_eq!(std::fs::read_to_string(scene.at("ws/published")).unwrap(), "text");
}

/// Run inside.
pub(crate) fn attempt(name: &str) -> io::Result<()> {
    match name {
        "names_work" => work(),
        "names_swapped" => swapped(),
        name => panic!("no probe is called {name}"),
    }
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn work() -> io::Result<()> {
    // A file without a name gets one.
    // SAFETY: texts that end with a zero, and a descriptor that nobody else owns.
    unsafe {
        let file =
            OwnedFd::from_raw_fd(checked(libc::open(c".".as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o644))?);
        rustix::io::write(&file, b"text")?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let here = libc::AT_FDCWD;
        checked(libc::linkat(here, path.as_ptr(), here, c"published".as_ptr(), libc::AT_SYMLINK_FOLLOW))?;
    }
    std::fs::create_dir("base")?;
    let base = std::fs::File::open("base")?;
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    rustix::fs::mkdirat(&base, "one", mode)?;
    rustix::fs::mkdirat(&base, "one/two", mode)?;
    rustix::fs::renameat(&base, "one/two", &base, "three")?;
    rustix::fs::symlinkat("three", &base, "link")?;
    std::fs::create_dir(format!("/proc/self/fd/{}/four", base.as_raw_fd()))?;
    std::fs::create_dir("/proc/self/cwd/base/five")?;
    let wrong = rustix::fs::mkdirat(std::fs::File::open("published")?, "x", mode);
    assert_eq!(wrong, Err(rustix::io::Errno::NOTDIR));
    // SAFETY: an address that is not there, which the kernel is to notice.
    assert_eq!(
        checked(unsafe { libc::mkdir(8 as *const libc::c_char, 0o755) }).unwrap_err().raw_os_error(),
        Some(libc::EFAULT)
    );
    // SAFETY: a number that is not open.
    assert_eq!(
        checked(unsafe { libc::mkdirat(77, c"x".as_ptr(), 0o755) }).unwrap_err().raw_os_error(),
        Some(libc::EBADF)
    );
    for made in ["base/three", "base/link", "base/four", "base/five"] {
        assert!(std::fs::metadata(made)?.is_dir(), "{made}");
    }
    Ok(())
}

/// A name in memory that alternates between an allowed and a protected one.
fn swapped() -> io::Result<()> {
    std::fs::create_dir("deep")?;
    let mut path = *b"deep/.codey\0";
    let at = path.as_mut_ptr() as usize + 10;
    let swap = move || {
        for letter in [b'x', b'y'] {
            // SAFETY: one byte of the path; that it changes at any moment is the attempt.
            unsafe { std::ptr::write_volatile(at as *mut u8, letter) };
        }
    };
    while_swapping(swap, || {
        // SAFETY: the path ends with a zero.
        unsafe { libc::mkdir(path.as_ptr().cast(), 0o755) };
        let _ = std::fs::remove_dir("deep/.codey");
        std::fs::exists("deep/.codex")
    })
}
