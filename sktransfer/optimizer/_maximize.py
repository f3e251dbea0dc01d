"""Maximize an acquisition over a mixed space: many samples, then local search from the best of
them.

Notation: codes (n, d) of configurations; an acquisition maps codes to values, (n, d) -> (n,).
Gradients do not help with lists, integers and categories. A shrinking local search treats all
columns in the same way and evaluates about a hundred configurations at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import qmc

from sktransfer.space import Space
from sktransfer.surrogates import Region

Acquisition = Callable[[np.ndarray], np.ndarray]


def maximize(
    acquisition: Acquisition,
    space: Space,
    rng: np.random.Generator,
    *,
    near: np.ndarray,
    region: Region | None = None,
    n_samples: int = 1024,
    n_starts: int = 8,
    n_neighbors: int = 24,
    n_rounds: int = 8,
) -> np.ndarray:
    """Codes with high acquisition, best first.

    Parameters
    ----------
    acquisition : callable, (n, d) -> (n,)
    space : Space
    rng : numpy Generator
    near : ndarray of shape (m, d)
        Codes worth searching around, such as the best trials so far.
    region : Region or None
        Where to look; None is everywhere.
    n_samples : int
        Configurations drawn from the whole space.
    n_starts, n_neighbors, n_rounds : int
        Size of the local search.

    Returns
    -------
    codes : ndarray of shape (k, d)
    """
    acquisition = confine(acquisition, region)
    samples = sample(space, rng, n_samples, region)
    if len(near):
        around = neighbors(space, np.repeat(near, n_neighbors, axis=0), 0.1, rng)
        samples = np.vstack([samples, around])
    values = acquisition(samples)
    order = np.argsort(-values)
    centers, heights = samples[order[:n_starts]], values[order[:n_starts]]
    spare = samples[order[n_starts : 4 * n_starts]]
    for step in np.geomspace(0.2, 0.005, n_rounds):
        moves = neighbors(space, np.repeat(centers, n_neighbors, axis=0), step, rng)
        gained = acquisition(moves).reshape(len(centers), n_neighbors)
        best = gained.argmax(axis=1)
        better = gained[np.arange(len(centers)), best] > heights
        moves = moves.reshape(len(centers), n_neighbors, -1)[np.arange(len(centers)), best]
        centers = np.where(better[:, None], moves, centers)
        heights = np.where(better, gained.max(axis=1), heights)
    return np.vstack([centers[np.argsort(-heights)], spare])


def sample(
    space: Space, rng: np.random.Generator, n: int, region: Region | None = None
) -> np.ndarray:
    """Codes drawn from the space, or from a part of it; -> (n, d)."""
    cube = rng.random((n, space.n_columns))
    return space.from_cube(cube) if region is None else space.snap(region.stretch(cube))


def confine(acquisition: Acquisition, region: Region | None) -> Acquisition:
    """The acquisition, minus infinity outside of the region."""
    if region is None:
        return acquisition
    return lambda theta: np.where(region.contains(theta), acquisition(theta), -np.inf)


def redraw(
    space: Space, codes: np.ndarray, probability: float, rng: np.random.Generator
) -> np.ndarray:
    """Redraw each coordinate with a probability; (n, d) -> (n, d).

    Yogatama & Mann 2014, section 4.3.
    """
    drawn = sample(space, rng, len(codes))
    change = rng.random(codes.shape) < probability
    # A draw from another branch has other parameters, so none of its coordinates fits.
    change &= (space.branch_of(drawn) == space.branch_of(codes))[:, None]
    return space.snap(np.where(change, drawn, codes))


def neighbors(space: Space, codes: np.ndarray, step: float, rng: np.random.Generator) -> np.ndarray:
    """One neighbor of each code: some columns moved by about `step`, some categories redrawn."""
    moved = codes.copy()
    branch = space.branch_of(codes)
    for b in np.unique(branch):
        rows = np.flatnonzero(branch == b)
        columns = space.active(b)
        if not len(columns):
            continue
        # Each row moves a random number of its columns, at least one.
        share = rng.random((len(rows), 1))
        chosen = rng.random((len(rows), len(columns))) < np.maximum(share, 1 / len(columns))
        chosen[np.arange(len(rows)), rng.integers(len(columns), size=len(rows))] = True
        for j, column in enumerate(columns):
            hit = rows[chosen[:, j]]
            moved[hit, column] = _move(
                space.choices(b, column), space.categorical[column], moved[hit, column], step, rng
            )
    return space.snap(moved)


def _move(
    choices: np.ndarray | None,
    categorical: bool,
    u: np.ndarray,
    step: float,
    rng: np.random.Generator,
) -> np.ndarray:
    if categorical and choices is not None:
        return rng.choice(choices, size=len(u))
    jump = step * rng.standard_normal(len(u))
    if choices is not None and len(choices) > 1:
        # On a list, a step must reach the next value, or nothing would move.
        gap = np.diff(choices).max()
        jump = np.sign(jump) * np.maximum(np.abs(jump), gap * rng.random(len(u)))
    return np.clip(u + jump, 0, 1)


def fill_space(
    space: Space, index: int, seed: int, region: Region | None, rng: np.random.Generator
) -> np.ndarray:
    """Codes that fill the space or a region evenly: the middle, then a Sobol sequence; -> (k, d).

    One code in the whole space. In a region there are some random ones besides, because the value
    of a list that is nearest to a code may lie outside.
    """
    if index == 0:
        cube = np.where(space.categorical, 0.0, 0.5)[None]  # the first category
    else:
        engine = qmc.Sobol(space.n_columns, seed=seed)
        if index > 1:
            engine.fast_forward(index - 1)
        cube = engine.random(1)
    if region is None:
        return space.from_cube(cube)
    codes = np.vstack([space.snap(region.stretch(cube)), sample(space, rng, 64, region)])
    return codes[region.contains(codes)]
