//! Prompts, answers and events.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;
use testkit::{EndInTime, LinesInTime};

use crate::support::{Place, Scripted, exec, records};

#[test]
fn the_answer_alone_is_on_standard_output() {
    let place = Place::new();
    let ran = place.offline(&["say hello there"]).good();
    assert_eq!(ran.out, "Offline model: hello there\n");
    for part in
        ["oarlock ", "model    offline (provider offline)", "you\nsay hello there\n", "agent\nOffline model"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(!ran.err.contains('\u{1b}'), "no colours without a terminal: {}", ran.err);
    assert_eq!(records(&place.home()).len(), 1);
}

#[test]
fn colours_can_be_asked_for() {
    let place = Place::new();
    let ran = place.offline(&["--color", "always", "say hi"]).good();
    assert!(ran.err.contains("\u{1b}[1magent"), "{}", ran.err);
    assert_eq!(ran.out, "Offline model: hi\n");
}

#[test]
fn events_come_in_order() {
    let place = Place::new();
    for flag in ["--json", "--experimental-json"] {
        let ran = place.offline(&[flag, "plan: one; two, then say done"]).good();
        let expected = [
            "thread.started",
            "turn.started",
            "item.started",
            "item.completed",
            "item.completed",
            "turn.completed",
        ];
        assert_eq!(ran.types(), expected);
        let events = ran.events();
        let steps = json!([{ "text": "one", "completed": false }, { "text": "two", "completed": false }]);
        assert_eq!(events[2]["item"], json!({ "id": "item_0", "type": "todo_list", "items": steps }));
        assert_eq!(events[3]["item"]["type"], "agent_message");
        assert_eq!(events[4]["item"]["id"], "item_0");
        let usage = events[5]["usage"].as_object().expect("usage");
        let keys: Vec<&String> = usage.keys().collect();
        assert_eq!(keys, ["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"]);
        assert!(ran.out.lines().all(|line| line.starts_with("{\"type\":\"")), "{}", ran.out);
    }
}

#[test]
fn the_prompt_can_be_piped() {
    let place = Place::new();
    for arguments in [&["exec", "--provider", "offline"][..], &["exec", "--provider", "offline", "-"]] {
        let ran = place.run_piped(arguments, b"say piped words\n").good();
        assert_eq!(ran.out, "Offline model: piped words\n");
        assert!(ran.err.contains("standard input"), "{}", ran.err);
    }
    let ran = place.run_piped(&["exec", "--provider", "offline"], b" \n").bad();
    assert!(ran.err.contains("the prompt is empty"), "{}", ran.err);
    let ran = place.run_piped(&["exec", "--provider", "offline"], b"\xff").bad();
    assert!(ran.err.contains("UTF-8"), "{}", ran.err);
    assert_eq!(records(&place.home()).len(), 2, "what cannot begin leaves no record");
}

#[test]
fn what_is_piped_in_goes_with_the_prompt() {
    let place = Place::new();
    let model = Scripted::start(&place, &json!([{ "text": "read" }, { "text": "alone" }]));
    let flags = model.flags();
    place.run_piped(&exec(&flags, &["review this"]), b"+ a line\n- another\n").good();
    let asked =
        records(&place.home()).into_iter().map(|record| fs::read_to_string(record).expect("a record"));
    let asked: String = asked.collect();
    assert!(asked.contains(r"review this\n\n<stdin>\n+ a line\n- another\n</stdin>"), "{asked}");
    let ran = place.run_piped(&exec(&flags, &["nothing more"]), b"").good();
    assert!(ran.err.contains("nothing more") && !ran.err.contains("<stdin>"), "{}", ran.err);
}

/// A pipe that whoever started the program has left open, as supervisors do.
#[test]
fn a_silent_pipe_does_not_hold_up_the_turn() {
    let place = Place::new();
    let mut command = place.command(&["exec", "--provider", "offline", "say hi"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let open = child.stdin.take();
    assert_eq!(child.wait_in_time().code(), Some(0));
    drop(open);
}

#[test]
fn a_pipe_that_nobody_reads_ends_it_quietly() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = place.command(&["exec", "--provider", "offline", "--json", "say hi"]);
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let ended = child.end_in_time();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), said.contains("oarlock: ")), (Some(141), false), "{said}");
}

#[test]
fn the_last_message_goes_to_a_file_if_the_turn_completes() {
    let place = Place::new();
    let path = place.root().join("answer.txt");
    let path = path.to_str().expect("a plain path");
    place.run(&["exec", "-o", path, "say hi"]).bad();
    assert!(!fs::exists(path).expect("it can be looked for"), "a failed turn writes nothing");
    place.offline(&["-o", path, "--json", "say hi"]).good();
    assert_eq!(fs::read_to_string(path).expect("written"), "Offline model: hi");
}

/// The message is the model's, and so is what its command makes of the file's name.
#[test]
fn the_last_message_is_not_written_through_a_link_of_a_command() {
    let place = Place::new();
    let victim = place.root().join("victim");
    fs::write(&victim, "kept").expect("written");
    let prompt = format!("Run `ln -s {} answer.txt`", victim.display());
    let arguments = ["-s", "workspace-write", "-o", "answer.txt", prompt.as_str()];
    let ran = place.offline(&arguments).bad();
    assert!(place.folder().join("answer.txt").is_symlink(), "the command ran: {}", ran.err);
    assert!(ran.err.contains("answer.txt cannot be written: it became a link"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&victim).expect("readable"), "kept");
}

#[test]
fn an_ephemeral_thread_leaves_no_record() {
    let place = Place::new();
    let ran = place.offline(&["--ephemeral", "say hi"]).good();
    assert!(ran.err.contains("(not recorded)"), "{}", ran.err);
    assert!(records(&place.home()).is_empty());
}

#[test]
fn a_folder_outside_of_git_needs_a_word() {
    let place = Place::new();
    let outside = place.root();
    let outside = outside.to_str().expect("a plain path");
    let ran = place.offline(&["-C", outside, "say hi"]).bad();
    assert!(ran.err.contains("git repository") && ran.err.contains("--skip-git-repo-check"), "{}", ran.err);
    assert!(ran.out.is_empty());
    for word in ["--skip-git-repo-check", "--yolo"] {
        let ran = place.offline(&["-C", outside, word, "say hi"]).good();
        assert!(ran.err.contains(&format!("folder   {outside}\n")), "{}", ran.err);
    }
}

#[test]
fn an_interrupt_stops_the_turn() {
    let place = Place::new();
    let model = Scripted::start(&place, &json!([{ "text": "I begin", "hang": true }]));
    let flags = model.flags();
    let mut command = place.command(&exec(&flags, &["--json", "go"]));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = LinesInTime::new(child.stdout.take().expect("piped"));
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains("turn.started")) {
        seen.push(lines.next().expect("more lines"));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    seen.extend(lines);
    assert_eq!(child.wait_in_time().code(), Some(130));
    let last = seen.last().expect("a last event");
    assert!(last.contains("turn.interrupted"), "{seen:?}");
    let ran =
        place.run(&exec(&flags, &["resume", "--last", "--json", "--provider", "offline", "say on"])).good();
    assert!(ran.out.contains("Offline model: on"), "the thread can go on: {}", ran.out);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let place = Place::new();
    let model = Scripted::start(&place, &json!([{ "text": "I begin", "hang": true }]));
    let mut command = place.command(&exec(&model.flags(), &["--json", "go"]));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut lines = LinesInTime::new(child.stdout.take().expect("piped"));
    while !lines.next().expect("more lines").contains("turn.started") {}
    // Both are there before the process can do anything about the first.
    let pid = child.id().to_string();
    for signal in ["-STOP", "-INT", "-TERM", "-CONT"] {
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
    }
    let code = child.wait_in_time().code();
    assert!([Some(130), Some(143)].contains(&code), "{code:?}");
    assert!(!lines.any(|line| line.contains("turn.interrupted")), "it waits for nothing");
}

#[test]
fn a_review_is_one_turn_of_a_new_thread() {
    let place = Place::new();
    let model = Scripted::start(
        &place,
        &json!([
            { "text": json!({
                "findings": [], "overall_correctness": "patch is correct",
                "overall_explanation": "Looks solid.", "overall_confidence_score": 0.9,
            }).to_string() },
            { "text": "a plain answer" },
        ]),
    );
    let flags = model.flags();
    let ran = place.run(&exec(&flags, &["review", "--base", "main"])).good();
    assert_eq!(ran.out, "Looks solid.\n");
    assert!(ran.err.contains("you\nreview of what this branch adds to main\n"), "{}", ran.err);
    assert_eq!(ran.err.matches("Looks solid.").count(), 1, "shown once: {}", ran.err);
    let answer = place.root().join("review.txt");
    let path = answer.to_str().expect("a plain path");
    let arguments = exec(&flags, &["--json", "review", "-o", path, "-"]);
    let ran = place.run_piped(&arguments, b"is every error tested?").good();
    let last = &ran.events()[ran.events().len() - 2];
    assert_eq!(last["item"]["text"], "a plain answer");
    assert_eq!(fs::read_to_string(path).expect("written"), "a plain answer");
    assert_eq!(records(&place.home()).len(), 2);
}

#[test]
fn a_review_needs_a_subject_and_no_form() {
    let place = Place::new();
    let ran = place.offline(&["review"]).bad();
    assert!(ran.err.contains("--uncommitted") && ran.err.contains("--base"), "{}", ran.err);
    let ran = place.offline(&["review", "--uncommitted", "--output-schema", "x.json"]).bad();
    assert!(ran.err.contains("leave out --output-schema"), "{}", ran.err);
    let ran = place.offline(&["look", "review", "--uncommitted"]).bad();
    assert!(ran.err.contains("exec review PROMPT"), "{}", ran.err);
    assert!(records(&place.home()).is_empty());
}
