//! Permissions beyond the sandbox: what the agent asks for and what it is granted.

use super::prelude::*;

/// Paths, with all that is below them. Null for none.
#[wire]
pub struct AdditionalFileSystemPermissions {
    pub read: Option<Vec<AbsolutePath>>,
    pub write: Option<Vec<AbsolutePath>>,
}

/// Permissions that exist on macOS alone.
#[wire]
pub struct AdditionalMacOsPermissions {
    pub preferences: MacOsPreferencesPermission,
    /// Which apps may be controlled.
    pub automations: MacOsAutomationPermission,
    pub launch_services: bool,
    pub accessibility: bool,
    pub calendar: bool,
    pub reminders: bool,
    pub contacts: MacOsContactsPermission,
}

/// Access to the network.
#[wire]
pub struct AdditionalNetworkPermissions {
    pub enabled: Option<bool>,
}

/// Permissions that one command would get beyond the sandbox. Null for nothing more.
#[wire]
pub struct AdditionalPermissionProfile {
    pub network: Option<AdditionalNetworkPermissions>,
    pub file_system: Option<AdditionalFileSystemPermissions>,
    pub macos: Option<AdditionalMacOsPermissions>,
}

/// Which apps may be controlled.
#[wire(snake_case)]
pub enum MacOsAutomationPermission {
    None,
    All,
    /// Only these.
    BundleIds(Vec<String>),
}

/// Access to the address book.
#[wire(snake_case)]
pub enum MacOsContactsPermission {
    None,
    ReadOnly,
    ReadWrite,
}

/// Access to the user's preferences.
#[wire(snake_case)]
pub enum MacOsPreferencesPermission {
    None,
    ReadOnly,
    ReadWrite,
}

/// Asks for more access for the commands to come.
#[wire]
pub struct PermissionsRequestApprovalParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The model's call. No item is shown for it.
    pub item_id: ItemId,
    /// Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
    /// The folder the agent works in.
    #[serde(default)]
    pub cwd: String,
    /// The agent's reason, for display.
    pub reason: Option<String>,
    pub permissions: RequestPermissionProfile,
    /// The same when the request is sent again, also after a restart.
    #[experimental("item/permissions/requestApproval.operationId")]
    #[omit]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("item/permissions/requestApproval.argumentsDigest")]
    #[omit]
    pub arguments_digest: Option<String>,
}

/// The requested permissions. Null for none of that kind.
#[wire(closed)]
pub struct RequestPermissionProfile {
    pub network: Option<AdditionalNetworkPermissions>,
    pub file_system: Option<AdditionalFileSystemPermissions>,
}

/// The granted permissions. Those left out are refused; those not asked for are ignored.
#[wire(omit_null)]
pub struct GrantedPermissionProfile {
    pub network: Option<AdditionalNetworkPermissions>,
    pub file_system: Option<AdditionalFileSystemPermissions>,
}

/// How long a grant lasts.
#[wire]
#[derive(Default)]
pub enum PermissionGrantScope {
    /// Until the turn ends.
    #[default]
    Turn,
    /// For later turns too.
    Session,
}

#[wire]
pub struct PermissionsRequestApprovalResponse {
    pub permissions: GrantedPermissionProfile,
    #[serde(default)]
    pub scope: PermissionGrantScope,
    /// From a host alone: who decided.
    #[omit]
    #[experimental("item/permissions/requestApproval.origin")]
    pub origin: Option<DecisionOrigin>,
}
