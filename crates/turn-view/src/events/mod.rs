//! A turn as events, one JSON object per line: the words of `exec --json`.

mod details;
mod event;
mod mapper;

pub use self::event::{
    AgentState, Change, Details, ExecCost, ExecEvent, ExecProblem, ExecUsage, Item, ItemStatus, McpResult,
    SearchAction, Todo,
};
pub use self::mapper::Mapper;
