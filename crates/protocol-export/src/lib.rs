//! Owns the exports of the wire: JSON Schema, TypeScript and Python, all derived from the method tables and the types
//! they name. Must not know anything that sends or handles a message.

mod ir;
mod python;
mod schema;
mod typescript;

pub use python::python;
pub use schema::json_schema;
pub use typescript::typescript;

/// One generated file: a path relative to the output folder, with `/` between its parts, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub text: String,
}

/// How much of the wire an export shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// The methods and types that every client may use.
    Stable,
    /// Also what needs the experimental capability.
    Experimental,
}
