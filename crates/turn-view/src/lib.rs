//! Owns how a turn looks outside of the interactive session: lines for a person, events for a program, and colours and
//! characters that are safe to write. Must not know where turns come from, nor read settings or files.

mod advice;
mod events;
mod items;
mod live;
mod operations;
mod paint;
mod policy_report;
mod safe;
mod server_status;
mod table;
mod view;
mod width;
mod wording;

pub use events::{
    AgentState, Change, Details, ExecCost, ExecEvent, ExecProblem, ExecUsage, Item, ItemStatus, Mapper,
    McpResult, SearchAction, Todo,
};
pub use items::describe;
pub use live::LiveScreen;
pub use operations::{operation_line, operations_text, task_text, task_title};
pub use paint::{Color, Paint, TextStyle};
pub use policy_report::CommandReport;
pub use safe::{SafeStderr, clean, clean_line, escaped_json, screened};
pub use server_status::status_text;
pub use table::{TableColumn, age, aligned, byte_size, short_id, shown_id, table};
pub use terminal::WriteAccess;
pub use view::{Heading, View};
pub use width::{columns, cut, cut_front, display_width, screen_rows};
pub use wording::{error_text, with_details};
