"""What each page shows and what can be done on it, one module a subject; none of them knows another."""

from bridge.http.page.page import Action, Page
from bridge.http.page.pages import attention, jobs, pipelines, runs

PAGES: tuple[Page, ...] = (*attention.PAGES, *jobs.PAGES, *pipelines.PAGES, *runs.PAGES)
ACTIONS: tuple[Action, ...] = (*attention.ACTIONS, *jobs.ACTIONS, *pipelines.ACTIONS, *runs.ACTIONS)
