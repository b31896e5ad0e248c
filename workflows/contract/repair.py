from collections.abc import Sequence

from workflows.contract.faults import Fault


def repair_prompt(faults: Sequence[Fault], previous: str) -> str:
    return "\n".join(str(f) for f in faults)
