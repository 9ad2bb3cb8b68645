import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """Decoded images of a test stay in its own folder."""
    monkeypatch.setenv("DROPTOP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
