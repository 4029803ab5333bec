"""Processes that are ours: ended with all they made, logged within bounds."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from models.errors import Misconfigured
from tasks.children import Child, Command, bound_log, vanished
from tests.tasks.stand_in import ROOT, eventually

FAMILY = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgrp()
    if os.fork() == 0: os.setsid()
time.sleep(3600)
"""


def _python(name: str, code: str, *stop: tuple[int, float]) -> Command:
    return Command(name, (sys.executable, "-c", code), stop=stop or ((signal.SIGTERM, 2.0),))


def _family(child: Child) -> list[psutil.Process]:
    return eventually(lambda: len(below := child.process.children(recursive=True)) == 2 and below)


def test_an_end_takes_children_in_other_groups_and_sessions_along(tmp_path: Path) -> None:
    child = Child(_python("one", FAMILY, (signal.SIGTERM, 0.1)), tmp_path)
    below = _family(child)
    child.end()
    assert child.ended() == -signal.SIGKILL
    assert all(vanished(one) for one in below)


def test_what_a_killed_process_left_in_its_session_is_ended_too(tmp_path: Path) -> None:
    child = Child(_python("one", FAMILY), tmp_path)
    below = _family(child)
    os.kill(child.process.pid, signal.SIGKILL)
    assert eventually(lambda: child.ended() is not None)
    child.end()
    assert [one for one in below if not vanished(one) and os.getsid(one.pid) == child.process.pid] == []
    for one in below:
        if not vanished(one):
            one.kill()


def test_an_end_is_gentle_first_and_as_long_as_asked(tmp_path: Path) -> None:
    code = "import signal, sys, time\nsignal.signal(2, lambda *_: sys.exit(7))\nprint('up', flush=True)\ntime.sleep(60)"
    child = Child(_python("one", code, (signal.SIGINT, 5.0)), tmp_path)
    assert eventually(lambda: child.log.read_text() == "up\n")
    started = time.monotonic()
    child.end()
    assert child.ended() == 7
    assert time.monotonic() - started < 3
    child.end()  # twice is no harm


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux alone tells a child")
def test_the_kernel_ends_a_child_whose_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from tasks.children import Child, Command\n"
        "child = Child(Command('one', ('sleep', '60')), Path(sys.argv[1]))\n"
        "print(child.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert not vanished(child)
    parent.kill()
    parent.wait()
    assert eventually(lambda: vanished(child), 3)


def test_a_log_is_the_owners_alone_and_its_last_words_tell(tmp_path: Path) -> None:
    (tmp_path / "one.log").write_text("FATAL: an older start\n")
    code = "print('starting'); print('FATAL: no space'); print('bye'); raise SystemExit(3)"
    child = Child(_python("one", code), tmp_path)
    assert eventually(lambda: child.ended() == 3)
    assert child.last_words() == "FATAL: no space"
    silent = Child(_python("one", "pass"), tmp_path)
    assert eventually(lambda: silent.ended() == 0)
    assert silent.last_words() == "it said nothing"
    fresh = Child(_python("two", "pass"), tmp_path)
    assert stat.S_IMODE(fresh.log.stat().st_mode) == 0o600
    fresh.end()


def test_a_log_that_grew_is_cut_while_it_is_written(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    code = "import sys\nfor line in sys.stdin: print(line * 100, end='', flush=True)"
    reading, writing = os.pipe()
    child = Child(Command("one", (sys.executable, "-c", code), stdin=reading), tmp_path)
    os.close(reading)
    os.write(writing, b"early\n")
    assert eventually(lambda: log.stat().st_size == 600)
    bound_log(log, 100)
    assert log.stat().st_size == 0
    assert (tmp_path / "one.log.1").read_text() == ("early\n" * 17)[-100:]
    os.write(writing, b"later\n")
    assert eventually(lambda: log.stat().st_size == 600)
    assert log.read_text().startswith("later\n")
    os.close(writing)
    child.end()


def test_a_command_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"^one cannot be started: .*No such file"):
        Child(Command("one", ("/no/such/program",)), tmp_path)
