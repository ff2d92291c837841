"""cdmpp_parquet -- tables of operators from Parquet to TSV, which cdmpp-train and cdmpp-predict read (docs/reference/llm-operators.md).

    python3 cdmpp_parquet.py data/h100_sxm/gemm.parquet tables/          -> tables/h100_sxm/gemm.tsv.gz
    python3 cdmpp_parquet.py data/ tables/                              each *.parquet below, its folder kept

Needs pyarrow. Columns and their names stay as they are; null is an empty field; lists and the like are an error. Nothing is averaged or left out.
"""
import gzip
import os
import sys


def _field(value, path, name):
    if value is None or value != value:  # null, NaN
        return ""
    if isinstance(value, (dict, list, bytes)):
        raise SystemExit("%s: column %s: expected numbers and texts, found %s" % (path, name, type(value).__name__))
    text = repr(value) if isinstance(value, float) else str(value)
    if any(c in text for c in "\t\n\r"):
        raise SystemExit("%s: column %s: a text with a tab or the end of a line: %r" % (path, name, text))
    return text


def convert(parquet, path, to):
    """One table: `parquet` is pyarrow.parquet. Rows are read in batches; the file gets its name when it is whole."""
    table = parquet.ParquetFile(path)
    names = table.schema_arrow.names
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    with gzip.GzipFile(to + ".tmp", "wb", mtime=0) as f:
        f.write(("\t".join(names) + "\n").encode())
        for batch in table.iter_batches():
            columns = [column.to_pylist() for column in batch.columns]
            for row in zip(*columns):
                f.write(("\t".join(_field(v, path, name) for v, name in zip(row, names)) + "\n").encode())
    os.replace(to + ".tmp", to)


def tables(source):
    """(file, name below the target) of each table; of a file alone its folder is kept, because it names the device."""
    if not os.path.isdir(source):
        folder = os.path.basename(os.path.dirname(os.path.abspath(source)))
        return [(source, os.path.join(folder, os.path.basename(source)))]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(source) for name in names if name.endswith(".parquet")]
    return [(path, os.path.relpath(path, source)) for path in sorted(found)]


def main(args):
    if len(args) != 2:
        raise SystemExit("usage: cdmpp_parquet.py FILE|FOLDER TARGET")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise SystemExit("cdmpp_parquet: pyarrow is not installed for %s: `%s -m pip install pyarrow`, or write the table as CSV or HDF5" % (sys.executable, sys.executable)) from None
    found = tables(args[0])
    if not found:
        raise SystemExit("%s: no *.parquet in this folder" % args[0])
    for path, name in found:
        to = os.path.join(args[1], name[:-len(".parquet")] + ".tsv.gz")
        convert(parquet, path, to)
        print(to)


if __name__ == "__main__":
    main(sys.argv[1:])
