"""Registering a repository by its remote, and by a checkout on each host (ruling Q3)."""

from dataclasses import replace
from pathlib import Path

import pytest

from activities.git import git_branches
from activities.host import checkouts
from activities.settings.home import Home
from activities.store.registry import repo_rows
from bridge.operations.health import doctor
from bridge.operations.health.findings import Level
from bridge.operations.registry import repos
from bridge.operations.service import Service
from tests.activities.git.conftest import make_repository, run_git
from workflows.model.errors import RefusedError, UnreachableError, UsageError


@pytest.fixture
def forge(tmp_path: Path) -> Path:
    make_repository(tmp_path / "people")
    run_git(tmp_path, "clone", "-q", "--bare", "people", "forge.git")
    return tmp_path / "forge.git"


@pytest.fixture
def service(home: Home) -> Service:
    return Service(home)


@pytest.mark.ruling("Q3")
def test_a_repository_with_a_remote_needs_no_checkout(service: Service, forge: Path) -> None:
    repo = repos.add(service, "acme/shop", None, remote=str(forge))
    assert (repo.remote, repo.default_branch, repo.refs) == (str(forge), "main", "refs/service/")
    assert (repo.path, repo.host, repo.checkouts) == ("", "", {})
    place = checkouts.path_by_name(service, "acme/shop")
    assert place.parent == service.home.mirrors
    assert git_branches.commit(place, "HEAD") == run_git(forge, "rev-parse", "main")
    seen = repos.get(service, "acme/shop")
    assert (seen.path, seen.host) == (str(place), service.settings.host)


@pytest.mark.ruling("Q3")
def test_a_checkout_with_a_remote_is_worked_on_there_and_elsewhere_in_a_mirror(
    service: Service, forge: Path, tmp_path: Path
) -> None:
    top = tmp_path / "people"
    repo_rows.put(service.store, "acme/shop", "/srv/shop", "far")
    with pytest.raises(RefusedError, match="registered on the host far"):
        repos.add(service, "acme/shop", top)
    repos.add(service, "acme/shop", None, remote=str(forge))
    assert checkouts.path_by_name(service, "acme/shop").parent == service.home.mirrors
    repo = repos.add(service, "acme/shop", top)
    assert repo.checkouts == {"far": "/srv/shop", service.settings.host: str(top)}
    assert (repo.path, repo.host) == ("/srv/shop", "far")
    assert checkouts.path_by_name(service, "acme/shop") == top
    assert repos.here(service, top).name == "acme/shop"
    with pytest.raises(UsageError, match="one of them is left"):
        repos.add(service, "acme/shop", None, remote="")
    assert repos.add(service, "acme/shop", top, remote="").checkouts == {service.settings.host: str(top)}


@pytest.mark.ruling("Q3")
@pytest.mark.parametrize(
    ("remote", "error", "says"),
    [
        ("https://ann:secret@example.org/shop.git", UsageError, "holds a password"),
        ("--upload-pack=touch /tmp/x", UsageError, "is not a URL"),
        ("ext::sh -c true", RefusedError, "transport 'ext', which is not allowed"),
        (
            "git://example.org/shop.git",
            RefusedError,
            "'git', which is not allowed; allowed are https, http, ssh and file",
        ),
        ("/nowhere/shop.git", UnreachableError, "cannot be reached"),
        ("", UsageError, "needs a checkout"),
    ],
)
def test_a_remote_that_cannot_be_used_registers_nothing(
    service: Service, remote: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as refused:
        repos.add(service, "acme/shop", None, remote=remote)
    assert "secret" not in str(refused.value)
    assert repo_rows.every(service.store) == []


@pytest.mark.ruling("Q3")
def test_a_hub_of_ones_own_takes_the_work_in_place_of_the_remote(service: Service, forge: Path, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    service.home.ensure().config.write_text(f'[git]\nhub = "{hub}"\n')
    with pytest.raises(UnreachableError, match=r"hub\.git cannot be reached"):
        repos.add(service, "acme/shop", None, remote=str(forge))
    run_git(tmp_path, "init", "-q", "--bare", str(hub))
    repo = repos.add(service, "acme/shop", None, remote=str(forge))
    through = checkouts.hub_of(service, repo)
    assert through is not None
    assert (through.url, through.refs) == (str(hub), "refs/service/acme--shop/")
    assert checkouts.hub_of(service, replace(repo, remote="")) is None
    assert list(doctor.repositories(service)) == []
    hub.rename(tmp_path / "away.git")
    [wrong] = doctor.repositories(service)
    assert (wrong.about, wrong.level, wrong.fix) == ("repository acme/shop", Level.WRONG, f"git ls-remote {hub}")


@pytest.mark.ruling("Q6")
def test_people_are_told_what_is_pushed_how_often_and_who_can_read_it(service: Service, forge: Path) -> None:
    repo = repos.add(service, "acme/shop", None, remote=str(forge))
    text = " ".join(repos.push_notice(service, repo))
    assert "refs/service/JOB" in text
    assert "once a minute" in text
    assert f"whoever can read {forge} can read them" in text
