//! `fs/*`: files on the server's machine, by absolute path and outside any sandbox.

use super::prelude::*;

/// Reads a whole file.
#[wire(omit_null)]
pub struct FsReadFileParams {
    pub path: AbsolutePath,
    /// The placement whose workspace holds it; the host's own machine when unset. Only a host has placements.
    #[experimental("fs/readFile.placementId")]
    pub placement_id: Option<String>,
}

/// Writes a whole file.
#[wire(omit_null)]
pub struct FsWriteFileParams {
    pub path: AbsolutePath,
    /// The content in base64.
    pub data_base64: String,
    /// The placement whose workspace holds it; the host's own machine when unset. Only a host has placements.
    #[experimental("fs/writeFile.placementId")]
    pub placement_id: Option<String>,
}

/// Creates a folder.
#[wire(omit_null)]
pub struct FsCreateDirectoryParams {
    pub path: AbsolutePath,
    /// Also create missing parents. True when unset.
    pub recursive: Option<bool>,
    /// The placement whose workspace holds it; the host's own machine when unset. Only a host has placements.
    #[experimental("fs/createDirectory.placementId")]
    pub placement_id: Option<String>,
}

/// Tells what a path is and when it was made and changed.
#[wire]
pub struct FsGetMetadataParams {
    pub path: AbsolutePath,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fs/getMetadata.placementId")]
    pub placement_id: Option<String>,
}

/// Lists the direct children of a folder.
#[wire(omit_null)]
pub struct FsReadDirectoryParams {
    pub path: AbsolutePath,
    /// The placement whose workspace holds it; the host's own machine when unset. Only a host has placements.
    #[experimental("fs/readDirectory.placementId")]
    pub placement_id: Option<String>,
}

/// Removes a file or folder.
#[wire(omit_null)]
pub struct FsRemoveParams {
    pub path: AbsolutePath,
    /// Also remove what a folder holds. True when unset.
    pub recursive: Option<bool>,
    /// Do not fail when there is nothing to remove. True when unset.
    pub force: Option<bool>,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[experimental("fs/remove.placementId")]
    pub placement_id: Option<String>,
}

/// Copies a file or folder. Symbolic links stay links.
#[wire]
pub struct FsCopyParams {
    pub source_path: AbsolutePath,
    pub destination_path: AbsolutePath,
    /// Required for a folder. Special files in it are skipped.
    #[serde(default)]
    pub recursive: bool,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fs/copy.placementId")]
    pub placement_id: Option<String>,
}

/// Reports changes of a path to this connection until `fs/unwatch`. Folders are not watched in depth.
#[wire]
pub struct FsWatchParams {
    /// Need not exist yet.
    pub path: AbsolutePath,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fs/watch.placementId")]
    pub placement_id: Option<String>,
}

/// Ends a watch. An id that is not known is fine.
#[wire]
pub struct FsUnwatchParams {
    /// From the answer to `fs/watch`.
    pub watch_id: String,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("fs/unwatch.placementId")]
    pub placement_id: Option<String>,
}

#[wire]
pub struct FsReadFileResponse {
    /// The content in base64.
    pub data_base64: String,
}

#[wire]
pub struct FsWriteFileResponse {}

#[wire]
pub struct FsCreateDirectoryResponse {}

#[wire]
pub struct FsGetMetadataResponse {
    pub is_directory: bool,
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Whether the path itself is a symbolic link.
    #[serde(default)]
    pub is_symlink: bool,
    /// Unix milliseconds; 0 where the platform does not tell.
    pub created_at_ms: i64,
    /// Unix milliseconds; 0 where the platform does not tell.
    pub modified_at_ms: i64,
}

/// One child of a folder.
#[wire]
pub struct FsReadDirectoryEntry {
    /// The name alone.
    pub file_name: String,
    pub is_directory: bool,
    pub is_file: bool,
}

#[wire]
pub struct FsReadDirectoryResponse {
    pub entries: Vec<FsReadDirectoryEntry>,
}

#[wire]
pub struct FsRemoveResponse {}

#[wire]
pub struct FsCopyResponse {}

#[wire]
pub struct FsWatchResponse {
    /// Made by the server; found again in `fs/changed`.
    pub watch_id: String,
    pub path: AbsolutePath,
}

#[wire]
pub struct FsUnwatchResponse {}

/// Sent to the watching connection. Changes close in time, about 200 ms, come together.
#[wire]
pub struct FsChangedNotification {
    pub watch_id: String,
    /// Sorted.
    pub changed_paths: Vec<AbsolutePath>,
}
