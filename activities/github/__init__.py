"""GitHub: the one client, and its endpoints. Only the process with the account's token imports it."""
