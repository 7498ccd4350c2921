"""People: groups of faces, their names, and pictures of them."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from wordreel.people.people_manager import LONGEST_NAME, PersonFace
from wordreel.serve.display import thumb_url
from wordreel.serve.routes import Served, errors
from wordreel.serve.schemas import RequestModel
from wordreel.serve.schemas_library import OkResponse
from wordreel.serve.service import Service

router = APIRouter(tags=["people"])

Number = Annotated[int, Path(ge=1, le=2**62)]
Numbers = Annotated[list[int], Field(min_length=1, max_length=10_000)]


class PersonModel(BaseModel):
    id: int
    name: str = Field(description="empty until the owner gives one")
    faces: int = Field(description="moments")
    videos: int
    seconds: float
    picture: str = Field(description="address of a picture of the face")


class PeopleResponse(BaseModel):
    on: bool
    people: list[PersonModel]


class PeopleRequest(RequestModel):
    on: bool


class NameRequest(RequestModel):
    name: str = Field(max_length=LONGEST_NAME, description="empty: take the name away")


class MergeRequest(RequestModel):
    others: Numbers = Field(description="people who are the same person")


class SplitRequest(RequestModel):
    faces: Numbers = Field(description="looks at somebody else")


class FaceModel(BaseModel):
    id: int
    content: str
    start: float
    end: float
    picture: str
    thumb: str


class FacesResponse(BaseModel):
    faces: list[FaceModel]


class SplitResponse(BaseModel):
    id: int = Field(description="the new person")


@router.get("/api/people", response_model=PeopleResponse, responses=errors())
async def people(
    service: Served, least: Annotated[int, Query(ge=1, le=1000, description="moments seen")] = 2
) -> PeopleResponse:
    """Whether faces are grouped, and everybody seen in so many moments or with a name."""
    return await service.search_pool(_people, service, least)


@router.put("/api/people", response_model=PeopleResponse, responses=errors(409))
async def switch(body: PeopleRequest, service: Served) -> PeopleResponse:
    """Turn the grouping of faces on, which groups them now, or off."""
    manager = service.library.people
    if body.on:
        await asyncio.to_thread(manager.turn_on)
    else:
        await asyncio.to_thread(manager.turn_off)
    return await service.search_pool(_people, service, 2)


@router.delete("/api/people", response_model=OkResponse, responses=errors(409))
async def forget_everybody(service: Served) -> OkResponse:
    """Delete all groups, names and vectors, and turn people off."""
    await asyncio.to_thread(service.library.people.forget)
    service.face_crops.forget()
    return OkResponse()


@router.put("/api/people/{number}", response_model=OkResponse, responses=errors(409))
async def name(number: Number, body: NameRequest, service: Served) -> OkResponse:
    """Give a person a name."""
    await asyncio.to_thread(service.library.people.name, number, body.name)
    return OkResponse()


@router.delete("/api/people/{number}", response_model=OkResponse, responses=errors(409))
async def forget(number: Number, service: Served) -> OkResponse:
    """Delete a person with name, faces and vectors."""
    await asyncio.to_thread(service.library.people.forget, number)
    service.face_crops.forget()
    return OkResponse()


@router.post("/api/people/{number}/merge", response_model=OkResponse, responses=errors(409))
async def merge(number: Number, body: MergeRequest, service: Served) -> OkResponse:
    """Say that others are the same person."""
    await asyncio.to_thread(service.library.people.merge, number, *body.others)
    return OkResponse()


@router.post("/api/people/{number}/split", response_model=SplitResponse, responses=errors(409))
async def split(number: Number, body: SplitRequest, service: Served) -> SplitResponse:
    """Say that some looks at a person are somebody else."""
    return SplitResponse(id=await asyncio.to_thread(service.library.people.split, number, body.faces))


@router.get("/api/people/{number}/faces", response_model=FacesResponse, responses=errors(409))
async def faces(number: Number, service: Served) -> FacesResponse:
    """Every look at a person, the longest first."""
    found = await service.search_pool(service.library.people.faces, number)
    return FacesResponse(faces=[_face(one) for one in found])


@router.get(
    "/api/faces/{number}",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}}, **errors(404, 409, 410)},
)
async def picture(number: Number, service: Served) -> Response:
    """A picture of one look at a person, cut out of the video now."""

    def work() -> bytes:
        face, vector = service.library.people.face(number)
        path = service.files.path(face.content)
        return service.face_crops.crop(number, path, face.start, face.end, vector)

    made = await service.thumbnail_pool(work)
    return Response(made, media_type="image/jpeg", headers={"cache-control": "private, no-store"})


def _people(service: Service, least: int) -> PeopleResponse:
    manager = service.library.people
    found = [
        PersonModel(
            id=one.id,
            name=one.name,
            faces=one.faces,
            videos=one.videos,
            seconds=one.seconds,
            picture=f"/api/faces/{one.face}" if one.face else "",
        )
        for one in manager.list(least)
    ]
    return PeopleResponse(on=manager.on, people=found)


def _face(one: PersonFace) -> FaceModel:
    return FaceModel(
        id=one.id,
        content=one.content,
        start=one.start,
        end=one.end,
        picture=f"/api/faces/{one.id}",
        thumb=thumb_url(one.content, (one.start + one.end) / 2),
    )
