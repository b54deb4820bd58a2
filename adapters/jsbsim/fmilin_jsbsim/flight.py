"""Trims of flight in words: straight flight and coordinated turns as arguments of :func:`fmilin.trim`."""
