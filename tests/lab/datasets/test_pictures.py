import json

import pytest

from wordreel.errors import DatasetError
from wordreel.lab.datasets.registry import read_published


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def karpathy(**splits):
    return {
        "images": [
            {
                "filepath": "val2014",
                "filename": name,
                "split": split,
                "cocoid": n,
                "sentences": [{"raw": f"{name} is {k} ", "tokens": []} for k in range(2)],
            }
            for split, names in splits.items()
            for n, name in enumerate(names)
        ],
        "dataset": "coco",
    }


def test_coco_by_karpathy(tmp_path):
    content = karpathy(train=["a.jpg"], test=["b.jpg", "c.jpg"])
    put(tmp_path, "dataset_coco.json", content)
    found = read_published("coco", "test", tmp_path)
    assert found.captions == {"b.jpg": ["b.jpg is 0", "b.jpg is 1"], "c.jpg": ["c.jpg is 0", "c.jpg is 1"]}
    assert found.items[0].path == "val2014/b.jpg"
    for image in content["images"]:
        del image["sentences"]
    put(tmp_path, "dataset_coco.json", content)
    with pytest.raises(DatasetError, match="no field 'sentences'"):
        read_published("coco", "test", tmp_path)
    put(tmp_path, "annotations/captions_val2014.json", official)
    assert read_published("coco", "test", tmp_path).captions == {"b.jpg": ["two", "three"], "c.jpg": ["one"]}


official = {
    "images": [{"id": 7, "file_name": "c.jpg"}, {"id": 9, "file_name": "b.jpg"}],
    "annotations": [
        {"image_id": 7, "id": 1, "caption": "one"},
        {"image_id": 9, "id": 2, "caption": "two\n"},
        {"image_id": 9, "id": 3, "caption": "three"},
    ],
}


def test_coco_official(tmp_path):
    put(tmp_path, "annotations/captions_val2014.json", official)
    assert read_published("coco", "val2014", tmp_path).captions == {
        "c.jpg": ["one"],
        "b.jpg": ["two", "three"],
    }
    with pytest.raises(DatasetError, match=r"dataset_coco.json.*Without it: the official splits"):
        read_published("coco", "test", tmp_path)
    for fault, message in (({"image_id": 8}, "picture 8"), ({"image_id": [1]}, "'image_id' is no name")):
        wrong = {**official, "annotations": [{"caption": "x", **fault}]}
        put(tmp_path, "annotations/captions_val2014.json", wrong)
        with pytest.raises(DatasetError, match=message):
            read_published("coco", "val2014", tmp_path)


TOKENS = "".join(f"{name}.jpg#{n}\t{name} is {n} , here .\n" for name in "abc" for n in range(2))
CSV = "image,caption\n" + "".join(f"{name}.jpg,{name} is {n} , here .\n" for name in "abc" for n in range(2))


@pytest.mark.parametrize(("name", "content"), [("Flickr8k.token.txt", TOKENS), ("captions.txt", CSV)])
def test_flickr8k(tmp_path, name, content):
    put(tmp_path, f"Flickr8k_text/{name}", content)
    put(tmp_path, "Flickr8k_text/Flickr_8k.devImages.txt", "c.jpg\nb.jpg\n")
    found = read_published("flickr8k", "dev", tmp_path)
    assert (found.name, list(found.captions)) == ("val", ["c.jpg", "b.jpg"])
    assert found.captions["b.jpg"] == ["b is 0 , here .", "b is 1 , here ."]
    with pytest.raises(DatasetError, match=r"Flickr_8k.testImages.txt.*Without it: dataset_flickr8k.json"):
        read_published("flickr8k", "test", tmp_path)


def test_flickr_by_karpathy(tmp_path):
    put(tmp_path, "dataset_flickr30k.json", karpathy(test=["1.jpg"]))
    assert read_published("flickr30k", "test", tmp_path).captions == {"1.jpg": ["1.jpg is 0", "1.jpg is 1"]}
    with pytest.raises(DatasetError, match=r"nothing for split 'val' of flickr30k"):
        read_published("flickr30k", "val", tmp_path)


def test_flickr30k_with_its_broken_line(tmp_path):
    rows = "image_name| comment_number| comment\n1.jpg| 0| Two men .\n"
    rows += "1.jpg| 1| A dog | runs .\n2.jpg| 4   A cat .\n"
    put(tmp_path, "results.csv", rows)
    put(tmp_path, "test.txt", "1\n2\n")
    assert read_published("flickr30k", "test", tmp_path).captions == {
        "1.jpg": ["Two men .", "A dog | runs ."],
        "2.jpg": ["A cat ."],
    }
    put(tmp_path, "results.csv", rows + "no bars\n")
    with pytest.raises(DatasetError, match=r"results.csv, line 5: a picture, a number"):
        read_published("flickr30k", "test", tmp_path)


def bird_files(folder):
    put(
        folder,
        "CUB_200_2011/images.txt",
        "1 001.Albatross/a.jpg\n2 100.Pelican/b.jpg\n3 101.Pelican/c d.jpg\n",
    )
    put(folder, "CUB_200_2011/image_class_labels.txt", "1 1\n2 100\n3 101\n")


def test_cub_is_split_by_class(tmp_path):
    bird_files(tmp_path)
    assert [item.id for item in read_published("cub", "train", tmp_path).items] == [
        "001.Albatross/a.jpg",
        "100.Pelican/b.jpg",
    ]
    (bird,) = read_published("cub", "test", tmp_path).items
    assert (bird.path, bird.label) == ("images/101.Pelican/c d.jpg", 101)
    with pytest.raises(DatasetError, match=r"train_test_split.txt"):
        read_published("cub", "official-test", tmp_path)
    put(tmp_path, "CUB_200_2011/train_test_split.txt", "1 0\n2 1\n3 1\n")
    assert [item.label for item in read_published("cub", "official-test", tmp_path).items] == [1]
    put(tmp_path, "CUB_200_2011/image_class_labels.txt", "1 1\n2 x\n3 101\n")
    with pytest.raises(DatasetError, match="picture 2 has no class number"):
        read_published("cub", "train", tmp_path)
    put(tmp_path, "CUB_200_2011/images.txt", "1 a.jpg\n1 b.jpg\n")
    with pytest.raises(DatasetError, match="line 2: picture 1 stands here twice"):
        read_published("cub", "train", tmp_path)


def test_sop(tmp_path):
    head = "image_id class_id super_class_id path\n"
    put(
        tmp_path,
        "Ebay_test.txt",
        head + "59552 11319 1 bicycle_final/1.JPG\n59553 11319 1 bicycle_final/2.JPG\n",
    )
    found = read_published("sop", "test", tmp_path)
    assert [(item.id, item.label) for item in found.items] == [
        ("bicycle_final/1.JPG", 11319),
        ("bicycle_final/2.JPG", 11319),
    ]
    put(tmp_path, "Ebay_train.txt", head + "1 x 1 a.JPG\n")
    with pytest.raises(DatasetError, match=r"Ebay_train.txt, line 2: expected image_id class_id"):
        read_published("sop", "train", tmp_path)
    put(tmp_path, "Ebay_train.txt", head + "1 1 1 a.JPG\n2 1 1 a.JPG\n")
    with pytest.raises(DatasetError, match=r"line 3: a.JPG stands here twice"):
        read_published("sop", "train", tmp_path)
