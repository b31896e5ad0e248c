"""The socket in the home by which commands are handed over. Nothing is imported here that takes time."""

import os
import socket

from activities.settings.home import Home

_BACKLOG = 128


def until_the_first(home: Home) -> None:
    """Wait for the first command that is typed; it is run by a process of its own, and those that come while we import.

    So a daemon whose commands nobody types pays nothing for their process.
    """
    listener = listen(home)
    try:
        line, _ = listener.accept()
        line.close()
    finally:
        listener.close()  # from here on whoever asks is refused at once, until there is another one


def listen(home: Home) -> socket.socket:
    """The socket in the home, the owner's alone; what was left of the last one is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(home.root, os.O_PATH | os.O_DIRECTORY)
    try:
        draft = f".{home.commands_socket.name}.{os.getpid()}"
        os.umask(0o077)
        listener.bind(f"/proc/self/fd/{folder}/{draft}")  # a socket's own path may have 107 bytes only
        listener.listen(_BACKLOG)
        os.replace(draft, home.commands_socket.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return listener
