"""PTX as C: a kernel's instructions, one statement each, so that what a GPU would run runs here.

A translator for the few instructions that the rules become, not for PTX in general: what it does not know is an error.
Threads run one after the other. Ref: NVIDIA, "Parallel Thread Execution ISA" 9.0.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS = {"rs": 16, "r": 32, "rd": 64}  # registers of whole numbers, by their prefix
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neu": "!=", "equ": "=="}
SPECIAL = {"%tid.x": "0", "%ntid.x": "1", "%ctaid.x": "thread"}
ROTATION = re.compile(
    r"\{\s*\.reg \.b64 %lhs;\s*\.reg \.b64 %rhs;\s*\.reg \.u32 %amt2;\s*shl\.b64\s+%lhs, (\S+), (\S+);\s*"
    r"sub\.u32\s+%amt2, 64, \2;\s*shr\.b64\s+%rhs, \1, %amt2;\s*add\.u64\s+(\S+), %lhs, %rhs;\s*\}"
)
HEAD = """#include <stdint.h>
#include <math.h>
#include <string.h>
static float as_f32(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static double as_f64(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
static uint32_t bits_f32(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
static uint64_t bits_f64(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }
/* four bytes, each by three bits of the selector; its fourth copies the byte's sign */
static uint32_t permuted(uint32_t a, uint32_t b, uint32_t by) {
    uint64_t both = a | (uint64_t)b << 32;
    uint32_t found = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = both >> 8 * (by >> 4 * i & 7);
        found |= (uint32_t)(by >> 4 * i & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
    }
    return found;
}
"""


def c_type(kind: str) -> str:
    """The C type of a PTX type: s32, b8, f64, pred, …"""
    if kind in ("f32", "f64", "pred"):
        return {"f32": "float", "f64": "double", "pred": "uint8_t"}[kind]
    return f"{'' if kind[0] == 's' else 'u'}int{kind[1:]}_t"


def unsigned(kind: str) -> str:
    return c_type(f"u{kind[1:]}") if kind[0] in "sub" else c_type(kind)


class Kernel:
    """One kernel, translated."""

    def __init__(self, ptx: str) -> None:
        found = re.search(r"\.visible \.entry \w+\((.*?)\)\s*[^{]*\{(.*)^\}", ptx, re.DOTALL | re.MULTILINE)
        assert found is not None
        self.parameters = re.findall(r"\.param (?:\.\w+ (?:\d+ )?)+(\w+)", found[1])
        self.constants = re.findall(r"^\.const \.align (\d+) \.b8 ([\w$]+)\[(\d+)\] = \{([^}]*)\}", ptx, re.MULTILINE)
        self.body = ROTATION.sub(r"rotl.b64 \3, \1, \2;", found[2])

    def source(self) -> str:
        """A C file with the function `launch(parameters, number of threads)`."""
        lines = [HEAD]
        for alignment, name, size, data in self.constants:
            aligned = f"{name.replace('$', '_')}[{size}] __attribute__((aligned({alignment})))"
            lines.append(f"static const uint8_t {aligned} = {{{data}}};")
        lines.append("static void run(const uint64_t *P, uint64_t thread) {")
        for kind, prefix, number in re.findall(r"\.reg \.(\w+)\s+%(\w+?)<(\d+)>;", self.body):
            lines.append(f"{c_type(kind)} {prefix}[{number}];")
        for line in map(str.strip, self.body.splitlines()):
            if not line or line.startswith((".", "//")):
                continue
            lines.append(f"{label(line[:-1])}:;" if line.endswith(":") else self.statement(line.rstrip(";")))
        lines.append("}\nvoid launch(const uint64_t *P, uint64_t n) { for (uint64_t i = 0; i < n; i++) run(P, i); }")
        return "\n".join(lines)

    def operand(self, text: str, kind: str) -> str:
        """A register, a number or an address, read as a type."""
        text = text.strip()
        if text in SPECIAL:
            return f"(({c_type(kind)})({SPECIAL[text]}))"
        if text.startswith("!"):
            return f"(!{self.operand(text[1:], kind)})"
        register = re.fullmatch(r"%(\w+?)(\d+)", text)
        if register:
            place = f"{register[1]}[{register[2]}]"
            if kind in ("f32", "f64") and register[1] in WIDTHS:  # floats may lie in any register
                return f"as_{kind}({place})"
            return place if kind in ("f32", "f64", "pred") else f"(({c_type(kind)}){place})"
        if text.startswith(("0f", "0d")):
            bits = f"0x{text[2:]}ull"
            return f"as_{kind}({bits})" if kind in ("f32", "f64") else f"(({c_type(kind)}){bits})"
        if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+U?", text):
            if kind == "pred":  # any number but 0 is true, and `xor` of two of these must be false
                return str(int(int(text.rstrip("U"), 0) != 0))
            return f"(({c_type(kind)}){int(text.rstrip('U'), 0) % (1 << 64)}ull)"
        assert any(text == name for _, name, _, _ in self.constants), text
        return f"((uint64_t){text.replace('$', '_')})"

    def address(self, text: str) -> str:
        found = re.fullmatch(r"\[([^\]+]+?)(?:\+(-?\d+))?\]", text.strip())
        assert found is not None, text
        return f"({self.operand(found[1], 'u64')} + ({found[2] or 0}ll))"

    def statement(self, line: str) -> str:
        """One instruction in C."""
        guarded = re.match(r"@(!?)%(p\d+)\s+(.*)", line)
        if guarded:
            register = self.operand(f"%{guarded[2]}", "pred")
            return f"if ({guarded[1]}{register}) {{ {self.statement(guarded[3])} }}"
        name, _, rest = line.partition(" ") if " " in line.split("\t")[0] else line.partition("\t")
        operation, *suffixes = name.strip().split(".")
        if operation == "bra":
            return f"goto {label(rest.strip())};"
        if operation == "ret":
            return "return;"
        target, *given = [part.strip() for part in re.split(r",(?![^\[{]*[\]}])", rest)]
        kind = suffixes[-1]
        if operation in ("ld", "st") and target.startswith("{") | given[0].startswith("{"):
            return self.vector(operation, kind, *((target, given[0]) if operation == "ld" else (given[0], target)))
        if operation == "mov" and target.startswith("{"):
            halves = [part.strip() for part in target.strip("{}").split(",")]
            bits, whole = int(kind[1:]) // len(halves), self.operand(given[0], kind)
            parts = ((half, f"{whole} >> {bits * i}") for i, half in enumerate(halves) if half != "_")
            return " ".join(self.assigned(half, value, f"u{bits}") for half, value in parts)
        if operation == "st":
            return f"*({c_type(kind)} *){self.address(target)} = {self.operand(given[0], kind)};"
        return self.assigned(
            target, self.value(operation, suffixes, given), suffixes[-2] if operation == "cvt" else kind
        )

    def vector(self, operation: str, kind: str, parts: str, address: str) -> str:
        """Several loads or stores, one after the other in memory: `{%r1, %r2}`."""
        places = f"(({c_type(kind)} *){self.address(address)})"
        each = list(enumerate(part.strip() for part in parts.strip("{}").split(",")))
        if operation == "st":
            return " ".join(f"{places}[{i}] = {self.operand(part, kind)};" for i, part in each)
        return (
            f"{{ uint64_t at = (uint64_t){places}; "
            + " ".join(self.assigned(part, f"(({c_type(kind)} *)at)[{i}]", kind) for i, part in each)
            + " }"
        )

    def assigned(self, target: str, value: str, kind: str) -> str:
        """A value into a register; a narrower signed one is extended by its sign."""
        register = re.fullmatch(r"%(\w+?)(\d+)", target)
        assert register is not None, target
        place = f"{register[1]}[{register[2]}]"
        width = WIDTHS.get(register[1])
        if width is None:
            return f"{place} = {value};"
        if kind in ("f32", "f64"):
            return f"{place} = bits_{kind}({value});"
        extended = c_type(f"{'s' if kind[0] == 's' else 'u'}{width}")
        return f"{place} = ({c_type(f'u{width}')})({extended})({value});"

    def value(self, operation: str, suffixes: list[str], given: list[str]) -> str:
        """What an instruction computes."""
        kind = suffixes[-1]
        one, two, three = (self.operand(text, kind) if text[0] not in "[{" else "" for text in (given * 3)[:3])
        if operation == "ld":
            if suffixes[0] == "param":
                return f"*(const {c_type(kind)} *)&P[{self.parameters.index(given[0][1:-1])}]"
            return f"*(const {c_type(kind)} *){self.address(given[0])}"
        if operation == "mov" and given[0].startswith("{"):
            halves = given[0].strip("{}").split(",")
            bits = int(kind[1:]) // len(halves)
            return " | ".join(
                f"(uint64_t){self.operand(half, f'u{bits}')} << {bits * i}" for i, half in enumerate(halves)
            )
        if operation in ("mov", "cvta"):
            return one
        if operation == "cvt":
            return f"({c_type(suffixes[-2])})({self.operand(given[0], kind)})"
        if operation == "mul" and suffixes[0] == "wide":
            wide = c_type(f"{kind[0]}{2 * int(kind[1:])}")
            return f"({wide}){one} * ({wide}){two}"
        if operation == "mul" and suffixes[0] == "hi":
            wide = "__int128" if kind[0] == "s" else "unsigned __int128"
            return f"(({wide}){one} * ({wide}){two}) >> {kind[1:]}"
        if operation == "mad" and suffixes[0] == "lo":
            return f"({unsigned(kind)}){one} * ({unsigned(kind)}){two} + ({unsigned(kind)}){three}"
        if operation == "fma":
            return f"{'fmaf' if kind == 'f32' else 'fma'}({one}, {two}, {three})"
        if operation in SYMBOLS and not {"cc", "sat"} & {*suffixes}:
            if kind in ("f32", "f64", "pred"):
                return f"{one} {SYMBOLS[operation]} {two}"
            return f"({c_type(kind)})(({unsigned(kind)}){one} {SYMBOLS[operation]} ({unsigned(kind)}){two})"
        if operation in ("div", "rem"):
            return f"{one} {'/' if operation == 'div' else '%'} {two}"
        if operation in ("min", "max"):
            if kind[0] == "f":
                return f"f{operation}{'f' if kind == 'f32' else ''}({one}, {two})"
            return f"{one} {'<' if operation == 'min' else '>'} {two} ? {one} : {two}"
        if operation == "not":
            return f"!{one}" if kind == "pred" else f"({c_type(kind)})~{one}"
        if operation == "neg":
            return f"-{one}" if kind[0] == "f" else f"({c_type(kind)})(0 - ({unsigned(kind)}){one})"
        if operation == "abs":
            return f"fabs({one})" if kind[0] == "f" else f"{one} < 0 ? -{one} : {one}"
        if operation in ("shl", "shr"):
            by, bits = self.operand(given[1], "u32"), int(kind[1:])
            if operation == "shl":
                return f"{by} >= {bits} ? 0 : ({unsigned(kind)}){one} << {by}"
            shifted = f"{one} >> {by}"
            return f"{by} >= {bits} ? {f'{one} >> {bits - 1}' if kind[0] == 's' else '0'} : {shifted}"
        if operation == "setp" and len(given) == 2:
            sign = COMPARED.get(suffixes[0])
            if sign is None:  # unordered: true where the opposite is not
                opposite = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}[suffixes[0]]
                return f"!({one} {opposite} {two})"
            return f"{one} {sign} {two}"
        if operation == "selp":
            return f"{self.operand(given[2], 'pred')} ? {one} : {two}"
        if operation == "rotl":
            by = self.operand(given[1], "u32")
            return f"({one} << ({by} & 63)) | ({one} >> ((64 - {by}) & 63))"
        if operation == "bfe":
            bits, place, length = int(kind[1:]), int(given[1]), int(given[2])
            if kind[0] == "s":
                return f"(int{bits}_t)((uint{bits}_t){one} << {bits - place - length}) >> {bits - length}"
            return f"({one} >> {place}) & {(1 << length) - 1}ull"
        if operation == "prmt":
            return f"permuted({one}, {two}, {three})"
        if operation == "popc":
            return f"__builtin_popcountll({one})"
        if operation == "clz":
            return f"{one} ? __builtin_clzll({one}) - {64 - int(kind[1:])} : {kind[1:]}"
        if operation == "bfi":
            place, length = int(given[2]), int(given[3])
            mask = ((1 << length) - 1) << place
            return f"({two} & ~{mask}ull) | (({one} << {place}) & {mask}ull)"
        raise ValueError(f"{operation}.{'.'.join(suffixes)} {', '.join(given)}: no such instruction is known here")


def label(text: str) -> str:
    return "L_" + re.sub(r"\W", "_", text)


def built(ptx: str, file: Path) -> ctypes.CDLL:
    """The kernel as a shared library."""
    source = file.with_suffix(".c")
    source.write_text(Kernel(ptx).source())
    flags = ["-O1", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", str(file), str(source), "-lm"], check=True)
    return ctypes.CDLL(str(file))


def launch(kernel: ctypes.CDLL, number: int, *arguments: Any) -> None:
    """Run it with this number of threads; its arguments lie there as words, one after the other."""
    parameters = np.array([word for argument in arguments for word in words_of(argument)], np.uint64)
    kernel.launch(ctypes.c_void_p(parameters.ctypes.data), ctypes.c_uint64(number))


def words_of(argument: Any) -> list[int]:
    """As numba-cuda lays an argument out: arrays as a run of words, tuples as their members."""
    if isinstance(argument, np.ndarray):
        return [0, 0, argument.size, argument.itemsize, argument.ctypes.data, *argument.shape, *argument.strides]
    if isinstance(argument, tuple):
        return [word for member in argument for word in words_of(member)]
    return [int(argument) % (1 << 64)]
