from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex

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
    assert to_hex(rings.get_edgecolor()[0]) == figures.EXEMPLAR_COLOUR
    np.testing.assert_allclose(rings.get_offsets(), POINTS[:3])
    assert png(figure).startswith(b"\x89PNG")


def test_every_point_is_drawn_once_and_mistaken_ones_are_counted():
    mistaken = np.arange(40) % 8 == 0
    figure = figures.draw_map(POINTS, LABELS, mistaken=mistaken)
    drawn = sum(len(collection.get_offsets()) for collection in figure.axes[0].collections)
    assert drawn == 40
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["5 mistaken"]


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
def test_every_class_has_a_colour_of_its_own_and_none_is_the_exemplars(n_classes):
    colours = [to_hex(colour) for colour in figures.class_colours(n_classes)]
    assert len(set(colours)) == n_classes
    assert figures.EXEMPLAR_COLOUR not in colours


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
