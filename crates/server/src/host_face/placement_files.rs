//! `fs/*` with a `placementId`: files where tasks run. Without one they are files of the host's machine.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use host::TaskError;
use protocol::{
    FsCreateDirectory, FsCreateDirectoryParams, FsCreateDirectoryResponse, FsReadDirectory,
    FsReadDirectoryParams, FsReadDirectoryResponse, FsReadFile, FsReadFileParams, FsReadFileResponse,
    FsWriteFile, FsWriteFileParams, FsWriteFileResponse,
};
use serde_json::Value;

use crate::handlers::fs;
use crate::host_face::app::HostApp;
use crate::hub::Requester;
use crate::reply::MethodReply;
use crate::roles::is_of_machine;
use crate::wire_error::WireError;

/// The methods that take a `placementId`.
const PLACED: &[&str] = &["fs/createDirectory", "fs/readDirectory", "fs/readFile", "fs/writeFile"];

/// Whether the request is about a placement, and not about the host's machine. A method that knows of none refuses it: it
/// would change files here that are meant to be there.
pub(crate) fn is_placed(method: &str, params: Option<&str>) -> Result<bool, WireError> {
    let Some(params) = params.filter(|params| params.contains("placementId")) else { return Ok(false) };
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    if params["placementId"].is_null() {
        return Ok(false);
    }
    if PLACED.contains(&method) {
        return Ok(true);
    }
    match is_of_machine(method, None) {
        false => Ok(false),
        true => Err(WireError::invalid_params(format!(
            "placementId: {method} is carried out on the host's machine; {} take one",
            PLACED.join(", ")
        ))),
    }
}

pub(crate) async fn read_file(
    app: Arc<HostApp>,
    caller: Requester,
    params: FsReadFileParams,
    reply: MethodReply<FsReadFile>,
) {
    let Some(id) = &params.placement_id else {
        return fs::read_file(Arc::clone(&app.local), caller, params, reply).await;
    };
    // The answer may be large, so it is not made before earlier ones were read.
    reply.room().await;
    let read = app.host.read_file_in(id, params.path.as_str()).await;
    let answer = read.map(|content| FsReadFileResponse { data_base64: STANDARD.encode(content) });
    reply.send(answer.map_err(WireError::from));
}

pub(crate) async fn write_file(
    app: Arc<HostApp>,
    caller: Requester,
    params: FsWriteFileParams,
    reply: MethodReply<FsWriteFile>,
) {
    let Some(id) = &params.placement_id else {
        let written = fs::write_file(Arc::clone(&app.local), caller, params).await;
        return reply.send(written.map_err(WireError::from));
    };
    let content = STANDARD
        .decode(&params.data_base64)
        .map_err(|error| TaskError::Field { field: "dataBase64", problem: error.to_string() });
    let written = match content {
        Ok(content) => app.host.write_file_in(id, params.path.as_str(), &content).await,
        Err(error) => Err(error),
    };
    reply.send(written.map(|()| FsWriteFileResponse {}).map_err(WireError::from));
}

pub(crate) async fn create_directory(
    app: Arc<HostApp>,
    caller: Requester,
    params: FsCreateDirectoryParams,
    reply: MethodReply<FsCreateDirectory>,
) {
    let Some(id) = &params.placement_id else {
        let made = fs::create_directory(Arc::clone(&app.local), caller, params).await;
        return reply.send(made.map_err(WireError::from));
    };
    let made = app.host.make_folder_in(id, params.path.as_str(), params.recursive.unwrap_or(true)).await;
    reply.send(made.map(|()| FsCreateDirectoryResponse {}).map_err(WireError::from));
}

pub(crate) async fn read_directory(
    app: Arc<HostApp>,
    caller: Requester,
    params: FsReadDirectoryParams,
    reply: MethodReply<FsReadDirectory>,
) {
    let Some(id) = &params.placement_id else {
        let listed = fs::read_directory(Arc::clone(&app.local), caller, params).await;
        return reply.send(listed.map_err(WireError::from));
    };
    let listed = app.host.list_folder_in(id, params.path.as_str()).await;
    let answer = listed.map(|entries| FsReadDirectoryResponse { entries });
    reply.send(answer.map_err(WireError::from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_is_not_taken_for_this_machine() {
        let (with, without) = (r#"{"placementId": "p-1", "path": "/a"}"#, r#"{"placementId": null}"#);
        for method in PLACED {
            assert!(is_placed(method, Some(with)).is_ok_and(|placed| placed), "{method}");
            assert!(is_placed(method, Some(without)).is_ok_and(|placed| !placed), "{method}");
        }
        for method in ["fs/remove", "fs/copy", "fs/watch", "command/exec"] {
            let refused = is_placed(method, Some(with)).expect_err(method);
            assert!(refused.message.contains("the host's machine"), "{refused:?}");
            assert!(is_placed(method, Some(without)).is_ok(), "{method}");
        }
        assert!(is_placed("placement/suspend", Some(with)).is_ok_and(|placed| !placed));
    }
}
