"""Public signatures say what they take and return: where they say ``Any``, there is a reason."""

from __future__ import annotations

from tests.typing.signatures import annotations_with_any, public_things

# By reason, then by function, method or class: the parameters and fields that hold Any.
REASONS: dict[str, dict[str, str]] = {
    "JSON documents, which users index: their entries are of all kinds": {
        "fmilin.Audit.to_dict": "return",
        "fmilin.AuditRow.to_dict": "return",
        "fmilin.Discovery.document": "return",
        "fmilin.Verification.to_document": "return",
        "fmilin.design.LoopShapingDesign.to_document": "return",
        "fmilin.design.LqgDesign.to_document": "return",
        "fmilin.design.RegulatorVerification.to_document": "return",
    },
    "fields of a record, which are of all kinds": {
        "fmilin.DelayedLinearModel.with_fields": "changes",
    },
    "values of options that an adapter itself defines": {
        "fmilin.adapters.Adapter.load_as": "options",
        "fmilin.adapters.Adapter.load_by_name": "options",
        "fmilin.adapters.Adapter.load_member": "options",
        "fmilin.adapters.Adapter.load_named": "options",
    },
    "matrices that are dense, sparse or callable": {
        "fmilin.formulations.ConstrainedForm": "B C K M Phi_q",
        "fmilin.formulations.ConstrainedForm.zeros": "return",
        "fmilin.formulations.ConstraintMotion": "Phi_q_dot gamma_q gamma_v",
    },
    "names and expressions in equations: texts, numbers or objects of sympy, which has no types; a union of them as "
    "the key of a mapping would reject variables that are mappings of texts alone": {
        "fmilin.models.DaeModel.__init__": "algebraic equations inputs outputs parameters start states",
        "fmilin.models.KaneEquations": "f_0 f_1 f_2 f_3 f_4 f_a f_c f_v multipliers q u",
        "fmilin.models.KaneModel.__init__": "inputs outputs parameters start",
        "fmilin.models.KaneModel.from_sympy": "inputs outputs parameters reactions start",
        "fmilin.models.KaneModel.linearize_symbolic": "values",
        "fmilin.models.Labels": "descriptions independent nominals units",
        "fmilin.models.LagrangeModel.__init__": (
            "constraints coordinates forces inputs mass_matrix outputs parameters start"
        ),
        "fmilin.models.DiscreteModel.__init__": "constraints inputs next outputs parameters start",
        "fmilin.models.DiscreteModel.from_function": "next",
        "fmilin.models.OdeModel.__init__": (
            "algebraic constraints equations inputs mass_matrix outputs parameters start"
        ),
        "fmilin.models.SymbolicConstraint": "expression",
        "fmilin.models.der": "return state",
    },
    "selected quantities are of a type of each engine's own": {
        "fmilin.adapters.NativeModel": "engine",
        "fmilin.adapters.NativeModel.__init__": "engine",
    },
    "nodes of a graph of CasADi, SX or MX, and numbers in their places": {
        "fmilin.adapters.DaeEngine.__init__": "equations",
        "fmilin.adapters.DaeEngine.build_model": "make return",
        "fmilin.adapters.DaeEngine.express": "expressions return",
        "fmilin.adapters.DaeEngine.expression": "return",
        "fmilin.adapters.DaeEngine.with_system": "equations",
        "fmilin.adapters.ImplicitSystem": (
            "derivatives further inputs matrix outputs parameters right_hand_side slopes states time unknowns"
        ),
        "fmilin.adapters.ImplicitSystem.arguments": "return",
        "fmilin.adapters.ImplicitSystem.motion": "return",
        "fmilin.adapters.ImplicitSystem.motion_slopes": "return",
        "fmilin.adapters.ImplicitSystem.remainder": "return",
        "fmilin.adapters.ImplicitSystem.residual_slopes": "columns return",
        "fmilin.models.DaeGraph": "dx outputs p ranges residuals time u x z",
        "fmilin.models.DaeGraph.unknowns": "return",
        "fmilin.models.mechanism.Mechanism.state": "u x",
    },
}


def test_any_stands_in_a_public_signature_for_a_reason_only() -> None:
    accepted = {
        f"{path} {name}" for paths in REASONS.values() for path, names in paths.items() for name in names.split()
    }
    marked = annotations_with_any()
    assert marked - accepted == set(), "name a type, a Protocol or object"
    assert accepted - marked == set(), "these have types now: take them off the list"


def test_all_of_the_public_names_are_looked_at() -> None:
    paths = set(public_things().values())
    assert {"fmilin.linearize", "fmilin.LinearModel", "fmilin.design.tune", "fmilin.models.OdeModel"} <= paths
    assert len(paths) > 200
