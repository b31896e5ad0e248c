"""Jobs as the bridge tells of them (ruling J6): never prompts, environment, host paths or process ids."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from activities.store import projection
from activities.store import repos as stored_repos
from activities.store.projection import JOB_COLUMNS, ROUND_COLUMNS
from bridge.daemon.state import DaemonState, read_state
from bridge.http.watched import WatchedFile
from bridge.operations import hosts, jobs
from bridge.operations.service import Service
from workflows.errors import NotFoundError
from workflows.policy.hosts import HostSeen, lacks_worker, way_back
from workflows.tree.records import EventRecord, JobRecord

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Told:
    """A job's projection, written down."""

    body: bytes
    ended: bool


def job(service: Service, job_id: str) -> Told:
    """One job with its result, what was observed, and the round it waits in."""
    values = projection.read(service.store, job_id)
    if values is None:
        jobs.get(service, job_id)  # says whether it is no id or no job
        raise NotFoundError(f"no job {job_id}", "service job list")
    return _told(service, values)


class Glances:
    """The same, told at once on the event loop itself: the way to a thread and back takes longer than the look."""

    def __init__(self, service: Service) -> None:
        self._service, self._glance = service, projection.Glance(service.store)

    def job(self, job_id: str) -> Told | None:
        """None when one must ask in a thread, for the job or for why there is none."""
        values = self._glance.read(job_id)
        return _told(self._service, values) if values else None


def job_list(found: list[JobRecord]) -> list[dict[str, Any]]:
    """Jobs in a list: everything but result and round."""
    return [each.model_dump(mode="json", exclude={"revision"}) for each in found]


def tree(service: Service, job_id: str) -> bytes:
    """A whole tree: its task, every job, the bounds it lives by."""
    return hidden(service, jobs.tree_as_json(jobs.tree(service, job_id)))


def event(record: EventRecord) -> dict[str, Any]:
    """An event, with its place in the tree's order."""
    return record.model_dump(mode="json")


def hidden(service: Service, value: Any) -> bytes:
    """Written down without the paths of this home and of the registered checkouts."""
    return written(value, [str(service.home.root), *(repo.path for repo in stored_repos.every(service.store))])


def written(value: Any, paths: Iterable[str | None]) -> bytes:
    """JSON on one line in which these paths are not shown."""
    text = _ENCODER.encode(value)
    shown = tuple(path for path in paths if path and len(path) > 1 and _quoted(path) in text)
    return (_pattern(shown).sub("[path]", text) if shown else text).encode()


@lru_cache(maxsize=64)
def _pattern(paths: tuple[str, ...]) -> re.Pattern[str]:
    quoted = (re.escape(_quoted(path)) for path in sorted(paths, key=len, reverse=True))
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(quoted)})(?![\w-])")


@lru_cache(maxsize=1024)
def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)[1:-1]


def _told(service: Service, values: Mapping[str, Any]) -> Told:
    paths = (str(service.home.root), values["path"])
    return Told(written(_job(service, values), paths), values["ended_at"] is not None)


def _job(service: Service, values: Mapping[str, Any]) -> dict[str, Any]:
    payload = values["payload"] or {}
    told = {name: values[name] for name in JOB_COLUMNS}
    told["usage"] = {"input_tokens": told.pop("input_tokens"), "output_tokens": told.pop("output_tokens")}
    told |= _standing_still(values)
    told["result"] = payload.get("service_result")
    told["observation"] = payload.get("result_observation")
    paused = values["round_round_id"] is not None
    told["round"] = {name: values[f"round_{name}"] for name in ROUND_COLUMNS} if paused else None
    told["links"] = _links(service, told)
    return told


def _standing_still(values: Mapping[str, Any]) -> dict[str, str]:
    """Why it does, when its host has no worker."""
    host = HostSeen(values["host"] or "", values["host_seen_at"], values["host_stopped_at"])
    if values["host"] is None or values["ended_at"] is not None or not lacks_worker(host, time.time()):
        return {}
    return {"reason": hosts.reason(host), "next": way_back(host.name)}


def _links(service: Service, told: dict[str, Any]) -> dict[str, str | None]:
    """The web UI shows a delegation's own workflow, and everything else in the tree's."""
    job_id = told["job_id"]
    own = told["continuation"] == "none"
    here = _web_ui(service)
    workflow = job_id if own else told["root_job_id"]
    return {
        "self": f"/v1/jobs/{job_id}",
        "tree": f"/v1/jobs/{job_id}/tree",
        "events": f"/v1/jobs/{job_id}/events",
        "temporal": f"{here}/{workflow}" if here else None,
    }


def _web_ui(service: Service) -> str | None:
    state = _daemon_state(service.home.daemon_state).value()
    return f"{state.ui_url}/namespaces/{state.namespace}/workflows" if state and state.ui_url else None


@lru_cache(maxsize=64)
def _daemon_state(path: Path) -> WatchedFile[DaemonState | None]:
    """Kept, because every job that is told names the web UI."""
    return WatchedFile(path, lambda _: read_state(path))
