"""Privacy: releases (events), their cost (accounting), and the sampling of noise."""

from dp_halfspace.privacy.accounting import calibrate as calibrate
from dp_halfspace.privacy.accounting import delta as delta
from dp_halfspace.privacy.accounting import epsilon as epsilon
from dp_halfspace.privacy.budget import additive_noise as additive_noise
from dp_halfspace.privacy.events import Either as Either
from dp_halfspace.privacy.events import Exponential as Exponential
from dp_halfspace.privacy.events import Gaussian as Gaussian
from dp_halfspace.privacy.events import ObjectivePerturbation as ObjectivePerturbation
from dp_halfspace.privacy.events import Pure as Pure
from dp_halfspace.privacy.events import RandomStopping as RandomStopping
from dp_halfspace.privacy.events import Repeated as Repeated
from dp_halfspace.privacy.events import SampledGaussian as SampledGaussian
from dp_halfspace.privacy.exponential import exponential_mechanism as exponential_mechanism
from dp_halfspace.privacy.mechanisms import GaussianNoise as GaussianNoise
from dp_halfspace.privacy.mechanisms import authorise as authorise
from dp_halfspace.privacy.noise import l2_laplace as l2_laplace
from dp_halfspace.privacy.noise import rounded_gaussian as rounded_gaussian
from dp_halfspace.privacy.profiles import gdp_delta as gdp_delta
from dp_halfspace.privacy.profiles import gdp_epsilon as gdp_epsilon
from dp_halfspace.privacy.profiles import gdp_mu as gdp_mu
from dp_halfspace.privacy.random_stopping import RunCountDistribution as RunCountDistribution
from dp_halfspace.privacy.random_stopping import (
    calibrate_random_stopping as calibrate_random_stopping,
)
from dp_halfspace.privacy.random_stopping import geometric_run_count as geometric_run_count
from dp_halfspace.privacy.random_stopping import random_stopping_event as random_stopping_event
from dp_halfspace.privacy.random_stopping import run_count_distribution as run_count_distribution
from dp_halfspace.privacy.random_stopping import select_best as select_best
from dp_halfspace.privacy.randomness import noise_source as noise_source
from dp_halfspace.privacy.randomness import public_generator as public_generator
from dp_halfspace.privacy.record import PrivacyRecord as PrivacyRecord
