"""Prompts for agents: of a task, of a continuation, of memory."""
