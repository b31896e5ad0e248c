"""The prompts agents are given: of a task, of a continuation, of what is remembered."""
