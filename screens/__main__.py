"""`python -m screens [--to FOLDER] [NAME…]`: makes the pictures of docs/screens, or those named, anew.

Engines of their own in a temporary folder, the app on a loopback socket with its clock at `demo.MOMENT`, Debian's
Chromium. A picture has at most 128 colours, so that it stays small. Ends with 1 when one is larger than `SIZE_MAX`.
"""

from __future__ import annotations

import argparse
import io
import logging
import re
import secrets
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import time_machine
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from sqlalchemy.orm import Session
from werkzeug.serving import make_server

from models import accounts, migrations, sign_ins
from models.settings import load
from screens import demo
from screens.shots import SHOTS, Ids, Shot
from tasks import logs
from tasks.embedded import running_engines
from tasks.resources import Resources, open_resources
from tasks.store import make_store

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screens"
CHROMIUM = next(
    (path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None
)
COLOURS, SIZE_MAX = 128, 60_000
WIDE, PHONE = (1160, 760), (360, 740)


def main() -> int:
    """Takes what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m screens", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures to make; none means all")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder that they go into")
    given = parser.parse_args()
    unknown = set(given.names) - {shot.name for shot in SHOTS}
    if unknown:
        parser.error(f"there is no picture {sorted(unknown)[0]}")
    wanted = [shot for shot in SHOTS if not given.names or shot.name in given.names]
    logs.configure(logging.ERROR)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    given.to.mkdir(parents=True, exist_ok=True)
    sizes = []
    with stage() as (address, held, ids), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for shot in wanted:
            picture = small(take(browser, address, held, ids, shot))
            (given.to / f"{shot.name}.png").write_bytes(picture)
            sizes.append(len(picture))
            print(f"{shot.name:24} {len(picture) / 1000:6.1f} kB", flush=True)
        browser.close()
    return 0 if max(sizes) <= SIZE_MAX else 1


@contextmanager
def stage() -> Iterator[tuple[str, Resources, Ids]]:
    """The app with Ada's history: its address, its open ends, and the ids of her conversations."""
    with tempfile.TemporaryDirectory(prefix="allgone-screens-") as folder:
        settings = load({"ALLGONE_DATA_DIR": folder, "PUBLIC_URL": "http://localhost"})
        with running_engines(settings, {"fsync": "off"}):
            held = open_resources(settings)
            migrations.upgrade(held.engine)
            make_store(held.engine, settings)
            with Session(held.engine) as db, db.begin():
                owner = accounts.create_user(db, "ada@example.com", secrets.token_bytes(32)).owner
                accounts.create_user(db, "new@example.com", secrets.token_bytes(32))
            ids = demo.fill(held, owner)
            with time_machine.travel(demo.MOMENT, tick=True):
                app = import_module("app").create_app(settings)
                server = make_server("127.0.0.1", 0, app, threaded=True)
                thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
                thread.start()
                yield f"http://127.0.0.1:{server.server_port}", held, ids
                server.shutdown()
                server.server_close()
                thread.join(10)
                close(app.extensions["allgone"])
            close(held)


def take(browser: Browser, address: str, held: Resources, ids: Ids, shot: Shot) -> bytes:
    """Reaches the state in a window of its own, and takes its picture."""
    width, height = PHONE if shot.phone else WIDE
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=1,
        has_touch=shot.phone,
        is_mobile=shot.phone,
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
        timezone_id="Europe/Oslo",
    )
    context.set_default_timeout(10_000)
    page = context.new_page()
    page.clock.set_fixed_time(demo.MOMENT)
    if shot.who:
        page.goto(f"{address}/sign-in/{link(held, f'{shot.who}@example.com')}")
        settle(page)
    page.goto(address + re.sub(r"\{([^}]*)\}", lambda named: ids[named[1]], shot.path))
    settle(page)
    if shot.reach:
        shot.reach(page, ids)
    page.evaluate("() => document.fonts.ready")
    picture = page.screenshot(animations="disabled", caret="hide")
    context.close()
    return picture


def settle(page: Page) -> None:
    """Waits until no request is under way."""
    page.wait_for_load_state("networkidle")


def small(picture: bytes) -> bytes:
    """The picture with few colours: a screen of flat grounds and text loses nothing that the eye would miss."""
    image: Any = Image.open(io.BytesIO(picture)).convert("RGB")
    out = io.BytesIO()
    image.quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def link(held: Resources, email: str) -> str:
    """The secret of a fresh sign-in link."""
    secret = secrets.token_urlsafe(32)
    with Session(held.engine) as db, db.begin():
        sign_ins.create_link(db, accounts.user_named(db, email), secret)
    return secret


def close(held: Resources) -> None:
    """Lets go of every connection."""
    held.engine.dispose()
    held.reader.dispose()
    held.redis.close()


if __name__ == "__main__":
    sys.exit(main())
