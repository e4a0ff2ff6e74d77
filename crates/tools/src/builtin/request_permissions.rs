//! `request_permissions`: requests permissions beyond the sandbox policy before they are needed.

use std::path::Path;

use engine::{Proposal, Question, ToolOutcome};
use protocol::{
    AbsolutePath, AdditionalFileSystemPermissions, AdditionalNetworkPermissions, AskForApproval,
    GrantedPermissionProfile, ItemId, OperationType, PermissionGrantScope, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, RequestPermissionProfile, ToolEffects,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::digest_of;
use crate::exec::refuse_sealed;
use crate::files::access::absolute;
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const FEATURE: &str = "request_permissions_tool";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Why you need them, in one short sentence for the user.
    reason: Option<String>,
    /// What you need.
    permissions: PermissionSetArgs,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PermissionSetArgs {
    network: Option<NetworkArgs>,
    file_system: Option<Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NetworkArgs {
    /// True to use the network.
    enabled: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Files {
    /// Absolute paths to read, with all that is beneath them.
    read: Option<Vec<String>>,
    /// Absolute paths to write to, with all that is beneath them.
    write: Option<Vec<String>>,
}

/// The turn or the session stores granted permissions; later commands run with them.
#[derive(Debug, Clone, Copy)]
pub struct RequestPermissions;

impl BuiltinTool for RequestPermissions {
    const NAME: &'static str = "request_permissions";
    const ABOUT: &'static str = "Ask the user for access beyond the sandbox: to the network, or to paths. Wait for the \
        answer, which says what was granted: all of it, a part or nothing. Commands you run afterwards have it.";
    const PROMPT: Option<&'static str> = Some(include_str!("request_permissions.md"));
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.has_feature(FEATURE))
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let permissions = profile(args.permissions, cx.cwd())?;
        if permissions.network.is_none() && permissions.file_system.is_none() {
            return Err(ToolError::Failed("permissions must name at least one thing you need".to_owned()));
        }
        refuse_sealed(&cx.bench().options().off_limits, permissions.file_system.as_ref())?;
        if !may_ask(&cx.step().approval_policy) {
            return Ok(text(told(&nothing())));
        }
        let arguments = json!({"reason": args.reason, "permissions": permissions});
        let question = PermissionsRequestApprovalParams {
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            item_id: ItemId::new(cx.call_id()),
            started_at_ms: 0,
            cwd: cx.step().cwd.clone(),
            reason: args.reason,
            permissions,
            operation_id: None,
            arguments_digest: None,
        };
        let proposal = Proposal {
            number: 0,
            kind: OperationType::Permission,
            effects: ToolEffects::Readonly,
            item: None,
            outlives: false,
            digest: digest_of(&arguments),
            arguments,
            question: Some(Box::new(Question::Permissions(question))),
            session_keys: Vec::new(),
        };
        Ok(text(match cx.propose(proposal).await.permissions() {
            Some(granted) => told(&granted),
            None => told(&nothing()),
        }))
    }
}

/// Whether a client would be asked. If not, nothing is granted.
fn may_ask(policy: &AskForApproval) -> bool {
    match policy {
        AskForApproval::Never => false,
        AskForApproval::Granular { request_permissions, .. } => *request_permissions,
        AskForApproval::Untrusted | AskForApproval::OnFailure | AskForApproval::OnRequest => true,
    }
}

fn nothing() -> PermissionsRequestApprovalResponse {
    PermissionsRequestApprovalResponse {
        permissions: GrantedPermissionProfile { network: None, file_system: None },
        scope: PermissionGrantScope::Turn,
        origin: None,
    }
}

/// Resolved paths, so that the user sees exactly what is granted.
fn profile(wanted: PermissionSetArgs, cwd: &Path) -> Result<RequestPermissionProfile, ToolError> {
    let enabled = wanted.network.and_then(|network| network.enabled) == Some(true);
    let network = enabled.then_some(AdditionalNetworkPermissions { enabled: Some(true) });
    let paths = |paths: Option<Vec<String>>| -> Result<Option<Vec<AbsolutePath>>, ToolError> {
        let mut all = Vec::new();
        for path in paths.unwrap_or_default() {
            let path = AbsolutePath::new(absolute(cwd, &path)?.display().to_string());
            all.extend(path.filter(|path| !all.contains(path)));
        }
        Ok((!all.is_empty()).then_some(all))
    };
    let Files { read, write } = wanted.file_system.unwrap_or(Files { read: None, write: None });
    let (read, write) = (paths(read)?, paths(write)?);
    let any = read.is_some() || write.is_some();
    let file_system = any.then_some(AdditionalFileSystemPermissions { read, write });
    Ok(RequestPermissionProfile { network, file_system })
}

/// The granted permissions, in the form of the tool's parameters.
fn told(granted: &PermissionsRequestApprovalResponse) -> String {
    let PermissionsRequestApprovalResponse { permissions, scope, .. } = granted;
    let file_system = permissions.file_system.as_ref();
    let file_system = file_system.map(|files| json!({"read": files.read, "write": files.write}));
    let network = permissions.network.as_ref().map(|network| json!({"enabled": network.enabled}));
    let permissions: Value = json!({"network": network, "file_system": file_system});
    json!({"permissions": permissions, "scope": scope}).to_string()
}

#[cfg(test)]
mod tests {
    use engine::ProposalDecision;

    use super::*;
    use crate::Registry;
    use crate::scene::Scene;

    const NOTHING: &str = r#"{"permissions":{"network":null,"file_system":null},"scope":"turn"}"#;

    fn scene(approval_policy: AskForApproval, decided: ProposalDecision) -> Scene {
        let mut scene = Scene::deciding(decided);
        scene.step.approval_policy = approval_policy;
        scene
    }

    fn granular(request_permissions: bool) -> AskForApproval {
        AskForApproval::Granular {
            sandbox_approval: true,
            rules: true,
            skill_approval: true,
            request_permissions,
            mcp_elicitations: true,
        }
    }

    fn granted(response: Value) -> ProposalDecision {
        ProposalDecision::granted(&serde_json::from_value(response).expect("a response"))
    }

    #[tokio::test]
    async fn the_user_is_asked_and_the_model_gets_the_grant() {
        let grant =
            granted(json!({"permissions": {"fileSystem": {"read": null, "write": ["/w"]}}, "scope": "turn"}));
        let scene = scene(AskForApproval::OnRequest, grant);
        let arguments = json!({"reason": "need", "permissions": {"file_system": {"write": ["/w"]}}});
        let (text, success) = scene.run_text("request_permissions", arguments).await;
        let expected =
            r#"{"permissions":{"network":null,"file_system":{"read":null,"write":["/w"]}},"scope":"turn"}"#;
        assert_eq!((text.as_str(), success), (expected, true));
        let proposals = scene.proposals();
        let [proposal] = proposals.as_slice() else { panic!("{proposals:?}") };
        assert_eq!((&proposal.kind, &proposal.item), (&OperationType::Permission, &None));
        let Some(Question::Permissions(asked)) = proposal.question.as_deref() else { panic!("{proposal:?}") };
        assert_eq!(asked.reason.as_deref(), Some("need"));
        assert_eq!(
            serde_json::to_value(&asked.permissions).expect("plain data"),
            json!({"network": null, "fileSystem": {"read": null, "write": ["/w"]}})
        );
    }

    #[tokio::test]
    async fn paths_are_shown_resolved() {
        let scene = scene(granular(true), ProposalDecision::declined());
        let arguments = json!({"permissions": {
            "network": {"enabled": true},
            "file_system": {"read": ["../x", "/a/./b/../c", "/a/c"], "write": []},
        }});
        let (text, _) = scene.run_text("request_permissions", arguments).await;
        assert_eq!(text, NOTHING);
        let proposals = scene.proposals();
        let Some(Question::Permissions(asked)) = proposals[0].question.as_deref() else {
            panic!("{proposals:?}")
        };
        assert_eq!(
            serde_json::to_value(&asked.permissions).expect("plain data"),
            json!({"network": {"enabled": true}, "fileSystem": {"read": ["/x", "/a/c"], "write": null}})
        );
    }

    #[tokio::test]
    async fn under_policies_without_questions_nothing_is_granted() {
        for policy in [AskForApproval::Never, granular(false)] {
            let everything =
                granted(json!({"permissions": {"network": {"enabled": true}}, "scope": "session"}));
            let scene = scene(policy, everything);
            let arguments = json!({"permissions": {"network": {"enabled": true}}});
            assert_eq!(scene.run_text("request_permissions", arguments).await, (NOTHING.to_owned(), true));
            assert!(scene.proposals().is_empty());
        }
    }

    #[tokio::test]
    async fn a_session_grant_says_so() {
        let grant = granted(json!({"permissions": {"network": {"enabled": true}}, "scope": "session"}));
        let scene = scene(AskForApproval::Untrusted, grant);
        let arguments = json!({"permissions": {"network": {"enabled": true}}});
        let expected = r#"{"permissions":{"network":{"enabled":true},"file_system":null},"scope":"session"}"#;
        assert_eq!(scene.run_text("request_permissions", arguments).await.0, expected);
    }

    #[tokio::test]
    async fn an_empty_request_is_refused() {
        for (permissions, expected) in [
            (json!({}), "must name at least one thing"),
            (json!({"network": {"enabled": false}}), "must name at least one thing"),
            (json!({"file_system": {"read": []}}), "must name at least one thing"),
            (json!({"file_system": {"read": ["a\0"]}}), "it contains a NUL character"),
            (json!({"file_system": {"write": ["x".repeat(5_000)]}}), "it is longer than 4096 bytes"),
            (json!({"file_system": {"write": [""]}}), "it is empty"),
            (json!({"fileSystem": {}}), "unknown field `fileSystem`"),
        ] {
            let scene = scene(AskForApproval::OnRequest, ProposalDecision::declined());
            let (text, success) =
                scene.run_text("request_permissions", json!({"permissions": permissions})).await;
            assert!(text.contains(expected) && !success, "{text}");
            assert!(scene.proposals().is_empty());
        }
    }

    #[test]
    fn it_is_offered_only_with_its_feature() {
        for features in [vec![], vec![FEATURE.to_owned()]] {
            let there = !features.is_empty();
            let offer = Offer { features: features.into_iter().collect(), ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            assert_eq!(specs.iter().any(|spec| spec.name == "request_permissions"), there);
        }
    }

    #[tokio::test]
    async fn impossible_permissions_are_refused_without_asking() {
        let grant = granted(
            json!({"permissions": {"fileSystem": {"read": ["/sealed"], "write": null}}, "scope": "turn"}),
        );
        let scene = scene(AskForApproval::OnRequest, grant).hiding(&[Path::new("/sealed")]);
        for paths in [json!({"read": ["/sealed/key"]}), json!({"write": ["/x/../sealed"]})] {
            let wanted = json!({"permissions": {"file_system": paths}});
            let (text, success) = scene.run_text("request_permissions", wanted).await;
            assert!(!success && text.contains("commands never get access to it"), "{text}");
        }
    }
}
