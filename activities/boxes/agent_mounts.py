"""Mounts that let the account of agents reach its folders, for a service that runs as root.

Folders such as /root are private, so the account could not reach its work folder below them. In the run's own mount
namespace, an empty folder covers each private folder, and only the box's paths are mounted there again.
"""

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from activities.boxes import bwrap, kernel
from activities.boxes.box import Box
from activities.boxes.ownership import require, ways

UNUSED = "/sys"
"""No box has /sys. Bubblewrap reads the list of all mounts for each mount it makes, and most of a machine's mounts are
below /sys: without them it starts sooner.
"""


@dataclass(frozen=True)
class Layout:
    """The mounts of a box. They are planned before the mounting process starts, so that it has little left to do."""

    covers: Sequence[str]
    """Folders to cover with an empty one."""
    places: Mapping[str, bool]
    """Paths to mount again over the covers; the value says if it is a folder."""
    without: Sequence[str] = ()
    """The machine's mounts that the box does not need."""
    unfirm: Mapping[str, str] = field(default_factory=dict)
    """Paths on which agents may have put a link; the value is the real path if they have not."""

    def lay(self) -> None:
        """Cover private folders, and mount the box's paths over the covers."""
        kernel.own_mounts()
        for path in self.without:
            with contextlib.suppress(OSError):  # not a mount on this machine
                kernel.detach(path)
        held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in self.places}
        for path, end in self.unfirm.items():
            require(held[path], end)
        for cover in self.covers:
            kernel.mount("tmpfs", cover, "tmpfs", kernel.PLAIN, "mode=755")
        for path, descriptor in held.items():
            _make_place(path, is_folder=self.places[path])
            kernel.mount(f"/proc/self/fd/{descriptor}", path, None, kernel.MS_BIND | kernel.MS_REC)
            os.close(descriptor)


def plan(box: Box) -> Layout:
    """Plan the mounts for a box."""
    needed = [*map(str, box.places), *([str(box.etc)] if box.etc else []), *bwrap.parts(box.program)]
    mode = functools.cache(lambda path: os.stat(path).st_mode)  # cached: most paths share their parent folders
    covers = _outermost({*filter(None, (_barrier(path, mode) for path in needed))})
    below = [path for path in needed if any(_is_below(path, each) for each in covers)]
    places = {path: stat.S_ISDIR(mode(path)) for path in below}
    unused = () if any(_is_below(path, UNUSED) for path in needed) else (UNUSED,)
    known = {} if box.uid is None else dict(zip(below, map(ways(box.uid), below), strict=True))
    unfirm = {path: way.end for path, way in known.items() if not way.firm}
    return Layout(covers, places, unused, unfirm)


def _barrier(path: str, mode: Callable[[str], int]) -> str | None:
    """Find the outermost folder on the path that not everybody may enter."""
    return next((each for each in _around(path) if not mode(each) & stat.S_IXOTH), None)


def _around(path: str) -> Iterator[str]:
    """Yield the path's parent folders, outermost first."""
    end = 0
    while (end := path.find("/", end)) >= 0:
        yield path[:end] or "/"
        end += 1


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Drop the paths inside another one."""
    known = sorted(paths)
    return tuple(path for path in known if not any(path != other and _is_below(path, other) for other in known))


def _make_place(path: str, *, is_folder: bool) -> None:
    """Create a mount point, unless an outer mount already has it."""
    try:
        if is_folder:
            os.mkdir(path, 0o755)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    except FileExistsError:
        return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        _make_place(path, is_folder=is_folder)
