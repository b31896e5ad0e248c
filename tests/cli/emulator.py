"""A terminal emulator, as far as the command line needs one: two screens, a cursor, wrapping and scrolling lines."""

import re

_SEQUENCE = re.compile(r"\x1b\[(\??)([\d;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\r\n\b])|(\x1b)")


class Emulator:
    """The screen as a person sees it, and the lines that have scrolled away."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.scrolled: list[str] = []
        """Lines that have scrolled off the normal screen."""
        self.cursor, self.wraps, self.alternate = True, True, False
        self.entered = 0
        """Number of times the alternate screen was entered."""
        self._usual: tuple[list[str], int, int] = ([], 0, 0)
        self._rows = [""] * lines
        self._row = self._column = 0
        self._rest = ""

    @property
    def shown(self) -> list[str]:
        """Return the lines of the screen."""
        return [row.rstrip() for row in self._rows]

    @property
    def everything(self) -> list[str]:
        """Return the normal screen and its scrollback, without the empty end."""
        rows = self._usual[0] if self.alternate else self._rows
        lines = [row.rstrip() for row in [*self.scrolled, *rows]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def feed(self, text: str) -> None:
        """Process a program's output. An incomplete escape sequence waits for its rest."""
        text = self._rest + text
        cut = text.rfind("\x1b")
        whole = cut < 0 or (match := _SEQUENCE.match(text, cut)) is None or not match[5]
        text, self._rest = (text, "") if whole else (text[:cut], text[cut:])
        at = 0
        for match in _SEQUENCE.finditer(text):
            self._write(text[at : match.start()])
            at = match.end()
            self._do(match)
        self._write(text[at:])

    def resize(self, columns: int, lines: int) -> None:
        """Resize the window: surplus lines leave at the top, unless there are empty lines below."""
        while len(self._rows) > max(lines, self._row + 1) and not self._rows[-1]:
            self._rows.pop()
        while len(self._rows) > lines:
            gone = self._rows.pop(0)
            self._row = max(0, self._row - 1)
            if not self.alternate:
                self.scrolled.append(gone)
        self._rows += [""] * (lines - len(self._rows))
        self.columns, self.lines = columns, lines

    def _do(self, match: re.Match[str]) -> None:
        private, number, kind, control = match[1], match[2] or "", match[3], match[4]
        if control:
            self._control(control)
        elif private:
            self._mode(number, on=kind == "h")
        elif kind == "H":
            row, _, column = number.partition(";")
            self._row, self._column = min(int(row or 1), self.lines) - 1, int(column or 1) - 1
        elif kind == "A":
            self._row = max(0, self._row - int(number or 1))
        elif kind == "K":
            self._rows[self._row] = self._rows[self._row][: self._column]
        elif kind == "J":
            self._rows[self._row] = self._rows[self._row][: self._column]
            self._rows[self._row + 1 :] = [""] * (self.lines - self._row - 1)
        else:
            assert kind in {"m", None}, match[0]

    def _control(self, control: str) -> None:
        if control == "\n":
            self._down()
        self._column = 0 if control == "\r" else max(0, self._column - (control == "\b"))

    def _mode(self, number: str, *, on: bool) -> None:
        if number == "1049" and on != self.alternate:
            self.alternate, self.entered = on, self.entered + on
            mine = (self._rows, self._row, self._column)
            self._rows, self._row, self._column = ([""] * self.lines, 0, 0) if on else self._usual
            self._usual = mine if on else self._usual
            self.resize(self.columns, self.lines)
        elif number == "25":
            self.cursor = on
        elif number == "7":
            self.wraps = on

    def _write(self, text: str) -> None:
        for letter in text:
            if self._column >= self.columns:
                if not self.wraps:
                    continue
                self._down()
                self._column = 0
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + letter + row[self._column + 1 :]
            self._column += 1

    def _down(self) -> None:
        if self._row < self.lines - 1:
            self._row += 1
            return
        gone = self._rows.pop(0)
        self._rows.append("")
        if not self.alternate:
            self.scrolled.append(gone)
