/* llm_op -- operators of language models: their kinds, types and parameters, and the tables that
 * hold measured ones.
 *
 *   op    device  stack        kernel  dtype     m     n     k     latency_s
 *   gemm  h100    vllm-0.24.0          bfloat16  1024  4096  4096  6.1e-05  ->  {GEMM, BF16, p[M]
 *     1024 ...}, "h100"
 *
 * Rules of a table (TSV where the first line has a tab, else CSV; plain or packed; HDF5, *.h5, with
 * a data set for each column):
 *   (1) the first line names the columns, in any order and case: `op`, `device`, `stack`, `kernel`,
 *       `dtype`, `kv_dtype`, `distribution`, `latency_s` or `latency_ms`, and the parameters of
 *       llm_op_kinds.def. Others are ignored;
 *   (2) a table without `op` is of the operator that its file is called by, one without `device` of
 *       the device that its folder is called by: h100_sxm/context_attention.tsv.xz;
 *   (3) a parameter that the kind does not have may be missing or empty. One with a default may be,
 *       too;
 *   (4) without a latency (no column, an empty field) the row asks for a prediction: latency_s 0. A
 *       time that is given and is not above 0 is CD_LLM_OP_BAD_TIME;
 *   (5) a bad line is an error with file and line; reading goes on behind it.
 * A reader belongs to one thread. */
#ifndef CD_LLM_OP_H
#define CD_LLM_OP_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "base/text/text.h"

typedef enum {
#define P(ID, column, other, third, standard, meaning) CD_LLM_OP_P_##ID,
#include "features/operators/llm_op_kinds.def"
    CD_LLM_OP_N_PARAM
} cd_llm_op_param;

typedef enum {
#define K(ID, name, family, meaning, ...) CD_LLM_OP_##ID,
#include "features/operators/llm_op_kinds.def"
    CD_LLM_OP_N_KIND
} cd_llm_op_kind;

typedef enum {
#define T(ID, name, other, weight, input, unit, meaning) CD_LLM_OP_T_##ID,
#include "features/operators/llm_op_kinds.def"
    CD_LLM_OP_N_TYPE
} cd_llm_op_type;

/* Units that a type's products run on: whose peak counts. */
typedef enum {
    CD_LLM_OP_UNIT_F32,
    CD_LLM_OP_UNIT_BF16,
    CD_LLM_OP_UNIT_FP8,
    CD_LLM_OP_UNIT_INT8,
    CD_LLM_OP_UNIT_FP4
} cd_llm_op_unit;

enum { CD_LLM_OP_MAX_SIZE = 7 };

typedef struct cd_llm_op_record {
    /* cd_llm_op_kind; cd_llm_op_type of the product, of the cache */
    uint8_t kind, type, kv;
    uint8_t reserved;
    uint16_t stack, kernel;          /* numbers of names in the reader's dictionary; 0: not given */
    double size[CD_LLM_OP_MAX_SIZE]; /* as llm_op_kinds.def lists them for the kind */
    double skew;                     /* of MoE: exponent of the loads' power law; 0: balanced */
    double latency_s;                /* 0: not measured */
} cd_llm_op_record;

const char *cd_llm_op_kind_name(cd_llm_op_kind k);
const char *cd_llm_op_type_name(cd_llm_op_type t);
double cd_llm_op_type_weight_bytes(cd_llm_op_type t);
double cd_llm_op_type_input_bytes(cd_llm_op_type t);
cd_llm_op_unit cd_llm_op_type_unit(cd_llm_op_type t);
/* How many sizes a kind has, which parameter the i-th is, its column. The first is the axis of its
 * curves. */
size_t cd_llm_op_n_size(cd_llm_op_kind k);
cd_llm_op_param cd_llm_op_size_param(cd_llm_op_kind k, size_t i);
const char *cd_llm_op_param_name(cd_llm_op_param p);
/* The size that is this parameter; 0: the kind has none. */
double cd_llm_op_get(const cd_llm_op_record *r, cd_llm_op_param p);
/* Kind, types and sizes are those of the other record, and stack and kernel by their numbers. */
bool cd_llm_op_same(const cd_llm_op_record *a, const cd_llm_op_record *b);

/* Reads a table of operators, of libraries or of language models. */
typedef struct cd_op_reader cd_op_reader;
/* Number of the line that was read last, from 1. */
long cd_op_reader_line(const cd_op_reader *r);
/* The i-th column that is not read although its name is near one that is, as an error with path and
 * line; false: there are no more. None of HDF5. */
bool cd_op_reader_odd(const cd_op_reader *r, size_t i, cdmpp_err *why);
void cd_op_reader_close(CD_TAKE cd_op_reader *r); /* NULL is fine */

/* Names of stacks and kernels go to `names` (number 0 is the empty name), which outlives the
 * reader. Errors: EIO EPARSE (not readable), ESCHEMA (no operator is named by columns or file),
 * ENOMEM. */
cdmpp_status cd_llm_op_reader_open(const char *path, cd_dict *names, CD_GIVE cd_op_reader **out,
                                   cdmpp_err *err);
/* The next row. *device: as written, else the folder's name, "" when there is neither; valid until
 * the next call. At the end *more is false. Errors carry path and line; after ESCHEMA, ERANGE,
 * EPARSE, EUNSUPPORTED of a line (*more is true) go on, else stop. *no_time: the error is of a time
 * that is not above 0. */
cdmpp_status cd_llm_op_reader_next(cd_op_reader *r, cd_llm_op_record *out,
                                   CD_KEEP const char **device, bool *more, bool *no_time,
                                   cdmpp_err *err);

/* ---- one operator from named values: a request, a caller of the library ---- */
typedef struct cd_op_named {
    const char *name; /* of a column, as in a table */
    const char *text; /* NULL: the number; NaN: not given */
    double number;
} cd_op_named;
/* After the last table: names of stacks and kernels that no table has get a number for each library
 * ("vllm", and "vllm-?") and one for all others, so that reading a question adds no name. Errors:
 * ENOMEM. */
cdmpp_status cd_llm_op_names_close(cd_dict *names, cdmpp_err *err);
/* A question. *device: as given, "" where it is not. Any thread. Errors, with the name as key:
 * those of a line; ESCHEMA (an unknown name, a name twice, a time, no operator). */
cdmpp_status cd_llm_op_from_named(const cd_op_named *v, size_t n, const cd_dict *closed,
                                  cd_llm_op_record *out, CD_KEEP const char **device,
                                  cdmpp_err *err);

/* Kinds, parameters and types as Markdown: docs/reference/llm-operators.md. */
void cd_llm_op_doc(cd_buf *out);
#endif
