"""What leaves the program: files of every format, tables, pictures, pages.

Enters: linear models, families, trajectories, verifications, discoveries.
Leaves: bytes, text, figures, HTML.
Does not know: the command line.
"""
