"""Made the model files here, once a format and kind. Files that are there are left as they are.

python tests/golden/make.py
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from hopefold import HOPE, SHOPE
from hopefold.persistence import store

HERE = Path(__file__).parent


def main() -> None:
    iris = load_iris(as_frame=True)
    rows = iris.data.to_numpy()
    names = iris.target_names[iris.target]
    small = {"max_epochs": 10, "random_state": 0, "device": "cpu"}
    shope = SHOPE(n_factors=6, n_units=5, **small).fit(iris.data, names)
    pairs = HOPE(n_factors=4, exemplars=None, **small).fit(rows[::5], iris.target[::5])
    budget = SHOPE(max_bytes=6_000, **small).fit(rows, names)
    models = [("shope", shope, iris.data), ("hope-pairs", pairs, rows), ("int8", budget, rows)]
    for name, model, X in models:
        path = HERE / f"format-{store.FORMAT}-{name}.hope"
        if path.exists():
            continue
        model.save(path)
        labels = model.predict(X).astype(str)
        np.savez_compressed(path.with_suffix(".npz"), points=model.transform(X), labels=labels)


if __name__ == "__main__":
    main()
