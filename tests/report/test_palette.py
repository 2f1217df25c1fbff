from __future__ import annotations

from itertools import combinations

import pytest

from hopefold.report.palette import EXEMPLAR_COLOR, class_colors, difference


@pytest.mark.parametrize(
    ("n_classes", "least"), [(2, 0.2), (10, 0.07), (20, 0.055), (60, 0.03), (100, 0.022)]
)
def test_people_with_any_color_vision_can_tell_classes_apart(n_classes, least):
    pairs = combinations(class_colors(n_classes), 2)
    assert min(difference(one, other) for one, other in pairs) > least


def test_no_class_looks_like_an_exemplar():
    assert min(difference(color, EXEMPLAR_COLOR) for color in class_colors(100)) > 0.025


def test_a_difference_counts_for_those_who_see_it_least():
    assert difference("#ff0000", "#0000ff") > 0.2
    assert difference("#a96b59", "#1b7f5c") < 0.01, "brown and green without green cones"


def test_fewer_classes_have_the_first_colors_of_more():
    assert class_colors(100)[:37] == class_colors(37)
    assert len(set(class_colors(100))) == 100
