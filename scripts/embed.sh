#!/bin/sh
# embed.sh FILE -- the file as a C header: `static const char NAME[]`, its bytes and a closing zero, where NAME is
# the file's name with every character that C does not allow as "_". Bytes rather than a string literal, because
# ISO C promises literals of 4095 characters only. Called by make for the files of web/ and embed/ folders.
set -eu
name=$(basename "$1" | tr -c '[:alnum:]\n' _)
echo "/* $1, made by scripts/embed.sh. */"
echo "static const char $name[] = {"
od -An -v -tx1 "$1" | sed "s/ *\\(..\\)/'\\\\x\\1',/g"
echo "0};"
