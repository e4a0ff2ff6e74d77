"""G16: what the server was started with stays with it: no tool, log, record or request to the model shows a secret."""

import json
import os
import re
from pathlib import Path

from model import Model, Plan
from report import Outcome, Run
from server import Server, make_home

# Names as people choose them. The first one is the key of the model's provider.
VARIABLES = [
    "MOCK_PROVIDER_KEY",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_PRIVATE_TOKEN",
    "NPM_CONFIG__AUTH",
    "PGPASSWORD",
    "MYSQL_PWD",
    "DATABASE_URL",
    "REDIS_URL",
    "SLACK_WEBHOOK",
    "SENTRY_DSN",
    "DOCKER_AUTH_CONFIG",
    "KUBECONFIG_DATA",
    "MY_COMPANY_THING",
]
FILES = ["auth.json"]
LOOKS = {
    "the environment": "env; export -p; set; declare -px",
    "its own process": "tr '\\0' '\\n' < /proc/self/environ; tr '\\0' '\\n' < /proc/$$/environ",
    "its terminal": "printenv; python3 -c 'import os; print(dict(os.environ))'",
}
# In a sandbox other processes are out of sight, and the server's memory is closed to its user. Only root without a
# sandbox may look at anything.
LOOK_AROUND = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'"
# Logs of every kind at their most talkative.
TALK = {"RUST_LOG": "trace", "RUST_BACKTRACE": "1", "OARLOCK_LOG": "trace"}


# Variables whose names say nothing hold values that look like what they are. A plain word under a plain name reaches a
# command: docs/configuration.md says so, and how to exclude it.
VALUES = {
    "DATABASE_URL": "postgres://app:{}@db.example/app",
    "REDIS_URL": "redis://:{}@cache.example:6379/0",
    "KUBECONFIG_DATA": "users: [{{name: ci}}]\n-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n",
    "MY_COMPANY_THING": "glpat-{}",
}


def make_secrets() -> dict[str, str]:
    """Each unlike the others and unlike anything else that could turn up."""
    return {name: f"planted-{number:02d}-{os.urandom(12).hex()}" for number, name in enumerate(VARIABLES + FILES)}


class Search:
    """Collects where secrets turned up."""

    def __init__(self, secrets: dict[str, str]) -> None:
        self.names = {secret: name for name, secret in secrets.items()}
        self.pattern = re.compile("|".join(map(re.escape, secrets.values())))
        self.found: list[str] = []
        self.places = 0

    def look(self, place: str, text: str) -> None:
        self.places += 1
        for secret in sorted(set(self.pattern.findall(text))):
            self.found.append(f"{self.names[secret]} in {place}")


def use(run: Run, sandbox: str, search: Search, secrets: dict[str, str]) -> list[str]:
    """One server with secrets around it, tools that look for them, and a search of everything it leaves behind."""
    model = Model(keep=True)
    more = f'env_key = "{VARIABLES[0]}"\n'
    home = make_home(run.folder / sandbox / "home", model, sandbox=sandbox, more=more)
    (home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": secrets["auth.json"]}))
    (home / "auth.json").chmod(0o600)
    looks = dict(LOOKS)
    if sandbox != "danger-full-access" or os.geteuid() != 0:
        looks["other processes"] = LOOK_AROUND
    variables = {name: VALUES.get(name, "{}").format(secrets[name]) for name in VARIABLES}
    with Server(run.binary, home, variables=variables | TALK) as server:
        thread = server.initialize().start_thread()
        for number, look in enumerate(looks.values()):
            for tty in (False, True):
                server.turn(thread, Plan(f"{sandbox}-{number}-{tty}", commands=(look,), options={"tty": tty}))
        server.turn(thread, Plan(f"{sandbox}-bad", commands=("false; exit 3",), breaks=("refuse",)))
        server.ask("thread/read", {"threadId": thread, "includeTurns": True})
        server.ask("config/read", {"includeLayers": True})
        server.ask("account/read", {"refreshToken": False})
        server.ask("command/exec", {"command": ["/bin/sh", "-c", "; ".join(looks.values())]})
        server.stop()
    told = json.dumps(server.heard)
    search.look(f"what clients are told ({sandbox})", told)
    search_files(search, sandbox, home, server.errors)
    problems = [] if told.count("HOME=") >= len(looks) else [f"{sandbox}: the tools saw no environment"]
    return problems + search_requests(search, sandbox, model, secrets[VARIABLES[0]])


def search_files(search: Search, sandbox: str, home: Path, errors: Path) -> None:
    for path in [errors, *home.rglob("*")]:
        if path.is_file() and path.name not in FILES:
            search.look(f"{path.relative_to(home.parent)} ({sandbox})", path.read_bytes().decode("latin-1"))


def search_requests(search: Search, sandbox: str, model: Model, key: str) -> list[str]:
    """The provider's key belongs in one header, and must be there, or nothing of this was a real use."""
    model.close()
    problems = []
    for text in model.received or []:
        header = f"authorization: bearer {key}"
        if header not in text.lower():
            problems.append(f"{sandbox}: a request to the model does not carry its key")
        search.look(f"a request to the model ({sandbox})", re.sub(re.escape(header), "", text, flags=re.IGNORECASE))
    return problems[:1]


def measure(run: Run) -> Outcome:
    secrets = make_secrets()
    search = Search(secrets)
    failures: list[str] = []
    for sandbox in ("danger-full-access", "workspace-write", "read-only"):
        failures += use(run, sandbox, search, secrets)
    failures += search.found
    measured = f"{len(secrets)} secrets, {search.places} places, {len(search.found)} found"
    return Outcome(measured, failures, {"names": list(secrets)})
