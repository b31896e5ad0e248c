"""Invocation of commands: shared options, help texts, the caller and its permissions, errors and exit codes."""
