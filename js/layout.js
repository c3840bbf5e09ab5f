// A table's State is a NumPy record: here its fields have names again. Numbers are little-endian, as is every machine
// that runs JavaScript.

const ARRAYS = {
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
};

/**
 * Return a function (bytes, start) => State for a layout: {size, fields: {name: {type, offset, shape}}}.
 *
 * The State reads and writes these bytes: fields are numbers, booleans, BigInts (64 bits), typed arrays, and arrays of
 * typed arrays (two axes). Bytes that do not begin at a multiple of 8 are copied first.
 */
export function reader({ size, fields }) {
  class State {
    constructor(bytes, start = 0) {
      const at = bytes.byteOffset + start;
      const aligned = at % 8 === 0;
      this.buffer = aligned ? bytes.buffer : bytes.buffer.slice(at, at + size);
      this.at = aligned ? at : 0;
    }
  }
  for (const [name, { type, offset, shape }] of Object.entries(fields)) {
    const row = shape.at(-1) ?? 1;
    const part = (state, number = 0) => {
      const at = state.at + offset + number * row * ARRAYS[type].BYTES_PER_ELEMENT;
      return new ARRAYS[type](state.buffer, at, row);
    };
    const read = [
      type === "bool" ? (state) => Boolean(part(state)[0]) : (state) => part(state)[0],
      part,
      (state) => Array.from({ length: shape[0] }, (_, number) => part(state, number)),
    ][shape.length];
    const write = (state, value) => (part(state)[0] = value);
    Object.defineProperty(State.prototype, name, {
      get() { return read(this); },
      set: shape.length ? undefined : function set(value) { write(this, value); },
    });
  }
  return (bytes, start) => new State(bytes, start);
}
