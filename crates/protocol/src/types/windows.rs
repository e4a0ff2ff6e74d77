//! The Windows sandbox.

use super::prelude::*;

/// How the sandbox is set up.
#[wire]
pub enum WindowsSandboxSetupMode {
    /// With an administrator's rights.
    Elevated,
    /// With the user's own rights.
    Unelevated,
}

/// Sets up the Windows sandbox. `windowsSandbox/setupCompleted` reports the result.
#[wire(omit_null)]
pub struct WindowsSandboxSetupStartParams {
    pub mode: WindowsSandboxSetupMode,
    pub cwd: Option<AbsolutePath>,
}

#[wire]
pub struct WindowsSandboxSetupStartResponse {
    /// Always true.
    pub started: bool,
}

/// Folders anybody may write to, which weaken the sandbox. Declared for clients that know it; not sent.
#[wire]
pub struct WindowsWorldWritableWarningNotification {
    /// Some of them.
    pub sample_paths: Vec<String>,
    /// How many more there are.
    pub extra_count: u64,
    /// Whether the search for them failed.
    pub failed_scan: bool,
}

/// Sent to the caller alone when the setup has ended.
#[wire]
pub struct WindowsSandboxSetupCompletedNotification {
    pub mode: WindowsSandboxSetupMode,
    pub success: bool,
    /// Set when `success` is false, as on any other system.
    pub error: Option<String>,
}
