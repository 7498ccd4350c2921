"""What verbs share: options, output, errors and progress on a terminal."""
