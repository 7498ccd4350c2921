"""Checkpoints as the published trainers write them."""

import sys
import types
from pathlib import PosixPath

import pytest
import torch


def save_checkpoint(path, state, settings, old=False):
    """A state dictionary, with the trainer's configuration object beside it."""

    class ConfigParser:
        def __init__(self):
            self.resume, self._config = PosixPath("data/x.pth"), settings

    fake = types.ModuleType("parse_config")
    ConfigParser.__module__, ConfigParser.__qualname__, fake.ConfigParser = (
        "parse_config", "ConfigParser", ConfigParser,
    )  # fmt: skip
    whole = {
        "arch": "CENet",
        "epoch": 3,
        "state_dict": state,
        "monitor_best": 0.5,
        "config": ConfigParser(),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "parse_config", fake)
        torch.save(whole, path, _use_new_zipfile_serialization=not old)
    return path
