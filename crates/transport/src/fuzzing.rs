//! Entry points for fuzzing; not part of the crate's promises.

use hyper::Request;
use hyper::header::{AUTHORIZATION, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use hyper::http::request::Parts;

use crate::{Admission, Gatekeeper, WsAuth};

/// The token of the ports that ask for one.
pub const TOKEN: &str = "open-sesame";

/// Reads the bytes as the head of a request to a websocket port: a request line, and headers line by line.
///
/// # Panics
/// When somebody is let in who has not got the token, a page of elsewhere, or a client that asks for another machine.
pub fn upgrade(data: &[u8]) {
    let Some(head) = head(data) else { return };
    let closed = WsAuth::of_token(TOKEN);
    for auth in [&WsAuth::default(), &closed] {
        for (is_loopback, is_for_all) in [(true, false), (false, false), (false, true)] {
            let admission = Gatekeeper { auth, is_loopback, is_for_all }.admit(&head);
            let is_inside = matches!(admission, Admission::Upgrade(_));
            assert!(!is_inside || auth.is_open() || names_token(&head), "let in without the token: {head:?}");
            let hosts = values(&head, HOST);
            let own = |origin: &String| {
                let name = origin.split_once("://").map_or("", |(_, name)| name);
                hosts.len() == 1 && name.eq_ignore_ascii_case(&hosts[0])
            };
            let origins = values(&head, ORIGIN);
            assert!(!is_inside || origins.iter().all(own), "a page of elsewhere: {head:?}");
            let is_local = |host: &String| {
                let host = host.to_ascii_lowercase();
                host.starts_with("localhost") || host.starts_with("127.") || host.starts_with("[")
            };
            assert!(!is_inside || !is_loopback || hosts.iter().all(is_local), "another machine: {head:?}");
        }
    }
}

fn head(data: &[u8]) -> Option<Parts> {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let mut request = Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        request = request.header(name, value.trim());
    }
    Some(request.body(()).ok()?.into_parts().0)
}

fn values(head: &Parts, name: hyper::header::HeaderName) -> Vec<String> {
    let values = head.headers.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// As it is, or as the console sends it.
fn names_token(head: &Parts) -> bool {
    let encoded = data_encoding::BASE64URL_NOPAD.encode(TOKEN.as_bytes());
    let given = values(head, AUTHORIZATION).iter().any(|value| value.contains(TOKEN));
    given || values(head, SEC_WEBSOCKET_PROTOCOL).iter().any(|value| value.contains(&encoded))
}
