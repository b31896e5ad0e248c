"""Where an attempt goes: labels, checkouts, free slots, fairness over a thousand hosts (ruling Q4)."""

import heapq
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from workflows.policy.host_availability import HostSeen
from workflows.policy.placement import (
    HANDFUL,
    MOST_POOLS,
    Host,
    Need,
    Pool,
    Room,
    choose,
    choose_moves,
    place,
    pools_for,
)

pytestmark = pytest.mark.ruling("Q4")
NOW = 1_000.0
GPU = frozenset({"gpu"})
ANY = Need("acme/shop")


def host(name: str, *labels: str, slots: int = 4, load: int = 0, **known: Any) -> Host:
    made = Host(HostSeen(name, seen_at=NOW, now=NOW), slots, load, frozenset({*labels, f"host:{name}"}))
    return replace(made, **known)


def placed(need: Need, *hosts: Host, times: int = 50) -> Counter[str]:
    """Count the choices for so many attempts."""
    return Counter(place(need, hosts, f"job-{number} 1").host for number in range(times))


def test_the_choice_depends_on_nothing_but_the_table_and_the_attempt() -> None:
    hosts = [host(f"h{number}", load=number % 3) for number in range(20)]
    chosen = [place(ANY, hosts, f"job-{number} 1") for number in range(20)]
    assert chosen == [place(ANY, hosts, f"job-{number} 1") for number in range(20)]
    assert len({each.host for each in chosen}) > 5


def test_only_a_host_with_all_required_labels_gets_it() -> None:
    need = replace(ANY, require=frozenset({"gpu", "arch:arm64"}))
    assert set(placed(need, host("a", "gpu"), host("b", "gpu", "arch:arm64"), host("c", "arch:arm64"))) == {"b"}


def test_a_preferred_label_counts_until_its_host_is_full() -> None:
    need = replace(ANY, prefer=GPU)
    assert set(placed(need, host("a"), host("b", "gpu", load=3))) == {"b"}
    assert set(placed(need, host("a"), host("b", "gpu", load=4))) == {"a"}
    assert set(placed(need, host("a", load=9), host("b", "gpu", load=4))) == {"b"}
    assert set(placed(need, host("a", load=5), host("b", "gpu", load=9))) == {"a"}, (
        "the shorter queue, when all are full"
    )


def test_what_people_prefer_counts_before_the_host_of_the_tree_itself() -> None:
    need = replace(ANY, prefer=GPU, near="a")
    assert set(placed(need, host("a"), host("b", "gpu"))) == {"b"}
    assert set(placed(need, host("a", "gpu", load=3), host("b", "gpu"))) == {"a"}
    assert set(placed(need, host("a", load=3), host("b", "gpu", load=4), host("c"))) == {"a"}


def test_pools_of_hosts_that_can_run_it_are_drawn_from_and_idle_hosts_before_busy_ones() -> None:
    def pools(need: Need, *hosts: Host) -> list[list[str]]:
        known = [*{each.pool: None for each in hosts}]
        return [sorted(pool.key for pool in alike) for alike in pools_for(need, known, "job 1")]

    hosts = (
        *(host("a"), host("b", load=1), host("c", load=4), host("d", lost_at=NOW)),
        *(host("e", "gpu"), host("f", "gpu", load=2), host("g", "gpu", load=9), host("h", slots=0)),
    )
    every = [["0", "0 gpu"], ["1", "1 gpu"], ["2", "2 gpu"], ["3"]]
    assert pools(ANY, *hosts) == every
    assert pools(replace(ANY, prefer=GPU), *hosts) == [["0 gpu"], ["1 gpu"], ["0"], ["1"], ["2", "2 gpu"], ["3"]]
    assert pools(replace(ANY, require=GPU), *hosts) == [["0 gpu"], ["1 gpu"], ["2 gpu"]]
    assert pools(replace(ANY, prefer=frozenset({"host:a"})), *hosts) == every
    assert pools(replace(ANY, require=frozenset({"host:a"})), *hosts) == [], "it is read by its name"
    assert pools(replace(ANY, only=frozenset({"a"})), *hosts) == []
    assert replace(ANY, prefer=frozenset({"host:a", "gpu"}), near="b", only=frozenset({"c"})).named_hosts == {
        "a",
        "b",
        "c",
    }
    assert [Pool.read(each.pool.key) for each in hosts] == [each.pool for each in hosts]
    assert Pool.read("").room is Room.FULL, "as an earlier release has written it"


def test_of_very_many_pools_each_is_drawn_from_now_and_then() -> None:
    known = [Pool(Room.IDLE, frozenset({f"rack-{number}"})) for number in range(100)]
    drawn = [pools_for(ANY, known, f"job-{number}") for number in range(200)]
    assert {sum(map(len, groups)) for groups in drawn} == {MOST_POOLS}
    assert {pool for groups in drawn for alike in groups for pool in alike} == {*known}


def test_a_repository_without_a_remote_stays_where_it_is_checked_out() -> None:
    need = replace(ANY, only=frozenset({"b"}))
    assert set(placed(need, host("a"), host("b", load=50), host("c"))) == {"b"}
    away = host("b", lost_at=NOW)
    assert set(placed(need, host("a"), away)) == {"b"}, "its queue keeps it until the host is back"


def test_the_emptier_of_two_is_chosen_and_one_with_the_repository_counts_half_more() -> None:
    assert set(placed(ANY, host("a", load=2), host("b", load=1))) == {"b"}
    assert set(placed(ANY, host("a", load=1, has_repo=True), host("b", load=0))) == {"a"}
    assert set(placed(ANY, host("a", load=2, has_repo=True), host("b", load=0))) == {"b"}


def test_of_full_hosts_the_shortest_queue_for_its_size_is_chosen() -> None:
    assert set(placed(ANY, host("a", slots=2, load=4), host("b", slots=8, load=12))) == {"b"}
    among = placed(ANY, *(host(f"h{number}", load=4) for number in range(10)), times=1000)
    assert (len(among), max(among.values()) < 150) == (10, True), "equal queues are not all laid on one host"


@pytest.mark.ruling("Q4.freed")
def test_from_queues_goes_what_others_can_begin_at_once_and_no_more() -> None:
    full, small, big = host("full", load=6), host("small", load=3), host("big", "gpu", load=2)
    waiting = [("a", "full", Need("", frozenset({"tpu"}))), *((name, "full", Need("")) for name in "bcd")]
    assert choose_moves(waiting, [full, small, big], {"small", "big"}) == [("b", "big"), ("c", "small")]
    assert choose_moves(waiting, [full, small, big], {"small"}) == [("b", "small")]
    assert choose_moves([("e", "full", Need("", frozenset({"gpu"})))], [full, small, big], {"small", "big"}) == [
        ("e", "big")
    ]
    assert choose_moves([("f", "full", Need(""))], [host("full", load=4), small], {"small"}) == [], (
        "it has a slot there"
    )


@pytest.mark.parametrize(
    ("known", "words", "way"),
    [
        ({"lost_at": NOW}, "b is lost", "on b: service daemon start"),
        ({"draining_at": NOW}, "b is draining", "service host drain b --undo"),
        ({"seen": HostSeen("b", seen_at=NOW - 61, now=NOW)}, "b has no worker", "on b: service daemon start"),
        (
            {"seen": HostSeen("b", seen_at=NOW, held="the disk is full", now=NOW)},
            "b starts nothing",
            "on b: service gc",
        ),
    ],
)
def test_a_host_that_takes_nothing_is_passed_over_and_named_if_it_is_the_only_one(
    known: dict[str, Any], words: str, way: str
) -> None:
    need, away = replace(ANY, require=GPU), replace(host("b", "gpu"), **known)
    assert set(placed(need, host("a", "gpu"), away)) == {"a"}
    alone = place(need, [host("a"), away], "job 1")
    assert (alone.host, alone.next) == ("", way)
    assert words in alone.reason


def test_of_a_host_that_is_required_by_name_and_lost_it_is_said_how_to_replace_it() -> None:
    """Legs that share a worktree require the host that has it."""
    need = replace(ANY, require=frozenset({"host:b"}))
    again = "on a new machine: service host join TOKEN --host b"
    lost = place(need, [host("a", "host:a"), host("b", "host:b", lost_at=NOW)], "job 1")
    assert (lost.reason, lost.next) == (
        "no host that can run it takes jobs: b is lost",
        f"on b: service daemon start; if it is gone for good, {again}",
    )
    assert place(need, [host("a", "host:a")], "job 1").next == again


@pytest.mark.parametrize(
    ("need", "reason", "way"),
    [
        (replace(ANY, require=GPU), "no host has the label gpu", "service host list"),
        (replace(ANY, require=frozenset({"runtime:kimi"})), "no host has the runtime kimi", "service doctor"),
        (
            replace(ANY, require=frozenset({"x", "y"})),
            "no host has all of: the label x, y",
            "service host list",
        ),
        (
            replace(ANY, require=frozenset({"y"}), only=frozenset({"a"})),
            "no host that has acme/shop can run it: a lacks the label y",
            "service repo add acme/shop --remote URL",
        ),
        (
            replace(ANY, only=frozenset({"z"})),
            "no host that has acme/shop was ever seen: z",
            "service host list",
        ),
    ],
)
def test_what_no_host_can_run_is_refused_with_what_is_missing(need: Need, reason: str, way: str) -> None:
    answer = place(need, [host("a", "x"), host("b", "y")], "job 1")
    assert (answer.host, answer.reason, answer.next) == ("", reason, way)


class Table:
    """The fleet's table: as the store does, it draws a handful by lot, idle hosts first and full ones last."""

    def __init__(self, hosts: list[Host], random: Random) -> None:
        self.hosts, self._random = hosts, random
        self._rooms: dict[Room, list[str]] = {room: [] for room in Room}
        self._at: dict[str, int] = {}
        self._index = {host.name: number for number, host in enumerate(hosts)}
        for host in hosts:
            self._enter(host)

    def draw(self) -> list[Host]:
        drawn = list[str]()
        for room in (Room.IDLE, Room.FREE, Room.FULL):
            names = self._rooms[room]
            drawn += self._random.sample(names, min(len(names), HANDFUL - len(drawn)))
        return [self.hosts[self._index[name]] for name in drawn]

    def load(self, name: str, more: int) -> None:
        number = self._index[name]
        former, names = self.hosts[number], self._rooms[self.hosts[number].pool.room]
        last = names.pop()
        if last != name:
            names[self._at[name]], self._at[last] = last, self._at[name]
        self.hosts[number] = replace(former, load=former.load + more)
        self._enter(self.hosts[number])

    def _enter(self, host: Host) -> None:
        names = self._rooms[host.pool.room]
        self._at[host.name] = len(names)
        names.append(host.name)


def work(hosts: int, legs: int, crowding: float) -> tuple[list[float], float, float]:
    """Let legs of random length arrive at hosts of several sizes, at `crowding` times what these can do.

    Return the use of each host, from 0 to 1, the longest time that a leg waited for its slot, and the seconds that the
    choices took.
    """
    random = Random(7)
    table = Table([host(f"h{number}", slots=4 + number % 3 * 4) for number in range(hosts)], Random(8))
    free_at = {each.name: [0.0] * each.slots for each in table.hosts}
    busy = dict.fromkeys(free_at, 0.0)
    ends, now, longest, spent = list[tuple[float, str]](), 0.0, 0.0, 0.0
    rate = crowding * sum(each.slots for each in table.hosts)
    for leg in range(legs):
        now += random.expovariate(rate)
        while ends and ends[0][0] <= now:
            table.load(heapq.heappop(ends)[1], -1)
        handful, begun = table.draw(), time.perf_counter()
        chosen = choose(ANY, handful, f"job-{leg} 1").name
        spent += time.perf_counter() - begun
        table.load(chosen, 1)
        length = random.expovariate(1.0)
        begin = max(now, heapq.heappop(free_at[chosen]))
        heapq.heappush(free_at[chosen], begin + length)
        heapq.heappush(ends, (begin + length, chosen))
        busy[chosen] += length
        longest = max(longest, begin - now)
    return [busy[each.name] / (each.slots * now) for each in table.hosts], longest, spent


def evenly(use: list[float], within: float) -> bool:
    mean = sum(use) / len(use)
    return max(use) < mean * (1 + within) and min(use) > mean * (1 - within)


def test_many_hosts_are_used_evenly_and_no_leg_starves() -> None:
    use, longest, _ = work(20, 30_000, 0.7)
    assert evenly(use, 0.10), sorted(use)
    assert longest == 0.0, "a slot was free somewhere all the time"


def test_a_thousand_legs_at_once_queue_at_all_hosts_by_their_size() -> None:
    table = Table([host(f"h{number}", slots=2 + number) for number in range(10)], Random(8))
    for leg in range(1_000):
        table.load(choose(ANY, table.draw(), f"job-{leg} 1").name, 1)
    queues = [each.load / each.slots for each in table.hosts]
    assert max(queues) - min(queues) < 1, queues


@pytest.mark.long
def test_a_million_legs_on_a_thousand_hosts(record_property: Callable[[str, object], None]) -> None:
    use, longest, spent = work(1_000, 1_000_000, 0.9)
    record_property("microseconds for each decision", round(spent))
    assert evenly(use, 0.10), sorted(use)
    assert longest < 1.0, "no leg waits as long as a leg takes"
    assert spent < 1_000, "less than a millisecond for each decision"
