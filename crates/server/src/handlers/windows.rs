//! The Windows sandbox, which this system has none of.

use std::sync::Arc;

use protocol::{
    ServerNotification, WindowsSandboxSetupCompletedNotification, WindowsSandboxSetupMode,
    WindowsSandboxSetupStart, WindowsSandboxSetupStartParams, WindowsSandboxSetupStartResponse,
};

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

/// Clients wait for the notification, so that is where it says that there is nothing to set up.
pub(crate) async fn setup_start(
    _: Arc<App>,
    caller: Requester,
    params: WindowsSandboxSetupStartParams,
    reply: MethodReply<WindowsSandboxSetupStart>,
) {
    reply.send(Ok(WindowsSandboxSetupStartResponse { started: true }));
    let kind = match params.mode {
        WindowsSandboxSetupMode::Elevated => "elevated",
        WindowsSandboxSetupMode::Unelevated => "unelevated",
    };
    let completed = WindowsSandboxSetupCompletedNotification {
        mode: params.mode,
        success: false,
        error: Some(format!("{kind} Windows sandbox setup is only supported on Windows")),
    };
    caller.notify(ServerNotification::WindowsSandboxSetupCompleted(completed)).await;
}
