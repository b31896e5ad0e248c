"""The lifetime of an invitation to join the fleet (ruling Q1)."""

LASTS_SECONDS = 15 * 60.0
"""Time in which an invitation can be used."""

REMEMBERED_SECONDS = 86_400.0
"""Time for which one that can't be used any more is remembered, to say why."""
