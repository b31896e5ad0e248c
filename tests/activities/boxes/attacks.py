"""What a hostile program tries. Each is Python that prints `got`, or leaves a file `planted`, when it worked; `world`
tells it where things are.

All of them work without a box: that is tested too, so that none is harmless by mistake.
"""

PREAMBLE = """
import ctypes, glob, json, os, signal, socket, struct, sys, time
world = json.loads(os.environ["WORLD"])
libc = ctypes.CDLL(None, use_errno=True)
def got(): print("got", flush=True)
"""

READ = "open({path}).read(); got()"
WRITE = "open({path} + '/planted', 'w').write('x')"

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
    "use the keys of the service": """
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

LEFT_BY_LANDLOCK = "speak to a socket in the file system"
"""Landlock does not prevent it where the account may use the socket. Only root can hide sockets from its agents."""
