"""The door for other tools: an MCP server whose tools call the routes of this bridge (rulings S1, S2, S4)."""
