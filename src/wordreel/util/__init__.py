"""Small things that every package uses."""
