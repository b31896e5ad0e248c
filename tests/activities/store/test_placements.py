"""Placement by the store's table: what counts as load, and that attempts placed at once go to different hosts (Q4)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Engine, literal_column, select, update

from activities.host.context import Context
from activities.jobs import placing
from activities.jobs.placing import Placer, need_of
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import attempts, placements, schema, trees
from activities.store.registry import agents, hosts, repos
from activities.store.registry.repos import Remote
from tests.rows import ROOT, job
from tests.tree.simulator import tree_input
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.policy.placement import Placement
from workflows.temporal.calls import Offer, Unplaced

pytestmark = pytest.mark.ruling("Q4")
REMOTE = Remote("https://git.example/shop", "main", "refs/service/")


def see(store: Engine, name: str, *labels: str, slots: int = 4, taken: int = 0) -> None:
    own = ("runtime:shell", f"host:{name}", *labels)
    hosts.see(store, name, slots=slots, started_at=1.0, labels=own, taken=taken)


def wanted(number: int = 1, **fields: object) -> Unplaced:
    known = {"offer": Offer(job_id=f"job-{number}", attempt=1), "root": "job-0", "repo": "acme/shop", "host": "a"}
    return Unplaced.model_validate(known | {"runtime": "shell"} | fields)


def place(store: Engine, number: int = 1, **fields: object) -> Placement:
    return Placer(Context(Home(Path("/nowhere")), Settings(), store)).choose(wanted(number, **fields))


def load(store: Engine) -> dict[str, int]:
    return {each.host.name: each.host.load for each in placements.fleet(store, "acme/shop").hosts}


def placed(store: Engine) -> dict[str, str]:
    with store.connect() as connection:
        return {row.job_id: row.host for row in connection.execute(select(schema.placements))}


def test_an_attempt_counts_as_load_from_its_placement_until_its_host_reports_it(store: Engine) -> None:
    repos.put(store, "acme/shop", "/shop", "a")
    see(store, "a", taken=1)
    assert place(store).host == "a"
    assert (load(store), placed(store)) == ({"a": 2}, {"job-1": "a"})
    with store.begin() as connection:
        connection.execute(update(schema.placements).values(at=schema.placements.c.at - 60))
    see(store, "a", taken=2)
    assert load(store) == {"a": 2}, "the report has it"


def test_trees_that_place_at_once_do_not_all_choose_one_host(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "TRIES", 16)  # each try in vain is the placement of another one
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    for name in "abcd":
        see(store, name, slots=4)
    with ThreadPoolExecutor(4) as trees:
        chosen = Counter(each.host for each in trees.map(lambda number: place(store, number), range(16)))
    assert chosen == {"a": 4, "b": 4, "c": 4, "d": 4}


def test_a_repository_without_a_remote_stays_with_its_checkout(store: Engine) -> None:
    repos.put(store, "acme/shop", "/shop", "a")
    see(store, "a", taken=40)
    see(store, "b")
    assert place(store).host == "a"
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    assert place(store).host == "b"


def test_labels_of_repository_agent_and_stage_count_together(store: Engine) -> None:
    repos.put(store, "acme/shop", "/shop", "a", require=("vpn",), prefer=("eu",))
    worker = Worker(name="ann", runtime="shell", capabilities=("ask",))
    agents.add(store, worker, ("acme/shop",), require=("gpu",), prefer=("ssd",))
    fleet = placements.fleet(store, "acme/shop", "ann")
    need = need_of(wanted(agent="ann", require=("big",), prefer=("host:a",)), fleet)
    assert need.require == {"vpn", "gpu", "big", "runtime:shell"}
    assert need.prefer == {"eu", "ssd", "host:a"}
    repos.put(store, "acme/shop", "/shop", "a", prefer=())
    fleet = placements.fleet(store, "acme/shop")
    assert (fleet.require, fleet.prefer) == (frozenset({"vpn"}), frozenset()), "what is not given stays"


@pytest.mark.parametrize("nonsense", ["null", "7", '"gpu"', '{"gpu" : 1}', '[null, 7, ["gpu"], "big"]'])
def test_a_host_whose_labels_are_nonsense_stops_no_other(store: Engine, nonsense: str) -> None:
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    for name in "ab":
        see(store, name, "gpu")
    column: ColumnElement[Any] = literal_column(f"'{nonsense}'")
    with store.begin() as connection:
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "b").values(labels=column, keys=column))
    assert {place(store, number, require=("gpu",)).host for number in range(4)} == {"a"}
    labels = [list(each.labels) for each in hosts.every(store)]
    assert labels == [["runtime:shell", "host:a", "gpu"], ["big"] if "big" in nonsense else []]


def test_what_no_host_can_run_is_placed_nowhere(store: Engine) -> None:
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    see(store, "a")
    answer = place(store, require=("gpu",))
    assert (answer.host, answer.reason) == ("", "no host has the label gpu")
    assert placed(store) == {}


def test_a_host_that_had_attempts_of_the_repository_is_warm(store: Engine) -> None:
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    see(store, "a")
    assert [each.host.has_repo for each in placements.fleet(store, "acme/shop").hosts] == [False]
    place(store)
    assert [each.host.has_repo for each in placements.fleet(store, "acme/shop").hosts] == [True]


def test_a_job_s_host_is_where_its_attempt_was_placed(store: Engine) -> None:
    repos.put(store, "acme/shop", "", "a", remote=REMOTE)
    queued = [job(name, state=JobState.QUEUED) for name in (ROOT, f"{ROOT}.1")]
    trees.begin(store, tree_input(root_job_id=ROOT), "home", Records(jobs=tuple(queued)))
    see(store, "a")
    place(store, 1, offer=Offer(job_id=queued[0].job_id, attempt=1))
    found = hosts.of_jobs(store, [each.job_id for each in queued])
    assert [found[each.job_id].name for each in queued] == ["a", "home"]
    assert hosts.open_jobs(store, "a") == [queued[0].job_id]
    assert placements.hosts_in(store, ROOT) == {queued[0].job_id: "a"}
    with store.begin() as connection:
        attempts.open_within(connection, queued[0].job_id, 1, "b", "/run", 1.0)
    assert placements.hosts_in(store, ROOT) == {queued[0].job_id: "b"}, "where it began counts"
