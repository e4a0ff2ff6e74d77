"""Real places for tests: a dockerd or a podman storage of their own with one small image, and an sshd."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

IMAGE = "oar:1"
_CACHE = Path(__file__).resolve().parents[4] / ".cache"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TOOLS = {
    "docker": ("docker", "dockerd", "containerd"),
    "podman": ("podman", "runc"),
    "ssh": ("ssh", "sshd", "ssh-keygen"),
}
_EVERY = ("busybox", "chroot", "ldd", "strip", "gzip", "tar")


def need(engine: str) -> None:
    """Skips, and says why, where the engine cannot be had."""
    missing = [tool for tool in (*_TOOLS[engine], *_EVERY) if not shutil.which(tool, path=_PATH)]
    if missing or os.geteuid() != 0:
        what = f"root and {', '.join(missing)}" if missing else "root"
        pytest.skip(f"a real {engine} needs {what}; scripts/placement-tools installs it")


def call(*words: str | Path, **more: str) -> str:
    command = [str(word) for word in words]
    environment = {**os.environ, "PATH": _PATH, **more}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


def small_runtime(folder: Path) -> None:
    """This program without what only debuggers read, where a host looks for what it copies into other places."""
    version = call(os.environ["OARLOCK_BIN"], "--version").split()[-1]
    place = folder / "runtimes" / version / f"{platform.machine()}-unknown-linux-musl"
    place.mkdir(parents=True)
    for file in _stripped().iterdir():
        try:
            os.link(file, place / file.name)
        except OSError:
            # The other side of a file system's border.
            shutil.copy2(file, place / file.name)


def _stripped() -> Path:
    """Made once for each build, as it takes longer than most tests, and kept for the next run."""
    program = Path(os.environ["OARLOCK_BIN"]).resolve()
    built = program.stat()
    kept = _CACHE / f"stripped-{built.st_size}-{built.st_mtime_ns}"
    if kept.exists():
        return kept
    _CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CACHE) as made:
        call("strip", "-o", Path(made, "oarlock"), program)
        call("gzip", "-1", "-k", Path(made, "oarlock"))
        for old in _CACHE.glob("stripped-*"):
            shutil.rmtree(old, ignore_errors=True)
        # Another worker may be faster; one of the two stays.
        with suppress(OSError):
            Path(made).rename(kept)
            Path(made).mkdir()
    return kept


def _image(folder: Path) -> Path:
    """Busybox, and the libraries that the program needs."""
    root = folder / "root"
    for name in ("bin", "tmp", "etc", "proc", "sys", "dev", "root", "lib64"):
        (root / name).mkdir(parents=True)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    shutil.copy("/bin/busybox", root / "bin" / "busybox")
    call("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    listed = subprocess.run(["ldd", os.environ["OARLOCK_BIN"]], capture_output=True, text=True).stdout.split()
    for library in (word for word in listed if word.startswith("/")):
        target = root / library[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    call("tar", "-C", root, "-cf", folder / "image.tar", ".")
    return folder / "image.tar"


@dataclass(frozen=True)
class Engine:
    """`environment` is what a program needs to reach it by the name of its tool alone."""

    name: str
    tool: tuple[str, ...]
    environment: dict[str, str]

    def run(self, *words: str) -> str:
        return call(*self.tool, *words)

    def containers(self) -> list[str]:
        return self.run("ps", "-aq").split()

    def remove_all(self) -> None:
        for container in self.containers():
            self.run("rm", "-f", container)


def _until(ready: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < ends, "a server did not come up"
        time.sleep(0.05)


@contextmanager
def docker(folder: Path) -> Iterator[Engine]:
    at = f"unix://{folder}/docker.sock"
    engine = Engine("docker", ("docker", "-H", at), {"DOCKER_HOST": at, "PATH": _PATH})
    folders = [f"--{option}={folder}/{option}" for option in ("data-root", "exec-root", "pidfile")]
    options = ["--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=overlay2"]
    with (folder / "log").open("wb") as log:
        command = ["dockerd", "-H", at, *folders, *options]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=engine.environment)
    try:
        _until((folder / "docker.sock").exists)
        _until(lambda: subprocess.run([*engine.tool, "info"], capture_output=True).returncode == 0)
        engine.run("import", str(_image(folder)), IMAGE)
        yield engine
        engine.remove_all()
    finally:
        daemon.terminate()
        daemon.wait(30)


@contextmanager
def _tools_folder() -> Iterator[Path]:
    """A folder for programs that a host starts: it looks for none among temporary files, where commands can write."""
    temporary = Path(tempfile.gettempdir()).resolve()
    place = Path("/var/cache/oarlock-tests") if _CACHE.is_relative_to(temporary) else _CACHE
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tools-", dir=place) as folder:
        yield Path(folder)


@contextmanager
def podman(folder: Path) -> Iterator[Engine]:
    with _tools_folder() as tools:
        yield from _podman(folder, tools)


def _podman(folder: Path, tools: Path) -> Iterator[Engine]:
    real = shutil.which("podman", path=_PATH)
    options = f"--root {folder}/images --runroot {folder}/run --storage-driver overlay --runtime runc"
    # A root that may not raise limits: podman's own are out of its reach.
    limits = "--ulimit nofile=20000:20000 --ulimit nproc=20000:20000"
    script = (
        f'case $1 in create) shift; exec {real} {options} create {limits} "$@" ;; esac\nexec {real} {options} "$@"\n'
    )
    (tools / "podman").write_text(f"#!/bin/sh\n{script}")
    (tools / "podman").chmod(0o755)
    engine = Engine("podman", (str(tools / "podman"),), {"PATH": f"{tools}:{_PATH}"})
    engine.run("import", str(_image(folder)), IMAGE)
    yield engine
    engine.remove_all()


@contextmanager
def ssh(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which `ssh place` is another machine: this one, with a home of its own."""
    with _tools_folder() as tools:
        yield from _ssh(folder, tools)


def _ssh(folder: Path, tools: Path) -> Iterator[dict[str, str]]:
    for key in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key)
    (folder / "home").mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\n"
        f"UsePAM no\nStrictModes no\nPidFile {folder}/pid\nPermitRootLogin yes\nSetEnv HOME={folder}/home\n"
    )
    (folder / "ssh_config").write_text(
        f"Host place\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {folder}/user\n IdentitiesOnly yes\n"
        " UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n LogLevel ERROR\n"
    )
    (tools / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh", path=_PATH)} -F {folder}/ssh_config "$@"\n')
    (tools / "ssh").chmod(0o755)
    server = str(shutil.which("sshd", path=_PATH))
    with (folder / "log").open("wb") as log:
        command = [server, "-D", "-e", "-f", str(folder / "sshd_config")]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _until(lambda: subprocess.run([tools / "ssh", "place", "true"], capture_output=True).returncode == 0)
        yield {"PATH": f"{tools}:{_PATH}"}
    finally:
        daemon.terminate()
        daemon.wait(30)
