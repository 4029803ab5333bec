"""details: folded blocks within an answer."""

import time

from tasks.imports.details import Folded, pieces


def test_texts_and_folded_blocks_come_in_order() -> None:
    answer = (
        'Hi <details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n'
        "&gt; one &amp; two\n&gt; three\n</details>\nand "
        '<details type="tool_calls" id="k" name="run" arguments="&quot;{}&quot;" result="a &gt; b">'
        "<summary>Done</summary></details> bye"
    )
    assert list(pieces(answer)) == [
        "Hi",
        Folded("reasoning", {"done": "true", "duration": "3"}, "one & two\nthree"),
        "and",
        Folded("tool_calls", {"id": "k", "name": "run", "arguments": '"{}"', "result": "a > b"}, ""),
        "bye",
    ]


def test_the_authors_own_details_stay_text() -> None:
    answer = "<details><summary>More</summary>text</details> <details type='spoiler'>x</details>"
    assert list(pieces(answer)) == [answer]


def test_a_block_that_is_never_closed_reaches_to_the_end() -> None:
    assert list(pieces('<details type="reasoning" done="false">&gt; hm')) == [
        "",
        Folded("reasoning", {"done": "false"}, "hm"),
        "",
    ]


def test_many_blocks_cost_as_many_steps() -> None:
    began = time.perf_counter()
    assert len(list(pieces('<details type="reasoning">' * 50_000))) == 3
    assert len(list(pieces('<details type="reasoning" a="' * 50_000))) == 1
    assert time.perf_counter() - began < 5
