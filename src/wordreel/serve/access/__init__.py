"""Who may ask what: hosts, origins, tokens, sessions, rates and sizes."""
