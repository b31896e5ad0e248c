"""What waits for a person, each with its actions in place (rulings M1, M2). What is said to pauses: `resuming`."""

from collections.abc import Mapping

from bridge.http.dashboard.frame.page import Action, Asked, Done, Form, Note, Page, done
from bridge.http.dashboard.parts import resuming
from bridge.operations import merges, trees, waiting
from bridge.operations.service import Service


def _look(service: Service, asked: Asked) -> Mapping[str, object]:
    found = resuming.page_of(service, asked.query)
    quiet = found.total == 0
    return {
        "title": "Attention",
        "found": found,
        "waiting": found.total,
        "lately": waiting.lately(service),
        "running": waiting.running(service) if quiet else (),
        "unused": quiet and waiting.nothing_ever_ran(service),
        "seen_of": resuming.seen_of,
        "form_of": resuming.form_of,
        "most": resuming.MOST,
        "durations": resuming.DURATIONS,
    }


async def _retry(service: Service, form: Form) -> Done:
    again = await trees.retry(service, form.text("job"), actor=form.signed)
    opened = "; its tree is open again" if again.reopened else ""
    return done(f"{again.job_id} runs again{opened}")


async def _dismiss(service: Service, form: Form) -> Done:
    gone = await trees.dismiss(service, form.text("job"), actor=form.signed)
    return Done((Note(f"{gone.root_job_id} is dismissed: nobody is reminded of it any more"), *_unmerged(gone)))


async def _end(service: Service, form: Form) -> Done:
    gone = await trees.kill(service, form.text("job"), actor=form.signed, immediate=False)
    return Done((Note(f"{gone.root_job_id} {'is over' if gone.over else 'is being ended'}"), *_unmerged(gone)))


def _unmerged(gone: trees.Killed) -> tuple[Note, ...]:
    return tuple(
        Note(f"the branch {leg.branch} holds work nobody has merged", hint=leg.merge_command) for leg in gone.unmerged
    )


async def _merge(service: Service, form: Form) -> Done:
    merged = merges.merge(service, (form.text("job"),), actor=form.signed)
    how = "is" if merged.merged else "was already"
    return done(f"{form.text('job')} {how} merged into {merged.task_branch}")


async def _drop(service: Service, form: Form) -> Done:
    gone = merges.drop(service, form.text("job"), actor=form.signed, force=form.text("sure", "") == "yes")
    return Done(
        (Note(f"the branch {gone.branch} is dropped", hint=merges.restore(gone.path, gone.branch, gone.head_sha)),)
    )


PAGES = (Page("/", "attention.html", _look),)
ACTIONS = (
    Action("/attention/say", resuming.say),
    Action("/attention/chosen", resuming.say_to_chosen),
    Action("/attention/retry", _retry),
    Action("/attention/dismiss", _dismiss),
    Action("/attention/end", _end),
    Action("/attention/merge", _merge),
    Action("/attention/drop", _drop),
)
