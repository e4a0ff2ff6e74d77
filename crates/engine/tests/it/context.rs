//! Context for the model beside the user's messages: when, in which role, and in which order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_engine::{
    EnvironmentState, Gate, Input, PluginLine, PluginText, Reach, Refusal, SkillLine, SkillText, Step,
    StepEnvironment, SubagentLine, ToolKind, ToolSpec, UserText, describe, effective_cwd, fragments_of,
};
use protocol::{
    AdditionalContextEntry, AdditionalContextKind, AskForApproval, CollaborationMode, EnvironmentId,
    ModeKind, Personality, ResponseItem, SandboxPolicy, Settings, TurnId,
};

type Entries<'a> = &'a [(&'a str, &'a str, AdditionalContextKind)];

use AdditionalContextKind::{Application, Untrusted};

use crate::support::{Fixture, added, call, completed, done, message, said};

fn with(text: &str, entries: Entries<'_>) -> UserText {
    let entry = |(key, value, kind): &(&str, &str, AdditionalContextKind)| {
        ((*key).to_owned(), AdditionalContextEntry { value: (*value).to_owned(), kind: *kind })
    };
    UserText { additional: entries.iter().map(entry).collect(), ..said(text) }
}

fn start(fixture: &mut Fixture, turn: &str, text: UserText) {
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Start { turn_id: TurnId::new(turn), text, output_schema: None, step });
}

/// Runs one turn; returns the lines of its request that are new.
fn turn(fixture: &mut Fixture, name: &str, text: UserText) -> Vec<String> {
    let before = fixture.prompt().len();
    start(fixture, name, text);
    let lines = fixture.prompt();
    fixture.model(done(message("m", "ok"))).model(completed(10));
    // The previous turn's answer is new in this request too, and not of interest.
    lines.into_iter().skip(before).filter(|line| !line.starts_with("assistant")).collect()
}

#[test]
fn additional_context_comes_before_the_input_in_key_order_and_by_kind() {
    let mut fixture = Fixture::new();
    let entries: Entries<'_> =
        &[("page", "a tab", Untrusted), ("auto", "rerun", Application), ("b", "x", Untrusted)];
    assert_eq!(
        turn(&mut fixture, "u1", with("hi", entries)),
        [
            "developer: <permissions instructions>",
            "user: <environment_context>",
            "developer: <auto>rerun</auto>",
            "user: <external_b>x</external_b>",
            "user: <external_page>a tab</external_page>",
            "user: hi",
        ]
    );
    // Clients saw only the user's message.
    let items: Vec<_> =
        fixture.take().into_iter().filter(|line| line.starts_with("item/started user")).collect();
    assert_eq!(items, ["item/started user \"hi\""]);
}

#[test]
fn only_new_or_changed_context_is_sent() {
    let mut fixture = Fixture::new();
    let a: Entries<'_> = &[("a", "1", Untrusted), ("b", "1", Application)];
    turn(&mut fixture, "u1", with("one", a));
    for (entries, expected) in [
        (a, vec!["user: go"]),
        // A changed value, a changed kind.
        (
            &[("a", "2", Untrusted), ("b", "1", Application)],
            vec!["user: <external_a>2</external_a>", "user: go"],
        ),
        (&[("a", "2", Application), ("b", "1", Application)], vec!["developer: <a>2</a>", "user: go"]),
        // A key that is left out is forgotten, and sent when it comes back.
        (&[("b", "1", Application)], vec!["user: go"]),
        (&[("a", "2", Application), ("b", "1", Application)], vec!["developer: <a>2</a>", "user: go"]),
        // An empty map forgets everything.
        (&[], vec!["user: go"]),
        (&[("b", "1", Application)], vec!["developer: <b>1</b>", "user: go"]),
    ] as [(Entries<'_>, Vec<&str>); 7]
    {
        assert_eq!(turn(&mut fixture, "u", with("go", entries)), expected, "{entries:?}");
    }
}

#[test]
fn steering_input_includes_its_context() {
    let mut fixture = Fixture::new();
    start(&mut fixture, "u1", with("one", &[("a", "1", Untrusted)]));
    fixture.model(added(message("m", "")));
    let nothing = UserText { shown: vec![], content: vec![], ..with("", &[("a", "9", Untrusted)]) };
    assert_eq!(fixture.on(Input::Steer(nothing)), Err(Refusal::EmptyInput));
    let entries: Entries<'_> = &[("a", "1", Untrusted), ("b", "2", Application)];
    fixture.put(Input::Steer(with("two", entries)));
    fixture.model(done(message("m", "ok"))).model(completed(10)).captured();
    let prompt = fixture.prompt();
    assert_eq!(prompt[prompt.len() - 2..], ["developer: <b>2</b>", "user: two"]);
}

#[test]
fn a_long_value_is_cut_in_its_middle_before_it_is_wrapped() {
    let mut fixture = Fixture::new();
    let long = "x".repeat(10_000);
    let lines = turn(&mut fixture, "u1", with("hi", &[("k", &long, Untrusted)]));
    let line = &lines[2];
    assert!(line.starts_with("user: <external_k>xxx") && line.ends_with("xxx</external_k>"), "{line}");
    assert!(line.contains("tokens truncated") && line.len() < 4_100, "{}", line.len());
}

#[test]
fn context_that_compaction_removed_is_sent_again() {
    let mut fixture = Fixture::new();
    let entries: Entries<'_> = &[("a", "1", Untrusted)];
    turn(&mut fixture, "u1", with("one", entries));
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("c"), step });
    fixture.model(done(message("m", "the summary"))).model(completed(10));
    start(&mut fixture, "u2", with("two", entries));
    assert!(
        fixture.prompt().contains(&"user: <external_a>1</external_a>".to_owned()),
        "{:?}",
        fixture.prompt()
    );
}

#[test]
fn a_pasted_marker_stays_part_of_the_user_message() {
    for pasted in [
        "<turn_aborted>mine</turn_aborted>",
        "<external_k>mine</external_k>",
        "<environment_context>mine</environment_context>",
    ] {
        let mut fixture = Fixture::new();
        turn(&mut fixture, "u1", said(pasted));
        let step = Arc::new(fixture.step.clone());
        fixture.put(Input::Compact { turn_id: TurnId::new("c"), step });
        fixture.model(done(message("m", "the summary"))).model(completed(10));
        start(&mut fixture, "u2", said("go on"));
        assert!(fixture.prompt().contains(&format!("user: {pasted}")), "{:?}", fixture.prompt());
        // Providers do not get our ids.
        let sent = fixture.last_request.as_ref().expect("a request")["input"].to_string();
        assert!(!sent.contains("\"id\""), "{sent}");
    }
}

#[test]
fn a_skill_text_follows_the_message_that_mentions_it() {
    let mut fixture = Fixture::new();
    let skill = SkillText { name: "greet".into(), path: "/s/SKILL.md".into(), text: "Wave.".into() };
    let text = UserText { skills: vec![skill], ..said("$greet bob") };
    let lines = turn(&mut fixture, "u1", text);
    assert_eq!(lines[2..], ["user: $greet bob", "user: <skill>"]);
    let body = fixture.last_request.as_ref().expect("a request")["input"].to_string();
    assert!(
        body.contains("<skill>\\n<name>greet</name>\\n<path>/s/SKILL.md</path>\\nWave.\\n</skill>"),
        "{body}"
    );
}

fn skill(name: &str) -> SkillLine {
    SkillLine { name: name.into(), description: format!("does {name}"), path: format!("/{name}/SKILL.md") }
}

fn plugin(name: &str) -> PluginLine {
    PluginLine { name: name.into(), description: "<skill>Dates</skill>\nand times".into() }
}

#[test]
fn plugins_are_listed_and_a_mentioned_one_is_described() {
    let mut fixture = Fixture::new();
    fixture.step.plugins = Arc::new([plugin("cal")]);
    let asked = PluginText {
        name: "cal".into(),
        has_skills: true,
        servers: vec!["dates".into()],
        apps: vec!["a`</plugin>".into()],
    };
    turn(&mut fixture, "u1", UserText { plugins: vec![asked], ..said("[@cal](plugin://cal@m) when?") });
    let sent = fixture.last_request.as_ref().expect("a request")["input"].to_string();
    // A description cannot contain a fragment.
    assert!(sent.contains("- cal: &lt;skill>Dates&lt;/skill> and times\\n"), "{sent}");
    let hint = "Its skills begin with `cal:`. Its MCP servers: `dates`. Its apps: ";
    assert!(sent.contains(hint) && sent.matches("</plugin>").count() == 1, "{sent}");
}

/// A step with content for every fragment.
fn rich() -> Step {
    Step {
        developer_instructions: Some("Be kind.".into()),
        memories: Some("1 uses make".into()),
        project_instructions: Some("Use tabs.".into()),
        personality: Some(Personality::Friendly),
        skills: Arc::new([skill("greet")]),
        plugins: Arc::new([plugin("cal")]),
        subagents: Arc::new([child("a1")]),
        ..crate::support::step()
    }
}

fn child(id: &str) -> SubagentLine {
    SubagentLine { id: id.into(), nickname: Some("Ada".into()) }
}

#[test]
fn every_fragment_has_its_position_and_name() {
    let told = describe(None, &rich());
    let names: Vec<_> = told.iter().map(|fragment| (fragment.role, fragment.name)).collect();
    assert_eq!(
        names,
        [
            ("developer", "permissions"),
            ("developer", "developer instructions"),
            ("developer", "memories"),
            ("developer", "personality"),
            ("developer", "skills"),
            ("developer", "plugins"),
            ("developer", "sub-agents"),
            ("user", "AGENTS.md"),
            ("user", "environment"),
        ]
    );
    // The items in the history have the same names.
    let mut fixture = Fixture::new();
    fixture.step = rich();
    turn(&mut fixture, "u1", with("hi", &[("k", "v", Untrusted)]));
    let history: Vec<Arc<ResponseItem>> = fixture.thread.history().to_vec();
    let found: Vec<_> = history.iter().flat_map(|item| fragments_of(item)).map(|found| found.name).collect();
    let mut expected: Vec<_> = names.iter().map(|(_, name)| *name).collect();
    expected[1] = "developer text";
    expected[2] = "developer text";
    expected.push("additional context");
    assert_eq!(found, expected);
}

fn mode(mode: ModeKind, instructions: Option<&str>) -> Option<CollaborationMode> {
    let developer_instructions = instructions.map(str::to_owned);
    let settings = Settings { model: "test-model".into(), reasoning_effort: None, developer_instructions };
    Some(CollaborationMode { mode, settings })
}

#[test]
fn each_change_is_sent_by_its_own_fragment() {
    type Change = fn(&mut Step);
    let cases: &[(Change, &[&str])] = &[
        (|_| {}, &[]),
        (|step| step.model.slug = "other".into(), &["model switch"]),
        (|step| step.sandbox = SandboxPolicy::DangerFullAccess, &["permissions"]),
        (|step| step.tools.push(asking_tool()), &["permissions"]),
        // No approval can be requested, so the prefixes do not matter.
        (|step| step.approved_prefixes = prefixes(&["ls"]), &[]),
        (|step| step.personality = Some(Personality::Pragmatic), &["personality"]),
        (|step| step.skills = Arc::new([skill("other")]), &["skills"]),
        (|step| step.skills = Arc::new([]), &["skills"]),
        (|step| step.plugins = Arc::new([plugin("other")]), &["plugins"]),
        (|step| step.plugins = Arc::new([]), &["plugins"]),
        // Memories are sent once, at the start of a thread.
        (|step| step.memories = Some("1 uses just".into()), &[]),
        // The tools that open and close agents already report it.
        (|step| step.subagents = Arc::new([]), &[]),
        (|step| step.subagents = Arc::new([child("a1"), child("a2")]), &[]),
        (|step| step.project_instructions = Some("Use spaces.".into()), &["AGENTS.md"]),
        (|step| step.project_instructions = None, &["AGENTS.md"]),
        (|step| step.cwd = "/other".into(), &["environment"]),
        (|step| step.environments = Arc::new([]), &["environment"]),
        (|step| step.current_date = "2030-01-01".into(), &["environment"]),
        (|step| step.collaboration_mode = mode(ModeKind::Plan, None), &["collaboration mode"]),
        // Otherwise the other mode's instructions would stay in force.
        (|step| step.collaboration_mode = mode(ModeKind::Default, None), &["collaboration mode"]),
        (|step| step.collaboration_mode = mode(ModeKind::Default, Some("")), &[]),
        // The other model's instructions include the personality.
        (
            |step| {
                step.model.slug = "other".into();
                step.personality = Some(Personality::Pragmatic);
            },
            &["model switch"],
        ),
    ];
    for (number, (change, expected)) in cases.iter().enumerate() {
        let mut fixture = Fixture::new();
        fixture.step = rich();
        start(&mut fixture, "u1", said("hi"));
        fixture.model(done(call("c", "update_plan", "{}"))).model(completed(5));
        let outcome = oarlock_engine::ToolOutcome::text("ok");
        fixture.put(Input::ToolFinished { call_id: "c".into(), outcome });
        let before = fixture.thread.history().len();
        change(&mut fixture.step);
        // Within the turn, as a difference and without a new turn.
        fixture.captured();
        let told = &fixture.thread.history()[before..];
        let names: Vec<_> = told.iter().flat_map(|item| fragments_of(item)).map(|told| told.name).collect();
        assert_eq!(&names, expected, "case {number}");
        assert_eq!(fixture.take().iter().filter(|line| *line == "turn/started").count(), 1);
    }
}

#[test]
fn open_agents_are_listed_at_the_start_and_after_a_compaction() {
    let mut fixture = Fixture::new();
    fixture.step.subagents = Arc::new([child("a1"), SubagentLine { id: "a2".into(), nickname: None }]);
    let roster = |lines: &str| format!("<subagents>\n{lines}</subagents>");
    let told = |fixture: &Fixture| -> Vec<String> {
        let history = fixture.thread.history().iter();
        let fragments = history.flat_map(|item| fragments_of(item));
        fragments.filter(|told| told.name == "sub-agents").map(|told| told.text).collect()
    };
    turn(&mut fixture, "u1", said("hi"));
    assert_eq!(told(&fixture), [roster("- a1: Ada\n- a2\n")]);
    fixture.step.subagents = Arc::new([child("a3")]);
    turn(&mut fixture, "u2", said("go"));
    assert_eq!(told(&fixture), [roster("- a1: Ada\n- a2\n")]);
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("c"), step });
    fixture.model(done(message("m", "sum"))).model(completed(5));
    turn(&mut fixture, "u3", said("go on"));
    assert_eq!(told(&fixture), [roster("- a3: Ada\n")]);
    fixture.step.subagents = Arc::new([]);
    assert!(describe(None, &fixture.step).iter().all(|told| told.name != "sub-agents"));
}

fn asking_tool() -> ToolSpec {
    let ToolSpec { json, .. } = crate::support::step().tools.remove(0);
    let (name, kind) = ("request_permissions".to_owned(), ToolKind::Builtin);
    ToolSpec {
        name,
        namespace: None,
        kind,
        json,
        parallel: false,
        gate: Gate::Open,
        effects: Default::default(),
    }
}

/// Prefixes from space-separated words, some of which are `one|other`.
fn prefixes(lines: &[&str]) -> Arc<[Vec<Vec<String>>]> {
    let place = |words: &str| words.split('|').map(str::to_owned).collect();
    lines.iter().map(|line| line.split(' ').map(place).collect()).collect()
}

/// The permissions text sent to the model.
fn permissions(change: impl FnOnce(&mut Step)) -> String {
    let mut step = crate::support::step();
    change(&mut step);
    describe(None, &step).into_iter().find(|told| told.name == "permissions").expect("always there").text
}

fn on_request(lines: &[&str]) -> impl Fn(&mut Step) {
    let approved = prefixes(lines);
    move |step| {
        step.approval_policy = AskForApproval::OnRequest;
        step.approved_prefixes = approved.clone();
    }
}

#[test]
fn approved_prefixes_are_listed_shortest_first() {
    let lines = ["npm run|test", "git show --stat", "ls", "cargo", "git show", "ls"];
    let text = permissions(on_request(&lines));
    let listed: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert_eq!(
        listed,
        [
            r#"["ls"]"#,
            r#"["cargo"]"#,
            r#"["git", "show"]"#,
            r#"["npm", ["run", "test"]]"#,
            r#"["git", "show", "--stat"]"#
        ]
    );
    assert!(!text.contains("not listed"), "{text}");
    assert!(!permissions(on_request(&[])).contains("Rules already approve"));
    assert!(!permissions(|step| step.approved_prefixes = prefixes(&lines)).contains("Rules already approve"));
}

#[test]
fn a_long_list_of_approved_prefixes_is_cut_and_says_so() {
    let many: Vec<_> = (0..130).map(|number| format!("tool-{number:03}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let text = permissions(on_request(&many));
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 100);
    assert!(text.contains("\n[… 30 more are not listed …]\n"), "{text}");
    let wide: Vec<_> = (0..30).map(|number| format!("{number:02}-{}", "ä".repeat(400))).collect();
    let wide: Vec<_> = wide.iter().map(String::as_str).collect();
    let text = permissions(on_request(&wide));
    let chars: usize =
        text.lines().filter(|line| line.starts_with("- ")).map(|line| line.chars().count() + 1).sum();
    assert!((4_500..=5_000).contains(&chars), "{chars}");
    assert!(text.contains(" more are not listed …]"), "{text}");
}

#[test]
fn a_granular_policy_names_what_reaches_the_user() {
    let granular = |request_permissions| AskForApproval::Granular {
        sandbox_approval: true,
        rules: false,
        skill_approval: false,
        request_permissions,
        mcp_elicitations: true,
    };
    let text = permissions(|step| step.approval_policy = granular(false));
    let (asked, refused) = text.split_once("Refused without asking:").expect("both");
    for (kind, is_asked) in [
        ("`sandbox_approval`", true),
        ("`mcp_elicitations`", true),
        ("`rules`", false),
        ("`skill_approval`", false),
        ("`request_permissions`", false),
    ] {
        assert_eq!((asked.contains(kind), refused.contains(kind)), (is_asked, !is_asked), "{kind}: {text}");
    }
    let with_tool = |policy| {
        permissions(|step| {
            step.approval_policy = policy;
            step.tools.push(asking_tool());
        })
    };
    assert!(with_tool(granular(false)).contains("grants nothing"));
    assert!(with_tool(AskForApproval::Never).contains("grants nothing"));
    assert!(with_tool(granular(true)).contains("asks the user for the network"));
    assert!(with_tool(AskForApproval::OnRequest).contains("asks the user for the network"));
    assert!(!permissions(on_request(&[])).contains("`request_permissions`"));
}

#[test]
fn a_changed_list_is_sent_again() {
    let mut fixture = Fixture::new();
    on_request(&["ls"])(&mut fixture.step);
    turn(&mut fixture, "u1", said("hi"));
    assert_eq!(turn(&mut fixture, "u2", said("go")), ["user: go"]);
    on_request(&["ls", "make check"])(&mut fixture.step);
    let lines = turn(&mut fixture, "u3", said("go"));
    assert_eq!(lines, ["developer: <permissions instructions>", "user: go"]);
}

fn environment(id: &str, state: EnvironmentState) -> StepEnvironment {
    let argv = vec!["ssh".to_owned(), id.to_owned()].into();
    StepEnvironment {
        id: EnvironmentId::new(id),
        cwd: format!("/{id}"),
        reach: Reach::Command { argv },
        state,
        is_chosen: true,
    }
}

#[test]
fn the_folder_is_that_of_the_first_environment_that_counts() {
    use EnvironmentState::{Attached, Disconnected, Starting};
    for (states, cwd, primary) in [
        (&[("a", Attached), ("b", Attached)] as &[_], "/a", Some("a")),
        (&[("a", Starting), ("b", Attached)], "/b", Some("b")),
        (&[("a", Disconnected), ("b", Starting)], "/b", None),
        (&[("a", Disconnected)], "/thread", None),
        (&[], "/thread", None),
    ] {
        let environments: Arc<[_]> = states.iter().map(|(id, state)| environment(id, *state)).collect();
        assert_eq!(effective_cwd(&environments, "/thread"), cwd, "{states:?}");
        let step = Step { environments, ..crate::support::step() };
        assert_eq!(step.primary().map(|found| found.id.as_str()), primary, "{states:?}");
    }
}

#[test]
fn chosen_environments_are_listed_with_their_state() {
    let environments: Arc<[_]> = Arc::new([
        environment("a", EnvironmentState::Attached),
        environment("b", EnvironmentState::Starting),
    ]);
    let step = Step { cwd: effective_cwd(&environments, "/"), environments, ..crate::support::step() };
    let told = describe(None, &step).pop().expect("a fragment").text;
    assert!(told.contains("<cwd>/a</cwd>"), "{told}");
    assert!(told.contains("<environment id=\"a\" status=\"attached\">/a</environment>"), "{told}");
    assert!(told.contains("<environment id=\"b\" status=\"starting\">/b</environment>"), "{told}");
    let nowhere = Step { environments: Arc::new([]), ..crate::support::step() };
    assert!(describe(None, &nowhere).pop().expect("a fragment").text.contains("<environments>none"));
}

/// Files that may create messages with the developer's or user's role; crates of tests and offline models are not
/// checked.
const MAKERS: &[&str] = &[
    "engine/src/context/",
    // Tests whether a provider answers; the message is in no thread.
    "cli/src/doctor/online_check.rs",
    // Reads user messages from another program's files.
    "journal/src/reference/convert.rs",
];

#[test]
fn no_other_code_makes_context_messages() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for name in ["engine", "runtime", "server", "tools", "journal", "cli", "core-api"] {
        for path in sources(&crates.join(name).join("src")) {
            let shown = path.strip_prefix(&crates).expect("beneath").display().to_string();
            let text = fs::read_to_string(&path).expect("a source file");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let makes = code.contains("ResponseItem::Message {") && code.contains("role: \"")
                || code.contains("\"developer\".to_owned()")
                || code.contains("\"developer\".into()");
            if makes && !MAKERS.iter().any(|maker| shown.starts_with(maker)) && !shown.contains("tests") {
                found.insert(shown, ());
            }
        }
    }
    assert!(found.is_empty(), "made outside of the fragments: {found:?}");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return all };
    for entry in entries.map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            all.extend(sources(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            all.push(entry);
        }
    }
    all
}
