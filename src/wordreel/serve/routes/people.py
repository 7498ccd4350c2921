"""People: groups of faces, their names, and pictures of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from wordreel.people.people_manager import LONGEST_NAME
from wordreel.serve.display import thumb_url
from wordreel.serve.routes import Number, Served, binary, in_pool
from wordreel.serve.schemas import OkResponse, RequestModel
from wordreel.serve.service import Service

router = APIRouter(tags=["people"])

Numbers = Annotated[list[int], Field(min_length=1, max_length=10_000)]
LEAST = 2  # moments in which a person without a name is seen


class PersonModel(BaseModel):
    """A person, and how often they are seen."""

    id: int
    name: str = Field(description="empty until the owner gives one")
    faces: int = Field(description="moments")
    videos: int
    seconds: float
    picture: str = Field(description="address of a picture of the face")


class PeopleResponse(BaseModel):
    """Whether people are on, and everybody."""

    on: bool
    people: list[PersonModel]


class PeopleRequest(RequestModel):
    """Whether people are to be on."""

    on: bool


class NameRequest(RequestModel):
    """The name of a person."""

    name: str = Field(max_length=LONGEST_NAME, description="empty: take the name away")


class MergeRequest(RequestModel):
    """People to merge into one."""

    others: Numbers = Field(description="people who are the same person")


class SplitRequest(RequestModel):
    """Looks to split off."""

    faces: Numbers = Field(description="looks at somebody else")


class FaceModel(BaseModel):
    """One look at a person."""

    id: int
    content: str
    start: float
    end: float
    picture: str
    thumb: str


class FacesResponse(BaseModel):
    """Every look at a person."""

    faces: list[FaceModel]


class SplitResponse(BaseModel):
    """What a split made."""

    id: int = Field(description="the new person")


@router.get("/api/people")
def people(
    service: Served, least: Annotated[int, Query(ge=1, le=1000, description="moments seen")] = LEAST
) -> PeopleResponse:
    """Tell whether faces are grouped, and list everybody seen in so many moments or with a name."""
    return _people(service, least)


@router.put("/api/people")
def switch(body: PeopleRequest, service: Served) -> PeopleResponse:
    """Turn the grouping of faces on, which groups them now, or off."""
    if body.on:
        service.library.people.turn_on()
    else:
        service.library.people.turn_off()
    return _people(service, LEAST)


@router.delete("/api/people")
def forget_everybody(service: Served) -> OkResponse:
    """Delete all groups, names and vectors, and turn people off."""
    service.library.people.forget()
    service.face_crops.forget()
    return OkResponse()


@router.put("/api/people/{number}")
def name(number: Number, body: NameRequest, service: Served) -> OkResponse:
    """Give a person a name."""
    service.library.people.name(number, body.name)
    return OkResponse()


@router.delete("/api/people/{number}")
def forget(number: Number, service: Served) -> OkResponse:
    """Delete a person with name, faces and vectors."""
    service.library.people.forget(number)
    service.face_crops.forget()
    return OkResponse()


@router.post("/api/people/{number}/merge")
def merge(number: Number, body: MergeRequest, service: Served) -> OkResponse:
    """Say that others are the same person."""
    service.library.people.merge(number, *body.others)
    return OkResponse()


@router.post("/api/people/{number}/split")
def split(number: Number, body: SplitRequest, service: Served) -> SplitResponse:
    """Say that some looks at a person are somebody else."""
    return SplitResponse(id=service.library.people.split(number, body.faces))


@router.get("/api/people/{number}/faces")
def faces(number: Number, service: Served) -> FacesResponse:
    """List the looks at a person, the longest first."""
    looks = [
        FaceModel(
            **vars(face),
            picture=f"/api/faces/{face.id}",
            thumb=thumb_url(face.content, (face.start + face.end) / 2),
        )
        for face in service.library.people.faces(number)
    ]
    return FacesResponse(faces=looks)


@router.get("/api/faces/{number}", response_class=Response, responses=binary("image/jpeg"))
@in_pool("thumbnail")
def picture(number: Number, service: Served) -> Response:
    """Return a picture of one look at a person, cut out of the video now."""
    face, vector = service.library.people.face(number)
    path = service.files.path(face.content)
    crop = service.face_crops.crop(number, path, face.start, face.end, vector)
    return Response(crop, media_type="image/jpeg", headers={"cache-control": "private, no-store"})


def _people(service: Service, least: int) -> PeopleResponse:
    manager = service.library.people
    found = [
        PersonModel(**vars(person), picture=f"/api/faces/{person.face}" if person.face else "")
        for person in manager.list(least)
    ]
    return PeopleResponse(on=manager.on, people=found)
