def explain_contract() -> str:
    return 'End with {"service_result": ...}'
