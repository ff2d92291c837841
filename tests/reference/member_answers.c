/* member_answers MODEL DATA.h5 MOST -- what the members of a model say about the programs of a data
 * set, the first MOST of them, as one JSON object a line: inputs and answers for
 * scripts/check_export.sh.
 *
 *   {"device":0,"flop":1e9,"log_s":-7.1,"kind_log_s":[...],"member_log_s":[...],"row":[[164
 *   numbers],...]}
 *
 * log_s is the weighted mean of the kinds. The n-th program is said to be of device n modulo their
 * number. Of every other program all columns are moved by quarters: a column that equals another
 * one in the sample then does not. */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/core.h"
#include "dataset/file/file.h"
#include "features/rows/rows.h"
#include "learner/model/model.h"
#include "learner/inputs/program_view_dataset.h"

static void put_list(const char *key, const double *v, size_t n, size_t stride) {
    printf("\"%s\":[", key);
    for (size_t k = 0; k < n; k++) printf(k ? ",%.17g" : "%.17g", v[k * stride]);
    printf("],");
}

static void put_rows(const cd_program_view *v, size_t i) {
    printf("\"row\":[");
    for (int64_t r = v->row_ptr[i]; r < v->row_ptr[i + 1]; r++)
        for (int c = 0; c < CD_N_COL; c++)
            printf("%s%.9g%s",
                   c                   ? ","
                   : r > v->row_ptr[i] ? ",["
                                       : "[",
                   (double)v->row[r * CD_N_COL + c], c + 1 < CD_N_COL ? "" : "]");
    printf("]}\n");
}

static cdmpp_status answers(const cd_model *m, const cd_program_view *v, size_t n, double *kind,
                            double *member, cdmpp_err *err) {
    cd_model_scratch *s = NULL;
    CD_TRY(cd_model_scratch_new(&s, err));
    cdmpp_status st = cd_model_kinds(m, s, v, NULL, n, -1, kind, err);
    cd_model_scratch_free(s);
    for (size_t j = 0; !st && j < m->n_member; j++) {
        cd_member_scratch *ms = NULL;
        CD_TRY(cd_member_scratch_new(&ms, err));
        st = cd_member_predict(&m->member[j], ms, v, NULL, n, m->device_vector, m->n_device,
                               member + j * n, err);
        cd_member_scratch_free(ms);
    }
    return st;
}

static cdmpp_status run(const char *model, const char *data, size_t most, cdmpp_err *err) {
    cd_model *m;
    cd_dataset *d;
    CD_TRY(cd_model_load(model, &m, err));
    CD_TRY(cd_dataset_load_ast(&data, 1, &d, err));
    const size_t n = d->n < most ? d->n : most;
    uint32_t *device = calloc(d->n + 1, sizeof *device);
    double *kind = calloc(m->n_kind * n + 1, sizeof *kind),
           *member = calloc(m->n_member * n + 1, sizeof *member);
    const cd_calibration_info info =
        m->calib ? cd_calibration_info_of(m->calib) : (cd_calibration_info){0};
    for (size_t i = 0; i < n; i++) device[i] = (uint32_t)(i % m->n_device);
    for (size_t i = 1; i < n; i += 2)
        for (int64_t k = d->row_ptr[i] * CD_N_COL; k < d->row_ptr[i + 1] * CD_N_COL; k++)
            d->row[k] += 0.25f * (float)(cd_rng_at(7, (uint64_t)k) % 9);
    const cd_program_view v = cd_program_view_dataset(d, device);
    CD_TRY(answers(m, &v, n, kind, member, err));
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < m->n_kind; k++)
            sum += (m->calib ? info.weight : m->weight)[k] * kind[k * n + i];
        printf("{\"device\":%u,\"flop\":%.17g,\"log_s\":%.17g,", device[i], v.flop ? v.flop[i] : -1,
               sum);
        put_list("kind_log_s", kind + i, m->n_kind, n);
        put_list("member_log_s", member + i, m->n_member, n);
        put_rows(&v, i);
    }
    free(device);
    free(kind);
    free(member);
    cd_dataset_free(d);
    cd_model_free(m);
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    char text[512];
    if (argc != 4) return 2;
    const cdmpp_status st = run(argv[1], argv[2], (size_t)strtoul(argv[3], NULL, 10), &err);
    if (st) fprintf(stderr, "member_answers: %s\n", cdmpp_err_format(&err, text, sizeof text));
    return st ? cdmpp_exit_code(st) : 0;
}
