//! `thread/*`: one file for each method, and files for what concerns several methods.

mod archive;
mod compact_start;
mod delete;
mod fork;
mod instructions;
mod list;
mod loaded_list;
mod memories;
mod metadata_update;
mod name_set;
mod project_files;
mod prompt_read;
mod read;
mod records_list;
mod reference;
mod restart;
mod resume;
mod resume_held;
mod rollback;
mod start;
mod start_refused;
mod status;
mod turns_list;
mod unarchive;
mod unload;
mod unsubscribe;
