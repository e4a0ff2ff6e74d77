//! The commands of one connection: which run, under which names, and their common end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::{
    CommandExecParams, CommandExecResizeParams, CommandExecResponse, CommandExecTerminateParams,
    CommandExecWriteParams,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::command::{Command, Stop};
use super::error::CommandExecError;
use super::input::{Piece, WAITING_BYTES};
use super::output::DeltaSink;
use super::request::{Request, terminal_size};
use super::run::Job;
use crate::error::RuntimeError;
use crate::handle::Answer;
use crate::runtime::{Runtime, lock};

/// How many commands of one connection may run at once.
const MAX_RUNNING: usize = 128;

/// The commands of one connection. Nobody else can reach them, and when this is dropped they are killed.
#[derive(Debug)]
pub struct ClientCommands {
    runtime: Runtime,
    running: Arc<Mutex<Running>>,
    /// Bytes that may still wait to be written.
    input_room: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Running {
    commands: HashMap<Key, Arc<Command>>,
    next_unnamed: u64,
    is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Named(String),
    Unnamed(u64),
}

impl Runtime {
    /// For a connection that is to run commands of its own.
    pub fn client_commands(&self) -> ClientCommands {
        ClientCommands {
            runtime: self.clone(),
            running: Arc::default(),
            input_room: Arc::new(Semaphore::new(WAITING_BYTES)),
            tasks: Mutex::default(),
        }
    }
}

impl ClientCommands {
    /// Starts a command, and answers when it has ended and all of its output is told. Does not wait for anything: the
    /// command can be written to at once.
    pub fn start(&self, params: CommandExecParams, deltas: DeltaSink, answer: Answer<CommandExecResponse>) {
        let (place, job) = match self.accept(params, deltas) {
            Ok(accepted) => accepted,
            Err(error) => return answer.give(Err(error)),
        };
        self.spawn(async move {
            let ended = job.run().await;
            // The name is free again before the client can know that the command has ended.
            drop(place);
            answer.give(ended);
        });
    }

    fn accept(&self, params: CommandExecParams, deltas: DeltaSink) -> Result<(Place, Job), RuntimeError> {
        let request = Request::read(params)?;
        let mut running = lock(&self.running);
        let key = match &request.id {
            Some(id) => Key::Named(id.clone()),
            None => Key::Unnamed(running.next_unnamed),
        };
        if let (true, Key::Named(id)) = (running.commands.contains_key(&key), &key) {
            return Err(CommandExecError::Duplicate(id.clone()).into());
        }
        if running.commands.len() >= MAX_RUNNING {
            return Err(CommandExecError::TooMany(MAX_RUNNING).into());
        }
        let (command, pieces) = Command::new(request.id.clone().unwrap_or_default(), request.io);
        if running.is_closed {
            command.stop(Stop::Disconnected);
        }
        let command = Arc::new(command);
        running.next_unnamed += 1;
        running.commands.insert(key.clone(), command.clone());
        drop(running);
        let place = Place { running: self.running.clone(), key };
        Ok((place, Job { runtime: self.runtime.clone(), request, command, pieces, deltas }))
    }

    /// Answers when the command, or the system on its behalf, has taken everything.
    pub fn write(&self, params: &CommandExecWriteParams, answer: Answer<()>) {
        match self.piece(params) {
            Ok(Some((command, bytes, paid))) => {
                command.write(Piece { bytes, close: params.close_stdin, answer, paid });
            }
            Ok(None) => answer.give(Ok(())),
            Err(error) => answer.give(Err(error.into())),
        }
    }

    /// `None` when there is nothing left to do.
    #[allow(clippy::type_complexity, reason = "the parts of a piece, used once")]
    fn piece(
        &self,
        params: &CommandExecWriteParams,
    ) -> Result<Option<(Arc<Command>, Vec<u8>, tokio::sync::OwnedSemaphorePermit)>, CommandExecError> {
        if params.delta_base64.is_none() && !params.close_stdin {
            return Err(CommandExecError::NothingToWrite);
        }
        let encoded = params.delta_base64.as_deref().unwrap_or_default();
        let bytes = STANDARD.decode(encoded).map_err(|error| CommandExecError::Base64(error.to_string()))?;
        let command = self.find(&params.process_id)?;
        command.takes_input(!bytes.is_empty())?;
        if command.is_closed_for_writing() {
            return Ok(None);
        }
        let price = u32::try_from(bytes.len().clamp(1, WAITING_BYTES)).unwrap_or(u32::MAX);
        let paid = self.input_room.clone().try_acquire_many_owned(price);
        let paid = paid.map_err(|_| CommandExecError::TooMuchInput)?;
        Ok(Some((command, bytes, paid)))
    }

    pub fn resize(&self, params: &CommandExecResizeParams, answer: Answer<()>) {
        let found = terminal_size(&params.size)
            .and_then(|size| self.find(&params.process_id).map(|command| (command, size)));
        match found {
            Ok((command, size)) => self.spawn(async move {
                answer.give(command.resize(size).await.map_err(RuntimeError::from));
            }),
            Err(error) => answer.give(Err(error.into())),
        }
    }

    /// Answers first, so that this answer comes before that of the command.
    pub fn terminate(&self, params: &CommandExecTerminateParams, answer: Answer<()>) {
        match self.find(&params.process_id) {
            Ok(command) => {
                answer.give(Ok(()));
                command.stop(Stop::Terminated);
            }
            Err(error) => answer.give(Err(error.into())),
        }
    }

    /// Kills everything, and returns when nothing is left. What is started from now on ends at once.
    pub async fn close(&self) {
        {
            let mut running = lock(&self.running);
            running.is_closed = true;
            running.commands.values().for_each(|command| command.stop(Stop::Disconnected));
        }
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while tasks.join_next().await.is_some() {}
    }

    fn find(&self, id: &str) -> Result<Arc<Command>, CommandExecError> {
        let found = lock(&self.running).commands.get(&Key::Named(id.to_owned())).cloned();
        found.ok_or_else(|| CommandExecError::Unknown(id.to_owned()))
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("a client's command was lost: {error}");
            }
        }
        tasks.spawn(work);
    }
}

/// The place of a command among those that run, for as long as it does, however it ends.
#[derive(Debug)]
struct Place {
    running: Arc<Mutex<Running>>,
    key: Key,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.running).commands.remove(&self.key);
    }
}
