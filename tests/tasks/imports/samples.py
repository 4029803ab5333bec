"""What the public sample exports beside the project (`../shared/data`) hold, counted by hand."""

SAMPLES = {
    # file: format, roles of each conversation, first user texts begin so, messages with a time, broken
    "chatgpt_modern_export.json": (
        "chatgpt",
        "uaua ua",
        ["How do I roll back", "Something with anchovies?"],
        6,
        1,
    ),
    "chatgpt_schema_synthetic.json": ("chatgpt", "uaa", ["I need to implement a function"], 3, 0),
    "claude_export_small.json": (
        "claude",
        "ua uaua",
        ["Hello, Claude!", "Can you help me with Python?"],
        6,
        0,
    ),
    "claude_sample_debugging.json": ("claude", "uaua", ["I'm getting an error in my Python code."], 4, 0),
    "openwebui_export.json": (
        "openwebui",
        "uta ucra ua",
        ["What is 15 * 17?", "What's the weather", "Hello"],
        9,
        0,
    ),
    "oasst_trees_10.jsonl": (
        "oasst",
        "ua uaua uaua uau uau uau ua uaua uau uaua",
        ["How can I find the best 401k plan", "How to protect my eyes", "What differences are there"],
        0,
        0,
    ),
    "sharegpt_dummy_60.json": (
        "sharegpt",
        " ".join(["uaua ua uauaua"] * 20),
        ["Who are you?", "Who are you?", "What is up?"],
        0,
        0,
    ),
}
LETTERS = {
    "user_message": "u",
    "assistant_message": "a",
    "tool_call": "c",
    "tool_result": "r",
    "reasoning": "t",
}
TIMES = {
    "6b0f0d9c-0000-4000-8000-000000000001": (
        "2025-08-24T01:46:40.123456+00:00",
        "2025-08-24T01:53:20.654321+00:00",
    ),
    "6b0f0d9c-0000-4000-8000-000000000003": ("2025-08-24T02:03:20+00:00", "2025-08-24T02:05:00+00:00"),
    "synthetic-3248 synthetic-3248 synthe": (
        "2024-10-27T10:13:26.957199+00:00",
        "2023-11-09T15:26:15.607794+00:00",
    ),
    "test-conv-1": ("2024-12-01T10:00:00+00:00", "2024-12-01T10:15:00+00:00"),
    "test-conv-2": ("2024-12-02T14:00:00+00:00", "2024-12-02T14:30:00+00:00"),
    "sample-debug": ("2024-01-13T15:00:00+00:00", "2024-01-13T15:45:00+00:00"),
    "reasoning-chat": ("2023-11-14T22:13:20+00:00", "2023-11-14T22:13:30+00:00"),
    "tool-chat": ("2023-11-14T22:30:00+00:00", "2023-11-14T22:30:20+00:00"),
    "simple-chat": ("2023-11-14T22:46:40+00:00", "2023-11-14T22:46:45+00:00"),
}
