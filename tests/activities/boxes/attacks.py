"""Attacks of a hostile program. Each is Python that prints `got`, or leaves a file `planted`, if it worked; `world` has
the targets.

All of them work without a box: that is tested too, so that none is harmless by mistake.
"""

from collections.abc import Collection, Iterable

from activities.boxes.box import Network

PREAMBLE = """
import ctypes, fcntl, glob, json, mmap, os, resource, signal, socket, struct, sys, time
world = json.loads(os.environ["WORLD"])
libc = ctypes.CDLL(None, use_errno=True)
def got(): print("got", flush=True)
def call(names, *arguments):
    "A system call by its numbers on x86_64 and aarch64."
    number = dict(zip(("x86_64", "aarch64"), names))[os.uname().machine]
    result = libc.syscall(number, *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
key, token = world["user"] + "/.ssh/id_ed25519", world["home"] + "/bridge.token"
"""

READ = "open({path}).read(); got()"
WRITE = "open({path} + '/planted', 'w').write('x')"

KEYS = "use the keys of the service"
RACE = "change a mode through a link that is exchanged meanwhile"

ATTACKS = {
    "read the bridge's token": READ.format(path="world['home'] + '/bridge.token'"),
    "read the store": READ.format(path="world['home'] + '/store.db'"),
    "read a key of ssh": READ.format(path="world['user'] + '/.ssh/id_ed25519'"),
    "read another job's work": READ.format(path="world['other'] + '/work.txt'"),
    "read the run's own folder": READ.format(path="world['run_dir'] + '/spec.json'"),
    "write another job's work": WRITE.format(path="world['other']"),
    "write the operator's checkout": WRITE.format(path="world['checkout']"),
    "write the service's home": WRITE.format(path="world['home']"),
    "write what is only lent": WRITE.format(path="world['lent']"),
    "write beside everything": WRITE.format(path="world['user']"),
    "make what is lent writable again": """
libc.unshare(0x10000000 | 0x20000)
for flags in (0x20 | 0x1000, 0x20):
    libc.mount(b"none", world["lent"].encode(), None, ctypes.c_ulong(flags), None)
open(world["lent"] + "/planted", "w").write("x")
""",
    "reach the root of process 1": """
for pid in (1, os.getppid()):
    try:
        open(f"/proc/{pid}/root{world['home']}/bridge.token").read(); got()
    except OSError: pass
""",
    "read the environment of the worker": """
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"sesame" in open(path, "rb").read(): got()
    except OSError: pass
""",
    "read the memory of the worker": """
if libc.ptrace(16, world["worker"], None, None) == 0:
    got(); libc.ptrace(17, world["worker"], None, None)
""",
    "signal the worker": "os.kill(world['worker'], signal.SIGCONT); got()",
    "speak to a socket in the file system": "socket.socket(socket.AF_UNIX).connect(world['socket']); got()",
    "speak to an abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0' + world['abstract']); got()",
    "speak to a service on loopback": "socket.create_connection(('127.0.0.1', world['port']), 5); got()",
    "send packets to loopback": """
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.settimeout(3)
one.sendto(b"x", ("127.0.0.1", world["udp"])); one.recv(10); got()
""",
    "read shared memory of other programs": "open(world['shm']).read(); got()",
    "attach System V shared memory": "assert libc.shmget(world['key'], 16, 0) >= 0; got()",
    KEYS: """
number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
assert libc.syscall(number, 10, -3, b"user", b"boxes-test", 0) >= 0  # a search of the session's keyring
got()
""",
    "use a descriptor that was left open": """
if any(int(each) > 2 and "proc" not in os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")
       if os.path.lexists(f"/proc/self/fd/{each}")): got()
""",
    "change a control group": """
found = [path for path in glob.glob("/sys/fs/cgroup/*/cgroup.procs") + glob.glob("/sys/fs/cgroup/cgroup.procs")]
open(found[0], "w").close(); got()
""",
}

METADATA = {
    "open the service's home to everybody": "os.stat(token); os.chmod(world['home'], 0o777); got()",
    "open a key to everybody": "os.chmod(key, 0o666); got()",
    "change a mode by a folder's descriptor": """
os.chmod("id_ed25519", 0o666, dir_fd=os.open(world["user"] + "/.ssh", os.O_PATH)); got()
""",
    "change a mode through a link": "os.symlink(key, 'link'); os.chmod('link', 0o666); got()",
    RACE: """
open("mine", "w").close(); os.symlink(key, "theirs")
if os.fork() == 0:
    end = time.monotonic() + 1
    while time.monotonic() < end: libc.renameat2(-100, b"mine", -100, b"theirs", 2)
    os._exit(0)
before, end = os.stat(key).st_mode, time.monotonic() + 1
while time.monotonic() < end and os.stat(key).st_mode == before:
    try: os.chmod("mine", 0o606)
    except OSError: pass
if os.stat(key).st_mode != before: got()
""",
    "change a mode through a hard link": "os.link(key, 'hard'); os.chmod('hard', 0o666); got()",
    "change a mode from another root": """
uid, gid = os.getuid(), os.getgid()
libc.unshare(0x10000000)
os.chroot(world["user"]); os.chmod("/.ssh/id_ed25519", 0o666); got()
""",
    "change a mode through /proc": """
os.chmod("/proc/self/root" + key, 0o666); got()
""",
    "change the mode of what may only be read": """
os.fchmod(os.open(world["lent"] + "/object", os.O_RDONLY), 0o666); got()
""",
    "change the mode of a log of the run": "os.fchmod(2, 0o666); got()",
    "change the owner of a key": "os.chown(key, os.getuid(), os.getgid()); got()",
    "change the owner of what may only be read": """
os.fchown(os.open(world["lent"] + "/object", os.O_RDONLY), os.getuid(), os.getgid()); got()
""",
    "change the times of the store": "os.utime(world['home'] + '/store.db', (1, 1)); got()",
    "change the times of what may only be read": """
os.utime(os.open(world["lent"] + "/object", os.O_RDONLY), (1, 1)); got()
""",
    "give the token an attribute": "os.setxattr(token, 'user.x', b'1'); got()",
    "give what may only be read an attribute": """
os.setxattr(os.open(world["lent"] + "/object", os.O_RDONLY), "user.x", b"1"); got()
""",
    "empty a key": "os.truncate(key, 0); got()",
    "take an attribute from the token": "os.removexattr(token, 'user.kept'); got()",
    "set flags of what may only be read": """
one = os.open(world["lent"] + "/object", os.O_RDONLY)
flags = struct.unpack("i", fcntl.ioctl(one, 0x80086601, bytes(8))[:4])[0]
fcntl.ioctl(one, 0x40086602, struct.pack("q", flags ^ 0x40)); got()
""",
    "set flags of a key by path": "call((469, 469), -100, key.encode(), bytes(24), 24, 0); got()",
    "change a mode as a 32-bit program": """
code = mmap.mmap(-1, 4096, prot=7, flags=0x22 | 0x40)  # in the lower 4 GB, where such a program's memory is
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
code[128:128 + len(key) + 1] = key.encode() + bytes(1)
code[:18] = b"\\x53\\xbb" + struct.pack("I", at + 128) + b"\\xb9\\xb6\\x01\\0\\0\\x6a\\x0f\\x58\\xcd\\x80\\x5b\\xc3"
if ctypes.CFUNCTYPE(ctypes.c_int)(at)() == 0: got()
""",
    "make a program for others that runs as the service": """
open("mine", "w").write("#!/bin/sh"); os.chmod("mine", 0o4755); got()
""",
}
"""Changes of a file's metadata."""

KERNEL = {
    "queue calls past every filter": "call((425, 425), 8, bytes(120)); got()",
    "watch a folder by its file handles": "call((300, 262), 0x200, 0); got()",
    "open a file by its handle": """
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136); mount = ctypes.c_int()
call((303, 264), -100, key.encode(), handle, ctypes.byref(mount), 0)
os.read(call((304, 265), os.open(world["user"], os.O_RDONLY), handle, 0), 1); got()
""",
    "load a program into the kernel": "call((321, 280), 0, struct.pack('12I', 2, 4, 8, 1, *[0] * 8), 48); got()",
    "count events of the processor": """
call((298, 241), struct.pack("IIQ", 1, 128, 0) + bytes(112), 0, -1, -1, 0); got()
""",
    "handle page faults of the kernel": "call((323, 282), 0); got()",
    "write the memory of the worker": """
text = ctypes.create_string_buffer(b"x", 1)
here = struct.pack("QQ", ctypes.addressof(text), 1)
start = int(open(f"/proc/{world['worker']}/maps").readline().split("-")[0], 16)
there = next(line for line in open(f"/proc/{world['worker']}/maps") if "[heap]" in line or "rw-p" in line)
there = struct.pack("QQ", int(there.split("-")[0], 16), 0)
call((311, 271), world["worker"], here, 1, there, 1, 0); got()
""",
    "take a descriptor of the worker": "call((438, 438), call((434, 434), world['worker'], 0), 0, 0); got()",
    "compare with the worker": "call((312, 272), os.getpid(), world['worker'], 2, 0, 0); got()",
    "limit the worker": "resource.prlimit(world['worker'], resource.RLIMIT_CORE, (0, 0)); got()",
    "tie the worker to a processor": "os.sched_setaffinity(world['worker'], {0}); got()",
    "have the worker run last": "os.sched_setscheduler(world['worker'], os.SCHED_IDLE, os.sched_param(0)); got()",
    "slow the worker down": "os.setpriority(os.PRIO_PROCESS, world['worker'], 19); got()",
    "let the worker's disk wait": "call((251, 30), 1, world['worker'], 3 << 13); got()",
}
"""System calls that no box needs, and attacks on other processes of the account."""

FAMILIES = {
    "speak to the machine's host": "socket.socket(socket.AF_VSOCK); got()",
    "speak to network devices": "socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM); got()",
    "hear of devices": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15); got()",
}

BESIDE_TCP = {
    "send packets to loopback": ATTACKS["send packets to loopback"],
    "speak to a service by another protocol": """
one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)  # multipath TCP, which falls back to TCP
one.connect(("127.0.0.1", world["port"])); got()
""",
}
"""Access to loopback by other protocols than plain TCP."""

ATTACKS |= METADATA | KERNEL | FAMILIES | BESIDE_TCP

NOT_EVERYWHERE = {
    *("set flags of a key by path", "set flags of what may only be read", "change a mode as a 32-bit program"),
    *("give the token an attribute", "give what may only be read an attribute", "take an attribute from the token"),
    *FAMILIES,
    *BESIDE_TCP,
}
"""Attacks that need something missing on some kernels, machines or file systems."""

LEFT = "change the mode of a log of the run"
"""A service that is not root hands its program a log of its own account. All folders around it are private."""

EACH_IN_TURN = """
above = os.getppid()
os.getppid = lambda: above  # an attack on the parent is meant for the one of the whole program
def planted():
    "Return whether this attack left its file. A box may let it write to a folder that ends with the box."
    for place in ("other", "checkout", "home", "lent", "user"):
        try: os.unlink(world[place] + "/planted")
        except OSError: continue
        return True
for name, script in {attacks!r}.items():
    pid, end = os.fork(), time.monotonic() + 20
    if pid == 0:
        try:
            def got(): print("worked:", name, flush=True)
            exec(script)
        finally: os._exit(0)
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > end: os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    if not {boxed} and planted(): print("worked:", name, flush=True)
print("all were tried", flush=True)
"""


def all_of(names: Iterable[str], *, boxed: bool = True) -> str:
    """Build a program that makes these attacks in turn, and prints those that worked."""
    return PREAMBLE + EACH_IN_TURN.format(attacks={name: ATTACKS[name] for name in names}, boxed=boxed)


def for_network(network: Network, without: Collection[str]) -> list[str]:
    """Return all attacks but these; the race, which takes two processors for a second, once: without a network."""
    left_out = {*without} if network is Network.NONE else {RACE, *without}
    return [name for name in ATTACKS if name not in left_out]


def that_worked(printed: str) -> set[str]:
    assert "all were tried" in printed
    return {line.partition(": ")[2] for line in printed.splitlines() if line.startswith("worked: ")}


def left(network: Network, *, same_account: bool) -> tuple[set[str], set[str]]:
    """Return the attacks that a box is known to allow, and those that it may allow on some machines."""
    known = {LEFT} if same_account else set()
    if network is not Network.FULL:
        return known, set()
    return known | {"speak to a service on loopback"}, {*FAMILIES, *BESIDE_TCP}
