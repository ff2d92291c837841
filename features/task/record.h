/* One line of an Ansor/TenSet measure log <-> struct.
 *
 *   {"i": [[key, target, [8 ints], host, layout, [names]], [[], [STEP, ...]]],
 *    "r": [[seconds, ...], error, total_s, timestamp], "v": "v0.6"}
 *
 * A member "origin" may follow, where TVM's readers stop reading.
 * Versions v0.2 to v0.6 (docs/reference/record.md). A step is kept as numbers: steps of all 14 kinds fit one struct, see
 * cd_record_step; what they mean is in docs/internals/ansor.md, Steps. Text is borrowed from the line. */
#ifndef CD_RECORD_H
#define CD_RECORD_H
#include "base/text/text.h"
#include "features/task/task.h"

/* X(code, argument signature after the stage id), one letter an argument:
 *   i  integer >= 0                     a  annotation, 0..11
 *   n  integer >= 1                     b  flag, 0 or 1
 *   z  any integer                      s  string
 *   l  list of integers >= 0            f  list of integers >= 1 (lengths) */
#define CD_RECORD_STEP_MAP(X)                                                        \
    X(AN, "ia") X(FU, "l") X(PR, "is") X(RE, "l") X(SP, "iifb") X(FSP, "iin") \
    X(FFSP, "ilib") X(SA, "izz") X(CA, "ii") X(CI, "") X(CR, "") X(CHR, "sl") \
    X(CHW, "s") X(RF, "ii")
#define CD_ANNOTATION_MAX 11 /* tensorize */
#define CD_ERROR_NO_MAX 8    /* unknown error */

typedef enum cd_record_step_kind {
#define CD_X(code, sig) CD_RECORD_STEP_##code,
    CD_RECORD_STEP_MAP(CD_X)
#undef CD_X
    CD_RECORD_STEP_COUNT
} cd_record_step_kind;

/* Arguments in the order of the record, integers in `i`, the list (at most one
 * per step) in `list`, the string in `s`:
 *   AN   i[0] iterator, i[1] annotation          FSP  i[0] iterator, i[1] source step, i[2] n_split
 *   FU   list iterators                          FFSP i[0] iterator, list source steps, i[1] level, i[2] factor(1)/nparts(0)
 *   PR   i[0] iterator, s pragma                 SA   i[0] iterator, i[1] factor, i[2] offset
 *   RE   list new order                          CA   i[0] target stage, i[1] target iterator
 *   SP   i[0] iterator, i[1] extent,             CHR  s scope, list reader stages
 *        list lengths, i[2] inner_to_outer       CHW  s scope
 *   CI, CR nothing                               RF   i[0] iterator, i[1] factor iterator
 * Every integer fits int32_t. */
typedef struct cd_record_step {
    cd_record_step_kind kind;
    int32_t stage;
    int32_t i[3];
    uint32_t n_list;
    const int32_t *list;        /* (n_list) */
    cd_str s;
} cd_record_step;

typedef struct cd_record {
    cd_str workload_key, target, target_host;
    bool has_hardware, has_host, has_layout, has_inputs; /* fields present in this version */
    cd_hardware hardware;
    int64_t layout_rewrite;
    uint32_t n_input;
    const cd_str *input;        /* task input names */
    uint32_t n_step;
    const cd_record_step *step;        /* (n_step) */
    uint32_t n_cost;
    const double *cost_s;       /* (n_cost) seconds; 1e10 marks a failed measurement */
    int64_t error_no;           /* 0 none, 1..8: ansor.md, Records */
    double total_s;             /* building and running */
    int64_t timestamp;          /* unix seconds */
    cd_str version;             /* "v0.6" */
    cd_str origin;              /* who chose the schedule, predictor/estimate/schedule_db.h; n == 0: unknown */
} cd_record;

/* Read one line (no newline needed). Everything *out points to lives in `a` or
 * in the line. Errors: EPARSE, ESCHEMA, ERANGE, EUNSUPPORTED (version, step
 * kind), ENOMEM; err->key is the path, "i[1][1][4]". */
cdmpp_status cd_record_read(cd_arena *a, const char *line, size_t len, cd_record *out, cdmpp_err *err);

/* Its members one by one, "i", "r", "v" as texts; without r (n == 0) there are no costs, without v the version
 * is not looked at. Errors: as above. */
cdmpp_status cd_record_read_parts(cd_arena *a, cd_str i, cd_str r, cd_str v, cd_record *out, cdmpp_err *err);

/* The steps alone, item i[1][1] of a record: [["SP",2,0,512,[64],1], ...]; only step and
 * n_step of *out are written. Errors: as above, the key counts from the list. */
cdmpp_status cd_record_read_steps(cd_arena *a, const char *text, size_t len, cd_record *out, cdmpp_err *err);

/* A line that holds no record: empty, or starting with '#' or a blank. */
bool cd_record_is_comment(const char *line, size_t len);

/* Append the record as one line (with '\n') in TVM's own byte format: reals
 * with 6 significant digits. Errors: ESCHEMA, ERANGE, EUNSUPPORTED for what the
 * reader would refuse (nothing is appended then), ENOMEM. */
struct cd_buf;
cdmpp_status cd_record_write(struct cd_buf *out, const cd_record *r, cdmpp_err *err);
/* The steps alone, as cd_record_read_steps reads them; no '\n'. Errors: EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_record_write_steps(struct cd_buf *out, const cd_record *r, cdmpp_err *err);
/* "SP", "RE" ...; "?" for none. */
const char *cd_record_step_code(cd_record_step_kind k);
#endif
