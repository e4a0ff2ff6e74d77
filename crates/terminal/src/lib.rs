//! Owns the interactive session at a terminal: a state machine over keys and wire messages, the line editor, the rows it
//! shows and the thin driver around them. Must not know the runtime, nor where settings come from.
//!
//! ```text
//! keys, messages, time -> TerminalState -> effects -> SessionDriver -> bytes for the terminal, messages for the server
//! ```

mod advice;
mod connection;
mod diff;
mod driver;
mod editor;
mod glyphs;
mod history_file;
mod markdown;
mod one_request;
mod raw_terminal;
mod rendered;
mod rows;
mod safe;
mod screen;
mod session;
mod shell;

pub use advice::{Advice, FailedWork, WriteAccess, advice};
pub use connection::ServerAddress;
pub use driver::TerminalSession;
pub use history_file::HistoryFile;
pub use one_request::ask_once;
pub use rendered::{RenderedMarkdown, wrapped_text};
pub use screen::{ScreenSize, ScreenStyle};
pub use session::{PromptTemplate, SessionOptions, SessionStart, ThreadChoices};
pub use shell::words as command_words;
