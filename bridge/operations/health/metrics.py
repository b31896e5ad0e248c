"""The metrics of all hosts in Prometheus' format (ruling Q9).

Every bridge of a fleet returns the same metrics, from the shared store. So scrape one bridge, or all of them and take
the maximum.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from threading import Lock

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from activities.store import figures
from activities.store.figures import Figures, ModelUsage
from activities.store.registry.host_rows import release
from bridge.operations.service import Service
from workflows.model.states import JobState, TaskState
from workflows.policy.host_availability import lacks_worker, unseen
from workflows.policy.stalls import StallKind

FRESH_SECONDS, USAGE_SECONDS = 5.0, 60.0
"""Seconds for which figures are cached, and for which the usage is, which is a sum over all jobs."""

MOST_MODELS = 50
"""How many models have their own series: those with most tokens. Agents print the names, so there may be any number."""


Totals = tuple[list[ModelUsage], dict[tuple[str, str], int]]
"""The usage of all jobs by model, and the repaired results by runtime and model."""


class Metrics:
    """The metrics of a service, cached: scrapes cost the store a fixed number of statements in a few seconds."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, Lock()
        self._figures: tuple[float, Figures] | None = None
        self._usage: tuple[float, Totals] | None = None
        self._registry = CollectorRegistry()
        self._registry.register(_Families(self))

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type, in the format that a scraper accepts."""
        encode, content_type = exposition.choose_encoder(accept)
        return encode(self._registry), content_type

    def now(self) -> tuple[Figures, Totals]:
        """Return the figures, at most some seconds old."""
        with self._lock:
            at = time.monotonic()
            if self._figures is None or at - self._figures[0] > FRESH_SECONDS:
                self._figures = at, figures.read(self._service.store)
            if self._usage is None or at - self._usage[0] > USAGE_SECONDS:
                self._usage = at, (figures.usage(self._service.store), figures.repairs(self._service.store))
            return self._figures[1], self._usage[1]


class _Families(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the store is not read before the first scrape."""
        return ()

    def collect(self) -> Iterator[Metric]:
        snapshot, (usages, repairs) = self._metrics.now()
        yield InfoMetricFamily("service_build", "The release of this bridge.", {"version": release()})
        yield from _hosts(snapshot)
        yield from _jobs(snapshot)
        yield from _waiting(snapshot)
        yield from _usage(usages)
        yield _repairs(repairs)
        yield from _github(snapshot)


def _hosts(snapshot: Figures) -> Iterator[Metric]:
    slots = GaugeMetricFamily("service_host_slots", "Agents that a host runs at once, at most.", labels=["host"])
    used = GaugeMetricFamily("service_host_slots_used", "Agents that a host runs now.", labels=["host"])
    free = GaugeMetricFamily("service_host_slots_free", "Agents that a host could start now.", labels=["host"])
    up = GaugeMetricFamily("service_host_up", "1 if the host's worker was seen in the last minute.", labels=["host"])
    stopped = GaugeMetricFamily("service_host_stopped", "1 if a person stopped its worker.", labels=["host"])
    age = GaugeMetricFamily("service_host_seen_age_seconds", "Time since its worker was seen.", labels=["host"])
    holds = GaugeMetricFamily(
        "service_host_holding", "1 if the host starts nothing: its disk is full, or it is drained.", labels=["host"]
    )
    in_use = _used_slots(snapshot)
    for host in snapshot.hosts:
        name, works, taken = [host.seen.name], not lacks_worker(host.seen), in_use[host.seen.name]
        held = bool(host.seen.held) or host.draining or host.lost
        slots.add_metric(name, host.slots)
        used.add_metric(name, taken)
        free.add_metric(name, host.slots - taken if works and not held else 0)
        up.add_metric(name, works)
        stopped.add_metric(name, host.seen.stopped_at is not None)
        holds.add_metric(name, held)
        if host.seen.seen_at is not None:
            age.add_metric(name, max(0.0, snapshot.now - host.seen.seen_at))
    yield from (slots, used, free, up, stopped, age, holds)
    away = sum(unseen(host.seen) and host.seen.stopped_at is None for host in snapshot.hosts)
    yield GaugeMetricFamily("service_hosts_unseen", "Hosts that were not stopped and are not seen.", value=away)


def _used_slots(snapshot: Figures) -> dict[str, int]:
    """Return the slots that hosts use. A host's own count includes pipeline stages, which only the host knows; but it
    also includes jobs that wait for a slot, and is some seconds old.
    """
    running, queued = Counter[str](), Counter[str]()
    for group in snapshot.jobs:
        (running if group.state == JobState.RUNNING else queued)[group.host] += group.count
    return {
        host.seen.name: min(host.slots, max(running[host.seen.name], host.taken - queued[host.seen.name]))
        for host in snapshot.hosts
    }


def _jobs(snapshot: Figures) -> Iterator[Metric]:
    labels = ["host", "runtime", "labels"]
    running = GaugeMetricFamily("service_jobs_running", "Jobs that run, by what they require.", labels=labels)
    queued = GaugeMetricFamily("service_jobs_queued", "Jobs that wait for a slot, by what they require.", labels=labels)
    oldest = GaugeMetricFamily(
        "service_jobs_queued_oldest_seconds", "Time that the oldest queued job has waited.", labels=labels
    )
    counts, since = Counter[tuple[str, ...]](), dict[tuple[str, ...], float]()
    for group in snapshot.jobs:
        key = (group.state, group.host, group.runtime, ",".join(group.labels))
        counts[key] += group.count
        since[key] = min(group.oldest_at, since.get(key, group.oldest_at))
    for (state, *names), count in counts.items():
        if state == JobState.RUNNING:
            running.add_metric(names, count)
            continue
        queued.add_metric(names, count)
        oldest.add_metric(names, max(0.0, snapshot.now - since[state, *names]))
    yield from (running, queued, oldest)
    trees = GaugeMetricFamily("service_trees", "Trees by state.", labels=["state"])
    for state in TaskState:
        trees.add_metric([state.value], snapshot.trees.get(state, 0))
    yield trees
    bounds = CounterMetricFamily("service_bounds_tripped", "Bounds of trees that were reached.", labels=["bound"])
    for kind in figures.BOUNDS:
        bounds.add_metric([kind.value], snapshot.bounds.get(kind, 0))
    yield bounds


def _waiting(snapshot: Figures) -> Iterator[Metric]:
    rounds = GaugeMetricFamily("service_rounds_open", "Rounds that wait for a person.", labels=["kind"])
    oldest = GaugeMetricFamily("service_rounds_open_oldest_seconds", "Time that the oldest waits.", labels=["kind"])
    for group in snapshot.rounds:
        rounds.add_metric([group.kind], group.count)
        oldest.add_metric([group.kind], max(0.0, snapshot.now - group.oldest_at))
    failing = GaugeMetricFamily(
        "service_deliveries_failed", "Notifications that could not be delivered yet.", labels=["channel"]
    )
    for channel, count in snapshot.failing.items():
        failing.add_metric([channel], count)
    stalled = GaugeMetricFamily(
        "service_stalled", "Ends that are not recorded, and steps of trees that never succeed.", labels=["kind"]
    )
    for kind in StallKind:
        stalled.add_metric([kind.value], snapshot.stalled.get(kind, 0))
    yield from (rounds, oldest, failing, stalled)


def _usage(usages: list[ModelUsage]) -> Iterator[Metric]:
    tokens = CounterMetricFamily("service_tokens", "Tokens that jobs used.", labels=["model", "direction"])
    dollars = CounterMetricFamily("service_cost_dollars", "Dollars that jobs cost.", labels=["model"])
    ranked = sorted(usages, key=lambda usage: usage.input_tokens + usage.output_tokens, reverse=True)
    read, written, spent = Counter[str](), Counter[str](), defaultdict[str, float](float)
    for number, usage in enumerate(ranked):
        model = (usage.model or "unknown") if number < MOST_MODELS else "other"
        read[model] += usage.input_tokens
        written[model] += usage.output_tokens
        spent[model] += usage.cost_usd
    for model, cost in spent.items():
        tokens.add_metric([model, "input"], read[model])
        tokens.add_metric([model, "output"], written[model])
        dollars.add_metric([model], cost)
    yield from (tokens, dollars)


def _repairs(counts: dict[tuple[str, str], int]) -> Metric:
    family = CounterMetricFamily(
        "service_results_repaired", "Results that agents were asked to correct.", labels=["model", "runtime"]
    )
    shown = Counter[tuple[str, str]]()
    for number, ((runtime, model), count) in enumerate(Counter(counts).most_common()):
        shown[(model or "unknown") if number < MOST_MODELS else "other", runtime] += count
    for labels, count in shown.items():
        family.add_metric(labels, count)
    return family


def _github(snapshot: Figures) -> Iterator[Metric]:
    limit = GaugeMetricFamily("service_github_quota", "Requests an hour that GitHub allows.", labels=[])
    left = GaugeMetricFamily("service_github_quota_remaining", "Requests left of the quota.", labels=[])
    whole = GaugeMetricFamily("service_github_quota_reset_seconds", "Time until the quota is whole.", labels=[])
    if quota := snapshot.quota:
        limit.add_metric([], quota.limit)
        left.add_metric([], quota.remaining)
        whole.add_metric([], max(0.0, quota.reset_at - snapshot.now))
    yield from (limit, left, whole)
