"""Where memories are kept, with what was deleted of them: one set of verbs, whose rules are those of `models/rules.py`.

A device keeps two SQLite files (`opening`). Home's tables are those of `models/memories.py`; the verbs here name
nothing that PostgreSQL lacks, so that home takes its seat over them, too.
"""
