"""Starting work: asking an agent, and the built-in recipes (ruling J7)."""

from fastapi import APIRouter

from bridge.http.wire.authorization import needs
from bridge.http.wire.dependencies import CallDep, Once, OnceDep, ServiceDep
from bridge.http.wire.document import STARTS
from bridge.http.wire.schemas import AskAnswer, AskRequest, OrchestrateAnswer, OrchestrateRequest
from bridge.http.wire.strict_route import StrictRoute
from bridge.machine.token_scopes import TokenScope
from bridge.operations.idempotency import Answer
from bridge.operations.orders import new_jobs
from bridge.operations.service import Service
from workflows.contract.models import Action

router = APIRouter(route_class=StrictRoute, tags=["agents"])


@router.post("/v1/agents/{name}/ask", responses=STARTS, openapi_extra=needs(TokenScope.ASK))
async def ask_agent(service: ServiceDep, name: str, body: AskRequest, once: OnceDep, call: CallDep) -> AskAnswer:
    """Ask an agent in the background; the same gates as `service agent ask`. With a token of scope `ask`, none of its
    jobs may change the repository.
    """
    return await _start(service, Action.ASK, name, body, once, read_only=call.scope is not TokenScope.ACT)


@router.post("/v1/agents/{name}/review", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def review_with_agent(service: ServiceDep, name: str, body: AskRequest, once: OnceDep) -> AskAnswer:
    """Have an agent review a repository; the same gates as `service agent review`."""
    return await _start(service, Action.REVIEW, name, body, once)


@router.post("/v1/agents/{name}/implement", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def implement_with_agent(service: ServiceDep, name: str, body: AskRequest, once: OnceDep) -> AskAnswer:
    """Have an agent change a repository, on a new branch; the same gates as `service agent implement`."""
    return await _start(service, Action.IMPLEMENT, name, body, once)


@router.post("/v1/orchestrate", responses=STARTS, openapi_extra=needs(TokenScope.ACT))
async def orchestrate(service: ServiceDep, body: OrchestrateRequest, once: OnceDep) -> OrchestrateAnswer:
    """Start a built-in recipe of several temporary workers, as `service orchestrate` does."""
    new = new_jobs.NewRecipe(**body.model_dump() | {"runtimes": tuple(body.runtimes)})

    async def start(root: str | None) -> Answer:
        started = await new_jobs.orchestrate(service, new, root=root)
        return {"job_id": started.job_id, "caveat": started.caveat}

    return OrchestrateAnswer(**await once.start(body, start))


async def _start(
    service: Service, action: Action, name: str, body: AskRequest, once: Once, *, read_only: bool = False
) -> AskAnswer:
    new = new_jobs.NewJob(agent=name, action=action, read_only=read_only, **body.model_dump())

    async def start(root: str | None) -> Answer:
        return {"job_id": await new_jobs.start(service, new, root)}

    return AskAnswer(**await once.start(body, start))
