"""A job's work folder and the permissions of its sandbox, as every prompt describes them (ruling P2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflows.contract.worktree_names import MERGE
from workflows.policy.reference_names import BASE, LINE
from workflows.text.durations import format_duration
from workflows.text.quoted_data import inline

MOST_NAMES = 20
HASH = 12

_MIB = 1024**2


@dataclass(frozen=True)
class LeftOut:
    """A branch that is not on the line because of a conflict."""

    leg: str
    """The leg that wrote the branch; empty for the coordinator itself."""
    branch: str
    """Argument for `git merge`; LINE if the job's own branch and the line conflict."""
    against: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Allowed:
    """The permissions of a job, by its program, its policy and its sandbox."""

    edits: bool
    """True if the job may change its work folder."""
    commands: bool
    """True if the job may run builds and tests."""
    commits: bool
    """True if the job may write `.git`."""
    network: str
    """Network access, in words."""
    temporary: str
    """Where temporary files go, in words."""
    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """Other places that the operator allows to read, apart from the system and the work folder."""
    boxed: bool = True
    """True if the job can see nothing of the service's home."""
    seconds: float | None = None
    memory: int = 0
    """The memory limit in bytes; 0 means no limit for this job."""


@dataclass(frozen=True)
class Surroundings:
    """A job's work folder, and the commits it is based on."""

    repo: str
    folder: str
    branch: str | None
    """The branch of the folder; None if its HEAD is detached: then the folder is deleted afterwards."""
    base: str
    line: str
    allowed: Allowed
    people: bool = False
    """True if the job's start includes commits that people made on the task's branch."""
    merged: tuple[str, ...] = ()
    """Legs whose work is on the line, in order."""
    given: tuple[str, ...] = ()
    """Branches of the job's dependencies that were merged into its folder."""
    left_out: tuple[LeftOut, ...] = ()
    merging: tuple[LeftOut, ...] = ()
    """Work whose merge was begun in the folder and is for the job to resolve (ruling O6)."""
    at_base: bool = False
    """True if the job begins from the base on purpose, without the line's work."""
    target: str = ""
    """Git name of the base branch of the tree's pull request; empty without one, or if it is unknown."""
    references: tuple[str, ...] = ()
    """Local branches that name commits for the job: `base`, `line`, `leg/<id>`."""

    def git_name(self, reference: str, commit: str) -> str:
        """Return a name of the commit for git commands: the reference if the job's repository has it, otherwise the
        short hash.
        """
        return reference if reference in self.references else commit[:HASH]


def render_surroundings(surroundings: Surroundings) -> str:
    """Return the section on the job's folder and permissions: five lines, and one for each branch left out."""
    where = [_folder(surroundings), _commits(surroundings), _references(surroundings)]
    return "\n".join(
        [
            "# Where you are",
            "",
            *where,
            _permissions(surroundings.allowed, stays=surroundings.branch is not None),
            _tools(surroundings.allowed),
        ]
    )


def _folder(surroundings: Surroundings) -> str:
    on = (
        f"on the branch {inline(surroundings.branch)}, which stays"
        if surroundings.branch
        else "on no branch (detached), for this job alone"
    )
    return f"- Repository {inline(surroundings.repo)}, working folder {inline(surroundings.folder)}, {on}."


def _commits(surroundings: Surroundings) -> str:
    base, line = f"`{surroundings.base[:HASH]}`", f"`{surroundings.line[:HASH]}`"
    works = (["what people put on the task's branch"] if surroundings.people else []) + (
        [f"the work of {_names(surroundings.merged)}, merged in this order"] if surroundings.merged else []
    )
    made = f"its base, commit {base}, with {' and '.join(works) or 'the work so far'}"
    if any(each.branch == LINE for each in surroundings.left_out):
        sentence = f"- You begin from what your branch has; the line is not merged into it: commit {line}, {made}."
    elif surroundings.at_base:
        sentence = f"- You begin from the task's base, commit {base}, on purpose: the work of other jobs is not here."
    elif surroundings.base == surroundings.line:
        sentence = f"- You begin from the task's base, commit {base}; no other job's work is merged yet."
    else:
        sentence = f"- You begin from the task's line, commit {line}: {made}."
    if surroundings.given:
        sentence += f" Merged on top of it for you: {_names(surroundings.given)}."
    return "\n".join([sentence, *map(_merging, surroundings.merging), *map(_left_out, surroundings.left_out)])


def _merging(leg: LeftOut) -> str:
    against = f" with {_names(leg.against)}" if leg.against else ""
    return (
        f"  - The merge of {inline(leg.branch)} is begun in your folder. It conflicts{against} in {_names(leg.files)}:"
        " what you began from stands at `<<<<<<<`, the merged work at `>>>>>>>`. Edit the files until both are kept and"
        " no marker is left. The service commits the merge when you end; with a marker left, your job fails. A test"
        " that fails for another reason is no failure of yours: name it in `summary`."
    )


def _left_out(leg: LeftOut) -> str:
    against = f" with {_names(leg.against)}" if leg.against else ""
    files = f" in {_names(leg.files)}" if leg.files else ""
    who = f"leg {inline(leg.leg)}" if leg.leg else "your own work"
    if leg.leg:
        how = f'an implement leg with `"worktree": "{MERGE}{leg.leg}"`, whose task is to resolve what conflicts, and to'
        how += " run the tests. The service begins the merge for it, and commits it."
    else:
        how = f"an implement leg that may write `.git`, whose task is {inline(f'git merge {leg.branch}')}."
    return f"  - Not on the line: {who}, because it conflicts{against}{files}. To bring it there: {how}"


def _references(surroundings: Surroundings) -> str:
    listed = ", ".join(map(_reference, surroundings.references[:MOST_NAMES]))
    names = f"Local branches: {listed}. " if listed else ""
    since = inline(f"git diff {surroundings.git_name(BASE, surroundings.base)}...HEAD")
    return f"- {names}{since} shows what was done since the task began."


def _reference(name: str) -> str:
    meaning = {BASE: " (where the task began)", LINE: " (with the work merged since)"}
    return f"{inline(name)}{meaning.get(name, '')}"


def _permissions(allowed: Allowed, *, stays: bool) -> str:
    parts = [
        _writing(allowed, stays=stays),
        *((f"you may write in {_names(allowed.write)}",) if allowed.write else ()),
        allowed.temporary,
        "commands run, builds and tests too"
        if allowed.commands
        else "commands that write are refused: no builds, no tests",
        "`.git` may be written: commit, merge" if allowed.commits else "`.git` can't be written: no commits, no merges",
        allowed.network,
        f"time limit {format_duration(allowed.seconds)}" if allowed.seconds else "no time limit of your own",
        *((f"memory {allowed.memory // _MIB:,} MiB",) if allowed.memory else ()),
    ]
    return f"- What you may do: {'; '.join(parts)}."


def _writing(allowed: Allowed, *, stays: bool) -> str:
    """Return what the job may write in its folder. If the folder is deleted afterwards, agents are told to change
    nothing.
    """
    if allowed.edits and stays:
        return "you may change your working folder"
    if allowed.edits and allowed.commands:
        return "builds and tests may write in your working folder"
    return "your working folder is for reading only"


def _tools(allowed: Allowed) -> str:
    listed = f", except for what is in {_names(allowed.read)}" if allowed.read else ""
    return (
        "- The machine's tools are in PATH. The project's dependencies are not installed, unless they are part of the"
        f" repository{listed}. How it is built and tested stands in files such as AGENTS.md, CONTRIBUTING.md, README.md"
        " and those of its CI."
    )


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(_spans(names[:MOST_NAMES])) + more


def _spans(names: Iterable[str]) -> Iterable[str]:
    return map(inline, names)
