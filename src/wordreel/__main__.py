"""`python -m wordreel`: the command line without an installed script."""

from wordreel.cli import main

main()
