"""``hopefold info``: the content of a model file."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from hopefold.cli import options, outputs, reading, shown
from hopefold.errors import BrokenFile
from hopefold.fitting import plan_table
from hopefold.report.titles import title
from hopefold.specification import METHODS, with_current_names


def info(
    model: options.Model,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole manifest as JSON.")
    ] = False,
) -> None:
    """Show the content of a model file, and check its checksum."""
    from hopefold.persistence import store

    reading.check_file(model)
    manifest, tensors = store.read(model)
    store.check_kind(manifest, METHODS, model)
    if as_json:
        shown.print_line(json.dumps(manifest, indent=2))
        return
    try:
        facts = {name: str(fact) for name, fact in _facts(manifest, tensors).items()}
        plan = plan_table.rows_of(**manifest["plan"]) if "plan" in manifest else []
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # the file is untrusted
        raise BrokenFile(f"{model} does not hold a model that makes sense ({error}).") from error
    kind = manifest["kind"]
    n_bytes = sum(tensor.nbytes for tensor in tensors.values())
    shown.print_line(f"{model}: {title(kind)}, {outputs.size(model)}, checksum ok")
    shown.print_facts(facts | {"numbers": f"{len(tensors)} arrays, {n_bytes:,} bytes"})
    if plan:
        shown.print_line("\nplan of the fit")
        shown.print_rows(plan_table.HEADINGS, plan)


def _facts(manifest: dict[str, Any], tensors: dict[str, Any]) -> dict[str, str]:
    classes, names = manifest["classes"]["values"], manifest["feature_names"]
    columns = manifest.get("columns", {})
    rows = {
        "written by": f"hopefold {manifest['version']}, file format {manifest['format']}",
        "classes": shown.listed(classes) if classes else "none: it was fitted without labels",
        "features": f"{manifest['n_features']:,}" + (f": {shown.listed(names)}" if names else ""),
    }
    if columns.get("label"):
        rows["label"] = columns["label"]
    if columns.get("aside"):
        rows["not features"] = shown.listed(columns["aside"])
    for name, values in columns.get("values", {}).items():
        rows[f"encoded {name}"] = shown.listed(values)
    if "fills" in tensors:
        rows["missing values"] = "filled with the mean of the column"
    if columns.get("image_shape"):
        rows["images"] = "{} × {} pixels".format(*columns["image_shape"])
    below = {name.split(".")[2] for name in tensors if name.startswith("map.below.")}
    if below:
        rows["layers"] = f"{len(below) + 1}"
    kept, what = len(tensors["references.embedding"]), "training rows"
    if "exemplars" in tensors:
        what = "exemplars" if classes else "landmarks"
    rows[what] = f"{kept:,}" + (", which new rows are compared with" if classes else "")
    rows |= _measures(manifest)
    rows["epochs"] = f"{manifest['epochs']:,}"
    rows["precision"] = manifest.get("precision", "float32")
    rows["settings"] = _settings(manifest["kind"], manifest["settings"])
    return rows


def _measures(manifest: dict[str, Any]) -> dict[str, str]:
    """Return the errors, and what else was measured in the fit."""
    rows = {}
    if manifest.get("interrupted"):
        rows["interrupted"] = "the fit was stopped early: this is the best map until then"
    if (error := manifest.get("validation_error")) is not None:
        found = (manifest.get(name) for name in ("validation_interval", "n_held_out", "n_rows"))
        rows["held-out error"] = shown.held_out_text(error, *found)
    if (error := manifest.get("train_error")) is not None:
        rows["training error"] = shown.percent(error)
    if manifest["classes"]["values"]:
        rows["temperature"] = f"{manifest.get('temperature', 1):.3g}, of the probabilities"
    if manifest.get("calibration_error") is not None:
        rows["calibration error"] = shown.calibration_text(manifest["calibration_error"])
    if manifest.get("structure"):
        rows["neighbors"] = shown.loss_share(manifest["structure"])
    if manifest.get("trustworthiness") is not None:
        rows["trustworthiness"] = shown.trustworthiness_text(manifest["trustworthiness"])
    return rows


def _settings(kind: str, settings: dict[str, Any]) -> str:
    """Return the settings that differ from the defaults, as text."""
    changed = options.changed(kind, with_current_names(settings)).items()
    return (
        ", ".join(f"{name}={options.written(value)}" for name, value in changed) or "the defaults"
    )
