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


__all__ = [
    "ApplyPatch",
    "BuiltinTool",
    "CloseAgent",
    "ExecCommand",
    "GrepFiles",
    "ListDir",
    "ReadFile",
    "RequestUserInput",
    "SendInput",
    "SpawnAgent",
    "UpdatePlan",
    "ViewImage",
    "WaitAgent",
    "WebSearch",
    "WriteStdin",
]
