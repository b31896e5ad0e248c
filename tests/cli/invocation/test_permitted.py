"""The one table of permitted callers lists every command; agents are refused people's commands by name (ruling N5)."""

from pathlib import Path
from typing import Any

import pytest

from activities.runs import ancestry
from activities.runs.ancestry import AgentProcess, GoneError, HiddenError, UntoldError
from activities.settings.home import Home
from activities.store import event_rows
from bridge.operations.refused_agents import ForPeopleError
from bridge.operations.service import Service
from cli.invocation import calling
from cli.invocation.permitted import INSTEAD, SERVED
from cli.main import NOUNS, command_of, leaves, main
from tests.bridge import seeds
from workflows.model.errors import RefusedError

pytestmark = pytest.mark.ruling("N5")
JOB = f"{seeds.ROOT}.1"


def commands() -> dict[str, Any]:
    return {path: leaf for noun in NOUNS for path, leaf in leaves(command_of(noun), noun)}


@pytest.fixture
def agent(home: Home, monkeypatch: pytest.MonkeyPatch) -> Service:
    """Make every typed command an agent's."""
    service = Service(home)
    seeds.write(service, seeds.task(), seeds.job(seeds.ROOT), seeds.job(JOB))
    monkeypatch.setattr(calling, "agent", lambda: AgentProcess(JOB, home.root))
    return service


def test_every_command_is_in_the_table_once_and_no_other() -> None:
    assert not SERVED & INSTEAD.keys()
    assert set(commands()) == SERVED | INSTEAD.keys()


def test_people_s_commands_are_refused_to_agents_by_name(agent: Service) -> None:
    for path, hint in INSTEAD.items():
        with pytest.raises(ForPeopleError) as refused:
            commands()[path].callback()
        assert refused.value.message == f"`service {path}` is for people, and an agent of {JOB} has called it"
        assert refused.value.hint == hint
        assert (refused.value.exit_code, refused.value.status) == (3, 403)


def test_a_command_that_nobody_has_put_into_the_table_is_refused(agent: Service) -> None:
    with pytest.raises(ForPeopleError):
        calling.for_people("something new")


def test_that_an_agent_tried_is_told_once_for_each_order(agent: Service, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["resume", seeds.ROOT, "abort"], ["resume", seeds.ROOT, "retry"], ["job", "kill", seeds.ROOT]):
        assert main(words) == 3
        assert "has called it\ntry: " in capsys.readouterr().err
    events = [each for each in event_rows.of_tree(agent.store, seeds.ROOT) if each.kind == "agent_refused"]
    assert [each.message for each in events] == [
        f"`service {what}` is for people, and an agent of {JOB} has called it; it was refused"
        for what in ("resume", "job kill")
    ]
    assert {each.job_id for each in events} == {JOB}


def test_it_is_told_in_the_home_of_its_job_whatever_home_its_environment_names(
    agent: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SERVICE_HOME", str(tmp_path / "another"))
    assert main(["job", "kill", seeds.ROOT]) == 3
    assert [each.kind for each in event_rows.of_tree(agent.store, seeds.ROOT)] == ["agent_refused"]


def test_an_agent_s_looks_are_served(agent: Service, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["job", "show", JOB], ["job", "tree", JOB], ["attention"], ["memory", "list"], ["result", "schema"]):
        assert main(words) == 0
    assert main(["job", "show", JOB, "--web"]) == 3
    assert "`service dashboard` is for people" in capsys.readouterr().err


def test_an_agent_proposes_in_the_name_of_its_own_job(agent: Service, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "propose", "limits", "They are here.", "--job", JOB]) == 0
    assert main(["memory", "propose", "limits", "They are there.", "--job", seeds.ROOT]) == 3
    assert f"this is an agent of {JOB}, and it speaks for no other job than its own" in capsys.readouterr().err


@pytest.mark.parametrize("error", [GoneError("process 7 has ended"), HiddenError("/proc does not show process 7")])
def test_where_nothing_tells_who_typed_it_people_s_commands_are_refused_with_the_way_out(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: UntoldError
) -> None:
    def untold(pid: int) -> AgentProcess:
        raise error

    monkeypatch.setattr(ancestry, "agent_of", untold)
    assert main(["memory", "add", "limits", "They are here."]) == 3
    errors = capsys.readouterr().err
    assert errors.startswith(f"error: {error}, so it can't be checked that a person ran this\n")
    assert "try: type it where /proc shows the daemon and every process above yours" in errors
    assert main(["memory", "propose", "limits", "They are here.", "--job", JOB]) == 3
    assert main(["memory", "list"]) == 0, "whoever it is may look"


def test_who_has_ended_orders_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        pid, lives = 2**22 + 1, False

    monkeypatch.setattr(calling, "_typed_by", Gone())
    with pytest.raises(RefusedError, match="the calling process has exited"):
        calling.for_people("resume")
