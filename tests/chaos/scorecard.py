"""The scorecard: what came of many cases, as JSON, and as the page of the manual that shows it."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tests.chaos.cases import OPEN, ROOT, stations

CARD = Path(__file__).with_name("scorecard.json")
SOAK = Path(__file__).with_name("soak.json")
"""The report of the last soak."""
PLANTED = Path(__file__).with_name("planted.json")
"""The case that found each bug that was planted on purpose."""
NEIGHBOUR = Path(__file__).with_name("neighbour.json")
"""The report of the last plays with a neighbour."""
PAGE = ROOT / "cli/topics/promises.md"
HEAD = """\
# Promises, and how they are tried

Whatever dies: no agent that ended runs again, nothing is lost, nothing waits
without a word. Seeded cases try this: each starts a small task, lets a fault
strike at a named station of the work, and looks at what came of it.

## What holds after each case

- every job ran as often as its record says, by marks that the agents leave
  outside of the service, and not after its end
- each batch has one continuation, each task at most one finalize
- what a person said is in one prompt
- rows, workflows, the bridge's JSON and `service attention` agree
- the branch of a task has the work of its parts
- no agent or lock is left, and no work folder but a failed attempt's whose work is
  nowhere else
- a task goes on within a minute of the fault's end, or some screen says why not

A case counts only if its fault proves that it struck; else it has failed.
"""
FOOT = """\
In a clone of the source, `python -m tests.chaos --cases 100` plays cases, and
`--seed 7` or `--case` one.
"""


def made(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scorecard of these outcomes."""
    cells: dict[str, dict[str, list[int]]] = {}
    failed, seconds, spans = [], list[float](), list[tuple[float, float]]()
    for row in rows:
        cell = cells.setdefault(row["station"], {}).setdefault(row["fault"], [0, 0, 0])
        for place, counts in enumerate((True, bool(row["proof"]), bool(row["failures"]))):
            cell[place] += counts
        seconds.append(row["seconds"])
        spans.append((row["at"] - row["seconds"], row["at"]))
        if row["failures"]:
            words = (row["workload"], row["station"], row["nth"], row["fault"])
            failed.append({"case": ", ".join(map(str, words)), "failures": row["failures"]})
    counted = {"cases": len(spans), "cells": cells, "failed": failed, "seconds": round(median(seconds))}
    return {"date": today(), "commit": commit(), "minutes": max(1, round(_covered(spans) / 60))} | counted


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return the seconds in which at least one of these was under way."""
    covered, until = 0.0, 0.0
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def page(card: Mapping[str, Any]) -> str:
    """Return the page that shows a scorecard."""
    by_fault, by_station = (dict[str, Counter[int]]() for _ in range(2))
    for station, faults in card["cells"].items():
        for fault, cell in faults.items():
            for name, table in ((fault, by_fault), (station.partition(":")[0], by_station)):
                table.setdefault(name, Counter()).update(dict(enumerate(cell)))
    took = f" in {card['minutes']} minutes" if card["minutes"] else ""
    tried = f"{card['cases']} cases{took} on {card['date']}, commit `{card['commit']}`"
    never = sorted(stations().keys() - by_station.keys())
    result = f"{len(card['failed'])} failed. Half of them were over in {card['seconds']} s"
    parts = [HEAD, f"## What was tried\n\n{tried}: {result}\nor less, eight beside each other.\n"]
    parts += [_table("fault", by_fault), _table("station", by_station)]
    parts += [f"Not reached by these cases: {', '.join(never)}.\n"] if never else []
    if card["failed"]:
        parts += [
            "## What failed\n",
            "".join(f"- `{one['case']}`: {_short(one['failures'][0])[:120]}\n" for one in card["failed"]),
        ]
    if OPEN:
        parts += ["## Known, and not mended yet\n", "".join(f"- {what}\n" for what in OPEN.values())]
    parts += [of_soak(json.loads(SOAK.read_text())), _of_planted(json.loads(PLANTED.read_text()))]
    parts += [of_neighbour(json.loads(NEIGHBOUR.read_text()), card)]
    return "\n".join([*parts, FOOT])


def of_soak(report: Mapping[str, Any]) -> str:
    """Return the part of the page that shows a soak."""
    kills, wrong = report["kills"], report["wrong"]
    killed = ", ".join(f"{name} {number}" for name, number in kills.items())
    parts = [
        "## One task after another\n",
        f"{report['trees']} tasks in {report['minutes']} minutes on {report['date']}, commit `{report['commit']}`,",
        f"with {sum(kills.values())} kills, one in {report['every']:g} seconds ({killed}): {len(wrong)} findings.\n",
        *(f"- {one}" for one in wrong),
        *[""][: len(wrong)],
        "| the most of | middle third | last third |",
        "|---|---|---|",
    ]
    return "\n".join([*parts, *(f"| {name} | {a:g} | {b:g} |" for name, (a, b) in report["grown"].items()), ""])


def _of_planted(known: Mapping[str, str]) -> str:
    """Return the part of the page that shows which case found each planted bug."""
    return "\n".join(
        [
            "## Bugs planted on purpose\n",
            "`python -m tests.chaos.planted` plants one after another in a copy of the source,",
            "and plays up to 200 cases, the likeliest first:\n",
            *(f"- {bug}: {_short(case)}" for bug, case in known.items()),
            "",
        ]
    )


def of_neighbour(report: Mapping[str, Any], card: Mapping[str, Any]) -> str:
    """Return the part of the page that shows what came of faults with a neighbour, beside what holds here."""
    versions = [f"{name} {version}" for name, version in report["versions"].items()]
    lines = [
        "## A neighbour\n",
        f"The same kinds of faults with {' and '.join(versions)} on {report['date']}, its model scripted:",
        "its server runs agents in terminals of tmux. Its documentation promises to go on after a crash of",
        "workflows, by `cao workflow resume`, and to send messages again that wait; not of agents at work or of a",
        "handoff. A step that was cut runs again only when a person says so. What was killed of its server was",
        "started again after 5 s. A number says in how many plays a thing came true within a minute, or two for",
        "a report. The plays here are the cases above, and not all like these. In a clone of the source,",
        "`python -m tests.chaos.neighbour VENV` plays them again; VENV has the neighbour.\n",
    ]
    for name, fault in report["faults"].items():
        tried = Counter[int]()
        for station, cells in card["cells"].items():
            for kind in (kind for kind in cells if station.startswith(fault["station"]) and kind in fault["ours"]):
                tried.update(dict(enumerate(cells[kind])))
        kinds = " or ".join(f"`{kind}`" for kind in fault["ours"])
        place = f" at `{fault['station']}`" if fault["station"] else ""
        here = f"{fault['here']} ({kinds}{place}: {tried[0]} cases, {tried[1]} struck, {tried[2]} failed)"
        lines += [f"### {name[0].upper()}{name[1:]}\n", f"- there: {_came_of(fault['plays'])}", f"- here: {here}\n"]
    return "\n".join(lines)


def _came_of(plays: Sequence[Mapping[str, Any]]) -> str:
    played = [facts for facts in plays if "not played" not in facts]
    words = [word for word, value in played[0].items() if isinstance(value, bool)] if played else []
    parts = [f"{word}: {sum(facts.get(word, False) for facts in played)} of {len(played)}" for word in words]
    says = dict.fromkeys(", then ".join(facts["says"]) for facts in played)
    parts += [f"status after the fault: {' or '.join(says)}"] if played else []
    kept = dict.fromkeys(state for facts in played for state in facts.get("messages", ()))
    parts += [f"its message: {' or '.join(kept)}"] if kept else []
    return "; ".join([*parts, *([f"{len(plays) - len(played)} not played"] if len(plays) > len(played) else [])])


def write(outcomes: Path) -> None:
    """Write the scorecard and its page from a file with a line for each outcome."""
    card = made(json.loads(line) for line in outcomes.read_text().splitlines())
    CARD.write_text(json.dumps(card, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(card))


def _short(failure: str) -> str:
    """Return what failed, without the lists that were compared."""
    return failure.partition("\n")[0].partition(": [")[0]


def _table(what: str, rows: Mapping[str, Counter[int]]) -> str:
    lines = [f"| {what} | cases | struck | failed |", "|---|---|---|---|"]
    lines += [f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} |" for name, counts in sorted(rows.items())]
    return "\n".join(lines) + "\n"
