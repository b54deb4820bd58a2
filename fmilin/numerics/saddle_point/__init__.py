"""Linear systems for accelerations and multipliers: one interface, its dense and sparse members, one refusal."""
