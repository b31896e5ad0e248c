"""A person's answers to pauses, one or several at once: always to the round that the page showed (ruling M2)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from bridge.http.dashboard.frame.page import CHANNEL, ActionNote, Done, SubmittedForm
from bridge.operations.jobs import jobs, rounds
from bridge.operations.orders import attention, follow_ups, resume
from bridge.operations.service import Service
from workflows.contract.models import Action
from workflows.model.errors import RefusedError, ServiceError, UsageError
from workflows.model.orders import ResumeOrder
from workflows.model.rows import QuestionRecord, RoundRecord
from workflows.policy.answers import CROSSED, ENDS, TAKES, Verb, clean, compose, is_choice
from workflows.policy.stalls import WAYS

MOST = 50
"""Items on one page."""
AT_ONCE = 16
RECORDED_TRIES, RECORDED_SECONDS = 20, 0.1
"""How often the rows of an ended round are looked for, and how long after each look."""
DIGEST = 16
"""Characters of a round's digest in a form."""
DURATIONS = {"1h": "1 hour", "8h": "8 hours", "1d": "1 day", "3d": "3 days", "7d": "7 days", "30d": "30 days"}


@dataclass(frozen=True)
class SeenRound:
    """A round as a page showed it."""

    job: str
    number: int
    digest: str
    until: str
    """Its expiry: extending once more is another order than extending twice by accident."""


@dataclass(frozen=True)
class Words:
    """The answer to a round."""

    verb: str
    text: str = ""
    partial: bool = False
    other: bool = False


def seen_of(shown: RoundRecord) -> str:
    """Encode a round for a form."""
    return f"{shown.coordinator_id}|{shown.number}|{shown.digest[:DIGEST]}|{shown.expires_at}"


def form_of(shown: RoundRecord) -> str:
    """Return the name of a coordinator's form. It stays for the next round, so that a typed text finds its field
    again.
    """
    return f"say-{shown.coordinator_id}"


def page_of(service: Service, query: Mapping[str, str]) -> attention.WaitingPage:
    """Return the page of waiting items that starts at the query's `from`."""
    first = query.get("from", "0")
    if not (first.isascii() and first.isdigit() and len(first) < 7):
        raise UsageError("?from= takes a whole number")
    return attention.page(service, int(first) // MOST * MOST, MOST)


def values_of(service: Service, page: attention.WaitingPage) -> Mapping[str, object]:
    """Return what the templates of waiting items need, on every page that includes them."""
    conflicting = {page.tasks[item.root_job_id].repo for item in page.items if item.knots}
    return {
        "page": page,
        "resolvers": {repo for repo in conflicting if follow_ups.possible(service, Action.IMPLEMENT, repo)},
        "seen_of": seen_of,
        "form_of": form_of,
        "ways": WAYS,
        "durations": DURATIONS,
    }


async def say(service: Service, form: SubmittedForm) -> Done:
    """Carry out an answer, retry, continue, abort or extend on one round. After a refusal the typed text is kept."""
    seen = _read(form.text("seen"))
    verb = Verb.ANSWER.value if "pick" in form.fields else form.text("say")
    try:
        note = await _carry_out(service, form, seen, verb)
    except ServiceError as error:
        refused = ActionNote(error.message, done=False, hint=error.hint or "")
        return Done((refused, *_homeless(service, form, seen)), status=error.status)
    return Done((note,))


async def say_to_chosen(service: Service, form: SubmittedForm) -> Done:
    """Carry out one verb for all ticked items; each has a result of its own."""
    verb, chosen = form.text("say"), [_read(text) for text in dict.fromkeys(form.all("chosen"))]
    if not chosen:
        raise UsageError("nothing is chosen: tick what you mean first")
    turn, titles = asyncio.Semaphore(AT_ONCE), attention.titles(service, [seen.job for seen in chosen])

    async def one(seen: SeenRound) -> ActionNote:
        about = f"{titles.get(seen.job, '')} {seen.job}".strip()
        async with turn:
            try:
                note = await _carry_out(service, form, seen, verb)
            except ServiceError as error:
                return ActionNote(error.message, done=False, hint=error.hint or "", about=about)
        return ActionNote(note.text, about=about)

    return Done(tuple(await asyncio.gather(*map(one, chosen))))


def _read(text: str) -> SeenRound:
    job, number, digest, until = (text.split("|") + [""] * 4)[:4]
    if not number.isascii() or not number.isdigit() or len(number) > 9 or not digest:
        raise UsageError("the form does not say which round it means; load the page again")
    return SeenRound(job, int(number), digest, until)


async def _carry_out(service: Service, form: SubmittedForm, seen: SeenRound, verb: str) -> ActionNote:
    try:
        now = _open_now(service, seen)
    except RefusedError:
        if same := _done_before(service, form, seen, verb):
            return same
        raise
    if verb not in now.verbs and verb not in TAKES[now.kind]:  # of its own verbs the tree says why it takes one not
        takes = ", ".join(now.verbs)
        raise RefusedError(f"round {now.number} of {now.coordinator_id} takes {takes}, not {verb[:40]}")
    words = _words(form, verb, now.questions)
    order = ResumeOrder(
        actor=form.actor,
        channel=CHANNEL,
        job_id=seen.job,
        verb=verb,
        text=words.text,
        round=seen.number,
        digest=seen.digest,
        request_id=_request(form.asked.session.key, seen, words),
        partial=words.partial,
        other=words.other,
    )
    verdict = await resume.resume(service, order)
    if verdict.applied and verb in ENDS and not words.partial:
        await _until_recorded(service, seen)
    return ActionNote(verdict.message)


async def _until_recorded(service: Service, seen: SeenRound) -> None:
    """Wait a moment for the rows of what was decided, so that the next page shows how things are after it."""
    for _ in range(RECORDED_TRIES):
        if await asyncio.to_thread(rounds.past_round, service, seen.job, seen.number):
            return
        await asyncio.sleep(RECORDED_SECONDS)


def _open_now(service: Service, seen: SeenRound) -> RoundRecord:
    """Return the round that the page showed, if it is open and its questions have not changed; else raise."""
    root = jobs.get(service, seen.job).root_job_id
    now = next((row for row in rounds.open_of(service, root) if row.coordinator_id == seen.job), None)
    over = rounds.end_in_words(service, root, seen.job, seen.number)
    if now is None:
        raise RefusedError(over or f"{seen.job} waits for nobody any more", f"service job tree {root}")
    if now.number != seen.number:
        gone = over or f"round {seen.number} of {seen.job} is over"
        raise RefusedError(f"nothing was sent: {gone}; round {now.number} waits now")
    if not now.digest.startswith(seen.digest):
        raise RefusedError(f"nothing was sent: what round {now.number} asks has changed since you saw it")
    return now


def _done_before(service: Service, form: SubmittedForm, seen: SeenRound, verb: str) -> ActionNote | None:
    """Return the result of an earlier submission of this form, if that one has ended the round."""
    ended = rounds.past_round(service, seen.job, seen.number)
    if ended is None or not ended.digest.startswith(seen.digest):
        return None
    words = _words(form, verb, ended.questions)
    mine = f"{ENDS.get(verb)} by {form.actor_in_words}"
    return ActionNote(ended.closed) if ended.closed.startswith(mine) and ended.said == words.text else None


def _words(form: SubmittedForm, verb: str, questions: tuple[QuestionRecord, ...]) -> Words:
    if verb == Verb.ANSWER:
        return _answer(form, questions)
    return Words(verb, form.text("by", "") if verb == Verb.EXTEND else clean(form.text("instructions", "")).strip())


def _answer(form: SubmittedForm, questions: tuple[QuestionRecord, ...]) -> Words:
    """Combine the choices and texts of all questions into one answer, each under its question's id."""
    answers = {question.id: text for question in questions if (text := _of_question(form, question))}
    other = any(
        question.choices and question.id in answers and not is_choice(answers[question.id], question.choices)
        for question in questions
    )
    composed = compose(answers, [question.id for question in questions])
    if composed is None:
        raise RefusedError(CROSSED)
    return Words(Verb.ANSWER, composed, partial=form.text("partial", "") == "yes", other=other)


def _of_question(form: SubmittedForm, question: QuestionRecord) -> str:
    number = form.number("pick" if "pick" in form.fields else f"choice.{question.id}")
    if number is not None and number >= len(question.choices):
        raise UsageError(f"{question.id} has no choice {number + 1}; load the page again")
    chosen = question.choices[number] if number is not None else ""
    return "\n".join(text for text in (chosen, clean(form.text(f"text.{question.id}", "")).strip()) if text)


def _request(session: str, seen: SeenRound, words: Words) -> str:
    """Return an idempotency key: repeats of an order from one browser act once."""
    return f"{CHANNEL}-{sha256(repr((session, seen, words)).encode()).hexdigest()[:40]}"


def _homeless(service: Service, form: SubmittedForm, seen: SeenRound) -> tuple[ActionNote, ...]:
    """Return the typed texts for which the page shown next has no field, so that they aren't lost."""
    typed = {name: form.text(name) for name in form.fields if name.startswith("text.") or name == "instructions"}
    page = urlsplit(form.text("from", ""))
    if page.path.startswith("/ui/trees/"):
        shown = rounds.open_of(service, jobs.get(service, seen.job).root_job_id)
    else:
        shown = [item.round for item in page_of(service, dict(parse_qsl(page.query))).items if item.round]
    now = next((record for record in shown if record.coordinator_id == seen.job), None)
    fields = (
        {f"text.{question.id}" for question in now.questions} | ({"instructions"} if now.failing else set())
        if now
        else set()
    )
    return tuple(
        ActionNote("What you typed is kept here, so that you can copy it.", done=False, kept=text)
        for name, text in typed.items()
        if text.strip() and name not in fields
    )
