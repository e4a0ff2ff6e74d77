//! A file system that really hangs: the kernel's requests get no response.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use oarlock_workspace::{Access, Reader, within};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Where the hanging folder is passed to a program that reads in it.
const VARIABLE: &str = "OARLOCK_HANGING";

/// A file system whose server never says a word. Ends with the file that leads to it.
struct Hanging {
    folder: tempfile::TempDir,
    _server: File,
}

impl Hanging {
    /// `None` where this user may not mount anything, or the system has no FUSE.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let server = File::options().read(true).write(true).open("/dev/fuse").ok()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        let options = CString::new(options).expect("plain");
        mount("hanging", folder.path(), "fuse", MountFlags::empty(), options.as_c_str()).ok()?;
        Some(Self { folder, _server: server })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
    }
}

fn read(path: &Path, limit: Duration) -> Result<Vec<u8>, oarlock_workspace::ReadError> {
    let (reader, named) = (Reader::new(Access::default()), path.to_owned());
    within(path, limit, move || reader.read_whole(&named, 1_000))?
}

#[test]
fn a_read_that_hangs_is_given_up_and_others_go_on() {
    let Some(hanging) = Hanging::new() else { return };
    let began = Instant::now();
    read(&hanging.file(), Duration::from_millis(100)).expect_err("nobody answers");
    let other = tempfile::NamedTempFile::new().expect("a file");
    fs::write(other.path(), "text").expect("written");
    assert_eq!(read(other.path(), Duration::from_secs(10)).expect("read"), b"text");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

/// A thread that waits for such a file system does not keep a program from ending.
#[test]
fn a_program_with_a_read_that_hangs_can_end() {
    if let Some(file) = std::env::var_os(VARIABLE) {
        read(Path::new(&file), Duration::from_millis(100)).expect_err("nobody answers");
        std::process::exit(0);
    }
    let Some(hanging) = Hanging::new() else { return };
    let mut program = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_program_with_a_read_that_hangs_can_end"])
        .env(VARIABLE, hanging.file())
        .spawn()
        .expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(30);
    let end = loop {
        match program.try_wait().expect("its end") {
            Some(end) => break end,
            None if Instant::now() > deadline => {
                program.kill().expect("killed");
                panic!("it did not end");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(end.success());
}
