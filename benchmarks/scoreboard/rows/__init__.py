"""One published number per file. The shortest is ``pendulum.py``: copy that."""
