//! `oarlock plugins`: the example of docs/plugins.md, run as it stands there.

use std::process::{Command, Output};

use tempfile::TempDir;

/// A home and a project with the files of the page.
struct Scene {
    dir: TempDir,
    page: String,
}

impl Scene {
    fn new() -> Self {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins.md");
        let scene = Self {
            dir: TempDir::new().expect("a folder"),
            page: std::fs::read_to_string(page).expect("the page"),
        };
        std::fs::create_dir_all(scene.dir.path().join("project/.git")).expect("made");
        for (kind, at, file) in [
            ("json", 1, ".agents/plugins/marketplace.json"),
            ("json", 2, "plugins/greetings/.codex-plugin/plugin.json"),
            ("markdown", 1, "plugins/greetings/skills/greet/SKILL.md"),
        ] {
            let path = scene.dir.path().join("project").join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, scene.block(kind, at)).expect("written");
        }
        scene
    }

    /// The n-th block of this kind on the page.
    fn block(&self, kind: &str, at: usize) -> &str {
        let found =
            self.page.split(&format!("```{kind}\n")).nth(at).and_then(|rest| rest.split("```").next());
        found.unwrap_or_else(|| panic!("no block {at} of {kind}"))
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_oarlock"))
            .args(words)
            .current_dir(self.dir.path().join("project"))
            .env_clear()
            .env("OARLOCK_HOME", self.dir.path().join("home"))
            .env("HOME", self.dir.path())
            .output()
            .expect("it runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_example_of_the_page_does_what_it_says() {
    let scene = Scene::new();
    let mut runs = 0;
    for part in scene.block("console", 1).split("$ oarlock ").filter(|part| !part.is_empty()) {
        let (command, expected) = part.split_once('\n').expect("a line");
        let output = scene.run(&command.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout), expected, "{command}: {}", text(&output.stderr));
        if command.starts_with("plugins install") {
            let prompt = scene.run(&["debug", "prompt", "--json"]);
            assert!(text(&prompt.stdout).contains("greetings:greet"), "{}", text(&prompt.stdout));
        }
        runs += 1;
    }
    assert_eq!(runs, 4);
}

#[test]
fn what_cannot_be_done_is_said() {
    let scene = Scene::new();
    for (words, expected) in [
        (&["plugins", "install", "greetings"][..], "expected <plugin>@<marketplace>"),
        (&["plugins", "install", "greetings@nowhere"], "there is no marketplace `nowhere` here"),
        (&["plugins", "install", "nobody@samples"], "plugin `nobody` was not found in marketplace `samples`"),
        (&["plugins", "install", "later@samples"], "not available for install"),
    ] {
        let output = scene.run(words);
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{words:?}: {}", text(&output.stderr));
    }
}
