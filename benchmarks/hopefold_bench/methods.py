"""The methods of the tables: their names, their settings, and how often they are run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, TransformerMixin

from hopefold import baselines
from hopefold.data.scaling import learn_scale
from hopefold.estimators.hope import HOPE
from hopefold.estimators.shope import SHOPE
from hopefold.fitting.plan import TWO_LAYERS
from hopefold_bench import external_methods
from hopefold_bench.convnet import Convnet
from hopefold_bench.small_sets import CHECKED_SETS
from hopefold_bench.untied import UntiedSHOPE

if TYPE_CHECKING:
    from numpy import ndarray

#: The number of seeds or splits in the full plan, by data set.
PRODUCT = {"digits": 10, "usps": 10, "mnist": 5}
PRODUCT_WITH_VGG = {**PRODUCT, "vgg": 5}
ONCE = dict.fromkeys(CHECKED_SETS, 1)
CONJUGATE_GRADIENT = {"usps": 3, "mnist": 1}
DEEP = {"usps": 3, "mnist": 3}
#: Nothing is random but the split. MNIST has an official split, so one run is enough.
DETERMINISTIC = {"usps": 10, "mnist": 1}
LINEAR = {"usps": 10, "mnist": 5, "vgg": 1}

#: Settings of the deep baselines, chosen on validation parts. MNIST has more rows, so it
#: needs fewer epochs. Unsupervised methods need no dropout, and use larger batches.
SUPERVISED_DEEP = {"batch_size": 250, "input_dropout": 0.2}
UNSUPERVISED_DEEP = {"batch_size": 500, "input_dropout": 0}
DEEP_EPOCHS = {"usps": 60, "mnist": 30}
UNSUPERVISED_EPOCHS = {"usps": 60, "mnist": 20}
PRETRAINING_EPOCHS = {"usps": 5, "mnist": 3}
IMAGE_SHAPES = {"digits": (8, 8), "usps": (16, 16), "mnist": (28, 28)}

#: HOPE of the paper's size for MNIST, with tied factors: 75 products would have fewer weights than
#: 300 powers. So few factors need less input dropout.
SMALL_HOPE: dict[str, Any] = {"order": 3, "n_factors": 300, "tied": True, "input_dropout": 0.1}

#: The size limit of the small models, in bytes.
SMALL = 65_536

#: With distorted images a map hardly overfits, so the stack is wider and the epochs are more.
DISTORTED: dict[str, Any] = {
    "n_units": (600, 600),
    "n_factors": 500,
    "learning_rate": 1e-3,
    "max_epochs": 60,
    "validation_fraction": 0,
}

#: Settings of the short runs with one and two layers on MNIST, which take a quarter of an hour:
#: fewer epochs, no held-out rows.
SHORT_RUN: dict[str, Any] = {"max_epochs": 20, "validation_fraction": 0}

UNSUPERVISED = (baselines.Autoencoder, baselines.ParametricTSNE)


@dataclass(frozen=True)
class Method:
    """A method of the tables."""

    name: str
    #: A function of the data's name and a seed that returns an estimator.
    make: Callable[[str, int], Any]
    #: The group: "raw", "hope", "linear", "deep", "convnet", "extra".
    group: str
    #: The number of seeds or splits in the full plan, by data set.
    runs: Mapping[str, int]
    #: Slow methods come last in a plan.
    slow: bool = False
    #: The package that it needs.
    package: str | None = None

    @property
    def missing(self) -> str | None:
        """The package that it needs, if this is not installed."""
        return self.package if self.package and find_spec(self.package) is None else None


class Raw(TransformerMixin, BaseEstimator):
    """The rows without any map, optionally scaled as for a map."""

    def __init__(self, scale: str | None = None) -> None:
        self.scale = scale

    def fit(self, X: ndarray, y: ndarray) -> Self:
        """Learn the scale."""
        self.scale_ = learn_scale(X, self.scale)
        return self

    def transform(self, X: ndarray) -> ndarray:
        """The scaled rows in float32."""
        return self.scale_.apply(X)


#: The paper's sizes by data set, chosen on a validation part; other data sets use those of MNIST.
PAPER_SIZES: dict[type, dict[str, dict[str, int]]] = {
    HOPE: {"mnist": {"order": 3, "n_factors": 300}, "usps": {"order": 3, "n_factors": 600}},
    SHOPE: {
        "mnist": {"order": 2, "n_factors": 400, "n_units": 400},
        "usps": {"order": 2, "n_factors": 1_200, "n_units": 400},
    },
}

#: The paper's optimizer, and our choices where the paper does not specify.
PAPER_TRAINING: dict[str, Any] = {
    "optimizer": "cg",
    "batch_size": 5_000,
    "batch_iterations": 3,
    "max_epochs": 30,
    "validation_fraction": 0,
    "scale": "auto",
    "input_dropout": 0,
    "dropout": 0,
    "spare_components": 0,
}


def seeded(kind: type, **settings: Any) -> Callable[[str, int], Any]:
    """A method with the same settings for all data, and the seed."""
    return lambda _data, seed: kind(random_state=seed, **settings)


def on_images(kind: type, **settings: Any) -> Callable[[str, int], Any]:
    """A method with the same settings, the seed, and the shape of the images."""

    def make(data: str, seed: int) -> Any:
        return kind(random_state=seed, image_shape=IMAGE_SHAPES.get(data), **settings)

    return make


def short_on_mnist(**settings: Any) -> Callable[[str, int], Any]:
    """S-HOPE with the same settings and the seed, and a short run on MNIST."""

    def make(data: str, seed: int) -> Any:
        return SHOPE(random_state=seed, **settings, **(SHORT_RUN if data == "mnist" else {}))

    return make


def faithful(kind: type, exemplars: str) -> Callable[[str, int], Any]:
    """A method with the paper's sizes and optimizer."""

    def make(data: str, seed: int) -> Any:
        sizes = PAPER_SIZES[kind]
        settings = {**PAPER_TRAINING, **sizes.get(data, sizes["mnist"])}
        if kind is HOPE:
            settings["tied"] = True
        return kind(exemplars=exemplars, random_state=seed, **settings)

    return make


def deep(kind: type, *, pretrained: bool) -> Callable[[str, int], Any]:
    """A deep baseline, with or without layer-wise pre-training."""

    def make(data: str, seed: int) -> Any:
        like = data if data in DEEP_EPOCHS else "usps"
        unsupervised = kind in UNSUPERVISED
        return kind(
            max_epochs=(UNSUPERVISED_EPOCHS if unsupervised else DEEP_EPOCHS)[like],
            pretraining_epochs=PRETRAINING_EPOCHS[like] if pretrained else 0,
            validation_fraction=0,
            random_state=seed,
            **(UNSUPERVISED_DEEP if unsupervised else SUPERVISED_DEEP),
        )

    return make


ROWS = [
    Method(
        "raw",
        lambda data, _seed: Raw("auto" if data in CHECKED_SETS else None),
        "raw",
        {**DETERMINISTIC, **ONCE, "digits": PRODUCT["digits"], "vgg": 1},
    ),
    Method("S-HOPE", seeded(SHOPE), "hope", {**PRODUCT_WITH_VGG, **ONCE}),
    Method("HOPE", seeded(HOPE), "hope", {**PRODUCT, **ONCE}),
    Method("S-HOPE pairs", seeded(SHOPE, exemplars="kmeans"), "hope", PRODUCT_WITH_VGG),
    Method("HOPE pairs", seeded(HOPE, exemplars="kmeans"), "hope", PRODUCT),
    Method("HOPE O=3", seeded(HOPE, **SMALL_HOPE), "beyond", {"usps": 10, "mnist": 5}),
    Method("S-HOPE 64 kB", seeded(SHOPE, max_bytes=SMALL), "beyond", {"usps": 3, "mnist": 5}),
    Method(
        "S-HOPE 2 layers elastic",
        on_images(SHOPE, augment="elastic", **DISTORTED),
        "beyond",
        {"mnist": 2},
        slow=True,
    ),
    Method(
        "S-HOPE 2 layers",
        short_on_mnist(n_units=TWO_LAYERS),
        "beyond",
        {**ONCE, "usps": 3, "mnist": 2},
        slow=True,
    ),
    Method("S-HOPE 1 layer", short_on_mnist(), "beyond", {"mnist": 2}, slow=True),
    Method("convnet", seeded(Convnet), "convnet", {"mnist": 1}, slow=True),
    Method("LDA", seeded(baselines.LDA), "linear", DETERMINISTIC),
    Method("LPP", seeded(baselines.LPP, graph="neighbors"), "linear", DETERMINISTIC),
    Method("LPP classes", seeded(baselines.LPP), "linear", DETERMINISTIC),
    Method("NCA", seeded(baselines.NCA), "linear", LINEAR),
    Method("MCML", seeded(baselines.MCML), "linear", LINEAR),
    Method("LMNN", seeded(baselines.LMNN), "linear", LINEAR),
    Method("SNC", seeded(baselines.SNC), "linear", LINEAR),
    *(
        Method(
            f"{kind.__name__}{suffix}", deep(kind, pretrained=pretrained), "deep", DEEP, slow=True
        )
        for kind, ways in {
            baselines.DeepMCML: {" pre-trained": True, "": False},
            baselines.DeepNCA: {" pre-trained": True, "": False},
            baselines.Autoencoder: {"": True},
            baselines.ParametricTSNE: {"": True},
        }.items()
        for suffix, pretrained in ways.items()
    ),
    Method(
        "supervised UMAP",
        seeded(external_methods.SupervisedUMAP),
        "extra",
        {**PRODUCT, **ONCE},
        package="umap",
    ),
    Method("PaCMAP", seeded(external_methods.PaCMAP), "extra", PRODUCT, package="pacmap"),
    Method(
        "openTSNE", seeded(external_methods.OpenTSNE), "extra", DEEP, slow=True, package="openTSNE"
    ),
    *(
        Method(
            f"{name} faithful{suffix}",
            faithful(kind, exemplars),
            "hope",
            CONJUGATE_GRADIENT,
            slow=True,
        )
        for name, kind in (("S-HOPE", SHOPE), ("HOPE", HOPE))
        for suffix, exemplars in {"": "joint", " pairs": "kmeans"}.items()
    ),
    # Used by the sweep only.
    Method("S-HOPE untied", seeded(UntiedSHOPE, n_units=600), "ablation", {}),
]

METHODS = {row.name: row for row in ROWS}
