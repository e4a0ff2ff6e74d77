//! The limit of open files, in its own test binary: it applies to the whole process.
#![allow(clippy::expect_used, reason = "a test may panic")]

use oarlock_sandbox::{Limits, Order, RunOptions};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[tokio::test]
async fn a_command_has_the_limit_that_the_server_was_started_with() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(512), maximum }).expect("a lower limit");
    oarlock_sandbox::raise_open_files().expect("a higher limit");
    assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    let order = Order {
        argv: ["sh", "-c", "ulimit -Sn; ulimit -Sn 600; ulimit -Sn"].map(str::to_owned).into(),
        cwd: "/".into(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        confinement: None,
        limits: Limits::default(),
        terminal: false,
    };
    let finished = oarlock_sandbox::run(order, RunOptions::default()).await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&finished.stdout.parts().0), "512\n600\n");
}
