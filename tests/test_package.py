"""What `import wordreel` offers."""

import pytest

import wordreel


def test_the_package_names_what_it_has():
    assert wordreel.Library.__name__ == "Library"
    for name in wordreel.__all__:
        assert name == "__version__" or getattr(wordreel, name).__name__ == name
    exported = {name for names in wordreel._MODULES.values() for name in names}
    assert set(wordreel.__all__) == {*exported, "__version__"}
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = wordreel.nothing_here
