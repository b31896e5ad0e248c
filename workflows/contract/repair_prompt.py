"""The one repair: the agent's session receives the faults and sends its result again (ruling A5)."""

from collections.abc import Sequence

from workflows.contract.faults import Fault
from workflows.contract.prompt_contract import explain_shape
from workflows.secrets.redact import redact
from workflows.text.invisible import one_line
from workflows.text.quoted_data import Fences, write_fenced

PREVIOUS_CAP = 12_000
_MARGIN = 64_000
"""Bytes before the cut that are redacted too, so that a secret that crosses the cut is found."""


def repair_prompt(
    faults: Sequence[Fault], previous_output: str | bytes, *, leaf: bool = False, seed: str = "", tool: str = ""
) -> str:
    """Write the repair prompt: the faults, the shape of the faulty objects, and the end of the previous output, quoted
    as data (rulings A5, P4). `tool` names the program's tool that takes the result (ruling S6).
    """
    shape = explain_shape([fault.path for fault in faults], leaf=leaf)
    return write_fenced(seed, lambda fences: _whole(faults, shape, *_tail(previous_output), fences, tool))


def _whole(faults: Sequence[Fault], shape: str, previous: str, left_out: int, fences: Fences, tool: str) -> str:
    wrong = "\n".join(one_line(fault.message) for fault in faults)
    again = f"Call the tool {tool} with" if tool else "Answer with"
    cut = f", without its first {left_out} bytes" if left_out else ""
    return f"""Your result was not accepted. The rest of your work stands: do not redo it, only send the result again.

What is wrong with it, one fault per line:

{wrong}

{again} the corrected JSON object, {{"service_result": {{...}}}}, and nothing else: keep what the faults don't name.
Keys and values are matched exactly. Of the shape, what concerns the faults:

{shape}
Your previous output{cut}. {fences.meaning()}

{fences.block(previous, "you, in the run before")}
"""


def same_output(previous: str | bytes, repaired: str | bytes) -> str | None:
    """Return why the repair fails if it repeats the previous output byte for byte; None if the outputs differ (ruling
    A5).
    """
    if _bytes(previous) != _bytes(repaired):
        return None
    return "the repair returned the same output, byte for byte, so its faults are the same"


def _bytes(output: str | bytes) -> bytes:
    return output if isinstance(output, bytes) else output.encode("utf-8", "surrogatepass")


def _tail(output: str | bytes) -> tuple[str, int]:
    """Return the redacted end of an output, at most 12 000 bytes, and the number of bytes before it. Characters stay
    whole.
    """
    raw = _bytes(output)
    text = redact(raw[-_MARGIN:].decode("utf-8", "replace"))
    kept = text.encode("utf-8", "replace")[-PREVIOUS_CAP:]
    tail = kept.decode("utf-8", "ignore")
    return tail, max(0, len(raw) - PREVIOUS_CAP)
