"""Who may use the service over the network: named tokens, and the tools that were given one."""
