//! Apps of installed plugins, for clients. An app is connected and used through the service of a ChatGPT account, which
//! is not called here.

use config::ResolvedConfig;
use protocol::{AppInfo, AppSummary, AppsListParams, AppsListResponse};
use toml::Table;

use crate::bundle::{PluginApp, plugin_apps};
use crate::installed::active_plugins;

/// The apps of all enabled plugins, by name. Two plugins with the same app share its entry.
pub fn apps(config: &ResolvedConfig) -> Vec<AppInfo> {
    let mut apps: Vec<AppInfo> = Vec::new();
    for plugin in active_plugins(config) {
        let interface = plugin.manifest.interface.as_ref();
        let shown = interface.and_then(|interface| interface.display_name.as_deref());
        let shown = shown.unwrap_or(plugin.name());
        for PluginApp { name, id } in plugin_apps(&plugin.folder, &plugin.manifest) {
            match apps.iter_mut().find(|app| app.id == id) {
                Some(app) => app.plugin_display_names.push(shown.to_owned()),
                None => apps.push(info(config, name, id, shown)),
            }
        }
    }
    apps.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
    apps
}

/// An app in its plugin's description. Only the service knows whether it is connected.
pub fn app_summary(app: PluginApp) -> AppSummary {
    let install_url = Some(install_url(&app.name, &app.id));
    AppSummary { id: app.id, name: app.name, description: None, install_url, needs_auth: true }
}

/// One page of the list, or the problem with the cursor.
pub fn app_page(mut apps: Vec<AppInfo>, params: &AppsListParams) -> Result<AppsListResponse, String> {
    let start = match &params.cursor {
        None => 0,
        Some(cursor) => cursor.parse::<usize>().map_err(|_| format!("invalid cursor: {cursor}"))?,
    };
    let total = apps.len();
    if start > total {
        return Err(format!("cursor {start} exceeds total apps {total}"));
    }
    let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let end = start.saturating_add(limit).min(total);
    let next_cursor = (end < total).then(|| end.to_string());
    apps.truncate(end);
    Ok(AppsListResponse { data: apps.split_off(start), next_cursor })
}

fn info(config: &ResolvedConfig, name: String, id: String, plugin: &str) -> AppInfo {
    AppInfo {
        install_url: Some(install_url(&name, &id)),
        is_enabled: is_enabled(config, &id),
        is_accessible: false,
        plugin_display_names: vec![plugin.to_owned()],
        description: None,
        logo_url: None,
        logo_url_dark: None,
        distribution_channel: None,
        branding: None,
        app_metadata: None,
        labels: None,
        name,
        id,
    }
}

/// `[apps.ID] enabled`, else `[apps._default] enabled`. Requirements can disable an app.
fn is_enabled(config: &ResolvedConfig, id: &str) -> bool {
    let said = |apps: &Table, key: &str| apps.get(key)?.get("enabled")?.as_bool();
    let required = config.requirements.apps.as_ref().and_then(|apps| said(apps, id));
    let apps = config.merged.get("apps").and_then(toml::Value::as_table);
    let wanted = apps.and_then(|apps| said(apps, id).or_else(|| said(apps, "_default")));
    wanted.unwrap_or(true) && required.unwrap_or(true)
}

/// The page where the user connects an app.
fn install_url(name: &str, id: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().map(plain).collect();
    let slug = match slug.trim_matches('-') {
        "" => "app",
        slug => slug,
    };
    format!("https://chatgpt.com/apps/{slug}/{id}")
}

#[cfg(test)]
mod tests {
    use super::install_url;

    #[test]
    fn the_page_of_an_app_has_its_name_in_plain_letters() {
        for (name, expected) in [
            ("Google Calendar", "https://chatgpt.com/apps/google-calendar/c_1"),
            (" (Ünï) ", "https://chatgpt.com/apps/n/c_1"),
            ("日本", "https://chatgpt.com/apps/app/c_1"),
        ] {
            assert_eq!(install_url(name, "c_1"), expected);
        }
    }
}
