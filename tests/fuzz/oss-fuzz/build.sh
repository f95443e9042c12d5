#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the fuzz targets as OSS-Fuzz asks. Compilers and flags are in the environment, and the
# programs and their first inputs go to $OUT. The programs run on a machine without other packages,
# so all libraries are linked statically. The targets do not use io_uring, so the library is built
# without io_uring.
set -eu

cd "$SRC/timerhub"
meson setup "$WORK/build" --buildtype=plain -Db_lundef=false -Dtests=true -Dman=false \
	-Dio_uring=disabled -Dprobes=disabled -Drelay=enabled -Dtls=disabled \
	-Ddefault_library=static -Dprefer_static=true -Dfuzz_engine="$LIB_FUZZING_ENGINE"
ninja -C "$WORK/build" fuzz
find "$WORK/build/tests" -name 'fuzz_*' -type f -executable -exec cp {} "$OUT/" \;
for corpus in tests/fuzz/corpus/*; do
	python3 -m zipfile -c "$OUT/fuzz_${corpus##*/}_seed_corpus.zip" "$corpus"/*
done
