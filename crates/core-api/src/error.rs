//! Everything that can go wrong, in sentences that say what to do about it.

use runtime::protocol::{ThreadId, TurnId};
use runtime::{Refusal, RuntimeError, ThreadError};

use crate::turn::FinishedTurn;

/// An error of a manager or a thread. Its text is one sentence for people and names the way out.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// There is no folder to keep threads in.
    #[error("{0}; choose a folder with ThreadManagerBuilder::home")]
    Home(String),
    /// A path that the record of a thread could not hold.
    #[error("the path {0} is not Unicode; choose another one")]
    Path(String),
    /// No such thread is stored in this home.
    #[error("there is no thread {0} in this home; ThreadManager::list_threads names those there are")]
    NoThread(ThreadId),
    /// The thread was closed, by hand or by [`ThreadManager::shut_down`](crate::ThreadManager::shut_down).
    #[error("thread {0} is closed; open it with ThreadManager::resume_thread")]
    Closed(ThreadId),
    /// One thread runs one turn at a time.
    #[error(
        "a turn of thread {0} still runs; read its stream to the end or drop it and wait, stop it with \
         interrupt, or add to it with steer"
    )]
    TurnRunning(ThreadId),
    /// Nothing runs that could be added to.
    #[error("no turn runs that could be steered; begin one with submit")]
    NoTurnRunning,
    /// The turn runs, and takes no words from users.
    #[error("the turn that runs takes no input; wait for its end and use submit")]
    NotSteerable,
    /// There is nothing to say to the model.
    #[error("the input is empty; give it a text, an image or a skill")]
    EmptyInput,
    /// The turn ended with an error, which is the text of this one. What it did before is in the [`FinishedTurn`].
    #[error("{}", why(.0))]
    TurnFailed(Box<FinishedTurn>),
    /// The thread was closed, or broke, before the turn told its end.
    #[error(
        "turn {turn} was cut off before its end was told; open thread {thread} with \
         ThreadManager::resume_thread and read what came of it with ManagedThread::turns"
    )]
    CutOff {
        /// The thread of the turn.
        thread: ThreadId,
        /// The turn.
        turn: TurnId,
    },
    /// The request cannot be carried out, for the reason that the text names.
    #[error("{0}")]
    Refused(String),
}

fn why(finished: &FinishedTurn) -> &str {
    finished.error.as_ref().map_or("the turn failed and did not say why", |error| error.message.as_str())
}

impl From<RuntimeError> for ManagerError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::UnknownThread(id) | RuntimeError::Thread(ThreadError::Gone(id)) => Self::Closed(id),
            RuntimeError::NotLoaded(id) | RuntimeError::NoRecord(id) => Self::NoThread(id),
            RuntimeError::Thread(ThreadError::Refused(Refusal::EmptyInput)) => Self::EmptyInput,
            RuntimeError::Thread(ThreadError::Refused(Refusal::NotSteerable(_))) => Self::NotSteerable,
            RuntimeError::Thread(
                ThreadError::Refused(Refusal::NoActiveTurn) | ThreadError::OtherTurn { .. },
            ) => Self::NoTurnRunning,
            error => Self::Refused(error.to_string()),
        }
    }
}
