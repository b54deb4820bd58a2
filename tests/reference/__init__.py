"""The linear models of all reference systems, as the first house computed them: a table that later ones must pass."""
