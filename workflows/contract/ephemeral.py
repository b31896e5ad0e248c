"""Validation of an ephemeral worker's inline spec (spec: Ephemeral worker spec)."""

from workflows.contract.models import WRITE_POLICIES, Action, AutonomyPolicy, Ephemeral, Runtime
from workflows.contract.scope import Clean, Scope, set_only


def read_ephemeral(scope: Scope, *, implements: bool) -> Clean:
    """Read the worker as clean members; one that implements must be allowed to write (spec: Ephemeral worker, rule
    1).
    """
    clean: Clean = {"runtime": scope.choice("runtime", Runtime, required=True)}
    for name in ("model", "effort", "template", "role"):
        clean[name] = scope.text(name, of=name)
    capabilities = scope.strings("capabilities", of="capability")
    clean["capabilities"] = capabilities
    policy = scope.choice("autonomy_policy", AutonomyPolicy)
    clean["autonomy_policy"] = policy
    implements = implements or any(name.strip().lower() == Action.IMPLEMENT for name in capabilities)
    if implements and policy not in WRITE_POLICIES and (policy or not scope.given("autonomy_policy")):
        given = f"not {policy}" if policy else "and is not set"
        allowed = " or ".join(sorted(WRITE_POLICIES, reverse=True))
        scope.fault("autonomy_policy", f"must be {allowed} for a worker that implements, {given}")
    scope.close(Ephemeral.model_fields)
    return set_only(clean)
