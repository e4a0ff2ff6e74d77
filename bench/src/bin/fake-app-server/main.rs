//! The least that the driver takes for an app-server, with flaws on request: the tests measure it to see that
//! the driver times what it says and counts no work that was not done. It also shows how fast the driver is.

mod delegated;

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};

/// A fake app-server for the tests of oarlock-bench.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    flaws: Flaws,
    /// Takes the word that is added to every command under test.
    #[arg(value_parser = ["app-server"])]
    mode: String,
}

#[derive(Debug, clap::Args)]
struct Flaws {
    /// The version in the user agent.
    #[arg(long, default_value = "0.0.0")]
    claim_version: String,
    /// Wait before answering initialize.
    #[arg(long, default_value_t = 0)]
    slow_initialize_ms: u64,
    /// Wait before asking the model.
    #[arg(long, default_value_t = 0)]
    slow_turn_ms: u64,
    /// Wait before running a command.
    #[arg(long, default_value_t = 0)]
    slow_command_ms: u64,
    /// Say that every command ended badly.
    #[arg(long)]
    fail_commands: bool,
    /// Answer for the model instead of running its command.
    #[arg(long)]
    skip_commands: bool,
    /// Keep all that a command writes.
    #[arg(long)]
    hoard_output: bool,
    /// Hold on to this much memory.
    #[arg(long, default_value_t = 0)]
    ballast_mib: usize,
    /// Put so many deltas into one notification.
    #[arg(long, default_value_t = 1)]
    merge: usize,
    /// Leave out the second delta.
    #[arg(long)]
    lose_delta: bool,
    /// Refuse turn/start.
    #[arg(long)]
    refuse_turns: bool,
    /// End turns as failed, without asking the model.
    #[arg(long)]
    fail_turns: bool,
    /// Complete turns without asking the model.
    #[arg(long)]
    skip_model: bool,
    /// List one thread less than there are.
    #[arg(long)]
    hide_thread: bool,
    /// Leave the last item of every turn out of a resumed thread.
    #[arg(long)]
    lose_items: bool,
    /// Delegate to hosts that ask for it.
    #[arg(long)]
    delegate: bool,
    /// Keep all that a host sends.
    #[arg(long)]
    hoard_events: bool,
    /// Wait before going on after each barrier.
    #[arg(long, default_value_t = 0)]
    slow_barrier_ms: u64,
    /// Leave the records before a barrier out.
    #[arg(long)]
    lose_records: bool,
    /// Ask the model by the wire of the thread's provider.
    #[arg(long)]
    wires: bool,
    /// Wait before asking the model by Chat.
    #[arg(long, default_value_t = 0)]
    slow_chat_ms: u64,
    /// Wait this much longer for each turn that the thread had before.
    #[arg(long, default_value_t = 0)]
    slow_history_us: u64,
    /// End in the middle of a turn.
    #[arg(long)]
    die: bool,
}

/// One reply of the model.
#[derive(Default)]
struct Said {
    deltas: Vec<String>,
    texts: Vec<String>,
    /// The id and the command of its call.
    call: Option<(String, String)>,
}

impl Said {
    /// Takes in one event.
    fn hear(&mut self, data: &str) -> Result<()> {
        if data.starts_with(r#"{"type":"response.output_text.delta""#) {
            // The mock's deltas need no escapes, and the text is the last field.
            let (_, text) = data.rsplit_once(r#""delta":""#).context("no delta")?;
            self.deltas.push(text.strip_suffix(r#""}"#).context("a delta that goes on")?.to_owned());
        } else if data.starts_with(r#"{"type":"response.output_item.done""#) {
            let event: Value = serde_json::from_str(data)?;
            let item = &event["item"];
            if item["type"] == "function_call" {
                let arguments: Value = serde_json::from_str(item["arguments"].as_str().unwrap_or_default())?;
                self.call = Some((string(&item["call_id"]), string(&arguments["cmd"])));
            } else {
                self.texts.push(string(&item["content"][0]["text"]));
            }
        }
        Ok(())
    }

    /// Takes in one event of another wire. Their messages have no event of their own.
    fn hear_piece(&mut self, data: &str) {
        let event: Value = serde_json::from_str(data).unwrap_or_default();
        let pieces = [&event["choices"][0]["delta"]["content"], &event["delta"]["text"]];
        for piece in pieces.into_iter().filter_map(Value::as_str).filter(|piece| !piece.is_empty()) {
            self.deltas.push(piece.to_owned());
        }
    }
}

/// A thread that asks its model by a wire.
#[derive(Default)]
struct ThreadWire {
    provider: String,
    turns: u64,
}

struct Server {
    flaws: Flaws,
    home: PathBuf,
    out: io::BufWriter<io::Stdout>,
    lines: io::Lines<io::StdinLock<'static>>,
    started: usize,
    /// Threads whose model requests the host carries, with what comes next in their record if the host keeps it.
    delegated: HashMap<String, Option<u64>>,
    by_wire: HashMap<String, ThreadWire>,
    /// Thread ids must differ from those of earlier processes.
    epoch: u128,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let home = PathBuf::from(std::env::var_os("CODEX_HOME").context("CODEX_HOME is not set")?);
    fs::create_dir_all(home.join("threads"))?;
    // Written to, or the pages would not be resident.
    let ballast = vec![1_u8; options.flaws.ballast_mib << 20];
    let out = io::BufWriter::with_capacity(64 * 1024, io::stdout());
    let epoch = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let (flaws, lines) = (options.flaws, io::stdin().lock().lines());
    let (delegated, by_wire) = (HashMap::new(), HashMap::new());
    let mut server = Server { flaws, home, out, lines, started: 0, delegated, by_wire, epoch };
    while let Some(line) = server.lines.next() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["id"].is_null() {
            continue;
        }
        server.serve(&message)?;
        server.out.flush()?;
    }
    drop(std::hint::black_box(ballast));
    Ok(())
}

impl Server {
    fn serve(&mut self, message: &Value) -> Result<()> {
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => self.initialize(),
            "thread/start" => self.start_thread(params),
            "thread/unsubscribe" => json!({"status": "unsubscribed"}),
            "thread/list" => self.list(params)?,
            "thread/resume" => self.resume(params)?,
            "turn/start" if !self.flaws.refuse_turns => {
                self.send(&json!({"id": id, "result": {"turn": {"id": "turn", "status": "inProgress"}}}))?;
                return self.turn(params);
            }
            method => {
                let error = json!({"code": -32600, "message": format!("{method} is refused")});
                return self.send(&json!({"id": id, "error": error}));
            }
        };
        self.send(&json!({"id": id, "result": result}))
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        Ok(writeln!(self.out, "{message}")?)
    }

    fn notify(&mut self, method: &str, params: &Value) -> Result<()> {
        self.send(&json!({"method": method, "params": params}))
    }

    fn initialize(&self) -> Value {
        thread::sleep(Duration::from_millis(self.flaws.slow_initialize_ms));
        let agreed = if self.flaws.delegate { json!({"hostDelegation": {"version": 1}}) } else { json!({}) };
        json!({"userAgent": format!("fake/{} (test)", self.flaws.claim_version), "capabilities": agreed})
    }

    fn start_thread(&mut self, params: &Value) -> Value {
        self.started += 1;
        let id = format!("{:x}-{}", self.epoch, self.started);
        if self.flaws.delegate && params["delegation"]["mode"] == "full" {
            let ordinal = (params["rolloutOwnership"] == "client").then_some(0);
            self.delegated.insert(id.clone(), ordinal);
        }
        let provider = string(&params["modelProvider"]);
        self.by_wire.insert(id.clone(), ThreadWire { provider, turns: 0 });
        json!({"thread": {"id": id}})
    }

    /// The path by which this thread asks its model.
    fn path(&mut self, thread: &str) -> &'static str {
        let flaws = &self.flaws;
        let known = self.by_wire.entry(thread.to_owned()).or_default();
        thread::sleep(Duration::from_micros(flaws.slow_history_us * known.turns));
        known.turns += 1;
        match known.provider.as_str() {
            "chat" if flaws.wires => {
                thread::sleep(Duration::from_millis(flaws.slow_chat_ms));
                "chat/completions"
            }
            "messages" if flaws.wires => "messages",
            _ => "responses",
        }
    }

    fn turn(&mut self, params: &Value) -> Result<()> {
        let thread = params["threadId"].as_str().context("no threadId")?.to_owned();
        if self.flaws.die {
            eprintln!("the fake dies as asked");
            self.out.flush()?;
            std::process::exit(3);
        }
        thread::sleep(Duration::from_millis(self.flaws.slow_turn_ms));
        if self.flaws.fail_turns {
            let turn = json!({"status": "failed", "error": {"message": "as asked"}});
            return self.notify("turn/completed", &json!({"threadId": thread, "turn": turn}));
        }
        let is_delegated = self.delegated.contains_key(&thread);
        let path = self.path(&thread);
        let said = if is_delegated { self.converse_with_host(&thread)? } else { self.converse(path)? };
        let Said { deltas, texts, .. } = said;
        // Written by hand, as they are read: with little work of its own, the fake shows what the driver can take.
        let head = r#"{"method":"item/agentMessage/delta","params":{"threadId":""#;
        for (index, delta) in deltas.chunks(self.flaws.merge.max(1)).enumerate() {
            if !(self.flaws.lose_delta && index == 1) {
                let line =
                    [head, &thread, r#"","itemId":"item","delta":""#, &delta.concat(), "\"}}\n"].concat();
                self.out.write_all(line.as_bytes())?;
            }
        }
        for text in &texts {
            let item = json!({"type": "agentMessage", "id": "item", "text": text});
            self.notify("item/completed", &json!({"threadId": thread, "item": item}))?;
        }
        let path = self.home.join("threads").join(&thread);
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{}", json!(texts))?;
        let turn = json!({"status": "completed", "error": null});
        self.notify("turn/completed", &json!({"threadId": thread, "turn": turn}))
    }

    /// Asks the model until it says something instead of calling for a command.
    fn converse(&self, path: &str) -> Result<Said> {
        let ok = || Said { texts: vec!["ok".to_owned()], ..Said::default() };
        if self.flaws.skip_model {
            return Ok(ok());
        }
        let mut input = Vec::new();
        loop {
            let said = self.ask_model(path, &json!({"input": input}))?;
            let Some((call_id, command)) = &said.call else { return Ok(said) };
            if self.flaws.skip_commands {
                return Ok(ok());
            }
            input.push(self.output_of(call_id, command)?);
        }
    }

    /// The output of a command, as the model reads it.
    fn output_of(&self, call_id: &str, command: &str) -> Result<Value> {
        let output = format!("Process exited with code {}\nOutput:\n", self.run_command(command)?);
        Ok(json!({"type": "function_call_output", "call_id": call_id, "output": output}))
    }

    /// Its exit code.
    fn run_command(&self, command: &str) -> Result<i32> {
        thread::sleep(Duration::from_millis(self.flaws.slow_command_ms));
        if self.flaws.fail_commands {
            return Ok(1);
        }
        let mut shell = Command::new("sh").args(["-c", command]).stdout(Stdio::piped()).spawn()?;
        let mut output = shell.stdout.take().context("piped")?;
        if self.flaws.hoard_output {
            let mut hoard = Vec::new();
            output.read_to_end(&mut hoard)?;
            drop(std::hint::black_box(hoard));
        } else {
            io::copy(&mut output, &mut io::sink())?;
        }
        Ok(shell.wait()?.code().unwrap_or(-1))
    }

    /// One request and its reply.
    fn ask_model(&self, wire: &str, request: &Value) -> Result<Said> {
        let configuration = fs::read_to_string(self.home.join("config.toml"))?;
        let base = configuration
            .lines()
            .find_map(|line| line.strip_prefix("base_url = \"http://")?.strip_suffix('"'));
        let (address, path) = base.and_then(|base| base.split_once('/')).context("no base_url")?;
        let mut connection = TcpStream::connect(address)?;
        let head = format!("POST /{path}/{wire} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        let request = request.to_string();
        let length = request.len();
        connection.write_all(format!("{head}content-length: {length}\r\n\r\n{request}").as_bytes())?;
        let body = read_chunked(&mut BufReader::new(connection))?;
        let mut said = Said::default();
        for data in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
            match wire {
                "responses" => said.hear(data)?,
                _ => said.hear_piece(data),
            }
        }
        if wire != "responses" {
            said.texts.push(said.deltas.concat());
        }
        Ok(said)
    }
    fn list(&self, params: &Value) -> Result<Value> {
        let entries = fs::read_dir(self.home.join("threads"))?;
        let mut ids: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        ids.sort_unstable();
        if self.flaws.hide_thread {
            ids.pop();
        }
        let limit = usize::try_from(params["limit"].as_u64().unwrap_or(25))?;
        let start = params["cursor"].as_str().map_or(Ok(0), str::parse::<usize>)?;
        let end = ids.len().min(start + limit);
        let page: Vec<Value> = ids[start..end].iter().map(|id| json!({"id": id})).collect();
        let next = (end < ids.len()).then(|| end.to_string());
        Ok(json!({"data": page, "nextCursor": next}))
    }

    fn resume(&self, params: &Value) -> Result<Value> {
        let id = params["threadId"].as_str().context("no threadId")?;
        let stored = fs::read_to_string(self.home.join("threads").join(id))?;
        let mut turns = Vec::new();
        for line in stored.lines() {
            let mut texts: Vec<String> = serde_json::from_str(line)?;
            if self.flaws.lose_items {
                texts.pop();
            }
            let item = |text: &String| json!({"type": "agentMessage", "text": text});
            turns.push(json!({"items": texts.iter().map(item).collect::<Vec<_>>()}));
        }
        Ok(json!({"thread": {"id": id, "turns": turns}}))
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The body of a chunked answer.
fn read_chunked(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            bail!("the model gave no answer");
        }
    }
    let mut body = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16)?;
        reader.take(size).read_to_end(&mut body)?;
        reader.read_exact(&mut [0; 2])?;
        if size == 0 {
            return Ok(String::from_utf8(body)?);
        }
    }
}
