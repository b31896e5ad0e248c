"""`service doctor`: each check, passing and failing."""

import json
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from activities.sealing import seal_key
from activities.settings.home import Home
from activities.store.database import HEAD, open_store
from activities.store.registry import host_rows, repo_rows
from bridge.operations.health import doctor
from bridge.operations.health.findings import Finding, Level
from bridge.operations.service import Service
from cli.main import main
from tests.activities.git.conftest import make_repository, run_git
from tests.activities.store.conftest import emptied, postgres

__all__ = ["postgres"]

pytestmark = pytest.mark.ruling("engine:doctor")


def found(home: Home) -> dict[str, Finding]:
    return {finding.about: finding for finding in doctor.examine(Service(home))}


def test_an_untouched_home_is_well_and_only_waits_to_be_started(
    bare_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["healthy"] is True
    levels = {finding["about"]: finding["level"] for finding in answer["findings"]}
    assert levels["python"] == levels["git"] == levels["home"] == levels["settings"] == levels["store"] == "ok"
    assert levels["temporal"] == levels["daemon"] == "warning"
    assert not bare_home.store.exists()  # reading the home creates nothing
    assert main(["doctor"]) == 0
    assert "fix: service daemon start" in capsys.readouterr().out


def test_everything_not_well_names_what_to_type(home: Home) -> None:
    home.config.write_text("[worker]\nkeep_run = 1\n")
    findings = doctor.examine(Service(home))
    assert not doctor.healthy(findings)
    assert [finding.about for finding in findings if finding.level is Level.WRONG] == ["settings"]
    assert all(finding.fix for finding in findings if finding.level is not Level.OK)
    assert 'did you mean "keep_runs"?' in found(home)["settings"].says


def test_a_home_others_may_read_is_closed_by_the_look_at_it(home: Home) -> None:
    assert found(home)["home"].level is Level.OK
    home.root.chmod(0o755)
    finding = found(home)["home"]
    assert finding.level is Level.WARNING
    assert "was open to other accounts (mode 755); it is closed now" in finding.says
    assert home.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", ["file", "file/below", "shared", "/proc/none"])
def test_an_impossible_home_is_said_once_and_nothing_in_it_is_looked_at(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    *well, last = doctor.examine(Service(Home(tmp_path / place)))
    assert [finding.about for finding in (*well, last)] == ["python", "git", "home"]
    assert doctor.healthy(well)
    assert "cannot be the service home" in last.says
    assert last.fix.startswith("export SERVICE_HOME=/")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is closed to root")
def test_a_home_that_cannot_be_written_is_wrong(home: Home) -> None:
    home.root.chmod(0o500)
    assert found(home)["home"].level is Level.WRONG
    home.root.chmod(0o700)


@pytest.mark.parametrize(("free", "level"), [(10**8, Level.WRONG), (10**9, Level.WARNING), (10**11, Level.OK)])
def test_little_room_is_said_before_it_is_gone(
    home: Home, monkeypatch: pytest.MonkeyPatch, free: int, level: Level
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**12, 0, free))
    assert found(home)["disk"].level is level


@pytest.mark.parametrize(
    ("prints", "level"),
    [
        ("git version 2.38.0", Level.OK),
        ("git version 2.37.9", Level.WRONG),
        ("git version 2.9.1", Level.WRONG),
        ("?", Level.WRONG),
    ],
)
def test_an_old_git_is_wrong(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prints: str, level: Level
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{prints}'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(program.parent))
    assert found(home)["git"].level is level
    program.unlink()
    assert found(home)["git"].says == "there is no git on the PATH"


@pytest.mark.ruling("Q1")
def test_a_look_at_the_store_of_an_older_release_leaves_it_as_it_is(home: Home) -> None:
    open_store(home).dispose()
    with sqlite3.connect(home.store) as store:
        store.execute("UPDATE alembic_version SET version_num = '0012'")
        store.execute("DROP TABLE hosts")
    seen = found(home)
    assert (seen["store"].level, "fleet" in seen) == (Level.OK, False)
    assert f"{home.store}: schema 0012; the daemon migrates it to {HEAD}" in seen["store"].says
    with sqlite3.connect(home.store) as store:
        assert store.execute("SELECT version_num FROM alembic_version").fetchall() == [("0012",)]


@pytest.mark.ruling("Q1")
def test_a_host_that_its_fleet_would_refuse_is_told_before_a_start(home: Home, tmp_path: Path) -> None:
    home.config.write_text(f'[store]\nurl = "sqlite:///{tmp_path}/fleet.db"\n[worker]\nhost = "web-1"\n')
    service = Service(home)
    host_rows.form(service.store, host_rows.Cluster("f" * 64, "service", "0.2.0"))
    [wrong] = [each for each in doctor.foundation(service) if each.about == "fleet"]
    assert (wrong.level, wrong.fix[:24]) == (Level.WRONG, "service host replace-key")
    host_rows.form(
        service.store, host_rows.Cluster(seal_key.fingerprint(seal_key.ensure(home.root)), "service", ""), replace=True
    )
    host_rows.see(service.store, "web-1", slots=1, started_at=1.0, machine="another")
    assert "the host name web-1 is in use" in found(home)["fleet"].says
    host_rows.stop(service.store, "web-1", started_at=1.0)
    host_rows.see(service.store, "web-2", slots=1, started_at=1.0)
    assert found(home)["fleet"].says == "1 of 2 hosts at work: web-2"


@pytest.mark.ruling("Q1")
def test_what_postgresql_allows_is_compared_with_what_the_hosts_need(home: Home, postgres: str) -> None:
    emptied(postgres)
    home.config.write_text(f'[store]\nurl = "{postgres}"\npool = 30\n')

    def levels() -> dict[str, Level]:
        return {each.says: each.level for each in doctor.store(replace(Service(home), migrates=False))}

    [first, connections] = levels().items()
    assert (first[1], "it has no tables yet" in first[0]) == (Level.OK, True)
    assert (connections[1], "1 host needs 38" in connections[0]) == (Level.WARNING, True), "it allows 30"
    [fix] = [each.fix for each in doctor.store(replace(Service(home), migrates=False)) if "needs 38" in each.says]
    assert ("max_connections = 41" in fix, fix[-36:]) == (True, "; or pool = 19 in [store] of every host"[-36:])
    with create_engine(postgres).begin() as session:
        session.execute(text("CREATE ROLE reader LOGIN"))
        session.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        session.execute(text("GRANT USAGE ON SCHEMA public TO PUBLIC"))
    home.config.write_text(f'[store]\nurl = "{postgres.replace("service@", "reader@")}"\n')
    refused = "the account reader may not make tables in the schema public of the database postgres"
    assert levels()[refused] is Level.WRONG
    with create_engine(postgres).begin() as session:
        session.execute(text("DROP ROLE reader"))


@pytest.mark.ruling("N3")
def test_what_libgit2_cannot_do_with_a_repository_is_said_with_what_to_type(home: Home, tmp_path: Path) -> None:
    service = Service(home)
    plain = make_repository(tmp_path / "plain")
    odd, other = make_repository(tmp_path / "odd"), tmp_path / "other"
    for name, value in (("filter.crypt.clean", "crypt"), ("filter.lfs.clean", "lfs"), ("merge.po.driver", "po")):
        run_git(odd, "config", name, value)
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(other)], check=True)
    for path in (plain, odd, other, tmp_path / "gone"):
        path.mkdir(exist_ok=True)
        repo_rows.put(service.store, f"acme/{path.name}", str(path), service.settings.host)
    findings = [each for each in doctor.examine(service) if each.about.startswith("repository ")]
    assert [(each.about, each.level) for each in findings] == [
        ("repository acme/gone", Level.WRONG),
        ("repository acme/odd", Level.WARNING),
        ("repository acme/odd", Level.WARNING),
        ("repository acme/other", Level.WRONG),
    ]
    assert "its filter crypt is not run" in findings[1].says
    assert "its merge driver po is not run" in findings[2].says
    assert "SHA-256" in findings[3].says
    assert found(home)["libgit2"].says.startswith("libgit2 1.")


def test_a_store_of_another_program_is_wrong_and_the_rest_is_looked_at(home: Home) -> None:
    home.store.write_text("not a database, but long enough to be taken for one" * 100)
    findings = found(home)
    assert findings["store"].level is Level.WRONG
    assert findings["daemon"].level is Level.WARNING


def test_a_database_that_does_not_answer_is_reported_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_STORE_URL", "postgresql+psycopg://service@127.0.0.1:1/store")
    findings = doctor.examine(Service(home))
    assert [each.about for each in findings if each.level is Level.WRONG] == ["store"]
    assert findings[-1].about == "bounds", "the checks that don't need it follow"


def test_a_cluster_that_does_not_answer_is_wrong(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TEMPORAL_ADDRESS", "127.0.0.1:1")
    assert found(home)["temporal"].level is Level.WRONG
    assert "127.0.0.1:1" in found(home)["temporal"].says


def test_what_workers_found_left_over_is_said_for_a_day(home: Home) -> None:
    home.orphans.parent.mkdir()
    lines = [{"said": "run job-old.1", "at": time.time() - 90_000}, {"said": "run job-a.1", "at": time.time() - 60}]
    home.orphans.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{cut off")
    left = [finding for finding in doctor.examine(Service(home)) if finding.about == "left over"]
    assert [finding.level for finding in left] == [Level.WARNING]
    assert left[0].says.startswith("run job-a.1; ended at ")


def test_what_cannot_be_looked_at_is_said_and_is_no_crash(home: Home) -> None:
    home.orphans.mkdir(parents=True)
    assert found(home)["leftovers"].says.startswith("cannot be checked: ")


@pytest.mark.ruling("N1")
def test_the_key_is_told_by_a_fingerprint_that_hosts_can_compare(home: Home) -> None:
    finding, key = found(home)["seals"], home.root / seal_key.FILE
    assert finding.level is Level.OK
    assert "sealed with seal.key " in finding.says
    assert "messages by hand are taken" in finding.says
    assert key.read_bytes().hex()[:12] not in finding.says
    home.config.write_text("[temporal]\nencrypt = true\nby_hand = false\n")
    assert "encrypted" in found(home)["seals"].says
    assert "messages by hand are refused" in found(home)["seals"].says
    home.config.write_text('[runtimes.shell]\nnetwork = "full"\n')
    near = "agents of shell can reach the server"
    assert f"messages by hand are refused, and {near}" in found(home)["seals"].says
    home.config.write_text('[runtimes.shell]\nnetwork = "full"\n[temporal]\nby_hand = true\n')
    warned = found(home)["seals"]
    assert (warned.level, warned.fix) == (Level.WARNING, "set by_hand = false in [temporal]")
    assert f"messages by hand are taken, and {near}: they can answer for people" in warned.says
    key.chmod(0o644)
    open_key = found(home)["seals"]
    assert (open_key.level, f"rm '{key}'" in open_key.fix) == (Level.WRONG, True)
    key.unlink()
    assert "no seal.key yet" in found(home)["seals"].says
    assert not key.exists()


def test_checks_run_side_by_side_and_their_findings_come_in_order(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    met = threading.Barrier(3, timeout=60)

    def wait_for_all(service: Service) -> Iterator[Finding]:
        met.wait()
        yield Finding("met", Level.OK, str(service.home.root))

    checks = [partial(wait_for_all) for _ in range(3)]
    for number, check in enumerate(checks):
        check.__name__ = f"check {number}"  # type: ignore[attr-defined]
    monkeypatch.setattr(doctor, "CHECKS", (doctor.settings, *checks, doctor.libgit2))
    about = ["settings", "met", "met", "met", "libgit2"]
    assert [finding.about for finding in doctor.examine(Service(home))] == about


def test_a_finding_is_told_before_the_next_check_has_ended(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    both_read = threading.Event()

    def slow(_: Service) -> Iterator[Finding]:
        assert both_read.wait(60)
        yield Finding("slow", Level.OK, "came last")

    monkeypatch.setattr(doctor, "CHECKS", (doctor.python, doctor.libgit2, slow))
    findings = doctor.look(Service(home))
    assert [next(findings).about, next(findings).about] == ["python", "libgit2"]
    both_read.set()
    assert [finding.about for finding in findings] == ["slow"]
