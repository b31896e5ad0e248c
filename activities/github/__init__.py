"""Talking to GitHub: the one client, and what it is asked. Only the process that has the account imports it."""
