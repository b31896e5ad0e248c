"""The message of a job that a comment requested: its author, its place, and its text as data (ruling L11)."""

from workflows.github.comment import Comment
from workflows.text.fences import Fences, inline, written
from workflows.text.inert import visible

_OBEYED = "The exception is your task: do what they ask."


def task_from_comment(comment: Comment, text: str, repo: str) -> str:
    """Write the message. Its first line has no text of the comment: that is always fenced."""
    return written(f"{comment.author}\0{text}", lambda fences: _whole(comment, text, repo, fences))


def _whole(comment: Comment, text: str, repo: str, fences: Fences) -> str:
    kind = "pull request" if comment.on_pull_request else "issue"
    who = "".join(each for each in comment.author if each.isalnum() or each in "-_")[:80] or "somebody"
    return (
        f"Request of {who} on {kind} {comment.number} of {repo}\n\n"
        f"The GitHub user {inline(comment.author)}, who may write to the repository {inline(repo)}, asked for this job"
        f" in a comment on its {kind} {comment.number} ({inline(comment.url)}). What they wrote is your task."
        f" {fences.meaning(obeyed=_OBEYED)}\n\n{fences.block(visible(text), f'{who} on GitHub')}"
    )
