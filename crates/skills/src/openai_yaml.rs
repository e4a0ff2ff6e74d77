//! `agents/openai.yaml` next to a `SKILL.md`: how to display the skill, its dependencies and its policy. Invalid values
//! are ignored and logged; the skill is still listed.

use std::path::{Component, Path, PathBuf};

use protocol::{SkillDependencies, SkillInterface, SkillToolDependency};
use workspace::Reader;

use super::front_matter::{MAX_DESCRIPTION, MAX_NAME};
use super::one_line;
use super::yaml::{self, Yaml};

/// Relative to the folder of the skill.
const FILE_PATH: &str = "agents/openai.yaml";

const MAX_BYTES: u64 = 64 << 10;

/// This program's names in a list of products.
const PRODUCTS: [&str; 2] = ["codex", "oarlock"];

/// The content of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Presentation {
    pub(super) interface: Option<SkillInterface>,
    pub(super) dependencies: Option<SkillDependencies>,
    pub(super) is_implicit: bool,
    /// Not for this program.
    pub(super) is_hidden: bool,
}

impl Default for Presentation {
    fn default() -> Self {
        Self { interface: None, dependencies: None, is_implicit: true, is_hidden: false }
    }
}

/// For the skill in `folder`.
pub(super) fn read(folder: &Path, reader: &Reader) -> Presentation {
    let path = folder.join(FILE_PATH);
    let problem = match reader.read_whole(&path, MAX_BYTES) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => match yaml::read(&text) {
                Ok(yaml) => return present(&yaml, folder),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        },
        Err(error) if error.is_missing() => return Presentation::default(),
        Err(error) => error.to_string(),
    };
    tracing::warn!(path = %path.display(), problem, "the presentation of a skill cannot be read");
    Presentation::default()
}

fn present(yaml: &Yaml, folder: &Path) -> Presentation {
    let policy = yaml.get("policy").unwrap_or(&Yaml::Null);
    let is_implicit = policy.get("allow_implicit_invocation").and_then(Yaml::as_bool).unwrap_or(true);
    let products = policy.get("products").map_or(&[][..], Yaml::as_list);
    let is_ours = |product: &Yaml| {
        product.as_str().is_some_and(|name| PRODUCTS.iter().any(|ours| name.eq_ignore_ascii_case(ours)))
    };
    Presentation {
        interface: yaml.get("interface").and_then(|shown| interface(shown, folder)),
        dependencies: yaml.get("dependencies").and_then(dependencies),
        is_implicit,
        is_hidden: !products.is_empty() && !products.iter().any(is_ours),
    }
}

fn interface(yaml: &Yaml, folder: &Path) -> Option<SkillInterface> {
    let icon = |key| {
        let given = yaml.get(key)?.as_str()?;
        let path = asset(given, folder);
        if path.is_none() {
            tracing::warn!(key, given, "an icon of a skill is not below its assets folder");
        }
        path.map(|path| path.to_string_lossy().into_owned())
    };
    let shown = SkillInterface {
        display_name: text(yaml, "display_name", MAX_NAME),
        short_description: text(yaml, "short_description", MAX_DESCRIPTION),
        icon_small: icon("icon_small"),
        icon_large: icon("icon_large"),
        brand_color: text(yaml, "brand_color", 7).filter(|color| is_color(color)),
        default_prompt: text(yaml, "default_prompt", MAX_DESCRIPTION),
    };
    let is_empty = [&shown.display_name, &shown.short_description, &shown.icon_small, &shown.icon_large]
        .into_iter()
        .chain([&shown.brand_color, &shown.default_prompt])
        .all(Option::is_none);
    (!is_empty).then_some(shown)
}

fn dependencies(yaml: &Yaml) -> Option<SkillDependencies> {
    let tool = |tool: &Yaml| {
        Some(SkillToolDependency {
            r#type: text(tool, "type", MAX_NAME)?,
            value: text(tool, "value", MAX_DESCRIPTION)?,
            description: text(tool, "description", MAX_DESCRIPTION),
            transport: text(tool, "transport", MAX_NAME),
            command: text(tool, "command", MAX_DESCRIPTION),
            url: text(tool, "url", MAX_DESCRIPTION),
        })
    };
    let tools: Vec<_> = yaml.get("tools")?.as_list().iter().filter_map(tool).collect();
    (!tools.is_empty()).then_some(SkillDependencies { tools })
}

fn text(yaml: &Yaml, key: &'static str, most: usize) -> Option<String> {
    let text = one_line(yaml.get(key)?.as_str()?);
    if text.chars().count() > most {
        tracing::warn!(key, most, "a text about a skill is too long");
        return None;
    }
    Some(text).filter(|text| !text.is_empty())
}

fn is_color(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|hex| hex.len() == 6 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A relative path inside `assets/`.
fn asset(given: &str, folder: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for part in Path::new(given.trim()).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => below.push(name),
            _ => return None,
        }
    }
    (below.starts_with("assets") && below != Path::new("assets")).then(|| folder.join(below))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    fn shown(text: &str) -> Presentation {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("agents")).expect("made");
        fs::write(dir.path().join(FILE_PATH), text).expect("written");
        read(dir.path(), &Reader::default())
    }

    fn interface_of(text: &str) -> Value {
        let yaml = yaml::read(text).expect("YAML");
        serde_json::to_value(interface(&yaml, Path::new("/s"))).expect("plain data")
    }

    #[test]
    fn the_interface_is_read_field_by_field() {
        let all = "display_name: ' Tide  math '\nshort_description: Datums\nicon_small: ./assets/16.png\n\
                   icon_large: assets/big/64.png\nbrand_color: '#0a6eBD'\ndefault_prompt: Convert\n";
        assert_eq!(
            interface_of(all),
            json!({
                "displayName": "Tide math", "shortDescription": "Datums", "iconSmall": "/s/assets/16.png",
                "iconLarge": "/s/assets/big/64.png", "brandColor": "#0a6eBD", "defaultPrompt": "Convert",
            })
        );
        let bad = format!(
            "display_name: {}\nicon_small: icons/a.png\nicon_large: assets/../../x\nbrand_color: red",
            "n".repeat(65)
        );
        assert_eq!(interface_of(&bad), Value::Null);
        for path in ["/etc/x", "assets", "./assets/", "../assets/x", "assets/../x"] {
            assert_eq!(
                interface_of(&format!("icon_small: {path}\ndisplay_name: a")),
                json!({"displayName": "a"}),
                "{path}"
            );
        }
        for color in ["'#12345'", "'#1234567'", "'#12345g'", "123456"] {
            assert_eq!(interface_of(&format!("brand_color: {color}")), Value::Null, "{color}");
        }
    }

    #[test]
    fn dependencies_need_a_kind_and_a_name() {
        let text = "dependencies:\n  tools:\n    - type: mcp\n      value: harbour\n      description: Live\n      \
                    transport: stdio\n      command: npx x\n      url: https://h\n    - type: env\n    - value: x\n";
        let found = shown(text).dependencies;
        assert_eq!(
            serde_json::to_value(found).expect("plain data"),
            json!({"tools": [{"type": "mcp", "value": "harbour", "description": "Live", "transport": "stdio",
                "command": "npx x", "url": "https://h"}]})
        );
        assert_eq!(shown("dependencies: {tools: []}").dependencies, None);
    }

    #[test]
    fn the_policy_says_who_may_use_it() {
        let cases = [
            ("", true, false),
            ("policy: {allow_implicit_invocation: false}", false, false),
            ("policy:\n  allow_implicit_invocation: 'false'", true, false),
            ("policy: {products: [chatgpt, CODEX]}", true, false),
            ("policy: {products: [oarlock]}", true, false),
            ("policy: {products: [chatgpt]}", true, true),
            ("policy: {products: []}", true, false),
            // An unreadable file has no effect.
            ("policy: {allow_implicit_invocation: false", true, false),
            ("policy: &a {allow_implicit_invocation: false}\nb: *a", true, false),
        ];
        for (text, is_implicit, is_hidden) in cases {
            let read = shown(text);
            assert_eq!((read.is_implicit, read.is_hidden), (is_implicit, is_hidden), "{text}");
        }
    }

    #[test]
    fn an_unreadable_file_has_no_effect() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read(dir.path(), &Reader::default()), Presentation::default());
        fs::create_dir_all(dir.path().join(FILE_PATH)).expect("made");
        assert_eq!(read(dir.path(), &Reader::default()), Presentation::default());
        assert_eq!(shown(&"# long\n".repeat(20_000)), Presentation::default());
    }
}
