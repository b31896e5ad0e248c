"""Disk usage of files and folders: links are not followed out of a folder."""

from pathlib import Path

import pytest

from bridge.machine.sizes import sizes


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
