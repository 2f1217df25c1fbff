"""What a plan depends on, and the plan itself, as plain values; `hopefold.fitting.plan` decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopefold.fitting.layer_sizes import Layers, is_several
from hopefold.fitting.plan_table import as_table, rows_of
from hopefold.training.settings import TAKING_TURNS, Training

GIVEN = "given"
DEFAULT = "default"

#: From so many features on, there are many: more of them can stand in for others.
MANY_FEATURES = 250


@dataclass(frozen=True)
class Defaults:
    """What "auto" starts from in one method."""

    #: Neighbors that vote among exemplars; ``None``: the Student kernel's mass decides.
    n_neighbors: int | None = 5
    n_factors: int = 400
    n_units: int = 600
    #: The polynomial units of a small map, in which columns are ranked.
    small_factors: int = 64
    #: Share of units dropped where there are few features.
    dropout: float = 0.0
    #: The largest steps, for few features and for many.
    learning_rates: tuple[float, float] = (2e-3, 2e-3)
    is_high_order: bool = False


DEFAULTS = {
    "HOPE": Defaults(
        n_neighbors=None,
        n_factors=1_200,
        small_factors=256,
        learning_rates=(2e-3, 1e-3),
        is_high_order=True,
    ),
    "SHOPE": Defaults(
        n_neighbors=None, dropout=0.3, learning_rates=(6e-3, 2e-3), is_high_order=True
    ),
    "SNC": Defaults(n_neighbors=1),
}


@dataclass(frozen=True)
class Facts:
    """What a plan depends on of the data."""

    #: Columns of the table, and those that the map is learned from (not constant).
    n_features: int
    n_columns: int
    #: Rows of the table, and those that the map is learned from in this run.
    n_rows: int = 1
    n_training: int = 1
    n_classes: int = 0
    n_labeled: int = 0
    is_sparse: bool = False
    #: Are the rows a dense table in memory?
    is_dense: bool = False
    #: Do all columns share one scale, as pixels do?
    one_scale: bool = False
    #: Do they, and have more than two values?
    has_pixels: bool = False
    #: The device that "auto" stands for.
    best_device: str = "cpu"

    @property
    def has_rare_features(self) -> bool:
        """Are rows sparse, with many features, such as words, that few rows have?"""
        return self.is_sparse and self.n_columns >= MANY_FEATURES

    @property
    def is_partly_labeled(self) -> bool:
        """Have some rows a label, and some not?"""
        return 0 < self.n_labeled < self.n_rows


@dataclass(frozen=True)
class Request:
    """What a user has asked for: a method, and its parameters as they were set."""

    method: str
    parameters: Mapping[str, Any]

    @property
    def defaults(self) -> Defaults:
        """What "auto" starts from."""
        return DEFAULTS.get(self.method, Defaults())

    @property
    def scale(self) -> str | None:
        """The scale to learn; where it is "auto", the columns decide."""
        scale: str | None = self.parameters["scale"]
        return "range" if self.parameters.get("augment") and scale == "auto" else scale

    @property
    def n_layers(self) -> int:
        """High-order layers, as far as the user has said so."""
        n_units = self.parameters.get("n_units")
        return len(n_units) if n_units is not None and is_several(n_units) else 1

    @property
    def leaves_layers(self) -> bool:
        """Is the number of layers left to the fit?"""
        asked = self.parameters
        several = is_several(asked["order"]) or is_several(asked["n_factors"])
        return asked.get("n_units") == "auto" and not several and asked["max_bytes"] is None

    def votes(self, *, with_exemplars: bool) -> int | None:
        """How many neighbors vote in `predict`; ``None``: the Student kernel's mass decides."""
        asked = self.parameters["n_neighbors"]
        if asked != "auto":
            return int(asked)
        usual = self.defaults.n_neighbors
        if usual == 1 and self.parameters["class_weight"] is not None:
            return None  # no single vote could heed class weights
        return usual if with_exemplars else 5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every setting of a fit as a value; no "auto" is left. Prints as a table with the reasons."""

    method: str
    # what is learned
    n_components: int
    exemplars: str | None
    n_exemplars: int
    # how it is evaluated
    validation_fraction: float
    refit: bool
    n_neighbors: int | None
    # where and in which units
    scale: str | None
    device: str
    # the training loop
    optimizer: str = "adam"
    max_epochs: int = 1
    batch_size: int = 1
    learning_rate: float = 0.0
    batch_iterations: int = 1
    weight_decay: float = 0.0
    patience: int | None = None
    taking_turns: float = TAKING_TURNS
    # a high-order map
    order: int | tuple[int, ...] = 1
    n_factors: int | tuple[int, ...] = 0
    n_units: int | tuple[int, ...] = 0
    tied: bool = False
    input_dropout: float = 0.0
    dropout: float = 0.0
    spare_components: int = 0
    max_bytes: int | None = None
    # its loss
    objective: str = "collapse"
    conditional: bool = False
    adversarial: float = 0.0
    structure: float = 0.0
    perplexity: float = 0.0
    n_landmarks: int = 0
    pseudo_labels: bool = False
    #: Is each row held out once, and the map that is kept learned from all?
    cross_fits: bool = False
    #: Does the map learn in the span of the rows, of which there are fewer than columns?
    in_row_span: bool = False
    augment: str | None = None
    image_shape: tuple[int, int] | None = None
    #: What only this method has, by the name of the parameter.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Why each setting is what it is: "given", "default", or what of the data decided it.
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def layers(self) -> Layers:
        """The sizes of a high-order map with sigmoids, layer by layer."""
        return Layers.of(self.order, self.n_factors, self.n_units)

    @property
    def learns_classes(self) -> bool:
        """Does the loss pull rows, as they are, onto exemplars of their class, and nothing else?"""
        joint = self.exemplars == "joint" and self.optimizer == "adam" and self.structure == 0
        return joint and self.augment is None and self.max_bytes is None

    def training(self) -> Training:
        """What the training loop needs to know."""
        return Training(
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            optimizer=self.optimizer,
            batch_iterations=self.batch_iterations,
            weight_decay=self.weight_decay,
            patience=self.patience,
            taking_turns=self.taking_turns,
        )

    @property
    def learns_from_unlabeled(self) -> bool:
        """Is anything learned from rows without a label?"""
        return self.structure > 0 or self.pseudo_labels

    def settings(self) -> dict[str, Any]:
        """The settings that the method has, by name, in the order of this class."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name in self.reasons}
        return own | dict(self.options)

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """The name, the value and the reason of each setting, as text."""
        return tuple(rows_of(self.settings(), self.reasons))

    def as_plain(self) -> dict[str, Any]:
        """The settings and the reasons as JSON."""
        settings = {name: _plain(value) for name, value in self.settings().items()}
        return {"settings": settings, "reasons": dict(self.reasons)}

    @classmethod
    def from_plain(cls, method: str, plain: Mapping[str, Any]) -> Plan:
        """What `as_plain` has given; whoever wrote it, a bad value is an error."""
        settings, reasons = dict(plain["settings"]), dict(plain["reasons"])
        for name, value in settings.items():
            parts = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str | int | float | None) for one in parts):
                raise ValueError(f"its plan has a {name} that is not a setting")
            settings[name] = tuple(value) if isinstance(value, list) else value
        if not all(isinstance(why, str) for why in reasons.values()):
            raise ValueError("its plan has reasons that are not text")
        known = {f.name for f in fields(cls)} - {"options", "reasons", "method"}
        own = {name: value for name, value in settings.items() if name in known}
        options = {name: value for name, value in settings.items() if name not in known}
        return cls(method=method, options=options, reasons=reasons, **own)

    def __str__(self) -> str:
        return as_table(self.settings(), self.reasons)

    __repr__ = __str__


def _plain(value: Any) -> Any:
    """A value as JSON; numbers of NumPy as Python's."""
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value.item() if hasattr(value, "item") else value
