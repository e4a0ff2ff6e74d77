//! Measures the cost of a new file name inside the sandbox, with and without protected names: `cargo run --release -p
//! oarlock-sandbox --example name_cost [COUNT]`.
//!
//! The variants alternate, so that other load affects both.

#![allow(clippy::expect_used, reason = "an example may panic")]

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use oarlock_sandbox::testing::launch;
use oarlock_sandbox::{Confinement, Limits, Order, PROTECTED_NAMES, ReadAccess, Strength};

const ROUNDS: usize = 5;
const WHAT: [&str; 4] = ["new file", "file that is there", "new folder", "only read"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("inside") {
        let count = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(1);
        return println!("{}", inside(count).map(|cost| cost.to_string()).join(" "));
    }
    let count: usize = first.and_then(|word| word.parse().ok()).unwrap_or(2_000);
    let workspace = Path::new("/var/tmp").join(format!("oarlock-name-cost-{}", std::process::id()));
    fs::create_dir_all(&workspace).expect("a folder to work in");
    let mut costs: [Vec<[f64; 4]>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (costs, protected) in costs.iter_mut().zip([false, true]) {
            costs.push(measure(&workspace, protected, count));
        }
    }
    fs::remove_dir_all(&workspace).expect("what is left is ours");
    println!("{:20} {:>12} {:>12}   (us each, best of {ROUNDS})", "", "unprotected", "protected");
    for (number, what) in WHAT.iter().enumerate() {
        let best = |costs: &[[f64; 4]]| costs.iter().map(|cost| cost[number]).fold(f64::MAX, f64::min);
        println!("{what:20} {:12.1} {:12.1}", best(&costs[0]), best(&costs[1]));
    }
}

fn measure(workspace: &Path, protected: bool, count: usize) -> [f64; 4] {
    let program = std::env::current_exe().expect("this program");
    let confinement = Confinement {
        strength: Strength::Full,
        read: ReadAccess::Everything,
        writable: vec![workspace.to_owned()],
        protected: if protected { PROTECTED_NAMES.map(str::to_owned).to_vec() } else { Vec::new() },
        ..Confinement::read_only()
    };
    let order = Order {
        argv: vec![program.display().to_string(), "inside".to_owned(), count.to_string()],
        cwd: workspace.to_owned(),
        env: std::collections::BTreeMap::new(),
        confinement: Some(confinement),
        limits: Limits::default(),
        terminal: false,
    };
    let order = serde_json::to_vec(&order).expect("an order");
    let mut helper = launch(&order, Stdio::null(), Stdio::piped(), Stdio::inherit()).expect("a helper");
    let said = std::io::read_to_string(helper.child.stdout.take().expect("a pipe")).expect("text");
    helper.end().expect("an end");
    let mut costs = said.split_whitespace().map(|word| word.parse().expect("a number"));
    std::array::from_fn(|_| costs.next().expect("a cost"))
}

fn inside(count: usize) -> [f64; 4] {
    let each = |work: &dyn Fn(&str)| {
        let begun = Instant::now();
        (0..count).for_each(|number| work(&format!("name-{number}")));
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(u32::try_from(count).expect("a small number"))
    };
    let create = |name: &str| drop(OpenOptions::new().append(true).create(true).open(name).expect("a file"));
    let (new, there) = (each(&create), each(&create));
    let read = each(&|name| drop(fs::File::open(name).expect("a file")));
    (0..count).for_each(|number| fs::remove_file(format!("name-{number}")).expect("a file"));
    let folder = each(&|name| fs::create_dir(name).expect("a folder"));
    (0..count).for_each(|number| fs::remove_dir(format!("name-{number}")).expect("a folder"));
    [new, there, folder, read]
}
