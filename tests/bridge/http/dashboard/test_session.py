"""Permission to look and act: one-time links, sessions, forms of our own pages only (ruling M6)."""

import base64
import json
import time

import pytest

from bridge.http.dashboard.app import POLICY
from bridge.http.dashboard.frame.session import SECONDS, Sessions
from bridge.machine import dashboard_link, token
from bridge.operations.service import Service
from tests.bridge.http.dashboard.surfer import BASE, Surfer

pytestmark = pytest.mark.ruling("M6")


async def test_a_link_opens_the_dashboard_once(service: Service) -> None:
    code = dashboard_link.make(service.home, "ann")
    async with Surfer(service) as first, Surfer(service) as second:
        assert "Attention" in (await first.open(f"/ui/enter?code={code}")).words
        again = await second.open(f"/ui/enter?code={code}")
        assert (again.status, "service dashboard" in again.words) == (401, True)
        assert (await second.open("/ui/")).status == 401


async def test_a_link_that_is_too_old_opens_nothing(service: Service) -> None:
    code = dashboard_link.make(service.home, "ann")
    (path,) = service.home.dashboard_links.iterdir()
    path.write_text(json.dumps({"actor": "ann", "until": time.time() - 1}))
    async with Surfer(service) as surfer:
        assert (await surfer.open(f"/ui/enter?code={code}")).status == 401


@pytest.mark.parametrize("to", ["http://evil.test/ui/", "//evil.test/ui/", "/\\evil.test", "/v1/jobs", "/ui/..\\x", ""])
async def test_a_link_leads_to_a_page_of_ours_only(service: Service, to: str) -> None:
    code = dashboard_link.make(service.home, "ann")
    async with Surfer(service) as surfer:
        answer = await surfer.client.get("/ui/enter", params={"code": code, "to": to})
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")


async def test_the_link_s_file_does_not_tell_the_code(service: Service) -> None:
    code = dashboard_link.make(service.home, "ann")
    (path,) = service.home.dashboard_links.iterdir()
    assert code not in path.name + path.read_text()
    assert path.stat().st_mode & 0o077 == 0


async def test_the_cookie_is_for_this_bridge_s_pages_and_no_script(service: Service) -> None:
    async with Surfer(service) as surfer:
        code = dashboard_link.make(service.home, "ann")
        header = (await surfer.client.get(f"/ui/enter?code={code}")).headers["set-cookie"]
    assert {"Path=/ui", "HttpOnly", "SameSite=Strict"} <= {part.strip() for part in header.split(";")}


def opened(sessions: Sessions, since: float, signature: bytes = b"") -> bool:
    """Return whether a cookie with this signature, by default the right one, opens the dashboard."""
    content = json.dumps({"key": "k", "actor": "ann", "since": int(since)}).encode()
    parts = content, signature or sessions._signature(b"session", content)
    value = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    scope = {"type": "http", "headers": [(b"cookie", f"{sessions.cookie}={value}".encode())]}
    return sessions.of(scope) is not None


def test_a_session_lasts_a_week(service: Service) -> None:
    token.ensure(service.home)
    sessions, now = Sessions(service), time.time()
    assert [opened(sessions, now - age) for age in (0, SECONDS - 60, SECONDS + 60)] == [True, True, False]


def test_without_a_token_no_signature_is_right(service: Service) -> None:
    token.ensure(service.home).unlink()
    sessions, now = Sessions(service), time.time()
    assert not opened(sessions, now)
    assert not opened(sessions, now, bytes(32))


async def test_sessions_end_when_the_token_is_rotated(service: Service, ann: Surfer) -> None:
    assert (await ann.open("/ui/")).status == 200
    token.rotate(service.home)
    assert (await ann.open("/ui/")).status == 401
    assert (await ann.open("/ui/live/")).status == 401


async def test_a_session_that_was_ended_is_over(ann: Surfer) -> None:
    shown = await ann.open("/ui/")
    assert (await ann.send(shown.form("/ui/leave"))).status == 401


@pytest.mark.parametrize("change", ["x", "", "e30.e30", "é", "a.b.c"])
async def test_a_cookie_we_did_not_sign_is_nobody_s(ann: Surfer, change: str) -> None:
    ((name, value),) = ann.client.cookies.items()
    forged = change if change != "x" else ("A" if value[0] != "A" else "B") + value[1:]
    ann.client.cookies.clear()
    cookie = [(b"cookie", f"{name}={forged}".encode())]
    assert (await ann.client.get("/ui/", headers=cookie)).status_code == 401


async def test_a_form_needs_the_session_s_own_token(service: Service, ann: Surfer) -> None:
    shown = await ann.open("/ui/")
    async with Surfer(service) as bob:
        foreign = (await bob.enter("bob")).form("/ui/leave").fields
    form = shown.form("/ui/leave")
    for given in ({"a": ["b"]}, {"token": [""]}, {"token": foreign["token"]}):
        assert (await ann.post(form.action, given)).status == 403
    assert (await ann.open("/ui/")).status == 200, "still there"


@pytest.mark.parametrize(
    "origin", [None, "null", "http://127.0.0.1:9999", "https://127.0.0.1:8791", "http://evil.test"]
)
async def test_a_form_of_another_page_is_refused(ann: Surfer, origin: str | None) -> None:
    form = (await ann.open("/ui/")).form("/ui/leave")
    headers = {"origin": origin} if origin else {}
    answer = await ann.client.post(form.action, data=dict(form.fields), headers=headers)
    assert answer.status_code == 403


async def test_another_host_name_is_refused(ann: Surfer) -> None:
    assert (await ann.client.get("/ui/", headers={"host": "rebound.evil.test"})).status_code == 403


async def test_a_form_is_read_strictly(ann: Surfer) -> None:
    form = (await ann.open("/ui/")).form("/ui/leave")
    mine = {"origin": BASE}
    as_json = await ann.client.post(form.action, json=form.fields, headers=mine)
    as_file = await ann.client.post(form.action, data=dict(form.fields), files={"a": b"b"}, headers=mine)
    plain = {"content-type": "application/x-www-form-urlencoded"}
    large = await ann.client.post(form.action, content=b"a=" + b"x" * 600_000, headers=mine | plain)
    odd = await ann.client.post(form.action, content=b"token=\xff\xfe", headers=mine | plain)
    many = await ann.client.post(form.action, content=b"&".join([b"a=b"] * 4000), headers=mine | plain)
    assert [each.status_code for each in (as_json, as_file, large, odd, many)] == [400, 400, 413, 400, 400]


@pytest.mark.parametrize("path", ["/ui/", "/ui/nowhere", "/ui/enter?code=x", "/", "/ui/static/0/page.js"])
async def test_every_answer_forbids_what_is_not_ours(ann: Surfer, path: str) -> None:
    answer = await ann.client.get(path)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_policy_allows_nothing_but_our_own() -> None:
    allowed = dict(part.split(" ", 1) for part in POLICY.split("; "))
    assert allowed.pop("default-src") == "'none'"
    assert set(allowed.values()) == {"'self'", "'none'"}
    assert {"form-action", "frame-ancestors", "base-uri"} <= set(allowed)


async def test_no_page_has_anything_inline(ann: Surfer) -> None:
    html = (await ann.open("/ui/")).html
    assert " style=" not in html
    assert " onclick" not in html
    assert "<style" not in html
    assert html.count("<script ") == html.count("<script src=")


async def test_the_token_of_programs_opens_no_page_and_a_session_no_call(service: Service, ann: Surfer) -> None:
    secret = service.home.bridge_token.read_text()
    async with Surfer(service) as stranger:
        assert (await stranger.open("/ui/", authorization=f"Bearer {secret}")).status == 401
    assert (await ann.client.get("/v1/jobs")).status_code == 401


async def test_who_comes_by_a_link_of_another_site_is_asked_to_come_again(service: Service) -> None:
    """A browser sends the cookie only with requests from our own pages."""
    async with Surfer(service) as surfer:
        shown = await surfer.open("/ui/?q=1", **{"sec-fetch-site": "cross-site"})
    assert shown.status == 401
    assert 'content="0; url=/ui/?q=1"' in shown.html


async def test_the_pages_have_a_limit_of_their_own(service: Service, ann: Surfer) -> None:
    service.home.config.write_text("[bridge]\nrequests_per_minute = 1\n[temporal]\nport = 1\n")
    assert {(await ann.open("/ui/")).status for _ in range(40)} == {200}
    answers = [(await ann.open("/ui/nowhere")).status for _ in range(700)]
    assert 429 not in answers[:300]
    assert (await ann.open("/ui/")).status in {200, 429}


async def test_a_link_that_was_opened_here_before_leads_where_it_led_then(service: Service, ann: Surfer) -> None:
    code = dashboard_link.make(service.home, "ann")
    first = await ann.open(f"/ui/enter?code={code}&to=/ui/memory")
    again = await ann.open(f"/ui/enter?code={code}&to=/ui/memory")
    assert (first.status, again.status, again.address) == (200, 200, f"{BASE}/ui/memory")


@pytest.mark.parametrize("address", ["/ui/memory", "/ui/memory?q=deploy&agent=a%22b", "/ui/spend?days=7"])
async def test_who_has_no_session_is_told_how_to_get_one_and_can_come_back(service: Service, address: str) -> None:
    async with Surfer(service) as surfer:
        shown = await surfer.open(address)
        assert (shown.status, f"service dashboard {address}" in shown.words) == (401, "?" not in address)
        assert "service dashboard" in shown.words
        await surfer.enter()
        [back] = shown.read.links
        assert (await surfer.open(back)).address == f"{BASE}{address}"


async def test_what_is_typed_to_get_there_never_holds_what_a_shell_would_read(service: Service) -> None:
    async with Surfer(service) as surfer:
        for address in ("/ui/$(reboot)", "/ui/a;reboot", "/ui/memory?q=;reboot", "/ui/enter?code=x&to=/ui/`reboot`"):
            shown = await surfer.open(address)
            assert "service dashboard" in shown.words
            assert "<code>service dashboard</code>" in shown.html or shown.status == 404


async def test_an_old_link_names_the_page_it_led_to(service: Service) -> None:
    async with Surfer(service) as surfer:
        shown = await surfer.open("/ui/enter?code=old&to=/ui/trees/job-0123456789ab")
    assert (shown.status, "service dashboard /ui/trees/job-0123456789ab" in shown.words) == (401, True)
    assert shown.read.links == ["/ui/trees/job-0123456789ab"]


async def test_behind_a_proxy_forms_come_from_the_address_that_people_use(service: Service) -> None:
    service.home.config.write_text('[bridge]\nurl = "https://agents.example.org"\n[temporal]\nport = 1\n')
    name = {"host": "agents.example.org"}
    async with Surfer(service) as surfer:
        surfer.client.headers["host"] = "agents.example.org"
        surfer.client.base_url = "http://agents.example.org"
        form = (await surfer.enter()).form("/ui/leave")
        for origin, status in (("https://evil.test", 403), ("https://agents.example.org", 303)):
            headers = name | {"origin": origin}
            answer = await surfer.client.post(form.action, data=dict(form.fields), headers=headers)
            assert answer.status_code == status
