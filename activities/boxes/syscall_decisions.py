"""Decide filtered system calls of a box from outside, by the file or process they refer to (seccomp_unotify(2)).

Landlock does not mediate changes of metadata (modes, owners, times, attributes). So a program of a Landlock box waits
in such a call while a thread of the run's supervisor opens the file on its behalf. The thread checks that this very
descriptor lies in a place that the box may write, and makes the change itself. Where a path led before or after does
not count, and no call is ever let through: the answer is the result. A thread and not a child process: the kernel's
Yama lets only ancestors read a program's memory, where the path is.
"""

import _thread  # as in `proxy`
import contextlib
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from activities.boxes import kernel, seccomp

RECEIVE, ANSWER, IS_VALID = 0xC0502100, 0xC0182101, 0x80082102
REQUEST, RESPONSE = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
OPENAT2, HOW = 437, struct.Struct("=3Q")
BENEATH, NO_SYMLINKS, NO_MAGICLINKS = 8, 4, 2
AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = kernel.AT_FDCWD, 0x100, 0x1000
PATH_BYTES, NAME_BYTES, VALUE_BYTES, MASK_BYTES = 4096, 256, 65_536, 8192
"""The longest path, and name and value of an attribute, that the kernel takes; the CPU mask of the largest machine."""

MICROSECONDS = 1_000_000
OWN_PROC = (b"/proc/self/", b"/proc/thread-self/")
MOST_DESCRIPTORS = 253
"""The most descriptors that the kernel passes in one message."""


class Caller:
    """A thread of the box that waits in a call. Its memory is opened once: a pid may soon be another process's."""

    def __init__(self, pid: int, arguments: Sequence[int], stack: contextlib.ExitStack) -> None:
        self.proc = f"/proc/{pid}"
        self.arguments = arguments
        self._stack = stack
        self._memory = self.opened(f"{self.proc}/mem", os.O_RDONLY)

    def opened(self, path: str | bytes, flags: int, folder: int | None = None) -> int:
        """Open a file; it is closed when the call is answered."""
        return self.kept(os.open(path, flags | os.O_CLOEXEC, dir_fd=folder))

    def kept(self, descriptor: int) -> int:
        """Close the descriptor when the call is answered."""
        self._stack.callback(os.close, descriptor)
        return descriptor

    def read(self, address: int, size: int, *, whole: bool = True) -> bytes:
        """Read bytes of the thread's memory."""
        try:
            found = os.pread(self._memory, size, address)
        except (OSError, OverflowError):
            found = b""
        if len(found) < size and (whole or not found):
            raise _error(errno.EFAULT)
        return found

    def text(self, address: int, size: int, too_long: int) -> bytes:
        """Read a C string of fewer than `size` bytes from the thread's memory."""
        found, end, _ = self.read(address, size, whole=False).partition(b"\0")
        if not end:
            raise _error(too_long if len(found) == size else errno.EFAULT)
        return found

    def target(self, form: "Form", root: os.stat_result) -> int:
        """Open the file that a call leads to. `root`: the root folder of this thread."""
        folder = AT_FDCWD if form.folder is None else ctypes.c_int(self.arguments[form.folder]).value
        flags = 0 if form.flags is None else self.arguments[form.flags]
        if flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH):
            raise _error(errno.EINVAL)
        path = None
        if form.path is not None and (self.arguments[form.path] or form.folder is None):
            path = self.text(self.arguments[form.path], PATH_BYTES, errno.ENAMETOOLONG)
        start = f"{self.proc}/cwd" if folder == AT_FDCWD else f"{self.proc}/fd/{folder}"
        if path is None or (not path and flags & AT_EMPTY_PATH):
            return self._descriptor(start)
        if not os.path.samestat(os.stat(f"{self.proc}/root"), root):
            raise _error(errno.EPERM)  # under another root the path names another file
        for prefix in OWN_PROC:
            path = self.proc.encode() + b"/" + path.removeprefix(prefix) if path.startswith(prefix) else path
        follows = form.follows and not flags & AT_SYMLINK_NOFOLLOW
        how = os.O_PATH if follows else os.O_PATH | os.O_NOFOLLOW
        return self.opened(path, how, None if path.startswith(b"/") else self._descriptor(start))

    def _descriptor(self, start: str) -> int:
        try:
            return self.opened(start, os.O_PATH)
        except FileNotFoundError:
            raise _error(errno.EBADF) from None


@dataclass(frozen=True)
class Form:
    """The arguments of a call: which ones hold the folder, the path, the flags, and the first of the change's own."""

    change: Callable[[Caller, str, Sequence[int]], None]
    """Makes the change on a path that leads to the file, with the call's further arguments."""
    first: int
    path: int | None = None
    folder: int | None = None
    """The argument with a file descriptor: of the file itself, if there is no path."""
    flags: int | None = None
    follows: bool = True


def _chmod(_: Caller, file: str, arguments: Sequence[int]) -> None:
    os.chmod(file, stat.S_IMODE(arguments[0]))  # the filter refuses set-uid bits before this point


def _chown(_: Caller, file: str, arguments: Sequence[int]) -> None:
    os.chown(file, *(ctypes.c_int(each).value for each in arguments[:2]))


def _utime(caller: Caller, file: str, arguments: Sequence[int]) -> None:
    """Set times of whole seconds."""
    if not arguments[0]:
        return _set_times(file, None)
    accessed, modified = struct.unpack("2q", caller.read(arguments[0], 16))
    return _set_times(file, struct.pack("4q", accessed, 0, modified, 0))


def _utimes(caller: Caller, file: str, arguments: Sequence[int]) -> None:
    """Set times of seconds and microseconds."""
    if not arguments[0]:
        return _set_times(file, None)
    first, first_part, second, second_part = struct.unpack("4q", caller.read(arguments[0], 32))
    if not (0 <= first_part < MICROSECONDS and 0 <= second_part < MICROSECONDS):
        raise _error(errno.EINVAL)
    return _set_times(file, struct.pack("4q", first, 1000 * first_part, second, 1000 * second_part))


def _utimensat(caller: Caller, file: str, arguments: Sequence[int]) -> None:
    _set_times(file, caller.read(arguments[0], 32) if arguments[0] else None)


def _set_times(file: str, times: bytes | None) -> None:
    kernel.checked(kernel.libc().utimensat(AT_FDCWD, file.encode(), times, 0), "utimensat")


def _setxattr(caller: Caller, file: str, arguments: Sequence[int]) -> None:
    name, value, size, flags = arguments[:4]
    if size > VALUE_BYTES:
        raise _error(errno.E2BIG)
    os.setxattr(file, _attribute(caller, name), caller.read(value, size) if size else b"", flags & 0xFFFFFFFF)


def _removexattr(caller: Caller, file: str, arguments: Sequence[int]) -> None:
    os.removexattr(file, _attribute(caller, arguments[0]))


def _attribute(caller: Caller, address: int) -> bytes:
    """Read the name of an attribute. Only `user.` is allowed: other namespaces hold labels and capabilities."""
    name = caller.text(address, NAME_BYTES, errno.ERANGE)
    if not name.startswith(b"user."):
        raise _error(errno.ENOTSUP)
    return name


def _truncate(_: Caller, file: str, arguments: Sequence[int]) -> None:
    os.truncate(file, ctypes.c_long(arguments[0]).value)


FORMS = {
    "chmod": Form(_chmod, 1, path=0),
    "fchmod": Form(_chmod, 1, folder=0),
    "fchmodat": Form(_chmod, 2, path=1, folder=0),
    "chown": Form(_chown, 1, path=0),
    "lchown": Form(_chown, 1, path=0, follows=False),
    "fchown": Form(_chown, 1, folder=0),
    "fchownat": Form(_chown, 2, path=1, folder=0, flags=4),
    "utime": Form(_utime, 1, path=0),
    "utimes": Form(_utimes, 1, path=0),
    "futimesat": Form(_utimes, 2, path=1, folder=0),
    "utimensat": Form(_utimensat, 2, path=1, folder=0, flags=3),
    "setxattr": Form(_setxattr, 1, path=0),
    "lsetxattr": Form(_setxattr, 1, path=0, follows=False),
    "fsetxattr": Form(_setxattr, 1, folder=0),
    "removexattr": Form(_removexattr, 1, path=0),
    "lremovexattr": Form(_removexattr, 1, path=0, follows=False),
    "fremovexattr": Form(_removexattr, 1, folder=0),
    "truncate": Form(_truncate, 1, path=0),
}
BY_NUMBER = {seccomp.number(name): name for name in (*FORMS, *seccomp.DECIDED_BY_PROCESS)}


@dataclass(frozen=True)
class Decider:
    """The thread's loop that answers the calls of one run, one after the other."""

    listener: int
    places: Mapping[str, int]
    """Descriptor by path of each place that the box may write."""
    root: os.stat_result

    def serve(self) -> None:
        """Answer calls until no process with this filter is left."""
        poll = select.poll()
        poll.register(self.listener, select.POLLIN)
        while any(happened & select.POLLIN for _, happened in poll.poll()):
            with contextlib.suppress(OSError):  # the caller was killed or interrupted by a signal
                self._answer(REQUEST.unpack(fcntl.ioctl(self.listener, RECEIVE, bytes(REQUEST.size))))

    def _answer(self, request: Sequence[int]) -> None:
        identity, pid, _, number, _, _, *arguments = request
        failed = errno.EPERM
        try:
            with contextlib.ExitStack() as stack:
                self._make(identity, BY_NUMBER[number], Caller(pid, arguments, stack))
                failed = 0
        except OSError as error:
            failed = error.errno or errno.EPERM
        except (LookupError, ValueError, OverflowError, TypeError):
            failed = errno.EINVAL
        fcntl.ioctl(self.listener, ANSWER, RESPONSE.pack(identity, 0, -failed, 0))

    def _make(self, identity: int, call: str, caller: Caller) -> None:
        if call in seccomp.DECIDED_BY_PROCESS:
            self._require(identity)
            return _schedule(caller, call)
        form = FORMS[call]
        target = caller.target(form, self.root)
        self._require(identity)
        inside = self._inside(caller, target)
        return form.change(caller, f"/proc/self/fd/{inside}", caller.arguments[form.first :])

    def _require(self, identity: int) -> None:
        """Raise unless the caller still waits in its call: else the pid, and what was opened by it, may be another
        process's.
        """
        fcntl.ioctl(self.listener, IS_VALID, struct.pack("=Q", identity))

    def _inside(self, caller: Caller, target: int) -> int:
        """Reopen the file without following links, below a place that the box may write. Raise EPERM if it is in
        none.
        """
        wanted, name = os.fstat(target), os.readlink(f"/proc/self/fd/{target}")
        for around, place in self.places.items():
            if name == around and os.path.samestat(os.fstat(place), wanted):
                return place
            if name.startswith(f"{around}/"):
                inside = caller.kept(_open_beneath(place, os.fsencode(name[len(around) + 1 :])))
                if os.path.samestat(os.fstat(inside), wanted):
                    return inside
        raise _error(errno.EPERM)


def _open_beneath(place: int, path: bytes) -> int:
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    how = HOW.pack(flags, 0, BENEATH | NO_SYMLINKS | NO_MAGICLINKS)
    return kernel.checked(kernel.libc().syscall(OPENAT2, place, path, how, HOW.size), "openat2")


def _schedule(caller: Caller, call: str) -> None:
    """Change the scheduling of another thread of the caller's own process."""
    first, second, third, *_ = caller.arguments
    thread = ctypes.c_int(caller.arguments[seccomp.DECIDED_BY_PROCESS[call]]).value
    if thread < 1 or not os.path.exists(f"{caller.proc}/task/{thread}"):
        raise _error(errno.EPERM)
    made: tuple[int | bytes, ...]
    match call:
        case "setpriority":
            made = first, thread, ctypes.c_int(third).value
        case "sched_setaffinity":
            made = thread, min(second, MASK_BYTES), caller.read(third, min(second, MASK_BYTES))
        case "sched_setscheduler":
            made = thread, ctypes.c_int(second).value, caller.read(third, 4)
        case _:
            made = thread, caller.read(second, 4)
    kernel.checked(int(kernel.libc().syscall(seccomp.number(call), *made)), call)


def tell(channel: socket.socket, listener: int | None, places: Sequence[int]) -> None:
    """Pass the listener, the mount namespace and the writable places to the supervisor, from inside the box."""
    if listener is None:
        channel.sendall(b"0")
        return
    mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    socket.send_fds(channel, [b"1"], [listener, mounts, *places])


def decide(channel: socket.socket, uid: int | None) -> None:
    """Answer the filtered system calls of a started command, in a thread of this process."""
    flags = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
    try:
        said, descriptors, *_ = socket.recv_fds(channel, 1, MOST_DESCRIPTORS, flags)
    except BlockingIOError:  # the command was not started
        return
    why = "the kernel cannot let a program decide them (it needs Linux 5.0)" if said and not descriptors else ""
    if descriptors:
        try:
            _thread.start_new_thread(_serve, (descriptors, uid))
        except RuntimeError as error:
            why = str(error)
            _close(descriptors)
    if why:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"box: chmod and its like are refused: {why}\n")
            sys.stderr.flush()


def _serve(descriptors: Sequence[int], uid: int | None) -> None:
    listener, mounts, *places = descriptors
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        _see_as_the_box(mounts, uid)
        named = {os.readlink(f"/proc/self/fd/{place}"): place for place in places}
        Decider(listener, named, os.stat("/")).serve()
    finally:
        _close(descriptors)


def _close(descriptors: Sequence[int]) -> None:
    for each in descriptors:
        os.close(each)


def _see_as_the_box(mounts: int, uid: int | None) -> None:
    """Let this thread see the files that the box's programs see, with no more rights on them.

    Where the supervisor is root, the effective account stays root's: agents must not signal this thread.
    """
    if uid is not None:
        kernel.unshare(kernel.CLONE_FS)
        kernel.enter_namespace(mounts)
        kernel.libc().setfsgid(uid)
        kernel.libc().setfsuid(uid)
        if kernel.libc().setfsuid(-1) != uid:
            raise _error(errno.EPERM)
    if os.geteuid() == 0:
        kernel.drop_capabilities()


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
