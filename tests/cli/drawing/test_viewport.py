"""Choice of the lines of a long view on a short screen."""

from cli.drawing.viewport import ViewRow, fit


def rows(*ranks: int, above: int | None = 0) -> list[ViewRow]:
    words = {0: "running", 1: "failed", 9: "succeeded"}
    return [ViewRow(f"├─ {place}", (rank,), words[rank], above if place else None) for place, rank in enumerate(ranks)]


def shown(rows: list[ViewRow]) -> list[str]:
    return [row.text.removeprefix("├─ ") for row in rows]


def test_all_that_fits_is_shown() -> None:
    many = rows(9, 0, 9)
    assert fit(many, 3) == many


def test_what_runs_or_failed_comes_first_and_gaps_are_counted() -> None:
    many = rows(9, *[9] * 40, 0, *[9] * 10, 1, *[9] * 30)
    assert shown(fit(many, 6)) == [
        "0",
        "│  … 40 more: 40 succeeded",
        "41",
        "│  … 10 more: 10 succeeded",
        "52",
        "│  … 30 more: 30 succeeded",
    ]


def test_room_that_is_left_goes_to_the_others() -> None:
    many = rows(9, *[9] * 20, 0)
    assert shown(fit(many, 6)) == ["0", "1", "2", "3", "│  … 17 more: 17 succeeded", "21"]


def test_never_more_lines_than_there_is_room_for() -> None:
    import random

    chance = random.Random(1)
    for _ in range(300):
        many = [
            ViewRow(f"{place}", (chance.choice([0, 1, 9]),), "x", chance.randrange(place) if place else None)
            for place in range(chance.randrange(1, 60))
        ]
        height = chance.randrange(30)
        rows = fit(many, height)
        assert len(rows) <= height
        if height:
            hidden = sum(int(row.text.split()[1]) for row in rows if row.text.startswith("…"))
            assert hidden + sum(not row.text.startswith("…") for row in rows) == len(many)
            assert "… 1 more" not in "\n".join(row.text for row in rows if len(many) > 1 < height)


def test_a_row_is_shown_with_those_above_it_where_there_is_room() -> None:
    many = [
        ViewRow("root", (9,)),
        ViewRow("├─ a", (9,), "", 0),
        ViewRow("│  └─ b", (9,), "", 1),
        ViewRow("└─ c", (9,), "", 0),
    ]
    many += [ViewRow("   └─ d", (0,), "", 3)]
    assert [row.text for row in fit(many, 4)] == ["root", "│  … 2 more", "└─ c", "   └─ d"]
    assert [row.text for row in fit(many, 2)] == ["… 4 more", "   └─ d"]
