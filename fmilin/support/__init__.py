"""Help that every package may use: files written as a whole, encodings, interrupts, kinds of arguments.

Takes: paths, texts, arguments.
Returns: files that are never left half-written, errors in words.
Does not depend on: anything about models.
"""
