//! Texts for the model that belong to no tool.

/// The agent's instructions, unless configuration or catalogue replace them.
pub(crate) const BASE_INSTRUCTIONS: &str = include_str!("base.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_instructions_are_whole_and_name_no_tool() {
        assert!(BASE_INSTRUCTIONS.starts_with("You are Oarlock"));
        assert!((300..12_000).contains(&BASE_INSTRUCTIONS.len()));
        // A tool's section depends on the tool being offered; here it would always be present.
        for tool in ["update_plan", "apply_patch", "exec_command", "shell_command", "view_image"] {
            assert!(!BASE_INSTRUCTIONS.contains(tool), "{tool}");
        }
    }
}
