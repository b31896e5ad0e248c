"""What each page shows and what can be done on it, one module a subject; none of them knows another."""

from bridge.http.page.page import Action, Page
from bridge.http.page.pages import (
    agents,
    attention,
    doctor,
    job,
    jobs,
    memory,
    pipelines,
    reviews,
    runs,
    settings,
    spend,
    trees,
)

PAGES: tuple[Page, ...] = (
    *agents.PAGES,
    *attention.PAGES,
    *doctor.PAGES,
    *job.PAGES,
    *jobs.PAGES,
    *memory.PAGES,
    *pipelines.PAGES,
    *reviews.PAGES,
    *runs.PAGES,
    *settings.PAGES,
    *spend.PAGES,
    *trees.PAGES,
)
ACTIONS: tuple[Action, ...] = (
    *agents.ACTIONS,
    *attention.ACTIONS,
    *doctor.ACTIONS,
    *job.ACTIONS,
    *jobs.ACTIONS,
    *memory.ACTIONS,
    *pipelines.ACTIONS,
    *reviews.ACTIONS,
    *runs.ACTIONS,
    *trees.ACTIONS,
)
