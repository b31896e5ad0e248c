"""The GitHub name in a remote's address."""

import pytest

from workflows.github.repository_name import github_of_remote, github_of_remotes, is_github_name, remote_of

pytestmark = pytest.mark.ruling("L1")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/shop.git", "acme/shop"),
        ("https://github.com/acme/shop", "acme/shop"),
        ("https://github.com/acme/shop/", "acme/shop"),
        ("https://ann:token@github.com/acme/shop.git", "acme/shop"),
        ("https://www.GitHub.com/Acme/shop.js.git", "Acme/shop.js"),
        ("https://github.com:443/acme/shop.git", "acme/shop"),
        ("http://github.com/acme/shop.git", "acme/shop"),
        ("git://github.com/acme/shop.git", "acme/shop"),
        ("ssh://git@github.com/acme/shop.git", "acme/shop"),
        ("ssh://git@ssh.github.com:443/acme/shop.git", "acme/shop"),
        ("git+ssh://git@github.com/acme/shop.git", "acme/shop"),
        ("git@github.com:acme/shop.git", "acme/shop"),
        ("git@github.com:/acme/shop.git", "acme/shop"),
        ("github.com:acme/shop", "acme/shop"),
        (" git@github.com:acme/shop.git\n", "acme/shop"),
        ("git@github.com:acme/.github", "acme/.github"),
        ("https://gitlab.com/acme/shop.git", ""),
        ("https://github.com.example.org/acme/shop.git", ""),
        ("https://notgithub.com/acme/shop.git", ""),
        ("git@gitlab.com:acme/shop.git", ""),
        ("https://example.org/github.com/acme/shop", ""),
        ("https://github.com/acme", ""),
        ("https://github.com/acme/shop/tree/main", ""),
        ("https://github.com/acme/..", ""),
        ("https://github.com/-x/shop", ""),
        ("https://github.com/acme/sh op", ""),
        ("/srv/git/acme/shop.git", ""),
        ("../shop", ""),
        ("file:///srv/github.com/acme/shop", ""),
        ("ext::sh -c evil github.com:acme/shop", ""),
        ("https://[github.com/acme/shop", ""),
        ("", ""),
    ],
)
def test_of_github_itself(url: str, name: str) -> None:
    assert github_of_remote(url) == name


def test_another_host_is_asked_for_by_name() -> None:
    for url in ("https://git.acme.example/web/shop.git", "git@GIT.acme.example:web/shop.git"):
        assert github_of_remote(url, "git.acme.example") == "web/shop"
        assert github_of_remote(url) == ""
    assert github_of_remote("https://github.com/acme/shop", "git.acme.example") == ""


def test_origin_comes_first_and_then_the_others_by_name() -> None:
    fork, ours = "git@github.com:ann/shop", "git@github.com:acme/shop"
    assert github_of_remotes({"a": ours, "origin": fork}) == "ann/shop"
    assert github_of_remotes({"z": fork, "upstream": ours, "origin": "/srv/shop"}) == "acme/shop"
    assert github_of_remotes({"origin": "/srv/shop"}) == github_of_remotes({}) == ""


def test_what_is_fetched_from_is_the_remote_of_that_name() -> None:
    known = {"origin": "git@github.com:ann/shop", "upstream": "https://github.com/Acme/Shop.git"}
    assert remote_of(known, "acme/shop") == "upstream"
    assert remote_of({"origin": "git@gh-work:acme/shop"}, "acme/shop") == "origin"
    assert remote_of({"mirror": "/srv/shop"}, "acme/shop") is None
    assert remote_of(known, "else/where") is None, "the fork has a pull request of that number too"


@pytest.mark.parametrize("name", ["acme/shop", "a/b", "a_b/c", "acme/.github", "acme/a..b"])
def test_names_that_are_taken(name: str) -> None:
    assert is_github_name(name)


@pytest.mark.parametrize("name", ["", "acme", "acme/", "/shop", "acme/..", "acme/.", "-a/b", "a/b/c", "a/b\n", "a/ b"])
def test_names_that_are_not(name: str) -> None:
    assert not is_github_name(name)
