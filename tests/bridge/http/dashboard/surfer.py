"""A person at the dashboard, without JavaScript: follows links, reads pages, fills in forms and sends them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import httpx

from bridge.http.app import create_app
from bridge.machine import dashboard_link
from bridge.operations.service import Service

BASE = "http://127.0.0.1:8791"
FILLED_IN = {"input", "textarea", "select", "button"}
ANN = "ann@desk"


@dataclass
class Sendable:
    """A form on a page: its target, and the fields it would send."""

    action: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    buttons: list[tuple[str, str, str]] = field(default_factory=list)
    """Name, value and words of each."""
    boxes: dict[str, list[str]] = field(default_factory=dict)
    """The boxes that can be ticked: values by name."""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Sendable] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self._form: Sendable | None = None
        self._named: defaultdict[str, Sendable] = defaultdict(lambda: Sendable(""))
        """A field may name its form before that comes."""
        self._area: str | None = None
        self._button: tuple[Sendable, str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "form":
            self._form = self._named[attributes["id"]] if "id" in attributes else Sendable("")
            self._form.action = attributes.get("action", "")
            self.forms.append(self._form)
        form = self._named[attributes["form"]] if "form" in attributes else self._form
        if form is not None and tag in FILLED_IN:
            self._filled_in(form, tag, attributes)

    def _filled_in(self, form: Sendable, tag: str, attributes: Mapping[str, str]) -> None:
        name = attributes.get("name", "")
        if tag == "button":
            self._button = (form, name, attributes.get("value", ""))
        elif tag == "textarea":
            self._area = name
            form.fields.setdefault(name, []).append("")
        elif tag == "input" and name and attributes.get("type") in {"checkbox", "radio"}:
            form.fields.setdefault(name, [])
            form.boxes.setdefault(name, []).append(attributes.get("value", "on"))
            if "checked" in attributes:
                form.fields[name].append(attributes.get("value", "on"))
        elif name:
            form.fields.setdefault(name, []).append(attributes.get("value", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        if tag == "textarea":
            self._area = None
        if tag == "button":
            self._button = None

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._form is not None and self._area is not None:
            self._form.fields[self._area][-1] += data.removeprefix("\n")
        if self._button is not None:
            form, name, value = self._button
            form.buttons.append((name, value, data.strip()))


@dataclass(frozen=True)
class Shown:
    """A received page."""

    status: int
    address: str
    html: str
    headers: httpx.Headers

    @property
    def read(self) -> _Reader:
        reader = _Reader()
        reader.feed(self.html)
        return reader

    @property
    def words(self) -> str:
        """All text of the page, on one line."""
        return " ".join(" ".join(self.read.words).split())

    def form(self, action: str, **having: str) -> Sendable:
        """Return the one form with this target and these values."""
        mine = [form for form in self.read.forms if form.action == action]
        mine = [form for form in mine if all(value in form.fields.get(name, []) for name, value in having.items())]
        assert len(mine) == 1, (action, having, [form.action for form in self.read.forms], self.words[:600])
        return mine[0]


class Surfer:
    """One browser. `async with Surfer(service) as ann: await ann.open()`."""

    def __init__(self, service: Service, base: str = BASE, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.service = service
        transport = transport or httpx.ASGITransport(create_app(service), client=("127.0.0.1", 999))
        self.client = httpx.AsyncClient(
            transport=transport, base_url=base, headers={"host": httpx.URL(base).netloc.decode()}
        )

    async def __aenter__(self) -> "Surfer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def enter(self, actor: str = ANN, to: str = "/ui/") -> Shown:
        """Enter by a new one-time link."""
        return await self.open(f"/ui/enter?code={dashboard_link.make(self.service.home, actor)}&to={to}")

    async def open(self, address: str = "/ui/", **headers: str) -> Shown:
        return await self._follow(await self.client.get(address, headers=headers))

    async def send(self, form: Sendable, button: str | None = None, **values: str | list[str]) -> Shown:
        """Fill in these fields and send the form, with the named button if there are several."""
        fields = form.fields | {name: value if isinstance(value, list) else [value] for name, value in values.items()}
        strange = set(values) - set(form.fields)
        assert not strange, f"the form has no {strange}; it has {set(form.fields)}"
        if button is not None:
            name, value, _ = next(each for each in form.buttons if each[2] == button)
            fields = fields | ({name: [value]} if name else {})
        return await self.post(form.action, fields)

    async def post(self, action: str, fields: Mapping[str, list[str]], **headers: str) -> Shown:
        """Post as a browser sends a form of its own page."""
        origin = {"origin": str(self.client.base_url).rstrip("/")}
        answer = await self.client.post(action, data=dict(fields), headers=origin | headers)
        return await self._follow(answer)

    async def _follow(self, answer: httpx.Response) -> Shown:
        while answer.status_code == 303:
            answer = await self.client.get(answer.headers["location"])
        return Shown(answer.status_code, str(answer.url), answer.text, answer.headers)


def query_of(address: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(address).query)
