//! One writer per journal, across processes.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use oarlock_journal::{JournalError, JournalWriter, ReadOptions, read};

use crate::support::{batch, folder, meta, options, places, rounds, thread_id, told};

/// Not a test: a process that opens and closes a journal on command.
#[test]
fn child_does_as_told() {
    let Ok(folder) = std::env::var("JOURNAL_TEST_LOCK") else { return };
    let (path, lock) = places(Path::new(&folder));
    let options = options();
    let mut open = None;
    println!("\nready");
    for command in std::io::stdin().lines() {
        let said = match command.unwrap().as_str() {
            "open" => match JournalWriter::open(&path, &lock, &options) {
                Ok((writer, _)) => {
                    let id = std::process::id();
                    for line in 0..3 {
                        writer.append(&batch(&[told("t", &format!("{id} line {line}"))])).unwrap();
                    }
                    open = Some(writer);
                    "opened".to_owned()
                }
                Err(JournalError::Locked { holder, .. }) => format!("locked {}", holder.pid.unwrap_or(0)),
                Err(error) => panic!("{error}"),
            },
            _ => {
                if let Some(writer) = open.take() {
                    writer.close().unwrap();
                }
                "closed".to_owned()
            }
        };
        println!("{said}");
    }
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "locks::child_does_as_told", "--nocapture"])
            .env("JOURNAL_TEST_LOCK", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        while output.next().unwrap().unwrap() != "ready" {}
        Self { child, input, output }
    }

    fn tell(&mut self, command: &str) {
        self.input.write_all(format!("{command}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        self.output.next().unwrap().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make(folder: &Path) {
    let (path, lock) = places(folder);
    JournalWriter::create(&path, &lock, &options(), &batch(&[meta(&thread_id(1))])).unwrap().close().unwrap();
}

#[test]
fn of_two_processes_one_writes_and_the_other_is_told_who() {
    let races = rounds("JOURNAL_RACES", 200);
    let folder = folder();
    make(folder.path());
    let mut both = [Process::start(folder.path()), Process::start(folder.path())];
    let pids = [both[0].child.id(), both[1].child.id()];
    let mut wins = [0, 0];
    for race in 0..races {
        // The process that is started first alternates, so that both get to win.
        both[race % 2].tell("open");
        both[1 - race % 2].tell("open");
        let said = [both[0].hear(), both[1].hear()];
        let winner = usize::from(said[0] != "opened");
        assert_eq!(said[winner], "opened", "race {race}: {said:?}");
        assert_eq!(said[1 - winner], format!("locked {}", pids[winner]), "race {race}");
        wins[winner] += 1;
        for process in &mut both {
            process.tell("close");
            assert_eq!(process.hear(), "closed");
        }
    }
    assert!(wins.iter().all(|&wins| wins > 0), "{wins:?}");
    let contents = read(&places(folder.path()).0, &ReadOptions::default()).unwrap();
    assert!(contents.damage.is_empty(), "{:?}", contents.damage);
    assert_eq!(contents.entries.len(), 1 + races * 3);
    let texts: Vec<String> =
        contents.entries[1..].iter().map(|entry| format!("{:?}", entry.record)).collect();
    for three in texts.chunks(3) {
        let writer = pids.iter().find(|pid| three[0].contains(&format!("\"{pid} line 0\""))).unwrap();
        assert!(three[1].contains(&format!("\"{writer} line 1\"")), "{three:?}");
        assert!(three[2].contains(&format!("\"{writer} line 2\"")), "{three:?}");
    }
}

#[test]
fn a_killed_holder_is_followed_at_once() {
    let folder = folder();
    make(folder.path());
    let (path, lock) = places(folder.path());
    for _ in 0..10 {
        let mut process = Process::start(folder.path());
        process.tell("open");
        assert_eq!(process.hear(), "opened");
        let error = JournalWriter::open(&path, &lock, &options()).unwrap_err();
        let JournalError::Locked { holder, .. } = &error else { panic!("{error}") };
        assert_eq!(holder.pid, Some(process.child.id()));
        assert!(error.to_string().contains(&format!("process {}", process.child.id())), "{error}");
        process.child.kill().unwrap();
        let began = Instant::now();
        let (writer, _) = JournalWriter::open(&path, &lock, &options()).unwrap();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        writer.close().unwrap();
    }
}

#[test]
fn a_second_writer_in_this_process_is_refused_too() {
    let folder = folder();
    make(folder.path());
    let (path, lock) = places(folder.path());
    let (writer, _) = JournalWriter::open(&path, &lock, &options()).unwrap();
    let error = JournalWriter::open(&path, &lock, &options()).unwrap_err();
    assert!(matches!(&error, JournalError::Locked { holder, .. } if holder.pid == Some(std::process::id())));
    writer.close().unwrap();
    assert!(!lock.exists(), "a closed journal leaves no lock behind");
    JournalWriter::open(&path, &lock, &options()).unwrap();
}

#[test]
fn a_stale_lock_file_is_no_obstacle() {
    let folder = folder();
    make(folder.path());
    let (path, lock) = places(folder.path());
    for left_behind in ["", "nonsense", "{\"pid\":1}"] {
        std::fs::write(&lock, left_behind).unwrap();
        JournalWriter::open(&path, &lock, &options()).unwrap().0.close().unwrap();
    }
}
