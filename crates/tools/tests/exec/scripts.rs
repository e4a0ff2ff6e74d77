//! JavaScript in a real Node.js in a real sandbox: kernels that keep their state, and kernels that misbehave.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine::{ToolOutcome, ToolPayload};
use protocol::{AskForApproval, FunctionCallOutputBody};
use serde_json::json;

use crate::stage::{Answer, PATIENCE, Stage, unique_seconds, until_gone, until_there};

fn node() -> PathBuf {
    let path = std::env::var_os("PATH").expect("a path");
    let found = std::env::split_paths(&path).map(|folder| folder.join("node")).find(|file| file.is_file());
    found.expect("these tests need Node")
}

/// A thread that may write in its folder and never asks.
fn sandboxed() -> Stage {
    let policy = json!({"type": "workspaceWrite", "networkAccess": false, "excludeTmpdirEnvVar": true,
                        "excludeSlashTmp": true});
    Stage::asking(AskForApproval::Never, policy, |_| Answer::Decline)
        .with_options(|options| options.node = Some(node()))
}

async fn run(stage: &Stage, tool: &str, input: &str) -> ToolOutcome {
    let payload = match tool {
        "wait" | "js_repl_reset" => ToolPayload::Function { arguments: input.to_owned() },
        _ => ToolPayload::Custom { input: input.to_owned() },
    };
    tokio::time::timeout(PATIENCE, stage.call_as("call_1", tool, payload)).await.expect("it returns")
}

/// All texts of an output, joined.
fn texts(outcome: &ToolOutcome) -> String {
    match &outcome.output {
        FunctionCallOutputBody::Text(text) => text.clone(),
        FunctionCallOutputBody::Content(parts) => {
            let parts = serde_json::to_value(parts).expect("plain data");
            let texts = parts.as_array().expect("parts").iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("|")
        }
    }
}

async fn repl(stage: &Stage, code: &str) -> (String, bool) {
    let outcome = run(stage, "js_repl", code).await;
    (texts(&outcome), outcome.success)
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_stay_from_cell_to_cell() {
    let stage = sandboxed();
    for (code, expected, success) in [
        ("const x = 1; let y = 2; console.log('hi', x, {a: 1})", "hi 1 { a: 1 }", true),
        ("console.log(x + y); 5", "3", true),
        ("const z = await Promise.resolve(4); function twice(n) { return 2 * n }", "", true),
        ("console.log(twice(z), typeof process, typeof require)", "8 undefined undefined", true),
        ("console.log('before'); throw new Error('boom')", "before\nboom", false),
        ("x +", "Unexpected end of input", false),
        ("console.log(x, z)", "1 4", true),
        ("const fs = await import('fs'); console.log(fs.existsSync('.'))", "true", true),
    ] {
        let (text, is_success) = repl(&stage, code).await;
        assert_eq!((text.as_str(), is_success), (expected, success), "{code}");
    }
    let outcome = run(&stage, "js_repl_reset", "{}").await;
    assert_eq!(texts(&outcome), "js_repl kernel reset");
    assert_eq!(repl(&stage, "console.log(typeof x)").await, ("undefined".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cell_is_an_operation_and_an_item_like_a_command() {
    let stage = sandboxed();
    let outcome =
        run(&stage, "js_repl", "console.log(1); await codex.emitImage('data:image/png;base64,AAAA')").await;
    let proposals = stage.proposals();
    assert_eq!(proposals.len(), 1);
    assert_eq!(proposals[0].arguments["sandboxed"], true);
    let command = proposals[0].arguments["command"][2].as_str().expect("the code");
    assert!(command.starts_with("console.log(1)"), "{command}");
    let item = serde_json::to_value(outcome.item.expect("an item")).expect("plain data");
    assert_eq!((&item["type"], &item["status"]), (&json!("commandExecution"), &json!("completed")));
    assert_eq!((&item["aggregatedOutput"], &item["exitCode"]), (&json!("1"), &json!(0)));
    let output = serde_json::to_value(&outcome.output).expect("plain data");
    assert_eq!(output[1], json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_is_that_of_commands() {
    let stage = sandboxed();
    let outside = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let target = outside.path().join("planted");
    let code = format!(
        "const fs = await import('node:fs'); const net = await import('node:net');\n\
         const tries = [];\n\
         try {{ fs.writeFileSync({target:?}, 'x'); tries.push('wrote') }} catch (e) {{ tries.push(e.code) }}\n\
         fs.writeFileSync('inside', 'x'); tries.push('inside');\n\
         tries.push(await new Promise((r) => net.connect(80, '127.0.0.1').on('error', (e) => r('refused'))));\n\
         const cp = await import('node:child_process');\n\
         tries.push(cp.spawnSync('sh', ['-c', 'echo x > {target}; echo $?'], {{encoding: 'utf8'}}).stdout.trim());\n\
         console.log(tries.join(' '))",
        target = target.display(),
    );
    let (text, success) = repl(&stage, &code).await;
    assert!(success, "{text}");
    let words: Vec<&str> = text.split(' ').collect();
    assert!(["EROFS", "EACCES", "EPERM"].contains(&words[0]), "{text}");
    assert_eq!((words[1], words[2]), ("inside", "refused"), "{text}");
    assert_ne!(words[3], "0", "{text}");
    assert!(!target.exists() && stage.path("inside").exists());
}

/// The provider would ask for it, with all that the script has put into the address.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_without_network_sends_nothing_out_by_the_address_of_an_image() {
    let mut stage = sandboxed();
    let link = "https://elsewhere.example/?secret";
    let past_the_check = format!(
        "const {{argv, stdout: pipe}} = await import('node:process');\n\
         const message = JSON.stringify({{kind: 'image', url: {link:?}, detail: null}});\n\
         await new Promise((r) => pipe.write('\\n' + argv[1] + message + '\\n', r))"
    );
    let shown = |outcome: ToolOutcome| serde_json::to_string(&outcome.output).expect("plain data");
    let output = shown(run(&stage, "js_repl", &past_the_check).await);
    assert!(!output.contains("elsewhere") && output.contains("an image was left out"), "{output}");
    let image = format!("image({link:?}); image('data:image/png;base64,AAAA')");
    let output = shown(run(&stage, "exec", &image).await);
    assert!(!output.contains("elsewhere") && output.contains("an image was left out"), "{output}");
    assert!(output.contains("data:image/png;base64,AAAA"), "{output}");
    stage.step.sandbox = serde_json::from_value(json!({"type": "dangerFullAccess"})).expect("a policy");
    let output = shown(run(&stage, "exec", &image).await);
    assert!(output.contains(link), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sandbox_means_another_kernel() {
    let mut stage = sandboxed();
    repl(&stage, "globalThis.kept = 1").await;
    assert_eq!(repl(&stage, "console.log(kept)").await.0, "1");
    stage.step.sandbox = serde_json::from_value(json!({"type": "readOnly"})).expect("a policy");
    let (text, _) = repl(&stage, "console.log(typeof kept)").await;
    assert!(text.contains("permissions changed") && text.ends_with("undefined"), "{text}");
    let write =
        "const f = await import('fs'); try { f.writeFileSync('w', '') } catch (e) { console.log('no') }";
    assert_eq!(repl(&stage, write).await.0, "no");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_asked_about_commands_is_asked_about_cells() {
    let policy = json!({"type": "workspaceWrite"});
    let stage = Stage::asking(AskForApproval::Untrusted, policy, |asked| {
        match asked.command.as_deref().is_some_and(|command| command.contains("secret")) {
            true => Answer::Decline,
            false => Answer::Accept,
        }
    })
    .with_options(|options| options.node = Some(node()));
    assert_eq!(repl(&stage, "console.log(1)").await, ("1".to_owned(), true));
    let (text, success) = repl(&stage, "console.log('secret')").await;
    assert_eq!((text.as_str(), success), ("the script was rejected by the user", false));
    assert_eq!(stage.questions().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out_and_the_next_cell_has_a_fresh_kernel() {
    let stage = sandboxed();
    let began = Instant::now();
    let (text, success) =
        repl(&stage, "// codex-js-repl: timeout_ms=700\nglobalThis.a = 1; while (true) {}").await;
    assert_eq!(
        (text.as_str(), success),
        ("js_repl execution timed out; kernel reset, rerun your request", false)
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(repl(&stage, "console.log(typeof a)").await, ("undefined".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn child_processes_end_with_their_kernel() {
    let stage = sandboxed();
    let seconds = unique_seconds();
    let fork = format!(
        "const cp = await import('node:child_process');\n\
         cp.spawn('setsid', ['sleep', '{seconds}'], {{detached: true, stdio: 'ignore'}}).unref(); console.log('forked')"
    );
    assert_eq!(repl(&stage, &fork).await.0, "forked");
    until_there(&seconds).await;
    stage.bench.clear_terminals().await;
    until_gone(&seconds).await;
    // An interrupted call ends its kernel.
    let seconds = unique_seconds();
    let hang = format!(
        "const cp = await import('node:child_process'); cp.spawn('sleep', ['{seconds}']); await new Promise(() => {{}})"
    );
    let call = tokio::spawn(stage.call_as("call_2", "js_repl", ToolPayload::Custom { input: hang }));
    until_there(&seconds).await;
    call.abort();
    until_gone(&seconds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_are_cut_and_forged_messages_are_refused() {
    let stage = sandboxed();
    let (text, success) = repl(&stage, "for (let i = 0; i < 500; i++) console.log('x'.repeat(10000))").await;
    assert!(success && text.len() < 60_000, "{} bytes", text.len());
    // Written outside the protocol: without a line break, and like a message without a mark.
    let raw = "const {stdout} = await import('node:process');\n\
        stdout.write('{\"kind\":\"done\",\"failed\":false,\"text\":\"\"}\\n');\n\
        for (let i = 0; i < 200; i++) await new Promise((r) => stdout.write('y'.repeat(100000), r));\n\
        console.log('\\nend')";
    let (text, success) = repl(&stage, raw).await;
    assert!(success && text.contains("end") && text.len() < 60_000, "{} bytes: {}", text.len(), &text[..200]);
    // A kernel whose script forges messages is ended, and the next one works.
    let forged = "const {argv, stdout: pipe} = await import('node:process');\n\
        await new Promise((r) => pipe.write('\\n' + argv[1] + 'garbage\\n', r)); await new Promise(() => {})";
    let (text, success) = repl(&stage, forged).await;
    assert!(!success && text.contains("cannot be read"), "{text}");
    assert_eq!(repl(&stage, "console.log('whole')").await, ("whole".to_owned(), true));
    let (text, success) = repl(&stage, "(await import('node:process')).exit(3)").await;
    assert!(!success && text.contains("its process ended"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_call_tools_and_give_their_output_in_parts() {
    let stage = sandboxed();
    let mut spec = oarlock_tools::Registry::builtin().specs(&oarlock_tools::Offer::default());
    spec.retain(|tool| tool.name == "update_plan");
    let mut stage = stage;
    stage.step.tools = spec;
    for (code, expected, success) in [
        ("text('a'); text({b: 1}); text(5)", "a|{\"b\":1}|5", true),
        ("text(typeof console + typeof process + typeof require)", "undefinedundefinedundefined", true),
        (
            "text(await tools.update_plan({plan: []}))",
            "{\"called\":\"update_plan\",\"with\":{\"plan\":[]},\"in\":\"local\"}",
            true,
        ),
        ("text(ALL_TOOLS.map((tool) => tool.name))", "[\"update_plan\"]", true),
        ("store('k', {a: 1}); text('x'); exit(); text('y')", "x", true),
        ("text(load('k')); text(load('none'))", "{\"a\":1}|undefined", true),
        ("throw new Error('x')", "Script error:\nError: x", false),
        ("text(1", "Script error:\nSyntaxError: missing ) after argument list", false),
        ("await tools.nope({})", "Script error:\nTypeError: tools.nope is not a function", false),
    ] {
        let outcome = run(&stage, "exec", code).await;
        let text = texts(&outcome);
        let state = if success { "Script completed\nWall time " } else { "Script failed\nWall time " };
        assert!(text.starts_with(state), "{code}: {text}");
        let (_, output) = text.split_once("seconds\nOutput:\n|").expect("an output");
        assert!(output.starts_with(expected) && outcome.success == success, "{code}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_script_is_awaited_or_ended() {
    let stage = sandboxed();
    let code = "// @exec: {\"yield_time_ms\": 60000}\ntext('first'); yield_control(); text('second')";
    let text = texts(&run(&stage, "exec", code).await);
    assert!(text.starts_with("Script running with cell ID 1\n") && text.contains("first"), "{text}");
    let text = texts(&run(&stage, "wait", "{\"cell_id\": \"1\"}").await);
    assert!(text.starts_with("Script completed\n") && text.ends_with("second"), "{text}");
    let text = texts(&run(&stage, "wait", "{\"cell_id\": \"1\"}").await);
    assert!(text.ends_with("exec cell 1 not found"), "{text}");
    let hang = "// @exec: {\"yield_time_ms\": 500}\ntext('p'); await new Promise(() => {})";
    let text = texts(&run(&stage, "exec", hang).await);
    assert!(text.starts_with("Script running with cell ID 2\n"), "{text}");
    let text = texts(&run(&stage, "wait", "{\"cell_id\": \"2\", \"terminate\": true}").await);
    assert!(text.starts_with("Script terminated\n"), "{text}");
    // An endless loop does not block the call, and can be ended.
    let text = texts(&run(&stage, "exec", "// @exec: {\"yield_time_ms\": 500}\nwhile (true) {}").await);
    assert!(text.starts_with("Script running with cell ID 3\n"), "{text}");
    stage.bench.clear_terminals().await;
    assert!(texts(&run(&stage, "wait", "{\"cell_id\": \"3\"}").await).ends_with("not found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_a_script_stay_in_the_environment_that_it_began_in() {
    let mut stage = sandboxed();
    stage.step.tools = oarlock_tools::Registry::builtin().specs(&oarlock_tools::Offer::default());
    let code = "// @exec: {\"yield_time_ms\": 60000}\nyield_control(); text((await tools.update_plan({plan: []})).in)";
    let text = texts(&run(&stage, "exec", code).await);
    assert!(text.starts_with("Script running with cell ID 1\n"), "{text}");
    stage.go_to("box", &["/bin/sh"]);
    let text = texts(&run(&stage, "wait", "{\"cell_id\": \"1\"}").await);
    assert!(text.starts_with("Script completed\n") && text.ends_with("local"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_node_a_script_fails_with_advice() {
    let stage = sandboxed().with_options(|options| options.node = None);
    let (text, success) = repl(&stage, "1").await;
    assert!(!success && text.starts_with("there is no `node` on this machine"), "{text}");
    let stage = sandboxed().behind("box", &["/bin/sh"]);
    let (text, success) = repl(&stage, "1").await;
    assert!(!success && text.contains("this thread works in another environment"), "{text}");
    let specs = |node: bool, feature: &str| {
        let offer =
            oarlock_tools::Offer { node, features: [feature.to_owned()].into(), ..Default::default() };
        let specs = oarlock_tools::Registry::builtin().specs(&offer);
        let all = ["exec", "wait", "js_repl", "js_repl_reset"];
        specs
            .into_iter()
            .map(|spec| spec.name)
            .filter(|name| all.contains(&name.as_str()))
            .collect::<Vec<_>>()
    };
    assert_eq!(specs(true, "js_repl"), ["js_repl", "js_repl_reset"]);
    assert_eq!(specs(true, "code_mode"), ["exec", "wait"]);
    assert!(
        specs(false, "js_repl").is_empty()
            && specs(false, "code_mode").is_empty()
            && specs(true, "x").is_empty()
    );
}
