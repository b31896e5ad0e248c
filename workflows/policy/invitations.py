"""The lifetime of an invitation to join the fleet (ruling Q1)."""

LASTS_SECONDS = 15 * 60.0
"""How long an invitation can be used."""

REMEMBERED_SECONDS = 86_400.0
"""How long an expired or used invitation is kept, so that its refusal can give the reason."""
