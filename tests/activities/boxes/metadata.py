"""Programs that change the metadata of their own files, as work in a box does."""

METADATA_WORKS = """
import errno, stat, threading

def fails(number, what, *arguments, **named):
    try: what(*arguments, **named)
    except OSError as error: assert error.errno == number, error
    else: raise AssertionError(what)

def mode(path="f"): return stat.S_IMODE(os.lstat(path).st_mode)
def times(path="f"): return os.lstat(path).st_atime_ns, os.lstat(path).st_mtime_ns

os.mkdir("d"); open("f", "w").close(); open("d/g", "w").close(); os.symlink("f", "l"); os.symlink("f", "d/up")
here, one = os.open("d", os.O_RDONLY), os.open("f", os.O_RDONLY)
os.chmod("f", 0o640); assert mode() == 0o640
os.chmod("l", 0o641); assert mode() == 0o641
os.fchmod(one, 0o642); assert mode() == 0o642
os.chmod("g", 0o600, dir_fd=here); assert mode("d/g") == 0o600
os.chmod("../f", 0o643, dir_fd=here); assert mode() == 0o643
os.chmod(os.getcwd() + "/f", 0o644); assert mode() == 0o644
os.chmod(f"/proc/self/fd/{one}", 0o645); assert mode() == 0o645
os.chmod(".", 0o755); os.chmod("d", 0o1777); assert mode("d") == 0o1777
os.chown("f", os.getuid(), -1); os.lchown("l", -1, os.getgid()); os.fchown(one, -1, -1)
os.chown("g", os.getuid(), os.getgid(), dir_fd=here)
os.utime("f", ns=(5, 7)); assert times() == (5, 7)
os.utime("l", ns=(8, 9), follow_symlinks=False); assert times("l")[1] == 9 and times() == (5, 7)
os.utime(one, ns=(1, 2)); assert times() == (1, 2)
os.utime("f"); assert times() > (2, 2)
call((280, 88), -100, b"f", struct.pack("4q", 3, 4, 0, 2**30 - 2), 0); assert times()[0] == 3 * 10**9 + 4
if os.uname().machine == "x86_64":
    libc.syscall(132, b"f", struct.pack("2q", 1, 2)); assert times() == (10**9, 2 * 10**9)
    libc.syscall(235, b"f", struct.pack("4q", 1, 2, 3, 4)); assert times() == (10**9 + 2000, 3 * 10**9 + 4000)
    libc.syscall(261, here, b"g", struct.pack("4q", 1, 2, 3, 4)); assert times("d/g")[1] == 3 * 10**9 + 4000
try: os.setxattr("f", "user.x", b"1")
except OSError as error: assert error.errno == errno.ENOTSUP
else:
    os.setxattr(one, "user.y", b"2"); assert os.getxattr("f", "user.y") == b"2"
    os.removexattr("f", "user.x"); os.removexattr(one, "user.y"); assert not os.listxattr("f")
os.truncate("f", 9); assert os.stat("f").st_size == 9
fails(errno.EINVAL, os.truncate, "f", -1); fails(errno.EISDIR, os.truncate, "d", 0)
fails(errno.ENOTSUP, os.setxattr, "f", "security.x", b"1")
fails(errno.ENOENT, os.chmod, "none", 0)
fails(errno.EBADF, os.fchmod, 77, 0)
fails(errno.ENOTDIR, os.chmod, "f/x", 0)
fails(errno.ENAMETOOLONG, os.chmod, "x" * 5000, 0)
for number in ((268, 53), (280, 88), (260, 54)):
    fails(errno.EFAULT, call, number, -100, ctypes.c_void_p(-4096), 0, 0, 0)
fails(errno.EPERM, os.chmod, "/", 0o755)
fails(errno.EPERM, os.chmod, "..", 0o755)
os.symlink("circle", "circle"); fails(errno.ELOOP, os.chmod, "circle", 0)
os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0))
fails(errno.EPERM, os.sched_setaffinity, os.getppid(), {0})
failed = []
def change(name):
    open(name, "w").close()
    for mode_of in range(0o700, 0o710):
        os.chmod(name, mode_of)
        if mode(name) != mode_of: failed.append(name)
threads = [threading.Thread(target=change, args=(f"t{number}",)) for number in range(16)]
for each in threads: each.start()
for each in threads: each.join()
assert not failed
def flood():
    while True: os.chmod("f", 0o600)
for _ in range(20):
    if (pid := os.fork()) == 0: flood()
    time.sleep(0.01); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
os.chmod("f", 0o604); assert mode() == 0o604
print("done")
"""

PROGRAMS = {
    "tar": """
mkdir a; echo x > a/b; chmod 751 a/b; touch -d 2001-01-01 a/b; tar cpf t a; rm -r a; tar xpf t
stat -c %a a/b | grep 751; find a ! -newermt 2001-01-02 | grep b
""",
    "cp": """
mkdir a; echo x > a/b; ln -s b a/c; chmod 640 a/b; touch -d 2001-01-01 a/b; cp -a a d
stat -c %a d/b | grep 640; find d ! -newermt 2001-01-02 | grep b; cp -p a/b e; install -m 755 a/b f; mv a/b g
""",
    "git": """
export GIT_CONFIG_GLOBAL=/dev/null; git init -q r; cd r; git config user.name a; git config user.email a@b
echo '#!/bin/sh' > x; chmod +x x; git add .; git commit -qm one; git clone -q . ../s; test -x ../s/x; git gc -q
""",
}

LONG_PROGRAMS = {
    "pip": """
mkdir p; cd p; printf '[project]\\nname = "p"\\nversion = "1"\\n[project.scripts]\\np = "p:main"\\n' > pyproject.toml
printf 'def main(): print("up")\\n' > p.py; mkdir p-1.dist-info
printf 'Metadata-Version: 2.1\\nName: p\\nVersion: 1\\n' > p-1.dist-info/METADATA
printf 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > p-1.dist-info/WHEEL
printf '[console_scripts]\\np = p:main\\n' > p-1.dist-info/entry_points.txt
printf 'p.py,,\\np-1.dist-info/METADATA,,\\np-1.dist-info/WHEEL,,\\np-1.dist-info/RECORD,,\\n' > p-1.dist-info/RECORD
python3 -m zipfile -c p-1-py3-none-any.whl p.py p-1.dist-info
python3 -m venv ../v; ../v/bin/pip install --no-index ./p-1-py3-none-any.whl; ../v/bin/p | grep up
""",
    "npm": """
mkdir m; cd m; printf '{"name": "m", "version": "1.0.0", "bin": {"m": "m.js"}}' > package.json
printf '#!/usr/bin/env node\\nconsole.log("up")\\n' > m.js; npm pack --cache ../c
mkdir ../n; cd ../n; echo '{}' > package.json
npm install --offline --cache ../c ../m/m-1.0.0.tgz; node_modules/.bin/m | grep up
""",
}
