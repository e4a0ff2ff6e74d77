//! Patches under each policy, with a client that decides and may change files meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use engine::{Proposal, ProposalDecision, Question, Step, ToolCall, ToolOutcome, ToolPayload};
use parking_lot::Mutex;
use protocol::{
    AskForApproval, FunctionCallOutputBody, GrantedPermissionProfile, PatchApplyStatus, SandboxPolicy,
    ServerNotification, ThreadItem,
};

use crate::testing::{bench, step};
use crate::{Bench, BenchOptions, BoxFuture, Caller, Registry, Sink};

const ADD: &str = "*** Begin Patch\n*** Add File: new.txt\n+alpha\n+beta\n*** End Patch";
const EDIT: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** End Patch";

type Meddle = Box<dyn Fn(&Proposal) -> ProposalDecision + Send + Sync>;

/// Decides as configured, and may first change something behind the tool's back.
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
    fn notify(&self, _: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        let decided = (self.meddle)(&proposal);
        self.proposals.lock().push(proposal);
        Box::pin(std::future::ready(decided))
    }
    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.notify(notification)
    }
    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn other_patch(input: &str) -> ProposalDecision {
    let arguments = Some(serde_json::json!({ "input": input }));
    let decision = protocol::OperationDecision::Replace { command: None, arguments };
    ProposalDecision { decision, by_client: true }
}

const YES: ProposalDecision = ProposalDecision::approved(true);

fn agree(proposal: &Proposal) -> ProposalDecision {
    ProposalDecision::approved(proposal.question.is_some())
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
    run_on(bench(), step, patch, meddle).await
}

async fn run_on(bench: Bench, step: Step, patch: &str, meddle: Meddle) -> (ToolOutcome, Vec<Proposal>) {
    let judge = Arc::new(Judge { meddle, proposals: Mutex::default() });
    let caller = Caller {
        thread_id: "thread".to_owned().into(),
        turn_id: "turn".to_owned().into(),
        sink: judge.clone(),
        bench: Arc::new(bench),
        grants: GrantedPermissionProfile { network: None, file_system: None },
        scope: crate::CallScope::default(),
    };
    let call = ToolCall {
        call_id: "call_1".to_owned(),
        name: "apply_patch".to_owned(),
        namespace: None,
        payload: ToolPayload::Custom { input: patch.to_owned() },
    };
    let outcome = Registry::builtin().run(call, Arc::new(step), caller).await;
    let proposals = judge.proposals.lock().clone();
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
async fn outside_or_protected_files_are_asked_about_or_refused() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = tempfile::tempdir_in(above.path()).expect("the workspace in it");
    let outside = tempfile::tempdir().expect("another");
    fs::create_dir(folder.path().join(".git")).expect("made");
    fs::create_dir_all(folder.path().join("sub/.git")).expect("made");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("made");
    std::os::unix::fs::symlink(".git", folder.path().join("sub/hidden")).expect("made");
    let target = format!("{}/x", outside.path().display());
    for path in [
        "../x",
        &target,
        ".git/hooks/pre-commit",
        ".codex/config.toml",
        ".Git/config",
        "link/x",
        "sub/.codex/config.toml",
        "sub/new/.agents/skills/a/SKILL.md",
        "sub/.git/config",
        "sub/hidden/config",
        "deep/.git",
        "deep/.OARLOCK/config.toml",
        "deep/.g\u{200c}it/config",
    ] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+hi\n*** End Patch");
        let never = workspace(AskForApproval::Never, folder.path());
        let (outcome, proposals) = run(never, &patch, Box::new(agree)).await;
        assert!(!outcome.success && proposals.is_empty(), "{path}: {}", text(&outcome));
        let Some(ThreadItem::FileChange { status, reason, .. }) = outcome.item.as_deref() else {
            panic!("{path}: clients see what is refused")
        };
        assert_eq!(
            (*status, reason.as_deref()),
            (PatchApplyStatus::Declined, Some(text(&outcome))),
            "{path}"
        );
        for approval in [AskForApproval::OnRequest, AskForApproval::Untrusted] {
            let asks = workspace(approval, folder.path());
            let (outcome, proposals) = run(asks, &patch, Box::new(|_| ProposalDecision::declined())).await;
            assert_eq!(text(&outcome), "patch rejected by user", "{path}");
            assert!(proposals[0].question.is_some(), "{path}");
        }
        let no = |proposal: &Proposal| {
            if proposal.question.is_some() { ProposalDecision::declined() } else { agree(proposal) }
        };
        let stopped = workspace(AskForApproval::OnFailure, folder.path());
        let (outcome, _) = run(stopped, &patch, Box::new(no)).await;
        assert!(!outcome.success, "{path}");
    }
    assert_eq!(fs::read_dir(folder.path().join("sub/.git")).expect("there").count(), 0);
    assert!(!folder.path().join("deep").exists());
    assert_eq!(fs::read_dir(outside.path()).expect("there").count(), 0);
    assert_eq!(fs::read_dir(folder.path().join(".git")).expect("there").count(), 0);
}

/// The server's state folder is in the workspace: the model must not write its rules.
#[tokio::test]
async fn off_limits_files_are_asked_about_or_refused_anywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let (state, listed) = (folder.path().join("state"), folder.path().join("listed"));
    fs::create_dir_all(state.join("rules")).expect("made");
    std::os::unix::fs::symlink("state", folder.path().join("link")).expect("made");
    let off_limits = sandbox::OffLimits {
        sealed: vec![state.clone()],
        protected: vec![listed.clone()],
        ..sandbox::OffLimits::default()
    };
    let options = || BenchOptions { off_limits: off_limits.clone(), ..bench().options().clone() };
    for path in ["state/rules/default.rules", "./x/../state/new", "link/rules/default.rules", "listed/x"] {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+hi\n*** End Patch");
        let never = workspace(AskForApproval::Never, folder.path());
        let (outcome, proposals) = run_on(Bench::new(options()), never, &patch, Box::new(agree)).await;
        assert!(!outcome.success && proposals.is_empty(), "{path}: {}", text(&outcome));
        let asks = workspace(AskForApproval::OnRequest, folder.path());
        let decline: Meddle = Box::new(|_| ProposalDecision::declined());
        let (_, proposals) = run_on(Bench::new(options()), asks, &patch, decline).await;
        let Some(Question::FileChange(question)) = proposals[0].question.as_deref() else { panic!("{path}") };
        assert!(question.reason.as_ref().is_some_and(|reason| reason.contains("protected")), "{path}");
        assert!(proposals[0].session_keys.is_empty(), "{path}: a yes for the session would hold for more");
    }
    assert_eq!(fs::read_dir(state.join("rules")).expect("there").count(), 0);
    assert!(!listed.exists());
}

#[tokio::test]
async fn a_replacement_patch_is_checked_like_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("another");
    let target = outside.path().join("x");
    let add = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+theirs\n*** End Patch");
    let step = || workspace(AskForApproval::Untrusted, folder.path());
    let instead = |input: String| {
        move |proposal: &Proposal| match proposal.number {
            0 => other_patch(&input),
            _ if proposal.question.is_some() => ProposalDecision::declined(),
            _ => agree(proposal),
        }
    };
    let (outcome, proposals) = run(step(), ADD, Box::new(instead(add("other.txt")))).await;
    assert!(outcome.success && outcome.diff.is_some_and(|diff| diff.contains("+theirs")));
    assert!(folder.path().join("other.txt").exists() && !folder.path().join("new.txt").exists());
    assert_eq!(proposals.iter().map(|one| one.question.is_some()).collect::<Vec<_>>(), [true, false]);
    assert_ne!(proposals[0].digest, proposals[1].digest);
    // No approval covers writing there.
    let outside = add(&target.display().to_string());
    let (outcome, _) = run(step(), ADD, Box::new(instead(outside))).await;
    assert!(!outcome.success && !target.exists());
    let (outcome, _) = run(step(), ADD, Box::new(instead("no patch".to_owned()))).await;
    assert!(!outcome.success);
}

#[tokio::test]
async fn an_approval_allows_writing_outside() {
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
async fn under_on_failure_the_question_comes_after_the_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("another");
    let target = outside.path().join("x");
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+hi\n*** End Patch", target.display());
    let step = || workspace(AskForApproval::OnFailure, folder.path());
    let no = |proposal: &Proposal| {
        if proposal.question.is_some() { ProposalDecision::declined() } else { agree(proposal) }
    };
    let (outcome, proposals) = run(step(), &patch, Box::new(no)).await;
    assert_eq!((text(&outcome), proposals.len()), ("patch rejected by user", 2));
    assert!(!target.exists());
    let (outcome, _) = run(step(), &patch, Box::new(agree)).await;
    assert!(outcome.success && target.exists());
}

#[tokio::test]
async fn a_file_that_changed_after_the_approval_is_asked_about_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.txt");
    fs::write(&file, "one\ntwo\n").expect("written");
    let path = file.clone();
    let meddle = move |proposal: &Proposal| match proposal.number {
        0 => {
            fs::write(&path, "one\nTWO\n").expect("written");
            YES
        }
        _ => ProposalDecision::declined(),
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
async fn an_approval_of_a_change_does_not_allow_writing_outside() {
    let (folder, outside) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("another"));
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
async fn invalid_patches_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for patch in ["*** Begin Patch\nnonsense\n*** End Patch", EDIT, "no patch"] {
        let step = workspace(AskForApproval::Never, folder.path());
        let (outcome, proposals) = run(step, patch, Box::new(agree)).await;
        assert!(text(&outcome).starts_with("apply_patch verification failed: "), "{}", text(&outcome));
        assert!(proposals.is_empty() && !outcome.success);
    }
}
