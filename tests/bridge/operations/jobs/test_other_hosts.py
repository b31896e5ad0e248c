"""What lies in another host's home, asked for from here: its runs' output, with a signature and within seconds (Q3)."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from activities.runs.status import RunStage
from activities.sealing import seal_key
from activities.sealing.host_calls import HEADER, LASTS, HostCall
from activities.settings.home import Home
from bridge.http.gates.rate import Rate
from bridge.http.routes import hosts as routes
from bridge.operations.jobs import hosts, jobs, output
from bridge.operations.service import Service
from tests.bridge import seeds
from tests.bridge.conftest import Live, bearer
from tests.bridge.two_hosts import HERE, THERE, joined, reachable, seen
from tests.waiting import PATIENCE, wait_for
from workflows.model.errors import NotFoundError, RefusedError, ServiceError, UnreachableError
from workflows.model.states import JobState

pytestmark = pytest.mark.ruling("Q3.looks")
JOB = seeds.ROOT
LINES = "".join(f"line {number}\n" for number in range(9_999))


@dataclass(frozen=True)
class Pair:
    """This host, and another one whose job runs."""

    here: Service
    there: Live
    run_dir: Path

    def refusal(self) -> ServiceError:
        with pytest.raises(ServiceError) as refused:
            output.log(self.here, JOB)
        return refused.value

    async def get(self, path: str, **headers: str) -> httpx.Response:
        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        async with httpx.AsyncClient(base_url=self.there.url) as client:
            return await client.get(path, headers=pairs)

    def signed(self, path: str, age: float = 0.0, called: str = THERE, key: bytes | None = None) -> dict[str, str]:
        key = key or seal_key.ensure(self.here.home.root)
        return {HEADER: HostCall(HERE, called, path, time.time() - age).header(key)}


@pytest.fixture
def pair(home: Home, tmp_path: Path, listening: Callable[[Service], Live]) -> Iterator[Pair]:
    here, there = joined(home, tmp_path)
    seeds.write(here, seeds.task(), seeds.job(state=JobState.RUNNING, attempt=1, ended_at=None))
    folder = there.home.runs / f"{JOB}.1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text(LINES)
    (folder / "prompt").write_text("# Job\ndo it\n")
    seeds.payload(here, JOB, {}, host=THERE, run_dir=str(folder))
    hosts._away.clear()
    yield Pair(here, reachable(listening(there)), folder)
    here.store.dispose()
    there.store.dispose()


def test_a_log_is_that_of_the_other_host(pair: Pair) -> None:
    there = pair.there.service
    last = output.log(pair.here, JOB)
    assert last == output.log(there, JOB)
    assert "line 9998" in last.entries[-1].text
    assert output.log(pair.here, JOB, before=last.earlier_cursor, limit=3) == output.log(
        there, JOB, before=last.earlier_cursor, limit=3
    )
    with (pair.run_dir / "stdout.log").open("a") as file:
        file.write("further\n")
    more = output.log(pair.here, JOB, 1, cursor=last.next_cursor)
    assert [entry.text for entry in more.entries] == ["further"]


def test_raw_output_comes_whole_in_pieces_and_the_prompt_too(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "PIECES", 1)
    pieces = [*output.raw(pair.here, JOB)]
    assert b"".join(piece for piece, _ in pieces).decode() == LINES
    assert len(pieces) > 1
    assert pieces[-1][1] == len(LINES)
    assert [*output.raw(pair.here, JOB, cursor=len(LINES) - 10)] == [(b"line 9998\n", len(LINES))]
    assert output.prompt(pair.here, JOB) == output.prompt(pair.there.service, JOB)


def test_the_progress_of_its_agent_is_told(pair: Pair) -> None:
    detail = jobs.detail(pair.here, JOB)
    assert detail.host == THERE
    assert detail.live is not None
    assert detail.live.stage is RunStage.WAITING, "no process of the run has begun in this test"


def test_what_is_gone_there_is_told_with_the_hosts_name(pair: Pair) -> None:
    (pair.run_dir / "prompt").unlink()
    with pytest.raises(NotFoundError, match=rf"not kept any more \(\[worker\].keep_runs\) \(says the host {THERE}\)"):
        output.prompt(pair.here, JOB)


def trickle(server: socket.socket) -> None:
    """Answer a call without an end, a byte at a time."""
    with suppress(OSError), server.accept()[0] as line:
        line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            line.sendall(b"1\r\nx\r\n")
            time.sleep(0.05)


@pytest.mark.parametrize("address", ["", "dead", "silent", "trickling"])
def test_a_host_that_cannot_be_asked_is_named_within_seconds(
    pair: Pair, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(hosts, "AWAY_SECONDS", 60.0)
    hosts._client.cache_clear()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if address == "dead":
            server.close()
        if address == "trickling":
            threading.Thread(target=trickle, args=[server], daemon=True).start()
        seen(pair.there.service, f"http://127.0.0.1:{port}" if address else "")
        began = time.monotonic()
        refusal = pair.refusal()
        assert time.monotonic() - began < 30
        assert f"attempt 1 ran on the host {THERE}, which " in refusal.message
        assert refusal.hint == f"ssh {THERE} service job log {JOB}"
        assert isinstance(refusal, UnreachableError if address else RefusedError)
        with monkeypatch.context() as left_alone:
            left_alone.setattr(hosts, "_client", pytest.fail)
            assert pair.refusal().message == refusal.message
    hosts._client.cache_clear()


def test_another_key_is_refused_on_both_sides(pair: Pair) -> None:
    key = pair.here.home.root / "seal.key"
    key.write_bytes(seal_key.new())
    refusal = pair.refusal()
    assert isinstance(refusal, UnreachableError)
    assert THERE in refusal.message
    key.unlink()
    assert "no seal key" in pair.refusal().message


class TestSignature:
    """The header of a call."""

    PATH = f"/hosts/attempts/{JOB}/1/prompt?most=100"

    async def test_it_counts_for_one_target_and_host_and_a_short_time(self, pair: Pair) -> None:
        assert (await pair.get(self.PATH, **pair.signed(self.PATH))).text == "# Job\ndo it\n"
        wrong: dict[str, dict[str, str]] = {
            "none": {},
            "another path": pair.signed(self.PATH.replace("prompt", "raw")),
            "another query": pair.signed(self.PATH.replace("100", "1000")),
            "too old": pair.signed(self.PATH, age=LASTS + 5),
            "too new": pair.signed(self.PATH, age=-LASTS - 5),
            "another host": pair.signed(self.PATH, called=HERE),
            "another key": pair.signed(self.PATH, key=seal_key.new()),
            "no number": {HEADER: "soon 00 web-1"},
            "not ASCII": {HEADER: "1.0 \xe9 web-1"},
        }
        answers = {name: (await pair.get(self.PATH, **headers)).status_code for name, headers in wrong.items()}
        assert answers == dict.fromkeys(wrong, 401)

    async def test_any_key_of_the_called_host_proves_it(self, pair: Pair) -> None:
        new = seal_key.new()
        seal_key.add(pair.there.service.home.root, new)
        assert (await pair.get(self.PATH, **pair.signed(self.PATH, key=new))).status_code == 200

    async def test_tokens_and_signatures_open_different_doors(self, pair: Pair) -> None:
        assert (await pair.get(self.PATH, **bearer(pair.there.service))).status_code == 401
        assert (await pair.get("/v1/jobs", **pair.signed("/v1/jobs"))).status_code == 401

    async def test_the_gates_of_all_calls_hold_for_it(self, pair: Pair) -> None:
        signed = pair.signed(self.PATH)
        assert (await pair.get(self.PATH, **signed, host="evil.example")).status_code == 403
        assert (await pair.get(self.PATH, **signed, origin="http://evil.example")).status_code == 403

    async def test_a_call_that_is_shown_again_later_takes_nothing_from_the_host_s_rate(
        self, pair: Pair, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        old, counted = pair.signed(self.PATH, age=LASTS + 5), list[str]()
        monkeypatch.setattr(Rate, "count", lambda _, caller: counted.append(caller))
        await pair.get(self.PATH, **old)
        assert counted == ["address 127.0.0.1"]

    async def test_a_call_has_a_line_in_the_audit(self, pair: Pair) -> None:
        await pair.get(self.PATH, **pair.signed(self.PATH))
        audit = pair.there.service.home.audit
        await asyncio.to_thread(wait_for, lambda: audit.read_text())
        line = audit.read_text().splitlines()[-1]
        assert f'"by":"host {HERE}"' in line
        assert '"route":"/hosts/attempts/{job_id}/{attempt}/prompt"' in line


async def test_two_hosts_that_ask_each_other_do_not_wait_for_each_other(
    pair: Pair, listening: Callable[[Service], Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many pages as a bridge has threads for reads are open on both, each showing a job of the other."""
    for patience in ("ANSWER_SECONDS", "CONNECT_SECONDS"):
        monkeypatch.setattr(hosts, patience, PATIENCE)
    hosts._client.cache_clear()
    mine = reachable(listening(pair.here))
    seeds.write(pair.here, seeds.job(f"{JOB}.1", state=JobState.RUNNING, attempt=1, ended_at=None))
    folder = pair.here.home.runs / f"{JOB}.1.1"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("mine\n")
    seeds.payload(pair.here, f"{JOB}.1", {}, host=HERE, run_dir=str(folder))
    async with mine.client() as here, pair.there.client() as there:
        asked = [here.get(f"/v1/jobs/{JOB}/log") for _ in range(6)]
        asked += [there.get(f"/v1/jobs/{JOB}.1/log") for _ in range(6)]
        answers = await asyncio.gather(*asked)
    hosts._client.cache_clear()
    assert [answer.status_code for answer in answers] == [200] * 12
