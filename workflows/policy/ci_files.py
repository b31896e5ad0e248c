"""The files that tell a forge or a CI service what to run on a push (ruling Q3)."""

_FOLDERS = (
    ".github/workflows/",
    ".github/actions/",
    ".gitlab/",
    ".circleci/",
    ".forgejo/workflows/",
    ".gitea/workflows/",
    ".buildkite/",
    ".woodpecker/",
    ".azure-pipelines/",
    ".semaphore/",
    ".tekton/",
    ".teamcity/",
    ".builds/",
    ".harness/",
)
_FILES = frozenset({"jenkinsfile", "cloudbuild", "buildspec", "appveyor", "azure-pipelines", "bitbucket-pipelines"}) | {
    f".{name}" for name in ("gitlab-ci", "travis", "drone", "woodpecker", "cirrus", "appveyor", "build", "codefresh")
}
_ENDINGS = (".yml", ".yaml", ".json", ".star", ".jsonnet", ".groovy")


def is_ci_file(path: str) -> bool:
    """Return whether a push that changes the file at this path changes what a CI service runs."""
    low = path.lower()
    name = next((low.removesuffix(ending) for ending in _ENDINGS if low.endswith(ending)), low)
    return low.startswith(_FOLDERS) or name in _FILES
