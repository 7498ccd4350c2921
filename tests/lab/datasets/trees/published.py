"""Writes datasets of a few items in the layouts of the published code. The tests read them back."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

IDS = ("video0", "video1", "video2", "video3")
TRAIN, TEST = IDS[:2], IDS[2:]
CAPTIONS = {item: [["a", "man", "sings", item], ["somebody", "sings"]] for item in IDS}
TEXTS = {item: [" ".join(words) for words in lines] for item, lines in CAPTIONS.items()}
NAN = float("nan")


def numbers(seed: int, *shape: int, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def dump(path: Path, value: object, protocol: int = 4) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def write_list(path: Path, ids: tuple[str, ...] | list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(ids))  # without a last newline, as published


def vectors(dim: int, seed: int, dtype: str = "f4") -> dict[str, object]:
    return {item: numbers(seed + n, dim, dtype=dtype) for n, item in enumerate(IDS)}


def rows(dim: int, seed: int) -> dict[str, object]:
    return {item: numbers(seed + n, n + 1, dim) for n, item in enumerate(IDS)}


def write_ce(folder: Path, protocol: int = 4) -> dict[str, dict[str, Any]]:
    """MSRVTT as Collaborative Experts has it; the features by expert."""
    root = folder / "structured-symlinks"
    said: dict[str, dict[str, Any]] = {
        "imagenet.resnext101_32x48d.0": vectors(8, 0),
        "imagenet.senet154.0": vectors(8, 10, "f8"),
        "imagenet.senet154.0.max": vectors(8, 15),
        "r2p1d.r2p1d-ig65m.0": vectors(6, 20, "f2"),
        "i3d.i3d.0": vectors(6, 30),
        "scene.densenet161.0": vectors(7, 40),
        "face": {**vectors(5, 50), "video1": NAN, "video3": np.full(5, np.nan)},
        "ocr": {**rows(4, 60), "video0": NAN, "video2": np.zeros((0, 4), "f4")},
        "audio": rows(3, 70),
        "speech": {item: value for item, value in rows(4, 80).items() if item != "video3"},
    }
    images = root / "aggregated_imagenet_25fps_256px_stride1_offset0"
    dump(images / "resnext101_32x48d-avg.pickle", said["imagenet.resnext101_32x48d.0"], protocol)
    dump(images / "senet154-avg.pickle", said["imagenet.senet154.0"], protocol)
    dump(images / "senet154-max.pickle", said["imagenet.senet154.0.max"], protocol)
    motion = "aggregated_r2p1d_30fps_256px_stride32_offset0_inner_stride1"
    dump(root / motion / "r2p1d-ig65m-avg.pickle", said["r2p1d.r2p1d-ig65m.0"], protocol)
    motion = "aggregated_i3d_25fps_256px_stride25_offset0_inner_stride1"
    dump(root / motion / "i3d-avg.pickle", said["i3d.i3d.0"], protocol)
    places = "aggregated_scene_25fps_256px_stride1_offset0"
    dump(root / places / "densenet161-avg.pickle", said["scene.densenet161.0"], protocol)
    dump(root / "aggregated_face_feats" / "facefeats-avg.pickle", said["face"], protocol)
    dump(root / "aggregated_ocr_feats" / "ocr-raw.pickle", said["ocr"], protocol)
    dump(root / "aggregated_audio_feats" / "Audio_MSRVTT_new.pickle", said["audio"], protocol)
    dump(root / "aggregated_speech" / "speech-w2v.pickle", said["speech"], protocol)
    words = {item: [numbers(90 + n, 3, 4), numbers(95 + n, 2, 4)] for n, item in enumerate(IDS)}
    dump(root / "aggregated_text_feats" / "w2v_MSRVTT_openAIGPT.pickle", words, protocol)
    dump(root / "raw-captions.pkl", CAPTIONS, protocol)
    write_list(root / "train_list_full.txt", TRAIN)
    write_list(root / "test_list_full.txt", TEST)
    write_list(root / "train_list_jsfusion.txt", IDS[:3])
    write_list(root / "val_list_jsfusion.txt", IDS[3:])
    dump(root / "jsfusion_val_caption_idx.pkl", {"video3": 1}, protocol)
    return {**said, "words": words}


def write_miech(root: Path) -> None:
    """What 1k-B reads besides: its lists, and MoEE's features."""
    write_list(root / "train_list_miech.txt", IDS[:3])
    write_list(root / "test_list_miech.txt", IDS[3:])
    for number, name in enumerate(("facefeats-clone", "audio_features", "resnet_features", "flow_features")):
        dump(root / "antoine" / f"{name}.pickle", {item: np.full(128, number, "f4") for item in IDS})


def write_hickle(path: Path, values: dict[str, np.ndarray]) -> None:
    """A dictionary of arrays as version 4 of hickle writes it."""
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["base_type"] = b"dict"
        for key, value in values.items():
            item = data.create_group(repr(key))
            item.attrs["base_type"] = b"dict_item"
            item.create_dataset("data", data=value).attrs["base_type"] = b"ndarray"


def write_audiocaps(folder: Path, clips: int = 9) -> None:
    """AudioCaps as AR-CE has it: two experts, five captions for a test clip, one for a training clip."""
    root = folder / "structured-symlinks"
    ids = [f"clip{n:07}" for n in range(clips)]
    for expert, dim in (("vggish", 3), ("vggsound", 5)):
        name = "audio" if expert == "vggish" else expert
        arrays = {item: numbers(n, 4, dim) for n, item in enumerate(ids)}
        write_hickle(root / f"aggregated_{name}" / f"{expert}-raw.hickle", arrays)
    counts = {item: 1 if n < clips // 3 else 5 for n, item in enumerate(ids)}
    texts = {item: [["a", "sound", str(n)] for n in range(count)] for item, count in counts.items()}
    dump(root / "structured-symlinks" / "raw-captions.pkl", texts)
    words = {item: [numbers(n, 3, 4) for n in range(count)] for item, count in counts.items()}
    dump(root / "text_embeddings" / "w2v.pkl", words)
    write_list(root / "train_list.txt", ids[: clips // 3])
    write_list(root / "filtered_val_list.txt", ids[clips // 3 : 2 * clips // 3])
    write_list(root / "final_filtered_test_list.txt", ids[2 * clips // 3 :])


def write_teachtext(folder: Path) -> dict[str, object]:
    """MSVD as TeachText has it: features by id, word features and captions of training by "vid…"."""
    root = folder / "high-quality" / "structured-symlinks"
    ids = ("-4wsuPCjDBc_5_15", "-7KMZQEsJW4_205_208", "-8y1Q0rA3n8_108_115")
    names = dict(zip(ids, ("vid1", "vid2", "vid3"), strict=True))
    objects = {item: numbers(n, 8) for n, item in enumerate(ids)}
    images = root / "aggregated_imagenet_25fps_256px_stride1_offset0"
    dump(images / "resnext101_32x48d-avg.pickle", objects)
    motion = "aggregated_r2p1d_30fps_256px_stride8_offset0_inner_stride1"
    action = {names[item]: numbers(20 + n, 6) for n, item in enumerate(ids)}  # under the other name
    dump(root / motion / "r2p1d-ig65m-kinetics-avg.pickle", action)
    words = {}
    for part, item in zip(("train", "val", "test"), ids, strict=True):
        words[item] = [numbers(30, 2, 4), numbers(31, 3, 4)]
        dump(root / "aggregated_text_feats" / f"w2v-caption-{part}.pkl", {names[item]: words[item]})
        write_list(root / f"{part}_list.txt", (item,))
    captions = {item: [["a", "dog"], ["it", "barks"]] for item in ids}
    dump(root / "raw-captions.pkl", captions)
    dump(root / "dict_youtube_mapping.pkl", names)
    lessons = {
        ids[0]: {
            "vid_embds": {"audio": numbers(40, 5), "scene.densenet161.0": numbers(41, 5)},
            "text_embds": {
                "audio": [numbers(42, 5), numbers(43, 5)],
                "scene.densenet161.0": [numbers(44, 5), numbers(45, 5)],
            },
        }
    }
    dump(root / "teachers" / "train-full-ce-refined-text-w2v.pkl", lessons)
    masks = {ids[0]: np.array([1, 0])}
    dump(root / "denoise-less100.pkl", masks)
    return {
        "ids": ids, "objects": objects, "action": action, "names": names, "words": words, "lessons": lessons,
        "masks": masks,
    }  # fmt: skip


def write_mmt(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """MSRVTT as the Multi-modal Transformer has it; features and times by item."""
    import h5py

    said: dict[str, dict[str, np.ndarray]] = {}
    for n, item in enumerate(IDS):
        path = folder / "vid_feat_files" / "mult_h5" / item[0] / item[1] / item[2] / f"{item}.h5"
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {
            "features.s3d": numbers(n, 3, 8),
            "features_t.s3d": np.array([[0.0, 1.5], [1.5, 3.0], [-1.0, -1.0]]),
            "features.rgb": numbers(10 + n, 4, 6, dtype="f2"),
            "features.speech": numbers(20 + n, 2, 4, dtype="f8"),
            "features.face": np.full((1, 5), np.nan) if n % 2 else numbers(30 + n, 1, 5),
        }
        if n == 1:
            del told["features.speech"]
        with h5py.File(path, "w") as file:
            for key, value in told.items():
                file[key] = value
            for number, words in enumerate(CAPTIONS[item]):
                text = np.array([word.encode() for word in words]) if n % 2 else np.array(words, object)
                file.create_dataset(
                    f"raw_captions.{number}", data=text, dtype=None if n % 2 else h5py.string_dtype()
                )
            file["raw_captions_t.0"] = np.array([[0.5, 1.0]] * 4) + np.arange(4)[:, None]
        said[item] = told
    lists = folder / "symlinked-feats"
    write_list(lists / "train_list_jsfusion.txt", TRAIN)
    write_list(lists / "val_list_jsfusion.txt", TEST)
    dump(lists / "jsfusion_val_caption_idx.pkl", dict.fromkeys(TEST, 1))
    return said


def write_clip4clip(folder: Path, dataset: str) -> None:
    """The annotations of one dataset, and an empty file for each video."""
    folder.mkdir(parents=True, exist_ok=True)
    videos = folder / "videos" / "all"
    videos.mkdir(parents=True)
    ending = "mov" if dataset == "DiDeMo" else "mp4"
    for item in IDS:
        (videos / f"{item}.{ending}").write_bytes(item.encode())
    if dataset == "MSRVTT":
        for name in ("9k", "7k"):
            (folder / f"MSRVTT_train.{name}.csv").write_text("video_id\n" + "\n".join(TRAIN))
        with (folder / "MSRVTT_JSFUSION_test.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["key", "vid_key", "video_id", "sentence"])
            writer.writerows([f"ret{n}", f"msr{n}", item, TEXTS[item][0]] for n, item in enumerate(TEST))
        lines = [{"caption": text, "video_id": item} for item in IDS for text in TEXTS[item]]
        listing = {"videos": [{"video_id": item} for item in IDS], "sentences": lines}
        (folder / "MSRVTT_data.json").write_text(json.dumps(listing))
    elif dataset == "MSVD":
        write_list(folder / "train_list.txt", TRAIN)
        write_list(folder / "test_list.txt", TEST)
        dump(folder / "raw-captions.pkl", CAPTIONS)
    elif dataset == "LSMDC":
        names = (("LSMDC16_annos_training.csv", TRAIN), ("LSMDC16_challenge_1000_publictect.csv", TEST))
        for name, ids in names:
            rows_of_file = [f"{i}\t00:00\t00:01\t00:00\t00:02\t{text}" for i in ids for text in TEXTS[i]]
            (folder / name).write_text("\n".join(rows_of_file) + "\n")
    elif dataset == "ActivityNet":
        for name, listed, ids in (("train", "train.json", TRAIN), ("val", "val_1.json", TEST)):
            (folder / f"{name}_ids.json").write_text(json.dumps([f"v_{item}" for item in ids]))
            moments = {
                f"v_{item}": {"duration": 9.5, "timestamps": [[0, 5], [5, 9]], "sentences": TEXTS[item]}
                for item in ids
            }
            (folder / listed).write_text(json.dumps(moments))
    elif dataset == "DiDeMo":
        for part, ids in (("train", TRAIN), ("test", TEST)):
            write_list(folder / f"{part}_list.txt", [f"{item}.mov" for item in ids])
            told = [
                {"video": f"{i}.mov", "description": text, "times": [[0, 1]]}
                for i in ids
                for text in TEXTS[i]
            ]
            (folder / f"{part}_data.json").write_text(json.dumps(told))


def write_moee_msrvtt(folder: Path) -> dict[str, dict[str, object]]:
    said = {
        "visual": vectors(8, 0),
        "motion": vectors(6, 10),
        "audio": rows(3, 20),
        "face": {**vectors(5, 30), "video1": np.zeros(5, "f4"), "video2": []},
    }
    names = {"visual": "resnet", "motion": "flow", "audio": "audio", "face": "face"}
    for expert, name in names.items():
        dump(folder / f"{name}_features.pickle", said[expert], protocol=2)
    dump(folder / "w2v_MSRVTT.pickle", {item: [numbers(40, 3, 4)] for item in IDS}, protocol=2)
    write_list(folder / "train_list.txt", TRAIN)
    write_list(folder / "test_list.txt", TEST)
    return said


def write_moee_lsmdc(folder: Path) -> dict[str, np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    ragged = np.empty(2, object)
    ragged[0], ragged[1] = numbers(1, 2, 3), numbers(2, 4, 3)
    padded = np.zeros((2, 5, 3), "f4")
    padded[0, :2], padded[1, :4] = numbers(3, 2, 3), numbers(4, 4, 3)
    said = {
        "X_resnet.npy": numbers(5, 2, 8),
        "X_flow.npy": numbers(6, 2, 6),
        "X_face.npy": np.stack([numbers(7, 5), np.zeros(5, "f4")]),
        "X_audio_train.npy": ragged,
        "w2v_LSMDC.npy": ragged,
        "resnet152-retrieval.npy.tensor.npy": numbers(8, 2, 8),
        "flow-retrieval.npy.tensor.npy": numbers(9, 2, 6),
        "face-retrieval.npy.tensor.npy": numbers(10, 2, 5),
        "X_audio_retrieval.npy.tensor.npy": padded,
        "w2v_LSMDC_retrieval.npy": ragged,
        "no_face_ind_retrieval.npy": np.array([0, 1]),
    }
    for name, value in said.items():
        np.save(folder / name, value, allow_pickle=True)
    return said
