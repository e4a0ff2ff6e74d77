//! Keys that do nothing, as people read of them.

use crate::support::Machine;

#[track_caller]
fn told(machine: &Machine, expected: &[&str]) {
    let config = machine.load();
    // Settings that need a review have a warning of their own.
    let doubts = config.warnings.iter().filter(|warning| !warning.summary.contains("asks for more than"));
    let told = doubts.map(|warning| {
        let place = warning.details.as_deref().unwrap_or_default();
        machine.plain(format!("{} ({place})", warning.summary))
    });
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn misspelt_keys_are_told_with_their_place_and_the_near_one() {
    let text = "model = 'm'\nsandbox_mod = 'read-only'\nzebra = 1\n\n[profiles.a]\nmodl = 'x'\n\n\
                [tools]\nview_imag = true\n";
    told(
        &Machine::with(text),
        &[
            "`profiles.a.modl` is not a known key; did you mean `model`? ($/base/config.toml:6:1)",
            "`sandbox_mod` is not a known key; did you mean `sandbox_mode`? ($/base/config.toml:2:1)",
            "`tools.view_imag` is not a known key; did you mean `view_image`? ($/base/config.toml:9:1)",
            "`zebra` is not a known key ($/base/config.toml:3:1)",
        ],
    );
}

#[test]
fn the_host_and_tables_in_lists_are_looked_at_too() {
    let text = "[host]\ntokns = 'x'\n[host.budget.day]\neuros = 1\n[[skills.config]]\nname = 'a'\n\
                [[skills.config]]\nname = 'b'\nenabeld = true\n";
    told(
        &Machine::with(text),
        &[
            "`host.budget.day.euros` is not a known key ($/base/config.toml:4:1)",
            "`host.tokns` is not a known key; did you mean `tokens`? ($/base/config.toml:2:1)",
            "`skills.config.enabeld` is not a known key; did you mean `enabled`? ($/base/config.toml:9:1)",
        ],
    );
}

#[test]
fn every_layer_and_every_flag_is_looked_at() {
    let machine = Machine::new()
        .file("etc/config.toml", "[feedback]\nenable = true\n")
        .file("base/config.toml", "[projects.\"$/project\"]\ntrust_level = 'trusted'\n")
        .file("project/.codex/config.toml", "project_doc_max_byte = 3\n")
        .dir("project/.git")
        .cwd("project")
        .flag("features.undoo=true");
    told(
        &machine,
        &[
            "`project_doc_max_byte` is not a known key; did you mean `project_doc_max_bytes`? \
             ($/project/.codex/config.toml)",
            "`feedback.enable` is not a known key; did you mean `enabled`? ($/etc/config.toml:2:1)",
            "`features.undoo` is not a known key; did you mean `undo`? (-c, or the settings of a request)",
        ],
    );
}

#[test]
fn what_is_off_or_not_there_is_told() {
    let text =
        "[memories]\nuse_memories = true\n[tui]\ntheme = 'x'\n[otel]\n[features]\nsearch_tool = true\n";
    told(
        &Machine::with(text),
        &[
            "`features.search_tool` has no effect: there is no such switch any more ($/base/config.toml:7:1)",
            "`memories` has no effect while the feature `memories` is off; `--enable memories` switches it on \
             ($/base/config.toml:1:2)",
            "`otel`, `tui` have no effect: there is nothing of that kind in this program ($/base/config.toml:5:2)",
        ],
    );
    let idle = "show_raw_agent_reasoning = true\n[history]\nmax_bytes = 1\n[profiles.p]\nzsh_path = 'z'\n[features]\n\
                prevent_idle_sleep = true\nenable_request_compression = true\ntool_call_mcp_elicitation = false\n";
    let nothing = "has no effect: there is nothing of that kind in this program";
    told(
        &Machine::with(idle),
        &[
            "`history`, `show_raw_agent_reasoning`, `profiles.p.zsh_path` have no effect: there is nothing of that kind \
             in this program ($/base/config.toml:2:2)",
            &format!("`features.prevent_idle_sleep` {nothing} ($/base/config.toml:7:1)"),
            &format!("`features.tool_call_mcp_elicitation` {nothing} ($/base/config.toml:9:1)"),
        ],
    );
    let on = Machine::with("[memories]\nuse_memories = true\n").flag("features.memories=true");
    told(&on, &[]);
}

#[test]
fn our_own_tables_and_open_ones_are_fine() {
    let text = "strict_config = true\n[placements.box]\nbackend = 'docker'\nimage = 'i'\n[host]\nmax_running = 2\n\
                [prices.m]\ninput = 1.0\noutput = 2.0\n[sandbox]\ndeny_read = []\n\
                [agents.helper]\ndescription = 'd'\n[shell_environment_policy.set]\nANY = 'x'\n\
                [mcp_servers.s]\ncommand = 'c'\n[mcp_servers.s.tools.t]\napproval_mode = 'auto'\n\
                [skills.bundled]\nenabled = true\n[[skills.config]]\nname = 'x'\nenabled = false\n[profiles.p.features]\nundo = true\n";
    told(&Machine::with(text), &[]);
}

#[test]
fn strict_configurations_refuse_them_all() {
    let machine = Machine::with("sandbox_mod = 'x'\n[tui]\n").flag("strict_config=true");
    assert_eq!(
        machine.error(),
        "`sandbox_mod` is not a known key; did you mean `sandbox_mode`? ($/base/config.toml:1:1); `tui` has no effect: \
         there is nothing of that kind in this program ($/base/config.toml:2:2); strict_config is set"
    );
}

#[test]
fn placements_show_in_what_clients_read() {
    let machine = Machine::with("[placements.box]\nbackend = 'ssh'\nhost = 'h'\ntoken = 'secret'\n");
    let read = machine.load().read_response(true).expect("a configuration");
    let shown = crate::support::json(&read);
    assert_eq!(shown["config"]["placements"]["box"]["host"], "h");
    assert_eq!(shown["layers"][0]["config"]["placements"]["box"]["backend"], "ssh");
    assert!(!shown.to_string().contains("secret"), "{shown}");
}

#[test]
fn unknown_names_come_with_near_ones() {
    let profile = Machine::with("[profiles.quick]\n[profiles.slow]\n").profile("quik");
    assert_eq!(
        profile.error(),
        "config profile `quik` not found; did you mean `quick`? Otherwise add a [profiles.quik] table or choose \
         another profile"
    );
    let provider = Machine::with("model_provider = 'opnai'\n").error();
    assert!(
        provider.contains("model provider `opnai` not found; did you mean `openai`? Otherwise add"),
        "{provider}"
    );
}

#[test]
fn single_keys_can_be_asked_about() {
    let problem = |key: &str| oarlock_config::key_problem(key).unwrap_or_default();
    assert_eq!(problem("modl"), "`modl` is not a known key; did you mean `model`?");
    assert_eq!(
        problem("tools.view_imag"),
        "`tools.view_imag` is not a known key; did you mean `tools.view_image`?"
    );
    assert_eq!(problem("profiles.a.zebra"), "`profiles.a.zebra` is not a known key");
    for known in
        ["model", "features.undo", "model_providers.x.base_url", "mcp_servers.a.env.ANY", "profiles.a.model"]
    {
        assert_eq!(problem(known), "", "{known}");
    }
}
