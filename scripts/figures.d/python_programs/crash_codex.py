"""The same with `openai-codex`, which has commands and no tools of the program. Usage: crash_codex.py FOLDER LIFE"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from openai_codex import Codex, CodexConfig, Sandbox

folder, life = sys.argv[1:]
kept, paid = Path(folder) / "thread", Path(folder) / "paid"

with Codex(CodexConfig(cwd=folder)) as codex:
    if life == "1":
        thread = codex.thread_start(sandbox=Sandbox.full_access, cwd=folder)
        kept.write_text(thread.id)
        for _ in thread.turn(os.environ["PROMPT"]).stream():
            if paid.exists():
                os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit("the turn ended before the kill")
    thread = codex.thread_resume(kept.read_text())
    time.sleep(2)
    turns = json.loads(thread.read(include_turns=True).model_dump_json())["thread"]["turns"]
    items = [f"{item['type']} {item.get('status') or ''}".strip() for item in turns[-1]["items"]]
    print(json.dumps({"left": f"a turn that is {turns[-1]['status']}, with {items}"}))
