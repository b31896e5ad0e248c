"""The compose file, the image and Temporal's configuration: read, not run, since they need a container engine."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from activities.settings.load import ENVIRONMENT
from bridge.daemon.installation import ACCOUNT, ACCOUNT_HOME
from bridge.daemon.server import TUNING
from cli.main import main

ROOT = Path(__file__).parents[2]
HERE = ROOT / "dev-cluster"
COMPOSE = (HERE / "compose.yaml").read_text()
SMALLINT = 32_767
"""The largest port that Temporal's servers can record of each other."""

NOT_ON_ONE_HOST = {"history.sendRawHistoryBetweenInternalServices"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
    return parsed


def steps() -> list[tuple[str, str]]:
    """Return the instructions of the image's file, with lines that go on joined."""
    text = re.sub(r"\\\n\s*", " ", (HERE / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


@pytest.mark.ruling("Q11")
def test_every_port_is_one_that_temporal_can_record(services: dict[str, dict[str, Any]]) -> None:
    text = yaml.safe_dump(services)
    ports = {int(port) for port in re.findall(r":(\d{2,5})\b", text)}
    ports |= {int(port) for port in re.findall(r"PORT: '?(\d+)", text)}
    assert {5432, 7233} <= ports
    assert max(ports) <= SMALLINT


@pytest.mark.ruling("Q11")
def test_each_service_waits_for_one_that_is_there(services: dict[str, dict[str, Any]]) -> None:
    waits = {(name, other) for name, service in services.items() for other in service.get("depends_on", ())}
    assert waits == {("schema", "postgresql"), ("temporal", "schema"), ("host", "temporal")}
    for name, other in waits:
        healthy = services[name]["depends_on"][other]["condition"] == "service_healthy"
        assert healthy == ("healthcheck" in services[other]), other
    passwords = re.findall(r"\$\{POSTGRES_PASSWORD[^}]*\}", COMPOSE)
    assert set(passwords) == {"${POSTGRES_PASSWORD:?export POSTGRES_PASSWORD first}"}, "none by default"


@pytest.mark.ruling("Q11")
def test_what_the_host_is_told_exists(services: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    host = services["host"]
    assert set(host["environment"]) <= set(ENVIRONMENT)
    image = dict(steps())
    typed = [*json.loads(image["ENTRYPOINT"]), *json.loads(image["CMD"])]
    commands = [*(words.split() for words in re.findall(r"service ([a-z ]+)", host["command"][0])), typed[1:]]
    assert commands == [["cluster", "init"], ["daemon", "run"], ["daemon", "run"]]
    for command in commands:
        assert main([*command, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out
    built = (HERE / host["build"]["context"]).resolve()
    assert (built, built / host["build"]["dockerfile"]) == (ROOT, HERE / "Containerfile")
    for volume in services["temporal"]["volumes"]:
        assert (HERE / volume.split(":")[0]).is_file()


@pytest.mark.ruling("Q11")
def test_the_image_has_the_whole_package_and_the_units_account() -> None:
    copied = [path for name, words in steps() if name == "COPY" for path in words.split()[:-1]]
    assert [path for path in copied if not (ROOT / path).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    package = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {*package, project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"}
    assert needed <= set(copied)
    [extras] = re.findall(r'"\.\[([a-z,]+)\]"', str(steps()))
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])
    making = next(words for name, words in steps() if name == "RUN" and "useradd" in words)
    assert f"--home-dir {ACCOUNT_HOME} --shell /bin/bash {ACCOUNT}" in making
    assert ("USER", ACCOUNT) in steps()
    assert ("VOLUME", str(ACCOUNT_HOME)) in steps()


@pytest.mark.ruling("Q11")
def test_a_fleets_server_is_tuned_as_the_services_own() -> None:
    settings = yaml.safe_load((HERE / "temporal.yaml").read_text())
    own = dict(line.split("=", 1) for line in TUNING)
    for name, [constrained] in settings.items():
        assert list(constrained) == ["value"]
        if name not in NOT_ON_ONE_HOST:
            assert constrained["value"] == json.loads(own[name])


@pytest.mark.ruling("Q11")
def test_the_manuals_pod_runs_commands_of_the_image() -> None:
    page = (ROOT / "cli/topics/deploy.md").read_text()
    making = next(words for name, words in steps() if name == "RUN" and "useradd" in words)
    [shown] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    pod = yaml.safe_load(shown)["spec"]["template"]["spec"]
    assert re.findall(r"service ([a-z ]+)", pod["initContainers"][0]["args"][0]) == ["cluster init"]
    who = pod["securityContext"]
    assert f"--uid {who['runAsUser']} --gid {who['runAsGroup']} " in making
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["home"] == str(ACCOUNT_HOME)
    names = set(re.findall(r"\$\{([A-Z_]+)", COMPOSE))
    assert names == set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)), "each variable is explained"
