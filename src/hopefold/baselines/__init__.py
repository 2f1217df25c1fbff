"""What HOPE and S-HOPE are compared with, under the same contract."""

from hopefold.baselines.autoencoder import Autoencoder
from hopefold.baselines.deep_mcml import DeepMCML
from hopefold.baselines.deep_nca import DeepNCA
from hopefold.baselines.lda import LDA
from hopefold.baselines.lmnn import LMNN
from hopefold.baselines.lpp import LPP
from hopefold.baselines.mcml import MCML
from hopefold.baselines.nca import NCA
from hopefold.baselines.parametric_tsne import ParametricTSNE
from hopefold.baselines.snc import SNC

__all__ = [
    "LDA",
    "LMNN",
    "LPP",
    "MCML",
    "NCA",
    "SNC",
    "Autoencoder",
    "DeepMCML",
    "DeepNCA",
    "ParametricTSNE",
]
