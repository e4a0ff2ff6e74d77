//! Methods of older clients, feedback, and the sandbox of another system.

mod conversation_summary;
mod feedback;
mod git_diff_to_remote;
mod windows;
