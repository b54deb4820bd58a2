"""Tables, pictures and pages: what people read of results.

Takes: linear models, families, points, motions, verifications.
Returns: text, figures, HTML.
Does not depend on: the command line.
"""
