/* Scalar types as TVM has them: a kind and a number of bits in 16 bits. Vectors do not occur: loops are vectorized, not types.
 * No state, any thread. */
#ifndef CD_DTYPE_H
#define CD_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scalar type: kind in the high byte, bits in the low one. */
typedef uint16_t cd_dtype;
enum { CD_T_INT = 0, CD_T_UINT = 1, CD_T_FLOAT = 2, CD_T_HANDLE = 3, CD_T_BFLOAT = 4 }; /* TVM's type codes */
#define CD_DTYPE(kind, bits) ((cd_dtype)((kind) << 8 | (bits)))
#define CD_I32 CD_DTYPE(CD_T_INT, 32)
#define CD_I64 CD_DTYPE(CD_T_INT, 64)
#define CD_F32 CD_DTYPE(CD_T_FLOAT, 32)
#define CD_BOOL CD_DTYPE(CD_T_UINT, 1)
static inline unsigned cd_expr_dtype_kind(cd_dtype t) { return t >> 8; }
static inline unsigned cd_expr_dtype_bits(cd_dtype t) { return t & 255U; }
static inline unsigned cd_expr_dtype_bytes(cd_dtype t) { return (cd_expr_dtype_bits(t) + 7) / 8; }
static inline bool cd_expr_dtype_is_float(cd_dtype t) { return cd_expr_dtype_kind(t) == CD_T_FLOAT || cd_expr_dtype_kind(t) == CD_T_BFLOAT; }
/* TVM's index types: signed 32 or 64 bit. Most simplifier rules apply only to them. */
static inline bool cd_expr_dtype_is_index(cd_dtype t) { return t == CD_I32 || t == CD_I64; }
/* "float32", "int32", "bool", "uint1", "handle" -> type. False: unknown, or a vector. */
bool cd_expr_dtype_parse(const char *s, size_t n, cd_dtype *out);
/* The name that cd_expr_dtype_parse reads; 16 letters are enough. Returns buf. */
const char *cd_expr_dtype_format(cd_dtype t, char *buf, size_t n);
#endif
