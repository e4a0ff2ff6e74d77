"""G13: a patch changes files of the workspace and nothing else, wherever its paths lead.

The crate of patches has tests for every case. Here they go through a server, and so do ten thousand races.
"""

import os
import shutil
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from effects import output_of
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import Client, Server, make_home

# The figures' own folder may be below /tmp, which is writable otherwise.
FREEFORM = """
[features]
apply_patch_freeform = true

[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"""
SECONDS = 20
# Races of one turn. All their patches are called for in one response, so that a turn costs little beside them.
AT_ONCE = 50


def add(path: str, text: str = "evil") -> str:
    return f"*** Add File: {path}\n+{text}\n"


def update(path: str, old: str = "original", new: str = "evil") -> str:
    return f"*** Update File: {path}\n@@\n-{old}\n+{new}\n"


def move(path: str, target: str) -> str:
    return f"*** Update File: {path}\n*** Move to: {target}\n@@\n-original\n+evil\n"


def extend(path: str, text: str) -> str:
    """Fits again and again."""
    return f"*** Update File: {path}\n@@\n original\n+{text}\n"


def whole(hunks: str) -> str:
    return f"*** Begin Patch\n{hunks}*** End Patch\n"


def delete(path: str) -> str:
    return f"*** Delete File: {path}\n"


# By what it tries. Paths may name the folder beside the workspace.
REFUSED: dict[str, Callable[[Path], str]] = {
    "update through a symlinked file": lambda out: update("link.txt"),
    "add through a symlinked directory": lambda out: add("linkdir/new.txt"),
    "update through a symlinked directory": lambda out: update("linkdir/secret.txt"),
    "delete through a symlinked directory": lambda out: delete("linkdir/secret.txt"),
    "move through a symlinked directory": lambda out: move("own.txt", "linkdir/moved.txt"),
    "add over a dangling symlink": lambda out: add("dangling.txt"),
    "add in a symlink loop": lambda out: add("loop/x.txt"),
    "two symlinks in a row": lambda out: add("chain/new.txt"),
    "an absolute path": lambda out: add(f"{out}/new.txt"),
    "an absolute path to be updated": lambda out: update(f"{out}/secret.txt"),
    "an absolute path to be deleted": lambda out: delete(f"{out}/secret.txt"),
    "a path upwards": lambda out: add("../outside/new.txt"),
    "a path down and upwards": lambda out: add("sub/../../outside/new.txt"),
    "move upwards": lambda out: move("own.txt", "../outside/moved.txt"),
    "move to an absolute path": lambda out: move("own.txt", f"{out}/moved.txt"),
    "a git hook": lambda out: add(".git/hooks/pre-commit"),
    "the git configuration": lambda out: update(".git/config"),
    "a git hook in capitals": lambda out: add(".GIT/hooks/pre-commit"),
    "a git hook with dots": lambda out: add("sub/../.git/hooks/pre-commit"),
    "move into git": lambda out: move("own.txt", ".git/hooks/post-checkout"),
    "the agent's configuration": lambda out: add(".codex/config.toml"),
    "the agent's rules": lambda out: add(".codex/rules/default.rules"),
    "the agent's skills": lambda out: add(".agents/skills/x/SKILL.md"),
    "an absolute path to the agent's configuration": lambda out: add(f"{out.parent}/workspace/.codex/config.toml"),
    "a name with NUL": lambda out: add("a\0b.txt"),
    "a name of 5,000 bytes": lambda out: add("x" * 5_000),
    "a FIFO": lambda out: update("fifo"),
    "a socket": lambda out: update("socket"),
    "a device": lambda out: update("/dev/null"),
    "context that is not there": lambda out: update("own.txt", "absent"),
    "a good file before a bad one": lambda out: update("own.txt") + add("linkdir/new.txt"),
    "a good file before one that is not there": lambda out: add("fresh.txt") + update("absent.txt"),
    "a directory as a file": lambda out: add("sub"),
    "a file as a directory": lambda out: add("own.txt/new.txt"),
}


# May change the workspace, where that is what the path comes to, but nothing beside it.
HARMLESS: dict[str, Callable[[Path], str]] = {
    "a path upwards through a symlink": lambda out: add("linkdir/../new.txt"),
    "a symlink that is deleted": lambda out: delete("link.txt"),
    "a symlink that is moved": lambda out: move("link.txt", "moved.txt"),
    "a file twice": lambda out: add("fresh.txt") + add("fresh.txt"),
    "a name from right to left": lambda out: add("good\u202egnp.sh"),
    "a name with a line break": lambda out: add("a\rb.txt"),
}


@dataclass
class Place:
    """A workspace full of traps, and a folder beside it that nothing may touch."""

    workspace: Path
    outside: Path

    @staticmethod
    def make(folder: Path) -> "Place":
        place = Place(folder / "workspace", folder / "outside")
        for path in (place.workspace / "sub", place.workspace / ".git/hooks", place.outside):
            path.mkdir(parents=True)
        for name in ("own.txt", ".git/config", ".git/HEAD"):
            (place.workspace / name).write_text("original\n")
        for name in ("secret.txt", "twin.txt"):
            (place.outside / name).write_text("original\n")
        links = {"link.txt": "secret.txt", "linkdir": "", "dangling.txt": "absent.txt"}
        for name, target in links.items():
            (place.workspace / name).symlink_to(place.outside / target)
        (place.workspace / "chain").symlink_to("linkdir")
        (place.workspace / "loop").symlink_to("loop")
        os.mkfifo(place.workspace / "fifo")
        os.mknod(place.workspace / "socket", stat.S_IFSOCK | 0o600)
        return place

    def state(self) -> dict[str, str]:
        """Everything below, by path: what a symlink says, what a file holds."""
        found = {}
        for root in (self.workspace, self.outside):
            for folder, names, files in os.walk(root):
                for name in [*names, *files]:
                    path = Path(folder, name)
                    found[str(path)] = self._look(path)
        return found

    @staticmethod
    def _look(path: Path) -> str:
        if path.is_symlink():
            return f"link to {os.readlink(path)}"
        return path.read_text() if path.is_file() else f"mode {path.stat().st_mode:o}"


class Patcher:
    """Sends patches through a server; whoever is asked says no."""

    def __init__(self, run: Run, approval: str) -> None:
        self.model = Model()
        self.folder = run.folder / approval
        home = make_home(self.folder / "home", self.model, approval, "workspace-write", more=FREEFORM)
        self.server = Server(run.binary, home, self.refuse).initialize()
        self.approval = approval
        self.asked = 0

    def refuse(self, message: Json) -> None:
        if message.get("method", "").endswith("/requestApproval"):
            self.asked += 1
            client: Client = self.server
            client.write(f'{{"id":{message["id"]},"result":{{"decision":"decline"}}}}')

    def apply_all(self, name: str, place: Place, hunks: list[str]) -> list[str]:
        """What the model is told about each of the patches, which follow one another at once."""
        plan = Plan(name, patches=tuple(map(whole, hunks)), together=True)
        self.server.turn(self.server.start_thread(cwd=str(place.workspace)), plan, SECONDS * 6)
        body = self.model.bodies.pop(name)
        return [output_of(body, plan.call_id(index)) or "" for index in range(len(hunks))]

    def apply(self, name: str, place: Place, hunks: str, shell: bool) -> str:
        """What the model is told about the patch."""
        patch = whole(hunks)
        if shell:
            plan = Plan(name, commands=(f"apply_patch <<'END'\n{patch}END\n",))
        else:
            plan = Plan(name, patches=(patch,))
        self.server.turn(self.server.start_thread(cwd=str(place.workspace)), plan, SECONDS)
        return output_of(self.model.bodies[name], plan.call_id(0)) or ""

    def close(self) -> None:
        self.server.stop()
        self.model.close()


def refused(patcher: Patcher, number: int, what: str, patch: Callable[[Path], str], shell: bool) -> list[str]:
    """A patch that must change nothing at all."""
    place = Place.make(patcher.folder / f"place-{number}")
    before = place.state()
    label = f"{patcher.approval}, {what}{', from a shell' if shell else ''}"
    said = patcher.apply(f"{patcher.approval}-{number}", place, patch(place.outside), shell)
    after = place.state()
    changed = sorted(path for path in before | after if before.get(path) != after.get(path))
    problems = [f"{label}: {path[-80:]} changed" for path in changed]
    if "Success" in said:
        problems.append(f"{label}: told as done: {said[:100]!r}")
    return problems


def harmless(patcher: Patcher, number: int, what: str, patch: Callable[[Path], str]) -> list[str]:
    """A patch that must change nothing outside the workspace, nor in git's folder."""
    place = Place.make(patcher.folder / f"harmless-{number}")
    before = place.state()
    patcher.apply(f"{patcher.approval}-harmless-{number}", place, patch(place.outside), shell=False)
    after = place.state()
    kept = (str(place.outside), str(place.workspace / ".git"))
    changed = sorted(path for path in before | after if before.get(path) != after.get(path) and path.startswith(kept))
    return [f"{patcher.approval}, {what}: {path[-80:]} changed" for path in changed]


def hard_link(patcher: Patcher) -> list[str]:
    """A file with a second name outside: the other name keeps the old text."""
    place = Place.make(patcher.folder / "hard-link")
    os.link(place.outside / "twin.txt", place.workspace / "twin.txt")
    patcher.apply(f"{patcher.approval}-hard-link", place, update("twin.txt"), shell=False)
    text = (place.outside / "twin.txt").read_text()
    return [] if text == "original\n" else [f"{patcher.approval}: written through a hard link: {text!r}"]


def good(patcher: Patcher) -> list[str]:
    """That anything works at all."""
    place = Place.make(patcher.folder / "good")
    said = patcher.apply(f"{patcher.approval}-good", place, update("own.txt") + add("sub/new.txt"), shell=False)
    done = (place.workspace / "own.txt").read_text(), (place.workspace / "sub/new.txt").is_file()
    return [] if done == ("evil\n", True) else [f"{patcher.approval}: a good patch is refused: {said[:200]}"]


class Swapper:
    """A folder that is a symlink outwards every other moment."""

    def __init__(self, place: Place) -> None:
        self.outside, self.spot, self.aside = place.outside, place.workspace / "spot", place.workspace / "aside"
        self.spot.mkdir()
        (self.spot / "secret.txt").write_text("original\n")
        self.swaps = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._is_over.is_set():
            # A patch may make the folder anew in between, and may still be writing in it.
            with suppress(OSError):
                self.spot.rename(self.aside)
            with suppress(OSError):
                self.spot.symlink_to(self.outside)
                self.swaps += 1
                self.spot.unlink()
            if self.aside.exists():
                shutil.rmtree(self.spot, ignore_errors=True)
            with suppress(OSError):
                self.aside.rename(self.spot)

    def __enter__(self) -> "Swapper":
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._is_over.set()
        self._thread.join()


# By turns: a file that is there, a new one, and a new one in a folder that is new as well.
RACES: list[Callable[[int], str]] = [
    lambda number: extend("spot/secret.txt", f"race {number}"),
    lambda number: add(f"spot/new-{number}.txt"),
    lambda number: add(f"spot/deep-{number}/new.txt"),
]


def races(patcher: Patcher, rounds: int, counter: Counter) -> tuple[list[str], Json]:
    """Patches of a folder that leads outwards by the time they are checked, or written, or neither."""
    place = Place.make(patcher.folder / "race")
    told: dict[str, int] = {"applied": 0, "refused": 0}
    with Swapper(place) as swapper:
        for first in range(0, rounds, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, rounds))
            hunks = [RACES[number % len(RACES)](number) for number in numbers]
            for said in patcher.apply_all(f"{patcher.approval}-race-{first}", place, hunks):
                told["applied" if "Success" in said else "refused"] += 1
                counter.step()
    names = sorted(path.name for path in place.outside.iterdir())
    text = (place.outside / "secret.txt").read_text()
    problems = []
    if swapper.swaps <= rounds or not told["refused"]:
        problems.append(f"{patcher.approval}: no races: {swapper.swaps} swaps, {told}")
    if names != ["secret.txt", "twin.txt"] or text != "original\n":
        problems.append(f"{patcher.approval}: written outside in a race: {names[:20]}, {text[:200]!r}")
    return problems, {**told, "swaps": swapper.swaps}


def measure(run: Run) -> Outcome:
    rounds = run.pick(5_000, 50)
    failures: list[str] = []
    counter = Counter("patches", 2 * ((1 if run.quick else 2) * len(REFUSED) + rounds))
    asked, raced = {}, {}
    for approval in ("never", "on-request"):
        patcher = Patcher(run, approval)
        for number, (what, patch) in enumerate(REFUSED.items()):
            failures += refused(patcher, number, what, patch, shell=False)
            counter.step()
            # NUL cannot be part of a command line.
            if not run.quick and "NUL" not in what:
                failures += refused(patcher, number + len(REFUSED), what, patch, shell=True)
                counter.step()
        for number, (what, patch) in enumerate(HARMLESS.items()):
            failures += harmless(patcher, number, what, patch)
        problems, raced[approval] = races(patcher, rounds, counter)
        failures += good(patcher) + hard_link(patcher) + problems
        asked[approval] = patcher.asked
        patcher.close()
    measured = f"2 x {len(REFUSED) + len(HARMLESS) + 2} cases, 2 x {rounds} races, {len(failures)} problems"
    return Outcome(measured, failures, {"asked": asked, "races": raced})
