"""The dashboard's pages and their actions, one module per subject; no module imports another."""

from bridge.http.dashboard.frame.page import FormAction, PageView, Plain
from bridge.http.dashboard.pages import (
    agents,
    attention,
    branches,
    diffs,
    doctor,
    job,
    jobs,
    memory,
    new,
    pipelines,
    reviews,
    runs,
    settings,
    spend,
    tree_list,
    trees,
)

SUBJECTS = (
    attention,
    new,
    tree_list,
    branches,
    trees,
    job,
    jobs,
    diffs,
    pipelines,
    runs,
    agents,
    doctor,
    memory,
    reviews,
    spend,
    settings,
)

PAGES: tuple[PageView, ...] = tuple(page for subject in SUBJECTS for page in subject.PAGES)
ACTIONS: tuple[FormAction, ...] = tuple(action for subject in SUBJECTS for action in getattr(subject, "ACTIONS", ()))
PLAIN: tuple[Plain, ...] = tuple(text for subject in SUBJECTS for text in getattr(subject, "PLAIN", ()))
