"""The process that has everything imported and forks for each command, and how `service` hands a command to it."""
