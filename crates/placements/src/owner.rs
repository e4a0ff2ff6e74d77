//! The names of hosts in the labels of what they make: of a store, or of a process whose tasks end with it.

use std::path::Path;

/// The beginning of temporary owners: `tmp-MACHINE-PID-START`.
const TEMPORARY: &str = "tmp-";
/// The pid namespace that a machine begins with has this number everywhere.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// The same for every start on this store, and another for other stores.
pub fn store_owner(path: &Path) -> String {
    format!("h{:016x}", hash(path.as_os_str().as_encoded_bytes()))
}

/// Of a host whose store ends with this process: everybody on this machine can tell when that is.
pub fn temporary_owner() -> String {
    let process = std::process::id();
    format!("{TEMPORARY}{}-{process}-{}", machine(), start_time(process).unwrap_or(0))
}

/// Whether the process of a temporary owner has ended, as far as this machine can tell.
pub fn owner_has_ended(owner: &str) -> bool {
    let Some(rest) = owner.strip_prefix(TEMPORARY) else { return false };
    let parts: Vec<&str> = rest.split('-').collect();
    let [at, process, started] = parts[..] else { return false };
    let (Ok(process), Ok(started)) = (process.parse(), started.parse::<u64>()) else { return false };
    at == machine() && started > 0 && start_time(process) != Some(started)
}

/// The machine, over restarts; in a container, which may have its machine's name or none, that container.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let namespace = namespace.to_string_lossy();
    let machine = read("/etc/machine-id");
    let name = match namespace == FIRST_NAMESPACE && !machine.trim().is_empty() {
        true => machine,
        false => read("/proc/sys/kernel/random/boot_id") + &namespace,
    };
    format!("{:016x}", hash(name.as_bytes()))
}

/// In ticks since the machine was started. `None` where there is no such process.
fn start_time(process: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may hold anything. The state follows it, and 19 fields later the start.
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_have_owners_of_their_own() {
        assert_ne!(store_owner(Path::new("/a")), store_owner(Path::new("/b")));
        assert_eq!(store_owner(Path::new("/a")).len(), 17);
        assert!(!owner_has_ended(&store_owner(Path::new("/a"))));
    }

    #[test]
    fn a_temporary_owner_has_ended_with_its_process() {
        let own = temporary_owner();
        assert!(own.len() <= 50, "labels are short: {own}");
        assert!(!owner_has_ended(&own));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let started = start_time(child.id()).expect("it runs");
        let of_child = format!("{TEMPORARY}{}-{}-{started}", machine(), child.id());
        assert!(!owner_has_ended(&of_child));
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(owner_has_ended(&of_child));
        // Its number has been given to another one.
        assert!(owner_has_ended(&format!("{TEMPORARY}{}-{}-{}", machine(), std::process::id(), started + 1)));
        // Nobody here can see it.
        assert!(!owner_has_ended(&of_child.replace(&machine(), "0123456789abcdef")));
        assert!(!owner_has_ended("tmp-x") && !owner_has_ended("doctor"));
    }
}
