//! Whole jobs, with agents that report at once.

use std::path::Path;
use std::sync::Arc;

use engine::{Proposal, ProposalDecision, Step, ToolCall, ToolOutcome, ToolPayload};
use parking_lot::Mutex;
use protocol::{FunctionCallOutputBody, SandboxPolicy, ServerNotification, ThreadItem};
use serde_json::{Map, Value, json};

use super::board::{JobBoard, JobReport};
use crate::child_agents::AgentStatus;
use crate::fake_agents::FakeAgents;
use crate::testing::{bench, call, step};
use crate::{Bench, BenchOptions, BoxFuture, CallScope, Caller, Offer, Registry, Sink};

/// Answers a job's calls like agents that finish at once.
#[derive(Debug, Default)]
struct Workers {
    folder: std::path::PathBuf,
    calls: Mutex<Vec<(String, String)>>,
    proposals: Mutex<Vec<Proposal>>,
    /// Items without a report.
    silent: Vec<&'static str>,
    /// The item whose agent requests a stop.
    stops: Option<&'static str>,
    /// Limit of open agents.
    most: Option<usize>,
    open: Mutex<usize>,
}

impl Workers {
    fn work(&self, message: &str) {
        let quoted = |after: &str| {
            let rest = message.split_once(after).expect("it is in the task").1;
            rest.split('"').nth(1).expect("in quotes").to_owned()
        };
        let (job, item_id) = (quoted("job_id "), quoted("item_id "));
        if self.silent.contains(&item_id.as_str()) {
            return;
        }
        let result = Map::from_iter([("saw".to_owned(), json!(item_id))]);
        let stop = self.stops == Some(item_id.as_str());
        let board = JobBoard::of(&self.folder, &job).expect("a job");
        board.report(&JobReport { item_id, result, stop, at_ms: 0 }).expect("reported");
    }
}

impl Sink for Workers {
    fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        self.proposals.lock().push(proposal);
        Box::pin(std::future::ready(ProposalDecision::approved(false)))
    }

    fn call_tool(&self, call: ToolCall, _began_in: Arc<Step>) -> BoxFuture<'_, FunctionCallOutputBody> {
        let ToolPayload::Function { arguments } = &call.payload else { panic!("JSON") };
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        self.calls.lock().push((call.call_id.clone(), call.name.clone()));
        let mut open = self.open.lock();
        let text = match call.name.as_str() {
            "spawn_agent" if self.most.is_some_and(|most| *open >= most) => "there are too many".to_owned(),
            "spawn_agent" => {
                *open += 1;
                self.work(arguments["message"].as_str().expect("a task"));
                json!({"agent_id": format!("agent-of-{}", call.call_id), "nickname": null}).to_string()
            }
            _ => {
                *open -= 1;
                json!({}).to_string()
            }
        };
        Box::pin(std::future::ready(FunctionCallOutputBody::Text(text)))
    }

    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.notify(notification)
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

async fn run_in(folder: &Path, workers: Workers, arguments: Value) -> (ToolOutcome, Arc<Workers>) {
    run_with(folder, AgentStatus::Completed(None), workers, arguments).await
}

/// Runs a job whose agents all have this status.
async fn run_with(
    folder: &Path,
    status: AgentStatus,
    workers: Workers,
    arguments: Value,
) -> (ToolOutcome, Arc<Workers>) {
    let jobs = folder.join("state/jobs");
    let workers = Arc::new(Workers { folder: jobs.clone(), ..workers });
    let agents = FakeAgents::standing(status);
    let options = BenchOptions { jobs: Some(jobs), ..bench().options().clone() };
    let caller = Caller {
        thread_id: "thread".to_owned().into(),
        turn_id: "turn".to_owned().into(),
        sink: workers.clone(),
        bench: Arc::new(Bench::new(options).with_agents(Arc::new(agents))),
        grants: protocol::GrantedPermissionProfile { network: None, file_system: None },
        scope: CallScope::default(),
    };
    let mut step = step();
    step.cwd = folder.to_str().expect("a plain path").to_owned();
    step.sandbox = SandboxPolicy::DangerFullAccess;
    let call = call("spawn_agents_on_csv", &arguments.to_string());
    (Registry::builtin().run(call, Arc::new(step), caller).await, workers)
}

fn text(outcome: &ToolOutcome) -> String {
    let FunctionCallOutputBody::Text(text) = &outcome.output else { panic!("one text") };
    text.clone()
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in.csv"), text).expect("written");
    folder
}

#[tokio::test]
async fn each_row_has_an_agent_and_the_results_are_written_by_a_proposal() {
    let folder = folder_with("city,note\nBergen,\"a, b\"\nOslo,\nBergen,x\n");
    let workers = Workers { silent: vec!["Oslo"], ..Workers::default() };
    let arguments = json!({"csv_path": "in.csv", "instruction": "visit {city}", "id_column": "city",
        "output_csv_path": "out.csv", "max_concurrency": 2});
    let (outcome, workers) = run_in(folder.path(), workers, arguments).await;
    let result: Value = serde_json::from_str(&text(&outcome)).expect("JSON");
    assert!(outcome.success, "{result}");
    let counts = ["status", "total_items", "completed_items", "failed_items"].map(|key| result[key].clone());
    assert_eq!(counts, [json!("completed"), json!(3), json!(2), json!(1)]);
    assert_eq!(result["failed_item_errors"][0]["item_id"], "Oslo");
    let out = std::fs::read_to_string(folder.path().join("out.csv")).expect("written");
    let mut lines = out.lines();
    let head = "city,note,job_id,item_id,row_index,source_id,status,attempt_count,last_error,result_json,\
                reported_at,completed_at";
    assert_eq!(lines.next(), Some(head));
    let first = lines.next().expect("a row");
    assert!(
        first.starts_with("Bergen,\"a, b\",") && first.contains(",Bergen,0,Bergen,completed,1,,"),
        "{first}"
    );
    assert!(first.contains("\"{\"\"saw\"\":\"\"Bergen\"\"}\""), "{first}");
    assert!(lines.next().is_some_and(|line| line.contains(",failed,1,the agent ended without calling")));
    assert!(lines.next().is_some_and(|line| line.contains(",Bergen-2,2,Bergen,completed,")));
    // Written as a file change; the call itself proposes nothing else.
    let proposals = workers.proposals.lock();
    assert_eq!(proposals.len(), 1);
    assert_eq!(proposals[0].kind, protocol::OperationType::FileChange);
    // Every agent was started once, with an id that is the same after a restart, and closed.
    let calls = workers.calls.lock().clone();
    let named = |name: &str| calls.iter().filter(|(_, tool)| tool == name).count();
    assert_eq!((named("spawn_agent"), named("close_agent")), (3, 3));
    assert!(calls.iter().any(|(id, _)| id == "call_1-row-1-0"), "{calls:?}");
    assert!(!std::fs::read_dir(folder.path().join("state/jobs")).expect("there").any(|_| true));
}

#[tokio::test]
async fn no_more_agents_than_there_may_be_and_a_stop_ends_the_rest() {
    let rows: String = (1..=9).map(|n| format!("{n}\n")).collect();
    let folder = folder_with(&format!("n\n{rows}"));
    let arguments = json!({"csv_path": "in.csv", "instruction": "do {n}", "output_csv_path": "a.csv"});
    let workers = Workers { most: Some(2), ..Workers::default() };
    let (outcome, _) = run_in(folder.path(), workers, arguments).await;
    let result: Value = serde_json::from_str(&text(&outcome)).expect("JSON");
    assert_eq!((&result["completed_items"], &result["status"]), (&json!(9), &json!("completed")));
    let arguments = json!({"csv_path": "in.csv", "instruction": "do {n}", "output_csv_path": "b.csv",
                           "max_workers": 1});
    let workers = Workers { stops: Some("row-3"), ..Workers::default() };
    let (outcome, workers) = run_in(folder.path(), workers, arguments).await;
    let result: Value = serde_json::from_str(&text(&outcome)).expect("JSON");
    assert_eq!((&result["completed_items"], &result["status"]), (&json!(3), &json!("cancelled")));
    assert_eq!(workers.calls.lock().iter().filter(|(_, name)| name == "spawn_agent").count(), 3);
}

/// After a restart, agents are closed or interrupted and will not end by themselves.
#[tokio::test]
async fn a_job_does_not_wait_for_agents_of_a_process_that_is_gone() {
    for status in [AgentStatus::NotFound, AgentStatus::Interrupted] {
        let folder = folder_with("n\n1\n2\n");
        let arguments = json!({"csv_path": "in.csv", "instruction": "do {n}", "output_csv_path": "out.csv"});
        let workers = Workers { silent: vec!["row-2"], ..Workers::default() };
        let (outcome, _) = run_with(folder.path(), status, workers, arguments).await;
        let result: Value = serde_json::from_str(&text(&outcome)).expect("JSON");
        assert_eq!((&result["completed_items"], &result["failed_items"]), (&json!(1), &json!(1)), "{result}");
        assert_eq!(result["failed_item_errors"][0]["last_error"], "the agent was cut off before it reported");
    }
}

#[tokio::test]
async fn invalid_or_too_long_files_are_refused_before_any_agent() {
    let folder = folder_with("a\n");
    let path = |name: &str| folder.path().join(name);
    let huge = std::fs::File::create(path("huge.csv")).expect("made");
    huge.set_len(1 << 30).expect("sparse");
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe.csv"), rustix::fs::Mode::from_raw_mode(0o600))
        .expect("made");
    std::fs::write(path("bytes.csv"), [b'a', b'\n', 0xff]).expect("written");
    std::fs::write(path("taken.csv"), "x").expect("written");
    std::fs::write(path("ok.csv"), "a\n1\n").expect("written");
    let many: String = (0..10_001).map(|_| "1\n").collect();
    std::fs::write(path("many.csv"), format!("a\n{many}")).expect("written");
    for (arguments, expected) in [
        (json!({"csv_path": "huge.csv", "instruction": "x"}), "it is longer than 16 MiB"),
        (json!({"csv_path": "pipe.csv", "instruction": "x"}), "is not a regular file"),
        (json!({"csv_path": "bytes.csv", "instruction": "x"}), "it is not UTF-8 text"),
        (json!({"csv_path": "in.csv", "instruction": "x"}), "it has no rows"),
        (json!({"csv_path": "many.csv", "instruction": "x"}), "there are more than 10000 rows"),
        (json!({"csv_path": "none.csv", "instruction": "x"}), "none.csv"),
        (json!({"csv_path": ".", "instruction": "x"}), "is a folder"),
        (json!({"csv_path": "ok.csv", "instruction": " "}), "instruction must not be empty"),
        (
            json!({"csv_path": "ok.csv", "instruction": "x", "id_column": "b"}),
            "id_column `b` is no column: there are a",
        ),
        (json!({"csv_path": "ok.csv", "instruction": "x", "output_csv_path": "taken.csv"}), "exists already"),
        (
            json!({"csv_path": "ok.csv", "instruction": "x", "max_concurrency": 0}),
            "max_concurrency must be >= 1",
        ),
        (
            json!({"csv_path": "ok.csv", "instruction": "x", "max_runtime_seconds": 0}),
            "max_runtime_seconds must be >= 1",
        ),
    ] {
        let (outcome, workers) = run_in(folder.path(), Workers::default(), arguments.clone()).await;
        assert!(!outcome.success && text(&outcome).contains(expected), "{arguments}: {}", text(&outcome));
        assert!(workers.calls.lock().is_empty() && workers.proposals.lock().is_empty());
    }
}

#[tokio::test]
async fn reports_of_unknown_items_do_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scene = crate::scene::Scene::in_folder(folder.path());
    let options = BenchOptions { jobs: Some(folder.path().join("jobs")), ..scene.bench.options().clone() };
    scene.bench = Arc::new(Bench::new(options));
    let report = |job: &str, result: Value| json!({"job_id": job, "item_id": "row-1", "result": result});
    for job in ["none", "../../etc/passwd", ""] {
        let (text, _) = scene.run_text("report_agent_job_result", report(job, json!({}))).await;
        assert_eq!(text, "{\"accepted\":false}", "{job}");
    }
    let board = JobBoard::of(&folder.path().join("jobs"), "abc").expect("a job");
    board.open(&["row-1".to_owned()]).expect("made");
    for (result, expected) in [
        (json!("text"), "result must be a JSON object"),
        (json!({"a": "x".repeat(300 << 10)}), "the result is longer than 256 KiB"),
        (json!({"a": 1}), "{\"accepted\":true}"),
        (json!({"a": 2}), "{\"accepted\":false}"),
    ] {
        let (text, _) = scene.run_text("report_agent_job_result", report("abc", result)).await;
        assert!(text.starts_with(expected), "{text}");
    }
    assert_eq!(board.reports()["row-1"].result["a"], 1);
}

#[test]
fn jobs_need_their_feature_and_reports_are_for_children_only() {
    for (features, is_child, may_spawn, expected) in [
        (&["multi_agent", "enable_fanout"][..], false, true, &["spawn_agents_on_csv"][..]),
        (&["multi_agent", "enable_fanout"], true, false, &["report_agent_job_result"]),
        (&["multi_agent"], false, true, &[]),
        (&["multi_agent"], true, true, &[]),
    ] {
        let features = features.iter().map(|key| (*key).to_owned()).collect();
        let specs = Registry::builtin().specs(&Offer { features, is_child, may_spawn, ..Offer::default() });
        let both = ["spawn_agents_on_csv", "report_agent_job_result"];
        let names: Vec<_> =
            specs.iter().map(|spec| spec.name.as_str()).filter(|name| both.contains(name)).collect();
        assert_eq!(names, expected);
    }
}
