"""All foreign text is escaped on every page, for viewers without scripts and for programs (ruling M6)."""

from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.routing import Match, Route

from bridge.http.dashboard.pages import PAGES
from bridge.operations.service import Service
from tests.bridge.http.dashboard.hostile import ADDRESSES, SEEN, UNSEEN, sow
from tests.bridge.http.dashboard.surfer import Surfer

pytestmark = pytest.mark.ruling("M6")


class Markup(HTMLParser):
    """Collects the markup of a page that could act."""

    def __init__(self) -> None:
        super().__init__()
        self.odd: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in {"img", "iframe", "object", "embed", "base"} or (tag == "script" and not attributes.get("src")):
            self.odd.append(f"<{tag}>")
        leads = (attributes.get(name, "") for name in ("src", "action", "formaction", "hx-post"))
        self.odd += [f"{tag} to {each}" for each in leads if each and not each.startswith("/ui/")]
        self.odd += [f"{tag} {name}" for name in attributes if name.startswith("on") or name == "style"]
        if attributes.get("href", "").lower().startswith("javascript:"):
            self.odd.append(f"{tag} to {attributes['href']}")


async def test_what_was_written_is_text_and_there_to_be_read(service: Service, ann: Surfer, tmp_path: Path) -> None:
    sow(service, tmp_path)
    without = {"/ui/branches", "/ui/pipelines", "/ui/doctor", "/ui/spend", "/ui/settings"}
    without |= {path for path in ADDRESSES if path.startswith("/ui/new")}
    for path in ADDRESSES:
        shown = await ann.open(path)
        assert shown.status == (404 if "%3Cscript" in path and "?" not in path else 200), (path, shown.words[:300])
        reader = Markup()
        reader.feed(shown.html)
        assert reader.odd == [], path
        assert not [letter for letter in shown.html if letter in UNSEEN], path
        begins = SEEN if "%3C" not in path else "<script>window.pwned="
        assert begins in unescape(shown.html) or path in without, f"nothing hostile is on {path}: it would test nothing"


def test_every_page_is_opened() -> None:
    paths = [address.partition("?")[0] for address in ADDRESSES]
    for page in PAGES:
        route = Route(f"/ui{page.path}", lambda _: None)
        scopes = ({"type": "http", "method": "GET", "path": path, "root_path": ""} for path in paths)
        assert any(route.matches(scope)[0] is Match.FULL for scope in scopes), page.path
