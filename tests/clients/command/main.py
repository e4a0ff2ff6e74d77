"""Threads that go from the binary to the reference's command and back. Usage: main.py BINARY WORK_DIR CLIENT [PART_OF_A_NAME]"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from scripted_model import ScriptedModel, texts

SECONDS = 120
CONFIG = (Path(__file__).resolve().parent.parent / "config.toml").read_text()


class World:
    """A home for each of the two programs, a workspace, and a model that both ask."""

    def __init__(self, binary: Path, client: Path, folder: Path) -> None:
        self.binary, self.client = binary, client
        self.model = ScriptedModel()
        self.ours, self.theirs, self.workspace = folder / "ours", folder / "theirs", folder / "workspace"
        for place in (self.ours, self.theirs, self.workspace):
            place.mkdir(parents=True)
        for home in (self.ours, self.theirs):
            (home / "config.toml").write_text(CONFIG.replace("{base_url}", self.model.base_url))

    def run(self, program: Path, home: Path, *arguments: str) -> str:
        env = {name: os.environ[name] for name in os.environ if not name.startswith(("CODEX_", "OARLOCK_", "OPENAI_"))}
        env |= {"CODEX_HOME": str(home), "OARLOCK_HOME": str(home), "HOME": str(home)}
        done = subprocess.run(
            [program, *arguments], cwd=self.workspace, env=env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )
        said = f"{program.name} {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()[-400:]}"
        assert done.returncode == 0, said
        return done.stdout

    def oarlock(self, *arguments: str) -> str:
        return self.run(self.binary, self.ours, *arguments)

    def codex(self, *arguments: str) -> str:
        return self.run(self.client, self.theirs, *arguments)

    def asked(self) -> list[str]:
        """The texts of the last request."""
        report = self.model.report()
        assert not report["unused"] and not report["unexpected"], report["unexpected"] or "the script was not played"
        return texts(self.model.requests[-1].body)


def thread_id(events: str) -> str:
    started = [json.loads(line) for line in events.splitlines() if line.startswith('{"type":"thread.started"')]
    assert started, events[-400:]
    return str(started[0]["thread_id"])


def in_order(wanted: list[str], said: list[str]) -> None:
    """Each of the texts is there, one after the other."""
    rest = iter(said)
    missing = [text for text in wanted if not any(text == one for one in rest)]
    assert not missing, f"{missing} is not where it belongs in {said}"


def exported(world: World) -> None:
    world.model.play({"run": "echo 4711"}, {"text": "the first answer"})
    thread = thread_id(world.oarlock("exec", "--skip-git-repo-check", "--json", "the first question"))
    path = Path(world.oarlock("threads", "export", thread, "--to", str(world.theirs)).strip())
    assert path.is_file() and path.is_relative_to(world.theirs / "sessions"), path
    world.model.play({"text": "the second answer"})
    said = world.codex("exec", "--skip-git-repo-check", "resume", thread, "the second question")
    assert "the second answer" in said, said
    asked = world.asked()
    in_order(["the first question", "the first answer", "the second question"], asked)
    assert any("4711" in text for text in asked), "the output of the command is gone"
    # The reference goes on in the file that was written for it.
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert any(line["payload"].get("message") == "the second answer" for line in lines), path


def imported(world: World) -> None:
    world.model.play({"run": "echo 4711"}, {"text": "the first answer"})
    thread = thread_id(world.codex("exec", "--skip-git-repo-check", "--json", "the first question"))
    (rollout,) = (world.theirs / "sessions").rglob(f"*{thread}.jsonl")
    before = rollout.read_bytes()
    assert thread in world.oarlock("threads", "import", str(rollout))
    world.model.play({"text": "the second answer"})
    world.oarlock("exec", "--skip-git-repo-check", "resume", thread, "the second question")
    in_order(["the first question", "the first answer", "the second question"], world.asked())
    assert rollout.read_bytes() == before, "the file of the reference was written"


def there_and_back(world: World) -> None:
    world.model.play({"text": "one"})
    thread = thread_id(world.oarlock("exec", "--skip-git-repo-check", "--json", "first"))
    path = world.oarlock("threads", "export", thread, "--to", str(world.theirs)).strip()
    world.model.play({"text": "two"})
    world.codex("exec", "--skip-git-repo-check", "resume", thread, "second")
    world.oarlock("threads", "delete", "--yes", thread)
    world.oarlock("threads", "import", path)
    world.model.play({"text": "three"})
    world.oarlock("exec", "--skip-git-repo-check", "resume", thread, "third")
    in_order(["first", "one", "second", "two", "third"], world.asked())


CHECKS: list[tuple[str, Callable[[World], None]]] = [
    ("export: the reference resumes a thread that was written for it", exported),
    ("import: a thread of the reference goes on, and its file stays as it was", imported),
    ("there and back: what both programs added is in the history", there_and_back),
]


def main() -> int:
    binary, work, client = (Path(argument) for argument in sys.argv[1:4])
    wanted = sys.argv[4] if len(sys.argv) > 4 else ""
    failed = False
    for number, (name, check) in enumerate(CHECKS):
        if wanted not in name:
            continue
        world, began = World(binary, client, work / f"command-{number}"), time.monotonic()
        try:
            check(world)
            outcome, why = "ok  ", ""
        except (AssertionError, subprocess.TimeoutExpired, ValueError) as problem:
            outcome, why, failed = "FAIL", f": {' '.join(str(problem).split())}", True
        finally:
            world.model.close()
        print(f"{outcome}  {name} ({time.monotonic() - began:.1f} s){why}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
