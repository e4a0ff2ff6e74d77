"""Start, turns and deltas of `oarlock`. Usage: speed_ours.py PROMPTS, with the model's address in MOCK"""

import json
import os
import sys
import time

began = time.perf_counter()
from oarlock import Agent, Host, Key, OpenAI  # noqa: E402

imported = time.perf_counter() - began

import anyio  # noqa: E402

TURNS = 30


async def main() -> None:
    prompts = json.loads(sys.argv[1])
    os.environ["MOCK_KEY"] = "x"
    began = time.perf_counter()
    async with Host(provider=OpenAI(key=Key(env="MOCK_KEY"), base_url=os.environ["MOCK"])) as host:
        task = await host.start(Agent())
        run = task.run(prompts["turn"])
        async for _ in run:
            first = time.perf_counter() - began
            break
        await run
        began = time.perf_counter()
        for _ in range(TURNS):
            assert (await task.run(prompts["turn"])).status == "completed"
        turn = (time.perf_counter() - began) / TURNS
        began = time.perf_counter()
        count = 0
        async for _ in task.run(prompts["flood"]).text_deltas():
            count += 1
        deltas = time.perf_counter() - began
    print(json.dumps({"import": imported, "first": first, "turn": turn, "deltas": deltas}))


anyio.run(main)
