"""The `service` command: one thin module per group of commands."""
