"""Every command on a store whose texts are all attacks, on a real terminal: nothing gets through (ruling N6)."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from activities.settings import ready
from activities.settings.home import Home
from activities.store import outbox, schema
from activities.store.github import account, threads
from activities.store.github.threads import CommentRow
from bridge.operations.registry import memory
from bridge.operations.service import Service
from cli.invocation.faults import BUG
from cli.main import NOUNS, command_of
from tests.bridge import github_seeds, seeds
from tests.bridge.http.dashboard import hostile
from tests.bridge.http.dashboard.hostile import BLOCKED, ENDED, FAILED, RAN, RUNS
from tests.bridge.seeds import ROOT
from tests.cli.everything import DONE, starts_nothing
from tests.cli.seat import CTRL_C, seated
from tests.cli.terminal import LINK, Printed, typed
from tests.evil import EVIL, forged, raw
from workflows.model.states import JobState, TaskState

pytestmark = pytest.mark.ruling("N6")

SEEN = "error: FORGED by name"
RESULT = json.dumps({"service_result": {"decision": "approved", "summary": EVIL, "findings": [EVIL, {EVIL: EVIL}]}})
FILES = {"result": RESULT, "wrong": RESULT.replace('"approved"', json.dumps(EVIL)), "pipeline.yaml": f"name: {{{EVIL}"}

Words = list[str]
TABLE: dict[str, list[Words]] = {
    "agent add": [
        ["new", "--runtime", EVIL],
        [EVIL, "--runtime", "shell"],
        ["new", "--runtime", "shell", "--command", EVIL],
    ],
    "agent list": [[]],
    "agent show": [["scout"], [EVIL]],
    "agent remove": [[EVIL], ["scout"]],
    "agent allow": [["scout", EVIL], [EVIL, "acme/shop"]],
    "agent deny": [["scout", EVIL], ["scout", "acme/shop"]],
    "agent ask": [
        ["scout", EVIL, "--repo", "acme/shop", "--wait"],
        ["scout", "x", "--repo", EVIL],
        ["scout", "x", "--pr", EVIL],
    ],
    "agent review": [["scout", EVIL, "--repo", "acme/shop", "--wait"], [EVIL, "x", "--repo", "acme/shop"]],
    "agent implement": [["scout", EVIL, "--repo", "acme/shop", "--wait"], ["scout", EVIL, "--repo", EVIL]],
    "attention": [[]],
    "backup": [["copied"], [EVIL[:60]]],
    "bridge serve": [["--addr", EVIL]],
    "bridge token": [[]],
    "cluster init": [[], ["--retention", EVIL]],
    "completion bash": [[]],
    "completion candidates": [
        ["--", "job", "show", ""],
        ["--", "agent", "show", ""],
        ["--", EVIL],
        ["--", "repo", "remove", EVIL],
    ],
    "completion fish": [[]],
    "completion zsh": [[]],
    "config check": [[]],
    "config show": [[], ["--origin"]],
    "daemon run": [["--ui-port", EVIL]],
    "daemon install": [["--show"]],
    "daemon logs": [[], ["worker"], [EVIL]],
    "daemon start": [["--ui-port", EVIL]],
    "daemon stop": [[]],
    "daemon status": [[], ["--all"]],
    "daemon uninstall": [[]],
    "dashboard": [["--print"], ["--print", EVIL]],
    "demo": [["--keep", "--home", f"x{EVIL[:60]}"], ["--home", "."]],
    "doctor": [[]],
    "gc": [[], ["--yes"], ["--older-than", EVIL]],
    "github status": [[]],
    "github sync": [[EVIL]],
    "github comment-preview": [[ROOT], [BLOCKED], [DONE], [ROOT, "--fact", EVIL]],
    "help": [[], ["boxes"], ["job", "tree"], [EVIL], ["job", EVIL]],
    "init": [["--name", EVIL], ["--yes", "--builder", EVIL], []],
    "job list": [[], ["--jobs"], ["--agent", EVIL], ["--state", EVIL], ["--search", EVIL]],
    "job show": [[ROOT], [ENDED], [FAILED], [RUNS], [BLOCKED], ["REVIEW"], [EVIL]],
    "job log": [[ROOT], [ENDED], [FAILED, "--all"], [ENDED, "--raw"], [EVIL]],
    "job prompt": [[ROOT], [ENDED], [FAILED], [EVIL]],
    "job tree": [[ROOT], [BLOCKED], [DONE, "--watch"], [EVIL]],
    "job events": [[ROOT], [BLOCKED], [DONE, "--follow"]],
    "job kill": [[DONE], [ROOT, "--now"]],
    "job dismiss": [[BLOCKED], [EVIL]],
    "job retry": [[FAILED], [EVIL]],
    "job branches": [[ROOT], [BLOCKED]],
    "job diff": [[ENDED], [ENDED, "--stat"], [ENDED, "--name-only"], [ROOT]],
    "job merge": [[ENDED], [f"{BLOCKED}.1"], [EVIL]],
    "job drop": [[ENDED], [ENDED, "--force"], [FAILED]],
    "job review": [[ROOT], [ENDED], [ROOT, "--agent", EVIL]],
    "job resolve": [[ROOT], [BLOCKED], [ENDED, "--with-mine"], [ROOT, "--agent", EVIL]],
    "job revise": [[ENDED, EVIL, "--on", f"{EVIL}:1={EVIL}"], [ROOT, EVIL, "--agent", EVIL], [ENDED, "--on", EVIL]],
    "job gate": [[ROOT], [BLOCKED]],
    "job publish": [[ROOT, "--no-wait"], [ENDED, "--base", EVIL, "--no-wait"]],
    "job open": [["--pr", "7", "--head-sha", EVIL, "--workflow", EVIL]],
    "job reviews": [[]],
    "job note": [["REVIEW", EVIL, "--author", EVIL]],
    "job close": [["REVIEW", "--verdict", EVIL]],
    "host list": [[]],
    "host show": [[EVIL]],
    "host remove": [[EVIL]],
    "host invite": [[]],
    "host join": [[EVIL], [EVIL, "--from", EVIL]],
    "host answer": [[]],
    "host replace-key": [[EVIL]],
    "host lost": [[EVIL], [EVIL, "--now"]],
    "host drain": [[EVIL], [EVIL, "--undo"], [EVIL, "--wait"]],
    "mcp add": [[EVIL], ["cursor", "--scope", EVIL], ["cursor", "--print"]],
    "mcp list": [[]],
    "mcp remove": [[EVIL], ["cursor"]],
    "memory add": [[EVIL, EVIL], ["k", EVIL, "--agent", EVIL]],
    "memory propose": [[EVIL, EVIL, "--job", ROOT], ["k", "c", "--job", EVIL]],
    "memory list": [[], ["--state", EVIL]],
    "memory show": [["mem-1"], ["mem-3"], [EVIL]],
    "memory confirm": [["mem-1"], [EVIL]],
    "memory retire": [["mem-3"]],
    "memory recall": [["forged"], [EVIL]],
    "orchestrate review-panel": [[EVIL, "--repo", "acme/shop", "--wait"], ["x", "--runtimes", EVIL]],
    "orchestrate decompose-and-verify": [[EVIL, "--repo", "acme/shop", "--wait"], ["x", "--repo", EVIL]],
    "orchestrate verifier": [[EVIL, "--repo", "acme/shop", "--wait"]],
    "pipeline add": [["pipeline.yaml"], [EVIL]],
    "pipeline list": [[]],
    "pipeline show": [
        ["nightly"],
        ["nightly", "--definition"],
        [RAN],
        [RAN, "--definition"],
        [RAN, "--stage", "build"],
        [EVIL],
    ],
    "pipeline run": [["nightly", "--payload", f"k={EVIL}", "--wait"], [EVIL], ["nightly", "--payload", EVIL]],
    "pipeline watch": [[RAN]],
    "pipeline runs": [[], ["--state", EVIL], ["--cursor", EVIL]],
    "pipeline cancel": [[RAN], [EVIL]],
    "pipeline enable": [[EVIL]],
    "pipeline disable": [[EVIL]],
    "pipeline remove": [[EVIL]],
    "repo add": [[EVIL, "."], ["acme/x", EVIL.replace("/", "")[:200]], ["acme/x", ".", "--github", EVIL]],
    "repo list": [[]],
    "repo remove": [[EVIL]],
    "repo sweep": [[], [EVIL]],
    "restore": [["copied"], [EVIL[:60]]],
    "resume": [[ROOT], [BLOCKED], [ROOT, "answer", EVIL], [EVIL, EVIL]],
    "result check": [["result"], ["wrong"], [EVIL[:60]]],
    "result render": [["result"], ["wrong"]],
    "result schema": [[], ["--prompt"]],
    "runtime list": [[]],
    "runtime check": [[], [EVIL]],
    "spend": [[]],
}  # fmt: skip
"""The arguments of each command. `REVIEW` is an opened review."""

TYPES = {"resume": "x\nn\n\ny\n"}


@pytest.fixture
def service(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Create a home whose store and files are hostile; nothing listens at Temporal's port."""
    home.config.write_text(f"[temporal]\nport = 1\n{github_seeds.SETTINGS}")
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hostile, "HOSTILE", EVIL)
    monkeypatch.setattr(hostile, "SEEN", SEEN)
    monkeypatch.setattr(hostile, "CHANGED", f"limit = 2\n{EVIL}")
    monkeypatch.setattr(hostile, "FILE", "src/error: FORGED\x1b[2J\u202e\nservice job retry FORGED.py")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    made = Service(home)
    ready.say(home.bridge_ready, made.reading.in_use(), "127.0.0.1:8791")
    hostile.sow(made, tmp_path)
    sow_more(made)
    made.store.dispose()
    yield made
    made.store.dispose()


def sow_more(service: Service) -> None:
    """Seed what pages do not show: an ended tree, memory as written, GitHub's rows."""
    over: dict[str, Any] = {"state": JobState.FAILED, "summary": EVIL, "reason": EVIL, "ended_at": 9.0}
    seeds.write(
        service,
        seeds.task(DONE, title=EVIL, state=TaskState.DONE, reason=EVIL, ended_at=9.0),
        seeds.job(DONE, model=EVIL, **over),
        seeds.job(f"{DONE}.1", agent=EVIL, phase=EVIL, next=EVIL, **over),
        seeds.event(1, DONE, message=EVIL),
        seeds.event(2, f"{DONE}.1", message=EVIL),
    )
    payload = {"service_result": {"decision": "approved", "summary": EVIL, "findings": [EVIL], "needs": [EVIL]}}
    seeds.payload(service, DONE, payload, diagnostics={"stderr": EVIL, "faults": [EVIL], "error": EVIL})
    memory.add(
        service, memory.NewEntry("error: FORGED \x1b[2J\u202e\U000e0041", f"forged {EVIL}", None, None), EVIL[:80]
    )
    service.home.logs.mkdir(exist_ok=True)
    (service.home.logs / "worker.log").write_text(f"{EVIL}\n")
    store = service.store
    account.note(store, login=EVIL, kind="user", seen_at=1.0, problem=EVIL, failing_since=2.0)
    github_seeds.thread(service)
    account.note_reading(store, github_seeds.SHOP, error=EVIL)
    github_seeds.failed(service, "failed", EVIL)
    threads.take_comments(store, [CommentRow(1, github_seeds.SHOP, 7, SEEN, 1.0)])
    threads.settle_comment(store, 1, threads.REFUSED, EVIL)
    outbox.record_try(store, f"{BLOCKED}-e7", "webhook", EVIL)
    with store.begin() as connection:
        connection.execute(update(schema.jobs).where(schema.jobs.c.job_id == ROOT).values(preflight_failed=EVIL))


def commands() -> dict[str, Any]:
    """Return every command by its words."""
    by_words: dict[str, Any] = {}
    for noun in NOUNS:
        command = command_of(noun)
        verbs = getattr(command, "commands", None)
        by_words |= {f"{noun} {verb}": each for verb, each in verbs.items()} if verbs else {noun: command}
    return by_words


def check(printed: Printed, words: Words) -> None:
    """Assert that only our own colours are invisible, and no line looks like one of ours."""
    text = printed.said
    if words[:2] == ["job", "diff"]:  # an unchanged line begins with a blank in a diff
        text = re.sub("(?m)^ ", "|", text)
    assert not raw(text), f"{words}: {raw(text)[:3]}"
    assert not forged(text), f"{words}: {forged(text)[:3]}"
    assert printed.code in range(6), f"{words}: {printed.code} {text[-2000:]}"
    assert "Traceback" not in text, text[-3000:]
    assert BUG not in text, text[-3000:]


def test_it_is_there_to_be_read(service: Service) -> None:
    """Without this check the other tests might test nothing."""
    for words in (
        "attention",
        f"job show {ENDED}",
        f"job tree {ROOT}",
        f"pipeline show {RAN}",
        "job list",
        "job list --jobs",
        "spend",
        "github status",
        f"job diff {ENDED}",
        "agent ask scout x --repo acme/shop --wait",
        "pipeline run nightly --wait",
        "memory list",
        "daemon logs",
    ):
        assert "FORGED" in typed(words.split(), before=starts_nothing).text, words


def test_ids_lead_to_pages_of_ours(service: Service) -> None:
    for words in ("job list", "job list --jobs", f"job show {ENDED}"):
        links = LINK.findall(typed(words.split(), before=starts_nothing).text)
        assert links
        assert all(text.startswith(("job-", "/")) for text in links), "what can be clicked on is an id or a place"


def test_every_command_is_walked() -> None:
    assert set(TABLE) == set(commands())


@pytest.mark.parametrize("noun", NOUNS)
def test_nothing_of_an_evil_store_reaches_the_terminal(service: Service, tmp_path: Path, noun: str) -> None:
    walk(service, tmp_path, noun, rows=1)


@pytest.mark.long
@pytest.mark.parametrize("noun", NOUNS)
def test_nor_does_it_in_any_other_way(service: Service, tmp_path: Path, noun: str) -> None:
    walk(service, tmp_path, noun, rows=99)


@pytest.mark.parametrize("words", ["job tree {root} --watch", "attention --watch", "job events {root} --follow"])
def test_nor_does_it_in_a_view_that_lives(service: Service, words: str) -> None:
    with seated(words.format(root=ROOT).split()) as seat:
        seat.until(lambda screen: any("FORGED" in line for line in screen.shown))
        seat.press(CTRL_C)
        assert seat.end() == 130
        text = seat.said
    assert not raw(text), raw(text)[:3]
    assert not forged(text), forged(text)[:3]


def walk(service: Service, tmp_path: Path, noun: str, rows: int) -> None:
    """Type the first rows of each command of a noun, and as many of its commands wrongly."""
    store = service.home.store
    kept = shutil.copy2(store, tmp_path / "kept.db")
    review = next(each.review_id for each in reviews_of(service))
    mine = {name: command for name, command in commands().items() if name.split()[0] == noun}
    for name, command in mine.items():
        speaks_json = any("--json" in option.opts for option in command.params)
        for rest in TABLE[name][:rows]:
            words = [*name.split(), *(review if each == "REVIEW" else each for each in rest)]
            for more in ([], ["--json"]) if speaks_json else ([],):
                shutil.copy2(kept, store)
                for left in (f"{store}-wal", f"{store}-shm"):
                    Path(left).unlink(missing_ok=True)
                printed = typed([*words, *more], TYPES.get(name, ""), starts_nothing)
                check(printed, words)
                if more and printed.out.strip():
                    read_json(printed.out.decode(), words)
    for name in list(mine)[:rows]:
        for wrong in ([f"--{EVIL}"], [EVIL] * 9):
            check(typed([*name.split(), *wrong]), [name, "misused"])


def read_json(text: str, words: Words) -> None:
    """Parse one document, or one on each line."""
    try:
        json.loads(text)
    except ValueError:
        assert {"--follow", "--watch"} & set(words) or words[:2] == ["daemon", "logs"], f"{words}: {text[:300]}"
        for line in text.splitlines():
            json.loads(line)


def reviews_of(service: Service) -> Any:
    from activities.store.registry.review_rows import ReviewFilter
    from bridge.operations.registry import reviews

    rows = reviews.find(service, ReviewFilter(None, None, 50))
    service.store.dispose()
    return rows
