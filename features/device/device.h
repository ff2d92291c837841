/* The door of features/device: what a model knows about hardware, as descriptions and as vectors.
 *
 *   configs/devices.yaml          cd_device            device vector, CD_N_DEVICE_COL
 *   - name: t4            ->      {name, kind,   ->    is_gpu is_npu | log10 ratios | unknown flags
 *     clock_mhz: 1590 ...          clock_mhz ...}
 *
 *   (1) the keys are those of device_keys.def and device_probes.def, the columns those of
 *       device_cols.def;
 *   (2) a number that is absent or null is CD_DEVICE_UNKNOWN (below 0); 0 is "none";
 *   (3) every value of a vector is finite; an unknown one is 0 and its flag is 1;
 *   (4) names and aliases are compared by letters and digits only, without case:
 *       "Tesla_V100-PCIE-32GB" is "tesla v100 pcie 32gb". No two devices share one;
 *   (5) cores_used <= cores;
 *   (6) fp32_gflops is within a factor of three of 2 * cores * lanes * clock_mhz, where all are
 *       there, and is that where it is absent; other peaks are no more times fp32_gflops than any
 *       chip's.
 *
 * A loaded list is immutable: any thread. */
#ifndef CD_DEVICE_H
#define CD_DEVICE_H
#include "base/text/text.h"
#include "features/te/te.h"

#define CD_DEVICE_UNKNOWN (-1.0)
#define CD_DEVICE_FILE    "devices.yaml"

typedef enum { CD_DEVICE_CPU, CD_DEVICE_GPU, CD_DEVICE_NPU } cd_device_kind;
#define CD_DEVICE_KINDS "cpu|gpu|npu"

enum {
#define X(key, high, reference, unit, meaning) CD_DEVICE_PROBE_##key,
#include "features/device/device_probes.def"
    CD_N_DEVICE_PROBE
};

typedef struct cd_device {
    const char *name;
    cd_device_kind kind;
    double probe[CD_N_DEVICE_PROBE]; /* the hardware descriptor; at most 0: not known */
#define X(key, low, high, unit, meaning) double key;
#include "features/device/device_keys.def"
    /* what compilers call its instruction set, "sm_86", "gfx90a"; NULL: not known */
    const char *arch;
    bool peak_computed; /* fp32_gflops was not there: it is 2 * cores * lanes * clock_mhz */
} cd_device;

enum {
#define X(name, value, reference, unit, meaning) CD_DEVICE_COL_##name,
#include "features/device/device_cols.def"
    CD_N_DEVICE_RATIO,
    CD_N_DEVICE_KIND = 2,
    CD_N_DEVICE_COL = CD_N_DEVICE_KIND + 2 * CD_N_DEVICE_RATIO
};

typedef struct cd_device_table cd_device_table;

/* Read descriptions. Every mistake is a line of `diag` with line and column, the
 * first is in err. Errors: EIO, EPARSE, ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_device_table_load(const char *path, cd_diag *diag, CD_GIVE cd_device_table **out,
                                  cdmpp_err *err);
/* The same from text in memory; `path` is for messages. */
cdmpp_status cd_device_table_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                  CD_GIVE cd_device_table **out, cdmpp_err *err);
/* The file that cd_device_table_path finds, and behind its devices those of the file that is there
 * without it: for `wanted` the one beside `config`, behind that the usual one. A device that both
 * describe is as the first file says, also under the other's names for it. *path: the first file;
 * NULL: nobody asks. Errors: those of both, of the first file. */
cdmpp_status cd_device_table_open(cd_arena *a, const char *wanted, const char *config,
                                  cd_diag *diag, CD_KEEP const char **path,
                                  CD_GIVE cd_device_table **out, cdmpp_err *err);
/* Is it of the first file? */
bool cd_device_table_own(const cd_device_table *l, const cd_device *d);
void cd_device_table_free(CD_TAKE cd_device_table *l); /* NULL is fine */
/* Numbers that are unusual (device_usual.def): a line for each, with its place, key, value and
 * unit; "": none. Lives with the list. */
CD_KEEP const char *cd_device_table_unusual(const cd_device_table *l);
/* Which descriptions the first file is in the place of, as a line; "": none. A device that both
 * describe alike is none. */
CD_KEEP const char *cd_device_table_replaced(const cd_device_table *l);
/* The former as warnings, the latter as a note, for whoever reads a file of the user's. */
struct cd_log;
void cd_device_table_say(const cd_device_table *l, struct cd_log *log);
size_t cd_device_table_count(const cd_device_table *l);
CD_KEEP const cd_device *cd_device_table_at(const cd_device_table *l, size_t i);

/* What is usual of a key, from out[0] to out[1]; false: nobody says. */
bool cd_device_usual(cd_device_kind kind, const char *key, double out[2]);
/* Is a number unusual? Then it is said in buf, with what is usual. 0 is not. */
bool cd_device_unusual(cd_device_kind kind, const char *key, const char *unit, double x, char *buf,
                       size_t n);
/* Likewise of fp32_gflops over bandwidth_gb_s. */
bool cd_device_unbalanced(const cd_device *d, char *buf, size_t n);

/* By name or alias. Errors: ESCHEMA, naming those that are spelt alike. */
cdmpp_status cd_device_table_find(const cd_device_table *l, const char *name,
                                  CD_KEEP const cd_device **out, cdmpp_err *err);

/* Names of the devices with that instruction set, also "sm_90a" for "sm_90", in the order of the
 * list, at most `most` to out; how many there are. */
size_t cd_device_table_of_arch(const cd_device_table *l, cd_str arch, CD_KEEP const char **out,
                               size_t most);

/* Whether both name one device: by the list, else (one is not in it, or l is NULL) by letters and
 * digits alone. */
bool cd_device_table_same(const cd_device_table *l, const char *a, const char *b);

/* Where the descriptions are: `wanted` if it is not empty (as it is, else from
 * the folder of `config`); else CD_DEVICE_FILE in the folder of `config` (NULL:
 * none), in configs/ of the working directory, among the installed files
 * (base/io/io.h). Errors: EIO, naming the key
 * device.file; ENOMEM. */
cdmpp_status cd_device_table_path(cd_arena *a, const char *wanted, const char *config,
                                  CD_KEEP const char **out, cdmpp_err *err);

/* Vector of a description, and of a name. */
void cd_device_vector(const cd_device *d, float v[CD_N_DEVICE_COL]);
cdmpp_status cd_device_table_vector(const cd_device_table *l, const char *name,
                                    float v[CD_N_DEVICE_COL], cdmpp_err *err);
/* Mean squared difference of the columns that both vectors know; infinity: none. */
double cd_device_distance(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]);
/* False: both are GPUs, and threads run in lockstep by another number in each (warp): other makers,
 * whose compilers are others. */
bool cd_device_same_width(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]);
/* For the choice of the device that stands for another: the distance; behind all others of its kind
 * are GPUs of another width. */
double cd_device_unlike(const float a[CD_N_DEVICE_COL], const float b[CD_N_DEVICE_COL]);
/* "is_gpu", "clock", "clock_unknown" ...; i < CD_N_DEVICE_COL. */
const char *cd_device_col_name(size_t i);

/* What a network sees of a device: the data sheet (the vector above), the hardware descriptor (for
 * each number log10(value / reference), then for each a flag: not known), or the one and the other
 * behind it. */
typedef enum { CD_DEVICE_SHEET, CD_DEVICE_DESCRIPTOR, CD_DEVICE_BOTH } cd_device_features;
#define CD_DEVICE_FEATURES "sheet|descriptor|both"
enum { CD_N_DEVICE_WIDEST = CD_N_DEVICE_COL + 2 * CD_N_DEVICE_PROBE };
size_t cd_device_features_width(cd_device_features f);
void cd_device_features_fill(cd_device_features f, const cd_device *d, float *v);
/* Numbers of the descriptor that are known; 0: there is none. */
size_t cd_device_probe_count(const cd_device *d);
/* "probe_compute"; i < CD_N_DEVICE_PROBE. */
const char *cd_device_probe_name(size_t i);

/* Cores in use; their peak fp32 in GFLOP/s; below 0 when unknown. */
double cd_device_cores(const cd_device *d);
double cd_device_gflops(const cd_device *d);
const char *cd_device_kind_name(cd_device_kind k);
/* Operations a second of the fastest units for the type, of the cores in use; below 0 when unknown.
 * A CPU is described by its base clock: this is twice that, which no turbo passes. */
double cd_device_peak(const cd_device *d, cd_te_least_type t);
/* Seconds below which no program of the definition runs: operations over the peak, or bytes beyond
 * the largest cache (which may stand there before) over the bandwidth. A peak that is not described
 * bounds nothing. d NULL: 0. */
double cd_device_least_s(const cd_device *d, const cd_te_least *w);
/* Tables of keys and columns as Markdown: docs/reference/devices.md. */
void cd_device_doc(cd_buf *out);

#include "features/device/wave_scale.h"
#endif
