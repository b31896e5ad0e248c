"""The tables, by subject. Times are seconds since the epoch.

Migrations build them; the code reads them by these definitions. Each table is defined in both places, since a migration
never changes after its release, while these definitions do. A test compares the two.
"""

from activities.store.schema.artifacts import artifact_parts, artifacts, kept_secrets
from activities.store.schema.attempts import agent_sessions, attempts, claims, deferrals, moves, stalls
from activities.store.schema.columns import metadata
from activities.store.schema.fleet import cluster, hosts, invites, placements, seal_keys, tokens
from activities.store.schema.github import (
    github_account,
    github_comments,
    github_deliveries,
    github_facts,
    github_pages,
    github_published,
    github_repos,
    github_requests,
    github_threads,
)
from activities.store.schema.knowledge import memory
from activities.store.schema.people import deliveries, idempotency, notifications, review_notes, reviews, rounds
from activities.store.schema.pipeline import pipeline_runs, pipeline_stages, pipelines
from activities.store.schema.registries import agent_repos, agents, checkouts, repos
from activities.store.schema.tree import events, jobs, tasks, trees, writers

__all__ = [
    "agent_repos",
    "agent_sessions",
    "agents",
    "artifact_parts",
    "artifacts",
    "attempts",
    "checkouts",
    "claims",
    "cluster",
    "deferrals",
    "deliveries",
    "events",
    "github_account",
    "github_comments",
    "github_deliveries",
    "github_facts",
    "github_pages",
    "github_published",
    "github_repos",
    "github_requests",
    "github_threads",
    "hosts",
    "idempotency",
    "invites",
    "jobs",
    "kept_secrets",
    "memory",
    "metadata",
    "moves",
    "notifications",
    "pipeline_runs",
    "pipeline_stages",
    "pipelines",
    "placements",
    "repos",
    "review_notes",
    "reviews",
    "rounds",
    "seal_keys",
    "stalls",
    "tasks",
    "tokens",
    "trees",
    "writers",
]
