"""Keep a library whole: verify, repair, back up, publish."""
