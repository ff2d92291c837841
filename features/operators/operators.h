/* The door of features/operators: measured operators of libraries (PyTorch, cuBLAS), and the CSV
 * tables that hold them.
 *
 *   OPName,Latency,Device,...,B,M,N,K           ->  {linear, fp32, b 1 m 512 n 768 k 3072, 0.31
 *                                                  ms}, "Tesla T4"
 *   OPName,Latency,Device,...,B,H               ->  {softmax, fp32, m 8192 n 1024}
 *   conv: B,Input_Channel,Output_Channel,Kernel_Size,Input_Size,Stride,Padding
 *
 * Form of NeuSight's tables (its M, N, K are our m, k, n). Rules of a table:
 *   (1) the first line names the columns, in any order and case; unknown ones are
 *       ignored. Also known: op, latency_ms, dtype (default float32);
 *   (2) fields may be in quotes, "" inside is a quote; lines end in LF or CRLF;
 *   (3) a column that an operator does not need may be missing or empty; without
 *       a latency the row asks for a prediction, latency_s 0;
 *   (4) Grid x, y, z, Block x, y, z (the launch of the main kernel) and launch_ms may be there;
 *       what is not given is 0;
 *   (5) a bad line is an error with file and line; reading goes on behind it.
 * A matrix product is (m, k) x (k, n), b times; the others have m rows of n.
 * A reader belongs to one thread. */
#ifndef CD_OPRECORD_H
#define CD_OPRECORD_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "features/operators/llm_op.h"

typedef enum {
#define X(ID, name, class, inputs) CD_LIBRARY_OP_##ID,
#include "features/operators/op_kinds.def"
    CD_N_LIBRARY_OP_KIND
} cd_library_op_kind;

typedef enum {
    CD_LIBRARY_OP_CLASS_BMM,
    CD_LIBRARY_OP_CLASS_LINEAR,
    CD_LIBRARY_OP_CLASS_ELEMENTWISE,
    CD_LIBRARY_OP_CLASS_SOFTMAX,
    CD_LIBRARY_OP_CLASS_LAYERNORM,
    CD_LIBRARY_OP_CLASS_CONV,
    CD_N_LIBRARY_OP_CLASS
} cd_library_op_class;

#define CD_LIBRARY_OP_DTYPES "float32|float16|bfloat16"
typedef enum {
    CD_LIBRARY_OP_DTYPE_F32,
    CD_LIBRARY_OP_DTYPE_F16,
    CD_LIBRARY_OP_DTYPE_BF16,
    CD_N_LIBRARY_OP_DTYPE
} cd_library_op_dtype;

typedef struct cd_library_op_record {
    cd_library_op_kind kind;
    cd_library_op_dtype dtype;
    double b, m, n, k; /* whole numbers; k 1 for operators without a reduction of their own */
    /* conv only, else 0: m n k are those of its matrix product */
    double cin, ksize, stride, pad, size;
    double latency_s; /* 0: not measured */
    double launch_s;  /* of the latency, what does not depend on the device; 0: not known */
    double blocks, block_threads; /* of the grid of its main kernel, of a block; 0: not known */
} cd_library_op_record;

/* Names, and what op_kinds.def says of a kind: its class, the tensors that it reads. */
const char *cd_library_op_kind_name(cd_library_op_kind k);
const char *cd_library_op_class_name(cd_library_op_class c);
const char *cd_library_op_dtype_name(cd_library_op_dtype t);
cd_library_op_class cd_library_op_kind_class(cd_library_op_kind k);
double cd_library_op_kind_inputs(cd_library_op_kind k);
/* Bytes of one element. */
double cd_library_op_dtype_bytes(cd_library_op_dtype t);

/* Errors: EIO EPARSE (not readable), ESCHEMA (no column OPName), ENOMEM. */
cdmpp_status cd_library_op_reader_open(const char *path, CD_GIVE cd_op_reader **out,
                                       cdmpp_err *err);
/* The next row. *device: as written, "" when there is none, valid until the next
 * call. At the end *more is false. Errors carry path and line; after ESCHEMA,
 * ERANGE, EPARSE, EUNSUPPORTED of a line (*more is true) go on, else stop. */
cdmpp_status cd_library_op_reader_next(cd_op_reader *r, cd_library_op_record *out,
                                       CD_KEEP const char **device, bool *more, cdmpp_err *err);

/* A hash that is equal for records of the same operator, sizes and device. */
uint64_t cd_library_op_record_key(const cd_library_op_record *r, uint32_t device);
/* Same operator, sizes and type? The latency does not count. */
bool cd_library_op_record_same(const cd_library_op_record *a, const cd_library_op_record *b);
#endif
