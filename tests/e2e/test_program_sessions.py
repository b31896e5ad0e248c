"""Sessions of the real programs in folders of their own: after a worker's restart, and of an older release (K3, N2)."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.boxes import try_boxes
from activities.runtimes.known_runtimes import PROGRAMS as PROGRAMS_OF_TABLE
from activities.settings.model import WorkerSection
from tests.e2e.program_jobs import KINDS, Job, Place, account_of
from tests.e2e.programs import PROGRAMS, ROOT, available, need, sections, variables
from tests.scripted_model import ScriptedModel
from workflows.contract.models import Action, AutonomyPolicy

pytestmark = [pytest.mark.long, pytest.mark.ruling("K3", "N2")]

SAYS: list[dict[str, Any]] = [{"result": {"decision": "approved", "summary": "looked at it"}}]
SPEAKS = {"responses": "codex", "messages": "claude", "chat": "kimi"}
"""Program that speaks each protocol of the model."""


class Chains:
    """A chain of jobs of each program; each job is run by a worker of its own."""

    def __init__(self, folder: Path, kind: str, uid: int | None, model: ScriptedModel) -> None:
        self.user, self._uid, self._model, self._done = folder / "user", uid, model, 0
        environ = {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": str(self.user)}
        environ |= variables(self.user / "programs", model)
        (folder / "shop").mkdir()
        commit = "git -c user.name=t -c user.email=t@example.invalid commit -q --allow-empty -m one"
        assert os.system(f"cd {folder}/shop && git init -q -b main && {commit}") == 0
        for entry in (folder, *folder.rglob("*")) if uid is not None else ():
            os.chown(entry, uid or 0, uid or 0, follow_symlinks=False)
        self._place = Place(folder, sections(model, f'box = "{kind}"'), environ)
        programs = Path(next(iter(available().values()))).parents[1]
        self._shown = [sys.prefix, sys.base_prefix, str(ROOT), str(programs)]

    def next(self) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
        """Run each chain's next job, and return their outcomes and the requests of their programs."""
        policy, number, before = AutonomyPolicy.READ_ONLY, self._done, len(self._model.requests())
        jobs = {name: Job(name, policy, Action.ASK, continues=number) for name in available()}
        self._done += 1
        ended = self._place.play(jobs, uid=self._uid, shown=self._shown)
        return ended, self._model.requests()[before:]


@pytest.fixture(params=[*KINDS, ("none", "root")], ids="-".join)
def chains(request: pytest.FixtureRequest) -> Iterator[Chains]:
    kind, who = request.param
    need(*PROGRAMS)
    uid = account_of(who) if kind != "none" else None
    if kind != "none" and (why := try_boxes.look(WorkerSection().agents_uid).lacks()):
        pytest.skip(why)
    folder = Path(tempfile.mkdtemp(prefix="sessions-"))
    with ScriptedModel(dict.fromkeys(PROGRAMS, SAYS)) as model:
        yield Chains(folder, kind, uid, model)
    shutil.rmtree(folder)


def turns(requests: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many turns of the user each program's last request had."""
    return {SPEAKS[one["protocol"]]: one["user_turns"] for one in requests}


def refusals(ended: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    return {
        name: [notice["data"]["why"] for notice in one["notices"] if notice["kind"] == "session_not_resumed"]
        for name, one in ended.items()
    }


def test_a_session_goes_on_after_a_worker_s_restart_and_one_of_an_older_release_begins_afresh(chains: Chains) -> None:
    first, _ = chains.next()
    assert {name: one["state"] for name, one in first.items()} == dict.fromkeys(PROGRAMS, "succeeded"), first
    second, requests = chains.next()
    assert refusals(second) == {name: [] for name in PROGRAMS}
    assert turns(requests) == dict.fromkeys(PROGRAMS, 2)
    assert {name: one["session"] for name, one in second.items()} == {
        name: one["session"] for name, one in first.items()
    }
    for name, program in PROGRAMS_OF_TABLE.items():  # as an older release left them: in the operator's folder
        for own in (chains.user / ".service" / "programs").glob(f"*/{PROGRAMS[name]}/*"):
            for sessions in program.writes:
                if (own / sessions).exists():
                    shutil.move(own / sessions, chains.user / "programs" / name / sessions)
    third, requests = chains.next()
    assert {name: one["state"] for name, one in third.items()} == dict.fromkeys(PROGRAMS, "succeeded"), third
    assert refusals(third) == {name: ["its program has lost it"] for name in PROGRAMS}
    assert turns(requests) == dict.fromkeys(PROGRAMS, 1)
