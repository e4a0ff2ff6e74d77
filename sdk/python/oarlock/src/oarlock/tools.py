"""The runtime's own tools, by the names the model knows them by.

Use a class as it is, or an instance with a policy: `ExecCommand`, `ExecCommand(approval=f)`.
"""

from ._tools import BuiltinTool


class ExecCommand(BuiltinTool):
    """Runs a command in a terminal."""

    tool_name = "exec_command"


class WriteStdin(BuiltinTool):
    """Writes to a command that runs."""

    tool_name = "write_stdin"


class ApplyPatch(BuiltinTool):
    """Changes files."""

    tool_name = "apply_patch"


class ReadFile(BuiltinTool):
    """Reads a text file."""

    tool_name = "read_file"


class ListDir(BuiltinTool):
    """Lists a folder."""

    tool_name = "list_dir"


class GrepFiles(BuiltinTool):
    """Searches files."""

    tool_name = "grep_files"


class ViewImage(BuiltinTool):
    """Looks at a picture."""

    tool_name = "view_image"


class UpdatePlan(BuiltinTool):
    """Makes or changes a plan."""

    tool_name = "update_plan"


class WebSearch(BuiltinTool):
    """Searches the web, at providers that do."""

    tool_name = "web_search"


class RequestUserInput(BuiltinTool):
    """Asks the user."""

    tool_name = "request_user_input"


class SpawnAgent(BuiltinTool):
    """Starts a child agent."""

    tool_name = "spawn_agent"


class SendInput(BuiltinTool):
    """Speaks to a child agent."""

    tool_name = "send_input"


class WaitAgent(BuiltinTool):
    """Waits for child agents."""

    tool_name = "wait_agent"


class CloseAgent(BuiltinTool):
    """Ends a child agent."""

    tool_name = "close_agent"


class Shell(BuiltinTool):
    """Runs a command given as a list of words."""

    tool_name = "shell"


class ShellCommand(BuiltinTool):
    """Runs a command given as one line."""

    tool_name = "shell_command"


class RequestPermissions(BuiltinTool):
    """Asks for permissions."""

    tool_name = "request_permissions"


class ImageGeneration(BuiltinTool):
    """Makes pictures, at providers that do."""

    tool_name = "image_generation"


class ResumeAgent(BuiltinTool):
    """Takes up a child agent again."""

    tool_name = "resume_agent"


class SpawnAgentsOnCsv(BuiltinTool):
    """Starts a child agent for each row of a table."""

    tool_name = "spawn_agents_on_csv"


class ReportAgentJobResult(BuiltinTool):
    """Reports the result of a row; for the agents of a table."""

    tool_name = "report_agent_job_result"


class JsRepl(BuiltinTool):
    """Runs JavaScript in a session."""

    tool_name = "js_repl"


class JsReplReset(BuiltinTool):
    """Starts that session anew."""

    tool_name = "js_repl_reset"


class ScriptExec(BuiltinTool):
    """Runs JavaScript that calls other tools."""

    tool_name = "exec"


class ScriptWait(BuiltinTool):
    """Waits for such a script."""

    tool_name = "wait"


class ToolSearch(BuiltinTool):
    """Finds tools that were not offered at first."""

    tool_name = "tool_search"


class SearchToolBm25(BuiltinTool):
    """Finds tools of apps by words."""

    tool_name = "search_tool_bm25"


class ToolSuggest(BuiltinTool):
    """Suggests a tool that is not installed."""

    tool_name = "tool_suggest"


class UpdateGoal(BuiltinTool):
    """Says how far a goal is."""

    tool_name = "update_goal"


class TestSyncTool(BuiltinTool):
    """For tests of parallel calls."""

    tool_name = "test_sync_tool"


class ListMcpResources(BuiltinTool):
    """Lists resources of MCP servers."""

    tool_name = "list_mcp_resources"


class ListMcpResourceTemplates(BuiltinTool):
    """Lists templates of such resources."""

    tool_name = "list_mcp_resource_templates"


class ReadMcpResource(BuiltinTool):
    """Reads a resource of an MCP server."""

    tool_name = "read_mcp_resource"


__all__ = [
    "ApplyPatch",
    "BuiltinTool",
    "CloseAgent",
    "ExecCommand",
    "GrepFiles",
    "ImageGeneration",
    "JsRepl",
    "JsReplReset",
    "ListDir",
    "ListMcpResourceTemplates",
    "ListMcpResources",
    "ReadFile",
    "ReadMcpResource",
    "ReportAgentJobResult",
    "RequestPermissions",
    "RequestUserInput",
    "ResumeAgent",
    "ScriptExec",
    "ScriptWait",
    "SearchToolBm25",
    "SendInput",
    "Shell",
    "ShellCommand",
    "SpawnAgent",
    "SpawnAgentsOnCsv",
    "TestSyncTool",
    "ToolSearch",
    "ToolSuggest",
    "UpdateGoal",
    "UpdatePlan",
    "ViewImage",
    "WaitAgent",
    "WebSearch",
    "WriteStdin",
]
