"""The socket in the home by which commands are handed over, and its key. Nothing is imported here that takes time."""

import os
import socket
from contextlib import suppress

from activities.settings.home import Home

_BACKLOG = 128


def until_the_first(home: Home) -> None:
    """Wait for the first command that is typed; it is run by a process of its own, and those that come while we import.

    So a daemon whose commands nobody types pays nothing for their process.
    """
    listener, key = listen(home)
    try:
        line, _ = listener.accept()
        line.close()
    finally:
        listener.close()  # from here on whoever asks is refused at once, until there is another one
        os.close(key)


def listen(home: Home) -> tuple[socket.socket, int]:
    """The socket in the home and its key, the owner's alone; what was left of the last ones is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(home.root, os.O_PATH | os.O_DIRECTORY)
    try:
        os.umask(0o077)
        key = _new_key(home, folder)
        draft = f".{home.commands_socket.name}.{os.getpid()}"
        listener.bind(f"/proc/self/fd/{folder}/{draft}")  # a socket's own path may have 107 bytes only
        listener.listen(_BACKLOG)
        os.replace(draft, home.commands_socket.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return listener, key


def _new_key(home: Home, folder: int) -> int:
    """A file that nobody has open yet. As long as it is open here, no other file gets its inode."""
    draft = f".{home.commands_key.name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)
    key = os.open(draft, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    os.replace(draft, home.commands_key.name, src_dir_fd=folder, dst_dir_fd=folder)
    return key
