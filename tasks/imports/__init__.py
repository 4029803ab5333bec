"""Export files in, conversations out: reading is pure, writing is beside it.

    reading  →  formats  →  chatgpt, claude, openwebui, sharegpt, oasst  →  blocks, details, tree, transcript, files
    reading  →  archive, items  →  naming, window
    each of these  →  decoding, fields, moments, parsed  →  bounds

`reading.read_export(path)` is the door. Nothing in here knows a database, a clock or chance, and nothing is
unpacked to the file system.
"""
