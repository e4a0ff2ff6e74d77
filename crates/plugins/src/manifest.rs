//! `.codex-plugin/plugin.json`: a plugin's description of itself.

use std::path::{Component, Path, PathBuf};

use protocol::{AbsolutePath, PluginInterface};
use serde_json::Value;
use workspace::Reader;

use crate::PluginError;

const FILE: &str = ".codex-plugin/plugin.json";
pub(crate) const MAX_JSON_BYTES: u64 = 1 << 20;
const MAX_PROMPTS: usize = 3;
const MAX_PROMPT_CHARS: usize = 128;

/// The relevant fields. Paths are relative and stay inside the plugin.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    pub name: Option<String>,
    pub description: Option<String>,
    /// A folder of skills in addition to `skills`.
    pub skills: Option<PathBuf>,
    pub(crate) mcp_servers: Option<PathBuf>,
    pub(crate) apps: Option<PathBuf>,
    pub interface: Option<PluginInterface>,
}

impl Manifest {
    /// Reads the manifest of the plugin in this folder. Nothing outside it is read.
    pub fn read(plugin: &str, folder: &Path) -> Result<Self, PluginError> {
        let reader = reader_of(folder).map_err(|problem| PluginError::content(plugin, &problem))?;
        let text = reader.read_whole(&folder.join(FILE), MAX_JSON_BYTES).map_err(|error| {
            match error.is_missing() {
                true => PluginError::content(plugin, &format!("it has no {FILE}")),
                false => PluginError::content(plugin, &error),
            }
        })?;
        let json: Value = serde_json::from_slice(&text)
            .map_err(|error| PluginError::content(plugin, &format!("{FILE} cannot be read: {error}")))?;
        if !json.is_object() {
            return Err(PluginError::content(plugin, &format!("{FILE} is not an object")));
        }
        let manifest = Self::of(&json, folder);
        match &manifest.name {
            Some(name) if name != plugin => {
                Err(PluginError::content(plugin, &format!("its manifest has another name, `{name}`")))
            }
            _ => Ok(manifest),
        }
    }

    fn of(json: &Value, folder: &Path) -> Self {
        let text = |key: &str| text_of(json, key);
        let path = |key: &str| json.get(key).and_then(Value::as_str).and_then(below);
        Self {
            name: text("name"),
            description: text("description"),
            skills: path("skills"),
            mcp_servers: path("mcpServers"),
            apps: path("apps"),
            interface: json
                .get("interface")
                .filter(|value| value.is_object())
                .map(|json| interface(json, folder)),
        }
    }
}

pub(crate) fn reader_of(folder: &Path) -> Result<Reader, String> {
    Reader::default().beneath(folder).map_err(|error| error.to_string())
}

fn text_of(json: &Value, key: &str) -> Option<String> {
    json.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// `./relative`, without `..`.
pub(crate) fn below(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix("./")?);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    (stays && !plain.as_os_str().is_empty()).then_some(plain)
}

fn interface(json: &Value, folder: &Path) -> PluginInterface {
    let text = |key: &str| text_of(json, key);
    // Both spellings are in use.
    let link = |name: &str| text(&format!("{name}URL")).or_else(|| text(&format!("{name}Url")));
    let asset = |path: &str| AbsolutePath::new(folder.join(below(path)?).to_string_lossy().into_owned());
    let asset_of = |key: &str| json.get(key).and_then(Value::as_str).and_then(asset);
    let texts = |key: &str| -> Vec<String> {
        let list = json.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    PluginInterface {
        display_name: text("displayName"),
        short_description: text("shortDescription"),
        long_description: text("longDescription"),
        developer_name: text("developerName"),
        category: text("category"),
        capabilities: texts("capabilities"),
        website_url: link("website"),
        privacy_policy_url: link("privacyPolicy"),
        terms_of_service_url: link("termsOfService"),
        default_prompt: prompts(json.get("defaultPrompt")),
        brand_color: text("brandColor"),
        composer_icon: asset_of("composerIcon"),
        logo: asset_of("logo"),
        screenshots: texts("screenshots").iter().filter_map(|path| asset(path)).collect(),
    }
}

/// A text or a list of texts. Longer ones are left out.
fn prompts(json: Option<&Value>) -> Option<Vec<String>> {
    let all: Vec<&str> = match json? {
        Value::String(one) => vec![one.as_str()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits = |text: &String| !text.is_empty() && text.chars().count() <= MAX_PROMPT_CHARS;
    let kept: Vec<String> = all.into_iter().map(one_line).filter(fits).take(MAX_PROMPTS).collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_stay_inside() {
        assert_eq!(below("./a/./b"), Some("a/b".into()));
        for bad in ["a", "/a", "../a", "./../a", "./a/../../b", "./", ".", ""] {
            assert_eq!(below(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_interface_is_read_with_its_files() {
        let json = json!({"interface": {
            "displayName": "P", "websiteURL": "https://w", "privacyPolicyUrl": "https://p", "logo": "./a/l.png",
            "screenshots": ["./s.png", "../x.png", 5],
            "defaultPrompt": ["do  it", "x".repeat(200), "3", "4", "5"], "capabilities": ["read"],
        }});
        let found = Manifest::of(&json, Path::new("/plugin")).interface.expect("there");
        let path = |text: &str| AbsolutePath::new(text);
        assert_eq!((found.logo, found.composer_icon), (path("/plugin/a/l.png"), None));
        assert_eq!(found.screenshots, [path("/plugin/s.png").expect("absolute")]);
        assert_eq!(found.default_prompt, Some(vec!["do it".to_owned(), "3".to_owned(), "4".to_owned()]));
        assert_eq!(
            (found.website_url.as_deref(), found.privacy_policy_url.as_deref()),
            (Some("https://w"), Some("https://p"))
        );
        assert_eq!(prompts(Some(&json!("one"))), Some(vec!["one".to_owned()]));
    }
}
