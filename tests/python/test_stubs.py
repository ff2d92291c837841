"""The stubs say what the module has: the same names, parameters in the same order, the same ones optional, the same fields."""
import ast
import dataclasses
import inspect
import os

import cdmpp

STUBS = os.path.join(os.path.dirname(cdmpp.__file__), "cdmpp-stubs", "__init__.pyi")


def described(f):
    """(name, optional, kind) of each parameter in a stub."""
    a = f.args
    n = len(a.args) - len(a.defaults)
    out = [(p.arg, i >= n, "plain") for i, p in enumerate(a.args)]
    out += [(a.vararg.arg, False, "*")] if a.vararg else []
    return out + ([(a.kwarg.arg, False, "**")] if a.kwarg else [])


def real(f):
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [(p.name, p.default is not inspect.Parameter.empty, kinds.get(p.kind, "plain")) for p in inspect.signature(f).parameters.values()]


def of_class(node):
    kind = getattr(cdmpp, node.name)
    stubbed = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
    own = {k for k, v in vars(kind).items() if inspect.isfunction(v) and not k.startswith("_")}
    assert own <= stubbed, (node.name, own - stubbed)
    for m in node.body:
        if isinstance(m, ast.FunctionDef):
            assert described(m) == real(getattr(kind, m.name)), (node.name, m.name, described(m), real(getattr(kind, m.name)))
    if dataclasses.is_dataclass(kind):
        fields = [m.target.id for m in node.body if isinstance(m, ast.AnnAssign)]
        assert fields == [f.name for f in dataclasses.fields(kind)], (node.name, fields)


def main():
    with open(STUBS, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    seen = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    # inner parts and those for C programs' structures begin with "_"
    public = {k for k, v in vars(cdmpp).items() if not k.startswith("_") and getattr(v, "__module__", None) == "cdmpp"} - {"library"}
    assert public == set(seen), public ^ set(seen)
    for name, node in seen.items():
        if isinstance(node, ast.ClassDef):
            of_class(node)
        else:
            assert described(node) == real(getattr(cdmpp, name)), (name, described(node), real(getattr(cdmpp, name)))
    print("stubs: %d passed, 0 failed" % len(seen))


main()
