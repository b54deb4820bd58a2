"""The one interface that every source answers."""
