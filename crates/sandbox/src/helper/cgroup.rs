//! A cgroup of its own for a command, where one is to be had: it counts processes and memory of the whole tree.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::hierarchies::Hierarchies;
use super::memory;
use super::sys::{self, Forked};
use crate::Limits;

/// The number of the helper follows.
const PREFIX: &str = "oarlock-";

/// Removed, with what it limited, when dropped.
#[derive(Debug, Default)]
pub(crate) struct Group {
    folders: Vec<PathBuf>,
    doors: Vec<Door>,
    /// Whether the last process that was forked came to life inside the new hierarchy's folder.
    born_inside: bool,
    processes: bool,
    memory: bool,
}

/// The way into one folder, opened by somebody who may.
#[derive(Debug)]
enum Door {
    /// Old hierarchies let a thread move itself at once. To move another one, or a whole process, they wait until
    /// every processor has passed through the kernel, which takes longer than the whole sandbox.
    Thread(File),
    /// New ones know only whole processes, with the same wait, but a process can be born inside.
    Birth { folder: File, processes: File },
}

impl Group {
    /// Makes what can be made. Where none can, other limits have to do.
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

    /// `fork` into new namespaces, or plainly when `flags` is 0. The child is to [`join`](Self::join) at once.
    pub(crate) fn fork(&mut self, flags: i32) -> io::Result<Forked> {
        let folder = self.doors.iter().find_map(|door| match door {
            Door::Birth { folder, .. } => Some(folder),
            Door::Thread(_) => None,
        });
        if let Some(Ok(forked)) = folder.map(|folder| sys::fork_into(flags, folder)) {
            self.born_inside = true;
            return Ok(forked);
        }
        // Old kernels, and containers that do not let the newer call through.
        sys::fork_with(flags)
    }

    /// For the child. Afterwards it cannot get anywhere by what was opened for this.
    pub(crate) fn join(&self) -> io::Result<()> {
        for door in &self.doors {
            match door {
                // 0 stands for whoever writes it.
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

/// Takes away the groups of helpers that were killed before they could do so themselves.
pub(crate) fn remove_leftovers() {
    let Some(hierarchies) = Hierarchies::read() else { return };
    let parents = ["pids", "memory"].iter().flat_map(|controller| hierarchies.parents_for(controller));
    for entry in parents.flat_map(fs::read_dir).flatten().flatten() {
        let name = entry.file_name();
        let helper = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        // One that lives may be about to move into its group. One in use would not be removed anyway.
        if helper.is_some_and(|helper| !Path::new("/proc").join(helper.to_string()).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The name is this process's own: one that is there already was left by an earlier process with the same number.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_dir(folder).and_then(|()| fs::create_dir(folder))
        }
        made => made,
    }
}

/// `None` for a file that is not there, else whether it took the value.
fn write_if_there(file: &Path, value: &str) -> Option<bool> {
    match File::options().write(true).open(file) {
        Ok(file) => Some(write_once(file.as_fd(), value).is_ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(false),
    }
}

/// The kernel takes a value whole or not at all.
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

    /// Does nothing where this user may not make groups.
    #[test]
    fn what_a_killed_helper_left_is_taken_away() {
        let parent = Hierarchies::read().and_then(|known| known.parents_for("pids").into_iter().next());
        let Some(parent) = parent.filter(|parent| can_make_groups(parent)) else { return };
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = parent.join(format!("{PREFIX}{}", ended.id()));
        // The first process of all lives.
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

    /// Does nothing where there is no new hierarchy, or where this user may not make groups in it.
    #[test]
    fn a_process_can_be_born_inside() {
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
