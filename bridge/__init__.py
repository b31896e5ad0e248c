"""The service's operations, and its interfaces other than the terminal: HTTP, dashboard, GitHub, daemon."""
