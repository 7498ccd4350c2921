from tests.fakes import Colour, FakeFence, Talk, write_media
from tests.search.conftest import ColourModel

from wordreel import doctor
from wordreel.catalogue.store import LibraryStore
from wordreel.doctor import run_checks
from wordreel.errors import MediaError
from wordreel.ingest.add import add
from wordreel.library import Library
from wordreel.media.hardware import HwDevice, HwDevices
from wordreel.runtime.store import WeightStore


def test_missing_weights_are_an_error_that_names_the_next_step(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    assert not WeightStore().has("minilm")
    found = {finding.what: finding for finding in run_checks(tmp_path / "library")}
    assert found["expert ocr"].state == "ok"  # its weights come with wordreel
    assert found["expert speech"].state == "error"
    assert found["expert senet154"].state == "note"
    assert found["text tower"].state == "ok"  # it comes with wordreel
    assert found["expert speech"].next_step.command == "weights fetch whisper-base"
    assert found["library"].state == "note"
    assert found["python"].state == "ok"


def test_items_without_the_eyes_of_the_model_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("WORDREEL_WEIGHTS", str(tmp_path / "weights"))
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        write_media(tmp_path / "media" / "film.mp4")
        add(store, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
    monkeypatch.setattr(Library, "model", ColourModel())
    monkeypatch.setattr(ColourModel, "eyes", "colour")
    noted = "were added without it"
    assert not [one for one in run_checks(tmp_path / "library") if noted in one.detail]
    monkeypatch.setattr(ColourModel, "eyes", "clip")
    (found,) = [one for one in run_checks(tmp_path / "library") if noted in one.detail]
    assert (found.what, found.detail) == ("expert clip", f"1 items {noted}")
    assert found.next_step.command == "add FOLDER"


def test_what_decodes(monkeypatch):
    def decoding(setting):
        monkeypatch.setenv("WORDREEL_HWACCEL", setting)
        return [(finding.state, finding.detail) for finding in doctor._decoding()]

    class Working:
        def __init__(self, limits, device):
            if device.name == "vaapi":
                raise MediaError("no driver")

        def close(self):
            pass

    monkeypatch.setattr(doctor, "WorkerProcess", Working)
    assert decoding("off") == [("ok", "in software, because WORDREEL_HWACCEL is off")]
    assert decoding("vaapi") == [("note", "in software: VAAPI could not be used, no driver")]
    assert decoding("cuda") == [("ok", "NVDEC (cuda) for all videos it can decode, software for the others")]
    assert decoding("fast")[0][0] == "error"
    monkeypatch.setattr(doctor, "process_devices", lambda: HwDevices("auto"))
    monkeypatch.setattr(HwDevice, "present", lambda device: False)
    assert "this machine has no hardware decoder" in decoding("auto")[0][1]
    monkeypatch.setattr(HwDevice, "present", lambda device: device.name != "cuda")
    assert [state for state, _ in decoding("auto")] == ["note", "ok"]
    assert decoding("auto")[1][1].startswith("VideoToolbox (videotoolbox) for large videos")
