"""The door of private data: only questions read the data, and their answers leave with noise.

A fit gets the door and not the data. What it asks is a question of bounded sensitivity, which names
its mechanism; the permit releases the noisy answer if it was charged. The exact answer, and what a
map makes of the data, stay behind the door. So everything else that a fit computes is a function
of public numbers and of what was released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dp_halfspace.privacy.interception import Mechanism
from dp_halfspace.privacy.mechanisms import ParallelReleases, Permit


class Door:
    """Private data, which only questions and maps read, and the permit of what may be released.

    Notes
    -----
    **Guarantee.**

    - Adjacency: that of the permit's record.
    - Released: the noisy answers of questions; nothing else leaves the door.
    - Sensitivity: that of a question, which the plan of its release bounds.
    - Proof: ``docs/proofs/engine.md``, section 1.
    """

    __slots__ = ("__data", "permit")

    def __init__(self, data: Any, permit: Permit) -> None:
        self.__data, self.permit = data, permit

    def release(
        self, ask: Callable[[Any], NDArray[Any]], mechanism: Mechanism
    ) -> NDArray[np.float64]:
        """Return the noisy answer of a question; see `Permit.release`."""
        return self.permit.release(ask(self.__data), mechanism)

    def choose(
        self, ask: Callable[[Any], NDArray[Any]], choice: Mechanism, *, is_cost: bool = False
    ) -> int:
        """Return the chosen candidate, a question telling their values; see `Permit.choose`."""
        return self.permit.choose(ask(self.__data), choice, is_cost=is_cost)

    def release_of_block(
        self,
        ask: Callable[[Any], NDArray[Any]],
        mechanism: Mechanism,
        releases: ParallelReleases,
        block: range,
    ) -> NDArray[np.float64]:
        """Return the noisy answer of a question to a block; see `ParallelReleases.release`."""
        return releases.release(ask(self.__data), mechanism, block)

    def map(self, change: Callable[[Any], Any]) -> Door:
        """Return the door of what a function makes of the data, with the same permit.

        A map of rows is a function of what was released, and treats each record by itself.
        """
        return Door(change(self.__data), self.permit)

    def under(self, permit: Permit) -> Door:
        """Return the door of the same data with another permit."""
        return Door(self.__data, permit)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied."""
        raise TypeError("private data cannot be pickled or copied from behind their door")
