//! Runtimes that are scripts behind pipes in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, oneshot};

use super::*;

struct Client {
    id: u64,
    is_gone: AtomicBool,
    heard: mpsc::UnboundedSender<String>,
}

impl RuntimeClient for Client {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn tell<'a>(&'a self, method: &'a str, params: Box<RawValue>) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.heard.send(format!("{method} {params}")).unwrap() })
    }
}

/// Answers everything but commands, which go on, and says each request's method.
async fn serve(input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        if request["method"] == "command/exec" {
            continue;
        }
        let said = json!({"method": "said", "params": {"method": request["method"]}});
        let answer = json!({"id": request["id"], "result": {"watchId": "w"}});
        if output.write_all(format!("{answer}\n{said}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

struct Stage {
    runtimes: ClientRuntimes,
    started: AtomicUsize,
    ended: Arc<AtomicUsize>,
    heard: mpsc::UnboundedReceiver<String>,
    told: mpsc::UnboundedSender<String>,
}

impl Stage {
    fn new() -> Self {
        let (told, heard) = mpsc::unbounded_channel();
        let runtimes = ClientRuntimes::default();
        Self { runtimes, started: AtomicUsize::new(0), ended: Arc::default(), heard, told }
    }

    fn client(&self, id: u64) -> Arc<dyn RuntimeClient> {
        Arc::new(Client { id, is_gone: AtomicBool::new(false), heard: self.told.clone() })
    }

    async fn start(&self, client: Arc<dyn RuntimeClient>) -> Result<ClientRuntime, String> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let ((input, theirs), (output, mine)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        tokio::spawn(serve(theirs, mine));
        let ended = Arc::clone(&self.ended);
        let end = move || -> BoxFuture<'static, ()> {
            Box::pin(async move {
                ended.fetch_add(1, Ordering::Relaxed);
            })
        };
        let pipes = RuntimePipes { input: Box::new(input), output: Box::new(output), end: Box::new(end) };
        Ok(ClientRuntime::begin(pipes, client))
    }

    /// The answer, when there is one.
    async fn ask(
        &self,
        client: &Arc<dyn RuntimeClient>,
        placement: &str,
        (method, params): (&'static str, Value),
    ) -> Result<oneshot::Receiver<LinkAnswer>, String> {
        let (sender, answer) = oneshot::channel();
        let answered: OrderedAnswer = Box::new(move |answer| drop(sender.send(answer)));
        let start = self.start(Arc::clone(client));
        let too_many = |most| format!("{most} are enough");
        self.runtimes.request((client, placement), (method, params), answered, start, too_many).await?;
        Ok(answer)
    }

    fn counts(&self) -> (usize, usize) {
        (self.started.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_client_has_one_runtime_in_a_placement_and_its_messages_in_their_order() {
    let mut stage = Stage::new();
    let (one, other) = (stage.client(1), stage.client(2));
    for (client, placement) in [(&one, "p"), (&one, "p"), (&other, "p"), (&one, "q")] {
        let answer = stage.ask(client, placement, ("fs/remove", json!({}))).await.unwrap();
        assert!(answer.await.unwrap().is_ok());
        assert_eq!(stage.heard.recv().await.unwrap(), "said {\"method\":\"fs/remove\"}");
    }
    assert_eq!(stage.counts(), (3, 0));
    // Requests under way get no answer.
    let waiting = stage.ask(&one, "p", ("command/exec", json!({}))).await.unwrap();
    stage.runtimes.end_client(1).await;
    assert_eq!(stage.counts(), (3, 2), "those of the other client stay");
    assert!(matches!(waiting.await.unwrap(), Err(None)));
    stage.runtimes.end_placement("p").await;
    assert_eq!(stage.counts(), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_in_which_nothing_is_open_ends_and_the_next_request_starts_another() {
    let stage = Stage::new();
    let client = stage.client(1);
    let done = async |method, params| {
        stage.ask(&client, "p", (method, params)).await.unwrap().await.unwrap().unwrap();
    };
    done("fs/watch", json!({})).await;
    tokio::time::sleep(UNUSED_FOR * 3).await;
    assert!(stage.runtimes.uses("p"));
    assert_eq!(stage.counts(), (1, 0), "a watch is open");
    done("fs/unwatch", json!({"watchId": "w"})).await;
    assert!(!stage.runtimes.uses("p"));
    tokio::time::sleep(UNUSED_FOR * 3).await;
    assert_eq!(stage.counts(), (1, 1));
    done("fs/remove", json!({})).await;
    assert_eq!(stage.counts(), (2, 1));
    // A command that runs is open, too.
    let running = stage.ask(&client, "p", ("command/exec", json!({}))).await.unwrap();
    tokio::time::sleep(UNUSED_FOR * 3).await;
    assert_eq!(stage.counts(), (2, 1));
    drop(running);
}

#[tokio::test]
async fn a_client_that_has_gone_leaves_nothing_behind() {
    let stage = Stage::new();
    let heard = stage.told.clone();
    let gone: Arc<dyn RuntimeClient> = Arc::new(Client { id: 1, is_gone: AtomicBool::new(true), heard });
    let answer = stage.ask(&gone, "p", ("fs/remove", json!({}))).await.unwrap();
    assert!(matches!(answer.await.unwrap(), Err(None)));
    assert_eq!(stage.counts(), (1, 1));
    // One client does not fill every place.
    let client = stage.client(2);
    for number in 0..MOST_OF_A_CLIENT {
        stage.ask(&client, &number.to_string(), ("fs/remove", json!({}))).await.unwrap();
    }
    let refused = stage.ask(&client, "more", ("fs/remove", json!({}))).await.unwrap_err();
    assert_eq!(refused, "8 are enough");
    stage.runtimes.end_placement("0").await;
    stage.ask(&client, "more", ("fs/remove", json!({}))).await.unwrap();
}
