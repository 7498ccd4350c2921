"""`wordreel serve`."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.console.common import IndexOption, LibraryOption, counter, printable
from wordreel.errors import NextStep, WordreelError

if TYPE_CHECKING:
    from wordreel.library import Library
    from wordreel.serve.options import Options


def serve(
    library: LibraryOption,
    host: Annotated[
        str, typer.Option(help="The address to listen at; any other than loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8010,
    token_file: Annotated[
        Path | None, typer.Option(help="Where the hash of the token is stored; in the library by default.")
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Create a token, print it once, and exit.")
    ] = False,
    remove_token: Annotated[
        bool, typer.Option("--remove-token", help="Remove the token, so that loopback needs none, and exit.")
    ] = False,
    index: IndexOption = None,
    follow: Annotated[
        str | None,
        typer.Option(help="Serve a replica of the library published at this postgresql:// address."),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show and search, change nothing.")] = False,
    root: Annotated[
        list[Path] | None,
        typer.Option(help="A folder from which may be added; your home folder on loopback."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Another name of this server, as of a proxy; needs a token.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that serve; one for each core suits many users.")
    ] = 1,
    max_upload: Annotated[int, typer.Option(min=1, help="The largest upload, in MiB.")] = 4096,
    certificate: Annotated[Path | None, typer.Option(help="Serve https with this certificate (PEM).")] = None,
    key: Annotated[Path | None, typer.Option(help="The certificate's key (PEM).")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Search in the browser, and over HTTP.

    Example: wordreel serve --open
    """
    # Many searches at once share the cores; threads inside each of their products would only wait for
    # each other. Has to be said before numpy is loaded.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise WordreelError("serving needs more packages: pip install 'wordreel[serve]'") from None
    from wordreel.library import Library
    from wordreel.serve import tokens
    from wordreel.serve.options import Options, is_loopback

    if new_token and remove_token:
        raise typer.BadParameter("--new-token replaces the token by itself; leave out --remove-token.")
    _check_certificate(certificate, key)
    opened = Library(library, create=not read_only or follow is not None, index=index)
    if follow is not None:
        opened.follow(follow, counter("tracks and clips"))
    if new_token:
        token = tokens.new_token()
        tokens.save_token_hash(opened.store, token_file, tokens.hash_token(token))
        typer.echo(token)
        typer.echo("Printed once. Log in with it, or send it as Authorization: Bearer.", err=True)
        return
    if remove_token:
        removed = tokens.remove_token_hash(opened.store, token_file)
        typer.echo(
            "Removed. Running servers ask for it until they stop." if removed else "There is no token."
        )
        return
    if opened.store.read_only and not read_only:
        typer.echo(f"{printable(library)} cannot be written: the server is read-only.", err=True)
    token_hash = tokens.load_token_hash(opened.store, token_file)
    local = is_loopback(host)
    public = [each for each in (host, *(name or ())) if not is_loopback(each.lower())]
    if public and token_hash is None:
        raise WordreelError(
            f"others can reach {', '.join(public)}, and there is no token",
            NextStep("create one", command="serve --new-token"),
        )
    roots = [path.expanduser() for path in root] if root else ([Path.home()] if local else [])
    options = Options(
        host=host,
        port=port,
        names=tuple(each.lower() for each in name or ()),
        roots=tuple(Path(os.path.realpath(path)) for path in roots),
        read_only=read_only or opened.store.read_only or opened.is_replica,
        token=token_hash,
        max_upload=max_upload * 2**20,
        workers=workers,
        certificate=certificate,
        key=key,
    )
    _stay(opened, options, open_page, follow, index)


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Before anybody believes that what they send is encrypted."""
    import ssl

    if certificate is None:
        if key is not None:
            raise WordreelError("--key goes with --certificate; give both to serve https")
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # of which SSLError is one
        raise WordreelError(
            f"{printable(certificate)} cannot be used for https ({error}); "
            "give a certificate and its key, both PEM"
        ) from error


def _exit_normally(number: int, frame: FrameType | None) -> None:
    """Exit with status 0: the server has shut down for this signal, and raises it again to stop."""
    raise SystemExit(0)


def _stay(library: Library, options: Options, open_page: bool, follow: str | None, index: str | None) -> None:
    """Serve until interrupted."""
    import webbrowser

    from wordreel.serve.live import Follower
    from wordreel.serve.processes import free_port, run_server

    if options.port == 0:
        options = replace(options, port=free_port(options.host))
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"{'https' if options.certificate else 'http'}://{host}:{options.port}/"
    signal.signal(signal.SIGTERM, _exit_normally)
    typer.echo(f"{printable(library.path)} at {address} (stop with Ctrl-C)")
    if open_page:
        webbrowser.open(address)
    with nullcontext() if follow is None else Follower(library.path, follow, library.weights):
        run_server(library, index, options)
