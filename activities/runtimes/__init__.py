"""The table of runtimes: what there is to know of each agent program. Knows nothing else of the service."""
