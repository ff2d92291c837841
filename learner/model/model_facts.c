/* What the header of a model that reads facts says of them: the digest and the names of their
 * columns, and of each device the numbers that its analytic times were computed with, so that a
 * later description of the device changes no answer. */
#include <inttypes.h>
#include <math.h>

#include "learner/model/model_internal.h"

/* Members for the order of a task's programs, beside those for the seconds in one model: what they
 * say becomes order_s, and their part of the file. */

/* Far beyond any time, so that exp() of either is a number: an order of losses of ranks may lie
 * anywhere. */
static const double far = 80;

void cd_model_mix_order(const cd_model *m, const double *kind_log_s, size_t n,
                        cd_model_prediction *out) {
    if (!m->order) return;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < m->order->n_kind; k++) sum += kind_log_s[k * n + i];
        const double own = sum / (double)m->order->n_kind;
        const double both = m->order_share * own + (1 - m->order_share) * log(out[i].median_s);
        out[i].order_s = exp(fmax(-far, fmin(both, far)));
    }
}

/* ---- file ---- */
cdmpp_status cd_model_put_order(const cd_model *m, cd_buf *json, cd_buf *blob, cdmpp_err *err) {
    if (!m->order) return CDMPP_OK;
    cd_buf_putf(json, ",\"order\":{\"at\":%zu,\"share\":%.17g,", blob->n, m->order_share);
    CD_TRY(cd_model_put_members(m->order, json, blob, err));
    cd_buf_puts(json, "}");
    return CDMPP_OK;
}

cdmpp_status cd_model_read_order(cd_model *m, const cd_json *root, cd_str weights, cdmpp_err *err) {
    const cd_json *v = cd_json_get(root, "order");
    if (!v) return CDMPP_OK;
    cd_model *o = cd_model_new_order(m);
    if (!o) return CD_FAIL(err, ENOMEM, "order");
    CD_TRY(cd_json_need_real(v, "share", 0, 1, &m->order_share, err));
    CD_TRY(cd_model_read_members(o, v, &weights, err));
    return weights.n ? CD_FAIL(err, ESCHEMA, "%zu bytes behind the last member", weights.n)
                     : CDMPP_OK;
}

/* The numbers of a description, by name. */
typedef struct {
    const char *name;
    size_t at;
} number_row;

static const number_row table[] = {
#define X(key, low, high, unit, meaning) {#key, offsetof(cd_device, key)},
#include "features/device/device_keys.def"
#define X(key, high, reference, unit, meaning)                                                     \
    {#key, offsetof(cd_device, probe) + CD_DEVICE_PROBE_##key * sizeof(double)},
#include "features/device/device_probes.def"
};
enum { N_NUMBER = sizeof table / sizeof *table };

static double *number(cd_device *d, size_t k) {
    return (double *)(void *)((char *)d + table[k].at);
}

void cd_model_facts_put_device(cd_buf *b, const cd_device_numbers *d) {
    cd_device copy = *d;
    const char *comma = "";
    cd_buf_puts(b, ",\"numbers\":{");
    for (size_t k = 0; k < N_NUMBER; k++) {
        const double v = *number(&copy, k);
        if (!(v >= 0) || (v <= 0 && table[k].at < offsetof(cd_device, probe) + sizeof copy.probe &&
                          table[k].at >= offsetof(cd_device, probe)))
            continue;
        cd_buf_putf(b, "%s\"%s\":%.17g", comma, table[k].name, v);
        comma = ",";
    }
    cd_buf_puts(b, "}");
}

bool cd_model_own_times(const cd_model *m, const cd_device *about) {
    const float none[CD_N_FACTS] = {0};
    cd_analytic_time t;
    return about && cd_model_needs_facts(m) &&
           !cd_analytic_seconds_of(cd_model_facts_set(m), none, about, &t, NULL);
}

/* Files without key "set" are of CPU programs. */
void cd_model_facts_put(cd_facts_set set, cd_buf *b) {
    char digest[65];
    cd_facts_cols_digest(set, digest);
    cd_buf_putf(b, "\"facts\":{\"input_version\":%d,", CD_FACTS_INPUT_VERSION);
    if (set != CD_FACTS_OF_CPU) cd_buf_putf(b, "\"set\":\"%s\",", cd_facts_set_name(set));
    cd_buf_putf(b, "\"digest\":\"%s\",\"columns\":[", digest);
    for (size_t c = 0; c < cd_facts_count(set); c++)
        cd_buf_putf(b, "%s\"%s\"", c ? "," : "", cd_facts_cols(set)[c].name);
    cd_buf_puts(b, "]},");
}

static cdmpp_status check_digest(const cd_model *m, cd_str have, cdmpp_err *err) {
    char want[65];
    cd_facts_cols_digest(m->facts_set, want);
    if (cd_str_is(have, want)) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "facts of loop nests: this program computes %.16s..., the model was trained on "
                   "%.*s...: train it again",
                   want, cd_str_shown(have, 16), have.p);
}

cdmpp_status cd_model_facts_check(cd_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *facts = cd_json_get(model, "facts"), *v;
    int64_t version;
    int set = CD_FACTS_OF_CPU;
    cd_str have;
    if (!facts) return CDMPP_OK;
    if (cd_json_get(facts, "set"))
        CD_TRY(cd_json_need_word(facts, "set", CD_FACTS_SETS, &set, err));
    m->facts_set = (cd_facts_set)set;
    CD_TRY(cd_json_need(facts, "input_version", &v, err));
    CD_TRY(cd_json_int(v, 0, INT32_MAX, &version, err));
    if (version != CD_FACTS_INPUT_VERSION)
        return CD_FAIL(err, EMODEL,
                       "expected facts of input version %d, found %" PRId64
                       ": train the model again (one of cdmpp-tune calibrate: calibrate again)",
                       CD_FACTS_INPUT_VERSION, version);
    CD_TRY(cd_json_need_str(facts, "digest", &have, err));
    return check_digest(m, have, err);
}

cdmpp_status cd_model_facts_read_device(cd_model *m, size_t i, const cd_json *device,
                                        cdmpp_err *err) {
    const cd_json *v = cd_json_get(device, "numbers");
    cd_device *d = &m->numbers[i];
    if (!v) return CD_FAIL(err, ESCHEMA, "numbers: missing, of a model that reads facts");
    *d = (cd_device){.name = m->device[i],
                     .kind = m->device_is_gpu[i] ? CD_DEVICE_GPU : CD_DEVICE_CPU};
    for (size_t k = 0; k < N_NUMBER; k++) {
        *number(d, k) = CD_DEVICE_UNKNOWN;
        if (cd_json_get(v, table[k].name))
            CD_TRY(cd_err_key(err, cd_json_need_real(v, table[k].name, 0, 1e15, number(d, k), err),
                              "numbers"));
    }
    return CDMPP_OK;
}
