"""What the product costs, against a floor that is measured beside it; `python -m benchmarks` runs all.

    __main__  →  history, serving, deletion, draining, importing  →  ground, rounds  →  figures
    serving   →  server (the product with no-op routes beside it), driver (the load, a process of its own)

A machine's speed is in no figure: each is a ratio of medians of rounds that took turns in one run, or a count. So
a busy machine blurs a figure and does not move it. Nothing here is part of the test suite.
"""
