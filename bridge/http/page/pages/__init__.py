"""What each page shows and what can be done on it, one module a subject; none of them knows another."""

from bridge.http.page.page import Action, Page
from bridge.http.page.pages import agents, attention, doctor, memory, reviews, settings, spend

PAGES: tuple[Page, ...] = (
    *attention.PAGES,
    *agents.PAGES,
    *doctor.PAGES,
    *memory.PAGES,
    *reviews.PAGES,
    *spend.PAGES,
    *settings.PAGES,
)
ACTIONS: tuple[Action, ...] = (
    *attention.ACTIONS,
    *agents.ACTIONS,
    *doctor.ACTIONS,
    *memory.ACTIONS,
    *reviews.ACTIONS,
)
