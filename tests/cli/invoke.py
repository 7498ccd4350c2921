"""Run verbs; errors that the program would print come back as they are."""

import json

from typer.testing import CliRunner

from wordreel.cli.app import app


def invoke(*words):
    """Whatever comes of it."""
    return CliRunner().invoke(app, [str(word) for word in words])


def shell(*words, code=0):
    """What comes of it if it ends with this exit status."""
    result = invoke(*words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def shell_json(*words):
    return json.loads(shell(*words, "--json").stdout)
