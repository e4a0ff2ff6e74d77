"""Start, turns and deltas of `openai-codex`. Usage: speed_codex.py PROMPTS, with its home in CODEX_HOME"""

import json
import sys
import time

began = time.perf_counter()
from openai_codex import Codex, CodexConfig, Sandbox  # noqa: E402

imported = time.perf_counter() - began
TURNS = 30


def main() -> None:
    prompts = json.loads(sys.argv[1])
    began = time.perf_counter()
    with Codex(CodexConfig()) as codex:
        thread = codex.thread_start(sandbox=Sandbox.full_access)
        stream = thread.turn(prompts["turn"]).stream()
        next(stream)
        first = time.perf_counter() - began
        for _ in stream:
            pass
        began = time.perf_counter()
        for _ in range(TURNS):
            thread.run(prompts["turn"])
        turn = (time.perf_counter() - began) / TURNS
        began = time.perf_counter()
        count = sum(1 for event in thread.turn(prompts["flood"]).stream() if event.method == "item/agentMessage/delta")
        deltas = time.perf_counter() - began
        assert count >= 20_000, count
    print(json.dumps({"import": imported, "first": first, "turn": turn, "deltas": deltas}))


main()
