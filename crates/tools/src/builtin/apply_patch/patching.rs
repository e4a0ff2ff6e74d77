//! A patch in progress: previewed, decided, applied, and previewed again if its files changed meanwhile.

use std::path::PathBuf;
use std::time::Instant;

use patch::{Applied, Boundary, CommitError, VerifyError};
use policy::SandboxChoice;

use super::patched::Patched;
use super::preview::{PatchPreview, PatchProblem, PatchScope};
use crate::files::access::with_command_rights;
use crate::remote::{Elsewhere, FetchRequest, Mirror, PushFailure, push};
use crate::{ToolCx, ToolError};

/// Limit of previews for changed files.
const MOST_PREVIEWS: u32 = 3;

pub(super) struct Patching<'a> {
    pub(super) cx: &'a ToolCx,
    /// The folder that the patch's paths are relative to.
    pub(super) base: PathBuf,
    /// Set if its files are not on this machine.
    pub(super) elsewhere: Option<Elsewhere>,
}

impl Patching<'_> {
    pub(super) async fn apply(&self, mut text: String) -> Result<Patched, ToolError> {
        let began = Instant::now();
        let mut preview = self.verify(&text).await?;
        let mut number = 0;
        // Set when something happened that needs a question.
        let mut concern = None;
        // Set if the question is about writing outside the writable folders.
        let mut asks_outside = false;
        // A client that replaced the patch is not asked about its own replacement.
        let mut is_theirs = false;
        loop {
            let reach = self.reach();
            preview = self.placed(preview, &reach).await?;
            let (asks, sandbox) = match self.decide(&preview, &reach) {
                Ok(decided) => decided,
                Err(reason) => return Ok(self.refused(&preview, number, reason).await),
            };
            let asks = (asks && !is_theirs) || concern.is_some();
            let proposal = self.proposal(&preview, number, asks, concern.take());
            let decided = self.cx.propose(proposal).await;
            if let Some(input) = decided.other_patch() {
                (text, is_theirs, asks_outside) = (input, true, false);
                preview = self.verify(&text).await?;
                number += 1;
                continue;
            }
            if !decided.is_approved() {
                return Ok(Patched::Declined);
            }
            let agreed = decided.by_client;
            let anywhere = agreed && (sandbox == SandboxChoice::None || asks_outside);
            let boundary = if anywhere { Boundary::Anywhere } else { reach };
            let shown = preview.changes();
            let (returned, committed) = self.commit(preview, boundary).await?;
            preview = returned;
            number += 1;
            match committed {
                Ok(applied) => return Ok(self.finished(preview, &shown, &applied, began).await),
                // The file changed after planning: plan and ask again.
                Err(PatchProblem::Commit(CommitError::Changed(path))) if number < MOST_PREVIEWS => {
                    preview = self.verify(&text).await?;
                    asks_outside = false;
                    concern = Some(format!("{} changed since the patch was shown", patch::shown(&path)));
                }
                Err(PatchProblem::Commit(error @ (CommitError::Outside(_) | CommitError::Protected(_))))
                    if self.may_ask_again(agreed) =>
                {
                    asks_outside = true;
                    concern = Some(format!("{error}; write there all the same?"));
                }
                Err(problem) => return Ok(self.failed(&shown, &problem, began)),
            }
        }
    }

    async fn verify(&self, text: &str) -> Result<PatchPreview, ToolError> {
        let Some(place) = &self.elsewhere else {
            let (text, base) = (text.to_owned(), self.base.clone());
            let plan = in_workspace(move || patch::verify(&text, &base)).await?;
            let plan = plan.map_err(|error| ToolError::Failed(error.to_string()))?;
            return Ok(PatchPreview { plan, mirror: None, standing: PatchScope::Inside });
        };
        let failed = |error: VerifyError| ToolError::Failed(error.to_string());
        let patch = patch::parse(text).map_err(|error| failed(error.into()))?;
        let wanted = FetchRequest { place, patch: &patch, base: &self.base };
        let mirror = Mirror::fetch(self.cx, wanted).await?;
        let (redirected, base) = (mirror.redirected(wanted)?, mirror.base().to_owned());
        let plan = blocking(move || patch::plan(&redirected, &base)).await?;
        let plan =
            plan.map_err(|error| ToolError::Failed(mirror.told(&VerifyError::from(error).to_string())))?;
        Ok(PatchPreview { plan, mirror: Some((place.clone(), patch, mirror)), standing: PatchScope::Inside })
    }

    /// Compares the patch with the writable folders.
    async fn placed(&self, preview: PatchPreview, reach: &Boundary) -> Result<PatchPreview, ToolError> {
        let PatchPreview { plan, mirror: None, .. } = preview else { return Ok(preview) };
        let reach = reach.clone();
        in_workspace(move || {
            let standing = PatchScope::of(&plan, &reach);
            PatchPreview { plan, mirror: None, standing }
        })
        .await
    }

    async fn commit(
        &self,
        preview: PatchPreview,
        boundary: Boundary,
    ) -> Result<(PatchPreview, Result<Applied, PatchProblem>), ToolError> {
        let PatchPreview { plan, mirror, standing } = preview;
        let boundary = if mirror.is_some() { Boundary::Anywhere } else { boundary };
        // Cancelling the call waits for a started write.
        let held = self.cx.scope().hold();
        let work = move || {
            let committed = plan.commit(&boundary);
            drop(held);
            (plan, committed)
        };
        // Copies of files of another environment are in a folder of this process.
        let (plan, committed) = match mirror.is_some() {
            true => blocking(work).await?,
            false => in_workspace(work).await?,
        };
        let preview = PatchPreview { plan, mirror, standing };
        let committed = match (committed, &preview.mirror) {
            (Ok(applied), Some((place, _, mirror))) => self.push(place, mirror, applied).await,
            (committed, _) => committed.map_err(PatchProblem::Commit),
        };
        Ok((preview, committed))
    }

    /// Writes the applied changes of local copies to the other environment.
    async fn push(
        &self,
        place: &Elsewhere,
        mirror: &Mirror,
        mut applied: Applied,
    ) -> Result<Applied, PatchProblem> {
        push(self.cx, place, mirror, &applied).await.map_err(|failure| match failure {
            PushFailure::Changed(path) => PatchProblem::Commit(CommitError::Changed(path)),
            PushFailure::Write(path) => PatchProblem::Place(format!(
                "cannot write {} in environment `{}`; nothing was applied",
                patch::shown(&path),
                place.id()
            )),
            PushFailure::Lost(sentence) => PatchProblem::Place(sentence),
        })?;
        for file in &mut applied.files {
            file.path = mirror.there(&file.path);
            file.moved_from = file.moved_from.as_ref().map(|from| mirror.there(from));
        }
        Ok(applied)
    }
}

/// As [`blocking`], with the rights of commands.
async fn in_workspace<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    blocking(move || with_command_rights(|| Ok(work()))).await?
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ToolError::Failed("the patch was stopped by a defect in this program".to_owned()))
}
