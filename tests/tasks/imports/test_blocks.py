"""blocks: content as the model APIs write it."""

import pytest

from tasks.imports.blocks import content_from, from_address, output_of


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        (["a", {"type": "input_text", "text": "b"}, {"type": "output_text", "text": "c"}, 7], "a\n\nb\n\nc"),
        (
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}],
            [("image", "image.png")],
        ),
        ([{"type": "input_image", "image_url": "https://x/y/cat.jpg?size=1"}], [("image", "cat.jpg")]),
        (
            [
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
                }
            ],
            [("file", "application.pdf")],
        ),
        ([{"type": "image", "name": "../cat.png"}], [("image", "cat.png")]),
        ([{"type": "image_url"}], [("image", "image")]),
        (None, ""),
        (7, ""),
    ],
)
def test_texts_and_blocks_are_one_content(value: object, content: object) -> None:
    found = content_from(value).value()
    assert (found if isinstance(found, str) else [(each["type"], each["name"]) for each in found]) == content


def test_an_output_that_is_neither_text_nor_blocks_is_kept_as_a_value() -> None:
    assert output_of({"n": 1})[1] == {"n": 1}
    assert output_of([1, 2])[1] == [1, 2]
    assert output_of("text")[1] is None
    assert output_of([{"type": "text", "text": "x"}])[0].value() == "x"


def test_nothing_is_fetched_from_an_address() -> None:
    found = from_address("https://example.com/a/b.png", "", "image/png")
    assert (found.name, found.open) == ("b.png", None)
