import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _closed():
    """Leave no figure open."""
    yield
    plt.close("all")
