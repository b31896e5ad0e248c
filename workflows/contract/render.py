"""A result for people: the comment on a pull request or issue (spec: findings rendering).

Texts are redacted, then cut, then defused, in this order (ruling A12). Each text has its own list item or quote, so it
cannot affect the lines after it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from workflows.contract.models import Delegation, Finding, HumanQuestion, ServiceResult
from workflows.secrets.redact import redact, redact_value
from workflows.text.inert import address, inert, refers, visible
from workflows.text.markdown import Lines, block_lines, bullet, cut, fit, word

FIELD_CAP = 2_000
COMMENT_CAP = 60_000
MAX_DEPTH = 4

HEADING_KEYS = ("title", "approach", "name", "summary", "finding")
QUALIFIER_KEYS = ("recommendation", "severity", "status")
LINK_KEYS = ("source_url", "url", "source")

_WEB = re.compile(r"https?://[^\s<>\"'`\\\[\]]{1,1900}")


def render_comment(result: ServiceResult, cap: int = COMMENT_CAP) -> str:
    """Render a result's comment as markdown, at most `cap` characters."""
    return fit(_comment(result, _Writer(lambda text: inert(safe_excerpt(text, FIELD_CAP)))), cap - 1) + "\n"


def safe_excerpt(text: str, cap: int) -> str:
    """Redact a text, then cut it to the cap. Secrets that invisible characters split are found too."""
    return _cap(redact(visible(text)), cap)


def _cap(text: str, cap: int) -> str:
    """Cut a text to the cap, and say how many characters are missing."""
    return text if len(text) <= cap else cut(text, cap - 30, f"... ({len(text) - cap + 30} characters cut)")


def render_findings(result: ServiceResult, cap: int) -> str:
    """Render findings and needs as an indented list for a prompt, redacted, at most `cap` characters (rulings E5,
    P3).
    """
    return fit(_findings(result, _Writer(lambda text: _cap(text, FIELD_CAP))), cap)


def _findings(result: ServiceResult, writer: "_Writer") -> Iterator[str]:
    for entry in writer.entries("Finding", result.findings):
        yield from bullet(entry)
    if result.needs:
        yield from ("", "Needs:", "")[not result.findings :]
    for entry in writer.entries("Need", result.needs):
        yield from bullet(entry)


def _comment(result: ServiceResult, writer: "_Writer") -> Iterator[str]:
    yield f"### Result: {result.decision.words}"
    yield ""
    yield from (f"> {line}".rstrip() for line in writer.text(redact(result.summary)))
    sections: tuple[tuple[str, Iterator[Lines]], ...] = (
        ("Findings", writer.entries("Finding", result.findings)),
        ("Changes made", writer.entries("Change", result.changes_made)),
        ("Tests run", writer.entries("Test", result.tests_run)),
        ("Needs", writer.entries("Need", result.needs)),
        ("Delegations", map(writer.delegation, result.delegations)),
        ("Questions", map(writer.question, result.human_questions)),
    )
    for title, entries in sections:
        for place, entry in enumerate(entries):
            yield from () if place else ("", f"#### {title}", "")
            yield from bullet(entry)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes values as lines; every text from an agent goes through `clean`."""

    clean: Callable[[str], str]

    def text(self, text: str) -> Lines:
        """Return a text's lines, without leading white space, which would shift the indent of its list item."""
        return block_lines(self.clean(text))

    def word(self, text: str) -> str:
        return word(self.clean(text))

    def entries(self, label: str, entries: Iterable[Finding]) -> Iterator[Lines]:
        for number, entry in enumerate(entries, start=1):
            yield self.entry(f"{label} {number}", redact_value(entry))

    def entry(self, label: str, entry: JsonValue) -> Lines:
        """Render text unchanged, an object under its heading, anything else as JSON."""
        if isinstance(entry, str):
            return self.text(entry)
        if not isinstance(entry, dict):
            return self.as_json(entry)
        heading, qualifier, web = (_first(entry, keys) for keys in (HEADING_KEYS, QUALIFIER_KEYS, LINK_KEYS))
        line = f"**{self.word(str(entry[heading])) if heading else label}**"
        line += f" ({self.word(str(entry[qualifier]))})" if qualifier else ""
        target = _WEB.fullmatch(str(entry[web])) if web else None
        target = target if target and not refers(target[0]) else None
        if target:
            line += f" [{web}]({address(target[0])})"
        used = {heading, qualifier, web if target else None}
        rest = [self.member(name, value, 1) for name, value in entry.items() if name not in used]
        return [line, *(line for lines in rest for line in bullet(lines))]

    def member(self, name: str, value: JsonValue, depth: int) -> Lines:
        """Render `name: value`; a value of several lines continues below."""
        key = self.word(name)
        if isinstance(value, list | dict) and value and depth < MAX_DEPTH:
            return [f"{key}:", *self.contents(value, depth + 1)]
        first, *rest = self.scalar(value)
        return [f"{key}: {first}".rstrip(), *rest]

    def contents(self, value: list[JsonValue] | dict[str, JsonValue], depth: int) -> Lines:
        if isinstance(value, dict):
            items = [self.member(name, item, depth) for name, item in value.items()]
        else:
            items = [self.item(item, depth) for item in value]
        return [line for lines in items for line in bullet(lines)]

    def item(self, item: JsonValue, depth: int) -> Lines:
        """Render an entry of an array: an object as its `key: value` lines."""
        if isinstance(item, dict) and item and depth < MAX_DEPTH:
            return [line for name, value in item.items() for line in self.member(name, value, depth + 1)]
        if isinstance(item, list) and item and depth < MAX_DEPTH:
            return ["list:", *self.contents(item, depth + 1)]
        return self.scalar(item)

    def scalar(self, value: JsonValue) -> Lines:
        return self.text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    def as_json(self, value: JsonValue) -> Lines:
        return ["```json", *self.text(json.dumps(value, indent=2, ensure_ascii=False)), "```"]

    def delegation(self, leg: Delegation) -> Lines:
        worker = leg.ephemeral
        who = f"{worker.role or 'ephemeral worker'} on {worker.runtime}" if worker else leg.agent or ""
        after = f", after {', '.join(f'`{dep}`' for dep in leg.deps)}" if leg.deps else ""
        return [f"`{leg.id}`: {leg.action} by {self.word(redact(who))}{after}"]

    def question(self, question: HumanQuestion) -> Lines:
        prompt, *choices = (self.text(redact(text)) for text in (question.prompt, *question.choices))
        return [f"`{question.id}`: {prompt[0]}", *prompt[1:], *(line for choice in choices for line in bullet(choice))]


def _first(entry: dict[str, JsonValue], keys: Iterable[str]) -> str | None:
    """Return the first of these keys whose value is a printable text or number; None if no value is."""
    return next(
        (key for key in keys if isinstance(entry.get(key), str | int | float) and str(entry[key]).strip()), None
    )
