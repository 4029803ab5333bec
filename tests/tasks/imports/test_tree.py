"""tree: which branch is the active one."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tasks.imports.tree import active_branch


def branch(
    parents: Mapping[str, str | None],
    current: object = None,
    times: Mapping[str, int] | None = None,
    hidden: str = "",
) -> str:
    found = active_branch(
        parents,
        current,
        lambda node: node not in hidden,
        lambda node: datetime(2026, 1, times[node], tzinfo=UTC) if times and node in times else None,
    )
    return "".join(found)


def test_the_branch_runs_from_the_named_leaf_up() -> None:
    assert branch({"a": None, "b": "a", "c": "b", "d": "a"}, "c") == "abc"


def test_without_a_known_leaf_the_newest_branch_is_taken() -> None:
    parents = {"a": None, "b": "a", "c": "b", "d": "a"}
    for missing in (None, "gone", 7, []):
        assert branch(parents, missing, {"a": 1, "b": 2, "c": 3, "d": 4}) == "ad"


def test_without_times_the_longest_branch_is_taken_and_of_equals_the_last() -> None:
    assert branch({"a": None, "b": "a", "c": "b", "d": "a"}) == "abc"
    assert branch({"a": None, "b": "a", "c": "a"}) == "ac"


def test_a_leaf_with_nothing_usable_above_it_is_not_taken() -> None:
    assert branch({"x": None, "a": None, "b": "a"}, "x", hidden="x") == "ab"


def test_several_roots_are_several_trees() -> None:
    assert branch({"a": None, "b": "a", "r": None, "s": "r", "t": "s"}, "b") == "ab"
    assert branch({"a": None, "b": "a", "r": None, "s": "r", "t": "s"}) == "rst"


def test_a_cycle_is_cut_where_it_closes() -> None:
    assert branch({"a": "c", "b": "a", "c": "b"}, "c") == "abc"
    assert sorted(branch({"a": "b", "b": "a", "c": "b"})) == ["a", "b", "c"]


def test_a_parent_that_is_not_there_is_a_root() -> None:
    assert branch({"a": "gone", "b": "a"}, "b") == "ab"


def test_a_tree_of_a_hundred_thousand_levels_is_walked_without_recursion() -> None:
    parents: dict[str, str | None] = {"0": None} | {str(n): str(n - 1) for n in range(1, 100_000)}
    for current in ("99999", None):
        found = active_branch(parents, current, lambda _: True, lambda _: None)
        assert len(found) == 100_000
        assert found[0] == "0"


def test_nothing_gives_nothing() -> None:
    assert branch({}, "a") == ""


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefghx")),
    st.sampled_from("abx"),
)
def test_any_links_give_a_path_without_repetition(parents: dict[str, str | None], current: str) -> None:
    found = branch(parents, current)
    assert len(set(found)) == len(found)
    assert bool(found) == bool(parents)
    assert all(parents[below] == above for above, below in itertools.pairwise(found))
