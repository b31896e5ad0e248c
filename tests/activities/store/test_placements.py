"""Placement by the store's table: what counts as load, and that attempts placed at once go to different hosts (Q4)."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Connection, Engine, event, literal_column, select, update

from activities.host.context import Context
from activities.jobs import placing
from activities.jobs.placing import Placer, need_of
from activities.settings.home import Home
from activities.settings.model import Settings
from activities.store import attempt_rows, placements, schema, tree_rows
from activities.store.registry import agent_rows, host_rows, repo_rows
from activities.store.registry.repo_rows import Remote
from tests.rows import ROOT, job
from tests.tree.simulator import tree_input
from workflows.model.rows import Records
from workflows.model.states import JobState
from workflows.model.workers import Worker
from workflows.policy.placement import HANDFUL, Host, Need, Placement
from workflows.temporal.calls import OfferKey
from workflows.temporal.placing import Unplaced

pytestmark = pytest.mark.ruling("Q4")
REMOTE = Remote("https://git.example/shop", "main", "refs/service/")


def see(store: Engine, name: str, *labels: str, slots: int = 4, taken: int = 0) -> None:
    own = ("runtime:shell", f"host:{name}", *labels)
    host_rows.see(store, name, slots=slots, started_at=1.0, labels=own, taken=taken)


def wanted(number: int = 1, **fields: object) -> Unplaced:
    known = {"offer": OfferKey(job_id=f"job-{number}", attempt=1), "root": "job-0", "repo": "acme/shop", "host": "a"}
    return Unplaced.model_validate(known | {"runtime": "shell"} | fields)


def place(store: Engine, number: int = 1, **fields: object) -> Placement:
    return Placer(Context(Home(Path("/nowhere")), Settings(), store)).choose(wanted(number, **fields))


def drawn(store: Engine, repo: str = "acme/shop") -> list[Host]:
    return sorted((each.host for each in placements.draw(store, Need(repo), "job 1").hosts), key=lambda host: host.name)


def load(store: Engine) -> dict[str, int]:
    return {host.name: host.load for host in drawn(store)}


def placed(store: Engine) -> dict[str, str]:
    with store.connect() as connection:
        return {row.job_id: row.host for row in connection.execute(select(schema.placements))}


def test_an_attempt_counts_as_load_from_its_placement_until_its_host_reports_it(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "/shop", "a")
    see(store, "a", taken=1)
    assert place(store).host == "a"
    assert (load(store), placed(store)) == ({"a": 2}, {"job-1": "a"})
    with store.begin() as connection:
        connection.execute(update(schema.placements).values(at=schema.placements.c.at - 60))
    see(store, "a", taken=2)
    assert load(store) == {"a": 2}, "the report has it"


def test_trees_that_place_at_once_do_not_all_choose_one_host(store: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing, "TRIES", 16)  # each try in vain is the placement of another one
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    for name in "abcd":
        see(store, name, slots=4)
    with ThreadPoolExecutor(4) as trees:
        chosen = Counter(each.host for each in trees.map(lambda number: place(store, number), range(16)))
    assert chosen == {"a": 4, "b": 4, "c": 4, "d": 4}


def fill(store: Engine, number: int, *labels: str, taken: int = 0, first: int = 0) -> None:
    """Write the rows of many hosts as one sees itself."""
    see(store, f"h{first}", *labels, taken=taken)
    with store.begin() as connection:
        [seen] = connection.execute(select(schema.hosts).where(schema.hosts.c.name == f"h{first}")).mappings()
        others = range(first + 1, first + number)
        own = ("runtime:shell", *labels)
        rows = [{**seen, "name": f"h{n}", "labels": [*own, f"host:h{n}"], "lot": n % 97 / 97} for n in others]
        connection.execute(schema.hosts.insert(), rows)


def test_idle_hosts_are_drawn_before_busy_ones_and_those_before_full_ones(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    fill(store, 20, taken=4)
    fill(store, 20, taken=3, first=20)
    fill(store, 5, first=40)
    assert [drawn.load for drawn in drawn_by_load(store)] == [0, 0, 0, 0, 0, 3, 3, 3]
    chosen = Counter(place(store, number).host for number in range(40))
    assert {name: count for name, count in chosen.items() if int(name[1:]) >= 20} == chosen, "no full host"
    assert len(chosen) == 25, "each that had a free slot got some"
    assert [host.load for host in drawn_by_load(store)] == [4] * HANDFUL


def drawn_by_load(store: Engine) -> list[Host]:
    return sorted(drawn(store), key=lambda host: host.load)


def test_what_is_asked_for_by_name_is_drawn_from_any_number_of_hosts(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    fill(store, 40)
    for number in range(3):
        assert place(store, number, near="h7").host == "h7"
        assert place(store, number, prefer=("host:h9",), near="h8").host == "h9"
        assert place(store, number, require=("host:h11",)).host == "h11"
    lacking = place(store, require=("host:h99",))
    assert (lacking.reason, lacking.next.split(":")[0]) == ("no host has the label host:h99", "on a new machine")


def test_a_label_that_few_of_many_hosts_have_is_found_and_one_that_none_has_is_named(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    fill(store, 40, "big")
    see(store, "rare", "gpu", "big")
    assert place(store, require=("gpu", "big")).host == "rare"
    assert place(store, 2, prefer=("gpu",)).host == "rare"
    assert place(store, require=("tpu",)).reason == "no host has the label tpu"
    see(store, "arm", "arm64")
    assert (
        place(store, require=("gpu", "arm64")).reason
        == "no host has all of: the runtime shell and the label arm64, gpu"
    )


def test_hosts_that_died_are_left_out_of_the_draw_and_are_back_with_their_next_sign_of_life(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    fill(store, 30)
    with store.begin() as connection:
        connection.execute(update(schema.hosts).values(seen_at=schema.hosts.c.seen_at - 61))
    see(store, "a", taken=3)
    host_rows.sort_out(store)
    assert {place(store, number).host for number in range(4)} == {"a"}
    host_rows.stop(store, "a", started_at=1.0)
    assert "has no worker" in place(store).reason
    host_rows.sort_out(store)
    see(store, "h7")
    assert place(store).host == "h7"
    with store.begin() as connection:  # as a worker of an earlier release does
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "a").values(stopped_at=None, taken=0))
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "h7").values(held="the disk is full"))
    host_rows.sort_out(store)
    assert {place(store, number).host for number in range(4)} == {"a"}


def rows_read(store: Engine) -> int:
    """Return how much the database reads for one placement: PostgreSQL's rows, or SQLite's steps in tens.

    A count can be too low: PostgreSQL starts from zero whenever it passes its counts on, also during a placement, and a
    draw that begins near a pool's end reads less.
    """
    counted, before = list[int](), [0]

    def count(connection: Any, *_: object) -> None:
        if store.dialect.name == "sqlite":
            connection.connection.driver_connection.set_progress_handler(lambda: counted.append(1), 10)

    def sum_up(connection: Connection) -> None:
        """Count what the transaction has read; the server adds up several, until it passes them on."""
        if store.dialect.name == "postgresql":
            read = "coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int"
            now = connection.exec_driver_sql(f"SELECT {read} FROM pg_stat_xact_user_tables").scalar_one()
            counted.append(now - before[0] if now >= before[0] else now)
            before[0] = now

    listeners = (("before_cursor_execute", count), ("rollback", sum_up), ("commit", sum_up))
    for name, listener in listeners:
        event.listen(store, name, listener)
    try:
        placements.asks(store, "acme/shop")
        counted.clear()
        assert place(store, prefer=("gpu",)).host
    finally:
        for name, listener in listeners:
            event.remove(store, name, listener)
    return sum(counted)


def test_the_rows_read_for_a_placement_do_not_grow_with_the_fleet(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    read = []
    for number in (1_000, 4_000):
        for taken in (0, 2, 4):
            fill(store, number, taken=taken, first=taken * 10_000 + number)
        fill(store, number // 10, "gpu", taken=9, first=90_000 + number)
        with store.begin() as connection:
            connection.exec_driver_sql("ANALYZE")
        place(store)
        read.append(max(rows_read(store) for _ in range(5)))
    small, large = read
    assert large <= small * 1.1, read


def test_a_repository_without_a_remote_stays_with_its_checkout(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "/shop", "a")
    see(store, "a", taken=40)
    see(store, "b")
    assert place(store).host == "a"
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    assert place(store).host == "b"


def test_labels_of_repository_agent_and_stage_count_together(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "/shop", "a", require=("vpn",), prefer=("eu",))
    worker = Worker(name="ann", runtime="shell", capabilities=("ask",))
    agent_rows.add(store, worker, ("acme/shop",), require=("gpu",), prefer=("ssd",))
    asks = placements.asks(store, "acme/shop", "ann")
    need = need_of(wanted(agent="ann", require=("big",), prefer=("host:a",), near="b"), asks)
    assert need.require == {"vpn", "gpu", "big", "runtime:shell"}
    assert need.prefer == {"eu", "ssd", "host:a"}
    assert (need.near, need.only) == ("b", frozenset({"a"}))
    repo_rows.put(store, "acme/shop", "/shop", "a", prefer=())
    asks = placements.asks(store, "acme/shop")
    assert (asks.require, asks.prefer) == (frozenset({"vpn"}), frozenset()), "what is not given stays"


@pytest.mark.parametrize("nonsense", ["null", "7", '"gpu"', '{"gpu" : 1}', '[null, 7, ["gpu"], "big"]'])
def test_a_host_whose_labels_are_nonsense_stops_no_other(store: Engine, nonsense: str) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    for name in "ab":
        see(store, name, "gpu")
    column: ColumnElement[Any] = literal_column(f"'{nonsense}'")
    with store.begin() as connection:
        connection.execute(update(schema.hosts).where(schema.hosts.c.name == "b").values(labels=column, keys=column))
    assert {place(store, number, require=("gpu",)).host for number in range(4)} == {"a"}
    labels = [list(each.labels) for each in host_rows.every(store)]
    assert labels == [["runtime:shell", "host:a", "gpu"], ["big"] if "big" in nonsense else []]


def test_what_no_host_can_run_is_placed_nowhere(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    see(store, "a")
    answer = place(store, require=("gpu",))
    assert (answer.host, answer.reason) == ("", "no host has the label gpu")
    assert placed(store) == {}


def test_a_host_that_had_attempts_of_the_repository_is_warm(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    see(store, "a")
    assert [host.has_repo for host in drawn(store)] == [False]
    place(store)
    assert [host.has_repo for host in drawn(store)] == [True]


def test_a_job_s_host_is_where_its_attempt_was_placed(store: Engine) -> None:
    repo_rows.put(store, "acme/shop", "", "a", remote=REMOTE)
    queued = [job(name, state=JobState.QUEUED) for name in (ROOT, f"{ROOT}.1")]
    tree_rows.begin(store, tree_input(root_job_id=ROOT), "home", Records(jobs=tuple(queued)))
    see(store, "a")
    place(store, 1, offer=OfferKey(job_id=queued[0].job_id, attempt=1))
    hosts = host_rows.of_jobs(store, [each.job_id for each in queued])
    assert [hosts[each.job_id].name for each in queued] == ["a", "home"]
    assert host_rows.open_jobs(store, "a") == [queued[0].job_id]
    assert placements.hosts_in(store, ROOT) == {queued[0].job_id: "a"}
    with store.begin() as connection:
        attempt_rows.open_or_get(connection, queued[0].job_id, 1, "b", "/run", 1.0)
    assert placements.hosts_in(store, ROOT) == {queued[0].job_id: "b"}, "where it began counts"
