"""Temporal's web UI behind the gates of the bridge: a page that rebinds a name gets nothing, a person everything."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Error

from tests.e2e.browser import Person, needs_browser, picture, started, until_shown
from tests.e2e.script import Script, played, until_paused
from tests.waiting import wait_for

pytestmark = [pytest.mark.ruling("N1"), pytest.mark.long]

QUESTION: dict[str, Any] = {"id": "color", "prompt": "Which color?", "choices": ["red", "blue"]}
SECRET = "nobody else reads this goal"
REBOUND = "evil.example"
WORKFLOWS = "api/v1/namespaces/service/workflows"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    yield from played(tmp_path_factory.mktemp("web-ui"), "[temporal]\nby_hand = true\nencrypt = true\n")


@pytest.fixture
def waiting(script: Script) -> Iterator[str]:
    """Run a tree that waits for an answer."""
    script.answers(none={"human_questions": [QUESTION]}, replan={"decision": "approved"})
    job = script.ask(SECRET)
    until_paused(script, job)
    yield job
    script.service.run("job", "kill", job, "--now")


def listening(script: Script) -> list[tuple[str, int]]:
    """Return where the service's processes listen on IPv4, as a program of this machine may look it up."""
    inodes = set()
    for member in ("server", "bridge"):
        for link in Path(f"/proc/{script.service.pid(member)}/fd").iterdir():
            with suppress(FileNotFoundError):  # it was closed meanwhile
                inodes |= set(re.findall(r"socket:\[(\d+)\]", str(link.readlink())))
    addresses = []
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state, inode = row.split()[1], row.split()[3], row.split()[9]
        if state == "0A" and inode in inodes:
            host, port = bytes.fromhex(local.split(":")[0])[::-1], int(local.split(":")[1], 16)
            addresses.append((".".join(map(str, host)), port))
    return sorted(addresses)


ANSWER = {"verb": "answer", "text": "blue"}
ATTACK = """async ({places, job, answer}) => {
  const read = [];
  for (const place of places) {
    try {
      const got = await fetch(place, {credentials: "include"});
      read.push([place, got.status, await got.text()]);
      const token = (document.cookie.match(/_csrf=(\\w+)/) || [])[1] || "chosen";
      document.cookie = `_csrf=${token}; path=/`;
      const input = {payloads: [{metadata: {encoding: btoa("json/plain")}, data: btoa(JSON.stringify(answer))}]};
      const headers = {"Content-Type": "application/json", "X-CSRF-Token": token};
      const body = JSON.stringify({input});
      await fetch(`${place}/${job}/signal/resume`, {method: "POST", credentials: "include", headers, body});
    } catch (error) { read.push([place, 0, String(error)]) }
  }
  return read;
}"""
"""What a page of a rebound name does at each place: read all workflows, and answer for people."""


@needs_browser
def test_a_page_of_a_rebound_name_reads_nothing_and_answers_nothing(script: Script, waiting: str) -> None:
    """The page may even know every port at which the service listens at the address that names lead to."""
    with started(f"--host-resolver-rules=MAP {REBOUND} 127.0.0.1") as browser:
        for port in (port for host, port in listening(script) if host == "127.0.0.1"):
            tab = browser.new_context().new_page()
            try:
                tab.goto(f"http://{REBOUND}:{port}/")
            except Error:  # it speaks no HTTP that a page could use
                continue
            places = [f"/{WORKFLOWS}", f"/ui/temporal/{WORKFLOWS}"]
            read = tab.evaluate(ATTACK, {"places": places, "job": waiting, "answer": ANSWER})
            assert not [place for place, status, text in read if status == 200 or waiting in text], (port, read)
    assert script.tree(waiting)["task"]["state"] == "awaiting_human"


def test_only_the_bridge_reaches_it_and_only_with_a_session(script: Script, waiting: str) -> None:
    here = script.address
    place = f"{here}/ui/temporal/{WORKFLOWS}"
    own = {"origin": here}
    assert httpx.get(place).status_code == 401
    assert httpx.get(place, headers={"host": REBOUND}).status_code == 403
    assert httpx.get(place, headers={"origin": "http://somewhere.example"}).status_code == 403
    signal = f"{place}/{waiting}/signal/resume"
    assert httpx.post(signal, json={}, headers=own).status_code == 401
    with httpx.Client(follow_redirects=True, timeout=60) as ann:
        assert ann.get(script.service("dashboard", "--print").stdout.strip()).status_code == 200
        assert waiting in ann.get(place).text
        for headers in ({}, {"origin": "http://somewhere.example"}, own | {"host": REBOUND}):
            refused = ann.post(signal, json={}, headers=headers)
            assert refused.status_code == 403, headers
        assert ann.post(signal, json={}, headers=own).status_code == 400, "the program's own token is missing"
    [(host, _)] = [address for address in listening(script) if address[0] != "127.0.0.1"]
    assert host.startswith("127.")
    status = script.service("daemon", "status", "--json").stdout
    assert host not in status
    assert json.loads(status)["state"]["ui_url"] == f"{here}/ui/temporal"


@needs_browser
def test_a_person_opens_it_from_the_page_of_a_tree_and_answers_by_hand(
    script: Script, waiting: str, ann: Person
) -> None:
    tab = ann.enter(script.service.seen, f"/ui/trees/{waiting}")
    tab.locator("#actions > summary").click()
    tab.get_by_role("link", name="Open in Temporal").click()
    until_shown(tab, "root waits for a person")
    until_shown(tab, SECRET)
    picture(tab, "temporal: the task")
    tab.get_by_text("User Metadata").click()
    rendered = tab.frame_locator("iframe >> nth=1").locator("body")
    wait_for(lambda: "service job tree" in rendered.inner_text(), lambda: rendered.inner_text())
    picture(tab, "temporal: details")
    tab.goto(next(iter(script.service.json("daemon", "status")["views"].values())))
    until_shown(tab, waiting)
    picture(tab, "temporal: the list")
    done = tab.evaluate(ATTACK, {"places": [f"/ui/temporal/{WORKFLOWS}"], "job": waiting, "answer": ANSWER})
    assert done[0][1] == 200
    wait_for(lambda: script.tree(waiting)["task"]["state"] != "awaiting_human")
    ann.forgive("favicon.ico")
