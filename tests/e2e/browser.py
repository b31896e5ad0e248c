"""A person at the dashboard in a real browser: the machine's Chromium, driven by playwright (ruling M8)."""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, sync_playwright

from bridge.machine import dashboard_link
from bridge.operations.service import Service
from tests.waiting import PATIENCE, wait_for

ANN = "ann@desk"
PROGRAM = next(
    (program for name in ("chromium", "chromium-browser", "google-chrome") if (program := shutil.which(name))), ""
)
needs_browser = pytest.mark.skipif(not PROGRAM, reason="no Chromium here: chromium, chromium-browser or google-chrome")

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

REPORTING = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
"""Runs in every page before the page's own scripts."""


@contextmanager
def started(*more: str) -> Iterator[Browser]:
    """Run the browser while tests need it, with further flags."""
    with sync_playwright() as playwright:
        flags = [*more, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=flags, timeout=1000 * PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """A person with a session, and all errors in the pages they opened."""

    def __init__(
        self,
        browser: Browser,
        base: str,
        *,
        width: int = 1280,
        scheme: Scheme = "light",
        still: bool = True,
        touch: bool = False,
    ) -> None:
        self.base = base
        self.context: BrowserContext = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce" if still else "no-preference",
            has_touch=touch,
            is_mobile=touch,
        )
        self.context.set_default_timeout(1000 * PATIENCE)
        self.context.add_init_script(REPORTING)
        self.faults: list[str] = []
        self.context.on("page", self._watch)

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.faults.append(f"{page.url}: {error}"))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.faults.append(f"{message.location['url']}: {message.text}")

    def enter(self, service: Service, to: str = "/ui/") -> Page:
        """Enter by a one-time link, as `service dashboard` creates it."""
        page = self.context.new_page()
        page.goto(f"{self.base}/ui/enter?code={dashboard_link.make(service.home, ANN)}&to={to}")
        return page

    def open(self, to: str) -> Page:
        """Open a path in a further tab."""
        page = self.context.new_page()
        page.goto(f"{self.base}{to}")
        return page

    def forgive(self, words: str) -> None:
        """Ignore expected errors that the browser itself reports: a 409 response, a missing bridge."""
        self.faults[:] = [fault for fault in self.faults if words not in fault]

    def leave(self) -> None:
        """Close the session, and check that there were no errors."""
        self.context.close()
        assert self.faults == [], "\n".join(self.faults)


@contextmanager
def person(
    browser: Browser,
    base: str,
    *,
    width: int = 1280,
    scheme: Scheme = "light",
    still: bool = True,
    touch: bool = False,
) -> Iterator[Person]:
    """Open a person's session; at the end, check that there were no errors."""
    someone = Person(browser, base, width=width, scheme=scheme, still=still, touch=touch)
    try:
        yield someone
    except BaseException as failed:
        failed.add_note(f"in the browser: {someone.faults}")
        someone.context.close()
        raise
    someone.leave()


def until_shown(page: Page, words: str) -> None:
    """Wait until these words are on the page."""
    wait_for(lambda: words in page.inner_text("body"), lambda: page.inner_text("body")[:2000])


def tree_page(service: Service, ann: Person, job: str) -> Page:
    """Open the page of a tree with a marker, which a reload of the page would remove."""
    tab = ann.enter(service, f"/ui/trees/{job}")
    tab.evaluate("window.neverLoadedAgain = true")
    return tab


def never_loaded_again(tab: Page) -> bool:
    return bool(tab.evaluate("window.neverLoadedAgain === true"))


def until_state(tab: Page, job: str, state: str) -> None:
    """Wait until the outline shows this state of a job."""
    row = tab.locator(".outline .job", has=tab.locator(f"a[href='/ui/jobs/{job}']"))
    wait_for(lambda: row.count() == 1 and state in row.inner_text(), lambda: tab.inner_text("main")[:3000])


def until_absent(tab: Page, words: str) -> None:
    """Wait until these words are no longer on the page."""
    wait_for(lambda: words not in tab.inner_text("body"), lambda: tab.inner_text("body")[:2000])


def until_standing(tab: Page, words: str) -> None:
    """Wait until the page shows this of the whole task."""
    place = tab.locator(".title, [aria-label='Where it stands']")
    wait_for(lambda: words in " ".join(place.all_inner_texts()), lambda: tab.inner_text("main")[:3000])


AXE = "axe-core@4.14.1"


@cache
def _axe() -> str:
    """Return the script that checks a page's accessibility, from npm; it is not part of the repository."""
    kept = Path.home() / ".cache" / "service-tests" / f"{AXE}.js"
    if not kept.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm here to fetch axe-core with")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [npm, "pack", "--silent", AXE], cwd=folder, capture_output=True, text=True, timeout=120
            )
            if done.returncode:
                pytest.skip(f"npm has no {AXE} for us: {done.stderr[-200:]}")
            with tarfile.open(Path(folder, done.stdout.split()[-1])) as package:
                script = package.extractfile("package/axe.min.js")
                assert script is not None
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_bytes(script.read())
    return kept.read_text()


def axe(page: Page) -> list[str]:
    """Return the page's serious and critical accessibility findings."""
    page.evaluate(_axe())
    violations = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{violation['impact']} {violation['id']}: {[node['html'][:160] for node in violation['nodes']][:3]}"
        for violation in violations
        if violation["impact"] in {"serious", "critical"}
    ]


def picture(page: Page, name: str) -> None:
    """Take a screenshot for people, if `SHOTS` names a folder."""
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder, re.sub(r"[^\w.-]+", "_", name)[:80] + ".png"), full_page=True)


def pictures(page: Page, name: str) -> None:
    """Take screenshots for a phone, a desktop and a wide screen, light and dark."""
    if not os.environ.get("SHOTS"):
        return
    before = page.viewport_size
    for width in (360, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.evaluate("scrollTo(0, 0)")
            picture(page, f"{name}-{width}-{scheme}")
    page.emulate_media(color_scheme="light")
    if before:
        page.set_viewport_size(before)


def card(tab: Page, job: str) -> Locator:
    """Locate the card of a waiting tree."""
    return tab.locator("article", has=tab.locator(f'h2 a[href="/ui/trees/{job}"]'))
