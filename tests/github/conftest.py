from tests.github.fixtures import github as github
from tests.github.fixtures import hub as hub
