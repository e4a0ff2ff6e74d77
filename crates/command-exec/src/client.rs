//! The commands of one connection, their ids, and their common end.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::{
    CommandExecParams, CommandExecResizeParams, CommandExecResponse, CommandExecTerminateParams,
    CommandExecWriteParams,
};
use support::Responder;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::command::{RunningCommand, StopCause};
use super::error::CommandExecError;
use super::input::{InputPiece, WAITING_BYTES};
use super::order::CommandSettings;
use super::output::DeltaSink;
use super::request::{CommandRequest, terminal_size};
use super::run::CommandRun;

/// Limit of running commands per connection.
const MAX_RUNNING: usize = 128;

/// The commands of one connection, unreachable for others. Dropping this kills them.
#[derive(Debug)]
pub struct ClientCommands {
    settings: CommandSettings,
    running: Arc<Mutex<Running>>,
    /// The remaining bytes of queued input.
    input_room: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Running {
    commands: HashMap<CommandKey, Arc<RunningCommand>>,
    next_unnamed: u64,
    is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CommandKey {
    Named(String),
    Unnamed(u64),
}

impl ClientCommands {
    /// For a connection with its own commands.
    pub fn new(settings: CommandSettings) -> Self {
        Self {
            settings,
            running: Arc::default(),
            input_room: Arc::new(Semaphore::new(WAITING_BYTES)),
            tasks: Mutex::default(),
        }
    }

    /// Starts a command, and responds when it has ended and all of its output was sent. Returns at once: the command
    /// can be written to right away.
    pub fn start(
        &self,
        params: CommandExecParams,
        deltas: DeltaSink,
        responder: Responder<CommandExecResponse, CommandExecError>,
    ) {
        let (entry, job) = match self.accept(params, deltas) {
            Ok(accepted) => accepted,
            Err(error) => return responder.respond(Err(error)),
        };
        self.spawn(async move {
            let ended = job.run().await;
            // The id is free again before the client can know that the command has ended.
            drop(entry);
            responder.respond(ended);
        });
    }

    fn accept(
        &self,
        params: CommandExecParams,
        deltas: DeltaSink,
    ) -> Result<(RunningEntry, CommandRun), CommandExecError> {
        let request = CommandRequest::read(params)?;
        let mut running = self.running.lock();
        let key = match &request.id {
            Some(id) => CommandKey::Named(id.clone()),
            None => CommandKey::Unnamed(running.next_unnamed),
        };
        if let (true, CommandKey::Named(id)) = (running.commands.contains_key(&key), &key) {
            return Err(CommandExecError::Duplicate(id.clone()));
        }
        if running.commands.len() >= MAX_RUNNING {
            return Err(CommandExecError::TooMany(MAX_RUNNING));
        }
        let (command, pieces) = RunningCommand::new(request.id.clone().unwrap_or_default(), request.io);
        if running.is_closed {
            command.stop(StopCause::Disconnected);
        }
        let command = Arc::new(command);
        running.next_unnamed += 1;
        running.commands.insert(key.clone(), command.clone());
        drop(running);
        let entry = RunningEntry { running: self.running.clone(), key };
        Ok((entry, CommandRun { settings: self.settings.clone(), request, command, pieces, deltas }))
    }

    /// Responds when the command, or the system for it, has taken everything.
    pub fn write(&self, params: &CommandExecWriteParams, responder: Responder<(), CommandExecError>) {
        match self.piece(params) {
            Ok(Some((command, bytes, paid))) => {
                command.write(InputPiece { bytes, close: params.close_stdin, responder, paid });
            }
            Ok(None) => responder.respond(Ok(())),
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// `None` if there is nothing left to do.
    #[allow(clippy::type_complexity, reason = "the parts of a piece, used once")]
    fn piece(
        &self,
        params: &CommandExecWriteParams,
    ) -> Result<Option<(Arc<RunningCommand>, Vec<u8>, tokio::sync::OwnedSemaphorePermit)>, CommandExecError>
    {
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

    pub fn resize(&self, params: &CommandExecResizeParams, responder: Responder<(), CommandExecError>) {
        let found = terminal_size(&params.size)
            .and_then(|size| self.find(&params.process_id).map(|command| (command, size)));
        match found {
            Ok((command, size)) => self.spawn(async move {
                responder.respond(command.resize(size).await);
            }),
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Responds first, so that this response comes before that of the command.
    pub fn terminate(&self, params: &CommandExecTerminateParams, responder: Responder<(), CommandExecError>) {
        match self.find(&params.process_id) {
            Ok(command) => {
                responder.respond(Ok(()));
                command.stop(StopCause::Terminated);
            }
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Kills everything, and returns when all have ended. Commands started later end at once.
    pub async fn close(&self) {
        {
            let mut running = self.running.lock();
            running.is_closed = true;
            running.commands.values().for_each(|command| command.stop(StopCause::Disconnected));
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    fn find(&self, id: &str) -> Result<Arc<RunningCommand>, CommandExecError> {
        let found = self.running.lock().commands.get(&CommandKey::Named(id.to_owned())).cloned();
        found.ok_or_else(|| CommandExecError::Unknown(id.to_owned()))
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("a client's command was lost: {error}");
            }
        }
        tasks.spawn(work);
    }
}

/// The entry of a running command, removed on drop.
#[derive(Debug)]
struct RunningEntry {
    running: Arc<Mutex<Running>>,
    key: CommandKey,
}

impl Drop for RunningEntry {
    fn drop(&mut self) {
        self.running.lock().commands.remove(&self.key);
    }
}
