"""The home's socket, by which commands are handed over, and its key file. This module imports nothing slow."""

import os
import socket
from contextlib import suppress

from activities.settings.home import Home

_BACKLOG = 128


def until_the_first(home: Home) -> None:
    """Wait for the first typed command. It, and others during this process's imports, run in their own processes.

    So the imports cost nothing in a home where nobody types commands.
    """
    listener, key = listen(home)
    try:
        line, _ = listener.accept()
        line.close()
    finally:
        listener.close()  # from here on connections are refused at once, until there is a new socket
        os.close(key)


def listen(home: Home) -> tuple[socket.socket, int]:
    """Create the home's socket and its key, both only for the owner; those of an earlier process are replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(home.root, os.O_PATH | os.O_DIRECTORY)
    try:
        os.umask(0o077)
        key = _new_key(home, folder)
        draft = f".{home.commands_socket.name}.{os.getpid()}"
        listener.bind(f"/proc/self/fd/{folder}/{draft}")  # a socket's path is limited to 107 bytes
        listener.listen(_BACKLOG)
        os.replace(draft, home.commands_socket.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return listener, key


def _new_key(home: Home, folder: int) -> int:
    """Create a new key file, which no other process has open. While it is open here, its inode is not reused."""
    draft = f".{home.commands_key.name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)
    key = os.open(draft, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    os.replace(draft, home.commands_key.name, src_dir_fd=folder, dst_dir_fd=folder)
    return key
