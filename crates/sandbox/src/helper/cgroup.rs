//! A cgroup for each command, if possible: it limits processes and memory of the whole tree.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::hierarchies::Hierarchies;
use super::memory;
use super::sys::{self, Forked};
use crate::Limits;

/// Followed by the helper's process id.
const PREFIX: &str = "oarlock-";

/// Removed on drop.
#[derive(Debug, Default)]
pub(crate) struct Group {
    folders: Vec<PathBuf>,
    doors: Vec<Door>,
    /// Whether the last forked process started inside the new hierarchy's folder.
    born_inside: bool,
    processes: bool,
    memory: bool,
}

/// An open handle for entering one folder.
#[derive(Debug)]
enum Door {
    /// In old hierarchies a thread can move itself quickly. Moving another one, or a whole process, waits for an RCU
    /// grace period, which takes longer than building the sandbox.
    Thread(File),
    /// In new hierarchies only whole processes can move, with the same wait, but a process can be created inside.
    Birth { folder: File, processes: File },
}

impl Group {
    /// Creates the groups that are possible. Without any, other limits apply.
    pub(crate) fn make(limits: &Limits) -> Self {
        let mut group = Self::default();
        let Some(hierarchies) = Hierarchies::read() else { return group };
        let name = format!("{PREFIX}{}", std::process::id());
        let pids = limits.processes.to_string();
        group.processes = group.limit(&hierarchies.parents_for("pids"), &name, &[("pids.max", pids)]);
        let most = || memory::most(hierarchies.place_of("memory")?);
        if let Some(bytes) = limits.memory.or_else(most) {
            // Each hierarchy has only its own file.
            let values = memory::LIMIT_FILES.map(|file| (file, bytes.to_string()));
            group.memory = group.limit(&hierarchies.parents_for("memory"), &name, &values);
        }
        group
    }

    pub(crate) fn limits_processes(&self) -> bool {
        self.processes
    }

    pub(crate) fn limits_memory(&self) -> bool {
        self.memory
    }

    /// `fork` into new namespaces, or a plain one if `flags` is 0. The child must call [`join`](Self::join) at once.
    pub(crate) fn fork(&mut self, flags: i32) -> io::Result<Forked> {
        let folder = self.doors.iter().find_map(|door| match door {
            Door::Birth { folder, .. } => Some(folder),
            Door::Thread(_) => None,
        });
        if let Some(Ok(forked)) = folder.map(|folder| sys::fork_into(flags, folder)) {
            self.born_inside = true;
            return Ok(forked);
        }
        // Old kernels, and containers that block the newer call.
        sys::fork_with(flags)
    }

    /// For the child. Closes the handles, which it must not use afterwards.
    pub(crate) fn join(&self) -> io::Result<()> {
        for door in &self.doors {
            match door {
                // 0 means the writing process.
                Door::Thread(tasks) => {
                    write_once(tasks.as_fd(), "0")?;
                    sys::close_in_child(tasks);
                }
                Door::Birth { folder, processes } => {
                    if !self.born_inside {
                        write_once(processes.as_fd(), "0")?;
                    }
                    sys::close_in_child(processes);
                    sys::close_in_child(folder);
                }
            }
        }
        Ok(())
    }

    fn limit(&mut self, parents: &[PathBuf], name: &str, values: &[(&str, String)]) -> bool {
        parents.iter().any(|parent| self.limit_in(&parent.join(name), values))
    }

    fn limit_in(&mut self, folder: &Path, values: &[(&str, String)]) -> bool {
        let known = self.folders.iter().any(|made| made == folder);
        if !known && make_folder(folder).is_err() {
            return false;
        }
        let set = values.iter().filter_map(|(file, value)| write_if_there(&folder.join(file), value));
        let set = set.fold(None, |all, ok| Some(all.unwrap_or(true) && ok));
        let door = if known { None } else { open_door(folder) };
        let limited = set == Some(true) && (known || door.is_some());
        if limited && !known {
            self.folders.push(folder.to_owned());
            self.doors.extend(door);
        } else if !known {
            let _ = fs::remove_dir(folder);
        }
        limited
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the groups of helpers that were killed.
pub(crate) fn remove_leftovers() {
    let Some(hierarchies) = Hierarchies::read() else { return };
    let parents = ["pids", "memory"].iter().flat_map(|controller| hierarchies.parents_for(controller));
    for entry in parents.flat_map(fs::read_dir).flatten().flatten() {
        let name = entry.file_name();
        let helper = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        // A running helper may be about to enter its group. A group in use cannot be removed anyway.
        if helper.is_some_and(|helper| !Path::new("/proc").join(helper.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The name contains our process id: an existing folder was left by an earlier process with the same id.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir(folder).and_then(|()| fs::create_dir(folder))
        }
        made => made,
    }
}

/// `None` if the file does not exist, else whether it accepted the value.
fn write_if_there(file: &Path, value: &str) -> Option<bool> {
    match File::options().write(true).open(file) {
        Ok(file) => Some(write_once(file.as_fd(), value).is_ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(false),
    }
}

/// The kernel accepts a value as a whole or not at all.
fn write_once(file: BorrowedFd<'_>, value: &str) -> io::Result<()> {
    rustix::io::retry_on_intr(|| rustix::io::write(file, value.as_bytes()))?;
    Ok(())
}

fn open_door(folder: &Path) -> Option<Door> {
    let write = |name| File::options().write(true).open(folder.join(name));
    if let Ok(tasks) = write("tasks") {
        return Some(Door::Thread(tasks));
    }
    let processes = write("cgroup.procs").ok()?;
    Some(Door::Birth { folder: File::open(folder).ok()?, processes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No effect if this user may not create groups.
    #[test]
    fn leftovers_of_a_killed_helper_are_removed() {
        let parent = Hierarchies::read().and_then(|known| known.parents_for("pids").into_iter().next());
        let Some(parent) = parent.filter(|parent| can_make_groups(parent)) else { return };
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = parent.join(format!("{PREFIX}{}", ended.id()));
        // Process 1 is running.
        let used = parent.join(format!("{PREFIX}1"));
        for folder in [&left, &used] {
            make_folder(folder).unwrap();
        }
        remove_leftovers();
        assert_eq!((left.exists(), used.exists()), (false, true));
        make_folder(&used).unwrap();
        fs::remove_dir(&used).unwrap();
    }

    fn can_make_groups(parent: &Path) -> bool {
        let folder = parent.join(format!("oarlock-try-{}", std::process::id()));
        fs::create_dir(&folder).and_then(|()| fs::remove_dir(&folder)).is_ok()
    }

    /// No effect without the new hierarchy, or if this user may not create groups in it.
    #[test]
    fn a_process_can_be_created_inside() {
        let name = format!("oarlock-born-{}", std::process::id());
        let place = Hierarchies::read().and_then(|known| known.place_of("").map(|place| place.join(&name)));
        let Some(folder) = place.filter(|folder| fs::create_dir(folder).is_ok()) else { return };
        let door = open_door(&folder).unwrap();
        let mut group = Group { folders: vec![folder], doors: vec![door], ..Group::default() };
        let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let child = match group.fork(0).unwrap() {
            Forked::Child => {
                let _ = rustix::io::read(&wait, &mut [0; 1]);
                sys::exit(0)
            }
            Forked::Parent { child } => child,
        };
        let member = fs::read_to_string(format!("/proc/{child}/cgroup")).unwrap();
        rustix::io::write(&go, b"!").unwrap();
        let child = rustix::process::Pid::from_raw(child);
        rustix::process::waitpid(child, rustix::process::WaitOptions::empty()).unwrap();
        assert!(group.born_inside);
        assert!(member.lines().any(|line| line.starts_with("0::") && line.ends_with(&name)), "{member}");
        let folder = group.folders[0].clone();
        drop(group);
        assert!(!folder.exists());
    }
}
