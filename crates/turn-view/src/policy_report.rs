//! A verdict in words for people and as JSON for programs.

use policy::{
    Because, Evaluation, Ground, PolicyVerdict, Rules, SandboxChoice, commands_of, escape_for_display,
    shell_line,
};
use protocol::{AskForApproval, SandboxPolicy};
use serde_json::{Value, json};

use crate::paint::{Paint, TextStyle};

/// Everything that is told about one command.
#[derive(Debug)]
pub struct CommandReport<'a> {
    pub verdict: PolicyVerdict,
    /// The rules that are about the command.
    pub found: Evaluation,
    pub argv: &'a [String],
    pub approval: &'a AskForApproval,
    pub sandbox: &'a SandboxPolicy,
    pub rules: &'a Rules,
    /// Rule files that cannot be used.
    pub warnings: Vec<String>,
}

impl CommandReport<'_> {
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            PolicyVerdict::Run { .. } => 0,
            PolicyVerdict::Ask { .. } => 3,
            PolicyVerdict::Forbid { .. } => 4,
        }
    }

    pub fn text(&self, paint: Paint) -> String {
        let (word, style, rest) = match &self.verdict {
            PolicyVerdict::Run { sandbox, .. } => {
                ("run", TextStyle::Good, format!(", {}", self.within(*sandbox)))
            }
            PolicyVerdict::Ask { sandbox, .. } => {
                ("ask", TextStyle::Careful, format!("; after a yes it runs {}", self.within(*sandbox)))
            }
            PolicyVerdict::Forbid { reason, .. } => {
                ("refuse", TextStyle::Bad, format!(": {}", escape_for_display(reason)))
            }
        };
        let mut lines = vec![format!("{}{rest}", paint.text(style, word))];
        for (command, grounds) in self.by_command() {
            let line = escape_for_display(&shell_line(&command));
            lines.push(format!("  {}", paint.text(TextStyle::Strong, line)));
            if grounds.is_empty() {
                lines.push("    nothing is held against it".to_owned());
            }
            lines.extend(grounds.iter().map(|ground| format!("    {}", ground.because)));
        }
        if let PolicyVerdict::Ask { amendment: Some(prefix), .. } = &self.verdict {
            let prefix = escape_for_display(&shell_line(prefix));
            lines.push(format!("A yes for good would allow whatever begins with `{prefix}`."));
        }
        lines.extend(self.warnings.iter().map(|warning| {
            format!("{} {}", paint.text(TextStyle::Careful, "warning:"), escape_for_display(warning))
        }));
        lines.push(paint.text(TextStyle::Faint, self.circumstances()));
        lines.join("\n") + "\n"
    }

    /// The shape other programs know from rule checks, and next to it what this program would do.
    pub fn json(&self) -> Value {
        let (verdict, sandbox, reason, amendment) = match &self.verdict {
            PolicyVerdict::Run { sandbox, .. } => ("run", Some(*sandbox), None, None),
            PolicyVerdict::Ask { sandbox, reason, amendment, .. } => {
                ("ask", Some(*sandbox), reason.as_ref(), amendment.as_ref())
            }
            PolicyVerdict::Forbid { reason, .. } => ("forbid", None, Some(reason), None),
        };
        let commands = self.by_command().into_iter().map(|(command, grounds)| {
            let grounds = grounds.iter().map(|ground| {
                let rule = match &ground.because {
                    Because::Rule(found) => Some(found.source.to_string()),
                    Because::Unheld(unheld) => Some(unheld.rule.source.to_string()),
                    _ => None,
                };
                json!({ "because": kind(&ground.because), "text": ground.because.to_string(), "rule": rule })
            });
            json!({ "command": command, "grounds": grounds.collect::<Vec<_>>() })
        });
        let mut answer = json!({
            "verdict": verdict,
            "effectiveSandbox": sandbox.map(|sandbox| self.sandbox_word(sandbox)),
            "reason": reason,
            "amendment": amendment,
            "commands": commands.collect::<Vec<_>>(),
            "approvalPolicy": self.approval,
            "sandbox": self.sandbox,
            "warnings": self.warnings,
        });
        if let (Some(answer), Ok(Value::Object(found))) =
            (answer.as_object_mut(), serde_json::to_value(&self.found))
        {
            answer.extend(found);
        }
        answer
    }

    /// Each command of the line with what decided about it; where that is nothing, others were decisive.
    fn by_command(&self) -> Vec<(Vec<String>, Vec<&Ground>)> {
        let grounds = &self.verdict.why().grounds;
        let others = grounds.iter().map(|ground| ground.command.clone());
        let mut commands: Vec<Vec<String>> = Vec::new();
        for command in commands_of(self.argv).list.into_iter().chain(others) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        let about = |command: &[String]| grounds.iter().filter(|ground| ground.command == command).collect();
        commands.into_iter().map(|command| (command.clone(), about(&command))).collect()
    }

    fn within(&self, sandbox: SandboxChoice) -> String {
        match sandbox {
            SandboxChoice::ReadOnlyNoNetwork => "in a sandbox without writing and without network".to_owned(),
            SandboxChoice::AsPolicy if self.is_sandboxed() => format!("in the sandbox ({})", self.mode()),
            SandboxChoice::AsPolicy => format!("without a sandbox ({})", self.mode()),
            SandboxChoice::None => "without a sandbox".to_owned(),
        }
    }

    fn sandbox_word(&self, sandbox: SandboxChoice) -> &'static str {
        match sandbox {
            SandboxChoice::ReadOnlyNoNetwork => "readOnlyNoNetwork",
            SandboxChoice::AsPolicy if self.is_sandboxed() => "policy",
            SandboxChoice::AsPolicy | SandboxChoice::None => "none",
        }
    }

    fn is_sandboxed(&self) -> bool {
        matches!(self.sandbox, SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. })
    }

    fn mode(&self) -> &'static str {
        match self.sandbox {
            SandboxPolicy::ReadOnly { .. } => "read-only",
            SandboxPolicy::WorkspaceWrite { .. } => "workspace-write",
            SandboxPolicy::DangerFullAccess => "danger-full-access",
            SandboxPolicy::ExternalSandbox { .. } => "external-sandbox",
        }
    }

    fn circumstances(&self) -> String {
        let approval = match self.approval {
            AskForApproval::Untrusted => "untrusted",
            AskForApproval::OnFailure => "on-failure",
            AskForApproval::OnRequest => "on-request",
            AskForApproval::Never => "never",
            AskForApproval::Granular { .. } => "granular",
        };
        let rules = match self.rules.prefixes().len() {
            0 => "no rules".to_owned(),
            1 => "1 rule".to_owned(),
            count => format!("{count} rules"),
        };
        format!("Approval policy {approval}, sandbox {}, {rules}.", self.mode())
    }
}

fn kind(because: &Because) -> &'static str {
    match because {
        Because::Rule(_) => "rule",
        Because::Unheld(_) => "unheldRule",
        Because::KnownSafe => "knownSafe",
        Because::ObeysRepository => "obeysRepository",
        Because::Dangerous => "dangerous",
        Because::Unmatched => "unmatched",
        Because::Escalation => "escalation",
        Because::PatchInside => "patchInside",
        Because::PatchOutside => "patchOutside",
    }
}
