//! A patch on its way: looked at, decided about, applied, and looked at again where its files changed meanwhile.

use std::path::PathBuf;
use std::time::Instant;

use engine::Verdict;
use patch::{Applied, Boundary, CommitError, VerifyError};
use policy::Walls;

use super::look::{Look, Problem, Standing};
use super::patched::Patched;
use crate::remote::{Elsewhere, Failure, Mirror, Wanted, push};
use crate::{ToolCx, ToolError};

/// How often a patch is looked at again because its files changed meanwhile.
const MOST_LOOKS: u32 = 3;

pub(super) struct Patching<'a> {
    pub(super) cx: &'a ToolCx,
    /// What the patch's paths are relative to.
    pub(super) base: PathBuf,
    /// Set when its files are not on this machine.
    pub(super) elsewhere: Option<Elsewhere>,
}

impl Patching<'_> {
    pub(super) async fn apply(&self, mut text: String) -> Result<Patched, ToolError> {
        let began = Instant::now();
        let mut look = self.verify(&text).await?;
        let mut number = 0;
        // Set once something happened that somebody has to be asked about.
        let mut concern = None;
        // What is asked about is writing outside of what may be written, and not something else.
        let mut asks_outside = false;
        // Whoever put another patch in the place of the model's need not be asked about it.
        let mut is_theirs = false;
        loop {
            let reach = self.reach();
            look = self.placed(look, &reach).await?;
            let (asks, walls) = self.decide(&look, &reach)?;
            let asks = (asks && !is_theirs) || concern.is_some();
            let proposal = self.proposal(&look, number, asks, concern.take());
            let agreed = match self.cx.propose(proposal).await {
                Verdict::Run { agreed, .. } => agreed,
                Verdict::Patch { input } => {
                    (text, is_theirs, asks_outside) = (input, true, false);
                    look = self.verify(&text).await?;
                    number += 1;
                    continue;
                }
                _ => return Ok(Patched { said: None, item: None, diff: None, success: false, seconds: 0.0 }),
            };
            let anywhere = agreed && (walls == Walls::None || asks_outside);
            let boundary = if anywhere { Boundary::Anywhere } else { reach };
            let shown = look.changes();
            let (returned, committed) = self.commit(look, boundary).await?;
            look = returned;
            number += 1;
            match committed {
                Ok(applied) => return Ok(self.finished(look, &shown, &applied, began).await),
                // What was looked at is not there any more: look again, and ask again.
                Err(Problem::Commit(CommitError::Changed(path))) if number < MOST_LOOKS => {
                    look = self.verify(&text).await?;
                    asks_outside = false;
                    concern = Some(format!("{} changed since the patch was shown", patch::shown(&path)));
                }
                Err(Problem::Commit(error @ (CommitError::Outside(_) | CommitError::Protected(_))))
                    if self.may_ask_again(agreed) =>
                {
                    asks_outside = true;
                    concern = Some(format!("{error}; write there all the same?"));
                }
                Err(problem) => return Ok(self.failed(&shown, &problem, began)),
            }
        }
    }

    async fn verify(&self, text: &str) -> Result<Look, ToolError> {
        let Some(place) = &self.elsewhere else {
            let (text, base) = (text.to_owned(), self.base.clone());
            let plan = blocking(move || patch::verify(&text, &base)).await?;
            let plan = plan.map_err(|error| ToolError::Failed(error.to_string()))?;
            return Ok(Look { plan, mirror: None, standing: Standing::Inside });
        };
        let failed = |error: VerifyError| ToolError::Failed(error.to_string());
        let patch = patch::parse(text).map_err(|error| failed(error.into()))?;
        let wanted = Wanted { place, patch: &patch, base: &self.base };
        let mirror = Mirror::fetch(self.cx, wanted).await?;
        let (redirected, base) = (mirror.redirected(wanted)?, mirror.base().to_owned());
        let plan = blocking(move || patch::plan(&redirected, &base)).await?;
        let plan =
            plan.map_err(|error| ToolError::Failed(mirror.told(&VerifyError::from(error).to_string())))?;
        Ok(Look { plan, mirror: Some((place.clone(), patch, mirror)), standing: Standing::Inside })
    }

    /// Looks up how the patch stands to what may be written.
    async fn placed(&self, look: Look, reach: &Boundary) -> Result<Look, ToolError> {
        let Look { plan, mirror: None, .. } = look else { return Ok(look) };
        let reach = reach.clone();
        blocking(move || {
            let standing = Standing::of(&plan, &reach);
            Look { plan, mirror: None, standing }
        })
        .await
    }

    async fn commit(
        &self,
        look: Look,
        boundary: Boundary,
    ) -> Result<(Look, Result<Applied, Problem>), ToolError> {
        let Look { plan, mirror, standing } = look;
        let boundary = if mirror.is_some() { Boundary::Anywhere } else { boundary };
        // Whoever stops the call waits for a write that has begun.
        let held = self.cx.scope().hold();
        let (plan, committed) = blocking(move || {
            let committed = plan.commit(&boundary);
            drop(held);
            (plan, committed)
        })
        .await?;
        let look = Look { plan, mirror, standing };
        let committed = match (committed, &look.mirror) {
            (Ok(applied), Some((place, _, mirror))) => self.push(place, mirror, applied).await,
            (committed, _) => committed.map_err(Problem::Commit),
        };
        Ok((look, committed))
    }

    /// Brings to another environment what was applied to what was brought here from it.
    async fn push(
        &self,
        place: &Elsewhere,
        mirror: &Mirror,
        mut applied: Applied,
    ) -> Result<Applied, Problem> {
        push(self.cx, place, mirror, &applied).await.map_err(|failure| match failure {
            Failure::Changed(path) => Problem::Commit(CommitError::Changed(path)),
            Failure::Write(path) => Problem::Place(format!(
                "cannot write {} in environment `{}`; nothing was applied",
                patch::shown(&path),
                place.id()
            )),
            Failure::Lost(sentence) => Problem::Place(sentence),
        })?;
        for file in &mut applied.files {
            file.path = mirror.there(&file.path);
            file.moved_from = file.moved_from.as_ref().map(|from| mirror.there(from));
        }
        Ok(applied)
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ToolError::Failed("the patch was stopped by a defect in this program".to_owned()))
}
