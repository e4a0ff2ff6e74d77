//! `apply_patch`: changes files by a patch, whole or not at all.

use std::path::{Path, PathBuf};
use std::time::Instant;

use engine::{Proposal, Question, ToolOutcome, ToolPayload, Verdict};
use patch::{Applied, Boundary, ChangeKind, CommitError, FileChange, Invocation, VerifyError};
use policy::Walls;
use protocol::{
    FileChangeOutputDeltaNotification, FileChangeRequestApprovalParams, FileUpdateChange, ItemId,
    OperationType, PatchApplyStatus, PatchChangeKind, ServerNotification, ThreadItem, ToolEffects,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offer::{Offer, PatchForm, Standing};
use crate::orchestrate::{Setting, confinement, may_ask, must_ask};
use crate::patch_look::{Look, Problem};
use crate::remote::{Elsewhere, Failure, Mirror, Wanted, push};
use crate::schema::{function_json, parse_function};
use crate::turn_diffs::repository;
use crate::{Tool, ToolCx, ToolError};

/// Words of its own, because the free form has no parameters to describe.
const ABOUT_FREEFORM: &str =
    "Change files by a patch. The input is the patch itself, as free text, not wrapped in JSON.";
/// The patch grammar, as model providers read it.
const GRAMMAR: &str = include_str!("apply_patch.lark");
/// How often a patch is looked at again because its files changed meanwhile.
const MOST_LOOKS: u32 = 3;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    input: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ApplyPatch;

impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const ABOUT: &'static str = "Change files by a patch:\n\n\
        *** Begin Patch\n\
        *** Add File: path/of/new.txt\n\
        +every line of it\n\
        *** Update File: path/of/old.txt\n\
        *** Move to: path/of/renamed.txt\n\
        @@ optional: the function or class\n \
        a line that stays\n\
        -a line that goes\n\
        +a line that comes\n\
        *** Delete File: path/of/gone.txt\n\
        *** End Patch";
    const PROMPT: Option<&'static str> = Some(include_str!("apply_patch.md"));
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.patch.is_some())
    }

    fn spec(offer: &Offer) -> Value {
        if offer.patch == Some(PatchForm::Function) {
            return function_json::<Args>(Self::NAME, Self::ABOUT);
        }
        json!({
            "type": "custom",
            "name": Self::NAME,
            "description": ABOUT_FREEFORM,
            "format": { "type": "grammar", "syntax": "lark", "definition": GRAMMAR },
        })
    }

    /// Models mix the two forms up; either is clear.
    fn parse(payload: ToolPayload) -> Result<Args, ToolError> {
        match payload {
            ToolPayload::Custom { input } => Ok(Args { input }),
            function @ ToolPayload::Function { .. } => parse_function(Self::NAME, function),
        }
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let applied =
            Patching { cx, base: cx.cwd().to_owned(), elsewhere: cx.elsewhere() }.apply(args.input).await?;
        Ok(applied.outcome(|text, _| text))
    }
}

/// A patch in the clothes of a command: applied as one, not run. `None` for every other command.
pub(crate) async fn intercept(
    argv: &[String],
    cwd: &Path,
    cx: &ToolCx,
) -> Option<Result<ToolOutcome, ToolError>> {
    let (text, dir) = match patch::invocation(argv) {
        Invocation::None => return None,
        Invocation::Implicit => return Some(Err(ToolError::Refused(patch::IMPLICIT_REFUSAL.to_owned()))),
        Invocation::Patch { text, dir } => (text, dir),
    };
    if cx.bench().options().no_patches {
        return Some(Err(ToolError::Refused("patches are not applied in this thread".to_owned())));
    }
    let base = dir.map_or_else(|| cwd.to_owned(), |dir| cwd.join(dir));
    let applied = match (Patching { cx, base, elsewhere: cx.elsewhere() }).apply(text).await {
        Ok(applied) => applied,
        Err(error) => return Some(Err(error)),
    };
    let mut outcome = match cx.name() {
        "shell_command" => applied.outcome(|text, _| text),
        "exec_command" => applied.outcome(|_, json| format!("Wall time: 0.0000 seconds\nOutput:\n{json}")),
        _ => applied.outcome(|_, json| json),
    };
    outcome.note = Some(format!(
        "a patch was sent through {}; it was applied. Send the next one with apply_patch itself.",
        cx.name()
    ));
    Some(Ok(outcome))
}

struct Patching<'a> {
    cx: &'a ToolCx,
    /// What the patch's paths are relative to.
    base: PathBuf,
    /// Set when its files are not on this machine.
    elsewhere: Option<Elsewhere>,
}

/// What became of a patch.
struct Patched {
    /// What the model reads, as a command would have printed it. `None`: the user said no.
    said: Option<String>,
    item: Option<ThreadItem>,
    diff: Option<String>,
    success: bool,
    seconds: f64,
}

impl Patched {
    /// `form` chooses between the layouts of the shell tools: lines, or JSON.
    fn outcome(self, form: impl FnOnce(String, String) -> String) -> ToolOutcome {
        let Self { said, item, diff, success, seconds } = self;
        let Some(said) = said else { return ToolOutcome::failure("patch rejected by user") };
        let code = i32::from(!success);
        let lines = format!("Exit code: {code}\nWall time: {seconds:.1} seconds\nOutput:\n{said}");
        let tenths = (seconds * 10.0).round() / 10.0;
        let json = json!({ "output": said, "metadata": { "exit_code": code, "duration_seconds": tenths } });
        let text = form(lines, json.to_string());
        ToolOutcome { item: item.map(Box::new), diff, success, ..ToolOutcome::text(text) }
    }
}

impl Patching<'_> {
    async fn apply(&self, mut text: String) -> Result<Patched, ToolError> {
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
                Err(Problem::Commit(error @ CommitError::Outside(_))) if self.may_ask_again(agreed) => {
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
            return Ok(Look { plan, mirror: None });
        };
        let failed = |error: VerifyError| ToolError::Failed(error.to_string());
        let patch = patch::parse(text).map_err(|error| failed(error.into()))?;
        let wanted = Wanted { place, patch: &patch, base: &self.base };
        let mirror = Mirror::fetch(self.cx, wanted).await?;
        let (redirected, base) = (mirror.redirected(wanted)?, mirror.base().to_owned());
        let plan = blocking(move || patch::plan(&redirected, &base)).await?;
        let plan =
            plan.map_err(|error| ToolError::Failed(mirror.told(&VerifyError::from(error).to_string())))?;
        Ok(Look { plan, mirror: Some((place.clone(), patch, mirror)) })
    }

    async fn commit(
        &self,
        look: Look,
        boundary: Boundary,
    ) -> Result<(Look, Result<Applied, Problem>), ToolError> {
        let Look { plan, mirror } = look;
        let boundary = if mirror.is_some() { Boundary::Anywhere } else { boundary };
        let (plan, committed) = blocking(move || {
            let committed = plan.commit(&boundary);
            (plan, committed)
        })
        .await?;
        let look = Look { plan, mirror };
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

    /// Whether to ask, and what holds after a yes.
    fn decide(&self, look: &Look, reach: &Boundary) -> Result<(bool, Walls), ToolError> {
        let step = self.cx.step();
        let options = self.cx.bench().options();
        let ask_always = options.asks_about(self.cx.name()) || options.asks_about(ApplyPatch::NAME);
        if let Some(place) = &self.elsewhere {
            let asks = must_ask(&step.approval_policy, &step.sandbox);
            if asks && !ask_always && !may_ask(&step.approval_policy) {
                return Err(ToolError::Refused(format!("patch rejected: {}", place.unconfined())));
            }
            return Ok((asks || ask_always, Walls::None));
        }
        let inside = look.targets().iter().all(|path| reach.allows(path));
        match policy::decide_patch(&step.approval_policy, &step.sandbox, inside) {
            policy::Verdict::Run { walls, .. } => Ok((ask_always, walls)),
            policy::Verdict::Ask { walls, .. } => Ok((true, walls)),
            policy::Verdict::Forbid { reason, .. } => Err(ToolError::Refused(reason)),
        }
    }

    /// The sandbox stopped it: under some policies the user may be asked to do without.
    fn may_ask_again(&self, agreed: bool) -> bool {
        !agreed && policy::may_retry_unsandboxed(&self.cx.step().approval_policy, policy::Attempt::Patch)
    }

    /// Where the sandbox, and what was granted since, let files be written.
    fn reach(&self) -> Boundary {
        match confinement(&Setting::of(self.cx), Walls::AsPolicy, None) {
            Some(walls) => Boundary::roots(walls.writable),
            None => Boundary::Anywhere,
        }
    }

    fn proposal(&self, look: &Look, number: u32, asks: bool, concern: Option<String>) -> Proposal {
        let targets: Vec<String> = look.targets().iter().map(|path| path.display().to_string()).collect();
        let mut arguments = json!({ "files": targets, "cwd": self.base });
        let concern = match &self.elsewhere {
            Some(place) => {
                arguments["environmentId"] = place.id().into();
                Some(place.reason(concern))
            }
            None => concern,
        };
        let question = FileChangeRequestApprovalParams {
            thread_id: self.cx.thread_id().clone(),
            turn_id: self.cx.turn_id().clone(),
            item_id: ItemId::new(self.cx.call_id()),
            started_at_ms: 0,
            reason: concern.map(|concern| policy::escape_for_display(&concern)),
            grant_root: None,
            operation_id: None,
            arguments_digest: None,
        };
        let key = |path: String| match &self.elsewhere {
            Some(place) => format!("patch {path} in {}", place.json()),
            None => format!("patch {path}"),
        };
        Proposal {
            number,
            kind: OperationType::FileChange,
            effects: ToolEffects::Once,
            item: Some(Box::new(self.item(&look.changes(), PatchApplyStatus::InProgress))),
            outlives: false,
            arguments,
            digest: look.digest(),
            question: asks.then(|| Box::new(Question::FileChange(question))),
            // What changed under the user's eyes is asked about, whatever was agreed to before.
            session_keys: if number == 0 { targets.into_iter().map(key).collect() } else { Vec::new() },
        }
    }

    fn item(&self, changes: &[FileChange], status: PatchApplyStatus) -> ThreadItem {
        let changes = changes.iter().map(wire_change).collect();
        ThreadItem::FileChange { id: ItemId::new(self.cx.call_id()), changes, status }
    }

    async fn finished(&self, look: Look, shown: &[FileChange], applied: &Applied, began: Instant) -> Patched {
        let said = look.summary();
        self.cx
            .tell(ServerNotification::FileChangeOutputDelta(FileChangeOutputDeltaNotification {
                thread_id: self.cx.thread_id().clone(),
                turn_id: self.cx.turn_id().clone(),
                item_id: ItemId::new(self.cx.call_id()),
                delta: said.clone(),
            }))
            .await;
        Patched {
            said: Some(said),
            item: Some(self.item(shown, PatchApplyStatus::Completed)),
            diff: Some(self.diff(look, applied)),
            success: true,
            seconds: began.elapsed().as_secs_f64(),
        }
    }

    /// The diff of the whole turn with this.
    fn diff(&self, look: Look, applied: &Applied) -> String {
        let (diffs, turn_id) = (self.cx.bench().diffs(), self.cx.turn_id());
        let Some((place, _, mirror)) = look.mirror else {
            return diffs.note(turn_id, None, || repository(self.cx.cwd()), applied);
        };
        let repository = || mirror.repository().map(Path::to_owned);
        let diff = diffs.note(turn_id, Some(place.id()), repository, applied);
        mirror.discard();
        diff
    }

    fn failed(&self, shown: &[FileChange], problem: &Problem, began: Instant) -> Patched {
        Patched {
            said: Some(format!("{problem}\n")),
            item: Some(self.item(shown, PatchApplyStatus::Failed)),
            diff: None,
            success: false,
            seconds: began.elapsed().as_secs_f64(),
        }
    }
}

fn wire_change(change: &FileChange) -> FileUpdateChange {
    let kind = match &change.kind {
        ChangeKind::Add { .. } => PatchChangeKind::Add,
        ChangeKind::Delete { .. } => PatchChangeKind::Delete,
        ChangeKind::Update { move_path, .. } => {
            PatchChangeKind::Update { move_path: move_path.as_ref().map(|path| path.display().to_string()) }
        }
    };
    FileUpdateChange { path: change.path.display().to_string(), kind, diff: change.diff() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ToolError::Failed("the patch was stopped by a defect in this program".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, Mutex};

    use engine::{Step, ToolCall};
    use protocol::{AskForApproval, FunctionCallOutputBody, GrantedPermissionProfile, SandboxPolicy};

    use super::*;
    use crate::testing::{bench, step};
    use crate::{BoxFuture, Caller, Registry, Sink};

    const ADD: &str = "*** Begin Patch\n*** Add File: new.txt\n+alpha\n+beta\n*** End Patch";
    const EDIT: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch";

    type Meddle = Box<dyn Fn(&Proposal) -> Verdict + Send + Sync>;

    /// Decides as it is told, possibly doing something behind the tool's back first.
    struct Judge {
        meddle: Meddle,
        proposals: Mutex<Vec<Proposal>>,
    }

    impl std::fmt::Debug for Judge {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Judge")
        }
    }

    impl Sink for Judge {
        fn tell(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
        fn propose(&self, proposal: Proposal) -> BoxFuture<'_, Verdict> {
            let verdict = (self.meddle)(&proposal);
            self.proposals.lock().expect("nobody panics here").push(proposal);
            Box::pin(std::future::ready(verdict))
        }
        fn tell_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
            self.tell(notification)
        }
        fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
    }

    const YES: Verdict = Verdict::Run { agreed: true, amendment: None };

    fn agree(proposal: &Proposal) -> Verdict {
        Verdict::Run { agreed: proposal.question.is_some(), amendment: None }
    }

    fn workspace(approval_policy: AskForApproval, cwd: &Path) -> Step {
        let sandbox = SandboxPolicy::WorkspaceWrite {
            network_access: false,
            writable_roots: vec![],
            read_only_access: Default::default(),
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        Step { approval_policy, sandbox, cwd: cwd.display().to_string(), ..step() }
    }

    async fn run(step: Step, patch: &str, meddle: Meddle) -> (ToolOutcome, Vec<Proposal>) {
        let judge = Arc::new(Judge { meddle, proposals: Mutex::default() });
        let caller = Caller {
            thread_id: "thread".to_owned().into(),
            turn_id: "turn".to_owned().into(),
            sink: judge.clone(),
            bench: Arc::new(bench()),
            grants: GrantedPermissionProfile { network: None, file_system: None },
        };
        let call = ToolCall {
            call_id: "call_1".to_owned(),
            name: "apply_patch".to_owned(),
            namespace: None,
            payload: ToolPayload::Custom { input: patch.to_owned() },
        };
        let outcome = Registry::builtin().run(call, Arc::new(step), caller).await;
        let proposals = judge.proposals.lock().expect("nobody panics here").clone();
        (outcome, proposals)
    }

    fn text(outcome: &ToolOutcome) -> &str {
        let FunctionCallOutputBody::Text(text) = &outcome.output else { panic!("one text") };
        text
    }

    #[tokio::test]
    async fn a_patch_inside_the_workspace_is_applied_and_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let step = workspace(AskForApproval::OnRequest, folder.path());
        let (outcome, proposals) = run(step, ADD, Box::new(agree)).await;
        assert_eq!(
            text(&outcome),
            "Exit code: 0\nWall time: 0.0 seconds\nOutput:\nSuccess. Updated the following files:\nA new.txt\n"
        );
        assert_eq!(fs::read_to_string(folder.path().join("new.txt")).expect("written"), "alpha\nbeta\n");
        assert!(outcome.diff.expect("a diff").contains("+alpha\n+beta\n"));
        let Some(ThreadItem::FileChange { changes, status, .. }) = outcome.item.as_deref() else { panic!() };
        assert_eq!((*status, changes.len()), (PatchApplyStatus::Completed, 1));
        assert_eq!(proposals.len(), 1);
        assert!(proposals[0].question.is_none());
    }

    #[tokio::test]
    async fn what_is_outside_or_protected_is_asked_about_or_refused() {
        let above = tempfile::tempdir().expect("a folder");
        let folder = tempfile::tempdir_in(above.path()).expect("the workspace in it");
        let outside = tempfile::tempdir().expect("another");
        fs::create_dir(folder.path().join(".git")).expect("made");
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("made");
        let target = format!("{}/x", outside.path().display());
        for path in ["../x", &target, ".git/hooks/pre-commit", ".codex/config.toml", ".Git/config", "link/x"]
        {
            let patch = format!("*** Begin Patch\n*** Add File: {path}\n+hi\n*** End Patch");
            let never = workspace(AskForApproval::Never, folder.path());
            let (outcome, proposals) = run(never, &patch, Box::new(agree)).await;
            assert!(!outcome.success && proposals.is_empty(), "{path}: {}", text(&outcome));
            let asks = workspace(AskForApproval::OnRequest, folder.path());
            let (outcome, proposals) = run(asks, &patch, Box::new(|_| Verdict::Declined)).await;
            assert_eq!(text(&outcome), "patch rejected by user", "{path}");
            assert!(proposals[0].question.is_some(), "{path}");
        }
        assert_eq!(fs::read_dir(outside.path()).expect("there").count(), 0);
        assert_eq!(fs::read_dir(folder.path().join(".git")).expect("there").count(), 0);
    }

    #[tokio::test]
    async fn another_patch_is_looked_at_like_the_first_and_asked_about_where_it_must_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir().expect("another");
        let target = outside.path().join("x");
        let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+theirs\n*** End Patch");
        let step = || workspace(AskForApproval::Untrusted, folder.path());
        let instead = |input: String| {
            move |proposal: &Proposal| match proposal.number {
                0 => Verdict::Patch { input: input.clone() },
                _ if proposal.question.is_some() => Verdict::Declined,
                _ => agree(proposal),
            }
        };
        let (outcome, proposals) = run(step(), ADD, Box::new(instead(add("other.txt")))).await;
        assert!(outcome.success && outcome.diff.is_some_and(|diff| diff.contains("+theirs")));
        assert!(folder.path().join("other.txt").exists() && !folder.path().join("new.txt").exists());
        assert_eq!(proposals.iter().map(|one| one.question.is_some()).collect::<Vec<_>>(), [true, false]);
        assert_ne!(proposals[0].digest, proposals[1].digest);
        // Nobody said yes to writing there.
        let outside = add(&target.display().to_string());
        let (outcome, _) = run(step(), ADD, Box::new(instead(outside))).await;
        assert!(!outcome.success && !target.exists());
        let (outcome, _) = run(step(), ADD, Box::new(instead("no patch".to_owned()))).await;
        assert!(!outcome.success);
    }

    #[tokio::test]
    async fn a_yes_lets_it_write_outside() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir().expect("another");
        let target = outside.path().join("x");
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+hi\n*** End Patch", target.display());
        let (outcome, _) =
            run(workspace(AskForApproval::OnRequest, folder.path()), &patch, Box::new(agree)).await;
        assert!(outcome.success, "{}", text(&outcome));
        assert_eq!(fs::read_to_string(target).expect("written"), "hi\n");
    }

    #[tokio::test]
    async fn under_on_failure_the_sandbox_stops_it_first_and_then_somebody_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let outside = tempfile::tempdir().expect("another");
        let target = outside.path().join("x");
        let patch = format!("*** Begin Patch\n*** Add File: {}\n+hi\n*** End Patch", target.display());
        let step = || workspace(AskForApproval::OnFailure, folder.path());
        let no = |proposal: &Proposal| {
            if proposal.question.is_some() { Verdict::Declined } else { agree(proposal) }
        };
        let (outcome, proposals) = run(step(), &patch, Box::new(no)).await;
        assert_eq!((text(&outcome), proposals.len()), ("patch rejected by user", 2));
        assert!(!target.exists());
        let (outcome, _) = run(step(), &patch, Box::new(agree)).await;
        assert!(outcome.success && target.exists());
    }

    #[tokio::test]
    async fn a_file_that_changed_after_the_yes_is_asked_about_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.txt");
        fs::write(&file, "one\ntwo\n").expect("written");
        let path = file.clone();
        let meddle = move |proposal: &Proposal| match proposal.number {
            0 => {
                fs::write(&path, "one\nTWO\n").expect("written");
                YES
            }
            _ => Verdict::Declined,
        };
        let step = workspace(AskForApproval::Untrusted, folder.path());
        let (outcome, proposals) = run(step, EDIT, Box::new(meddle)).await;
        assert_eq!(text(&outcome), "patch rejected by user");
        assert_eq!(fs::read_to_string(&file).expect("there"), "one\nTWO\n");
        assert_eq!(proposals.len(), 2);
        assert_ne!(proposals[0].digest, proposals[1].digest);
        let Some(Question::FileChange(asked)) = proposals[1].question.as_deref() else { panic!() };
        assert!(asked.reason.as_ref().is_some_and(|reason| reason.contains("changed")), "{asked:?}");
    }

    #[tokio::test]
    async fn a_yes_to_what_changed_is_no_yes_to_writing_outside() {
        let (folder, outside) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
        for place in [folder.path().join("sub"), outside.path().to_owned()] {
            fs::create_dir_all(&place).expect("made");
            fs::write(place.join("a.txt"), "one\ntwo\n").expect("written");
        }
        let (sub, target) = (folder.path().join("sub"), outside.path().to_owned());
        let meddle = move |proposal: &Proposal| {
            if proposal.number == 0 {
                fs::remove_dir_all(&sub).expect("removed");
                std::os::unix::fs::symlink(&target, &sub).expect("linked");
            }
            YES
        };
        let patch = EDIT.replace("a.txt", "sub/a.txt");
        let step = workspace(AskForApproval::Untrusted, folder.path());
        let (outcome, _) = run(step, &patch, Box::new(meddle)).await;
        assert!(!outcome.success, "{}", text(&outcome));
        assert_eq!(fs::read_to_string(outside.path().join("a.txt")).expect("there"), "one\ntwo\n");
    }

    #[tokio::test]
    async fn what_is_no_patch_or_does_not_fit_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        for patch in ["*** Begin Patch\nnonsense\n*** End Patch", EDIT, "no patch"] {
            let step = workspace(AskForApproval::Never, folder.path());
            let (outcome, proposals) = run(step, patch, Box::new(agree)).await;
            assert!(text(&outcome).starts_with("apply_patch verification failed: "), "{}", text(&outcome));
            assert!(proposals.is_empty() && !outcome.success);
        }
    }
}
