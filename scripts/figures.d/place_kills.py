"""place-kills: the promises of host-kills where tasks run in containers and behind ssh, with the place among the victims.

A container is removed, a connection is cut; host and runtime are killed as on this machine. The same checks: the next host
goes on, and no command runs twice by itself. Commands are counted outside the place, in a file that it can write.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import places
from host_kills import POINTS, Round, Site, one
from model import Model
from report import Counter, Outcome, Run, Skipped

# Each victim at one point in the quick form.
QUICK = (
    ("turn/start answered", "host"),
    ("approval asked", "place"),
    ("operation started", "runtime"),
    ("operation started", "place"),
    ("operation finished", "host+runtime"),
)
VICTIMS = ("host", "runtime", "place", "host+runtime", "host+place")


class Placed(Site):
    """A site that is a placement of the host's configuration."""

    def __init__(self, name: str, table: str, runtime: Path) -> None:
        super().__init__()
        self.arguments = ("--runtime", str(runtime))
        self.params = {"placement": name}
        self.config = table

    def is_inside(self, process: Path) -> bool:
        """Whether a runtime of any place on this machine runs in this one."""
        raise NotImplementedError

    def runtimes(self, host: int) -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                if words[0].endswith(b"/oarlock") and words[1:2] == [b"app-server"] and self.is_inside(process):
                    found.append(int(process.name))
            except OSError:
                continue
        return found


class Docker(Placed):
    """Containers of a daemon that has no others."""

    def __init__(self, table: str, runtime: Path, shared: Path) -> None:
        # The effects of commands are counted out here.
        super().__init__("box", f'{table}mounts = ["{shared}:{shared}"]\n', runtime)
        self.socket = table.split("unix://", 1)[1].split('"', 1)[0]

    def call(self, *words: str) -> str:
        return places.call("docker", "-H", f"unix://{self.socket}", *words)

    def is_inside(self, process: Path) -> bool:
        pids = [self.call("inspect", "-f", "{{.State.Pid}}", one) for one in self.call("ps", "-q").split()]
        return os.readlink(process / "ns/mnt") in [os.readlink(f"/proc/{pid}/ns/mnt") for pid in pids]

    def lose(self) -> None:
        for container in self.call("ps", "-aq").split():
            self.call("rm", "-f", container)

    def clear(self) -> None:
        self.lose()


class Ssh(Placed):
    """An sshd whose users have a home of their own."""

    def __init__(self, table: str, runtime: Path) -> None:
        super().__init__("far", table, runtime)
        self.folder = Path(table.split('"-F", "', 1)[1].split("/ssh_config", 1)[0])

    def is_inside(self, process: Path) -> bool:
        return (process / "cmdline").read_bytes().startswith(os.fsencode(self.folder))

    def lose(self) -> None:
        daemon = (self.folder / "pid").read_text().strip()
        for session in Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split():
            try:
                os.kill(int(session), signal.SIGKILL)
            except ProcessLookupError:
                continue


def rounds(run: Run, sites: list[Placed]) -> Iterable[Round]:
    chosen = QUICK if run.quick else tuple((point, victim) for point in POINTS for victim in VICTIMS)
    for site in sites:
        name = site.params["placement"]
        for number, first in enumerate(chosen):
            yield Round(f"{name}-{number}", first, site=site)


def measure(run: Run) -> Outcome:
    missing = [tool for tool in places.NEEDED if not shutil.which(tool, path=places.PATH)]
    if missing or os.geteuid():
        raise Skipped(f"needs root and {', '.join(missing) or 'nothing else'}; scripts/placement-tools installs them")
    model, failures = Model(), []
    with ExitStack() as stack:
        # Sockets have short paths.
        folder = lambda: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oar", dir="/tmp")))  # noqa: E731
        runtime = folder() / "oarlock"
        places.call("strip", "-o", runtime, run.binary)
        places.call("gzip", "-1", "-k", runtime)
        docker = stack.enter_context(places.docker(runtime, folder()))
        ssh = stack.enter_context(places.ssh(folder()))
        chosen = list(rounds(run, [Docker(docker, runtime, run.folder), Ssh(ssh, runtime)]))
        counter = Counter("kills", len(chosen))
        for kills in chosen:
            problems = one(run, run.folder / kills.name, model, kills)
            failures += [f"{kills.name}, {kills.first[0]}, {kills.first[1]}: {problem}" for problem in problems]
            kills.site.clear()
            counter.step()
    model.close()
    return Outcome(f"{len(chosen)} kills, {len(failures)} problems", failures, {"rounds": len(chosen)})
