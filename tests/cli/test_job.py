"""`service job prompt`: a job's prompt, for people."""

import json
from pathlib import Path

import pytest

from activities.settings.home import Home
from activities.store import attempt_rows, queries, schema, tree_rows
from bridge.operations.service import Service
from cli.main import main
from tests.bridge import seeds
from tests.secrets.redaction_table import TOKENS
from tests.tree.simulator import tree_input

pytestmark = pytest.mark.ruling("P7.shown")
JOB = f"{seeds.ROOT}.1"
TOKEN = TOKENS["GitHub personal"]


@pytest.fixture
def service(home: Home, tmp_path: Path) -> Service:
    """Seed a job with two attempts: the second one's program reads its prompt from a file."""
    service = Service(home)
    seeds.write(service, seeds.task(), seeds.job(seeds.ROOT), seeds.job(JOB))
    for number, file in ((1, "prompt"), (2, "prompt.md")):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        (folder / file).write_text(f"# Job\n\nattempt {number} with {TOKEN}\n")
        row = {"job_id": JOB, "attempt": number, "host": service.settings.host, "run_dir": str(folder), "started_at": 1}
        queries.insert_new(service.store, schema.attempts, row)
    return service


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["job", "prompt", *words]) == 0
    return capsys.readouterr().out


def test_it_is_that_of_the_last_attempt_without_secrets(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, JOB)
    assert text.startswith("# Job\n\nattempt 2 with ")
    assert TOKEN not in text
    assert "attempt 1 with" in printed(capsys, JOB, "--attempt", "1")


def test_the_request_to_correct_a_result_is_below_the_prompt(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program that was started again with an equal prompt adds nothing."""
    run_dir = Path(attempt_rows.of_job(service.store, JOB)[0].run_dir)
    prompt = (run_dir / "prompt").read_text()
    for suffix, text in (("", prompt), (".again", prompt), (".repair", "Your result was refused")):
        folder = run_dir.with_name(run_dir.name + suffix)
        folder.mkdir(exist_ok=True)
        (folder / "prompt").write_text(text)
        (folder / "claim").touch()
    text = printed(capsys, JOB, "--attempt", "1")
    assert (text.count("attempt 1 with"), text.rstrip().endswith("\n\n---\n\nYour result was refused")) == (1, True)


@pytest.mark.ruling("B3", "engine:outside")
@pytest.mark.parametrize("task", ["Make the login faster.\nKeep 'it' small.", "Say why. " * 900])
def test_the_task_of_its_tree_comes_as_it_was_ordered_and_starts_it_anew(
    service: Service, capsys: pytest.CaptureFixture[str], task: str
) -> None:
    """A message that fits into no line is piped from here into the same command."""
    prompt = service.artifacts.text(task)
    start = tree_input(prompt=prompt).model_copy(update={"root_job_id": seeds.ROOT, "task_id": "task-1"})
    tree_rows.begin(service.store, start, service.settings.host)
    words = start.anew.split(" | ")[0].split()[3:]
    assert words == [seeds.ROOT, "--task"]
    assert printed(capsys, *words).removesuffix("\n") == task
    assert json.loads(printed(capsys, JOB, "--task", "--json")) == {"task": task}


def test_json_names_the_attempt(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, JOB, "--json"))
    assert (document["job_id"], document["attempt"]) == (JOB, 2)
    assert document["prompt"].startswith("# Job\n\nattempt 2 with ")
    assert TOKEN not in document["prompt"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([JOB, "--attempt", "3"], 4, f"{JOB} has no attempt 3; its attempts: 1, 2"),
        ([seeds.ROOT], 4, f"{seeds.ROOT} has not begun yet"),
        (["job-ffffffffffff"], 4, "no job job-ffffffffffff"),
        ([JOB, "--attempt", "0"], 2, "Invalid value"),
    ],
)
def test_what_cannot_be_shown_says_why(
    service: Service, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert main(["job", "prompt", *words]) == code
    assert says in capsys.readouterr().err


def test_a_prompt_that_is_gone_or_elsewhere_says_so(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = attempt_rows.of_job(service.store, JOB)
    (Path(second.run_dir) / "prompt.md").unlink()
    assert main(["job", "prompt", JOB]) == 4
    assert "the prompt of attempt 2 is not kept any more" in capsys.readouterr().err
    (Path(second.run_dir) / "prompt").symlink_to(Path(first.run_dir) / "prompt")
    assert main(["job", "prompt", JOB]) == 3
    assert "is a link" in capsys.readouterr().err
    with service.store.begin() as connection:
        connection.execute(schema.attempts.update().values(host="elsewhere"))
    assert main(["job", "prompt", JOB]) == 3
    assert "attempt 2 ran on the host elsewhere" in capsys.readouterr().err


@pytest.mark.ruling("N4")
def test_a_result_that_no_host_sealed_is_not_shown(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    with service.store.begin() as connection:
        connection.execute(schema.attempts.update().values(payload={"service_result": {"findings": ["forged"]}}))
    assert main(["job", "show", JOB]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "forged" not in shown
    assert "Its result is not shown: what the store has of its end was not sealed with a key of this service." in shown


@pytest.mark.ruling("I2")
def test_edits_that_were_thrown_away_name_the_command_that_shows_them(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds.payload(service, seeds.ROOT, {}, diagnostics={"discarded_diff": "+x"})
    assert main(["job", "show", seeds.ROOT]) == 0
    assert f"it changed files, which are thrown away: service job diff {seeds.ROOT}" in capsys.readouterr().out
