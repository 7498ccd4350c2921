"""The model of a search request, made from the fields of `Query` and its filters."""

from __future__ import annotations

from dataclasses import Field as DataclassField
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, create_model

from wordreel.search.query import Query, VideoMoment, question_fields
from wordreel.search.query_fields import QueryField, query_field
from wordreel.serve.schemas import Content, Folder, RequestModel, ShortText, Text, Timestamp

MOST_VALUES = 20  # of a field that holds several
TYPES: dict[str, Any] = {
    "text": Text,
    "name": ShortText,
    "day": Timestamp,
    "folder": Folder,
    "file": Content,
}
"""Of the kinds that HTTP bounds otherwise than the command line; a file is the id of one."""


def _unset(value: Any) -> Any:
    return None if value == "" else value


def _field(one: DataclassField[Any]) -> tuple[Any, Any]:
    about = query_field(one)
    kind = TYPES.get(about.kind, about.type)
    if about.kind in ("number", "count"):
        kind = Annotated[kind, Field(**_limits(about))]
    if about.several:
        return list[kind], Field([], max_length=MOST_VALUES, description=about.help)  # type: ignore[valid-type]
    if one.default is None:
        kind = Annotated[kind | None, BeforeValidator(_unset)]
    return kind, Field(one.default, description=about.help)


def _limits(about: QueryField) -> dict[str, Any]:
    most = about.at_most if about.served_at_most is None else about.served_at_most
    limits = {"ge": about.at_least, "le": most} | ({"allow_inf_nan": False} if about.kind == "number" else {})
    return {name: value for name, value in limits.items() if value is not None}


if TYPE_CHECKING:

    class SearchRequest(RequestModel):
        image: str | None

else:
    SearchRequest = create_model(
        "SearchRequest",
        __base__=RequestModel,
        __doc__="What to look for: exactly one of `text`, `image` (an upload's id) and `like` (a video).",
        **{one.name: _field(one) for one in question_fields()},
    )


def query_of(request: SearchRequest) -> Query:
    """The request as a query; its image is still the id of an upload.

    >>> query_of(SearchRequest(text="a red car", kind="video", limit=3)).filters.kind
    'video'
    """
    values: dict[str, Any] = {one.name: getattr(request, one.name) for one in question_fields()}
    if values["like"] is not None:
        values["like"] = VideoMoment(content=values["like"], second=values["second"])
    return Query.build(**values)
