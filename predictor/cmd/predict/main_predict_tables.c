/* Tables of operators that cdmpp-predict reads: files as they are named, and of a folder all tables
 * below it. */
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"
#include "learner/operators/operators.h"
#include "predictor/cmd/predict/main_predict.h"

static bool is_folder(const char *path) {
    struct stat s;
    return strcmp(path, "-") != 0 && !stat(path, &s) && S_ISDIR(s.st_mode);
}

static cdmpp_status of_folder(const char *path, cd_arena *a, const char *const **v, size_t *n,
                              cdmpp_err *err) {
    CD_TRY(cd_file_list(a, path, cd_op_rows_is_table, NULL, v, n, err));
    return *n ? CDMPP_OK
              : cd_err_at(
                    err,
                    CD_FAIL(err, ESCHEMA, "expected tables (*.tsv, *.csv, *.h5) in this folder"),
                    path, 0);
}

cdmpp_status cd_predict_tables(const cd_texts *input, cd_arena *a, cd_texts *out, cdmpp_err *err) {
    const char **all = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < input->n; i++) {
        const char *const *v = &input->v[i];
        size_t n_v = 1;
        if (is_folder(input->v[i])) CD_TRY(of_folder(input->v[i], a, &v, &n_v, err));
        for (size_t k = 0; k < n_v; k++) {
            if (CD_GROW_IN(a, all, n, cap)) return CD_FAIL(err, ENOMEM, "%zu tables", n);
            all[n++] = v[k];
        }
    }
    *out = (cd_texts){n, all};
    return CDMPP_OK;
}
