"""The folder of a library: its SQLite catalogue, which holds all SQL, and its tracks."""
