"""The same without an event loop: in a script, in a notebook.

Prints: good morning
"""

from oarlock import Agent, Offline, SyncHost

agent = Agent(instructions="Answer in one sentence.", tool_set="replace")

with SyncHost(provider=Offline()) as host:
    for chunk in host.run(agent, "say good morning", timeout=60).text_deltas():
        print(chunk, end="", flush=True)
    print()
