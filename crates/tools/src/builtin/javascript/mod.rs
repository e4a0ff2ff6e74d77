//! JavaScript: `js_repl` with a kernel that keeps its bindings between calls, and `exec` with scripts that call other
//! tools. Both run in Node.js as commands of the thread: decided, sandboxed and ended like any other.

mod authorize;
mod js_repl;
mod js_repl_reset;
mod kernel;
mod pragma;
mod run;
mod script_exec;
mod script_wait;
mod scripts;

pub use js_repl::JsRepl;
pub use js_repl_reset::JsReplReset;
pub use script_exec::{ScriptExec, describe_to_scripts};
pub use script_wait::ScriptWait;

use crate::BuiltinTool;

/// Tools that a script cannot call, because they run scripts themselves.
const RUN_SCRIPTS: [&str; 4] = [JsRepl::NAME, JsReplReset::NAME, ScriptExec::NAME, ScriptWait::NAME];
