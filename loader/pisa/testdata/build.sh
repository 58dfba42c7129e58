#!/bin/sh
# Compiles the prover's test programs. The objects are committed: tests need no clang.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
strip=${LLVM_STRIP:-llvm-strip-19}
for source in *.c; do
	object=${source%.c}.o
	"$clang" -O2 -g -Wall -Werror -mcpu=v3 -target bpfel -fno-ident -fdebug-compilation-dir=. \
		-I../../../bpf/include -idirafter /usr/include/x86_64-linux-gnu -idirafter /usr/include/aarch64-linux-gnu \
		-c "$source" -o "$object"
	"$strip" -g "$object"
done
