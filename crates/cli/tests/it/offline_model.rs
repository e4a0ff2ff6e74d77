//! The offline model as another program's test meets it: one line with the address, then a Responses endpoint.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use testkit::{EndInTime, LinesInTime, RunInTime, WAIT_LIMIT};

/// A running endpoint, ended with the test.
struct Endpoint {
    child: Child,
    host: String,
}

impl Endpoint {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_oarlock"))
            .arg("offline-model")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let line = LinesInTime::new(child.stdout.take().expect("piped")).next().expect("a line");
        let host = line
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/v1"))
            .expect("an address");
        Self { host: host.to_owned(), child }
    }

    /// The whole answer to one request for a model response.
    fn ask(&self, said: &str) -> String {
        let body = format!(
            r#"{{"model":"offline","instructions":"","input":[{{"type":"message","role":"user",
            "content":[{{"type":"input_text","text":"{said}"}}]}}],"tools":[],"tool_choice":"auto",
            "parallel_tool_calls":false,"reasoning":null,"store":false,"stream":true,"include":[],
            "prompt_cache_key":"k"}}"#
        );
        let mut stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(WAIT_LIMIT)).expect("set");
        write!(
            stream,
            "POST /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    fn stop(mut self) -> (ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let errors: Vec<String> = LinesInTime::new(self.child.stderr.take().expect("piped")).collect();
        (self.child.wait_in_time(), errors.join("\n"))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_answers_and_says_what_it_is() {
    let endpoint = Endpoint::start(&[]);
    let answer = endpoint.ask("say hello there");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("response.completed") && answer.contains("Offline model"), "{answer}");
}

#[test]
fn a_script_answers_step_by_step_and_leftovers_are_an_error() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("script.json");
    fs::write(&path, r#"[{"text":"first"},{"text":"second"}]"#).expect("written");
    let arguments = ["--script", path.to_str().expect("a plain path")];
    let endpoint = Endpoint::start(&arguments);
    assert!(endpoint.ask("x").contains("first"));
    let (status, errors) = endpoint.stop();
    assert_eq!(status.code(), Some(1), "{errors}");
    assert!(errors.contains('1'), "says how many are left: {errors}");

    let endpoint = Endpoint::start(&arguments);
    assert!(endpoint.ask("x").contains("first") && endpoint.ask("x").contains("second"));
    let (status, errors) = endpoint.stop();
    assert!(status.success(), "{errors}");
}

#[test]
fn a_bad_script_is_refused_before_anything_listens() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = scratch.path().join("script.json");
    fs::write(&path, r#"[{"txt":"typo"}]"#).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_oarlock"))
        .args(["offline-model", "--script", path.to_str().expect("a plain path")])
        .output_in_time();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("txt") && output.stdout.is_empty(), "{errors}");
}
