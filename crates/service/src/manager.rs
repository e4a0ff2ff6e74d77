//! Messages to the service manager: that the process serves, lives, and stops.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The service manager, where there is one (`NOTIFY_SOCKET`).
#[derive(Debug)]
struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    knows_stop: AtomicBool,
}

impl ServiceManager {
    fn find() -> Option<Self> {
        let name = std::env::var("NOTIFY_SOCKET").ok().filter(|name| !name.is_empty())?;
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&name),
        };
        let found = address.and_then(|address| {
            Ok(Self { socket: UnixDatagram::unbound()?, address, knows_stop: AtomicBool::new(false) })
        });
        found.inspect_err(|error| tracing::warn!(%error, "the service manager cannot be told anything")).ok()
    }

    fn tell(&self, words: &str) {
        if let Err(error) = self.socket.send_to_addr(words.as_bytes(), &self.address) {
            tracing::warn!(%error, "the service manager was not told: {words}");
        }
    }

    /// Once, whoever notices it first.
    fn tell_stopping(&self) {
        if !self.knows_stop.swap(true, Ordering::SeqCst) {
            self.tell("STOPPING=1\nSTATUS=waiting for turns to end");
        }
    }

    /// Tells again and again that the process lives, if anybody wants to know.
    async fn feed_watchdog(&self, every: Option<Duration>) {
        let Some(every) = every else { return std::future::pending().await };
        loop {
            tokio::time::sleep(every).await;
            self.tell("WATCHDOG=1");
        }
    }
}

/// Half of the time after which the service manager takes a silent process for dead, if it looks at this one at all.
fn watchdog(process: Option<&str>, limit: Option<&str>) -> Option<Duration> {
    let is_ours = process.is_none_or(|process| process == std::process::id().to_string());
    let limit = limit?.parse::<u64>().ok().filter(|limit| *limit > 0 && is_ours)?;
    Some(Duration::from_micros(limit / 2))
}

/// The service manager that was told that this process serves. When this is dropped, it knows that the process stops.
#[derive(Debug)]
pub struct Announced {
    manager: Option<Arc<ServiceManager>>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Some(manager) = &self.manager {
            manager.tell_stopping();
        }
    }
}

/// Tells the service manager that everything is served now, and, in the background, that the process lives and that it
/// stops. The future ends when it begins to.
pub fn announce_ready(stopping: impl Future<Output = ()> + Send + 'static) -> Announced {
    let manager = ServiceManager::find().map(Arc::new);
    if let Some(manager) = manager.clone() {
        manager.tell("READY=1\nSTATUS=serving");
        let variable = |name: &str| std::env::var(name).ok();
        let every = watchdog(variable("WATCHDOG_PID").as_deref(), variable("WATCHDOG_USEC").as_deref());
        tokio::spawn(async move {
            tokio::select! {
                () = manager.feed_watchdog(every) => {}
                () = stopping => manager.tell_stopping(),
            }
            manager.feed_watchdog(every).await;
        });
    }
    Announced { manager }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_fed_twice_as_often_as_it_looks() {
        let own = std::process::id().to_string();
        let cases = [
            (None, Some("30000000"), Some(15)),
            (Some(own.as_str()), Some("2000000"), Some(1)),
            (Some("1"), Some("2000000"), None),
            (None, None, None),
            (None, Some("0"), None),
            (None, Some("soon"), None),
        ];
        for (process, limit, seconds) in cases {
            assert_eq!(watchdog(process, limit), seconds.map(Duration::from_secs), "{process:?} {limit:?}");
        }
    }
}
