"""Reading requests and writing answers: everything that is common to all endpoints."""
