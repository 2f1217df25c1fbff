from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError

from hopefold import SHOPE
from hopefold.errors import InvalidInput, InvalidParameter, MissingPackage
from hopefold.report import figures


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


POINTS = np.random.RandomState(0).normal(size=(40, 2))
LABELS = np.repeat(["a", "<b>", "$c$", "d_e"], 10)


def test_exemplars_are_red_empty_circles():
    figure = figures.draw_map(POINTS, LABELS, exemplars=POINTS[:3])
    rings = figure.axes[0].collections[-1]
    assert len(rings.get_facecolor()) == 0
    assert to_hex(rings.get_edgecolor()[0]) == figures.EXEMPLAR_COLOR
    np.testing.assert_allclose(rings.get_offsets(), POINTS[:3])
    assert png(figure).startswith(b"\x89PNG")


def test_every_point_is_drawn_once_and_misclassified_ones_are_counted():
    misclassified = np.arange(40) % 8 == 0
    figure = figures.draw_map(POINTS, LABELS, misclassified=misclassified)
    drawn = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    assert drawn == 40
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["5 misclassified"]


def test_exemplars_that_lie_on_each_other_are_told():
    on_each_other = np.concatenate([POINTS[:3], POINTS[:3] + 1e-4])
    figure = figures.draw_map(POINTS, LABELS, exemplars=on_each_other)
    assert figure.axes[0].get_legend().texts[0].get_text() == "6 exemplars in 3 places"


def test_labels_are_text_and_not_formulas():
    figure = figures.draw_map(POINTS, LABELS)
    shown = {text.get_text() for text in figure.axes[0].texts}
    assert shown == {"a", "<b>", r"\$c\$", "d_e"}
    png(figure)


def test_the_gallery_has_a_column_a_class():
    labels = np.array([0, 0, 1])
    figure = figures.draw_gallery(np.random.RandomState(0).rand(3, 16), labels, (4, 4))
    assert len(figure.axes) == 4
    assert sum(len(axes.images) for axes in figure.axes) == 3
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("n_classes", [2, 10, 11, 100])
def test_every_class_has_a_color_of_its_own_and_none_is_the_exemplars(n_classes):
    colors = [to_hex(color) for color in figures.class_colors(n_classes)]
    assert len(set(colors)) == n_classes
    assert figures.EXEMPLAR_COLOR not in colors


def test_maps_are_drawn_as_one_map_is():
    panel = figures.Panel(POINTS, LABELS, exemplars=POINTS[:3], title="one")
    alone = figures.draw_map(POINTS, LABELS, exemplars=POINTS[:3], title="one").axes[0]
    for axes in figures.draw_maps([panel, panel, panel]).axes:
        assert axes.get_title() == "one"
        assert len(axes.collections) == len(alone.collections)
        for mine, its in zip(axes.collections, alone.collections, strict=True):
            np.testing.assert_array_equal(mine.get_offsets(), its.get_offsets())
            np.testing.assert_array_equal(mine.get_edgecolor(), its.get_edgecolor())


def test_the_points_of_many_maps_are_an_image_and_the_exemplars_are_not():
    panel = figures.Panel(POINTS, LABELS, exemplars=POINTS[:3])
    *points, rings = figures.draw_maps([panel]).axes[0].collections
    assert all(collection.get_rasterized() for collection in points)
    assert not rings.get_rasterized()


def test_galleries_have_a_title_each():
    exemplars = np.random.RandomState(0).rand(4, 16)
    galleries = {"one": (exemplars, np.array([0, 0, 1, 1])), "two": (exemplars, np.arange(4))}
    figure = figures.draw_galleries(galleries, (4, 4), limits=(0, 1), title="both")
    assert figure.get_suptitle() == "both"
    assert [part.get_suptitle() for part in figure.subfigs] == ["one", "two"]
    assert [len(part.axes) for part in figure.subfigs] == [4, 4]
    assert png(figure).startswith(b"\x89PNG")


def test_a_point_far_off_does_not_press_the_others_together_but_is_counted():
    points = np.random.RandomState(0).normal(size=(1000, 2))
    points[0] = [500, 0]
    axes = figures.draw_map(points, np.repeat([0, 1], 500)).axes[0]
    assert np.diff(axes.get_xlim()) < 30
    (text,) = axes.get_legend().get_texts()
    assert text.get_text() == "1 far outside the frame"


def test_all_points_are_shown_where_none_is_far_off():
    points = np.random.RandomState(0).uniform(size=(1000, 2))
    low, high = figures.frame(points)
    assert (low < points).all()
    assert (points < high).all()
    assert figures.draw_map(points, np.repeat([0, 1], 500)).axes[0].get_legend() is None


MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("ending", MAGIC)
def test_maps_and_galleries_are_written_in_each_format(ending, tmp_path):
    points = np.random.RandomState(0).normal(size=(300, 2))
    labels = np.array([f"class {code}" for code in range(100)])[np.arange(300) % 100]
    pictures = {
        "map": figures.draw_map(
            points, labels, exemplars=points[:100], misclassified=labels == "class 3"
        ),
        "gallery": figures.draw_gallery(
            POINTS[:24].reshape(12, 4).repeat(4, axis=1), np.arange(12) % 6, (4, 4)
        ),
    }
    for name, figure in pictures.items():
        path = tmp_path / f"{name}.{ending}"
        figure.savefig(path)
        assert path.read_bytes().startswith(MAGIC[ending])
        assert path.stat().st_size > 2_000


def test_a_drawing_shows_itself_in_a_notebook():
    assert figures.draw_map(POINTS, LABELS)._repr_png_().startswith(b"\x89PNG")


def test_a_model_plots_its_map_and_shows_itself_in_a_notebook(three_blobs):
    X, y = three_blobs
    model = SHOPE(max_epochs=5, n_factors=8, n_units=8, random_state=0).fit(X, y)
    axes = model.plot(X, y).axes[0]
    drawn = np.concatenate([points.get_offsets() for points in axes.collections[:-1]])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(model.transform(X), axis=0))
    np.testing.assert_allclose(axes.collections[-1].get_offsets(), model.exemplar_embedding_)
    wrong = (model.predict(X) != y).sum()
    assert axes.get_title() == f"SHOPE: {wrong} of 90 rows misclassified"
    html = model._repr_html_()
    assert "SHOPE" in html
    assert html.count("fitted") > SHOPE()._repr_html_().count("fitted")


def test_a_map_that_cannot_be_plotted_says_why(three_blobs):
    X, y = three_blobs
    with pytest.raises(NotFittedError):
        SHOPE().plot(X, y)
    tall = SHOPE(n_components=3, max_epochs=1, n_factors=4, n_units=4).fit(X, y)
    with pytest.raises(InvalidParameter, match="this one has 3"):
        tall.plot(X, y)
    with pytest.raises(InvalidInput, match="90 rows and labels of shape"):
        tall.plot(X, y[:3])


def test_plot_without_matplotlib_says_what_to_install(three_blobs, monkeypatch):
    X, y = three_blobs
    model = SHOPE(max_epochs=1, n_factors=4, n_units=4).fit(X, y)
    monkeypatch.delitem(sys.modules, "hopefold.report.figures")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackage, match=r"pip install 'hopefold\[cli\]'"):
        model.plot(X, y)
