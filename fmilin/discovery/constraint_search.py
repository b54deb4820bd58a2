"""The search: invariants of the speeds first, then those of positions on the manifold that the first ones make."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fmilin.discovery.function_library import Library
from fmilin.discovery.invariant import Invariant, independent_ones, is_independent, project_points
from fmilin.discovery.invariant_verification import CONSTRAINT, classify_invariant, integrate_speeds
from fmilin.discovery.sampler import Sampler
from fmilin.discovery.sparse_null_space import MAX_TERMS, NullSpace, null_space, null_vector, sparse_basis, svd
from fmilin.discovery.stabilized import Decaying, find_decaying
from fmilin.discovery.states import StateKinds
from fmilin.signals import FloatArray

MORE_THAN_TERMS = 1.2  # samples per term, and some more
EXTRA_INPUT_POINTS = 16  # points at which the inputs are moved, besides as many as there are candidates


@dataclass(frozen=True)
class ExcitedRates:
    """The effect of the inputs at some points: f(x, u) - f(x, u0)."""

    x: FloatArray  # shape (m, N)
    f: FloatArray  # shape (m, N)
    noise: FloatArray  # shape (m, N), of that


@dataclass
class Samples:
    """Random states and the rates there, with the inputs of the point and with others."""

    sampler: Sampler
    manifold: Sequence[Invariant] = ()  # zero at all samples; none: samples everywhere
    x: FloatArray = field(init=False)
    f: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.sampler.reach)
        self.x, self.f = np.empty((0, n)), np.empty((0, n))

    def for_terms(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return states and rates, each (m, N), enough for ``count`` terms."""
        sample_count = int(MORE_THAN_TERMS * count) + 10
        for _ in range(6):
            missing = sample_count - len(self.x)
            if missing <= 0:
                break
            x = self.draw_states(missing)
            f = self.rates(x)
            fine = np.isfinite(f).all(axis=1)
            self.x, self.f = np.vstack((self.x, x[fine])), np.vstack((self.f, f[fine]))
        return self.x[:sample_count], self.f[:sample_count]

    def draw_states(self, count: int) -> FloatArray:
        """Return random states on the manifold, of those that get there, shape (<= count, N)."""
        return project_points(self.sampler.states(count), self.manifold, self.sampler.sizes)

    def rates(self, x: FloatArray, u: FloatArray | None = None) -> FloatArray:
        """Return the rates at states x (m, N), with the inputs of the point or others (m, nu)."""
        return self.sampler.rates_at_fixed_inputs(x) if u is None else self.sampler.rates(x, u)

    def rows(self, library: Library) -> FloatArray:
        """Return Dphi f, shape (m, K), each row in its size; no rows where the model answers too seldom."""
        x, f = self.for_terms(len(library))
        if len(x) <= len(library):
            return np.empty((0, len(library)))
        rows = library.rates(x, f)
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))

    def excite_rates(self, count: int, single: int | None = None) -> ExcitedRates:
        """Return what random inputs, or a ``single`` one, change of the rates at some of the points."""
        m = min(count + EXTRA_INPUT_POINTS, len(self.x))
        x, u = self.x[:m], self.sampler.inputs(m)
        if single is not None:
            excitation = u[:, single].copy()
            u = np.tile(self.sampler.point.inputs, (m, 1))
            u[:, single] = excitation
        f = self.sampler.subtract_beyond_noise(self.rates(x, u), self.f[:m])
        fine = np.isfinite(f).all(axis=1)
        return ExcitedRates(x[fine], f[fine], self.sampler.estimate_noise(self.f[:m][fine]))


@dataclass
class SamplesAtRest(Samples):
    """States with zero speeds, and for rates of positions the accelerations there."""

    rate_of: Mapping[int, int] = field(default_factory=dict)  # of positions, their speeds

    def stop_speeds(self, x: FloatArray) -> FloatArray:
        """Return the same states (m, N) with those speeds zero."""
        resting = x.copy()
        resting[:, list(self.rate_of.values())] = 0.0
        return resting

    def draw_states(self, count: int) -> FloatArray:
        """Return random states at rest, shape (m, N)."""
        return self.stop_speeds(super().draw_states(count))

    def rates(self, x: FloatArray, u: FloatArray | None = None) -> FloatArray:
        """Return the accelerations in place of the positions' rates, zeros elsewhere."""
        f = super().rates(x, u)
        accelerations = np.zeros_like(f)
        accelerations[:, list(self.rate_of)] = f[:, list(self.rate_of.values())]
        return accelerations

    def rows(self, library: Library) -> FloatArray:
        """Return Dphi r'' at rest, and what it differs by when all speeds are reversed, shape (<= 2 m, K)."""
        rows = super().rows(library)
        x = self.x[: len(rows)]
        v = self.sampler.states(len(x))
        v = v - self.stop_speeds(v)
        forward, backward = self.rates(x + v), self.rates(x - v)
        sizes = np.linalg.norm(library.rates(x, np.abs(forward) + np.abs(backward)), axis=1, keepdims=True)
        odd_part = library.rates(x, forward - backward) / np.maximum(sizes, 1e-300)
        return np.vstack((rows, odd_part[np.isfinite(odd_part).all(axis=1)]))


UNCHANGED_RATE_TOLERANCE = 1e-6  # relative difference of rates that counts as none

MAX_TERMS_DECAYING = 700  # A library with more of them is not searched for what decays


@dataclass(frozen=True)
class Rejected:
    """An invariant that is taken for no constraint, and why."""

    invariant: Invariant
    reason: str


@dataclass
class ConstraintSearch:
    """The state of a search for constraints."""

    sampler: Sampler
    kinds: StateKinds
    announce: Callable[[Invariant], None]  # receives each constraint at once: a model may crash half-way
    # functions g of positions, with rates of zero where ``speeds`` are zero; more than are independent
    candidates: list[Invariant] = field(default_factory=list)
    # constraints that are kept by every motion, on the manifold or off it, and contain no speed
    norms: list[Invariant] = field(default_factory=list)
    # constraints of the speeds, those that are rates of ``positions`` among them
    speeds: list[Invariant] = field(default_factory=list)
    open: list[Invariant] = field(default_factory=list)  # they count where positions follow from them
    decaying: list[Decaying] = field(default_factory=list)  # constraints of positions that are stabilized
    rejected: list[Rejected] = field(default_factory=list)
    announced: list[Invariant] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._anywhere = Samples(self.sampler)
        self._on_manifold: Samples | None = None
        self._accuracy = max(1e-9, 50 * self.sampler.noise)
        self._modes: list[Invariant] = []
        self._points = self.sampler.states(5)

    def search_library(self, library: Library) -> None:
        """Look for constraints of all kinds among combinations of these functions."""
        if len(library):
            before = len(self.norms)
            self.search_everywhere(library)
            if len(self.norms) > before:
                self.search_everywhere(library)  # what holds only where they do
            self.search_on_manifold(library)
            self.find_stabilized(library)

    def search_everywhere(self, library: Library) -> None:
        """Look for functions that no state and no input changes, and judge them; on the manifold of the norms known."""
        candidates = list(self._invariants(remove_multiples_of_norms(library, self.norms), self._anywhere))
        norms: list[Invariant] = []
        for candidate, breaks in candidates:
            if not self._is_new(candidate, [*self._list_judged(), *norms]):
                continue
            at = candidate.at(self.sampler.point.states, self._accuracy)
            if breaks:
                self.rejected.append(Rejected(at, f"{_resemblance(at, self.kinds)}broken by input {breaks}"))
                continue
            verdict = classify_invariant(at, self.kinds, self.sampler)
            if verdict.kind == "conserved":
                self.rejected.append(Rejected(at, verdict.reason))
                # List the positions' relation of which ``h`` is the rate: gears without inputs look like momentum.
                g = integrate_speeds(at, self.kinds, self.sampler)
                if g is not None:
                    self.rejected.append(
                        Rejected(g, "a constraint if gears, belts or ropes connect these; no input decides it")
                    )
                continue
            has_speed = bool(at.states & self.kinds.speeds)
            (self.open if verdict.kind == "open" else self.speeds if has_speed else norms).append(at)
            self._on_manifold = None
        if norms:
            self.adopt(norms)

    def adopt(self, norms: Sequence[Invariant]) -> None:
        """Take constraints that every motion keeps for granted: points are sampled where they hold from now on."""
        self.norms += norms
        self._anywhere = Samples(self.sampler, independent_ones(self.norms, self._points, self.sampler.sizes))
        near = project_points(self._points, self._anywhere.manifold, self.sampler.sizes)
        self._points = near if len(near) else self._points

    def search_on_manifold(self, library: Library) -> None:
        """Look for functions of positions that no motion changes which the speeds' constraints allow."""
        if not (self.speeds or self.open):
            return
        library = remove_multiples_of_norms(library, self.norms).without(self.kinds.speeds)
        if self._on_manifold is None:
            constraints = [*self.norms, *self.speeds, *self.open]
            self._on_manifold = Samples(self.sampler, independent_ones(constraints, self._points, self.sampler.sizes))
        for candidate, breaks in self._invariants(library, self._on_manifold):
            at = candidate.at(self.sampler.point.states, self._accuracy)
            if breaks or not self._is_new(at, self.norms) or self._vanishes(at):
                continue
            if self._is_new(at, [*self.candidates, *self.norms]):
                self._announce(at)
            self.candidates.append(at)

    def find_stabilized(self, library: Library) -> None:
        """Look for functions of positions that decay by themselves, whatever the inputs do."""
        x, f = self._anywhere.for_terms(len(library))
        if len(library) > MAX_TERMS_DECAYING or len(x) <= len(library) + 1:
            return
        order = sorted(range(len(library)), key=lambda i: library.terms[i].complexity)
        for mode in find_decaying(library, x, f, self.kinds.speeds, order, self.sampler.noise):
            modes_and_constraints = [*self.norms, *self._modes, *(d.g for d in self.decaying)]
            if not self._is_new(mode.g, modes_and_constraints) or self._find_breaking_input(mode.g, self._anywhere):
                continue
            if self._find_breaking_input(mode.rate, self._anywhere):
                continue
            if mode.g.is_linear or not self._is_zero_at_start(mode.g):
                self._modes.append(mode.g)
                if len(mode.g.states) > 1:
                    reason = "decays by itself: a mode that no input reaches, or a constraint that is stabilized"
                    self.rejected.append(Rejected(mode.g, reason))
                continue
            self.decaying.append(mode)
            self._announce(mode.g)

    def search_redundant(self, library: Library) -> None:
        """Look for constraints that only motions keep which satisfy all: g'' = 0 at rest, wherever positions are."""
        samples = SamplesAtRest(self.sampler, rate_of=self.kinds.rate_of)
        polynomials = Library(t for t in library.terms if t.states <= self.kinds.rate_of.keys() and not t.harmonic[0])
        compatible_candidates: list[tuple[Invariant, Invariant]] = []
        for candidate, breaks in self._invariants(polynomials, samples) if len(polynomials) else ():
            g = candidate.at(self.sampler.point.states, self._accuracy)
            rate = g.rate(self.kinds.rate_of)
            if (
                not breaks
                and self._is_new(rate, self._list_judged())
                and classify_invariant(rate, self.kinds, self.sampler) == CONSTRAINT
            ):
                compatible_candidates.append((g, rate))
        for g, rate in self._select_compatible(compatible_candidates, samples) if compatible_candidates else ():
            self.speeds.append(rate)
            self.candidates.append(g)
            self._announce(g)
            self._on_manifold = None

    def _select_compatible(
        self, candidates: list[tuple[Invariant, Invariant]], samples: SamplesAtRest
    ) -> list[tuple[Invariant, Invariant]]:
        """Return those with rates that no motion that satisfies all changes, together with their values."""
        x = samples.draw_states(EXTRA_INPUT_POINTS)
        free, off = (self.sampler.states(len(x)) - x for _ in range(2))
        free, off = free - samples.stop_speeds(free), off - samples.stop_speeds(off)
        while candidates:
            rates = [rate for _, rate in candidates]
            H = np.stack([h.gradients(x) for h in (*rates, *(h for h in self.speeds if not h.level))], axis=1)
            v = free - (np.linalg.pinv(H, rcond=UNCHANGED_RATE_TOLERANCE) @ (H @ free[:, :, None]))[:, :, 0]
            states = x + v, x + v + off, x + off
            f = [self.sampler.rates_at_fixed_inputs(s) for s in states]
            fine = []
            for h in rates:
                on_constraints, disturbed, alone = (
                    (h.gradients(s) * r).sum(axis=1) for s, r in zip(states, f, strict=True)
                )
                size = (np.abs(h.gradients(states[1])) * np.abs(f[1])).sum(axis=1)
                fine.append(
                    bool(
                        (
                            np.maximum(np.abs(on_constraints), np.abs(disturbed - alone))
                            <= UNCHANGED_RATE_TOLERANCE * size
                        ).all()
                    )
                )
            if all(fine):
                break
            candidates = [both for both, good in zip(candidates, fine, strict=True) if good]
        return candidates

    def rank(self) -> int:
        """Return how many states hang on others at the point by what was found."""
        constraints = [*self.candidates, *self.norms, *self.speeds, *(h for d in self.decaying for h in (d.g, d.rate))]
        if not constraints:
            return 0
        rows = np.array([h.gradients(self.sampler.point.states[None])[0] for h in constraints]) * self.sampler.sizes
        sizes = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        return int(np.linalg.matrix_rank(rows / sizes, tol=1e-6))

    def explain_rejection(self, h: Invariant) -> str:
        """Return why h, announced, is not declared."""
        return next((r.reason for r in self.rejected if r.invariant is h), "it follows from others")

    def _announce(self, h: Invariant) -> None:
        self.announced.append(h)
        self.announce(h)

    def reject(self, h: Invariant, reason: str) -> None:
        """Take h for no constraint after all, nor those of positions of which it may be the rate."""
        rates = self.kinds.rate_of
        if h.states & self.kinds.speeds:
            for g in [g for g in self.candidates if {rates.get(i) for i in g.states} & h.states]:
                self.reject(g, "its rate changes at other states")
        for kind in (self.candidates, self.norms, self.speeds, self.open):
            kind[:] = [k for k in kind if k is not h]
        self.decaying = [d for d in self.decaying if h is not d.g and h is not d.rate]
        self.rejected.append(Rejected(h, reason))

    def _is_zero_at_start(self, g: Invariant) -> bool:
        """Whether terms that are not zero add up to zero at the point: no accident."""
        x0 = self.sampler.point.states[None]
        size = g.size(x0)[0]
        return size > 1e-3 * g.size(self._points).max() and bool(abs(g.values(x0)[0]) <= 1e-6 * size)

    def _vanishes(self, candidate: Invariant) -> bool:
        """Whether it says nothing but what the speeds' constraints say: then it is zero where these are."""
        x = self._on_manifold.x if self._on_manifold is not None else self._anywhere.x
        return bool((np.abs(candidate.values(x)) <= 1e-8 * candidate.size(x)).all())

    def _list_judged(self) -> list[Invariant]:
        return [*self.norms, *self.speeds, *self.open, *(k.invariant for k in self.rejected)]

    def _is_new(self, candidate: Invariant, references: Sequence[Invariant]) -> bool:
        return is_independent(candidate, references, self._points, self.sampler.sizes)

    def _invariants(self, library: Library, samples: Samples) -> Iterator[tuple[Invariant, str]]:
        """Yield what the held inputs leave unchanged, each with the name of an input that breaks it, or ''."""
        rows = samples.rows(library)
        space = null_space(rows, self.sampler.noise)
        if not space.basis.size:
            return
        unchanged, broken = self._split_by_inputs(library, samples, space)
        order = sorted(range(len(library)), key=lambda i: library.terms[i].complexity)
        for part, is_broken in ((unchanged, False), (broken, True)):
            for vector in sparse_basis(part, order):
                invariant = self._refine(library, rows, vector)
                if invariant is not None:
                    yield invariant, self._find_breaking_input(invariant, samples) if is_broken else ""

    def _split_by_inputs(self, library: Library, samples: Samples, space: NullSpace) -> tuple[NullSpace, NullSpace]:
        """Return what random inputs leave alone, and the whole ``space`` where they break something of it."""
        basis, empty = space.basis, replace(space, basis=space.basis[:, :0])
        if not len(self.sampler.point.inputs):
            return space, empty
        excited = samples.excite_rates(2 * basis.shape[1])
        changes = library.rates(excited.x, excited.f) / space.sizes
        sizes = np.abs(changes) @ np.abs(basis)
        through = changes @ basis / max(float(sizes.max(initial=0.0)), 1e-300)
        s, vt = svd(through)
        unchanged = s <= max(1e-8, 100 * self.sampler.noise)
        return (space, empty) if unchanged.all() else (replace(space, basis=basis @ vt[unchanged].T), space)

    def _find_breaking_input(self, h: Invariant, samples: Samples) -> str:
        """Return the name of the first input that changes ``h``; empty when none does alone."""
        for j, name in enumerate(self.sampler.model.inputs.names):
            excited = samples.excite_rates(0, single=j)
            has_changed = excited.f.any(axis=1)
            rates = h.rates(excited.x[has_changed], excited.f[has_changed], excited.noise[has_changed])
            if (rates > 1e-6).any():
                return name
        return ""

    def _refine(self, library: Library, rows: FloatArray, vector: FloatArray) -> Invariant | None:
        """Return the invariant with the few terms of ``vector``, solved for again with these alone."""
        for _ in range(3):
            support = np.flatnonzero(vector)
            if not 1 <= len(support) <= MAX_TERMS:
                return None
            support = np.array(sorted(support, key=lambda i: (library.terms[i].complexity, i)))
            space = null_space(rows[:, support], self.sampler.noise)
            if not space.basis.size:
                return None
            coefficients = null_vector(space, vector[support])
            weight = np.abs(coefficients) * space.sizes
            small = weight <= max(1e-9, 10 * self.sampler.noise, 10 * space.error) * weight.max()
            if not small.any():
                return Invariant(library[support.tolist()], coefficients / np.abs(coefficients).max())
            vector = np.zeros(len(library))
            vector[support[~small]] = coefficients[~small]
        return None


def remove_multiples_of_norms(library: Library, norms: Sequence[Invariant]) -> Library:
    """Return the terms that no multiple of a norm's last one is: where norms are zero, the others say it as well."""
    leading = [
        dict(max((t.powers for t in h.library.terms), key=lambda p: (sum(k for _, k in p), p)))
        for h in norms
        if not any(t.harmonic[0] for t in h.library.terms)
    ]
    return Library(
        t
        for t in library.terms
        if not any(p.items() and all(dict(t.powers).get(i, 0) >= k for i, k in p.items()) for p in leading)
    )


def _resemblance(h: Invariant, kinds: StateKinds) -> str:
    if h.degree(kinds.speeds) > 1:
        return "looks like mechanical energy; "
    return "looks like momentum; " if h.states & kinds.speeds else ""
