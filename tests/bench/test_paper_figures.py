"""The paper's figures, on digits with tiny models."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hopefold.errors import InvalidParameter
from hopefold.evaluation import exemplar_distances, knn_error
from hopefold_bench import __main__ as command
from hopefold_bench import ledger, paper_figures
from hopefold_bench.methods import METHODS
from hopefold_bench.models import SHOWN, model_file
from hopefold_bench.records import read_lines
from hopefold_bench.splits import load_splits

FILES = [f"{name}.{kind}" for name in ("exemplars", "maps") for kind in ("png", "svg")]


@pytest.fixture(scope="module", autouse=True)
def tiny_methods():
    """The four methods, in two epochs."""
    with pytest.MonkeyPatch.context() as patch:
        for method in SHOWN:
            row, changes = METHODS[method], {"max_epochs": 2, "refit": False}
            if "Deep" in method:
                changes |= {"hidden_layer_sizes": (20, 20), "pretraining_epochs": 1}
            else:
                changes |= {"n_factors": 20} if "HOPE" in method else {}
            patch.setitem(METHODS, method, replace(row, make=changed(row.make, changes)))
        yield


def changed(make, changes):
    return lambda data, seed: make(data, seed).set_params(**changes)


def draw(base, *arguments):
    folders = ["--results", str(base), "--models", str(base / "models")]
    return CliRunner().invoke(command.app, ["figures", "--data", "digits", *folders, *arguments])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder in which figures of the validation part have been drawn, and the printed text."""
    base = tmp_path_factory.mktemp("bench")
    result = draw(base)
    assert result.exit_code == 0, result.output
    return base, result.output


def test_both_figures_are_written_as_png_and_svg(drawn):
    folder = drawn[0] / "figures"
    for name in FILES:
        content = (folder / f"digits-validation-{name}").read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
        assert 10_000 < len(content) < 1_500_000
    assert not list(folder.glob("digits-maps*"))


def test_the_svg_has_its_points_as_an_image_and_no_date(drawn):
    svg = (drawn[0] / "figures" / "digits-validation-maps.svg").read_text()
    assert svg.count("<image") == 4
    assert "<dc:date>" not in svg


def test_the_models_are_kept_and_the_same_figures_come_from_them(drawn):
    base, printed = drawn
    assert printed.count("fitted in") == 4
    before = {path.name: path.read_bytes() for path in (base / "figures").iterdir()}
    again = draw(base)
    assert (again.output.count("kept"), again.output.count("fitted in")) == (4, 0)
    assert {path.name: path.read_bytes() for path in (base / "figures").iterdir()} == before


def test_a_model_with_other_settings_is_fitted_anew(drawn, tmp_path):
    splits = load_splits("digits", 0, final=False)
    job = paper_figures.Job("MCML", "digits", 0)
    printed = []
    for settings in ({}, {}, {"learning_rate": 0.02}):
        job = replace(job, changes=settings)
        model = paper_figures.kept_or_fitted(job, splits, tmp_path, printed.append)
    assert [line.split(": ")[1][:6] for line in printed] == ["fitted", "kept", "fitted"]
    assert model.learning_rate == 0.02


def test_the_numbers_are_those_of_the_kept_models(drawn):
    base, _ = drawn
    numbers = json.loads((base / "figures" / "digits-validation.json").read_text())
    splits = load_splits("digits", 0, final=False)
    model = paper_figures.hopefold.load(
        model_file("digits", "S-HOPE", "validation", base / "models")
    )
    points = model.transform(splits.X_new)
    error = knn_error(model.transform(splits.X), splits.y, points, splits.y_new)
    assert numbers["errors"]["S-HOPE"] == error
    assert numbers["errors"].keys() == {"MCML", "dt-MCML", "HOPE", "S-HOPE"}
    radii = exemplar_distances(
        points, splits.y_new, model.exemplar_embedding_, model.exemplar_labels_
    )
    printed = numbers["exemplar_distances"]["S-HOPE"]
    assert (printed["mean"], printed["max"]) == pytest.approx((radii.mean(), radii.max()))
    assert len(printed["each"]) == 20


def test_the_maps_show_the_new_rows_and_the_exemplars_of_hope_alone(drawn):
    splits = load_splits("digits", 0, final=False)
    jobs = [paper_figures.Job(method, "digits", 0) for method in SHOWN]
    shown = [paper_figures.show(job, splits, drawn[0] / "models", print) for job in jobs]
    axes = paper_figures.draw_embeddings(shown, splits, "").axes
    assert [panel.get_title().split(":")[0] for panel in axes] == [
        "MCML",
        "dt-MCML",
        "HOPE",
        "S-HOPE",
    ]
    assert [panel.get_legend() is not None for panel in axes] == [False, False, True, False]
    for panel, one in zip(axes, shown, strict=True):
        offsets = np.concatenate([layer.get_offsets() for layer in panel.collections])
        assert {tuple(point) for point in one.points.tolist()} <= {
            tuple(point) for point in offsets.tolist()
        }
        assert panel.get_title().endswith(f"{100 * one.error:.2f} %")


def test_only_final_figures_are_entered_in_the_ledger_before_they_read(drawn, monkeypatch):
    base, _ = drawn
    assert not ledger.ledger_file(base).exists()
    entries = []

    def look(data, split, *, final):
        entries.extend(read_lines(ledger.ledger_file(base)))
        return load_splits(data, split, final=final)

    monkeypatch.setattr(paper_figures, "load_splits", look)
    monkeypatch.setattr(paper_figures, "save", lambda _figure, path: path.touch())
    result = draw(base, "--final", "--folder", str(base / "elsewhere"))
    assert result.exit_code == 0, result.output
    assert len(entries) == 1
    assert entries[0].keys() == {"date", "commit", "plan", "only", "data", "jobs"}
    assert (entries[0]["plan"], entries[0]["data"]) == ("figures", ["digits"])
    assert (entries[0]["only"], entries[0]["jobs"]) == (list(SHOWN), 4)
    names = {path.name for path in (base / "elsewhere").iterdir()}
    assert names == {"digits.json", *(f"digits-{name}" for name in FILES)}
    assert json.loads((base / "elsewhere" / "digits.json").read_text())["part"] == "test"


def test_a_set_without_images_is_refused_before_anything_is_read(tmp_path):
    result = draw(tmp_path, "--data", "vgg", "--final")
    assert isinstance(result.exception, InvalidParameter)
    assert not ledger.ledger_file(tmp_path).exists()


def test_the_table_tells_the_exemplars_of_one_part(tmp_path):
    (tmp_path / "figures").mkdir()
    for data, part, mean in (("usps", "test", 0.123), ("usps-validation", "validation", 0.5)):
        distances = {"HOPE": {"mean": mean, "max": 1.25, "each": []}}
        numbers = {"data": "usps", "part": part, "rows": 3000, "exemplar_distances": distances}
        (tmp_path / "figures" / f"{data}.json").write_text(json.dumps(numbers))
    arguments = ["tables", "--name", "exemplars", "--results", str(tmp_path)]
    test = CliRunner().invoke(command.app, arguments).output
    assert "| usps | HOPE | 0.12 | 1.25 | 3,000 |" in test
    assert "0.50" not in test
    assert "| 0.50 |" in CliRunner().invoke(command.app, [*arguments, "--validation"]).output


def test_the_table_without_figures_says_so(tmp_path):
    arguments = ["tables", "--name", "exemplars", "--results", str(tmp_path)]
    assert "not run yet" in CliRunner().invoke(command.app, arguments).output
