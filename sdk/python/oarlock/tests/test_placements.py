"""Tasks in real places: containers of docker and podman, a place behind a command, and folders that the host makes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

import engines
from oarlock import (
    Agent,
    BackendError,
    Command,
    ConfigError,
    Docker,
    GitRepo,
    Host,
    Kubernetes,
    Local,
    LocalDir,
    LocalFile,
    Manifest,
    Offline,
    Podman,
    RpcError,
    Secret,
    Ssh,
    Text,
)
from oarlock._placing import manifest_of, name_of, settings_of, words_of
from oarlock.events import PlacementProgress
from oarlock.testing import Call, ScriptedModel, offline_host
from oarlock.tools import ExecCommand
from test_connect import answers, free_port
from test_pending import until

WORKER = Agent(
    name="worker",
    tools=[ExecCommand],
    tool_set="replace",
    manifest=Manifest(
        entries={"in/greeting": "good morning\n", "data": b"\x00\xff", "run.sh": Text("echo ran\n", mode=0o755)},
        env={"LEVEL": "3", "DESK": Secret("desk-token")},
        setup=[["sh", "-c", "echo prepared > prepared"]],
    ),
)
LOOK = "run cat in/greeting prepared && ./run.sh && pwd && echo level $LEVEL desk $DESK"


def lines(text: str) -> str:
    """As the commands printed them."""
    return "\n".join(line.strip() for line in text.splitlines())


@pytest.fixture
def anyio_backend() -> str:
    """The host does the work; one event loop is enough."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["docker", "podman"], indirect=True)
async def test_a_task_in_a_container(engine: engines.Engine, tmp_path: Path) -> None:
    kind = Docker if engine.name == "docker" else Podman
    backend = kind(engines.IMAGE, memory="512m", network="none", pull="never", cpus=1.5)
    options: Any = {"provider": Offline(), "backend": backend, "secrets": {"desk-token": "s3cret"}}
    async with Host(store=tmp_path / "runs.db", **options) as host:
        run = host.run(WORKER, LOOK, timeout=120)
        steps = {event.step async for event in run if isinstance(event, PlacementProgress)}
        text = lines((await run).unwrap())
        assert {"creating", "staging", "workspace", "setup"} <= steps
        assert "good morning\nprepared\nran\n/workspace\nlevel 3 desk s3cret" in text
        [container] = engine.containers()
        limits = engine.run("inspect", "-f", "{{.HostConfig.Memory}} {{.HostConfig.NetworkMode}}", container)
        assert limits == f"{512 << 20} none"
        task = await host.start(WORKER, task_id="A-17")
        assert await task.files.read_text("in/greeting") == "good morning\n"
        await task.files.write("new/deep/file", b"\x00\xff" * 100_000)
        assert await task.files.read_bytes("new/deep/file") == b"\x00\xff" * 100_000
        assert await task.files.list("new") == ["deep/"]
        await task.files.write("run.sh", "echo again\n")
        assert "again" in (await task.run("run ./run.sh", timeout=120)).unwrap(), "its mode stays"
        (await task.run("run ln -s /etc out; ln -s /etc/passwd passwd", timeout=120)).unwrap()
        for path in ("out/passwd", "passwd", "nowhere"):
            with pytest.raises(RpcError, match="path: "):
                await task.files.read_text(path)
        with pytest.raises(RpcError, match="out of the workspace"):
            await task.files.write("out/made", "x")
        assert "prepared" in (await task.run("run touch kept && ls", timeout=120)).unwrap()
        await task.suspend()
        # No runtime is started for it.
        assert await task.files.read_text("prepared") == "prepared\n"
    # Another process finds the task, and its place.
    async with Host(store=tmp_path / "runs.db", **options) as host:
        task = await host.open("A-17", WORKER)
        assert "kept" in (await task.run("run ls", timeout=120)).unwrap()
        await task.delete()
    # A sandbox that the container cannot hold is refused when it is asked for.
    async with Host(**options) as host:
        with pytest.raises(BackendError, match="`read-only` cannot be enforced in"):
            await host.start(Agent(sandbox="read-only"))
    # The command of this test shows it to the model. What the host keeps about the task and its place has its name.
    with closing(sqlite3.connect(tmp_path / "runs.db")) as store:
        kept = [store.execute(f"SELECT * FROM {table}").fetchall() for table in ("tasks", "placements", "runtimes")]
    assert kept[1] and "desk-token" in repr(kept) and "s3cret" not in repr(kept)


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["docker"], indirect=True)
async def test_a_place_of_the_configuration_and_one_in_words(engine: engines.Engine) -> None:
    table = {"backend": "docker", "image": engines.IMAGE, "network": "none", "pull": "never"}
    hello = Agent(tools=[ExecCommand], tool_set="replace")
    async with Host(provider=Offline(), config={"placements.box": table}) as host:
        task = await host.start(hello, backend="box")
        assert "/workspace" in (await task.run("run pwd", timeout=120)).unwrap()
        other = await host.start(hello, backend=Docker(engines.IMAGE))
        assert "/workspace" in (await other.run("run pwd", timeout=120)).unwrap()
        larger = await host.start(hello, backend=Docker(engines.IMAGE, memory="1g", pull="never"))
        assert "/workspace" in (await larger.run("run pwd", timeout=120)).unwrap()
        with pytest.raises(BackendError, match="no/such"):
            await host.start(hello, backend=Docker("no/such:1"))


@pytest.mark.anyio
async def test_a_task_on_another_machine(engine_folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines.need("ssh")
    engines.small_runtime(home)
    with tempfile.TemporaryDirectory(dir=engine_folder) as folder, engines.ssh(Path(folder)) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        agent = replace(WORKER, sandbox="danger-full-access")
        async with Host(provider=Offline(), backend=Ssh("place"), secrets={"desk-token": "s3cret"}) as host:
            text = lines((await host.run(agent, LOOK, timeout=120)).unwrap())
        assert "good morning\nprepared\nran\n" in text and f"{folder}/home" in text and "level 3 desk s3cret" in text


@pytest.mark.anyio
async def test_a_place_behind_a_command(tmp_path: Path, home: Path) -> None:
    engines.small_runtime(home)
    workspace = tmp_path / "there"
    backend = Command(["env", "OVER=here"], workspace=str(workspace), create=["mkdir", "-p", str(workspace)])
    async with Host(provider=Offline(), backend=backend, secrets={"desk-token": "s3cret"}) as host:
        text = lines((await host.run(WORKER, LOOK, timeout=120)).unwrap())
        assert f"good morning\nprepared\nran\n{workspace}\nlevel 3" in text


def repository(folder: Path) -> str:
    """A commit with one file."""
    folder.mkdir()
    (folder / "kept").write_text("from a commit\n")
    name = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for words in (["init", "-q"], ["add", "."], [*name, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return f"file://{folder}"


@pytest.mark.anyio
async def test_the_host_makes_what_only_it_can_make(tmp_path: Path) -> None:
    url = repository(tmp_path / "origin")
    manifest = WORKER.manifest.merged(Manifest(entries={"repo": GitRepo(url)}))
    agent = Agent(tools=[ExecCommand], tool_set="replace", manifest=manifest)
    async with offline_host(secrets={"desk-token": "s3cret"}) as host:
        task = await host.start(agent)
        text = lines((await task.run(f"{LOOK} && cat repo/kept", timeout=60)).unwrap())
        assert "good morning\nprepared\nran\n" in text and "level 3 desk s3cret\nfrom a commit" in text
        assert await task.files.read_text("prepared") == "prepared\n"
        place = tmp_path / "place"
        (place / "in").mkdir(parents=True)
        with pytest.raises(ConfigError, match="not overwritten"):
            (place / "repo").mkdir()
            await host.start(agent, backend=Local(place))
        with pytest.raises(BackendError, match="setup"):
            await host.start(Agent(manifest=Manifest(setup=[["false"]])))


@pytest.mark.anyio
async def test_files_go_to_a_host_elsewhere_by_their_contents(tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("sent\n")
    command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", f"sqlite:{tmp_path}/runs.db"]
    async with await anyio.open_process([*command, "--listen", url], stderr=None, cwd=tmp_path) as process:
        try:
            await until(lambda: answers(url))
            async with Host.connect(url) as host:
                manifest = Manifest(entries={"copied": LocalDir(tmp_path / "source"), "one": LocalFile(__file__)})
                agent = Agent(tools=[ExecCommand], tool_set="replace", manifest=manifest)
                task = await host.start(agent)
                assert await task.files.read_text("copied/a.txt") == "sent\n"
                assert (await task.files.read_text("one")).startswith('"""Tasks in real places')
        finally:
            process.terminate()


@pytest.mark.anyio
async def test_a_backend_goes_with_the_task_to_a_host_that_does_not_know_it(tmp_path: Path, home: Path) -> None:
    engines.small_runtime(home)
    store, workspace = tmp_path / "runs.db", tmp_path / "there"
    backend = Command(["env", "OVER=here"], workspace=str(workspace), create=["mkdir", "-p", str(workspace)])
    agent = replace(WORKER, manifest=Manifest(entries={"in": "good morning\n"}))
    async with Host(store=store, provider=Offline()), Host(store=store) as second:
        task = await second.start(agent, task_id="A-17", backend=backend)
        assert "good morning" in (await task.run("run cat in && pwd", timeout=120)).unwrap()
    # Also for the next host: where a task works is in the store.
    async with Host(store=store, provider=Offline()) as host:
        task = await host.open("A-17", agent)
        assert str(workspace) in (await task.run("run cat in && pwd", timeout=120)).unwrap()


@pytest.mark.anyio
async def test_files_are_those_of_the_place_that_the_host_chose(tmp_path: Path, home: Path) -> None:
    """The program names no place, so it does not know that tasks run elsewhere: where the folder is another one."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    engines.small_runtime(home)
    there, kept, work = (tmp_path / name for name in ("there", "kept", "work"))
    for folder in (there, kept, work):
        folder.mkdir()
    mounted = f'mount --bind {kept} {there} && exec "$@"'
    table = {"backend": "command", "argv": ["unshare", "--mount", "sh", "-c", mounted, "sh"], "workspace": str(there)}
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    (home / "config.toml").write_text(f"[placements.cage]\n{settings}")
    command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", f"sqlite:{tmp_path}/runs.db"]
    url = f"unix://{tmp_path}/runs.db.sock"
    async with await anyio.open_process([*command, "--placement", "cage"], stderr=None, cwd=tmp_path) as process:
        try:
            await until(lambda: answers(url))
            async with Host.connect(url) as host:
                agent = Agent(tools=[ExecCommand], tool_set="replace", sandbox="danger-full-access")
                task = await host.start(agent)
                await task.files.write("a/b", "x")
                assert (kept / "a/b").read_text() == "x" and not any(there.iterdir())
                assert await task.files.list() == ["a/"]
                await task.suspend()
                assert any(place.snapshot for place in [await host._placement_of(task.id)] if place is not None)
                # What the program does name is taken as said.
                here = await host.start(agent, backend=Local(work))
                assert await host._placement_of(here.id) is None
                assert str(work) in (await here.run("run pwd", timeout=120)).unwrap()
        finally:
            process.terminate()


@pytest.mark.anyio
async def test_a_host_elsewhere_takes_the_names_of_its_placements(tmp_path: Path) -> None:
    url = f"ws://127.0.0.1:{free_port()}"
    command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", f"sqlite:{tmp_path}/runs.db"]
    async with await anyio.open_process([*command, "--listen", url], stderr=None, cwd=tmp_path) as process:
        try:
            await until(lambda: answers(url))
            async with Host.connect(url) as host:
                with pytest.raises(ConfigError, match="placements of its own"):
                    await host.start(Agent(), backend=Docker("debian:12", memory="1g"))
        finally:
            process.terminate()


def test_backends_are_tables_of_the_configuration() -> None:
    docker = Docker("debian:12", user="me", memory="2g", cpus=1.5, network="none", mounts=["/a:/b:ro"], pull="never")
    assert settings_of(docker) == {
        "backend": "docker",
        "image": "debian:12",
        "user": "me",
        "memory": "2g",
        "cpus": "1.5",
        "network": "none",
        "mounts": ["/a:/b:ro"],
        "pull": "never",
    }
    assert words_of(docker) is None
    assert words_of(Docker("debian:12")) == "docker:debian:12"
    assert words_of(Podman("debian:12")) == "podman:debian:12"
    assert words_of(Ssh("me@box")) == "ssh:me@box" and words_of(Ssh("box", workspace="/w")) is None
    assert words_of(Kubernetes(image="debian:12")) == "kubernetes:debian:12"
    template = settings_of(Kubernetes(template=Path("pod.yaml"), context="c", namespace="n"))
    assert template["template"] == str(Path("pod.yaml").absolute())
    command = settings_of(Command(["unshare"], create=["a"], destroy=["b", "{handle}"]))
    assert command["destroy"] == ["b", "{handle}"] and command["workspace"] == "/workspace"
    assert name_of(docker) == name_of(docker) != name_of(Docker("debian:12"))
    with pytest.raises(ConfigError, match="exactly one"):
        settings_of(Kubernetes())


def test_manifests_on_the_wire(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("a")
    entries: Any = {
        ".": GitRepo("https://example.com/x.git", ref="main"),
        "part": GitRepo("https://example.com/x.git", depth=None, subpath="docs"),
        "here": LocalDir(source, include=["*.py"]),
        "file": LocalFile(source / "a"),
        "checked": LocalFile(source / "a", mode=0o600),
    }
    found = manifest_of(Manifest(entries=entries), is_here=True)
    assert found is not None
    assert found["entries"] == {
        ".": {"type": "git", "url": "https://example.com/x.git", "rev": "main"},
        "part": {"type": "git", "url": "https://example.com/x.git", "depth": 0, "subpath": "docs"},
        "here": {"type": "localDir", "path": str(source), "include": ["*.py"], "exclude": [".git"]},
        "file": {"type": "localFile", "path": str(source / "a")},
        "checked": {"type": "bytes", "base64": "YQ==", "mode": 0o600},
    }
    assert manifest_of(Manifest(), is_here=True) is None
    wrong: list[tuple[Any, str]] = [
        ({"a": Text("x", ephemeral=True)}, "ephemeral"),
        ({"a": GitRepo("https://h/x", depth=0)}, "depth"),
        ({"a": LocalDir(tmp_path / "none")}, "does not exist"),
        ({"../a": "x"}, "is not a path within the workspace"),
        ({".": "x"}, "is not a path within the workspace"),
    ]
    for entries, message in wrong:
        with pytest.raises(ConfigError, match=message):
            manifest_of(Manifest(entries=entries), is_here=True)


@pytest.mark.anyio
async def test_a_scripted_model_is_shown_the_place(tmp_path: Path) -> None:
    model = ScriptedModel(Call("exec_command", {"cmd": "cat note"}), "done")
    agent = Agent(tools=[ExecCommand], tool_set="replace", manifest=Manifest(entries={"note": "x"}, env={"A": "b"}))
    async with offline_host(model) as host:
        assert (await host.run(agent, "go", timeout=60)).unwrap() == "done"
    assert "x" in model.seen[1].last_output
