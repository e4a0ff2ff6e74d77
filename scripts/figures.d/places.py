"""placements: what it costs to work in a container or behind ssh, measured through a host on real ones.

The first turn of a new thread, with the place made and the runtime copied there; the first turn of a runtime that is started
where it was copied before; and how much longer a turn takes there than on this machine. The offline model answers.
"""

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from report import Json, Outcome, Run, Skipped

NEEDED = ["docker", "dockerd", "containerd", "busybox", "ldd", "chroot", "ssh", "sshd", "ssh-keygen", "strip", "gzip"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STAGED_IN, RUNNING_IN, PER_TURN = 1.5, 0.3, 0.005
# A debug build is ten times as large and several times as slow.
SLOWER = 4.0


def call(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True,
                          env={**os.environ, "PATH": PATH})
    return done.stdout.strip()


def until(ready: Callable[[], bool], seconds: float = 30) -> None:
    ends = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > ends:
            raise TimeoutError("a server did not come up")
        time.sleep(0.02)


def works(*words: str | Path) -> bool:
    try:
        call(*words)
    except subprocess.CalledProcessError:
        return False
    return True


@contextmanager
def daemon(log: Path, *words: str | Path) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   env={**os.environ, "PATH": PATH})
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class HostClient:
    """One connection to a host."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r")
        self.next_id = 0
        capabilities = {"experimentalApi": True, "host": {"versions": [1]}}
        self.ask("initialize", {"clientInfo": {"name": "figures", "title": None, "version": "1"},
                                "capabilities": capabilities})

    def read(self) -> Json:
        line = self.lines.readline()
        if not line:
            raise EOFError("the host hung up")
        return json.loads(line)

    def ask(self, method: str, params: Json) -> Json:
        self.next_id += 1
        self.socket.sendall(json.dumps({"id": self.next_id, "method": method, "params": params}).encode() + b"\n")
        while True:
            message = self.read()
            if message.get("id") == self.next_id and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def start(self, placement: str) -> str:
        return self.ask("thread/start", {"placement": placement, "approvalPolicy": "never"})["thread"]["id"]

    def turn(self, thread: str) -> float:
        """How long it takes until it is completed."""
        began = time.monotonic()
        self.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "say hello"}]})
        while True:
            message = self.read()
            if message.get("method") == "turn/completed":
                if message["params"]["turn"]["status"] != "completed":
                    raise RuntimeError(json.dumps(message["params"]["turn"]))
                return time.monotonic() - began


def image(binary: Path, folder: Path) -> Path:
    """Busybox, and the libraries that the binary needs."""
    root = folder / "root"
    for name in ["bin", "tmp", "etc", "proc", "sys", "dev", "root", "lib64"]:
        (root / name).mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    shutil.copy("/bin/busybox", root / "bin/busybox")
    call("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    libraries = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout.split()
    for library in (word for word in libraries if word.startswith("/")):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    call("tar", "-C", root, "-cf", folder / "image.tar", ".")
    return folder / "image.tar"


@contextmanager
def docker(binary: Path, folder: Path) -> Iterator[str]:
    at = f"unix://{folder}/docker.sock"
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver", "overlay2"]
    folders = ["--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid"]
    with daemon(folder / "log", "dockerd", "-H", at, *folders, *options):
        until(lambda: works("docker", "-H", at, "info"))
        call("docker", "-H", at, "import", image(binary, folder), "oar:1")
        try:
            yield (f'[placements.box]\nbackend = "docker"\nimage = "oar:1"\nnetwork = "none"\npull = "never"\n'
                   f'tool = ["docker", "-H", "{at}"]\n')
        finally:
            for container in call("docker", "-H", at, "ps", "-aq").split():
                works("docker", "-H", at, "rm", "-f", container)


@contextmanager
def ssh(folder: Path) -> Iterator[str]:
    for key in ["host", "user"]:
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
    (folder / "home").mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nUsePAM no\n"
        f"StrictModes no\nPidFile {folder}/pid\nPermitRootLogin yes\nSetEnv HOME={folder}/home\n")
    (folder / "ssh_config").write_text(
        f"Host place\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {folder}/user\n IdentitiesOnly yes\n"
        " UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n LogLevel ERROR\n")
    with daemon(folder / "log", "/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"):
        until(lambda: works("ssh", "-F", folder / "ssh_config", "place", "true"))
        yield f'[placements.far]\nbackend = "ssh"\nhost = "place"\ntool = ["ssh", "-F", "{folder}/ssh_config"]\n'


def in_place(client: HostClient, placement: str, turns: int) -> Json:
    """Seconds: the first turn, the first one of a runtime that is started again, and one among many."""
    began = time.monotonic()
    thread = client.start(placement)
    client.turn(thread)
    first = time.monotonic() - began
    client.ask("task/suspend", {"threadId": thread})
    client.ask("task/resume", {"threadId": thread})
    again = client.turn(thread)
    many = statistics.median(client.turn(thread) for _ in range(turns))
    return {"first": first, "again": again, "turn": many}


def measure(run: Run) -> Outcome:
    missing = [tool for tool in NEEDED if not shutil.which(tool, path=PATH)]
    if missing or os.geteuid():
        raise Skipped(f"needs root and {', '.join(missing) or 'nothing else'}; scripts/placement-tools installs them")
    with ExitStack() as stack:
        # Sockets have short paths.
        folder = lambda: Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oar", dir="/tmp")))  # noqa: E731
        home, runtime = folder(), folder() / "oarlock"
        call("strip", "-o", runtime, run.binary)
        call("gzip", "-1", "-k", runtime)
        tables = stack.enter_context(docker(runtime, folder())) + stack.enter_context(ssh(folder()))
        (home / "config.toml").write_text(tables)
        host = daemon(home / "log", "env", f"OARLOCK_HOME={home}", f"HOME={home}", run.binary, "host", "--provider",
                      "offline", "--store", f"sqlite:{home}/tasks.sqlite", "--runtime", runtime)
        stack.enter_context(host)
        until((home / "tasks.sqlite.sock").exists)
        client = HostClient(home / "tasks.sqlite.sock")
        turns = run.pick(100, 15)
        found = {name: in_place(client, name, turns) for name in ["local", "box", "far"]}
    return judged(found, is_debug=run.binary.stat().st_size > 60 << 20)


def judged(found: dict[str, Json], is_debug: bool) -> Outcome:
    slower = SLOWER if is_debug else 1.0
    failures, shown = [], []
    for name, word in [("box", "docker"), ("far", "ssh")]:
        more = found[name]["turn"] - found["local"]["turn"]
        for what, value, limit in [("the first turn, staged", found[name]["first"], STAGED_IN),
                                   ("the first turn, there already", found[name]["again"], RUNNING_IN),
                                   ("more per turn", more, PER_TURN)]:
            if value > limit * slower:
                failures.append(f"{word}: {what}: {value * 1000:.0f} ms, more than {limit * slower * 1000:.0f}")
        shown.append(f"{word} {found[name]['first']:.2f} s, {found[name]['again'] * 1000:.0f} ms, {more * 1000:+.1f} ms")
    return Outcome("; ".join(shown), failures, found)
