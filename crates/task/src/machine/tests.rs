//! The task alone: inputs in, effects out; no clock, no process, no store.

#![allow(clippy::expect_used, reason = "a test may panic")]

use super::*;

const TIMES: TaskTimes = TaskTimes { idle_after_ms: 60_000, suspend_after_ms: 600_000 };

fn thread() -> ThreadId {
    ThreadId::new("t")
}

fn turn() -> TurnId {
    TurnId::new("u")
}

fn operation() -> OperationId {
    OperationId::new("t:u:c1")
}

fn seed(state: TaskState) -> TaskSeed {
    let (turns, operations, agent_waits) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    TaskSeed { state, turns, operations, agent_waits, inputs: Vec::new() }
}

/// A task with an unfinished turn and one operation in this stage.
fn unfinished(state: TaskState, stage: Option<OperationStage>) -> TaskSeed {
    TaskSeed {
        turns: BTreeMap::from([(thread(), turn())]),
        operations: stage.map(|stage| (operation(), stage)).into_iter().collect(),
        ..seed(state)
    }
}

struct TaskStage {
    task: TaskMachine,
    now_ms: i64,
}

impl TaskStage {
    fn new(seed: TaskSeed) -> (Self, Vec<TaskEffect>) {
        let mut bench = Self { task: TaskMachine::new(thread(), TIMES, seed), now_ms: 1_000 };
        let effects = bench.on(TaskInput::Loaded);
        (bench, effects)
    }

    fn on(&mut self, input: TaskInput) -> Vec<TaskEffect> {
        self.task.on(self.now_ms, input)
    }

    fn after(&mut self, ms: i64) -> Vec<TaskEffect> {
        self.now_ms += ms;
        self.on(TaskInput::TimePassed)
    }

    fn recorded(&mut self, fact: RecordFact) -> Vec<TaskEffect> {
        self.on(TaskInput::Recorded(fact))
    }

    fn stage(&mut self, stage: Option<OperationStage>) -> Vec<TaskEffect> {
        self.recorded(RecordFact::Operation { operation: operation(), stage })
    }

    /// A runtime is up, a turn runs, and it asks about an operation.
    fn asking() -> Self {
        let (mut bench, _) = Self::new(seed(TaskState::Idle));
        bench.on(TaskInput::InputReceived("i1".to_owned()));
        bench.on(TaskInput::RuntimeUp(1));
        bench.recorded(RecordFact::TurnStarted { thread: thread(), turn: turn() });
        bench.on(TaskInput::InputTaken("i1".to_owned()));
        bench.stage(Some(OperationStage::Proposed));
        let effects = bench.on(TaskInput::Asked { operation: operation(), question: 7 });
        assert!(effects.contains(&TaskEffect::AskClients { operation: operation(), question: 7 }));
        bench
    }
}

/// The turn of the root is the only one.
fn suspends(generation: Generation) -> TaskEffect {
    TaskEffect::SuspendTurns { generation, turns: vec![(thread(), turn())] }
}

fn starts(effects: &[TaskEffect]) -> Option<Generation> {
    effects.iter().find_map(|effect| match effect {
        TaskEffect::StartRuntime(generation) => Some(*generation),
        _ => None,
    })
}

#[test]
fn input_starts_a_runtime_and_is_sent_once_it_is_up() {
    let (mut bench, effects) = TaskStage::new(seed(TaskState::Idle));
    assert_eq!(effects, []);
    let effects = bench.on(TaskInput::InputReceived("i1".to_owned()));
    assert_eq!(starts(&effects), Some(1));
    // The same input again is the same input.
    assert_eq!(bench.on(TaskInput::InputReceived("i1".to_owned())), []);
    let effects = bench.on(TaskInput::RuntimeUp(1));
    assert_eq!(effects, [TaskEffect::SendInput { generation: 1, input: "i1".to_owned() }]);
    assert_eq!(bench.on(TaskInput::TimePassed), [], "sent once");
}

#[test]
fn input_whose_runtime_dies_goes_to_the_next_one() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Idle));
    bench.on(TaskInput::InputReceived("i1".to_owned()));
    bench.on(TaskInput::RuntimeUp(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), Some(2));
    let effects = bench.on(TaskInput::RuntimeUp(2));
    assert_eq!(effects, [TaskEffect::SendInput { generation: 2, input: "i1".to_owned() }]);
}

#[test]
fn what_an_older_runtime_reports_has_no_effect() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Idle));
    bench.on(TaskInput::InputReceived("i1".to_owned()));
    bench.on(TaskInput::RuntimeGone(1));
    assert_eq!(bench.on(TaskInput::RuntimeUp(1)), []);
    assert_eq!(bench.on(TaskInput::RuntimeGone(1)), []);
    assert_eq!(bench.on(TaskInput::RuntimeUp(2)).len(), 1);
}

#[test]
fn a_decision_answers_the_question_that_is_open() {
    let mut bench = TaskStage::asking();
    let effects = bench.on(TaskInput::Decided(operation()));
    assert!(effects.contains(&TaskEffect::AnswerQuestion { operation: operation(), question: 7 }));
    // It is not asked about again, whichever runtime asks.
    let effects = bench.on(TaskInput::Asked { operation: operation(), question: 8 });
    assert_eq!(effects, [TaskEffect::AnswerQuestion { operation: operation(), question: 8 }]);
}

#[test]
fn a_decision_that_was_taken_back_is_asked_for_again() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.on(TaskInput::RuntimeGone(1));
    bench.on(TaskInput::RuntimeUp(2));
    let question = 8;
    let answers = TaskEffect::AnswerQuestion { operation: operation(), question };
    assert!(bench.on(TaskInput::Asked { operation: operation(), question }).contains(&answers));
    let effects = bench.on(TaskInput::Undecided { operation: operation(), question });
    assert!(effects.contains(&TaskEffect::AskClients { operation: operation(), question }), "{effects:?}");
    assert!(bench.on(TaskInput::Decided(operation())).contains(&answers), "the next decision answers it");
}

#[test]
fn a_call_whose_tool_has_changed_waits_for_nobody_who_has_the_old_one() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.on(TaskInput::CallWaits { operation: operation(), question: 7 });
    let effects = bench.on(TaskInput::Reopened(operation()));
    let expected =
        [TaskEffect::CloseAsk(operation()), TaskEffect::AskClients { operation: operation(), question: 7 }];
    assert_eq!(effects[..2], expected);
    let answers = TaskEffect::AnswerQuestion { operation: operation(), question: 7 };
    assert!(bench.on(TaskInput::Decided(operation())).contains(&answers));
}

/// A decision starts a runtime, and before that is up a client opens the task with other tools, which takes the decision back.
/// The next decision does not keep the runtime that has the old ones.
#[test]
fn a_runtime_with_the_tools_of_before_ends_whatever_is_decided_meanwhile() {
    let seed = || unfinished(TaskState::Waiting, Some(OperationStage::Proposed));
    let opened = |bench: &mut TaskStage| {
        bench.on(TaskInput::Reopened(operation()));
        bench.on(TaskInput::ToolsChanged)
    };
    let (mut bench, _) = TaskStage::new(seed());
    assert_eq!(starts(&bench.on(TaskInput::Decided(operation()))), Some(1));
    opened(&mut bench);
    bench.on(TaskInput::ResumeWanted);
    bench.on(TaskInput::Decided(operation()));
    assert!(bench.on(TaskInput::RuntimeUp(1)).contains(&suspends(1)), "while it starts");
    bench.on(TaskInput::Suspended(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), Some(2));
    assert!(!bench.on(TaskInput::RuntimeUp(2)).contains(&suspends(2)), "the next one has the new ones");
    let (mut bench, _) = TaskStage::new(seed());
    bench.on(TaskInput::Decided(operation()));
    bench.on(TaskInput::RuntimeUp(1));
    assert!(opened(&mut bench).contains(&suspends(1)), "while it is up");
    bench.on(TaskInput::InputReceived("i1".to_owned()));
    let effects = bench.on(TaskInput::Suspended(1));
    assert_eq!(effects, [TaskEffect::EndRuntime(1)], "input waits for the next one");
    bench.on(TaskInput::RuntimeGone(1));
    let sent = TaskEffect::SendInput { generation: 2, input: "i1".to_owned() };
    assert!(bench.on(TaskInput::RuntimeUp(2)).contains(&sent));
    // Nothing starts only for that.
    let (mut bench, _) = TaskStage::new(seed());
    assert_eq!(starts(&opened(&mut bench)), None);
    assert!(bench.task.is_at_rest());
}

#[test]
fn a_refusal_of_the_tools_of_before_says_nothing_about_those_of_now() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Creating));
    bench.on(TaskInput::PassWanted(1));
    bench.on(TaskInput::ToolsChanged);
    let effects = bench.on(TaskInput::RuntimeFailed { generation: 1, is_final: true });
    assert_eq!(starts(&effects), Some(2), "{effects:?}");
}

/// A kill of the runtime at every point of an operation's life, and what the task does about it.
#[test]
fn a_runtime_that_dies_at_any_point_is_brought_back_and_nothing_runs_twice() {
    for stage in [None, Some(OperationStage::Proposed), Some(OperationStage::Decided)] {
        let mut bench = TaskStage::asking();
        if let Some(stage) = stage {
            bench.stage(Some(stage));
        }
        assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), Some(2), "{stage:?}");
    }
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.stage(Some(OperationStage::Started));
    let effects = bench.on(TaskInput::RuntimeGone(1));
    assert!(effects.contains(&TaskEffect::LoseStarted));
    assert_eq!(starts(&effects), None, "nothing starts before the loss is stored");
    let effects = bench.on(TaskInput::Lost(vec![operation()]));
    assert_eq!(starts(&effects), None, "an unknown outcome waits for somebody");
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Waiting)));
    assert_eq!(starts(&bench.on(TaskInput::Decided(operation()))), Some(2));
}

#[test]
fn what_may_run_twice_is_left_to_the_next_runtime() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.stage(Some(OperationStage::Started));
    bench.on(TaskInput::RuntimeGone(1));
    assert_eq!(starts(&bench.on(TaskInput::Lost(Vec::new()))), Some(2));
}

#[test]
fn a_host_that_starts_takes_up_what_ran_and_leaves_what_waits() {
    let (_, effects) = TaskStage::new(unfinished(TaskState::Running, None));
    assert_eq!(starts(&effects), Some(1));
    let (mut bench, effects) = TaskStage::new(unfinished(TaskState::Waiting, Some(OperationStage::Proposed)));
    assert_eq!(effects, []);
    assert!(bench.task.is_at_rest());
    assert_eq!(starts(&bench.on(TaskInput::Decided(operation()))), Some(1));
    // A decision that was stored just before the host died.
    let (_, effects) = TaskStage::new(unfinished(TaskState::Waiting, Some(OperationStage::Decided)));
    assert_eq!(starts(&effects), Some(1));
    let (_, effects) = TaskStage::new(unfinished(TaskState::Running, Some(OperationStage::Started)));
    assert_eq!((effects.first(), starts(&effects)), (Some(&TaskEffect::LoseStarted), None));
}

#[test]
fn a_runtime_without_work_ends_in_time_and_not_before() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Creating));
    assert_eq!(starts(&bench.on(TaskInput::PassWanted(1))), Some(1));
    bench.on(TaskInput::RuntimeUp(1));
    let effects = bench.on(TaskInput::PassDone(1));
    assert!(effects.contains(&TaskEffect::WakeAt(bench.now_ms + TIMES.idle_after_ms)), "{effects:?}");
    assert!(!bench.after(TIMES.idle_after_ms - 1).contains(&TaskEffect::EndRuntime(1)));
    assert!(bench.after(1).contains(&TaskEffect::EndRuntime(1)));
    // Asked for again while it ends: it is started anew when it is gone.
    assert_eq!(bench.on(TaskInput::PassWanted(2)), []);
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), Some(2));
}

#[test]
fn a_turn_that_waits_is_suspended_in_time_and_goes_on_by_a_decision() {
    let mut bench = TaskStage::asking();
    let suspended = suspends(1);
    assert!(!bench.after(TIMES.suspend_after_ms - 1).contains(&suspended));
    assert!(bench.after(1).contains(&suspended));
    assert!(bench.on(TaskInput::Suspended(1)).contains(&TaskEffect::EndRuntime(1)));
    let effects = bench.on(TaskInput::RuntimeGone(1));
    assert_eq!(starts(&effects), None);
    assert!(bench.task.is_at_rest());
    assert_eq!(starts(&bench.on(TaskInput::Decided(operation()))), Some(2));
}

#[test]
fn a_decision_while_the_turn_is_being_suspended_is_not_lost() {
    let mut bench = TaskStage::asking();
    bench.after(TIMES.suspend_after_ms);
    bench.on(TaskInput::Decided(operation()));
    bench.on(TaskInput::Suspended(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), Some(2));
}

#[test]
fn a_runtime_that_never_comes_up_is_given_up_and_tried_again_on_request() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Creating));
    bench.on(TaskInput::PassWanted(1));
    let mut pauses = Vec::new();
    for generation in 1.. {
        let effects = bench.on(TaskInput::RuntimeFailed { generation, is_final: false });
        if effects.iter().any(|effect| matches!(effect, TaskEffect::FailPass { pass: 1, .. })) {
            assert!(effects.contains(&TaskEffect::SetState(TaskState::Failed)));
            break;
        }
        let wake = effects.iter().find_map(|effect| match effect {
            TaskEffect::WakeAt(at_ms) => Some(at_ms - bench.now_ms),
            _ => None,
        });
        if let Some(pause) = wake {
            pauses.push(pause);
            assert_eq!(starts(&bench.after(pause)), Some(generation + 1));
        }
    }
    assert_eq!(pauses, [250, 500, 1_000]);
    assert_eq!(starts(&bench.on(TaskInput::PassWanted(2))), Some(6));
}

#[test]
fn a_refusal_is_final_at_once() {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Creating));
    bench.on(TaskInput::PassWanted(1));
    let effects = bench.on(TaskInput::RuntimeFailed { generation: 1, is_final: true });
    assert!(effects.iter().any(|effect| matches!(effect, TaskEffect::FailPass { pass: 1, .. })));
    assert_eq!(starts(&effects), None);
}

#[test]
fn the_end_of_a_turn_ends_its_questions() {
    let mut bench = TaskStage::asking();
    let effects = bench.recorded(RecordFact::TurnEnded { thread: thread(), turn: turn() });
    assert!(effects.contains(&TaskEffect::CloseAsk(operation())));
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Idle)));
    // A late answer changes nothing that runs.
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
}

#[test]
fn a_host_that_stops_ends_runtimes_and_starts_none() {
    let mut bench = TaskStage::asking();
    let effects = bench.on(TaskInput::DrainWanted);
    assert!(effects.contains(&suspends(1)));
    bench.on(TaskInput::Suspended(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
    assert_eq!(starts(&bench.on(TaskInput::Decided(operation()))), None);
    assert!(bench.task.is_at_rest());
}

/// Inputs in any order, from a small set, with kills between them: never two runtimes at once, never an effect for a
/// runtime that is not up, and every input sent is one that waits. Reproducible by its number.
#[test]
fn any_schedule_keeps_one_runtime_at_a_time() {
    for number in 0..5_000_u64 {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % most
        };
        let (mut bench, effects) = TaskStage::new(unfinished(TaskState::Running, None));
        let mut current = starts(&effects).unwrap_or(0);
        let mut is_up = false;
        for step in 0..40 {
            bench.now_ms += i64::try_from(random(400_000)).unwrap_or(0);
            let request = || ModelRequestId::new("m1");
            let input = match random(15) {
                11 => TaskInput::ModelAsked { generation: current, request: request() },
                12 => TaskInput::CarrierWanted { generation: current, request: request() },
                13 => TaskInput::CarrierFound { generation: current, request: request() },
                0 => TaskInput::InputReceived(format!("i{step}")),
                1 => TaskInput::RuntimeUp(current),
                2 => TaskInput::RuntimeGone(current),
                3 => TaskInput::Asked { operation: operation(), question: step },
                4 => TaskInput::Decided(operation()),
                5 => TaskInput::Recorded(RecordFact::Operation {
                    operation: operation(),
                    stage: Some(OperationStage::Started),
                }),
                6 => TaskInput::Recorded(RecordFact::Operation { operation: operation(), stage: None }),
                7 => TaskInput::Lost(vec![operation()]),
                8 => TaskInput::Suspended(current),
                9 => TaskInput::RuntimeFailed { generation: current, is_final: false },
                10 => TaskInput::PassWanted(step),
                _ => TaskInput::TimePassed,
            };
            match &input {
                TaskInput::RuntimeUp(_) if bench.task.is_starting(current) => is_up = true,
                TaskInput::RuntimeGone(_) | TaskInput::RuntimeFailed { .. } => is_up = false,
                _ => {}
            }
            for effect in bench.on(input) {
                match effect {
                    TaskEffect::StartRuntime(generation) => {
                        assert_eq!(generation, current + 1, "seed {number}, step {step}");
                        assert!(!is_up, "seed {number}, step {step}: a second runtime");
                        current = generation;
                    }
                    TaskEffect::SendInput { generation, .. } | TaskEffect::SendPass { generation, .. } => {
                        assert!(is_up && generation == current, "seed {number}, step {step}");
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_root_that_asks_its_model_beside_an_agent_that_waits_does_not_wait() {
    let (mut bench, _) = TaskStage::new(unfinished(TaskState::Running, None));
    bench.on(TaskInput::RuntimeUp(1));
    let (agent, question) = (ThreadId::new("a"), OperationId::new("a:v:c1"));
    let model = |generation| TaskInput::ModelAsked { generation, request: ModelRequestId::new("m1") };
    bench.on(model(1));
    bench.recorded(RecordFact::TurnStarted { thread: agent.clone(), turn: TurnId::new("v") });
    bench.recorded(RecordFact::Operation {
        operation: question.clone(),
        stage: Some(OperationStage::Proposed),
    });
    bench.on(TaskInput::Asked { operation: question.clone(), question: 7 });
    assert_eq!(bench.task.state(), TaskState::Running);
    assert_eq!(bench.after(TIMES.suspend_after_ms), [], "nothing is suspended in mid-stream");
    let done = |generation| TaskInput::ModelDone { generation, request: ModelRequestId::new("m1") };
    bench.on(done(0));
    assert_eq!(bench.task.state(), TaskState::Running, "another runtime's request");
    assert!(bench.on(done(1)).contains(&TaskEffect::SetState(TaskState::Waiting)));
    // The root begins to wait for its agent, which is no work.
    let wait = OperationId::new("t:u:c2");
    let started = RecordFact::Operation { operation: wait.clone(), stage: Some(OperationStage::Started) };
    assert!(bench.recorded(started).contains(&TaskEffect::SetState(TaskState::Running)));
    let effects = bench.recorded(RecordFact::AgentWait(wait));
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Waiting)), "{effects:?}");
    let turns = vec![(agent, TurnId::new("v")), (thread(), turn())];
    let suspended = TaskEffect::SuspendTurns { generation: 1, turns };
    assert!(bench.after(TIMES.suspend_after_ms).contains(&suspended));
    bench.on(TaskInput::Suspended(1));
    bench.on(model(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
    bench.on(TaskInput::Lost(Vec::new()));
    assert_eq!(starts(&bench.on(TaskInput::Decided(question))), Some(2));
    bench.on(TaskInput::RuntimeUp(2));
    assert!(bench.task.requests.is_empty(), "the requests of a runtime end with it");
}

#[test]
fn an_agent_that_is_given_up_holds_up_nobody() {
    let agent = ThreadId::new("a");
    let mut seed = unfinished(TaskState::Running, None);
    seed.turns = BTreeMap::from([(agent.clone(), TurnId::new("v"))]);
    seed.operations = BTreeMap::from([(OperationId::new("a:v:c1"), OperationStage::Decided)]);
    let (mut bench, effects) = TaskStage::new(seed);
    assert_eq!(starts(&effects), Some(1), "its decision is to be carried out");
    bench.on(TaskInput::AgentGivenUp { thread: agent, turn: TurnId::new("v") });
    bench.on(TaskInput::RuntimeUp(1));
    assert!(bench.after(TIMES.idle_after_ms).contains(&TaskEffect::EndRuntime(1)));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
    assert!(bench.task.is_at_rest());
}

#[test]
fn a_runtime_that_comes_up_while_the_host_stops_is_ended() {
    let (mut bench, effects) = TaskStage::new(unfinished(TaskState::Running, None));
    assert_eq!(starts(&effects), Some(1));
    assert_eq!(bench.on(TaskInput::DrainWanted), []);
    let suspended = suspends(1);
    assert!(bench.on(TaskInput::RuntimeUp(1)).contains(&suspended));
    assert!(bench.on(TaskInput::Suspended(1)).contains(&TaskEffect::EndRuntime(1)));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
    assert!(bench.task.is_at_rest());
}

#[test]
fn a_suspension_while_the_runtime_starts_holds_unless_it_is_taken_back() {
    let (mut bench, _) = TaskStage::new(unfinished(TaskState::Running, None));
    bench.on(TaskInput::SuspendWanted);
    let suspended = suspends(1);
    assert!(bench.on(TaskInput::RuntimeUp(1)).contains(&suspended));
    let (mut bench, _) = TaskStage::new(unfinished(TaskState::Running, None));
    bench.on(TaskInput::SuspendWanted);
    bench.on(TaskInput::ResumeWanted);
    assert!(!bench.on(TaskInput::RuntimeUp(1)).contains(&suspended));
}

#[test]
fn a_call_outlives_its_runtime_and_its_result_is_for_the_next_one() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::CallWaits { operation: operation(), question: 7 });
    bench.on(TaskInput::CallBegun(operation()));
    let effects = bench.after(TIMES.suspend_after_ms * 2);
    assert!(
        !effects.iter().any(|effect| matches!(effect, TaskEffect::SuspendTurns { .. })),
        "a client works"
    );
    let effects = bench.on(TaskInput::RuntimeGone(1));
    assert!(!effects.contains(&TaskEffect::LoseStarted), "the client is still there");
    assert_eq!(starts(&effects), Some(2));
    bench.on(TaskInput::RuntimeUp(2));
    bench.on(TaskInput::CallDone(operation()));
    let effects = bench.on(TaskInput::Asked { operation: operation(), question: 3 });
    assert!(
        effects.contains(&TaskEffect::AnswerQuestion { operation: operation(), question: 3 }),
        "{effects:?}"
    );
}

#[test]
fn a_call_without_a_client_is_suspended_and_does_not_come_back_by_itself() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.on(TaskInput::CallWaits { operation: operation(), question: 7 });
    bench.after(0);
    let effects = bench.after(TIMES.suspend_after_ms);
    assert!(effects.iter().any(|effect| matches!(effect, TaskEffect::SuspendTurns { .. })), "{effects:?}");
    bench.on(TaskInput::Suspended(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None, "nobody is there to run it");
    assert_eq!(starts(&bench.on(TaskInput::ResumeWanted)), Some(2), "whoever resumes it may run it");
}

#[test]
fn a_call_that_was_lost_waits_for_a_decision_with_its_runtime_up() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::CallWaits { operation: operation(), question: 7 });
    bench.on(TaskInput::CallBegun(operation()));
    let effects = bench.on(TaskInput::CallLost(operation()));
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Waiting)), "{effects:?}");
    let effects = bench.on(TaskInput::Decided(operation()));
    assert!(
        effects.contains(&TaskEffect::AnswerQuestion { operation: operation(), question: 7 }),
        "{effects:?}"
    );
}

#[test]
fn a_task_without_room_is_queued_and_can_be_taken_back() {
    let (mut bench, _) = TaskStage::new(unfinished(TaskState::Running, None));
    let effects = bench.on(TaskInput::Queued(1));
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Queued)), "{effects:?}");
    let effects = bench.on(TaskInput::RoomFound(1));
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Running)), "{effects:?}");
    let (mut bench, _) = TaskStage::new(unfinished(TaskState::Running, None));
    bench.on(TaskInput::Queued(1));
    let effects = bench.on(TaskInput::SuspendWanted);
    assert!(effects.contains(&TaskEffect::LeaveQueue), "{effects:?}");
    assert!(bench.task.is_at_rest(), "nothing of it runs");
    assert_eq!(starts(&bench.on(TaskInput::ResumeWanted)), Some(2));
}

#[test]
fn a_runtime_without_work_makes_room_for_others() {
    let mut bench = TaskStage::asking();
    let effects = bench.on(TaskInput::Crowded(true));
    assert!(effects.contains(&suspends(1)), "{effects:?}");
}

#[test]
fn a_call_that_was_rejected_does_not_hide_that_the_next_one_waits() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    // The runtime has recorded the rejection: nothing starts.
    bench.stage(None);
    let next = OperationId::new("t:u:c2");
    bench.recorded(RecordFact::Operation { operation: next.clone(), stage: Some(OperationStage::Proposed) });
    let effects = bench.on(TaskInput::Asked { operation: next, question: 8 });
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Waiting)), "{effects:?}");
    // Suspended, it stays so: nothing that was decided waits to be carried out.
    let effects = bench.after(TIMES.suspend_after_ms);
    assert!(effects.contains(&suspends(1)), "{effects:?}");
    bench.on(TaskInput::Suspended(1));
    assert_eq!(starts(&bench.on(TaskInput::RuntimeGone(1))), None);
}

#[test]
fn a_call_that_is_proposed_with_other_arguments_waits_alone() {
    let mut bench = TaskStage::asking();
    bench.on(TaskInput::Decided(operation()));
    bench.stage(Some(OperationStage::Decided));
    let next = OperationId::new("t:u:c1:1");
    bench.recorded(RecordFact::Operation { operation: next.clone(), stage: Some(OperationStage::Proposed) });
    let effects = bench.on(TaskInput::Asked { operation: next, question: 8 });
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Waiting)), "{effects:?}");
}

#[test]
fn a_runtime_ends_after_its_last_words() {
    for told in [true, false] {
        let mut bench = TaskStage::asking();
        bench.task.times.idle_after_ms = 0;
        bench.on(TaskInput::Decided(operation()));
        let ended = bench.recorded(RecordFact::TurnEnded { thread: thread(), turn: turn() });
        assert!(!ended.contains(&TaskEffect::EndRuntime(1)), "clients have not heard of it: {ended:?}");
        let effects = if told { bench.on(TaskInput::TurnTold(thread())) } else { bench.after(LAST_WORDS_MS) };
        assert!(effects.contains(&TaskEffect::EndRuntime(1)), "{told}: {effects:?}");
    }
}

/// A turn runs, and its model request waits for a client that carries it.
fn uncarried() -> TaskStage {
    let (mut bench, _) = TaskStage::new(seed(TaskState::Idle));
    bench.on(TaskInput::InputReceived("i1".to_owned()));
    bench.on(TaskInput::RuntimeUp(1));
    bench.recorded(RecordFact::TurnStarted { thread: thread(), turn: turn() });
    bench.on(TaskInput::InputTaken("i1".to_owned()));
    let request = ModelRequestId::new("m1");
    bench.on(TaskInput::ModelAsked { generation: 1, request: request.clone() });
    assert_eq!(bench.task.state(), TaskState::Running);
    let effects = bench.on(TaskInput::CarrierWanted { generation: 1, request });
    assert!(effects.contains(&TaskEffect::SetState(TaskState::WaitingForCarrier)), "{effects:?}");
    bench
}

#[test]
fn a_request_without_a_carrier_is_a_wait_and_one_that_is_carried_is_work() {
    let mut bench = uncarried();
    let (generation, request) = (1, ModelRequestId::new("m1"));
    let effects = bench.on(TaskInput::CarrierFound { generation, request: request.clone() });
    assert!(effects.contains(&TaskEffect::SetState(TaskState::Running)), "{effects:?}");
    assert_eq!(bench.after(TIMES.suspend_after_ms), [], "nothing is suspended in mid-stream");
    // Its carrier is gone before it sent anything.
    bench.on(TaskInput::CarrierWanted { generation, request: request.clone() });
    assert_eq!(bench.task.state(), TaskState::WaitingForCarrier);
    bench.on(TaskInput::ModelDone { generation, request: request.clone() });
    assert_eq!(bench.task.state(), TaskState::Running);
    // News of a request that is over, or of an earlier runtime, have no effect.
    bench.on(TaskInput::CarrierWanted { generation, request });
    bench.on(TaskInput::CarrierWanted { generation: 0, request: ModelRequestId::new("m0") });
    assert_eq!(bench.task.state(), TaskState::Running);
}

#[test]
fn a_task_that_lacks_a_carrier_gives_its_runtime_up_and_goes_on_when_one_comes() {
    let mut bench = uncarried();
    assert!(bench.after(TIMES.suspend_after_ms).contains(&suspends(1)));
    assert_eq!(bench.task.state(), TaskState::WaitingForCarrier);
    bench.on(TaskInput::Suspended(1));
    bench.on(TaskInput::RuntimeGone(1));
    assert_eq!((bench.task.state(), bench.task.is_at_rest()), (TaskState::WaitingForCarrier, true));
    assert_eq!(bench.after(1_000_000), [], "nothing starts by itself");
    // The same after a restart of the host.
    let (mut again, effects) = TaskStage::new(unfinished(TaskState::WaitingForCarrier, None));
    assert_eq!((effects, again.task.state()), (vec![], TaskState::WaitingForCarrier));
    for bench in [&mut bench, &mut again] {
        let effects = bench.on(TaskInput::ResumeWanted);
        assert!(starts(&effects).is_some());
        assert!(effects.contains(&TaskEffect::SetState(TaskState::Running)), "{effects:?}");
    }
}

#[test]
fn a_task_that_somebody_suspends_does_not_wait_for_a_carrier() {
    let mut bench = uncarried();
    assert!(bench.on(TaskInput::SuspendWanted).contains(&suspends(1)));
    assert_eq!(bench.task.state(), TaskState::Suspended);
}

#[test]
fn a_decision_that_is_waited_for_comes_before_a_carrier() {
    let mut bench = uncarried();
    bench.stage(Some(OperationStage::Proposed));
    bench.on(TaskInput::Asked { operation: operation(), question: 7 });
    assert_eq!(bench.task.state(), TaskState::Waiting);
}
