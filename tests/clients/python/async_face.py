"""The asynchronous face of the client."""

import asyncio
from collections.abc import AsyncIterator

from openai_codex.models import Notification
from openai_codex.types import TurnStatus

from world import World, check, conversation


async def until_delta(stream: AsyncIterator[Notification]) -> None:
    async for event in stream:
        if event.method == "item/agentMessage/delta":
            return
    raise AssertionError("the turn ended before any text")


@check("async: start, run, read, list, name, resume and fork")
def life(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"}, {"text": "three"})

    async def main() -> None:
        async with world.async_codex() as codex:
            thread = await codex.thread_start()
            assert (await thread.run("first")).final_response == "one"
            await thread.set_name("Named")
            assert (await thread.read(include_turns=True)).thread.name == "Named"
            assert [t.id for t in (await codex.thread_list()).data] == [thread.id]
            branch = await codex.thread_fork(thread.id, include_turns=False)
            assert (await branch.run("second")).final_response == "two"
            assert (await codex.models()).data
        async with world.async_codex() as codex:
            again = await codex.thread_resume(thread.id)
            assert (await again.run("third")).final_response == "three"

    asyncio.run(main())
    assert conversation(world.asked[2]) == ["first", "one", "third"], conversation(world.asked[2])


@check("async: steer and interrupt")
def steer_and_interrupt(world: World) -> None:
    async def steered() -> None:
        async with world.async_codex() as codex:
            thread = await codex.thread_start()
            turn = await thread.turn("Start.")
            stream = turn.stream()
            await until_delta(stream)
            await turn.steer("In blue.")
            world.model.release()
            assert [event async for event in stream][-1].payload.turn.status == TurnStatus.completed

    async def interrupted() -> None:
        world.model.play({"text": "half way", "hold": True})
        async with world.async_codex() as codex:
            turn = await (await codex.thread_start()).turn("Again.")
            stream = turn.stream()
            await until_delta(stream)
            await turn.interrupt()
            assert [event async for event in stream][-1].payload.turn.status == TurnStatus.interrupted

    world.model.play({"text": "half way", "hold": True}, {"text": "steered"})
    asyncio.run(steered())
    assert conversation(world.asked[1])[-1] == "In blue.", conversation(world.asked[1])
    asyncio.run(interrupted())


@check("async: several threads of one process at once")
def gather(world: World) -> None:
    world.model.play(*[{"text": "ok"}] * 4)

    async def main() -> list[str | None]:
        async with world.async_codex() as codex:
            threads = await asyncio.gather(*[codex.thread_start() for _ in range(4)])
            results = await asyncio.gather(*[thread.run("hello") for thread in threads])
            return [result.final_response for result in results]

    assert asyncio.run(main()) == ["ok"] * 4
