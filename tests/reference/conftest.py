"""Prepare the packages that only the reference environment has (`make test-reference`)."""

from tests.reference.torchvision_ops import import_torchvision

import_torchvision()
