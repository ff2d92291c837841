#!/bin/sh
# search.sh -- stage search: tuners on recorded measurements, by the models of `draws`, which are trained here too.
set -eu
SECTIONS="draws replay" PAGES=replay exec sh scripts/results/models.sh
