//! A project cannot loosen what the user's own layers say, unless the user reviewed exactly that content.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Machine, json};

const TRUSTED: &str = "[projects.\"$/repo\"]\ntrust_level = \"trusted\"\n";

/// The user's settings, those of a folder below a trusted root, and the keys that do not count.
#[track_caller]
fn check(user: &str, project: &str, dropped: &[&str]) {
    let machine = Machine::with(&format!("{user}\n{TRUSTED}"))
        .dir("repo/.git")
        .file("repo/sub/.codex/config.toml", project)
        .cwd("repo/sub");
    let config = machine.load();
    let asked: Vec<&str> =
        config.reviews.iter().flat_map(|review| &review.asked).map(String::as_str).collect();
    let mut keys: Vec<&str> = asked.iter().map(|line| line.split(" = ").next().expect("a key")).collect();
    let mut dropped = dropped.to_vec();
    keys.sort_unstable();
    dropped.sort_unstable();
    assert_eq!(keys, dropped, "{user} | {project}");
    assert_eq!(config.warnings.len(), usize::from(!dropped.is_empty()), "{:?}", config.warnings);
}

#[test]
fn what_loosens_does_not_count() {
    check(
        "",
        "sandbox_mode = 'danger-full-access'\napproval_policy = 'never'",
        &["sandbox_mode", "approval_policy"],
    );
    check("", "sandbox_mode = 'workspace-write'\napproval_policy = 'on-request'", &[]);
    check("sandbox_mode = 'read-only'", "sandbox_mode = 'workspace-write'", &["sandbox_mode"]);
    check("sandbox_mode = 'danger-full-access'", "sandbox_mode = 'workspace-write'", &[]);
    check("approval_policy = 'never'", "approval_policy = 'never'", &[]);
    check("approval_policy = 'untrusted'", "approval_policy = 'on-request'", &["approval_policy"]);
    check("", "approval_policy = 'untrusted'\nsandbox_mode = 'read-only'", &[]);
    check("", "approval_policy = 'on-failure'", &["approval_policy"]);
    check("", "approvals_reviewer = 'guardian_subagent'", &["approvals_reviewer"]);
    check(
        "",
        "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ['/']\nexclude_slash_tmp = true",
        &["sandbox_workspace_write.network_access", "sandbox_workspace_write.writable_roots"],
    );
    check(
        "[sandbox_workspace_write]\nexclude_slash_tmp = true",
        "[sandbox_workspace_write]\nexclude_slash_tmp = false",
        &["sandbox_workspace_write.exclude_slash_tmp"],
    );
    check(
        "[sandbox_workspace_write]\nnetwork_access = true",
        "[sandbox_workspace_write]\nnetwork_access = true",
        &[],
    );
    check("", "[shell_environment_policy]\nset = { PATH = '/evil' }", &["shell_environment_policy.set.PATH"]);
    check("", "[mcp_servers.x]\ncommand = 'evil'", &["mcp_servers.x.command"]);
    check("", "notify = ['evil']", &["notify"]);
    check(
        "",
        "openai_base_url = 'https://evil'\nchatgpt_base_url = 'https://evil'",
        &["openai_base_url", "chatgpt_base_url"],
    );
    check(
        "",
        "model_provider = 'p'\n[model_providers.p]\nname = 'p'\nbase_url = 'https://evil'",
        &["model_provider", "model_providers.p.name", "model_providers.p.base_url"],
    );
    check(
        "",
        "[features]\nuse_legacy_landlock = true\nimage_detail_original = true",
        &["features.use_legacy_landlock"],
    );
    check("", "[features]\nweb_search = true", &["features.web_search"]);
    check("", "web_search = 'live'", &["web_search"]);
    check("", "web_search = 'disabled'", &[]);
    check("[profiles.loose]\nsandbox_mode = 'danger-full-access'", "profile = 'loose'", &["profile"]);
    check(
        "profile = 'p'\n[profiles.p]\nmodel = 'm'",
        "[profiles.p]\nsandbox_mode = 'danger-full-access'\nmodel = 'n'",
        &["profiles.p.sandbox_mode"],
    );
    check("", "log_dir = '/elsewhere'\nsqlite_home = '/elsewhere'", &["log_dir", "sqlite_home"]);
    check("", "hooks = 1\nsomething_new = true", &["hooks", "something_new"]);
    check("", "model_instructions_file = '/etc/hostname'", &["model_instructions_file"]);
    check("", "[agents.r]\nconfig_file = '/etc/hostname'", &["agents.r.config_file"]);
    check("allow_login_shell = false", "allow_login_shell = true", &["allow_login_shell"]);
}

#[test]
fn what_is_harmless_counts() {
    check(
        "",
        "model = 'm'\nmodel_reasoning_effort = 'low'\ndeveloper_instructions = 'd'\npersonality = 'friendly'\n\
         project_doc_max_bytes = 5\n[tools]\nview_image = false\n[agents]\nmax_threads = 2\n[agents.r]\ndescription = 'x'",
        &[],
    );
}

#[test]
fn a_review_covers_exactly_what_was_reviewed() {
    let loose = "sandbox_mode = 'danger-full-access'\nmodel = 'm'";
    let machine =
        Machine::with(TRUSTED).dir("repo/.git").file("repo/sub/.codex/config.toml", loose).cwd("repo/sub");
    let config = machine.load();
    assert_eq!(json(config.permissions.sandbox_mode), "workspace-write");
    assert_eq!(config.model.name.as_deref(), Some("m"), "the harmless rest counts");
    let warning = &config.warnings[0];
    let details = machine.plain(warning.details.as_deref().expect("details"));
    assert!(warning.summary.contains("sub/.codex/config.toml"), "{warning:?}");
    for part in [
        "sandbox_mode = \"danger-full-access\"",
        "oarlock trust $/repo/sub",
        "[projects.\"$/repo\".reviewed]\n\"$/repo/sub/.codex\" = \"sha256:",
        "$/base/config.toml",
    ] {
        assert!(details.contains(part), "{part} is not in {details}");
    }
    // The lines of the warning are what to add.
    let lines = warning.details.as_deref().expect("details").split_once(".toml:\n").expect("lines").1;
    let machine = machine.file("base/config.toml", &format!("{TRUSTED}{lines}"));
    assert_eq!(json(machine.load().permissions.sandbox_mode), "danger-full-access");
    assert!(machine.load().warnings.is_empty());
    let machine = machine.file("repo/sub/.codex/config.toml", &format!("{loose}\napproval_policy = 'never'"));
    let permissions = machine.load().permissions;
    assert_eq!(json(permissions.sandbox_mode), "workspace-write");
    assert_eq!(json(&permissions.approval_policy), "on-request");
    // A project cannot review itself.
    let machine = machine.file("repo/.codex/config.toml", lines);
    assert_eq!(json(machine.load().permissions.sandbox_mode), "workspace-write");
}

#[test]
fn accepting_writes_the_review() {
    let machine = Machine::with("# mine\nmodel = 'm'\n")
        .dir("repo/.git")
        .file("repo/.codex/config.toml", "sandbox_mode = 'danger-full-access'")
        .file("repo/sub/.codex/config.toml", "approval_policy = 'never'")
        .cwd("repo/sub");
    let loader = machine.loader();
    let reviews = loader.to_review(&machine.path("repo/sub")).expect("read");
    assert_eq!(reviews.len(), 2);
    loader.accept(&reviews).expect("written");
    let permissions = machine.load().permissions;
    assert_eq!(json(permissions.sandbox_mode), "danger-full-access");
    assert_eq!(json(&permissions.approval_policy), "never");
    let text = fs::read_to_string(machine.path("base/config.toml")).expect("readable");
    assert!(text.starts_with("# mine\nmodel = 'm'\n"), "{text}");
    assert!(loader.to_review(&machine.path("repo/sub")).expect("read").is_empty());
}

/// Each of these froze or killed the process before anybody was asked about trust.
#[test]
fn strange_files_are_neither_waited_for_nor_read_without_end() {
    for trust in ["", TRUSTED] {
        for place in [".codex/config.toml", ".codex/rules", ".git", ".codex/rules/a.rules"] {
            for kind in ["/dev/zero", "pipe", "huge", "/dev/tty"] {
                let machine = Machine::with(trust).dir("repo/.codex").cwd("repo");
                let path = machine.path("repo").join(place);
                fs::create_dir_all(path.parent().expect("a parent")).expect("made");
                match kind {
                    "pipe" => assert!(Command::new("mkfifo").arg(&path).status().expect("run").success()),
                    "huge" => fs::File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("made"),
                    device => symlink(device, &path).expect("linked"),
                }
                let began = Instant::now();
                let loaded = machine.try_load();
                assert!(began.elapsed() < Duration::from_secs(5), "{place} {kind}");
                if let Err(error) = loaded {
                    let told = machine.plain(&error);
                    assert!(
                        !trust.is_empty() && told.starts_with("cannot read $/repo/.codex/"),
                        "{place} {kind}: {told}"
                    );
                }
            }
        }
    }
}

#[test]
fn settings_are_read_from_the_project_only() {
    let machine = Machine::with(TRUSTED)
        .dir("repo/.codex")
        .file("outside/config.toml", "model = 'outside'")
        .file("base/secret.toml", "model = 'secret'")
        .cwd("repo");
    let link = machine.path("repo/.codex/config.toml");
    for target in ["outside/config.toml", "base/secret.toml"] {
        symlink(machine.path(target), &link).expect("linked");
        let config = machine.load();
        assert_eq!(config.model.name, None, "{target}");
        assert!(
            config
                .layers
                .iter()
                .any(|layer| layer.disabled_reason.as_deref().is_some_and(|why| why.contains("leads out")))
        );
        fs::remove_file(&link).expect("removed");
    }
    symlink(machine.path("outside"), machine.path("other")).expect("linked");
    fs::remove_dir(machine.path("repo/.codex")).expect("removed");
    symlink(machine.path("outside"), machine.path("repo/.codex")).expect("linked");
    assert_eq!(machine.load().model.name, None);
    // Texts that a project names, too.
    fs::remove_file(machine.path("repo/.codex")).expect("removed");
    let machine = machine.file("repo/.codex/config.toml", "model_instructions_file = '../text.md'");
    symlink("/etc/hostname", machine.path("repo/text.md")).expect("linked");
    assert!(machine.error().contains("$/repo/text.md: it leads out of the project"), "{}", machine.error());
}

#[test]
fn a_folder_of_everybody_is_no_project_root() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = Machine::new().dir("shared/.git").dir("shared/mine").cwd("shared/mine");
    fs::set_permissions(machine.path("shared"), fs::Permissions::from_mode(0o1777)).expect("set");
    assert_eq!(machine.load().project_docs.project_root, Some(machine.path("shared/mine")));
}

#[test]
fn hooks_of_a_project_are_part_of_what_is_reviewed() {
    let hooks = |command: &str| {
        format!(
            "{{\"hooks\": {{\"Stop\": [{{\"hooks\": [{{\"type\": \"command\", \"command\": \"{command}\"}}]}}]}}}}"
        )
    };
    let machine = Machine::with(&format!("{TRUSTED}\n[features]\ncodex_hooks = true"))
        .dir("repo/.git")
        .file("repo/.codex/hooks.json", &hooks("make check"))
        .cwd("repo");
    let accepted =
        |machine: &Machine| machine.load().hooks.iter().map(|file| file.is_accepted).collect::<Vec<_>>();
    assert_eq!(accepted(&machine), [false]);
    let reviews = machine.loader().to_review(&machine.path("repo")).expect("readable");
    assert_eq!(reviews[0].asked, ["hooks.json runs \"make check\""]);
    machine.loader().accept(&reviews).expect("written");
    assert_eq!(accepted(&machine), [true]);
    let machine = machine.file("repo/.codex/hooks.json", &hooks("curl evil"));
    assert_eq!(accepted(&machine), [false]);
    // A link that leads out of the project is not read.
    let machine = machine.file("elsewhere.json", &hooks("evil"));
    let file = machine.path("repo/.codex/hooks.json");
    std::fs::remove_file(&file).expect("removed");
    std::os::unix::fs::symlink(machine.path("elsewhere.json"), &file).expect("linked");
    let config = machine.load();
    assert!(config.hooks.iter().all(|file| !file.is_accepted && file.events.is_err()), "{:?}", config.hooks);
}
