//! The path of one command from a request to an approved order.

use std::ffi::OsStr;

use engine::{Proposal, Question};
use policy::{Escalation, Executables, SandboxChoice, SessionKey, StoppedAttempt};
use protocol::{AskForApproval, OperationDecision, OperationType, ThreadItem, ToolEffects};
use sandbox::{Confinement, Frozen, Limits, Order, freeze_sandboxed};
use serde_json::json;

use super::identity::CommandIdentity;
use super::item::begun;
use super::pin::pin;
use super::question::{ToolCommandQuestion, question};
use super::setting::Setting;
use super::{Blocked, Go, Here, Wish, confine, may_ask, must_ask};
use super::{planted_variables, start_files};
use crate::digest::digest_of;
use crate::remote::{Elsewhere, Errand, RemoteCommand};

/// Marks commands without network access, so that they need not try.
const NO_NETWORK: (&str, &str) = ("CODEX_SANDBOX_NETWORK_DISABLED", "1");
/// Limit of changes while a command is being decided; then it is refused.
const MOST_CHANGES: u32 = 5;

/// A command on its way to a process.
#[derive(Debug)]
pub(crate) struct Authorization {
    setting: Setting,
    wish: Wish,
    item: ThreadItem,
    /// Of the next proposal.
    number: u32,
    /// Its item has started and not ended.
    open: bool,
    /// A client replaced the command, so it need not be asked about its own.
    replaced: bool,
}

/// The outcome of a proposal.
enum Settled {
    Go(Box<Go>),
    /// A sentence that names the file that changed after the decision.
    Changed(String),
    /// A client wants another command instead.
    Replaced,
}

/// The policy's decision about an attempt, before a question.
struct AttemptPlan {
    sandbox: SandboxChoice,
    ask: Option<ToolCommandQuestion>,
}

struct Prepared {
    go: Go,
    identity: CommandIdentity,
    proposal: Proposal,
}

impl Authorization {
    pub(crate) fn new(setting: Setting, wish: Wish) -> Self {
        let item = begun(&setting, &wish.argv, &wish.cwd, wish.source, wish.process_id.clone());
        Self { setting, wish, item, number: 0, open: false, replaced: false }
    }

    pub(crate) fn setting(&self) -> &Setting {
        &self.setting
    }

    pub(crate) fn item(&self) -> &ThreadItem {
        &self.item
    }

    /// For the caller that follows the running command.
    pub(crate) fn into_parts(self) -> (Setting, ThreadItem) {
        (self.setting, self.item)
    }

    /// Whether the caller that runs the command must end its item.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Decides the first attempt. The order must start at once: it depends on the current files.
    pub(crate) async fn clear(&mut self) -> Result<Go, Blocked> {
        let mut change = None;
        for _ in 0..MOST_CHANGES {
            let plan = self.decide(change.as_deref()).await?;
            match self.settle(plan).await? {
                Settled::Go(go) => return Ok(*go),
                Settled::Changed(found) => change = Some(found),
                Settled::Replaced => change = None,
            }
        }
        Err(Blocked::Failed("what the command runs goes on changing".to_owned()))
    }

    /// Decides a second attempt without a sandbox. Needs its own question: approving the sandboxed command does not
    /// cover it.
    pub(crate) async fn clear_unsandboxed(&mut self) -> Result<Go, Blocked> {
        let mut reason = "the sandbox stopped the command; run it again without a sandbox?".to_owned();
        let amendment = self.amendment_without_sandbox().await;
        for _ in 0..MOST_CHANGES {
            let ask =
                ToolCommandQuestion { reason: Some(reason), amendment: amendment.clone(), every_time: false };
            match self.settle(AttemptPlan { sandbox: SandboxChoice::None, ask: Some(ask) }).await? {
                Settled::Go(go) => return Ok(*go),
                Settled::Changed(change) => reason = format!("{}, without a sandbox", changed(&change)),
                // The sandbox stopped another command, so this one is decided from the beginning.
                Settled::Replaced => return Box::pin(self.clear()).await,
            }
        }
        Err(Blocked::Failed("what the command runs goes on changing".to_owned()))
    }

    /// For a command of the user: needs no decision and is only shown and recorded.
    pub(crate) async fn clear_for_user(&mut self) -> Result<Go, Blocked> {
        let plan = AttemptPlan { sandbox: SandboxChoice::None, ask: None };
        let Prepared { mut go, proposal, .. } = self.prepare(plan)?;
        if let Go::Here(here) = &mut go {
            planted_variables::leave_out(&mut here.order, &self.setting);
            if start_files::are_writable(&self.setting) {
                start_files::leave_out(&mut here.order);
            }
        }
        match self.propose(proposal).await? {
            true => Ok(go),
            false => Err(Blocked::Declined),
        }
    }

    /// Whether the sandbox stopped an attempt that ended like this, and it may be retried without.
    pub(crate) fn may_retry(&self, confined: bool, exit_code: i32, output: &str) -> bool {
        confined
            && policy::looks_denied(exit_code, output)
            && policy::may_retry_unsandboxed(&self.setting.approval, StoppedAttempt::Command)
    }

    async fn judge(&self, approval: &AskForApproval, escalation: Escalation) -> policy::PolicyVerdict {
        let rules = self.setting.rules.current(&self.setting.sink).await;
        policy::decide(&policy::CommandQuestion {
            argv: &self.wish.argv,
            approval,
            sandbox: &self.setting.sandbox,
            escalation,
            prefix_rule: self.wish.permissions.prefix_rule.as_deref(),
            rules: &rules,
            executables: &self.executables(),
        })
    }

    /// The prefix for a permanent approval: the same as if the model had asked to leave the sandbox.
    async fn amendment_without_sandbox(&self) -> Option<Vec<String>> {
        match self.judge(&AskForApproval::OnRequest, Escalation::RequireEscalated).await {
            policy::PolicyVerdict::Ask { amendment, .. } => amendment,
            policy::PolicyVerdict::Run { .. } | policy::PolicyVerdict::Forbid { .. } => None,
        }
    }

    async fn decide(&self, change: Option<&str>) -> Result<AttemptPlan, Blocked> {
        let verdict = self.judge(&self.setting.approval, self.wish.permissions.escalation).await;
        let (sandbox, ask) = match verdict {
            verdict if let Some(place) = &self.setting.elsewhere => self.decide_elsewhere(verdict, place)?,
            policy::PolicyVerdict::Forbid { reason, .. } => return Err(Blocked::Forbidden(reason)),
            policy::PolicyVerdict::Run { sandbox, .. } => (sandbox, None),
            policy::PolicyVerdict::Ask { sandbox, reason, amendment, .. } => {
                let reason = self.wish.permissions.justification.clone().or(reason);
                (sandbox, Some(ToolCommandQuestion { reason, amendment, every_time: false }))
            }
        };
        let ask = ask.or_else(|| self.setting.ask_always.then(ToolCommandQuestion::default));
        let ask = ask.filter(|_| !self.replaced);
        let ask = match change {
            // The policy or a client approved something that has changed since.
            Some(change) if self.may_ask() => Some(ToolCommandQuestion {
                reason: Some(changed(change)),
                amendment: ask.and_then(|ask| ask.amendment),
                every_time: true,
            }),
            _ => ask,
        };
        Ok(AttemptPlan { sandbox, ask })
    }

    /// Other environments have no sandbox, and programs there cannot be verified by name. So only a rule, or a policy
    /// without a sandbox, allows a command without a question.
    fn decide_elsewhere(
        &self,
        verdict: policy::PolicyVerdict,
        place: &Elsewhere,
    ) -> Result<(SandboxChoice, Option<ToolCommandQuestion>), Blocked> {
        let Setting { approval, sandbox, .. } = &self.setting;
        let reason = match verdict {
            policy::PolicyVerdict::Forbid { reason, .. } => return Err(Blocked::Forbidden(reason)),
            // Only a rule removes the sandbox.
            policy::PolicyVerdict::Run { sandbox: SandboxChoice::None, .. } => {
                return Ok((SandboxChoice::None, None));
            }
            policy::PolicyVerdict::Run { .. } if !must_ask(approval, sandbox) => {
                return Ok((SandboxChoice::None, self.setting.ask_always.then(|| elsewhere(place, None))));
            }
            policy::PolicyVerdict::Run { .. } => None,
            policy::PolicyVerdict::Ask { reason, .. } => reason,
        };
        if !self.may_ask() {
            let line = policy::shell_line(&self.wish.argv);
            return Err(Blocked::Forbidden(format!("`{line}` was rejected: {}", place.unconfined())));
        }
        let reason = self.wish.permissions.justification.clone().or(reason);
        Ok((SandboxChoice::None, Some(elsewhere(place, reason))))
    }

    fn may_ask(&self) -> bool {
        self.setting.ask_always || may_ask(&self.setting.approval)
    }

    /// Proposes, and checks the files again. `Changed` says what differs from the decision.
    async fn settle(&mut self, plan: AttemptPlan) -> Result<Settled, Blocked> {
        let (by_rule, is_asked) =
            (plan.sandbox == SandboxChoice::None && plan.ask.is_none(), plan.ask.is_some());
        let sandbox = plan.sandbox;
        let is_let_out = self.is_let_out(&plan);
        let Prepared { mut go, identity, proposal } = self.prepare(plan)?;
        if let (Go::Here(here), true) = (&mut go, by_rule) {
            leave_out_profile(&mut here.order.argv);
        }
        let roots = go.writable().to_vec();
        self.setting.roots.search_first(&roots).await;
        if !self.propose(proposal).await? {
            return Ok(Settled::Replaced);
        }
        if let (true, Go::Here(here)) = (is_let_out, &mut go) {
            here.frozen = Some(self.freeze().await?);
        }
        if let Some(change) = self.identity()?.change_since(&identity) {
            return Ok(Settled::Changed(change));
        }
        if let Go::Here(here) = &mut go {
            // Not part of the approval: it only restricts further, and may change at any moment.
            if let Some(confinement) = here.order.confinement.as_mut().filter(|_| is_asked) {
                self.hide_what_came_since(confinement, sandbox);
            }
            if let Some(sandbox) =
                here.order.confinement.as_mut().filter(|sandbox| !sandbox.writable.is_empty())
            {
                sandbox.protected_paths.extend(self.setting.roots.protected(&roots));
                self.setting.search_after = Some(self.setting.roots.search_after(&roots));
            }
            let goes_without = is_let_out && start_files::are_writable(&self.setting);
            if !goes_without {
                self.setting.profile.hasten(&mut here.order, &self.setting.options, &self.setting.cwd);
            }
            if is_let_out && let Some(change) = pin_contents(here, &identity)? {
                return Ok(Settled::Changed(change));
            }
            if is_let_out {
                planted_variables::leave_out(&mut here.order, &self.setting);
            }
            if goes_without {
                start_files::leave_out(&mut here.order);
            }
        }
        Ok(Settled::Go(Box::new(go)))
    }

    /// Hides credentials that were created while the decision took its time.
    fn hide_what_came_since(&self, confinement: &mut Confinement, sandbox: SandboxChoice) {
        let additional = self.wish.permissions.additional.as_ref();
        let now = confine::confinement(&self.setting, sandbox, additional);
        let hidden = now.into_iter().flat_map(|now| now.hidden);
        let new: Vec<_> = hidden.filter(|place| !confinement.hidden.contains(place)).collect();
        confinement.hidden.extend(new);
    }

    async fn freeze(&self) -> Result<Frozen, Blocked> {
        let frozen = tokio::select! {
            frozen = freeze_sandboxed() => frozen,
            () = self.setting.scope.cancelled() => return Err(Blocked::Failed("aborted by user".to_owned())),
        };
        frozen.map_err(|error| {
            Blocked::Failed(format!("it cannot be made sure that what was approved is what runs: {error}"))
        })
    }

    /// A client or a rule allows more than the sandbox. Sandboxed processes must not influence what runs.
    fn is_let_out(&self, plan: &AttemptPlan) -> bool {
        let is_here = self.setting.elsewhere.is_none();
        let is_sandboxed = confine::is_sandboxed(&self.setting);
        is_here
            && ((plan.sandbox == SandboxChoice::None && is_sandboxed)
                || (plan.ask.is_some() && !is_sandboxed))
    }

    /// Whether to continue with it; otherwise another command has replaced it.
    async fn propose(&mut self, proposal: Proposal) -> Result<bool, Blocked> {
        self.number += 1;
        match self.setting.sink.propose(proposal).await.decision {
            // The engine saved the rule already, before the operation was recorded as started.
            OperationDecision::Approve { .. } => {
                self.open = true;
                Ok(true)
            }
            OperationDecision::Replace { command: Some(command), .. } => {
                let Wish { cwd, source, process_id, .. } = &self.wish;
                self.item = begun(&self.setting, &command, cwd, *source, process_id.clone());
                (self.wish.argv, self.replaced) = (command, true);
                Ok(false)
            }
            _ => {
                self.open = false;
                Err(Blocked::Declined)
            }
        }
    }

    fn executables(&self) -> Executables {
        let path = self.setting.options.env.get("PATH").map_or(OsStr::new(""), OsStr::new);
        let executables = Executables::new(path, &self.wish.cwd, &confine::writable(&self.setting))
            .with_environment(&self.setting.options.env);
        match self.setting.elsewhere {
            // In another environment it is unknown which file a name refers to.
            Some(_) => executables.by_name_alone(),
            None => executables,
        }
    }

    fn identity(&self) -> Result<CommandIdentity, Blocked> {
        self.identity_among(&self.executables())
    }

    fn identity_among(&self, executables: &Executables) -> Result<CommandIdentity, Blocked> {
        if self.setting.elsewhere.is_some() {
            return Ok(CommandIdentity::elsewhere(&self.wish.cwd));
        }
        CommandIdentity::of(&self.wish.argv, &self.wish.cwd, executables).map_err(|error| {
            let cwd = self.wish.cwd.display();
            Blocked::Failed(format!("the working directory {cwd} is not usable: {error}"))
        })
    }

    fn prepare(&self, AttemptPlan { sandbox, ask }: AttemptPlan) -> Result<Prepared, Blocked> {
        let executables = self.executables();
        let identity = self.identity_among(&executables)?;
        let additional = self.wish.permissions.additional.as_ref();
        let confinement = confine::confinement(&self.setting, sandbox, additional);
        let env = self.extra_env(confinement.as_ref());
        let mut digested = json!({
            "argv": self.wish.argv,
            "identity": identity.json(),
            "env": env,
            "confinement": confinement,
            "tty": self.wish.tty,
        });
        let mut arguments = json!({
            "command": self.wish.argv,
            "cwd": self.wish.cwd.to_string_lossy(),
            "tty": self.wish.tty,
            "sandboxed": confinement.is_some(),
        });
        if let Some(place) = &self.setting.elsewhere {
            digested["environment"] = place.json();
            arguments["environmentId"] = place.id().into();
        }
        // For clients that decide without being asked: they follow from the command, so no digest needs them.
        if let (Some(_), ThreadItem::CommandExecution { command_actions, .. }) = (&ask, &self.item) {
            arguments["commandActions"] = json!(command_actions);
        }
        let digest = digest_of(&digested);
        let session_keys = match &ask {
            Some(ask) if ask.every_time => Vec::new(),
            // A session approval without a sandbox would also cover later changes of the project's files.
            _ if confinement.is_none() && policy::obeys_project(&self.wish.argv, &executables) => Vec::new(),
            _ => vec![self.session_key(&identity, &executables, &env, confinement.is_some())],
        };
        let asked = ask.map(|ask| Box::new(Question::Command(question(&self.wish, &self.item, ask))));
        let proposal = Proposal {
            number: self.number,
            kind: OperationType::Command,
            effects: ToolEffects::Once,
            item: Some(Box::new(self.item.clone())),
            outlives: self.wish.outlives,
            arguments,
            digest,
            question: asked,
            session_keys,
        };
        let go = self.go(&identity, env, confinement)?;
        Ok(Prepared { go, identity, proposal })
    }

    fn go(
        &self,
        identity: &CommandIdentity,
        env: Vec<(String, String)>,
        sandbox: Option<Confinement>,
    ) -> Result<Go, Blocked> {
        if let Some(place) = &self.setting.elsewhere {
            let Wish { argv, cwd, tty, .. } = &self.wish;
            let task = RemoteCommand { argv, cwd, env: &env, reads: *tty };
            let order = place.order(&self.setting.options.env);
            let errand = order.and_then(|order| Errand::new(place.clone(), order, &task));
            return errand.map(|errand| Go::There(Box::new(errand))).map_err(Blocked::Failed);
        }
        let mut whole = self.setting.options.env.clone();
        whole.extend(env);
        let order = Order {
            argv: self.wish.argv.clone(),
            // Without links, which could be changed after the last check.
            cwd: identity.cwd().to_owned(),
            env: whole,
            confinement: sandbox,
            limits: Limits::default(),
            terminal: self.wish.tty,
        };
        Ok(Go::Here(Box::new(Here { order, pinned: Vec::new(), frozen: None })))
    }

    /// The command's variables, in addition to the thread's.
    fn extra_env(&self, confinement: Option<&Confinement>) -> Vec<(String, String)> {
        let network = confine::has_network(&self.setting, confinement);
        let extra = self.wish.extra_env.iter().chain((!network).then_some(&NO_NETWORK));
        extra.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn session_key(
        &self,
        identity: &CommandIdentity,
        executables: &Executables,
        env: &[(String, String)],
        confined: bool,
    ) -> String {
        let additional = self.wish.permissions.additional.as_ref();
        let additional = additional.and_then(|profile| serde_json::to_string(profile).ok());
        let call = policy::SessionCall {
            argv: &self.wish.argv,
            cwd: identity.cwd(),
            escalation: self.wish.permissions.escalation,
            additional: additional.as_deref(),
            tty: self.wish.tty,
            environment: env,
        };
        let key = SessionKey::new(&call, executables);
        // The key must be a string, and the JSON distinguishes all cases.
        let place = self.setting.elsewhere.as_ref().map(Elsewhere::json);
        digest_of(&json!([format!("{key:?}"), identity.json(), confined, place]))
    }
}

/// A rule was checked against the programs on the command's own `PATH`, so a profile must not change it.
fn leave_out_profile(argv: &mut [String]) {
    if policy::shell_script(argv).is_some_and(|call| call.flag == "-lc") {
        "-c".clone_into(&mut argv[1]);
    }
}

/// Replaces file names by their approved contents. Returns what has changed, if anything.
fn pin_contents(here: &mut Here, identity: &CommandIdentity) -> Result<Option<String>, Blocked> {
    if identity.pinnable() == 0 {
        return Ok(None);
    }
    let contents = identity.contents();
    if contents.len() < identity.pinnable() {
        return Ok(Some("the files it names".to_owned()));
    }
    let always = here.frozen.as_ref().is_some_and(Frozen::is_anything);
    let pinned = pin(&here.order.argv, &contents, always)
        .map_err(|error| Blocked::Failed(format!("what was approved cannot be kept as it is: {error}")))?;
    (here.order.argv, here.pinned) = (pinned.argv, pinned.files);
    Ok(None)
}

/// Offers no permanent rule: it could not be limited to this environment.
fn elsewhere(place: &Elsewhere, reason: Option<String>) -> ToolCommandQuestion {
    ToolCommandQuestion { reason: Some(place.reason(reason)), ..ToolCommandQuestion::default() }
}

fn changed(what: &str) -> String {
    format!("{what} changed after this was decided; run it as it is now?")
}
