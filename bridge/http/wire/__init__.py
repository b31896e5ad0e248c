"""How a request is read and an answer is written; nothing of any one endpoint."""
