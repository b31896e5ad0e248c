"""Prompts: a start for each recipe, which people choose from their tool's menu (ruling S2)."""

from collections.abc import Mapping

import mcp_types as types
from mcp.shared.exceptions import MCPError

from workflows.policy.recipes import Recipe

_SAYS = {
    Recipe.REVIEW_PANEL: "Several reviewers, each with one question in mind.",
    Recipe.DECOMPOSE_AND_VERIFY: "Several agents build it beside each other, another verifies it.",
    Recipe.VERIFIER: "One agent does the work, another checks it.",
}
_GOAL = types.PromptArgument(name="goal", description="What is to be done, or reviewed.", required=True)
_REPOSITORY = types.PromptArgument(name="repository", description="The registered repository, such as acme/shop.")


def listed() -> types.ListPromptsResult:
    """Return a prompt for each recipe."""
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=recipe, description=says, arguments=[_GOAL, _REPOSITORY])
            for recipe, says in _SAYS.items()
        ]
    )


def prompt(name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the message that has the model start this recipe."""
    if name not in _SAYS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt {name[:100]!r}. Use one of: {', '.join(_SAYS)}.")
    if not (goal := arguments.get("goal", "").strip()):
        raise MCPError(types.INVALID_PARAMS, f"The prompt {name} needs a goal.")
    where = f"repository {arguments['repository']}" if arguments.get("repository") else "the repository I work in"
    order = f"Call the tool start with recipe={name} and {where}, and with this goal as its message. Then follow it."
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=f"{order}\n\n{goal}"))
    return types.GetPromptResult(description=_SAYS[Recipe(name)], messages=[message])
