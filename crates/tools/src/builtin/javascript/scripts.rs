//! The scripts of a thread that run between calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::Step;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::kernel::NodeKernel;
use super::run::ScriptOutput;
use crate::tool::ToolCx;
use crate::tool_state::ToolState;

/// Limit of running scripts. Another one ends the oldest.
const MOST_CELLS: usize = 16;

/// Everything ends with the thread, or when its terminals are cleared.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// The kernel of `js_repl`. Locked by the call whose cell runs.
    pub(super) repl: tokio::sync::Mutex<Option<NodeKernel>>,
    /// For ending the kernel while a call holds it.
    repl_process: Mutex<Option<sandbox::Process>>,
    cells: Mutex<Cells>,
    /// Values that scripts keep for later ones.
    pub(super) stored: Mutex<BTreeMap<String, Value>>,
}

#[derive(Debug, Default)]
struct Cells {
    last: u64,
    open: BTreeMap<u64, Cell>,
}

/// A script that yielded.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) kernel: NodeKernel,
    pub(super) output: ScriptOutput,
    pub(super) began: Instant,
    /// Its calls stay in the environments of this step, whichever turn waits for it.
    pub(super) began_in: Arc<Step>,
}

impl Scripts {
    /// The scripts of the call's thread.
    pub(super) fn of(cx: &ToolCx) -> Arc<Self> {
        cx.bench().state()
    }

    pub(super) fn next_id(&self) -> u64 {
        let mut cells = self.cells.lock();
        cells.last += 1;
        cells.last
    }

    pub(super) fn keep(&self, id: u64, cell: Cell) {
        let mut cells = self.cells.lock();
        cells.open.insert(id, cell);
        while cells.open.len() > MOST_CELLS {
            cells.open.pop_first();
        }
    }

    pub(super) fn take(&self, id: u64) -> Option<Cell> {
        self.cells.lock().open.remove(&id)
    }

    pub(super) fn watch_repl(&self, process: sandbox::Process) {
        *self.repl_process.lock() = Some(process);
    }
}

impl ToolState for Scripts {
    fn clear(&self) {
        self.cells.lock().open.clear();
        // Drops a kernel that no call uses, so that the next cell starts another.
        if let Ok(mut repl) = self.repl.try_lock() {
            *repl = None;
        }
        if let Some(process) = self.repl_process.lock().take() {
            process.kill();
        }
    }
}
