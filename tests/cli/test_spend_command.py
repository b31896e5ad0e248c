"""`service spend`: printed tokens and dollars."""

import json

import pytest

from activities.settings.home import Home
from bridge.operations.service import Service
from cli.main import main
from tests.bridge import seeds
from workflows.model.spend import Usage

pytestmark = pytest.mark.ruling("M4", "K5", "K6")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["spend", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def service(home: Home) -> Service:
    service = Service(home)
    used = Usage(input_tokens=1_000, output_tokens=20)
    root = seeds.job(usage=used.model_copy(update={"requests": 3}), cost_usd=0.25, model="known")
    hostile = "\x1b[2J\u202eevil"
    leg = seeds.job(f"{seeds.ROOT}.1", usage=used, cost_usd=0.5, price_assumed=True, agent=hostile)
    seeds.write(service, root, leg, seeds.event(1, kind="result_repaired", at=root.queued_at))
    return service


def test_it_prints_each_with_its_tokens_and_dollars(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.split() for line in printed(capsys).splitlines()]
    assert ["scout", "1", "1,000", "20", "$0.25", "3", "1"] in lines
    assert ["acme/shop", "2", "2,000", "40", "~$0.75", "3", "1"] in lines
    assert ["known", "1", "1,000", "20", "$0.25", "3", "1"] in lines
    assert ["unknown", "1", "1,000", "20", "~$0.50", "-", "0"] in lines
    assert ["30", "days", "2", "2,000", "40", "~$0.75", "3", "1"] in lines


@pytest.mark.ruling("S6")
def test_a_job_shows_its_requests_if_its_program_said_them(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["job", "show", seeds.ROOT]) == main(["job", "show", f"{seeds.ROOT}.1"]) == 0
    known, unknown = (line for line in capsys.readouterr().out.splitlines() if " 20 out, " in line)
    assert known.endswith("$0.25, by 3 requests")
    assert "request" not in unknown


def test_what_an_agent_is_called_cannot_drive_the_terminal(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not set(printed(capsys)) & set("\x1b\u202e")


def test_json_has_every_day(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "--days", "7", "--json"))
    assert len(document["days"]) == 7
    assert document["days"][-1]["input_tokens"] == 2_000
    assert (document["total"]["cost_usd"], document["total"]["price_assumed"]) == (0.75, True)


def test_where_nothing_ran_it_says_how_to_begin(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert "service agent ask" in printed(capsys)


def test_days_that_make_no_sense_are_refused(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spend", "--days", "0"]) == 2
