"""What files and folders take: no link leads out of a folder."""

from pathlib import Path

import pytest

from bridge.machine.sizes import sizes
from cli.sizes import size


@pytest.mark.ruling("engine:gc")
def test_a_folder_takes_what_is_in_it_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(b"x" * 100_000)
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_bytes(b"x" * 300)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    link = (folder / "link").lstat().st_size
    assert sum(sizes(folder)) == 300 + link
    assert sum(sizes(folder / "link")) == link
    assert sum(sizes(folder / "below" / "file")) == 300
    assert sum(sizes(tmp_path / "gone")) == 0


@pytest.mark.ruling("engine:gc")
@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_960, "10.0 kB"),
        (83_000, "83 kB"),
        (52_500_000_000, "52 GB"),
    ],
)
def test_bytes_are_told_in_the_largest_unit_that_fits(count: int, told: str) -> None:
    assert size(count) == told
