//! Plain files with protected names at depth: no open call creates one, and every other file is created and opened as
//! without a supervisor.
#![expect(unsafe_code, reason = "raw system calls are what is tried")]

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::process::Stdio;

use oarlock_sandbox::testing::{HelperStatus, SandboxLayer};

use super::attempts::{Way, Workspace};
use super::scene::{self, Scene};
use super::sockets_probe::while_swapping;

/// Open calls that create, or could have, valid and invalid ones.
const SCRIPT: &str = r#"
exec 2>&1
t() { echo "$ $*"; (eval "$*"); echo "= $?"; }
t 'echo 1 > a'; t 'echo 2 >> a'; t 'echo 3 > a'; t 'set -C; echo 4 > a'; t 'set -C; echo 5 > b'; t 'cat a b'
t ': <> c'; t 'echo x > no/such'; t 'echo x > a/b'; t 'echo x > a/'; t 'echo x > new/'; t 'echo x > .'; t 'echo x > ""'
t 'mkdir d; echo x > d'; t 'echo x > d/../e'; t 'cd d && echo x > ../f && echo y > g'; t 'echo x > "$PWD/h"'
t 'umask 077; echo x > u077'; t 'umask 0; echo x > u0'; t 'umask 777; echo x > u777'; t 'echo x > u777'
t 'install -m 640 a i640'; t 'install -m 4755 a i4755'; t 'cp a k; cp a k'; t 'cp -p i640 kp'; t 'mktemp -p . t.XXXXXX | wc -c'; rm -f t.??????
t 'echo x > /dev/null'; t 'echo x > /dev/stdout'; t 'echo x > /dev/fd/1'; t 'echo x > /proc/self/fd/1'; t 'echo x >> /dev/stderr'
t 'cd /dev && echo x > stdout'; t 'cd /proc/self/fd && echo x > 1'; t 'echo x > /proc/self/new'; t 'echo x > /dev/new'
t 'echo x > /usr/new'; t 'echo x > /new'; t 'echo x > /etc/passwd'; t 'echo x > /dev/shm/oarlock-new && rm /dev/shm/oarlock-new'
t 'ln -s target l1; echo x > l1; cat target'; t 'ln -s l3 l2; ln -s d/deep l3; echo x > l2; cat d/deep'
t 'ln -s no/such l4; echo x > l4'; t 'ln -s l5 l5; echo x > l5'; t 'ln -s target2 l6; set -C; echo x > l6'
t 'ln -s $PWD/abs l7; echo x > l7; cat abs'; t 'ln -s /usr/new l8; echo x > l8'; t 'ln -s d l9; echo x > l9'; t 'echo x > l9/in'
t 'ln -s /dev/stdout l10; echo x > l10'; t 'ln -s "" l11'; t 'ln -s tt/ l12; echo x > l12'; t 'ln -s .. l13; echo x > l13'
t 'mkfifo p; (cat p > from-p &) ; echo x > p; sleep 0.1; cat from-p'
t 'echo x > "$(printf n%.0s $(seq 300))"'; t 'echo x > .gitignore'; t 'echo x > d/.github'; t 'echo x > .git-credentials'
t 'mkdir ro; chmod 500 ro; echo x > ro/in'; t 'echo x > ro/../beside'; chmod 700 ro
t 'echo x > m444; chmod 444 m444; echo y > m444'; t 'mkdir sticky; chmod 1777 sticky; echo x > sticky/s; echo y > sticky/s'
t 'mkdir sg; chmod 2775 sg; echo x > sg/s'; t 'tar cf x.tar a b d && mkdir out && tar xf x.tar -C out && ls out'
t 'ulimit -n 6; exec 3>o3 4>o4 5>o5; exec 6>o6'; t 'exec 9>o9; echo x >&9; cat o9'; t 'exec 3>o3b; readlink /proc/self/fd/3 | sed "s:.*/::"'
t 'sh -c "echo x > /proc/self/cwd/bycwd"'; t 'cat bycwd'; t 'exec 7<d; echo x > /proc/self/fd/7/by7; cat d/by7'
t 'ulimit -a > /dev/null'; t 'ulimit -x'
find . -mindepth 1 ! -name 'oarlock*' -printf '%P %y %m %n %s %l\n' | sort
"#;

fn listing(without: &[SandboxLayer]) -> String {
    let scene = Scene::new(Workspace::Bare);
    let mut order = scene.order(Way::Shell(Workspace::Bare, ""), Some(scene.confinement()));
    order.argv = ["bash", "-c", SCRIPT].map(str::to_owned).to_vec();
    order.env.insert("LC_ALL".to_owned(), "C".to_owned());
    let mut helper = scene::start(&order, without, Stdio::piped());
    let mut said = String::new();
    helper.child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    helper.end().unwrap();
    said.replace(&scene.at("").display().to_string(), "PLACE/")
}

#[test]
fn every_other_file_is_as_without_a_supervisor() {
    let (with, without) = (listing(&[]), listing(&[SandboxLayer::Names]));
    for (found, expected) in with.lines().zip(without.lines()) {
        assert_eq!(found, expected, "{with}");
    }
    assert_eq!(with, without);
    assert!(with.lines().count() > 200, "{with}");
}

#[test]
fn every_other_file_is_the_same_for_a_normal_user() {
    super::as_normal_user("files_at_depth::every_other_file_is_as_without_a_supervisor");
}

#[test]
fn files_can_be_made_by_every_call() {
    let scene = Scene::new(Workspace::Bare);
    let (end, said) = scene::run(&scene.order(Way::Call("files_work"), Some(scene.confinement())), &[]);
    assert_eq!(end, HelperStatus::Exited { code: 0 }, "{said}");
    super::as_normal_user("files_at_depth::files_can_be_made_by_every_call");
}

/// Without Landlock, changing the path in time creates the file.
#[test]
fn swapping_fails_because_of_landlock() {
    let escaped =
        (0..5).any(|_| super::escapes(Way::Call("files_swapped"), &[SandboxLayer::Landlock]).is_some());
    assert!(escaped);
}

/// Run inside.
pub(crate) fn attempt(name: &str) -> io::Result<()> {
    fs::create_dir("deep")?;
    match name {
        "files_work" => work(),
        // SAFETY: a text that ends with a zero.
        "files_creat" => opened(unsafe { libc::creat(c"deep/.git".as_ptr(), 0o644) }).map(drop),
        "files_openat2" => openat2(libc::AT_FDCWD, c"deep/.git", 0).map(drop),
        "files_openat2_root" => {
            let root = fs::File::open("deep")?;
            openat2(root.as_raw_fd(), c"/.git", rustix::fs::ResolveFlags::IN_ROOT.bits()).map(drop)
        }
        "files_nameless" => nameless(),
        "files_swapped" => swapped(),
        "files_swapped_link" => swapped_link(),
        name => panic!("no probe is called {name}"),
    }
}

fn opened(result: i32) -> io::Result<OwnedFd> {
    // SAFETY: a descriptor that the call has just made.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(result) }) }
}

fn openat2(folder: i32, path: &CStr, resolve: u64) -> io::Result<OwnedFd> {
    let flags = (libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC).unsigned_abs();
    let how: [u64; 3] = [flags.into(), 0o640, resolve];
    // SAFETY: a text that ends with a zero, and a structure of the size given.
    let result =
        unsafe { libc::syscall(libc::SYS_openat2, folder, path.as_ptr(), how.as_ptr(), size_of_val(&how)) };
    opened(i32::try_from(result).unwrap_or(-1))
}

fn nameless() -> io::Result<()> {
    // SAFETY: texts that end with a zero.
    let file = opened(unsafe { libc::open(c"deep".as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o644) })?;
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let here = libc::AT_FDCWD;
    // SAFETY: as above.
    let linked =
        unsafe { libc::linkat(here, path.as_ptr(), here, c"deep/.git".as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if linked < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A path in memory that alternates between an allowed and a protected name.
fn swapped() -> io::Result<()> {
    let mut path = *b"deep/.codey\0";
    let at = path.as_mut_ptr() as usize + 10;
    let swap = move || {
        for letter in [b'x', b'y'] {
            // SAFETY: one byte of the path; that it changes at any moment is the attempt.
            unsafe { std::ptr::write_volatile(at as *mut u8, letter) };
        }
    };
    let mut round = 0;
    while_swapping(swap, || {
        // SAFETY: the path ends with a zero.
        let _ = opened(unsafe { libc::open(path.as_ptr().cast(), libc::O_CREAT | libc::O_WRONLY, 0o644) });
        // Both a new file and an existing one.
        round += 1;
        if round % 2 == 0 {
            let _ = fs::remove_file("deep/.codey");
        }
        fs::exists("deep/.codex")
    })
}

/// A link that alternates between an existing file and a protected name.
fn swapped_link() -> io::Result<()> {
    fs::write("deep/plain", "")?;
    symlink("plain", "deep/good")?;
    symlink(".codex", "deep/bad")?;
    let swap = || {
        for name in ["deep/good", "deep/bad"] {
            let _ = fs::remove_file("deep/next");
            let _ = fs::hard_link(name, "deep/next").and_then(|()| fs::rename("deep/next", "deep/link"));
        }
    };
    while_swapping(swap, || {
        let _ = fs::OpenOptions::new().append(true).create(true).open("deep/link");
        fs::exists("deep/.codex")
    })
}

fn work() -> io::Result<()> {
    let text = |path: &str| fs::read_to_string(path);
    // SAFETY: a text that ends with a zero.
    let file = opened(unsafe { libc::creat(c"deep/creat".as_ptr(), 0o600) })?;
    rustix::io::write(&file, b"creat")?;
    assert_eq!(text("deep/creat")?, "creat");
    let folder = fs::File::open("deep")?;
    let beneath = rustix::fs::ResolveFlags::BENEATH.bits();
    for (path, resolve) in
        [(c"two", 0), (c"three", beneath), (c"/four", rustix::fs::ResolveFlags::IN_ROOT.bits())]
    {
        let file = openat2(folder.as_raw_fd(), path, resolve)?;
        rustix::io::write(&file, b"text")?;
        assert_eq!(rustix::io::fcntl_getfd(&file)?, rustix::io::FdFlags::CLOEXEC);
        assert_eq!(text(&format!("deep/{}", path.to_str().unwrap().trim_start_matches('/')))?, "text");
    }
    let out = openat2(folder.as_raw_fd(), c"../five", beneath).unwrap_err();
    assert_eq!(out.raw_os_error(), Some(libc::EXDEV));
    assert!(!fs::exists("five")?);
    // A file that its creator cannot open again is still open for writing.
    let path = c"deep/closed";
    // SAFETY: a text that ends with a zero.
    let closed = opened(unsafe { libc::open(path.as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0) })?;
    rustix::io::write(&closed, b"x")?;
    assert_eq!(rustix::io::fcntl_getfd(&closed)?, rustix::io::FdFlags::empty());
    // A nameless file needs no supervisor, and appending, truncating and locking work on a new one.
    let new = fs::OpenOptions::new().append(true).read(true).create_new(true).open("deep/new")?;
    new.lock()?;
    rustix::io::write(&new, b"abc")?;
    rustix::fs::ftruncate(&new, 1).unwrap();
    rustix::io::write(&new, b"z")?;
    assert_eq!(text("deep/new")?, "az");
    let again = fs::OpenOptions::new().write(true).create_new(true).open("deep/new").unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    fs::write("deep/new", "")?;
    assert_eq!(text("deep/new")?, "");
    let many: Vec<_> = (0..4).map(|thread| std::thread::spawn(move || make_many(thread))).collect();
    many.into_iter().for_each(|thread| thread.join().unwrap());
    Ok(())
}

fn make_many(thread: usize) {
    for number in 0..200 {
        let path = format!("deep/many-{thread}-{number}");
        fs::write(&path, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), path);
    }
}
