"""What the product costs, against a floor that is measured beside it; `python -m benchmarks` runs all.

    __main__  →  history, serving, streaming, appending, deletion, draining, importing  →  ground, rounds  →  figures
    serving   →  server (the product with no-op routes beside it), driver (the load, a process of its own)
    streaming →  serving (its server and tokens)

A machine's speed is in no figure: each is a ratio of medians of rounds that took turns in one run, or a count. So
a busy machine blurs a figure and does not move it. Streaming alone is in milliseconds, for a reader waits in those.
Nothing here is part of the test suite.
"""
