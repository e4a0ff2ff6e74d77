//! The skills that installed plugins bring along.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use config::Config;
use protocol::{ConfigLayerSource, SkillScope};
use serde_json::Value;
use workspace::Reader;

use super::roots::Root;

/// Where plugins are, seen from the home folder: by marketplace, plugin and version.
const CACHE: &str = "plugins/cache";

const MANIFEST: &str = ".codex-plugin/plugin.json";

const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// The version of a plugin that was installed from a folder.
const LOCAL: &str = "local";

/// Roots of the plugins that the user switched on. What a project says about plugins does not count.
pub(super) fn plugin_roots(config: &Config) -> Vec<Root> {
    if !config.features.enabled("plugins") {
        return Vec::new();
    }
    let mut switched = BTreeMap::new();
    let users = config.layers.iter().filter(|layer| matches!(layer.source, ConfigLayerSource::User { .. }));
    for table in users.filter_map(|layer| layer.table.get("plugins")?.as_table()) {
        for (id, plugin) in table {
            let enabled = plugin.get("enabled").and_then(|enabled| enabled.as_bool());
            switched.extend(enabled.map(|enabled| (id.as_str(), enabled)));
        }
    }
    let on = switched.into_iter().filter(|(_, enabled)| *enabled);
    on.filter_map(|(id, _)| folder(config.home.reading(), id)).flat_map(|folder| roots_of(&folder)).collect()
}

/// Where `plugin@marketplace` is installed.
fn folder(home: &Path, id: &str) -> Option<PathBuf> {
    let (plugin, marketplace) = id.split_once('@')?;
    let is_plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    if !is_plain(plugin) || !is_plain(marketplace) {
        return None;
    }
    let versions = home.join(CACHE).join(marketplace).join(plugin);
    let local = versions.join(LOCAL);
    if local.is_dir() {
        return Some(local);
    }
    let listed = fs::read_dir(&versions).ok()?.flatten().filter(|entry| entry.path().is_dir());
    listed.map(|entry| entry.file_name()).max().map(|newest| versions.join(newest))
}

fn roots_of(folder: &Path) -> Vec<Root> {
    let manifest = Reader::default().read_whole(&folder.join(MANIFEST), MAX_MANIFEST_BYTES).ok();
    let manifest: Option<Value> = manifest.and_then(|text| serde_json::from_slice(&text).ok());
    // Without a manifest a folder is no plugin.
    let Some(manifest) = manifest else { return Vec::new() };
    let named = manifest["name"].as_str().map(str::trim).filter(|name| !name.is_empty());
    let of_folder =
        || folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let prefix = named.map_or_else(of_folder, str::to_owned);
    let own = manifest["skills"].as_str().and_then(|path| below(folder, path));
    let mut folders = vec![folder.join("skills")];
    folders.extend(own.filter(|own| *own != folders[0]));
    let root = |path| Root { prefix: Some(prefix.clone()), ..Root::new(path, SkillScope::User) };
    folders.into_iter().map(root).collect()
}

/// `./relative`, without a way out.
fn below(folder: &Path, path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix("./")?);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays.then(|| {
        folder.join(path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>())
    })
}

#[cfg(test)]
mod tests {
    use config::{Env, Home, LoadRequest, Loader, LoaderOptions};

    use super::*;

    fn check(settings: &str, files: &[(&str, &str)], expected: &[&str]) {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("home")).expect("made");
        fs::write(dir.path().join("home/config.toml"), settings).expect("written");
        for (path, text) in files {
            let path = dir.path().join("home/plugins/cache").join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            environment: Env::fixed([("HOME", "/nonexistent")]),
        };
        let loader = Loader::new(Home::at(dir.path().join("home")), Vec::new(), options);
        let config = loader.load(&LoadRequest::default()).expect("plain");
        let cache = dir.path().join("home/plugins/cache");
        let line = |root: &Root| {
            let path = root.path.strip_prefix(&cache).expect("below").display();
            format!("{} {path}", root.prefix.as_deref().unwrap_or_default())
        };
        let found: Vec<String> = plugin_roots(&config).iter().map(line).collect();
        assert_eq!(found, expected, "{settings}");
    }

    #[test]
    fn plugins_that_are_on_bring_their_skills() {
        let manifest =
            ("m/p/local/.codex-plugin/plugin.json", r#"{"name": "pretty", "skills": "./more/skills"}"#);
        let on = "[plugins.\"p@m\"]\nenabled = true\n";
        check(on, &[manifest], &["pretty m/p/local/skills", "pretty m/p/local/more/skills"]);
        check("", &[manifest], &[]);
        check(&on.replace("true", "false"), &[manifest], &[]);
        check(&format!("{on}[features]\nplugins = false\n"), &[manifest], &[]);
        check(on, &[("m/p/local/readme", "")], &[]);
        check(on, &[("m/p/local/.codex-plugin/plugin.json", "{")], &[]);
        check(
            on,
            &[("m/p/local/.codex-plugin/plugin.json", r#"{"skills": "./../out"}"#)],
            &["p m/p/local/skills"],
        );
        check(
            on,
            &[("m/p/1/.codex-plugin/plugin.json", "{}"), ("m/p/2/.codex-plugin/plugin.json", "{}")],
            &["p m/p/2/skills"],
        );
        check("[plugins.\"../p@m\"]\nenabled = true\n[plugins.x]\nenabled = true\n", &[manifest], &[]);
    }
}
