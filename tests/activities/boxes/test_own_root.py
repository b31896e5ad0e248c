"""A box looks equal to the programs in it whoever makes it: the service as root, or bubblewrap (ruling N2)."""

import os
from pathlib import Path

import pytest

from activities.boxes import kernel, own_root
from activities.boxes.box import Box, BoxKind, Network
from activities.boxes.enter import described
from activities.boxes.own_root import DEVICES, ROOT
from activities.boxes.try_boxes import look
from activities.runs.supervised_run import RunEnd
from activities.runs.supervisor import EndKind
from tests.activities.boxes.world import UID, World, needs_bubblewrap, why_not

pytestmark = pytest.mark.ruling("N2")

LOOK = """
import glob, json, os, stat
def kept(path):
    found = os.lstat(path)
    return [path, stat.S_IFMT(found.st_mode), os.readlink(path) if stat.S_ISLNK(found.st_mode) else found.st_rdev]
mounts = [line.split() for line in open("/proc/self/mountinfo")]
print(json.dumps({
    "root": [kept(path) for path in sorted(glob.glob("/*"))],
    "dev": [kept(path) for path in sorted(glob.glob("/dev/*"))],
    "read-only": sorted(words[4] for words in mounts if "ro" in words[5].split(",")),
    "in memory": sorted({words[4] for words in mounts if words[words.index("-") + 1] == "tmpfs"} - {"/", "/dev"}),
    "with devices": sorted(words[4] for words in mounts if "nodev" not in words[5].split(",")
                           and not words[4].startswith("/dev")),
    "set-uid": sorted(words[4] for words in mounts if "nosuid" not in words[5].split(",")),
}))
"""
TRIED = """
import os, pty, sys
open("/dev/null", "w").write("x")
assert open("/dev/zero", "rb").read(3) == bytes(3) and len(open("/dev/urandom", "rb").read(3)) == 3
for folder in ("/dev/shm", "/tmp", "/var/tmp", "/run", os.environ["TMPDIR"], os.path.expanduser("~")):
    open(folder + "/new", "w").write("x")
    os.mkdir(folder + "/folder")
ours, theirs = pty.openpty()
os.write(theirs, b"hello")
assert os.read(ours, 5) == b"hello" and os.ttyname(theirs).startswith("/dev/pts/")
for path in ("/new", "/usr/new", "/etc/new", "/dev/null/new"):
    try: open(path, "w")
    except OSError: pass
    else: print(path)
print("all of it")
"""


@pytest.fixture
def world(world: World) -> World:
    """Skip unless this machine has both ways."""
    if why := why_not(BoxKind.BWRAP):
        pytest.skip(why)
    if not look(UID).own_root:
        pytest.skip("only root lays out a root, on Linux 5.12 or newer")
    return world


def box_of(world: World, *, by_us: bool, **changes: object) -> Box:
    """Build a box that is made by the service (`by_us`) or by bubblewrap."""
    if not by_us:
        needs_bubblewrap()
    box = world.box(BoxKind.BWRAP, Network.NONE, own_root=by_us, **changes)
    assert bool(described(box, ("true",)).get("own_root")) is by_us
    return box


async def played(world: World, box: Box, script: str) -> str:
    end = await world.play(box, script, env={"PATH": "/usr/bin:/bin", "HOME": str(box.home), "TMPDIR": "/tmp/own"})
    assert end.exit_code == 0, end.error + end.stderr.read_text()
    return end.stdout.read_text()


async def test_both_ways_show_the_same_root(world: World) -> None:
    seen = [await played(world, box_of(world, by_us=by_us), LOOK) for by_us in (True, False)]
    assert seen[0] == seen[1]
    assert '"set-uid": []' in seen[0]
    assert f'"{world.tmp / "lent"}"' in seen[0].partition('"read-only"')[2].partition("]")[0]


@pytest.mark.parametrize("by_us", [True, False])
async def test_devices_terminals_and_folders_in_memory_can_be_used(world: World, by_us: bool) -> None:
    assert await played(world, box_of(world, by_us=by_us), TRIED) == "all of it\n"


@pytest.mark.parametrize("by_us", [True, False])
async def test_parents_of_a_path_in_the_home_folder_are_writable_scratch(world: World, by_us: bool) -> None:
    cache = world.tmp / "user/.cache/tool"
    cache.mkdir(parents=True)
    box = box_of(world, by_us=by_us, write=(cache,))
    beside = "import os; p = os.path.expanduser('~/.cache'); open(p + '/beside', 'w'); open(p + '/tool/kept', 'w')"
    await played(world, box, beside)
    assert (cache / "kept").exists()
    assert not (cache.parent / "beside").exists()


def test_a_container_s_root_that_may_make_no_device_lends_the_machine_s(world: World) -> None:
    box = box_of(world, by_us=True)
    root, real = own_root.planned(box), os.mknod
    assert root

    def refusing(path: str, mode: int, device: int = 0) -> None:
        if device:
            raise PermissionError(path)
        real(path, mode)

    pid = kernel.fork_as_first()
    if pid == 0:
        status = 1
        try:
            os.mknod = refusing  # type: ignore[assignment]
            root.lay()
            for name, number in DEVICES.items():
                assert os.stat(f"/dev/{name}").st_rdev == os.makedev(*number)
            with open("/dev/null", "w") as null:
                null.write("x")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


class TestBubblewrapDoesItItself:
    """Cases where root would have to follow a path that an agent may have changed."""

    def way(self, world: World, **changes: object) -> str:
        box = world.box(BoxKind.BWRAP, Network.NONE, **changes)
        told = described(box, ("true",))
        return next(name for name in ("own_root", "layout") if told[name])

    def test_a_place_in_another(self, world: World) -> None:
        (inner := world.tmp / "lent/inner").mkdir()
        assert self.way(world, read=(world.tmp / "lent",)) == "own_root"
        assert self.way(world, read=(world.tmp / "lent",), write=(inner,)) == "layout"

    def test_a_place_in_a_folder_that_agents_may_change(self, world: World) -> None:
        (world.tmp / "theirs/inner").mkdir(parents=True)
        assert self.way(world, read=(world.tmp / "theirs/inner",)) == "own_root"
        os.chown(world.tmp / "theirs", UID, UID)
        assert self.way(world, read=(world.tmp / "theirs/inner",)) == "layout"
        (world.tmp / "link").symlink_to("theirs/inner")
        assert self.way(world, read=(world.tmp / "link",)) == "layout"

    def test_the_folder_where_it_is_laid(self, world: World) -> None:
        assert self.way(world, read=(Path(ROOT),)) == "layout"
        assert self.way(world, home=Path("/")) == "layout"


@pytest.mark.parametrize("nested", [True, False])
async def test_a_link_that_an_agent_made_leads_to_nothing_that_it_may_not_see(world: World, nested: bool) -> None:
    """The link is below a private folder, so root opens the lent path."""
    needs_bubblewrap()
    shared = world.tmp / "user/shared"
    shared.mkdir()
    world.tmp.chmod(0o700)
    (world.tmp / "user/.ssh/id_ed25519").chmod(0o644)
    os.chown(shared, UID, UID)
    (shared / "lent").symlink_to(world.tmp / "user/.ssh")
    box = world.box(BoxKind.BWRAP, Network.NONE, read=(shared / "lent",), write=(shared,) if nested else ())
    end: RunEnd = await world.play(box, f"cat {shared}/lent/id_ed25519", shell=True)
    assert end.kind is EndKind.NOT_STARTED
    assert f"{shared}/lent leads elsewhere by a link" in end.error
    (shared / "lent").unlink()
    (shared / "lent").mkdir()
    again = await world.play(box, "echo up", shell=True)
    assert again.exit_code == 0, again.error + again.stderr.read_text()
