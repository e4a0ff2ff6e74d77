//! The Unix socket and its file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use oarlock_server::{ExitReason, Listen, ServeError, ServerListener};
use serde_json::{Value, json};
use testkit::within;

use crate::app::over_unix;
use crate::client::{Lines, Peer};

async fn refusal(path: &Path) -> ServeError {
    ServerListener::bind(&Listen::Unix(path.to_owned())).await.unwrap_err()
}

#[tokio::test]
async fn the_socket_is_for_one_user_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = over_unix(&path).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Lines::connect(&path).await;
    client.initialize(Value::Null).await;
    client.call(1, "thread/loaded/list", json!({})).await;
    client.finish();
    assert_eq!(within("the next message or the end", client.next()).await, None);
    assert!(!server.ended.is_finished());
    server.app.idle.add_permits(1);
    server.signals.send(()).await.unwrap();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Stopped);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_is_replaced_only_when_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "left behind");
    let server = over_unix(&path).await;
    assert!(matches!(refusal(&path).await, ServeError::SocketInUse(_)));
    Lines::connect(&path).await.initialize(Value::Null).await;
    drop(server);

    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(matches!(refusal(&file).await, ServeError::NotASocket(_)));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(matches!(refusal(&folder.path().join("no/where")).await, ServeError::Bind { .. }));
}

#[tokio::test]
async fn the_file_of_another_server_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = ServerListener::bind(&Listen::Unix(path.clone())).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let other = ServerListener::bind(&Listen::Unix(path.clone())).await.unwrap();
    drop(listener);
    assert!(path.exists());
    drop(other);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_that_somebody_else_opened_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let listener = ServerListener::adopt(socket.into()).unwrap();
    assert_eq!(listener.address(), None);
    drop(listener);
    assert!(path.exists());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    assert_eq!(ServerListener::adopt(port.into()).unwrap().address(), Some(address));
}
