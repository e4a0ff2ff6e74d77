use protocol::TurnId;

use super::super::ledger::ReportedEnd;
use super::*;
use crate::testing;

fn meta(thread: &str, source: SessionSource) -> SessionMeta {
    SessionMeta { session_id: "parent".to_owned(), source, ..testing::meta(thread) }
}

/// The record of a thread that another spawned.
fn child_meta(thread: &str, parent: &str, depth: i32) -> SessionMeta {
    let source = SubAgentSource::ThreadSpawn {
        parent_thread_id: ThreadId::new(parent),
        depth,
        agent_path: None,
        agent_nickname: Some("Wren".to_owned()),
        agent_role: Some("worker".to_owned()),
    };
    meta(thread, SessionSource::SubAgent(source))
}

fn thread(id: &str) -> ThreadId {
    ThreadId::new(id)
}

fn agent(agents: &AgentRegistry, parent: &str, id: &str) -> Agent {
    Agent::new(id.to_owned(), agents.family_below(&thread(parent), id), AgentPlace::Here)
}

fn add(agents: &AgentRegistry, parent: &str, id: &str) -> Arc<Agent> {
    agents.add(agent(agents, parent, id))
}

#[test]
fn the_number_of_open_agents_is_limited_per_root() {
    let agents = AgentRegistry::default();
    let admit = |parent: &str, id: &str| agents.admit(agent(&agents, parent, id), 2);
    let first = admit("root", "a").expect("room");
    admit("a", "b").expect("room for a child of a child");
    assert_eq!(admit("root", "c").expect_err("full"), 2);
    assert_eq!(admit("b", "c").expect_err("full at any depth"), 2);
    assert!(agents.find("c").is_none(), "one that was not admitted is not known");
    admit("other", "d").expect("every root counts for itself");
    // An ended agent still counts, a closed one does not.
    first.end(None, AgentStatus::Completed(None));
    admit("root", "c").expect_err("full");
    first.close();
    admit("root", "c").expect("room again");
    first.open();
    agents.remove("b");
    assert_eq!(admit("root", "e").expect_err("full"), 2);
}

#[test]
fn a_family_goes_from_the_root_to_the_child() {
    let agents = AgentRegistry::default();
    let first = add(&agents, "r", "a");
    let second = add(&agents, "a", "b");
    let told = |agent: &Agent| {
        let Family { parent, root, depth, path } = agent.family.clone();
        (parent.to_string(), root.to_string(), depth, path.join("/"))
    };
    assert_eq!(told(&first), ("r".to_owned(), "r".to_owned(), 1, "root/a".to_owned()));
    assert_eq!(told(&second), ("a".to_owned(), "r".to_owned(), 2, "root/a/b".to_owned()));
}

#[test]
fn descendants_are_known_at_any_depth() {
    let agents = AgentRegistry::default();
    let [first, second, other] = [("r", "a"), ("a", "b"), ("s", "c")].map(|(up, id)| add(&agents, up, id));
    for (agent, above, expected) in [
        (&first, "r", true),
        (&second, "r", true),
        (&second, "a", true),
        (&second, "b", false),
        (&first, "b", false),
        (&other, "r", false),
        (&second, "s", false),
    ] {
        assert_eq!(agents.is_below(agent, &thread(above)), expected, "{} below {above}", agent.id);
    }
    agents.remove("a");
    assert!(!agents.is_below(&second, &thread("r")), "nobody knows any more");
}

#[test]
fn a_cycle_of_parents_ends() {
    let agents = AgentRegistry::default();
    let one = agents.enter(&child_meta("a", "b", 1)).expect("an agent");
    agents.enter(&child_meta("b", "a", 1)).expect("an agent");
    let own = agents.enter(&child_meta("c", "c", 1)).expect("an agent");
    assert!(!agents.is_below(&one, &thread("r")) && !agents.is_below(&own, &thread("r")));
    assert!(agents.is_below(&one, &thread("b")));
}

#[test]
fn open_children_are_those_of_one_parent_oldest_first() {
    let agents = AgentRegistry::default();
    for (parent, id) in [("r", "3"), ("r", "1"), ("1", "4"), ("r", "2"), ("s", "5")] {
        add(&agents, parent, id);
    }
    let names = |parent: &str| -> Vec<String> {
        agents.open_children(&thread(parent)).iter().map(|agent| agent.id.clone()).collect()
    };
    assert_eq!(names("r"), ["1", "2", "3"]);
    agents.find("2").expect("known").close();
    assert_eq!((names("r"), names("1")), (vec!["1".to_owned(), "3".to_owned()], vec!["4".to_owned()]));
}

#[test]
fn an_end_is_reported_once_until_there_is_new_input() {
    let agents = AgentRegistry::default();
    let agent = add(&agents, "r", "a");
    assert_eq!(agent.status(), AgentStatus::PendingInit);
    assert!(!agent.end(None, AgentStatus::Interrupted), "it may go on");
    assert!(agent.end(None, AgentStatus::Completed(None)));
    assert!(!agent.end(None, AgentStatus::Errored("again".to_owned())));
    assert_eq!(agent.status(), AgentStatus::Errored("again".to_owned()));
    agent.begin();
    assert_eq!(agent.status(), AgentStatus::Running);
    assert!(agent.end(None, AgentStatus::Completed(None)));
}

#[test]
fn a_close_is_not_reported_and_wakes_waiters() {
    let agents = AgentRegistry::default();
    let agent = add(&agents, "r", "a");
    let watch = agent.watch();
    agent.close();
    assert!(!agent.is_open() && !agent.is_awaited());
    assert!(watch.has_changed().expect("it is there") && *watch.borrow() == AgentStatus::Shutdown);
    assert!(!agent.end(None, AgentStatus::Completed(None)), "an end that comes late");
    assert_eq!(agents.find("a").expect("closed ones stay known").thread(), thread("a"));
}

#[test]
fn nicknames_are_unique_in_a_family() {
    let agents = AgentRegistry::default();
    for (parent, id, name) in [("r", "a", "Wren"), ("a", "b", "Rook"), ("s", "c", "Crow")] {
        let mut agent = agent(&agents, parent, id);
        agent.nickname = Some(name.to_owned());
        agents.add(agent).close();
    }
    let mut names = agents.nicknames_below(&thread("r"));
    names.sort();
    assert_eq!(names, ["Rook", "Wren"]);
}

#[test]
fn a_child_at_the_host_is_found_by_its_operation() {
    let agents = AgentRegistry::default();
    let place = |operation: &str| AgentPlace::Away {
        delegation_id: OperationId::new(operation),
        child_ref: "x".to_owned(),
    };
    let family = agents.family_below(&thread("r"), "host:x");
    agents.add(Agent::new("host:x".to_owned(), family, place("op1")));
    let found = |operation: &str| agents.with_delegation(&OperationId::new(operation));
    assert_eq!(found("op1").map(|agent| agent.id.clone()).as_deref(), Some("host:x"));
    assert!(found("op2").is_none());
}

#[test]
fn a_thread_knows_from_its_record_whether_it_is_an_agent() {
    let agents = AgentRegistry::default();
    assert!(agents.enter(&meta("t", SessionSource::AppServer)).is_none());
    let agent = agents.enter(&child_meta("a", "r", 1)).expect("an agent");
    assert_eq!((agent.nickname.as_deref(), agent.role.as_deref()), (Some("Wren"), Some("worker")));
    assert!(agent.is_open() && !agent.is_awaited(), "what it did before is no news");
    let again = agents.enter(&child_meta("a", "r", 1)).expect("an agent");
    assert!(Arc::ptr_eq(&agent, &again));
}

#[test]
fn a_closed_agent_that_is_opened_again_has_not_ended() {
    let agents = AgentRegistry::default();
    let agent = add(&agents, "r", "a");
    agent.set(AgentStatus::Running);
    agents.enter(&child_meta("a", "r", 1));
    assert_eq!(agent.status(), AgentStatus::Running, "one that is open stays as it is");
    agent.close();
    agents.enter(&child_meta("a", "r", 1));
    assert!(agent.is_open() && agent.status() == AgentStatus::PendingInit);
}

#[test]
fn the_depth_is_known_without_the_ancestors() {
    let agents = AgentRegistry::default();
    let deep = agents.enter(&child_meta("b", "a", 2)).expect("an agent");
    assert_eq!(deep.family.depth, 2);
    assert_eq!(depth_of(&child_meta("b", "a", 3)), 3);
    assert_eq!(depth_of(&child_meta("b", "a", -1)), 0);
    assert_eq!(depth_of(&meta("t", SessionSource::AppServer)), 0);
}

fn heard(told: &str, awaits: bool) -> ReportedEnd {
    ReportedEnd { told: Some(TurnId::new(told)), awaits }
}

#[test]
fn an_end_in_the_parents_record_is_not_reported_again() {
    let agents = AgentRegistry::default();
    let (first, second) = (TurnId::new("t1"), TurnId::new("t2"));
    let done = || AgentStatus::Completed(None);
    // Before: the parent was not loaded.
    let before = add(&agents, "r", "a");
    assert!(before.end(Some(&first), done()));
    before.report_later();
    assert!(before.is_awaited());
    before.settle(&heard("t1", false));
    assert!(!before.is_awaited() && before.unreported_end().is_none());
    before.report_later();
    assert!(!before.is_awaited(), "who looked before the parent came back knows now");
    before.begin();
    assert!(before.end(Some(&second), done()) && before.unreported_end() == Some(Some(second.clone())));
    // After: the parent read it in the record before it was notified.
    let after = add(&agents, "r", "b");
    after.settle(&heard("t1", false));
    assert!(!after.end(Some(&first), done()));
    after.begin();
    assert!(after.end(Some(&second), done()));
}

#[test]
fn an_agent_that_continues_is_reported_at_its_next_end() {
    let agents = AgentRegistry::default();
    let agent = add(&agents, "r", "a");
    agent.end(Some(&TurnId::new("t1")), AgentStatus::Completed(None));
    for awaits in [true, false] {
        agent.begin();
        agent.settle(&heard("t1", awaits));
        assert!(agent.is_awaited(), "what was read is older than what it does");
    }
    let entered = agents.enter(&child_meta("b", "r", 1)).expect("an agent");
    entered.settle(&heard("t1", true));
    assert!(entered.is_awaited());
}

#[test]
fn an_agent_closed_by_id_stays_closed_until_opened_by_id() {
    let agents = AgentRegistry::default();
    let agent = add(&agents, "r", "a");
    agent.dismiss();
    agent.close();
    assert!(agent.is_dismissed());
    agents.readmit(&agent, 2).expect("room");
    agent.close();
    assert!(!agent.is_dismissed(), "closed along with another");
}
