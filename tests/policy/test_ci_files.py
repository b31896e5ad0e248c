"""Which files a push must not bring to a branch of a forge (ruling Q3)."""

import pytest

from workflows.policy.ci_files import is_ci_file


@pytest.mark.ruling("Q3")
@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".GitHub/Workflows/CI.yaml",
        ".github/actions/setup/action.yml",
        ".gitlab-ci.yml",
        ".gitlab/deploy.yml",
        ".circleci/config.yml",
        "Jenkinsfile",
        "Jenkinsfile.groovy",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        ".drone.star",
        ".travis.yml",
        ".forgejo/workflows/ci.yml",
    ],
)
def test_a_ci_file_is_one(path: str) -> None:
    assert is_ci_file(path)


@pytest.mark.ruling("Q3")
@pytest.mark.parametrize(
    "path", ["README.md", ".github/CODEOWNERS", "src/.gitlab-ci.yml", "build.yml", "docs/.github/workflows/x.yml"]
)
def test_another_file_is_none(path: str) -> None:
    assert not is_ci_file(path)
