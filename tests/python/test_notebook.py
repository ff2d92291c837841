"""examples/first-answers.ipynb runs from top to bottom in a folder that is not the project's, with the models that come with the
program, and each cell that is to print something does."""
import contextlib
import io
import json
import os
import tempfile
import warnings

ROOT = os.getcwd()


def main():
    with open("examples/first-answers.ipynb", encoding="utf-8") as f:
        cells = ["".join(c["source"]) for c in json.load(f)["cells"] if c["cell_type"] == "code"]
    os.environ.pop("CDMPP_DEFAULT_MODEL", None)
    names, printed = {}, []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for text in cells:
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(text, "first-answers.ipynb", "exec"), names)  # pylint: disable=exec-used
                assert ("print(" in text) == bool(out.getvalue().strip()), text
                printed.append(out.getvalue())
        os.chdir(ROOT)
    zen4, h100 = names["answers"]
    assert zen4.low < zen4.seconds < zen4.high and h100.seconds < zen4.seconds, names["answers"]
    assert [(a.gpu.split()[0], a.tp) for a in names["served"]] == [(g, t) for g in ("l40s", "h100", "b200") for t in (1, 2)], names["served"]
    assert all(0 < a.tpot_low < a.tpot < a.tpot_high for a in names["served"] if not a.refused)
    print("notebook: %d passed, 0 failed" % len(cells))


main()
