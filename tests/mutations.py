"""Small violations of the rules: by file of `workflows`, the ruling that is broken, the exact old text, the new one."""

Mutation = tuple[str, str, str]

MUTATIONS: dict[str, tuple[Mutation, ...]] = {
    "contract/delegations.py": (
        ("A8", "quorum > count:", "quorum >= count:"),
        ("A9", "{0,63}", "{0,64}"),
        ("A10", "if seconds <= 0:", "if seconds < 0:"),
        ("spec:validation.write_policy", "implements or any(", "implements and any("),
        (
            "spec:validation.write_policy",
            "name.strip().lower() == Action.IMPLEMENT for",
            "name == Action.IMPLEMENT for",
        ),
    ),
    "contract/faults.py": (("A4", "(*self.listed, *more)", "(*reversed(self.listed), *more)"),),
    "contract/graph.py": (
        (
            "C5",
            "for leg in topological({leg: delegation.deps for leg, delegation in by_id.items()}) or ():",
            "for leg in by_id:",
        ),
        (
            "spec:validation.deps",
            "free = [leg for leg in waiting if all(dep in order for dep in deps[leg])]",
            "free = [leg for leg in waiting if all(dep in order or dep not in deps for dep in deps[leg])]",
        ),
    ),
    "contract/locate.py": (("A1", "[-MOST_CANDIDATES:]", "[:MOST_CANDIDATES]"),),
    "contract/parse.py": (
        (
            "A1",
            "for place, one in enumerate(validations) if",
            "for place, one in reversed([*enumerate(validations)]) if",
        ),
        ("A3", "(False, True) if after_repair else (False,)", "(False, True)"),
        ("P6", "not marks(text).isdisjoint(marks(prompt))", "marks(text) >= marks(prompt)"),
    ),
    "contract/repair_prompt.py": (
        ("A12", "redact(raw[-_MARGIN:].decode", "redact(raw[-PREVIOUS_CAP:].decode"),
        ("A5", "_bytes(previous) != _bytes(repaired)", "_bytes(previous).strip() != _bytes(repaired).strip()"),
    ),
    "contract/strict_reader.py": (
        (
            "A7",
            "if value in tuple(of):\n            return of(value)",
            "if value.lower() in tuple(of):\n            return of(value.lower())",
        ),
        ("A8", "if not isinstance(value, int) or isinstance(value, bool):", "if not isinstance(value, int):"),
    ),
    "contract/validate.py": (("B6", "> DELEGATIONS_BYTES:", "> 2 * DELEGATIONS_BYTES:"),),
    "contract/worktree_names.py": (("I3", "\\.\\.|\\.\\Z|\\.lock\\Z", "\\.\\.|\\.\\Z"),),
    "github/commands.py": (
        ("L4", '"Cc", "Cf", "Co"', '"Cc", "Co"'),
        ("L4", "return kind(job) if _plain(job) else None", "return kind(job)"),
    ),
    "github/facts.py": (
        ("L3", 'body.rstrip("\\r\\n").rpartition("\\n")[2]', 'body.partition("\\n")[0]'),
        ("L3", "if first or not tree.events:", "if True:"),
    ),
    "github/merge_gate.py": (
        ("L10", "if any(action is not", "if all(action is not"),
        ("L10", "{Decision.CHANGES_REQUESTED, Decision.BLOCKED,", "{Decision.BLOCKED,"),
        ("L10", "(later.head == seen.head.sha and not later.over)", "not later.over"),
        ("O1", "if head.foreign:", "if head.foreign and head.sha is None:"),
    ),
    "github/who_may_command.py": (
        ("L5", '{"admin", "maintain", "write"}', '{"admin", "maintain", "triage", "write"}'),
        ("L6", "refused_in_last_hour >= MOST_REFUSALS", "refused_in_last_hour > MOST_REFUSALS"),
    ),
    "model/settings.py": (
        (
            "spec:limits.defaults",
            "max_delegation_depth: int = Field(default=8",
            "max_delegation_depth: int = Field(default=9",
        ),
    ),
    "model/states.py": (
        ("B2", "JobState.SKIPPED: _AGAIN", "JobState.SKIPPED: frozenset()"),
        (
            "D2",
            "FAILING = frozenset({JobState.FAILED, JobState.BLOCKED, JobState.CANCELLED})",
            "FAILING = frozenset({JobState.FAILED, JobState.BLOCKED})",
        ),
    ),
    "pipeline/payload.py": (("spec:bridge.payload", "if total > TOTAL_BYTES:", "if total >= TOTAL_BYTES:"),),
    "pipeline/reducer.py": (
        ("K1", "failures <= stage.plan.retry", "failures < stage.plan.retry"),
        ("K1", "and not run.waiting and", "and"),
        ("O1", "assignment.base or start.base", 'assignment.base or ""'),
    ),
    "policy/answers.py": (
        ("F5", 'texts_of.setdefault(known or "", []).append(text)', 'texts_of[known or ""] = [text]'),
        ("F4", "(Verb.ANSWER, Verb.EXTEND)", "(Verb.ANSWER, Verb.ABORT, Verb.EXTEND)"),
        ("F4", "if seconds > LONGEST_PAUSE_SECONDS:", "if seconds >= LONGEST_PAUSE_SECONDS:"),
        ("F5.whole", '{"cli", "bridge", "dashboard", "mcp"}', '{"cli", "dashboard", "mcp"}'),
    ),
    "policy/assignments.py": (
        (
            "spec:timeouts.precedence",
            '_default(delegation.phase or "", timeouts),\n        _default(delegation.action.value, timeouts),',
            '_default(delegation.action.value, timeouts),\n        _default(delegation.phase or "", timeouts),',
        ),
    ),
    "policy/bounds.py": (
        (
            "C1",
            "jobs(bounds, ledger, new_jobs, batch) or exhausted_budget(bounds, ledger)",
            "exhausted_budget(bounds, ledger) or jobs(bounds, ledger, new_jobs, batch)",
        ),
        ("C2", "if depth >= deepest:", "if depth > deepest:"),
        ("C3", "if ledger.jobs + new <= cap:", "if ledger.jobs + new < cap:"),
        ("C4", "amount >= WARNING_SHARE * budget", "amount > WARNING_SHARE * budget"),
        ("spec:limits.tokens", "ledger.tokens >= tokens", "ledger.tokens > tokens"),
        ("spec:limits.dollars", "if budget and ledger.cost_usd >= budget:", "if ledger.cost_usd >= budget:"),
    ),
    "policy/decisions.py": (("A11", "return JobState.BLOCKED", "return JobState.FAILED"),),
    "policy/failure_policies.py": (
        ("L10", "case FailurePolicy.CONTINUE | FailurePolicy.ESCALATE:", "case FailurePolicy.CONTINUE:"),
    ),
    "policy/loops.py": (
        ("H1", "WINDOW = 8", "WINDOW = 4"),
        ("H2", "if self.repeat_warned or self.rung else Rung.WARNING", "if self.rung else Rung.WARNING"),
        ("H3", "self.streak + 1 if same else 0", "self.streak + 1 if same else self.streak"),
        ("spec:limits.non_progress", "if streak < limit:", "if streak <= limit:"),
        ("H1", "sorted(leg.deps), leg.model", "list(leg.deps), leg.model"),
    ),
    "policy/lost_trees.py": (
        ("engine:outside", "task.paused_seconds + now - task.paused_since", "task.paused_seconds"),
    ),
    "policy/memory.py": (("K2", "(telling or list(different))", "telling"),),
    "policy/observation.py": (("spec:result.observation", "bool(bindings) and all(", "bool(bindings) and any("),),
    "policy/preflight.py": (
        (
            "spec:ephemeral.runtime",
            "worker.runtime not in settings.configured_runtimes",
            "worker.runtime not in RUNTIME_NAMES",
        ),
        ("C6", "if worker.template and worker.template not in templates:", "if worker.template and not templates:"),
    ),
    "policy/moving.py": (
        ("Q5.claim", "begun_on is None or (move.begun and begun_on == move.host)", "begun_on is None or move.begun"),
        ("Q5.claim", "begun_on is None or (move.begun and begun_on", "begun_on is None or (begun_on"),
        ("Q5.claim", "seen_at > move.last_seen", "seen_at >= move.last_seen"),
        ("Q5", "outcome.moved and outcome.begun_at is None", "outcome.moved"),
    ),
    "policy/prices.py": (
        ("K5", "cost(usage, reported or asked, overrides)", "cost(usage, asked or reported, overrides)"),
    ),
    "policy/prompts/surroundings.py": (
        ("P2", "{format_duration(allowed.seconds)}", "{format_duration(2 * allowed.seconds)}"),
    ),
    "policy/prompts/peoples_words.py": (
        ("F5", 'parts.append("Left unanswered." if text is None else', 'parts.append("" if text is None else'),
    ),
    "policy/prompts/task.py": (("P7", "fences.meaning(obeyed=_OBEYED)", "fences.meaning()"),),
    "policy/recipes.py": (("spec:orchestrate.review_panel", "failure_policy=FailurePolicy.CONTINUE,\n", ""),),
    "policy/batch_verdict.py": (
        ("D6", "if not overruled and SynthesisRule.QUORUM in rules", "if SynthesisRule.QUORUM in rules"),
        ("E2", "if not b.has_succeeded or b.decision is Decision.CHANGES_REQUESTED]", "if not b.approves]"),
        ("E3", "needed = max(", "needed = min("),
        ("E4", "[b for b in tagged if not (b.has_succeeded and b.decision is Decision.SKIPPED)]", "tagged"),
    ),
    "policy/backoff.py": (("D3", "5.0, 300.0", "5.0, 600.0"),),
    "secrets/redact.py": (("N7", "if layers > 0:", "if layers > 1:"),),
    "text/quoted_data.py": (
        ("N6", "text.count(self._mark) == self._written", "text.count(self._mark) >= self._written"),
    ),
    "text/inert.py": (("L11", "@(?=\\\\?[A-Za-z0-9_-])", "@(?=[A-Za-z0-9_-])"),),
    "tree/blocking.py": (
        ("B3", 'f"{first}; then: {RETRY} {job_id}" if first else f"{RETRY} {job_id}"', 'f"{RETRY} {job_id}"'),
        ("G2", "JobState.CANCELLED if step.state.killed_by else JobState.SKIPPED", "JobState.SKIPPED"),
        ("D4", "if batch.stopped and leg.failing and stops_batch(leg.policy):", "if False:"),
    ),
    "tree/chains.py": (
        ("C7", "ENDED_JOBS - {JobState.SUCCEEDED}", "ENDED_JOBS - {JobState.SUCCEEDED, JobState.SKIPPED}"),
        ("D4", "self.stopped = self.stopped or reason", "self.stopped = reason"),
        (
            "D8",
            "{SynthesisRule.QUORUM, SynthesisRule.VOTE, SynthesisRule.VERIFY}",
            "{SynthesisRule.QUORUM, SynthesisRule.VOTE}",
        ),
    ),
    "tree/continuation.py": (
        ("C4", "step.state.spent_jobs += flavour is not Continuation.FINALIZE", "step.state.spent_jobs += 1"),
        ("O5", '"" if chain.run.shared_worktree else chain.branch', '""'),
        (
            "P3",
            "answers = leg.assignment.action is Action.ASK and SynthesisRule.VERIFY not in leg.rules",
            "answers = leg.assignment.action is Action.ASK",
        ),
        ("E6", "chains = step.state.coordinators.values() if flavour is Continuation.FINALIZE else ()", "chains = ()"),
    ),
    "tree/dispatch.py": (
        ("C6", "if chain.ladder.streak > step", "if chain.ladder.streak >= step"),
        ("O2", "() if leg.at_base else step.state.line_of(chain)", "step.state.line_of(chain)"),
        ("spec:delegation.artifacts", "batch.artifact_digest if leg.artifacts else None", "batch.artifact_digest"),
        ("C5", "leg.quorum = max((", "leg.quorum = min(("),
    ),
    "tree/finalize.py": (
        (
            "E7",
            "elif job_state is JobState.SUCCEEDED:\n        who",
            "elif job_state is not JobState.CANCELLED:\n        who",
        ),
        (
            "G1",
            "if step.state.finalize is None:\n        words, raised",
            "if True:\n        words, raised",
        ),
    ),
    "tree/job_end.py": (
        ("D3", "leg.retries_used < leg.retry", "leg.retries_used <= leg.retry"),
        ("D7", "leg.escalated = True", "leg.escalated = False"),
        (
            "spec:ephemeral.leaf_only",
            "_leaf(step, outcome) if job.ephemeral else",
            "_leaf(step, outcome) if job.ephemeral and job.delegation_id else",
        ),
        ("F2", "if ended in FAILING and any(each.leg", "if ended is JobState.FAILED and any(each.leg"),
        ("D4", "stopped = step.state.is_frozen or batch is None or bool(batch.stopped)", "stopped = batch is None"),
        ("B6", "max(0, tokens.input_tokens)", "tokens.input_tokens"),
    ),
    "tree/job_offers.py": (
        ("B5", "if offer is not None and offer.number == event.offer:", "if offer is not None:"),
        ("B5", "if offer is None or offer.attempt != outcome.attempt:", "if offer is None:"),
        ("B5", "started = max(at, step.state.jobs[job_id].queued_at)", "started = at"),
        ("G1", "or outcome.job_id == _final(step):", "or False:"),
    ),
    "tree/kill.py": (
        ("G2.stops", "if immediate:\n        job_offers.stop_all(step)", "job_offers.stop_all(step)"),
        ("C4", "state.exclude(state.closed_at)", "None"),
    ),
    "tree/moving.py": (
        ("Q5", "offer.attempt != outcome.attempt or offer.taken_back", "offer.attempt != outcome.attempt"),
        ("Q5", "step.leg_again(leg, note, counted=False)", "step.leg_again(leg, note)"),
        ("Q5", "(not is_final and (stopped or finalize.ending(step)))", "(stopped or finalize.ending(step))"),
    ),
    "tree/reopen.py": (
        ("C7", "if dep.state is not JobState.SUCCEEDED]", "if dep.state in FAILING]"),
        ("engine:outside", "state.spent_jobs -= is_final", "state.spent_jobs -= False"),
        ("F8", "waiting.expires_at + gap, waiting.armed_at + gap", "waiting.expires_at + gap, waiting.armed_at"),
    ),
    "tree/resume.py": (
        ("M2", "(len(seen) < _DIGEST_SHOWN or not current.digest.startswith(seen))", "len(seen) < _DIGEST_SHOWN"),
        (
            "F4",
            'any(cut_to_bound("request", request_id) in each.requests for each in known)',
            'any(cut_to_bound("request", request_id) in each.requests for each in known if each.open)',
        ),
        ("F4", "if len(waiting) > 1:", "if len(waiting) > 2:"),
        ("F3", "chain.batch.approved = True", "chain.batch.approved = False"),
        ("F5", "_guide(chain, words.guidance)", "_guide(chain, '')"),
    ),
    "policy/placement.py": (
        ("Q4", "host.free / host.slots * (HAS_REPO if host.has_repo else 1.0)", "host.slots / host.slots"),
        ("Q4", "return self.require - labels", "return self.require - self.require"),
        ("Q4", "(host.load + 1) / host.slots", "-host.load"),
        ("Q4", "able = [host for host in hosts if need.met_by(host)]", "able = list(hosts)"),
        ("Q4", "return len(self.prefer & host.labels), host.name == self.near", "return 0, host.name == self.near"),
        ("Q4", "0 if full else -len(need.prefer & pool.labels), pool.room", "0, pool.room"),
        ("Q4", "elif self.load <= 0:", "elif self.load < 0:"),
        ("Q4.freed", "room.get(own, 0) < 0", "room.get(own, 0) <= 0"),
    ),
    "tree/pause_rounds.py": (
        ("F1", "number=len(earlier) + 1,", "number=1,"),
        ("F8", "TimerPurpose.NINETY: 0.9", "TimerPurpose.NINETY: 0.8"),
        (
            "F2",
            "if state.finalize is not None:\n        step.event(",
            "if state.killed_by is not None:\n        step.event(",
        ),
    ),
    "tree/settle_batch.py": (
        ("E5", "if state.verify_attempts >= cap:", "if state.verify_attempts > cap:"),
        ("E5", "elif verdict.result is Result.REPLAN:", "elif verdict.result is Result.REPLAN and rung is None:"),
    ),
    "tree/state.py": (
        ("C4", "until = now if self.paused_since is None else self.paused_since", "until = now"),
        (
            "I2",
            "if leg.state is not JobState.SUCCEEDED:\n            return ()",
            "if leg.state is JobState.SKIPPED:\n            return ()",
        ),
    ),
    "tree/step.py": (
        ("B4", "check_payload(kind, data)\n        self._tell(", "self._tell("),
        ("engine:total", "state.now = max(state.now, now)", "state.now = now"),
    ),
}
