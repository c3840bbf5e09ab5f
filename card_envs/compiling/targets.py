"""The processors that libraries are made for, and how LLVM's language becomes their machine code."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from card_envs.compiling._instructions import ENTRIES, other_entries, x86_entries
from card_envs.compiling._library import machine, processor_has

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

NATIVE = "native"


class Target(NamedTuple):
    """A kind of processor and system.

    Attributes:
        name: also of its folder.
        triple: as LLVM names it.
        cpu, features: what code may use, as LLVM names it.
        machine: system and processor, as `compiling/_library.py` names them.
        needs: the features that a processor must have, as Linux names them in /proc/cpuinfo; empty: none.
        zig: the triple as zig names it, to link for another system.
        suffix: that of library files.
    """

    name: str
    triple: str
    cpu: str
    features: str
    machine: str
    needs: tuple[str, ...] = ()
    zig: str = ""
    suffix: str = ".so"

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith("x86_64")

    @property
    def is_wasm(self) -> bool:
        return self.triple.startswith("wasm32")

    def link(self, library: Path, objects: list[Path], exports: list[str] | None = None) -> list[str]:
        """Return the command that links a library. Raises ValueError if there is no linker.

        Args:
            library: the file to write.
            objects: machine code.
            exports: the functions that a WebAssembly module exports.
        """
        if self.is_wasm:
            if not _has_zig():
                raise ValueError("linking WebAssembly needs zig: pip install ziglang")
            export_function = [f"--export={name}" for name in ("__heap_base", *(exports or ()))]
            flags = ["--no-entry", "--strip-all", "--stack-first", "-z", f"stack-size={STACK}", *export_function]
            return [sys.executable, "-m", "ziglang", "wasm-ld", *flags, "-o", str(library), *map(str, objects)]
        return [*self._cc(), "-shared", "-s", "-o", str(library), *map(str, objects), "-lm"]

    def compile_c(self, source: Path, module: Path, headers: Path) -> list[str]:
        """Return the command that makes an extension module of a C file. Raises ValueError as `link`."""
        flags = ["-O2", "-shared", "-s", "-fPIC", "-fvisibility=hidden"]
        flags += ["-undefined", "dynamic_lookup"] if self.machine.startswith("darwin") else []  # Python has the symbols
        return [*self._cc(), *flags, f"-I{headers}", str(source), "-o", str(module)]

    def _cc(self) -> list[str]:
        """Return the C compiler: this system's for this machine, zig's for others.

        Zig's links with an old C library, so that the result loads on old systems; without it, this system's will do.
        """
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler and (self.name == NATIVE or (self.machine == machine() and not _has_zig())):
            return [compiler]
        if not _has_zig():
            raise ValueError("linking needs a C compiler (cc), or zig: pip install ziglang")
        return [sys.executable, "-m", "ziglang", "cc", *(["-target", self.zig] if self.zig else [])]


STACK = 1 << 18  # bytes, of a WebAssembly module: loops keep little there


def _has_zig() -> bool:
    return find_spec("ziglang") is not None


V2 = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
V3 = (*V2, "abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
TARGETS = {
    target.name: target
    for target in (
        Target("x86-64-v2", X86, "x86-64-v2", "", "linux-x86_64", V2, "x86_64-linux-gnu.2.17"),
        Target("x86-64-v3", X86, "x86-64-v3", "", "linux-x86_64", V3, "x86_64-linux-gnu.2.17"),
        Target("aarch64", ARM, "generic", "", "linux-aarch64", (), "aarch64-linux-gnu.2.17"),
        Target(
            "macos-arm64", "arm64-apple-macosx11.0.0", "apple-m1", "", "darwin-arm64", (), "aarch64-macos", ".dylib"
        ),
        Target(
            "macos-x86-64", "x86_64-apple-macosx10.15.0", "x86-64-v2", "", "darwin-x86_64", (), "x86_64-macos", ".dylib"
        ),
    )
}


WASM = Target(
    "wasm32",
    "wasm32-unknown-unknown",
    "generic",
    "+bulk-memory,+sign-ext,+nontrapping-fptoint,+mutable-globals,+simd128",
    "wasm32",
    suffix=".wasm",
)


def target_of(name: str, api: bool = False) -> Target:
    """Return a target by name; `native` is this machine, with all that its processor has.

    Args:
        name: the target's name.
        api: also accept `wasm32`, for programs in other languages.

    Raises:
        ValueError: unknown name; lists the valid ones.
    """
    if name == WASM.name and api:
        return WASM
    if name == NATIVE:
        features = llvm.get_host_cpu_features().flatten()
        needs = tuple(sorted(processor_has()))
        return Target(NATIVE, llvm.get_process_triple(), llvm.get_host_cpu_name(), features, machine(), needs)
    if name not in TARGETS:
        known = ", ".join((*TARGETS, WASM.name) if api else TARGETS)
        raise ValueError(f"target: expected {NATIVE} or one of {known}, got {name!r:.80}")
    return TARGETS[name]


def machine_of(target: Target) -> Any:
    """Return LLVM's machine for a target."""
    kind = llvm.Target.from_triple(target.triple)
    return kind.create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=3,
        reloc="static" if target.is_wasm else "pic",
        codemodel="default",
    )


def object_code(text: str, target: Target) -> bytes:
    """Compile a module in LLVM's language to an object file for a target."""
    machine = machine_of(target)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', text)
    text = re.sub(r'target triple = ".*"', f'target triple = "{target.triple}"', text)
    module = llvm.parse_assembly(with_entries_of(text, target))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True  # as Numba does it
    options.loop_interleaving = options.loop_unrolling = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def with_entries_of(text: str, target: Target) -> str:
    """Return the module with the functions that turn bits into entries written for a target (`_instructions.py`)."""
    write = x86_entries if target.is_x86 else other_entries

    def rewrite(match: re.Match[str]) -> str:
        size = int(match["size"])
        function = ir.Function(
            ir.Module(), ir.FunctionType(ir.VectorType(ir.IntType(8), size), [ir.IntType(size)]), f"{ENTRIES}{size}"
        )
        write(function)
        return str(function).replace("linkonce_odr", "internal") + "\n"

    pattern = rf'^define [^\n]*@"?{re.escape(ENTRIES)}(?P<size>\d+)"?\(.*?^}}\n'
    return re.sub(pattern, rewrite, text, flags=re.MULTILINE | re.DOTALL)
