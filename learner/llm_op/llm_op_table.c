/* Tables of measured operators of language models in memory: read, joined with the devices, further
 * times of a row set aside. */
#include <math.h>
#include <string.h>

#include "base/cli/cli.h"
#include "learner/inputs/inputs.h"
#include "learner/llm_op/llm_op_internal.h"

/* Measured times that are far from what the description of their GPU says: most often they are in
 * another unit. */

/* Tables of four GPUs and several libraries have no time so far from its estimate, but for some
 * calls that wait for their host; a wrong unit is a factor of 1000 or more. */
#define FAR 300

/* Time over estimate; 1 where there is no estimate. */
static double over(const cd_llm_op_table *t, size_t row, cd_llm_op_known *known, double *estimate) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    if (cd_llm_op_estimate_by(&t->r[row], t->known[t->device[row]], known, &e, &err)) return 1;
    *estimate = e.base_s;
    return t->r[row].latency_s / e.base_s;
}

static void llm_op_repeats_put_time(const cd_llm_op_repeats *a, const cd_llm_op_time *x,
                                    struct cd_buf *b);

static void llm_op_table_say_far(const cd_llm_op_table *t, struct cd_log *log) {
    cd_llm_op_known *known = cd_mem_zalloc(1, sizeof *known); /* NULL: slower */
    double most = log10(FAR), estimate = 0, of_most = 0;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < t->n; i++) {
        const double far = fabs(log10(over(t, i, known, &estimate)));
        if (!(far > log10(FAR))) continue;
        n++;
        if (far > most) most = far, at = i, of_most = estimate;
    }
    cd_mem_free(known);
    if (!n) return;
    cd_buf b = {0};
    llm_op_repeats_put_time(&t->again,
                            &(cd_llm_op_time){t->r[at].latency_s, (uint32_t)at, t->place[at]}, &b);
    if (!b.oom)
        cd_log_put(
            log, CD_LOG_WARNING,
            "%zu of %zu measured rows %s more than %d times off the analytic estimate (the "
            "farthest: %s, estimate %.2g s), and answer as they stand: latency_s is in seconds, "
            "latency_ms in milliseconds",
            n, t->n, n > 1 ? "are" : "is", FAR, b.p, of_most);
    cd_buf_free(&b);
}

/* Rows of a table that were measured more than once: their medians, and how far a further
 * measurement of a row would be. */

/* times of a row that tell its own spread; repeated rows that tell a kind's */
enum { OWN = 5, LEAST = 20 };
#define WIDE 1.2 /* greatest over least time that is told */

static void llm_op_repeats_free(cd_llm_op_repeats *a) {
    cd_mem_free(a->time);
    cd_mem_free(a->row);
    for (size_t k = 0; k < CD_LLM_OP_N_KIND; k++) cd_mem_free(a->noise[k]);
    for (size_t i = 0; i < a->n_file; i++) cd_mem_free(a->file[i].path);
    cd_mem_free(a->file);
    *a = (cd_llm_op_repeats){0};
}

/* Of rows that were measured more than once. A file is read from here on; a time; sorted, medians
 * taken, spread known. Errors: ENOMEM. */
static cdmpp_status llm_op_repeats_file(cd_llm_op_repeats *a, const char *path, cdmpp_err *err) {
    if (CD_GROW(a->file, a->n_file, a->cap_file))
        return CD_FAIL(err, ENOMEM, "%zu files", a->n_file);
    cd_llm_op_file *f = &a->file[a->n_file];
    *f = (cd_llm_op_file){cd_mem_text(path), a->last};
    if (!f->path) return CD_FAIL(err, ENOMEM, "%zu files", a->n_file);
    a->n_file++;
    return CDMPP_OK;
}

static cdmpp_status llm_op_repeats_put(cd_llm_op_repeats *a, const cd_llm_op_time *x,
                                       cdmpp_err *err) {
    if (CD_GROW(a->time, a->n_time, a->cap_time))
        return CD_FAIL(err, ENOMEM, "%zu times", a->n_time);
    a->time[a->n_time++] = *x;
    return CDMPP_OK;
}

/* ---- the index ---- */
/* By row, each row's as they came: rows are numbers, so each time's place is counted. */
static cdmpp_status sort(cd_llm_op_table *t, cdmpp_err *err) {
    cd_llm_op_repeats *a = &t->again;
    uint32_t *at = cd_mem_zalloc(t->n + 1, sizeof *at), beg = 0;
    cd_llm_op_time *sorted = cd_mem_zalloc(a->n_time, sizeof *sorted);
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += t->count[i] > 1;
    cd_llm_op_again *row = cd_mem_zalloc(n, sizeof *row);
    if (!at || !sorted || !row) {
        cd_mem_free(at);
        cd_mem_free(sorted);
        cd_mem_free(row);
        return CD_FAIL(err, ENOMEM, "%zu repeated rows", n);
    }
    cd_mem_free(a->row);
    a->row = row, a->n_row = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->count[i] < 2) continue;
        row[a->n_row++] = (cd_llm_op_again){.row = (uint32_t)i, .beg = at[i] = beg};
        beg += t->count[i];
    }
    for (size_t i = 0; i < a->n_time; i++) sorted[at[a->time[i].row]++] = a->time[i];
    cd_mem_free(at);
    cd_mem_free(a->time);
    a->time = sorted, a->cap_time = a->n_time;
    return CDMPP_OK;
}

/* Of times that rise. */
static double median(const double *s, size_t n) {
    return n % 2 ? s[n / 2] : s[n / 2 - 1] * sqrt(s[n / 2] / s[n / 2 - 1]);
}

/* The median of each row; how far its times are from it. */
static cdmpp_status medians(cd_llm_op_table *t, cdmpp_err *err) {
    cd_llm_op_repeats *a = &t->again;
    double *s = cd_mem_zalloc(a->n_time, sizeof *s), most = 0;
    if (!s) return CD_FAIL(err, ENOMEM, "%zu times", a->n_time);
    a->n_wide = 0;
    for (size_t k = 0; k < a->n_row; k++) {
        cd_llm_op_again *r = &a->row[k];
        const size_t n = t->count[r->row];
        for (size_t i = 0; i < n; i++) s[i] = a->time[r->beg + i].s;
        cd_sort_doubles(s, n);
        const double middle = t->r[r->row].latency_s = median(s, n), wide = s[n - 1] / s[0];
        r->square = 0;
        for (size_t i = 0; i < n; i++) r->square += log(s[i] / middle) * log(s[i] / middle);
        a->n_wide += wide > WIDE;
        if (wide > most) most = wide, a->widest = k;
    }
    cd_mem_free(s);
    return CDMPP_OK;
}

/* What two single times of a row differ, of the rows of a kind. Only the first two times of each
 * count, so none weighs more than others. */
static cdmpp_status noises(cd_llm_op_table *t, cdmpp_err *err) {
    cd_llm_op_repeats *a = &t->again;
    size_t n[CD_LLM_OP_N_KIND] = {0};
    for (size_t i = 0; i < a->n_row; i++) n[t->r[a->row[i].row].kind]++;
    for (size_t k = 0; k < CD_LLM_OP_N_KIND; k++) {
        cd_mem_free(a->noise[k]);
        a->n_noise[k] = 0;
        a->noise[k] = n[k] ? cd_mem_zalloc(n[k], sizeof *a->noise[k]) : NULL;
        if (n[k] && !a->noise[k]) return CD_FAIL(err, ENOMEM, "%zu repeated rows", n[k]);
    }
    for (size_t i = 0; i < a->n_row; i++) {
        const size_t k = t->r[a->row[i].row].kind;
        const cd_llm_op_time *x = &a->time[a->row[i].beg];
        a->noise[k][a->n_noise[k]++] = fabs(log(x[1].s / x[0].s));
    }
    for (size_t k = 0; k < CD_LLM_OP_N_KIND; k++)
        if (n[k]) cd_sort_doubles(a->noise[k], n[k]);
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_repeats_index(cd_llm_op_table *t, cdmpp_err *err) {
    if (!t->again.n_time) return CDMPP_OK;
    CD_TRY(sort(t, err));
    CD_TRY(medians(t, err));
    return noises(t, err);
}

/* ---- intervals ---- */
static const cd_llm_op_again *again(const cd_llm_op_repeats *a, size_t row) {
    size_t beg = 0, end = a->n_row;
    while (beg < end) {
        const size_t mid = (beg + end) / 2;
        if (a->row[mid].row < row) beg = mid + 1;
        else end = mid;
    }
    /* NULL: added after the index */
    return beg < a->n_row && a->row[beg].row == row ? &a->row[beg] : NULL;
}

/* A further time differs from the row's median by less than two single times differ. The variances
 * are those of medians of so many normal times. The squares of a row of its own are around the
 * median, not the mean: with times on one side they are larger, and the interval holds these
 * too. */
double cd_llm_op_table_half(const cd_llm_op_table *t, size_t row, double level) {
    static const double of_median[OWN] = {0, 1, 0.5, 0.4487, 0.2982};
    const double count = t->count[row];
    const size_t kind = t->r[row].kind, n = t->again.n_noise[kind],
                 at = (size_t)ceil(level * (double)(n + 1));
    const cd_llm_op_again *own = t->count[row] >= OWN ? again(&t->again, row) : NULL;
    if (own && own->square > 0)
        return cd_normal_student(0.5 + level / 2, count - 1) *
               sqrt(own->square / (count - 1) * (1 + 1 / count));
    const double one = 1 + (t->count[row] < OWN ? of_median[t->count[row]] : acos(0) / count);
    return n < LEAST ? (double)NAN : t->again.noise[kind][at > n ? n - 1 : at - 1] * sqrt(one / 2);
}

/* ---- what is told ---- */
static void llm_op_repeats_put_time(const cd_llm_op_repeats *a, const cd_llm_op_time *x,
                                    cd_buf *b) {
    size_t f = a->n_file;
    while (f && a->file[f - 1].before >= x->place) f--;
    if (f && x->place)
        cd_buf_putf(b, "%s:%u ", a->file[f - 1].path, x->place - a->file[f - 1].before);
    cd_buf_putf(b, "%.4g s", x->s);
}

static void put_widest(const cd_llm_op_table *t, cd_buf *b) {
    const cd_llm_op_again *r = &t->again.row[t->again.widest];
    const cd_llm_op_time *x = &t->again.time[r->beg], *least = x, *most = x;
    for (size_t i = 1; i < t->count[r->row]; i++) {
        if (x[i].s < least->s) least = &x[i];
        if (x[i].s > most->s) most = &x[i];
    }
    cd_buf_puts(b, " (the widest: ");
    llm_op_repeats_put_time(&t->again, least, b);
    cd_buf_puts(b, ", ");
    llm_op_repeats_put_time(&t->again, most, b);
    cd_buf_puts(b, ")");
}

void cd_llm_op_table_say(const cd_llm_op_table *t, struct cd_log *log) {
    const cd_llm_op_repeats *a = &t->again;
    cd_buf b = {0};
    llm_op_table_say_far(t, log);
    if (!a->n_row) return;
    cd_buf_putf(&b, "%zu %s measured more than once: the median counts", a->n_row,
                a->n_row > 1 ? "rows were" : "row was");
    if (a->n_wide) {
        cd_buf_putf(&b, "; %zu of them differ%s by more than a fifth", a->n_wide,
                    a->n_wide > 1 ? "" : "s");
        put_widest(t, &b);
    }
    if (!b.oom) cd_log_put(log, a->n_wide ? CD_LOG_WARNING : CD_LOG_INFO, "%s", b.p);
    cd_buf_free(&b);
}

const char *cd_llm_op_drop_text(cd_llm_op_drop d) {
    static const char *const text[CD_LLM_OP_N_DROP] = {
        "no record, or of an unknown device", "with a time that is not above 0", "without a time",
        "of devices that data.devices does not name"};
    return text[d];
}

void cd_llm_op_table_free(cd_llm_op_table *t) {
    cd_op_rows_free(&t->rows);
    cd_mem_free(t->count);
    cd_mem_free(t->place);
    llm_op_repeats_free(&t->again);
    for (size_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) {
        cd_mem_free(t->curve[i].row);
        cd_mem_free(t->curve[i].value);
        cd_mem_free(t->curve[i].slot);
    }
    cd_mem_free(t->met);
    cd_dict_free(&t->names);
    memset(t, 0, sizeof *t);
}

/* ---- rows ---- */
static uint64_t key(const void *record, uint32_t device) {
    const cd_llm_op_record *r = record;
    uint64_t h = cd_rng_at((uint64_t)r->kind << 16 | (uint64_t)r->type << 8 | r->kv,
                           (uint64_t)device << 32 | (uint64_t)r->stack << 16 | r->kernel);
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        h = cd_rng_mix(h ^ (uint64_t)r->size[i]);
    return cd_rng_mix(h ^ (uint64_t)(1e4 * r->skew));
}

static bool same(const void *a, const void *b) { return cd_llm_op_same(a, b); }

/* ---- files ---- */
typedef struct {
    cd_llm_op_table *t;
    const cd_device_table *devices;
    const cd_texts *only;
    const cd_op_reader *in; /* of the file that is read */
    uint32_t before;        /* lines of the files before it */
} loading;

static cdmpp_status open_table(const char *path, void *to, cd_op_reader **in, cdmpp_err *err) {
    loading *l = to;
    CD_TRY(cd_llm_op_reader_open(path, &l->t->names, in, err));
    l->in = *in;
    l->before = l->t->again.last;
    const cdmpp_status st = llm_op_repeats_file(&l->t->again, path, err);
    if (st) cd_op_reader_close(*in), *in = NULL;
    return st;
}

static cdmpp_status next(cd_op_reader *in, cd_op_any *r, const char **device, bool *more,
                         bool *no_time, cdmpp_err *err) {
    return cd_llm_op_reader_next(in, &r->llm, device, more, no_time, err);
}

static void put_bad(void *to, bool no_time) {
    ((loading *)to)->t->drop[no_time ? CD_LLM_OP_DROP_TIME : CD_LLM_OP_DROP_BAD]++;
}

static const cd_op_kind_of_table kind;

static cdmpp_status put(cd_llm_op_table *t, const cd_llm_op_record *r, const cd_device *device,
                        uint32_t place, cdmpp_err *err) {
    size_t k;
    bool is_new;
    if (CD_GROW(t->count, t->n, t->cap_count) || CD_GROW(t->place, t->n, t->cap_place))
        return CD_FAIL(err, ENOMEM, "%zu rows", t->n);
    CD_TRY(cd_op_rows_put(&t->rows, &kind, r, device, &k, &is_new, err));
    if (is_new) {
        t->count[k] = 1;
        t->place[k] = place;
        return CDMPP_OK;
    }
    if (t->count[k] == 1)
        CD_TRY(llm_op_repeats_put(
            &t->again, &(cd_llm_op_time){t->r[k].latency_s, (uint32_t)k, t->place[k]}, err));
    CD_TRY(llm_op_repeats_put(&t->again, &(cd_llm_op_time){r->latency_s, (uint32_t)k, place}, err));
    t->count[k]++;
    t->repeated++;
    return CDMPP_OK;
}

static cdmpp_status put_row(void *to, const cd_op_any *r, const cd_device *v, cdmpp_err *err) {
    const loading *l = to;
    bool want;
    CD_TRY(cd_op_rows_wanted(l->devices, l->only, v, &want, err));
    if (want && r->llm.latency_s > 0)
        return put(l->t, &r->llm, v,
                   l->t->again.last = l->before + (uint32_t)cd_op_reader_line(l->in), err);
    l->t->drop[want ? CD_LLM_OP_DROP_QUESTION : CD_LLM_OP_DROP_DEVICE]++;
    return CDMPP_OK;
}

static const cd_op_kind_of_table kind = {
    sizeof(cd_llm_op_record), "device", key, same, open_table, next, put_row, put_bad};

/* ---- the door ---- */
long cd_llm_op_table_find(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device) {
    return cd_op_rows_find(&t->rows, &kind, r, device);
}
uint64_t cd_llm_op_table_hash(const cd_llm_op_table *t, const cd_llm_op_record *r,
                              uint32_t device) {
    return cd_op_rows_hash(&t->rows, &kind, r, device);
}
void cd_llm_op_table_fetch(const cd_llm_op_table *t, uint64_t hash) {
    cd_op_rows_fetch(&t->rows, &kind, hash);
}
long cd_llm_op_table_at(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                        uint64_t hash) {
    return cd_op_rows_at(&t->rows, &kind, r, device, hash);
}
long cd_llm_op_table_device(const cd_llm_op_table *t, const cd_device *d) {
    return cd_op_rows_device(&t->rows, d);
}

cdmpp_status cd_llm_op_table_put(cd_llm_op_table *t, const cd_llm_op_record *r,
                                 const cd_device *device, cdmpp_err *err) {
    return put(t, r, device, 0, err);
}

cdmpp_status cd_llm_op_table_add(cd_llm_op_table *t, const char *path,
                                 const cd_device_table *devices, const cd_texts *only,
                                 cd_op_bad_line *bad, void *ctx, cdmpp_err *err) {
    loading to = {.t = t, .devices = devices, .only = only};
    return cd_op_rows_load(&(cd_op_loading){&kind, &t->rows, &to, devices, bad, ctx}, path, err);
}
