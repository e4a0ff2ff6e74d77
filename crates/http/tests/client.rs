//! The client against servers made of raw bytes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use bytes::Bytes;
use oarlock_http::{Cause, Client, HeaderMap, HttpError, HttpRequest, HttpResponse, Method, Proxy, Uri};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const PATIENCE: Duration = Duration::from_secs(10);

/// Answers every connection's first request with the given bytes and closes it. Gives its address, and what it was sent
/// first.
async fn serve(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let first = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4_096];
        let read = stream.read(&mut bytes).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    });
    (address, first)
}

async fn send(client: &Client, url: &str, patience: Duration) -> Result<HttpResponse, HttpError> {
    let url: Uri = url.parse().unwrap();
    let body = ["b", "", "ody"].into_iter().map(Bytes::from).collect();
    client.send(HttpRequest { method: Method::POST, url, headers: HeaderMap::new(), body }, patience).await
}

async fn failure(url: &str, patience: Duration) -> HttpError {
    send(&Client::new(None), url, patience).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_is_read_as_it_comes() {
    let (address, sent) = serve("HTTP/1.1 201 Made\r\nx-a: b\r\ncontent-length: 5\r\n\r\nhello").await;
    let mut answer = send(&Client::new(None), &format!("http://{address}/a?b=c"), PATIENCE).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.headers["x-a"].to_str().unwrap()), (201, "b"));
    assert_eq!(answer.body.chunk().await, Some(Ok(Bytes::from_static(b"hello"))));
    assert_eq!(answer.body.chunk().await, None);
    let sent = sent.await.unwrap();
    assert!(sent.starts_with("POST /a?b=c HTTP/1.1\r\n") && sent.ends_with("\r\n\r\nbody"), "{sent}");
}

#[tokio::test]
async fn redirects_are_handed_back() {
    let (address, _) =
        serve("HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n").await;
    let answer = send(&Client::new(None), &format!("http://{address}/"), PATIENCE).await.unwrap();
    assert_eq!(answer.status.as_u16(), 307);
}

#[tokio::test]
async fn a_whole_body_is_bounded_in_size_and_time() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    let get = async |max_bytes| {
        let (address, _) = serve(answer).await;
        let answer = send(&Client::new(None), &format!("http://{address}/"), PATIENCE).await.unwrap();
        answer.body.read(max_bytes, PATIENCE).await
    };
    assert_eq!(get(5).await, Ok(Bytes::from_static(b"hello")));
    assert_eq!(get(4).await.unwrap_err().cause, Cause::TooLarge);
    // More was announced than comes.
    let (address, server) = serve("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await;
    let answer = send(&Client::new(None), &format!("http://{address}/"), PATIENCE).await.unwrap();
    server.await.unwrap();
    assert_eq!(answer.body.read_some(100, PATIENCE).await, "hello");
}

#[tokio::test]
async fn a_body_that_never_ends_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4_096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello").await.unwrap();
        // Until the client closes.
        let _ = stream.read(&mut [0; 1]).await;
    });
    let answer = send(&Client::new(None), &url, PATIENCE).await.unwrap();
    let error = answer.body.read(100, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.cause, Cause::Timeout);
    server.await.unwrap();
}

#[tokio::test]
async fn causes_are_told_apart_and_name_the_host() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let error = failure(&format!("http://{address}/"), PATIENCE).await;
    assert_eq!(error.cause, Cause::Refused);
    assert_eq!(error.to_string(), format!("nothing answers on {address} (connection refused)"));

    let error = failure("http://no-such-host.invalid/", PATIENCE).await;
    assert_eq!((error.cause, error.host.as_str()), (Cause::Dns, "no-such-host.invalid:80"), "{error}");

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    assert_eq!(failure(&url, Duration::from_millis(50)).await.cause, Cause::Timeout);

    let (address, _) = serve("").await;
    assert_eq!(failure(&format!("http://{address}/"), PATIENCE).await.cause, Cause::Broken);

    // A plain answer to a TLS greeting; a system without certificates says so instead.
    let (address, _) = serve("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n").await;
    let error = failure(&format!("https://{address}/"), PATIENCE).await;
    assert_eq!(error.cause, Cause::Tls, "{error}");
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel() {
    let (address, sent) = serve("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n").await;
    let client = Client::new(Some(Proxy::new(&format!("http://me:word@{address}"), "").unwrap()));
    let error = send(&client, "http://host.invalid/", PATIENCE).await.unwrap_err();
    let sent = sent.await.unwrap();
    assert!(sent.starts_with("CONNECT host.invalid:80 HTTP/1.1\r\n"), "{sent}");
    assert!(sent.to_lowercase().contains("proxy-authorization: basic bwu6d29yza=="), "{sent}");
    assert_eq!(error.host, "host.invalid:80");
}

#[test]
fn a_request_shows_no_header_and_no_query() {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer planted".parse().unwrap());
    let url = Uri::from_static("https://host/v1?key=planted");
    let request =
        HttpRequest { method: Method::GET, url, headers, body: Bytes::from_static(b"planted").into() };
    let shown = format!("{request:?}");
    assert!(shown.contains("host:443") && !shown.contains("planted"), "{shown}");
}
