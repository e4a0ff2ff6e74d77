//! Apps: the connectors an account can use, and what the app directory says about them.

use super::prelude::*;

/// Lists apps, a page at a time. Empty unless the apps feature is on and the login is a ChatGPT one.
#[wire(omit_null)]
pub struct AppsListParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most apps on one page.
    pub limit: Option<u32>,
    /// The thread whose configuration decides whether apps are on; the global one when unset.
    pub thread_id: Option<ThreadId>,
    /// Ask the sources again instead of the cache. A fetch that fails leaves the cache as it was.
    #[serde(default)]
    pub force_refetch: bool,
}

/// An app as a plugin refers to it.
#[wire]
pub struct AppSummary {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// The page where the user connects it.
    pub install_url: Option<String>,
    /// Whether the user still has to connect it.
    pub needs_auth: bool,
}

/// Who offers an app, for display.
#[wire]
pub struct AppBranding {
    pub category: Option<String>,
    pub developer: Option<String>,
    pub website: Option<String>,
    pub privacy_policy: Option<String>,
    pub terms_of_service: Option<String>,
    pub is_discoverable_app: bool,
}

/// One app, merged from the directory and from what the account can reach.
#[wire]
pub struct AppInfo {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    pub logo_url: Option<String>,
    /// The logo for dark backgrounds.
    pub logo_url_dark: Option<String>,
    pub distribution_channel: Option<String>,
    pub branding: Option<AppBranding>,
    pub app_metadata: Option<AppMetadata>,
    pub labels: Option<BTreeMap<String, String>>,
    /// The page where the user connects it.
    pub install_url: Option<String>,
    /// Whether the account can use it now.
    #[serde(default)]
    pub is_accessible: bool,
    /// False when config switches the app off.
    #[serde(default = "crate::yes")]
    pub is_enabled: bool,
    /// The plugins that bring this app.
    #[serde(default)]
    pub plugin_display_names: Vec<String>,
}

/// Facts of the directory about an app. Null where it has none.
#[wire]
pub struct AppMetadata {
    pub review: Option<AppReview>,
    pub categories: Option<Vec<String>>,
    pub sub_categories: Option<Vec<String>>,
    pub seo_description: Option<String>,
    pub screenshots: Option<Vec<AppScreenshot>>,
    pub developer: Option<String>,
    pub version: Option<String>,
    pub version_id: Option<String>,
    pub version_notes: Option<String>,
    pub first_party_type: Option<String>,
    pub first_party_requires_install: Option<bool>,
    pub show_in_composer_when_unlinked: Option<bool>,
}

/// The directory's review of an app.
#[wire]
pub struct AppReview {
    pub status: String,
}

/// A picture of an app in use.
#[wire]
pub struct AppScreenshot {
    pub url: Option<String>,
    pub file_id: Option<String>,
    pub user_prompt: String,
}

#[wire]
pub struct AppsListResponse {
    pub data: Vec<AppInfo>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

/// Sent to all connections whenever the merged list changes while apps are being loaded.
#[wire]
pub struct AppListUpdatedNotification {
    /// The whole list so far, not a page of it.
    pub data: Vec<AppInfo>,
}
