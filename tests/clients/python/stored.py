"""Threads on disk: resume, fork, list, read, name, archive."""

from openai_codex import Codex, InvalidRequestError, JsonRpcError
from openai_codex.types import SortDirection

from world import World, check, conversation, eventually, item_types


def listed(codex: Codex, **filters: object) -> list[str]:
    return [thread.id for thread in codex.thread_list(**filters).data]  # type: ignore[arg-type]


@check("resume: another process goes on with the conversation")
def resume(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
    with world.codex() as codex:
        again = codex.thread_resume(thread.id)
        assert again.id == thread.id
        assert again.run("second").final_response == "two"
    assert conversation(world.asked[1]) == ["first", "one", "second"], conversation(world.asked[1])


@check("resume: without turns in the answer, and with new settings")
def resume_with_settings(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
    with world.codex() as codex:
        again = codex.thread_resume(thread.id, include_turns=False, model="other-model", cwd=str(world.cwd))
        again.run("second")
    assert world.asked[1].body["model"] == "other-model", world.asked[1].body["model"]


@check("fork: a new thread with the old history, and the old one untouched")
def fork(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"}, {"text": "three"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
        branch = codex.thread_fork(thread.id)
        assert branch.id != thread.id
        branch.run("on the branch")
        thread.run("on the trunk")
        read = branch.read(include_turns=True).thread
    assert conversation(world.asked[1]) == ["first", "one", "on the branch"], conversation(world.asked[1])
    assert conversation(world.asked[2]) == ["first", "one", "on the trunk"], conversation(world.asked[2])
    assert read.forked_from_id == thread.id, read.forked_from_id
    assert len(read.turns) == 2, read.turns


@check("read: facts of a thread, and its turns when asked for")
def read(world: World) -> None:
    world.model.play({"text": "one"})
    with world.codex() as codex:
        thread = codex.thread_start(cwd=str(world.cwd))
        thread.run("first words")
        brief, full = thread.read().thread, thread.read(include_turns=True).thread
    assert brief.id == thread.id and brief.session_id and brief.cli_version, brief
    assert brief.preview == "first words" and brief.cwd.root == str(world.cwd), brief
    assert brief.model_provider == "mock" and brief.status.root.type == "idle", brief
    assert not brief.ephemeral and brief.path is not None, brief
    assert brief.turns == [], brief.turns
    assert [turn.status.value for turn in full.turns] == ["completed"], full.turns
    assert item_types(full.turns[0].items) == ["userMessage", "agentMessage"], full.turns[0].items


@check("list: pages, order, folder, search and provider")
def list_threads(world: World) -> None:
    world.model.play(*[{"text": "ok"}] * 3)
    other = world.cwd / "other"
    other.mkdir()
    with world.codex() as codex:
        ids = []
        for cwd, words in ((world.cwd, "apples"), (world.cwd, "pears"), (other, "plums")):
            thread = codex.thread_start(cwd=str(cwd))
            thread.run(words)
            ids.append(thread.id)
        eventually(lambda: len(listed(codex)) == 3, "all threads are listed")
        page = codex.thread_list(limit=2)
        assert len(page.data) == 2 and page.next_cursor, page
        rest = codex.thread_list(limit=2, cursor=page.next_cursor)
        assert not {thread.id for thread in page.data} & {thread.id for thread in rest.data}, "the pages overlap"
        here = listed(codex, cwd=str(world.cwd))
        either = listed(codex, cwd=[str(world.cwd), str(other)])
        oldest_first = listed(codex, sort_direction=SortDirection.asc)
        newest_first = listed(codex, sort_direction=SortDirection.desc)
        found = listed(codex, search_term="pears")
        strange = listed(codex, model_providers=["nobody"])
    assert sorted(here) == sorted(ids[:2]) and sorted(either) == sorted(ids), (here, either)
    assert sorted(oldest_first) == sorted(ids) and sorted(newest_first) == sorted(ids)
    assert found == [ids[1]] and strange == [], (found, strange)


@check("name: set, read back and listed, also by another process")
def name(world: World) -> None:
    world.model.play({"text": "one"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
        thread.set_name("A fine name")
        assert thread.read().thread.name == "A fine name"
    with world.codex() as codex:
        eventually(lambda: codex.thread_list().data, "the thread is listed")
        assert [thread.name for thread in codex.thread_list().data] == ["A fine name"]


@check("archive: gone from the list, in the archived list, and back")
def archive(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
        codex.thread_archive(thread.id)
        assert listed(codex) == [] and listed(codex, archived=True) == [thread.id]
        back = codex.thread_unarchive(thread.id)
        assert back.id == thread.id and listed(codex) == [thread.id] and listed(codex, archived=True) == []
        assert codex.thread_resume(thread.id).run("second").final_response == "two"


@check("ephemeral: works and leaves nothing behind")
def ephemeral(world: World) -> None:
    world.model.play({"text": "one"})
    with world.codex() as codex:
        thread = codex.thread_start(ephemeral=True)
        assert thread.run("first").final_response == "one"
        assert listed(codex) == []
    assert not list(world.home.rglob("*.jsonl")), list(world.home.rglob("*.jsonl"))


@check("error: what is not there is refused by a typed error")
def missing(world: World) -> None:
    nobody = "00000000-0000-7000-8000-000000000000"
    with world.codex() as codex:
        for refused in (
            lambda: codex.thread_resume(nobody),
            lambda: codex.thread_fork(nobody),
            lambda: codex.thread_archive(nobody),
            lambda: codex.thread_resume("not an id"),
        ):
            try:
                refused()
            except InvalidRequestError as error:
                assert error.message, "an error without words"
            else:
                raise AssertionError("a thread that does not exist was found")
        try:
            codex.thread_list(cursor="no such cursor")
        except JsonRpcError as error:
            assert error.message, "an error without words"
        else:
            raise AssertionError("a cursor that was never given was accepted")
        assert codex.thread_start().id, "the server does not go on after errors"
