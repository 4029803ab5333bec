"""Conversations out, one or all, as JSON that other tools read and as Markdown (docs/exporting.md).

| module | knows |
|---|---|
| `told` | one conversation read page by page, whole or not at all |
| `chatgpt` | PURE: the shape of ChatGPT's conversations.json |
| `markdown` | PURE: the same to be read by people |
| `names` | PURE: names of files that every system takes |
| `everything` | the ZIP of a whole history, in constant memory |
"""
