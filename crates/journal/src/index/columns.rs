//! Converts a thread to a row of the table and back.

use std::path::Path;

use protocol::{GitInfo, ThreadId};
use rusqlite::{Connection, Row, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::facts::Summary;
use crate::row::{ThreadRow, source_word};

pub(super) const COLUMNS: &str = "id, path, archived, damaged, length, created_at_ms, updated_at_ms, \
     session_id, preview, name, cwd, originator, cli_version, source, thread_source, model_provider, model, \
     reasoning_effort, git_sha, git_branch, git_origin_url, has_git, agent_nickname, agent_role, \
     forked_from_id, tokens";

const SAVE: &str = "INSERT OR REPLACE INTO threads (id, path, archived, damaged, length, created_at_ms, \
     updated_at_ms, session_id, preview, name, cwd, originator, cli_version, source, source_word, \
     thread_source, model_provider, model, reasoning_effort, git_sha, git_branch, git_origin_url, has_git, \
     agent_nickname, agent_role, forked_from_id, tokens) VALUES (:id, :path, :archived, :damaged, :length, \
     :created_at_ms, :updated_at_ms, :session_id, :preview, :name, :cwd, :originator, :cli_version, :source, \
     :source_word, :thread_source, :model_provider, :model, :reasoning_effort, :git_sha, :git_branch, \
     :git_origin_url, :has_git, :agent_nickname, :agent_role, :forked_from_id, :tokens)";

/// Paths are stored relative to the root, so that a state folder can be moved or copied.
pub(super) fn save(connection: &Connection, root: &Path, row: &ThreadRow) -> rusqlite::Result<()> {
    let ThreadRow { thread_id, path, is_archived, is_damaged, length, summary } = row;
    let path = path.strip_prefix(root).unwrap_or(path);
    let git = summary.git_info.as_ref();
    let text = |part: fn(&GitInfo) -> &Option<String>| git.and_then(|git| part(git).as_deref());
    connection.prepare_cached(SAVE)?.execute(named_params! {
        ":id": thread_id.as_str(),
        ":path": path.to_string_lossy(),
        ":archived": is_archived,
        ":damaged": is_damaged,
        ":length": length.cast_signed(),
        ":created_at_ms": summary.created_at_ms,
        ":updated_at_ms": summary.updated_at_ms,
        ":session_id": summary.session_id,
        ":preview": summary.preview,
        ":name": summary.name,
        ":cwd": summary.cwd,
        ":originator": summary.originator,
        ":cli_version": summary.cli_version,
        ":source": to_json(summary.source.as_ref()),
        ":source_word": summary.source.as_ref().map(source_word),
        ":thread_source": summary.thread_source,
        ":model_provider": summary.model_provider,
        ":model": summary.model,
        ":reasoning_effort": to_json(summary.reasoning_effort.as_ref()),
        ":git_sha": text(|git| &git.sha),
        ":git_branch": text(|git| &git.branch),
        ":git_origin_url": text(|git| &git.origin_url),
        ":has_git": git.is_some(),
        ":agent_nickname": summary.agent_nickname,
        ":agent_role": summary.agent_role,
        ":forked_from_id": summary.forked_from_id.as_ref().map(ThreadId::as_str),
        ":tokens": summary.tokens,
    })?;
    Ok(())
}

pub(super) fn load(root: &Path, row: &Row<'_>) -> rusqlite::Result<ThreadRow> {
    let thread_id = ThreadId::new(row.get::<_, String>("id")?);
    let git = GitInfo {
        sha: row.get("git_sha")?,
        branch: row.get("git_branch")?,
        origin_url: row.get("git_origin_url")?,
    };
    let summary = Summary {
        thread_id: Some(thread_id.clone()),
        session_id: row.get("session_id")?,
        created_at_ms: row.get("created_at_ms")?,
        updated_at_ms: row.get("updated_at_ms")?,
        preview: row.get("preview")?,
        name: row.get("name")?,
        cwd: row.get("cwd")?,
        originator: row.get("originator")?,
        cli_version: row.get("cli_version")?,
        source: from_json(row.get("source")?),
        thread_source: row.get("thread_source")?,
        model_provider: row.get("model_provider")?,
        model: row.get("model")?,
        reasoning_effort: from_json(row.get("reasoning_effort")?),
        git_info: row.get::<_, bool>("has_git")?.then_some(git),
        agent_nickname: row.get("agent_nickname")?,
        agent_role: row.get("agent_role")?,
        forked_from_id: row.get::<_, Option<String>>("forked_from_id")?.map(ThreadId::new),
        tokens: row.get("tokens")?,
    };
    Ok(ThreadRow {
        thread_id,
        path: root.join(row.get::<_, String>("path")?),
        is_archived: row.get("archived")?,
        is_damaged: row.get("damaged")?,
        length: row.get::<_, i64>("length")?.cast_unsigned(),
        summary,
    })
}

fn to_json<T: Serialize>(value: Option<&T>) -> Option<String> {
    serde_json::to_string(value?).ok()
}

/// A value in a newer release's format is unset until the journal is read.
fn from_json<T: DeserializeOwned>(text: Option<String>) -> Option<T> {
    serde_json::from_str(&text?).ok()
}
