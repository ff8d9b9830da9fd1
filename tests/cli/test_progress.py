"""Progress is a bar on a terminal and plain lines elsewhere."""

import io

from dp_halfspace._cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drive(stream):
    progress = Progress(4, stream)
    progress.start("first")
    for _ in range(3):
        progress.step()
    progress.start("second")
    progress.step()
    return stream.getvalue()


def test_plain_lines():
    assert drive(io.StringIO()) == ("0/4 fits done, now: first\n3/4 fits done, now: second\n")


def test_bar_moves_in_place_and_vanishes():
    text = drive(Terminal())
    assert "\n" not in text
    assert text.endswith("\r\x1b[K")
    frames = text.split("\r\x1b[K")
    assert frames[1] == "[" + "-" * 30 + "] 0/4 first"
    assert frames[-2] == "[" + "#" * 22 + "-" * 8 + "] 3/4 second"
