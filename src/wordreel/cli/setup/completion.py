"""`wordreel completion`: scripts that complete verbs, options and files in a shell.

The scripts are complete in themselves: pressing Tab starts no program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

PROGRAM = "wordreel"


@dataclass(frozen=True)
class Verb:
    """A command by its words (`bank build`): what it does, its options with their help, the verbs inside."""

    path: tuple[str, ...]
    about: str
    options: dict[str, str]
    verbs: tuple[str, ...]


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell that you use.")],
) -> None:
    """Print a script that completes verbs, options and files.

    Examples:

      wordreel completion bash > ~/.local/share/bash-completion/completions/wordreel

      wordreel completion zsh > "${fpath[1]}/_wordreel"

      wordreel completion fish > ~/.config/fish/completions/wordreel.fish
    """
    typer.echo(SHELLS[shell](all_verbs()), nl=False)


def all_verbs() -> list[Verb]:
    """The program, every verb, and the verbs of groups."""
    from typer.main import get_command

    from wordreel.cli.app import app

    found: list[Verb] = []

    def walk(command: Any, path: tuple[str, ...]) -> None:
        inner = dict(getattr(command, "commands", {}))
        options = {"--help": "Show this message and exit."}
        for parameter in command.params:
            if parameter.param_type_name == "option":
                names = (*parameter.opts, *parameter.secondary_opts)
                options |= {name: parameter.help or "" for name in names if name.startswith("--")}
        about = (command.help or "").strip().partition("\n")[0]
        found.append(Verb(path, about, options, tuple(inner)))
        for name, one in inner.items():
            walk(one, (*path, name))

    walk(get_command(app), ())
    return found


def bash(verbs: list[Verb]) -> str:
    """`complete -F`: the verbs typed so far choose the words."""
    cases = "".join(
        f'        "{" ".join(verb.path)}") words="{" ".join((*verb.verbs, *sorted(verb.options)))}" ;;\n'
        for verb in verbs
    )
    groups = "|".join(verb.path[0] for verb in verbs if verb.path and verb.verbs)
    return f"""# bash completion for {PROGRAM}; made by `{PROGRAM} completion bash`
_{PROGRAM}() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" verb="" words="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in -*) continue ;; esac
        case "$verb" in
        "") verb="$word" ;;
        {groups}) verb="$verb $word"; break ;;
        *) break ;;
        esac
    done
    case "$verb" in
{cases}    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ ${{#COMPREPLY[@]}} -eq 0 ]; then
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _{PROGRAM} {PROGRAM}
"""


def zsh(verbs: list[Verb]) -> str:
    """`_describe` for verbs and options, `_files` for the rest."""
    about = {verb.path: verb.about for verb in verbs}
    cases = ""
    for verb in verbs:
        words = [(name, about[(*verb.path, name)]) for name in verb.verbs]
        words += sorted(verb.options.items())
        listed = " ".join(_quoted(f"{_escaped(name)}:{text}") for name, text in words)
        cases += f'    "{" ".join(verb.path)}") choices=({listed}) ;;\n'
    groups = "|".join(verb.path[0] for verb in verbs if verb.path and verb.verbs)
    return f"""#compdef {PROGRAM}
# made by `{PROGRAM} completion zsh`
_{PROGRAM}() {{
  local verb="" word
  local -a choices
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$word" in -*) continue ;; esac
    case "$verb" in
    "") verb="$word" ;;
    {groups}) verb="$verb $word"; break ;;
    *) break ;;
    esac
  done
  case "$verb" in
{cases}  esac
  _describe -o 'wordreel' choices || _files
}}
if [ "$funcstack[1]" = "_{PROGRAM}" ]; then _{PROGRAM} "$@"; else compdef _{PROGRAM} {PROGRAM}; fi
"""


def fish(verbs: list[Verb]) -> str:
    """One `complete` for each verb and each option."""
    lines = [f"# fish completion for {PROGRAM}; made by `{PROGRAM} completion fish`"]
    about = {verb.path: verb.about for verb in verbs}
    for verb in verbs:
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in verb.path)
        inner = " ".join(verb.verbs)
        before = f"not __fish_seen_subcommand_from {inner}" if inner else ""
        condition = "; and ".join(part for part in (seen, before) if part)
        for name in verb.verbs:
            text = _quoted(about[(*verb.path, name)])
            lines.append(f"complete -c {PROGRAM} -n {_quoted(condition)} -a {name} -d {text}")
        for option, text in sorted(verb.options.items()):
            given = f"-n {_quoted(seen or '__fish_use_subcommand')}"
            lines.append(f"complete -c {PROGRAM} {given} -l {option[2:]} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """In single quotes, which none of the texts may hold."""
    return "'" + text.replace("\\", "").replace("'", "’").replace("\n", " ") + "'"


def _escaped(name: str) -> str:
    return name.replace(":", "\\:")


SHELLS: dict[str, Callable[[list[Verb]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
