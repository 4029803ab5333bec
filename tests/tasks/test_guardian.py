"""The guardian: ends its wards when its standard input does, and nobody else."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
import psutil

from tasks.children import vanished
from tasks.guardian import ward
from tests.tasks.stand_in import ROOT, eventually

STOP = ((int(signal.SIGTERM), 0.2),)


@contextmanager
def _guardian() -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-m", "tasks.guardian"]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE) as one:
        yield one


@dataclass
class _Asleep:
    process: psutil.Popen

    def __init__(self, *argv: str) -> None:
        self.process = psutil.Popen(argv or ["sleep", "60"], start_new_session=True)


def test_it_ends_its_wards_and_goes(tmp_path: object) -> None:
    gentle, stubborn = _Asleep().process, _Asleep("sh", "-c", "trap '' TERM; sleep 60 & wait; wait").process
    below = eventually(stubborn.children)
    with _guardian() as guardian:
        assert guardian.stdin is not None
        guardian.stdin.write(ward(psutil.Process(gentle.pid), STOP))
        guardian.stdin.write(ward(psutil.Process(stubborn.pid), STOP))
        guardian.stdin.close()
        assert guardian.wait(5) == 0
        assert all(vanished(one) for one in (gentle, stubborn, *below))


def test_signals_do_not_end_it_before_its_time_and_strangers_are_left_alone() -> None:
    stranger, ours = _Asleep().process, _Asleep().process
    with _guardian() as guardian:
        assert guardian.stdin is not None
        told = orjson.loads(ward(psutil.Process(stranger.pid), STOP))
        guardian.stdin.write(orjson.dumps({**told, "born": told["born"] - 100}) + b"\n")
        guardian.stdin.write(b'{"pid": 4194304, "born": 1, "stop": [[15, 0.1]]}\n')
        guardian.stdin.write(ward(psutil.Process(ours.pid), STOP))
        guardian.stdin.flush()
        assert eventually(lambda: psutil.Process(guardian.pid).num_ctx_switches().voluntary > 0)
        guardian.stdin.close()
        assert guardian.wait(5) == 0
    assert vanished(ours)
    assert not vanished(stranger)
    stranger.kill()
    stranger.wait()
