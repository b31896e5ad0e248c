"""Prompts for agents: for a task, for a continuation, and their section on memory."""
