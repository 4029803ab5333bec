"""As whom PostgreSQL runs when we are root, which it refuses to be.

| we are | it runs as | its files are |
|---|---|---|
| an ordinary user | us (without a name in a container: as `nobody`, in a namespace) | ours |
| root, user namespaces allowed | `nobody` in a namespace of its own; outside root, powerless | root's |
| root, namespaces refused (Docker's seccomp) | system user `allgone-postgres`, made once | that user's |

The first two leave the data folder at 0700. The third needs 0711 on it, so that its user can pass to its own
two folders; then whatever else lies directly inside is set to owner-only. No parent's mode is ever changed: a
parent that cannot be passed is answered with a way out.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from models.errors import Misconfigured

USER = "allgone-postgres"
_WAY_OUT = "set ALLGONE_DATA_DIR to another folder, run Allgone as an ordinary user, or set DATABASE_URL"


@dataclass(frozen=True)
class Runner:
    """`prefix` goes before an argv; `user` is the (uid, gid) that runs it and owns its files, None: we."""

    prefix: tuple[str, ...] = ()
    user: tuple[int, int] | None = None


def runner(data_dir: Path, binary: Path) -> Runner:
    """The way to run `binary` on folders inside `data_dir`, tried out.

    Raises Misconfigured, with a way out in one line, when there is none.
    """
    if os.geteuid() != 0:
        # initdb wants a name, which a container's uid may lack.
        return Runner() if _named(os.geteuid()) else _in_namespace() or Runner()
    chosen = _in_namespace() or Runner(user=_system_user())
    if chosen.user:
        _let_pass(data_dir)
    uid, gid = chosen.user or (None, None)
    script = 'cd -- "$1" && exec "$2" --version'
    probe = subprocess.run(
        [*chosen.prefix, "/bin/sh", "-c", script, "sh", str(data_dir), str(binary)],
        capture_output=True,
        cwd="/",
        check=False,
        user=uid,
        group=gid,
        extra_groups=None if uid is None else [],
    )
    if probe.returncode != 0:
        raise Misconfigured(f"PostgreSQL, which may not run as root, cannot pass to {data_dir}: {_WAY_OUT}")
    return chosen


def take(tree: Path, owner: tuple[int, int] | None) -> None:
    """As root, give `tree` to `owner` (None: root) where it was made in the other way; follows no link.

    Raises Misconfigured when it belongs to a third: an ordinary user's data is not taken from him.
    """
    if os.geteuid() != 0:
        return
    uid, gid = owner or (0, 0)
    found = tree.lstat().st_uid
    if found == uid:
        return
    if found not in {0, known_uid()}:
        raise Misconfigured(f"ALLGONE_DATA_DIR: {tree} belongs to uid {found}: run Allgone as that user")
    for folder, _, files in os.walk(tree):
        for path in (folder, *(os.path.join(folder, name) for name in files)):  # noqa: PTH118  os.walk gives text
            os.chown(path, uid, gid, follow_symlinks=False)


def _in_namespace() -> Runner | None:
    unshare = shutil.which("unshare")
    if sys.platform != "linux" or unshare is None:
        return None
    prefix = (unshare, "--user", "--map-user=65534", "--map-group=65534")
    tried = subprocess.run([*prefix, "/bin/sh", "-c", "exit 0"], capture_output=True, check=False)
    return Runner(prefix) if tried.returncode == 0 else None


def known_uid() -> int | None:
    """The uid of `allgone-postgres`, None while there is no such user; only root may trust it."""
    try:
        return pwd.getpwnam(USER).pw_uid if os.geteuid() == 0 else None
    except KeyError:
        return None


def _named(uid: int) -> bool:
    try:
        return bool(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return False


def _system_user() -> tuple[int, int]:
    if known_uid() is None:
        useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        made = useradd and subprocess.run(
            [useradd, "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", USER],
            capture_output=True,
            check=False,
        )
        if not made or made.returncode != 0:
            raise Misconfigured(f"PostgreSQL may not run as root; no user {USER} can be made: {_WAY_OUT}")
    entry = pwd.getpwnam(USER)
    return entry.pw_uid, entry.pw_gid


def _let_pass(data_dir: Path) -> None:
    for path in data_dir.iterdir():
        if not path.is_symlink() and path.lstat().st_uid == 0:
            path.chmod(stat.S_IMODE(path.lstat().st_mode) & 0o700)
    data_dir.chmod(0o711)
