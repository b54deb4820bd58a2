"""Names for authors of adapters that have changed: the old ones work for one version."""

NEW_NAMES = {
    "GivenSlopes": "PointDerivatives",
    "additions_of": "find_additions",
    "cached_library": "read_cached_library",
    "side_of": "classify_side",
    "unknown_foot": "unknown_foot_error",
}
