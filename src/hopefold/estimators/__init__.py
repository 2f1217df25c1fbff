"""HOPE and S-HOPE with the scikit-learn contract."""
