"""The house's own rules: one-way imports, small modules, documented verbs, the sixteen routes and no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from flask import Flask

from blueprints.errors import STATUS
from models.accounts import SCOPES
from models.settings import OURS, SECRETS

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("blueprints", "models", "relay", "tasks")
MODULES = sorted([ROOT / "app.py", *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))])
NO_ROOM_NAMES = {
    "utils",
    "util",
    "helpers",
    "helper",
    "common",
    "services",
    "service",
    "manager",
    "core",
    "misc",
}
LINES = 300

# PRODUCT.md 3.1: these sixteen under /v1, beside the document that describes them.
CENSUS = {
    ("POST", "/v1/sessions"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/<session_id>"),
    ("DELETE", "/v1/sessions/<session_id>"),
    ("GET", "/v1/sessions/<session_id>/events"),
    ("POST", "/v1/sessions/<session_id>/runs"),
    ("GET", "/v1/runs/<run_id>"),
    ("POST", "/v1/runs/<run_id>/events"),
    ("POST", "/v1/runs/<run_id>/cancel"),
    ("GET", "/v1/approvals"),
    ("POST", "/v1/approvals/<approval_id>/decision"),
    ("POST", "/v1/sessions/<session_id>/artifacts"),
    ("GET", "/v1/artifacts/<artifact_id>"),
    ("GET", "/v1/memories"),
    ("POST", "/v1/memories"),
    ("DELETE", "/v1/memories/<memory_id>"),
}
UNCOUNTED = {("GET", "/v1/openapi.json"), ("GET", "/v1/docs")}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def public(module: ast.Module) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """The public functions of a module, and whether each is a method."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node, False
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith(
                    "_"
                ):
                    yield inner, True


# -- imports -------------------------------------------------------------------------------------------------


def test_every_import_goes_the_houses_way() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


def test_each_room_is_laid_out_whole() -> None:
    """A new file has no place until someone gives it one."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    inside = {room for one in contracts if one.get("exhaustive") for room in one["containers"]}
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in MODULES
        if path.name == "__init__.py" and len(list(path.parent.glob("*.py"))) > 5
    }
    assert packages <= inside | {"blueprints.commands"}


def test_nobody_imports_the_app() -> None:
    for path in [*MODULES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module or "")
            assert not any(name == "app" or name.startswith("app.") for name in names), name_of(path)


# -- modules -------------------------------------------------------------------------------------------------


def test_no_module_has_a_name_that_says_nothing() -> None:
    for path in MODULES:
        parts = {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
        assert parts.isdisjoint(NO_ROOM_NAMES), name_of(path)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_begins_with_its_map_and_documents_its_verbs(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LINES
    module = tree(path)
    assert ast.get_docstring(module), "the head of a module is its map"
    undocumented = [
        node.name for node, method in public(module) if not method and not ast.get_docstring(node)
    ]
    assert undocumented == []
    for node, method in public(module):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        untyped = [one.arg for one in arguments if one.annotation is None]
        if method and untyped[:1] in (["self"], ["cls"]):
            untyped = untyped[1:]
        assert (untyped, node.returns is not None) == ([], True), node.name


def test_half_of_the_modules_fit_on_a_page_or_two() -> None:
    lengths = sorted(len(path.read_text("utf-8").splitlines()) for path in MODULES)
    assert lengths[len(lengths) // 2] <= 120


def test_no_verb_of_the_models_ends_a_transaction() -> None:
    """Only edges do; a migration is its own edge, and so is the store of a device, whose two files need two commits."""
    for path in (ROOT / "models").rglob("*.py"):
        if path.name == "migrations.py" or path == ROOT / "models" / "memorystore" / "store.py":
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"commit", "begin", "begin_nested"}, name_of(path)


def test_events_are_written_and_conversations_removed_in_one_place_each() -> None:
    """ADR-0050: one verb appends, one function deletes, whoever asks."""
    writers = {"Event": "append.py", "Tombstone": "purge.py"}
    for path in (ROOT / "models").rglob("*.py"):
        text = path.read_text("utf-8")
        for table, home in writers.items():
            if path.name not in (home, "replay.py"):
                assert not re.search(rf"\binsert\({table}\)", text), name_of(path)
        if path.name != "purge.py":
            assert not re.search(r"\bdelete\(Conversation\)", text), name_of(path)
        assert not re.search(r"insert\(Conversation\).*\n.*on_conflict_do_update", text), name_of(path)


# -- what is promised outside --------------------------------------------------------------------------------


def routes(app: Flask) -> set[tuple[str, str]]:
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.rule.startswith("/v1")
    }


def test_v1_has_the_sixteen_routes_and_no_other(app: Flask) -> None:
    assert len(CENSUS) == 16
    assert routes(app) == CENSUS | UNCOUNTED


def documented(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def test_every_setting_has_its_heading() -> None:
    headings = set(re.findall(r"^### `([A-Z_]+)`", documented("settings.md"), re.MULTILINE))
    assert set(OURS) <= headings
    for name in SECRETS:
        assert f"`{name}_FILE`" in documented("settings.md")


def test_every_route_scope_and_code_is_in_the_page_of_the_api(app: Flask) -> None:
    page = documented("api.md")
    for method, rule in routes(app) - UNCOUNTED:
        assert f"{method} {rule.replace('<', '{').replace('>', '}')}" in page
    for code in STATUS:
        assert f"`{code}`" in page
    for scope in SCOPES:
        if scope in ("session.read", "session.write"):
            assert scope in page


def test_every_command_is_in_the_page_of_the_commands(app: Flask) -> None:
    page = documented("commands.md")

    def walk(group: click.Group, before: str) -> Iterator[str]:
        for name, command in group.commands.items():
            if isinstance(command, click.Group):
                yield from walk(command, f"{before}{name} ")
            else:
                yield before + name

    flasks_own = {"run", "shell", "routes"}
    for command in walk(app.cli, ""):
        if command not in flasks_own:
            assert command in page, command


def test_every_module_is_in_the_picture_of_the_house() -> None:
    """ARCHITECTURE.md is the twin of the code; a module's row may stand for its folder."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    for path in (ROOT / "models").glob("*.py"):
        if path.name != "__init__.py":
            assert f"models/{path.name}" in page, name_of(path)
