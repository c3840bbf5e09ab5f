/* Calls loops of a library from Python: `bind` makes a function that checks its arguments, puts them into slots and
   calls the entry without the interpreter's lock. Arguments of other types go to a function that can compile for them.
   Only the stable ABI is used: one file for each system serves every Python from 3.11 on. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MAX_SLOTS = 1024 };

typedef int32_t (*Loop)(uint64_t *slots);

/* 'a' array, 't' tuple, 'n' None, 'b' bool, 'i' integer, 'f' floating-point number */
typedef struct {
    char kind;
    char writable;      /* an array that the loop may write to */
    int count;          /* dimensions of an array, parts of a tuple */
    Py_ssize_t align;   /* bytes */
    PyObject *dtype;    /* of an array or a NumPy number; a strong reference */
    PyObject *equal;    /* another dtype that was found to equal it; a strong reference, or NULL */
} Kind;

typedef struct {
    Loop loop;
    int num_arguments;
    int num_slots;
    char result[16];    /* kinds of the results */
    char is_tuple;      /* whether they are a tuple */
    int num_kinds;
    Kind *kinds;        /* of all arguments, parts of tuples after their tuple */
} Entry;

typedef struct {
    int num_entries;
    Entry *entries;
    PyObject *fallback;
} Bound;

static PyObject *name_of_dtype;

/* Returns 1 if an object's dtype is the one expected, 0 if not. Never leaves an error. */
static int has_dtype(PyObject *value, Kind *kind) {
    PyObject *dtype = PyObject_GetAttr(value, name_of_dtype);
    if (dtype == NULL) { PyErr_Clear(); return 0; }
    int same = dtype == kind->dtype || dtype == kind->equal;
    if (!same) {
        same = PyObject_RichCompareBool(dtype, kind->dtype, Py_EQ);
        if (same < 0) { PyErr_Clear(); same = 0; }
        if (same) { /* remembered: comparing records takes microseconds */
            PyObject *former = kind->equal;
            Py_INCREF(dtype);
            kind->equal = dtype;
            Py_XDECREF(former);
        }
    }
    Py_DECREF(dtype);
    return same;
}

static int put_array(PyObject *value, Kind *kind, uint64_t **slot) {
    Py_buffer view;
    if (!has_dtype(value, kind)) return 0;
    if (PyObject_GetBuffer(value, &view, PyBUF_C_CONTIGUOUS | (kind->writable ? PyBUF_WRITABLE : 0))) {
        PyErr_Clear();
        return 0;
    }
    int fits = view.ndim == kind->count && (uintptr_t)view.buf % (uintptr_t)kind->align == 0;
    if (fits) {
        *(*slot)++ = (uint64_t)(uintptr_t)view.buf;
        for (int d = 0; d < kind->count; d++) *(*slot)++ = (uint64_t)view.shape[d];
    }
    PyBuffer_Release(&view); /* the caller's reference keeps the memory */
    return fits;
}

static int put_integer(PyObject *value, Kind *kind, uint64_t **slot) {
    long long number;
    if (PyLong_Check(value) && !PyBool_Check(value)) {
        if (kind->writable) return 0; /* an int is an int64, never another type */
        number = PyLong_AsLongLong(value);
    } else {
        if (!has_dtype(value, kind)) return 0;
        PyObject *index = PyNumber_Index(value);
        if (index == NULL) { PyErr_Clear(); return 0; }
        number = (long long)PyLong_AsUnsignedLongLongMask(index);
        Py_DECREF(index);
    }
    if (number == -1 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
    *(*slot)++ = (uint64_t)number;
    return 1;
}

static int put_float(PyObject *value, Kind *kind, uint64_t **slot) {
    if (PyFloat_Check(value) ? kind->writable : !has_dtype(value, kind)) return 0;
    double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) { PyErr_Clear(); return 0; }
    memcpy((*slot)++, &number, sizeof number);
    return 1;
}

/* Puts one argument into the next slots; returns 1, or 0 if it is of another type. */
static int put(PyObject *value, Kind **next, uint64_t **slot) {
    Kind *kind = (*next)++;
    switch (kind->kind) {
    case 'a': return put_array(value, kind, slot);
    case 'i': return put_integer(value, kind, slot);
    case 'f': return put_float(value, kind, slot);
    case 'n': return value == Py_None;
    case 'b':
        if (!PyBool_Check(value) && !has_dtype(value, kind)) return 0;
        *(*slot)++ = (uint64_t)(PyObject_IsTrue(value) == 1);
        return 1;
    default:
        if (!PyTuple_Check(value) || PyTuple_Size(value) != kind->count) return 0;
        for (int k = 0; k < kind->count; k++)
            if (!put(PyTuple_GetItem(value, k), next, slot)) return 0;
        return 1;
    }
}

static PyObject *taken(char kind, uint64_t slot) {
    double number;
    switch (kind) {
    case 'b': return PyBool_FromLong(slot != 0);
    case 'f': memcpy(&number, &slot, sizeof number); return PyFloat_FromDouble(number);
    case 'u': return PyLong_FromUnsignedLongLong(slot);
    default: return PyLong_FromLongLong((long long)slot);
    }
}

static PyObject *run(Entry *entry, uint64_t *slots) {
    int32_t status;
    Py_BEGIN_ALLOW_THREADS
    status = entry->loop(slots);
    Py_END_ALLOW_THREADS
    if (status != 0) return PyErr_Format(PyExc_RuntimeError, "a compiled loop failed with status %d", (int)status);
    if (!entry->is_tuple) {
        if (entry->result[0] == 'n') Py_RETURN_NONE;
        return taken(entry->result[0], slots[0]);
    }
    Py_ssize_t size = (Py_ssize_t)strlen(entry->result);
    PyObject *tuple = PyTuple_New(size);
    for (Py_ssize_t k = 0; tuple != NULL && k < size; k++) {
        PyObject *part = taken(entry->result[k], slots[k]);
        if (part == NULL || PyTuple_SetItem(tuple, k, part)) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *call(PyObject *self, PyObject *const *arguments, Py_ssize_t number) {
    Bound *bound = PyCapsule_GetPointer(self, NULL);
    if (bound == NULL) return NULL;
    uint64_t slots[MAX_SLOTS];
    for (int e = 0; e < bound->num_entries; e++) {
        Entry *entry = &bound->entries[e];
        Kind *kind = entry->kinds;
        uint64_t *slot = slots;
        int fits = number == entry->num_arguments;
        for (Py_ssize_t k = 0; fits && k < number; k++) fits = put(arguments[k], &kind, &slot);
        if (fits) return run(entry, slots);
    }
    PyObject *tuple = PyTuple_New(number);
    if (tuple == NULL) return NULL;
    for (Py_ssize_t k = 0; k < number; k++) {
        Py_INCREF(arguments[k]);
        PyTuple_SetItem(tuple, k, arguments[k]);
    }
    PyObject *result = PyObject_CallObject(bound->fallback, tuple);
    Py_DECREF(tuple);
    return result;
}

static void release(PyObject *capsule) {
    Bound *bound = PyCapsule_GetPointer(capsule, NULL);
    for (int e = 0; e < bound->num_entries; e++) {
        for (int k = 0; k < bound->entries[e].num_kinds; k++) {
            Py_XDECREF(bound->entries[e].kinds[k].dtype);
            Py_XDECREF(bound->entries[e].kinds[k].equal);
        }
        PyMem_Free(bound->entries[e].kinds);
    }
    Py_XDECREF(bound->fallback);
    PyMem_Free(bound->entries);
    PyMem_Free(bound);
}

/* Reads (address, number of arguments, kinds, results, is_tuple); returns 0, or -1 with an error. */
static int read_entry(PyObject *given, Entry *entry) {
    unsigned long long address;
    const char *result;
    int is_tuple;
    PyObject *kinds;
    if (!PyArg_ParseTuple(given, "KiO!sp", &address, &entry->num_arguments, &PyTuple_Type, &kinds, &result, &is_tuple))
        return -1;
    Py_ssize_t number = PyTuple_Size(kinds);
    entry->loop = (Loop)(uintptr_t)address;
    entry->is_tuple = (char)is_tuple;
    entry->kinds = PyMem_Calloc(number ? (size_t)number : 1, sizeof(Kind));
    if (entry->kinds == NULL) { PyErr_NoMemory(); return -1; }
    if (strlen(result) >= sizeof entry->result) { PyErr_SetString(PyExc_ValueError, "too many results"); return -1; }
    strcpy(entry->result, result);
    for (Py_ssize_t k = 0; k < number; k++) {
        Kind *kind = &entry->kinds[k];
        int letter, writable;
        PyObject *dtype;
        PyObject *one = PyTuple_GetItem(kinds, k);
        if (!PyArg_ParseTuple(one, "CpinO", &letter, &writable, &kind->count, &kind->align, &dtype)) return -1;
        Py_INCREF(dtype);
        kind->dtype = dtype;
        kind->kind = (char)letter;
        kind->writable = (char)writable;
        entry->num_kinds++;
        entry->num_slots += kind->kind == 'a' ? 1 + kind->count : kind->kind != 't' && kind->kind != 'n';
        if (kind->count < 0 || kind->align < 1 || entry->num_slots > MAX_SLOTS) {
            PyErr_SetString(PyExc_ValueError, "an argument that no slots can hold");
            return -1;
        }
    }
    return 0;
}

static PyMethodDef call_method = {"loop", (PyCFunction)(void (*)(void))call, METH_FASTCALL, "Run the loop."};

static PyObject *bind(PyObject *module, PyObject *arguments) {
    PyObject *entries, *fallback, *function = NULL;
    if (!PyArg_ParseTuple(arguments, "O!O", &PyTuple_Type, &entries, &fallback)) return NULL;
    Py_ssize_t number = PyTuple_Size(entries);
    Bound *bound = PyMem_Calloc(1, sizeof *bound);
    if (bound == NULL) return PyErr_NoMemory();
    Py_INCREF(fallback);
    bound->fallback = fallback;
    PyObject *capsule = PyCapsule_New(bound, NULL, release);
    if (capsule == NULL) { Py_DECREF(fallback); PyMem_Free(bound); return NULL; }
    bound->entries = PyMem_Calloc(number ? (size_t)number : 1, sizeof(Entry));
    if (bound->entries == NULL) PyErr_NoMemory();
    for (; bound->entries != NULL && bound->num_entries < number; ) {
        int failed = read_entry(PyTuple_GetItem(entries, bound->num_entries), &bound->entries[bound->num_entries]);
        bound->num_entries++;
        if (failed) break;
    }
    if (!PyErr_Occurred()) function = PyCFunction_NewEx(&call_method, capsule, NULL);
    Py_DECREF(capsule);
    return function;
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, "Return a function that calls the entries, or else the fallback."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "entry", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_entry(void) {
    name_of_dtype = PyUnicode_InternFromString("dtype");
    return name_of_dtype == NULL ? NULL : PyModule_Create(&module);
}
