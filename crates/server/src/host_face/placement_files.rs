//! `fs/*` with a `placementId`: files where tasks run. Without one they are files of the host's machine.

use host::FileRequest;
use serde_json::value::RawValue;

use crate::host_face::app::HostApp;
use crate::router::Run;
use crate::wire_error::WireError;

/// Goes to the placement that the request names; else `run` is about this machine.
pub(crate) fn placed(
    method: &'static str,
    _: Option<&str>,
    params: Box<RawValue>,
    run: Run<HostApp>,
) -> Run<HostApp> {
    if !FileRequest::is_meant(method, Some(params.get())).unwrap_or(false) {
        return run;
    }
    Box::new(move |app, _, to| {
        Box::pin(async move {
            // The answer may be large, so it is not made before earlier ones were read.
            to.slot.room().await;
            match app.host.use_files(method, params.get()).await {
                Ok(answer) => to.pass_on(method, &Ok(answer)),
                Err(error) => to.refuse(&WireError::from(error)),
            }
        })
    })
}
