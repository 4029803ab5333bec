"""What is true, whoever asks: pure rules, tables, and the verbs that change them.

No Flask request, no Redis, no socket and no clock of its own: time is an argument or the database's.
"""
