"""The `service` command: one thin module per noun."""
