"""What doctor says of the releases of a fleet's hosts (ruling Q8)."""

from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store.registry import host_rows
from activities.worker_releases import NoDeploymentsError
from bridge.operations.health import doctor, releases
from bridge.operations.health.findings import Level
from bridge.operations.service import Service

pytestmark = pytest.mark.ruling("Q8")


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Return a host of a fleet, whose database stands for PostgreSQL."""
    home = Home(tmp_path / "home").ensure()
    home.config.write_text(f'[worker]\nhost = "one"\n[store]\nurl = "sqlite:///{tmp_path}/fleet.db"\n')
    return Service(home)


def works(service: Service, monkeypatch: pytest.MonkeyPatch, **hosts_releases: str) -> None:
    for name, release in hosts_releases.items():
        monkeypatch.setattr(host_rows, "release", lambda release=release: release)
        host_rows.see(service.store, name, slots=1, started_at=1.0)


def looks(monkeypatch: pytest.MonkeyPatch, current: str, behind: tuple[str, ...] = ()) -> None:
    async def look(_service: Service) -> tuple[str, list[str]]:
        return current, list(behind)

    monkeypatch.setattr(releases, "_look", look)


def test_hosts_and_trees_that_lag_behind_are_named(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    works(service, monkeypatch, one="0.3.0", two="0.2.0")
    looks(monkeypatch, "0.3.0", ("job-1", "job-2", "job-3", "job-4"))
    lags, leads = releases.of_releases(service)
    assert (lags.level, lags.says.startswith("two runs release 0.2.0")) == (Level.WARNING, True)
    assert "on two: pip install -U delegation-service==0.3.0" in lags.fix
    assert leads.level is Level.OK
    assert leads.says.endswith("on another until their next step: 4 trees (job-1, job-2, job-3 and more)")


def test_a_release_that_no_host_has_any_more_is_wrong(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    works(service, monkeypatch, two="0.2.0")
    looks(monkeypatch, "0.3.0")
    finding = next(releases.of_releases(service))
    assert (finding.level, finding.says) == (Level.WRONG, "trees wait for release 0.3.0, which no running host has")
    assert "pip install delegation-service==0.3.0" in finding.fix


def test_a_server_without_deployments_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(_service: Service) -> tuple[str, list[str]]:
        raise NoDeploymentsError("unknown method")

    monkeypatch.setattr(releases, "_look", look)
    [finding] = releases.of_releases(service)
    assert (finding.level, "upgrade all hosts together" in finding.fix) == (Level.WARNING, True)


def test_a_single_host_has_nothing_to_compare(bare_home: Home) -> None:
    assert list(doctor.releases(Service(bare_home))) == []
