from workflows.contract.models import ServiceResult


def render_findings(result: ServiceResult, cap: int) -> str:
    return str(result.findings)[:cap]
